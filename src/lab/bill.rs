//! What the requests of a simulated run cost.
//!
//! A prompt is the body of its request; four characters are a token. What it has in common with the
//! beginning of the prompt before it is read from the provider's cache, unless that one is too old.

use std::time::Duration;

use crate::meter::Chars;
use crate::transcript::At;
use crate::view::View;
use crate::wire::TAIL;

/// What tokens cost, as parts of the price of one that is read afresh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// A token that the provider has cached.
    pub cached: f64,
    /// A token that is read afresh and cached.
    pub cache_write: f64,
    /// A token that a model writes: only summaries count, all else is the same for every policy.
    pub output: f64,
    /// How long the provider keeps what it has cached.
    pub lifetime: Duration,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            cached: 0.1,
            cache_write: 1.0,
            output: 5.0,
            lifetime: Duration::from_secs(300),
        }
    }
}

/// The prompt that was sent last.
#[derive(Debug)]
struct Sent {
    at: At,
    /// The length of its messages, in bytes.
    bytes: usize,
    chars: u64,
    /// The messages, if what stands there now may be something else.
    kept: Option<Vec<u8>>,
}

/// What was sent so far. Sums are characters.
#[derive(Debug, Default)]
pub(super) struct Bill {
    /// All prompts of rounds.
    pub(super) prompts: u64,
    /// What of them was cached.
    pub(super) cached: u64,
    /// The prompts of summaries, which are not cached.
    pub(super) summaries: u64,
    /// What was written for them.
    pub(super) written: u64,
    /// The longest prompt of a round.
    pub(super) peak: u64,
    /// Each prompt of a round.
    pub(super) sizes: Vec<u64>,
    last: Option<Sent>,
}

impl Bill {
    /// Takes note that what was sent last may read differently from now on.
    pub(super) fn before_change(&mut self, view: &View) {
        if let Some(sent) = &mut self.last
            && sent.kept.is_none()
        {
            sent.kept = view.settled().get(..sent.bytes).map(<[u8]>::to_vec);
        }
    }

    /// Takes a request of so many characters, made of the view as it is.
    pub(super) fn ask(&mut self, view: &View, at: At, chars: u64, prices: &Prices) {
        let now = view.settled();
        if let Some(sent) = &self.last
            && Duration::from_millis(at.ms_since(sent.at)) <= prices.lifetime
        {
            self.cached += match &sent.kept {
                None => sent.chars,
                Some(kept) => Chars::of(&now[..common(kept, now)]).all,
            };
        }
        self.prompts += chars;
        self.peak = self.peak.max(chars);
        self.sizes.push(chars.div_ceil(4));
        self.last = Some(Sent {
            at,
            bytes: now.len(),
            chars: view.chars().all.saturating_sub(TAIL.len() as u64),
            kept: None,
        });
    }

    /// What it comes to, in tokens that are read afresh.
    pub(super) fn cost(&self, prices: &Prices) -> f64 {
        let new = self.prompts - self.cached;
        let chars = count(self.cached) * prices.cached
            + count(new) * prices.cache_write
            + count(self.summaries)
            + count(self.written) * prices.output;
        (chars / 4.0).round()
    }
}

/// The number of bytes that two texts begin with alike.
fn common(one: &[u8], other: &[u8]) -> usize {
    const BLOCK: usize = 4096;
    let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
    let alike = blocks.take_while(|(one, other)| one == other).count() * BLOCK;
    let rest = one[alike..].iter().zip(&other[alike..]);
    alike + rest.take_while(|(one, other)| one == other).count()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of characters are far below 2^52"
)]
fn count(chars: u64) -> f64 {
    chars as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_beginning_is_found_to_the_byte() {
        let text = vec![b'a'; 10_000];
        for at in [0, 1, 4095, 4096, 4097, 9_999] {
            let mut other = text.clone();
            other[at] = b'b';
            assert_eq!(common(&text, &other), at);
        }
        assert_eq!(common(&text, &text[..5000]), 5000);
        assert_eq!(common(&text, &text), 10_000);
    }
}
