//! How large a request is, and what it costs.
//!
//! Characters are the Unicode scalars of the body as rendered. Tokens are estimated from them:
//! plainly a quarter, or narrow ones a quarter and wide ones whole, times a factor learned from what
//! the provider counted.

use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

use crate::exchange::{Reasoning, Response, Usage};
use crate::setup::{EstimateRule, Prices};
use crate::transcript::Estimate;

/// The factor before anything was learned: one, in thousandths.
pub const PLAIN: u64 = 1000;

/// The bounds of a learned factor, in thousandths.
const BOUNDS: (u64, u64) = (500, 4000);

/// The number of newest responses that a factor is learned from.
const LEARNED_FROM: usize = 5;

/// Numbers of characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chars {
    /// All Unicode scalars.
    pub all: u64,
    /// Those at U+0800 and above (three and four bytes in UTF-8): scripts that tokenizers cut
    /// about one token a character.
    pub wide: u64,
}

impl Chars {
    /// Counts the characters of UTF-8 text.
    pub fn of(text: &[u8]) -> Self {
        let mut chars = Self::default();
        // Of so few bytes a byte can hold the counts, and many bytes are counted at once.
        for part in text.chunks(128) {
            let (mut all, mut wide) = (0_u8, 0_u8);
            for byte in part {
                all += u8::from(byte & 0xc0 != 0x80);
                wide += u8::from(*byte >= 0xe0);
            }
            chars.all += u64::from(all);
            chars.wide += u64::from(wide);
        }
        chars
    }

    /// Counts the characters that a text has as a JSON string, its marks included.
    pub fn of_string(text: &str) -> Self {
        let mut chars = Self::of(text.as_bytes());
        chars.all += 2;
        for part in text.as_bytes().chunks(32) {
            // What stands behind a backslash in the place of the byte: one more, or five.
            let (mut escaped, mut spelled) = (0_u8, 0_u8);
            for byte in part {
                let is_control = *byte < 0x20;
                let is_short = matches!(*byte, 0x08..=0x0a | 0x0c | 0x0d);
                let is_mark = matches!(*byte, b'"' | b'\\');
                escaped += u8::from(is_control) | u8::from(is_mark);
                spelled += u8::from(is_control) & u8::from(!is_short);
            }
            chars.all += u64::from(escaped) + 4 * u64::from(spelled);
        }
        chars
    }

    /// Tokens by the rule alone, rounded up.
    pub fn base(self, rule: EstimateRule) -> u64 {
        match rule {
            EstimateRule::Chars => self.all.div_ceil(4),
            EstimateRule::Calibrated => (self.all - self.wide + 4 * self.wide).div_ceil(4),
        }
    }

    /// The estimate by this rule and factor.
    pub fn estimate(self, rule: EstimateRule, factor: u64) -> Estimate {
        let base = self.base(rule);
        Estimate {
            chars: self.all,
            base,
            factor,
            tokens: tokens(base, factor),
        }
    }
}

/// `base × factor / 1000`, rounded up.
pub fn tokens(base: u64, factor: u64) -> u64 {
    base.saturating_mul(factor).div_ceil(1000)
}

/// The characters that a number of tokens leaves room for, all of them narrow.
pub fn room(tokens: u64, factor: u64) -> u64 {
    tokens.saturating_mul(1000) / factor.max(1) * 4
}

impl Add for Chars {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            wide: self.wide + other.wide,
        }
    }
}

impl AddAssign for Chars {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Chars {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            all: self.all - other.all,
            wide: self.wide - other.wide,
        }
    }
}

impl SubAssign for Chars {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// The factor learned from the provider's own counts: the median over the newest responses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// Newest last; each in thousandths.
    learned: Vec<u64>,
}

impl Factor {
    /// Learns from one response to a request that was estimated at `base` tokens; returns whether its
    /// count is believed. One far below the estimate or above the window is not.
    pub fn learn(&mut self, base: u64, input: u64, window: Option<u64>) -> bool {
        let believed = is_believed(base, input, window);
        if believed {
            if self.learned.len() == LEARNED_FROM {
                self.learned.remove(0);
            }
            self.learned.push(input.saturating_mul(1000) / base);
        }
        believed
    }

    /// The factor in thousandths; [`PLAIN`] until something was learned.
    pub fn value(&self) -> u64 {
        let mut sorted = self.learned.clone();
        sorted.sort_unstable();
        sorted
            .get(sorted.len() / 2)
            .map_or(PLAIN, |median| (*median).clamp(BOUNDS.0, BOUNDS.1))
    }
}

/// Whether what a provider counted of a request can be true: it is not far below the estimate, and
/// not above the window.
pub fn is_believed(base: u64, input: u64, window: Option<u64>) -> bool {
    base > 0 && input > base / 10 && window.is_none_or(|window| input <= window)
}

/// What a response used, with estimates in the place of what the provider did not count; and whether
/// there are such. `asked` is the estimate of its request.
///
/// A request is never of no tokens, nor is a reply that says something: a server that counts so does
/// not count.
pub fn used(response: &Response, asked: u64) -> (Usage, bool) {
    let told = response.usage.unwrap_or_default();
    let input = told.input.filter(|input| *input > 0);
    let (output, is_told) = match told.output {
        // What is told is not estimated: that is a look at all that was written.
        Some(output @ 1..) => (output, true),
        other => {
            let written = written(response);
            (written, other.is_some() && written == 0)
        }
    };
    let usage = Usage {
        input: Some(input.unwrap_or(asked)),
        output: Some(output),
        ..told
    };
    (usage, input.is_none() || !is_told)
}

/// The estimate of what a model wrote: text, reasoning that can be read, and calls.
fn written(response: &Response) -> u64 {
    let reasoning = response.reasoning.iter().filter_map(|block| match block {
        Reasoning::Text { text, .. } => Some(text.as_str()),
        Reasoning::Raw { .. } => None,
    });
    let calls = response
        .calls
        .iter()
        .flat_map(|call| [call.name.as_str(), call.arguments.as_str()]);
    let mut chars = Chars::of(response.text.as_bytes());
    for text in reasoning.chain(calls) {
        chars += Chars::of(text.as_bytes());
    }
    chars.base(EstimateRule::Calibrated)
}

/// What a response cost, in micro-dollars.
pub fn cost(usage: Usage, prices: &Prices) -> u64 {
    let input = usage.input.unwrap_or(0);
    let cached = usage.cached.unwrap_or(0).min(input);
    let written = usage.cache_write.unwrap_or(0).min(input - cached);
    let parts = [
        (input - cached - written, prices.input_usd_micro),
        (cached, prices.cached_usd_micro),
        (written, prices.cache_write_usd_micro),
        (usage.output.unwrap_or(0), prices.output_usd_micro),
    ];
    let total: u128 = parts
        .map(|(tokens, price)| u128::from(tokens) * u128::from(price))
        .iter()
        .sum();
    u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_scalars_and_wide_ones_count_whole() {
        let chars = Chars::of("aé漢🙂".as_bytes());
        assert_eq!(chars, Chars { all: 4, wide: 2 });
        assert_eq!(chars.base(EstimateRule::Chars), 1);
        assert_eq!(chars.base(EstimateRule::Calibrated), 3);
        let estimate = Chars::of(&[b'x'; 10]).estimate(EstimateRule::Calibrated, 1080);
        assert_eq!(
            estimate,
            Estimate {
                chars: 10,
                base: 3,
                factor: 1080,
                tokens: 4
            }
        );
    }

    #[test]
    fn the_characters_of_a_string_are_counted_as_if_it_were_written() {
        let mut text: String = (0..0x100_u32).filter_map(char::from_u32).collect();
        text.push_str(&"漢🙂\u{7ff}\u{800} plain text\n".repeat(40));
        for (end, _) in text.char_indices() {
            for text in [&text[..end], &text[end..]] {
                let json = serde_json::to_vec(text).unwrap();
                let (mut all, mut wide) = (0, 0);
                for char in std::str::from_utf8(&json).unwrap().chars() {
                    all += 1;
                    wide += u64::from(char >= '\u{800}');
                }
                assert_eq!(Chars::of(&json), Chars { all, wide });
                assert_eq!(Chars::of_string(text), Chars { all, wide }, "{text}");
            }
        }
    }

    #[test]
    fn a_factor_is_the_bounded_median_of_the_newest_five() {
        let mut factor = Factor::default();
        assert_eq!(factor.value(), 1000);
        for input in [9000, 100, 120, 110, 130, 90] {
            factor.learn(100, input, Some(10_000));
        }
        assert_eq!(factor.value(), 1100);
        // Neither a count above the window nor one far below the estimate is believed.
        assert!(!factor.learn(100, 20_000, Some(10_000)));
        assert!(!factor.learn(1000, 60, None));
        assert_eq!(factor.value(), 1100);
        let mut low = Factor::default();
        low.learn(1000, 200, None);
        assert_eq!(low.value(), 500);
    }

    #[test]
    fn cached_tokens_are_paid_apart() {
        let prices = Prices {
            input_usd_micro: 1_000_000,
            cached_usd_micro: 100_000,
            cache_write_usd_micro: 1_250_000,
            output_usd_micro: 4_000_000,
        };
        let usage = Usage {
            input: Some(1000),
            cached: Some(600),
            cache_write: Some(100),
            output: Some(10),
            reasoning: None,
        };
        assert_eq!(cost(usage, &prices), 300 + 60 + 125 + 40);
    }
}
