//! The sizes that compaction works with, in tokens.
//!
//! W is the window, O the reserve for output, H the most that fits, T the trigger, F what
//! instructions and specs take, and R what the trigger leaves after them. All shares are fractions
//! of R.

use crate::id::{EntryId, Span};
use crate::meter::{self, Chars};
use crate::setup::{Model, Policy};
use crate::transcript::Estimate;
use crate::view::{View, json_chars};

/// A text of this many characters is taken in whole, however small the window.
pub(crate) const SHORT_TEXT: u64 = 2000;

/// The reserve for output where the window is not known.
const OUTPUT_UNKNOWN: u64 = 8192;

/// Sizes in tokens, for one model and policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The reserve for output (O).
    pub output: u64,
    /// The largest request that fits (H).
    pub fits: u64,
    /// The size above which the context is compacted (T).
    pub trigger: u64,
    /// What instructions and specs take (F).
    pub fixed: u64,
    /// What the trigger leaves after them (R).
    pub room: u64,
    /// What a compaction aims at.
    pub target: u64,
    /// The most that newest rounds keep beside a summary.
    pub tail: u64,
    /// The most that all summaries take together.
    pub bands: u64,
    /// The most that one summary takes.
    pub summary: u64,
    /// The learned factor of estimates, in thousandths.
    pub factor: u64,
}

impl Sizes {
    /// The sizes for a model whose requests take `fixed` tokens without messages.
    pub fn new(model: &Model, policy: &Policy, fixed: u64, factor: u64) -> Self {
        let auto = &policy.compaction.auto;
        let asked = model.parameters.max_output_tokens;
        let (output, fits, trigger) = match model.window {
            Some(window) => {
                let most = window / 8;
                let output = asked.map_or(most, |asked| asked.min(most));
                let fits = window.saturating_sub(output).saturating_sub(window / 50);
                let ratio = part(window, auto.trigger_ratio);
                (output, fits, auto.token_threshold.min(ratio).min(fits))
            }
            None => (
                asked.unwrap_or(OUTPUT_UNKNOWN),
                auto.token_threshold,
                auto.token_threshold,
            ),
        };
        let room = trigger.saturating_sub(fixed);
        let target = fixed + part(room, auto.target_ratio);
        Self {
            output,
            fits,
            trigger,
            fixed,
            room,
            target,
            tail: part(room, auto.tail_ratio),
            bands: part(room, auto.bands_ratio),
            summary: part(room, 0.1).min(policy.compaction.summary.max_tokens),
            factor,
        }
    }

    /// A fraction of R, in tokens.
    pub fn share(&self, ratio: f64) -> u64 {
        part(self.room, ratio)
    }

    /// A fraction of T, in tokens.
    pub fn part_of_trigger(&self, ratio: f64) -> u64 {
        part(self.trigger, ratio)
    }

    /// A fraction of so many tokens.
    pub fn part_of(tokens: u64, ratio: f64) -> u64 {
        part(tokens, ratio)
    }

    /// Tokens as narrow characters.
    pub fn as_chars(&self, tokens: u64) -> u64 {
        meter::room(tokens, self.factor)
    }

    /// The longest text that a person hands in, in characters. A short one is never clipped: where
    /// not even that fits, the run is refused with the numbers.
    pub fn text_chars(&self, policy: &Policy) -> u64 {
        let most = policy.limits.text_chars;
        most.min(self.as_chars(self.share(0.2)).max(SHORT_TEXT))
    }

    /// The longest result of each of `calls` calls of one round, in characters.
    pub fn result_chars(&self, policy: &Policy, calls: usize) -> u64 {
        let round = self.as_chars(self.share(0.2));
        policy
            .limits
            .result_chars
            .min(round / (calls.max(1) as u64))
            .max(200)
    }
}

/// A fraction of a number of tokens, rounded down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "token counts are far below 2^52, and a ratio below zero is taken as zero"
)]
fn part(tokens: u64, ratio: f64) -> u64 {
    (tokens as f64 * ratio.max(0.0)) as u64
}

impl View {
    /// The characters of the next round's request, as far as calls are answered.
    pub fn chars(&self) -> Chars {
        self.merged_chars().unwrap_or_else(|| self.pieces.chars())
    }

    /// The characters of a request without messages: instructions and tools.
    pub fn fixed_chars(&self) -> Chars {
        self.pieces.head_chars()
    }

    /// The characters that the messages of an entry of the conversation take.
    pub fn chars_of(&self, entry: EntryId) -> Chars {
        self.items
            .index(entry)
            .map(|item| self.pieces.item_chars(item))
            .unwrap_or_default()
    }

    /// The characters of messages from the entry on (it and all behind it).
    pub fn chars_from(&self, entry: EntryId) -> Chars {
        self.looked.add(1);
        let from = self.items.within(Span::new(entry, EntryId(u64::MAX))).start;
        self.pieces.chars_from(from)
    }

    /// The tokens of so many characters, by the estimate in force.
    pub fn tokens(&self, chars: Chars) -> u64 {
        let rule = self
            .policy()
            .map(|policy| policy.compaction.estimate)
            .unwrap_or_default();
        chars.estimate(rule, self.factor()).tokens
    }

    /// The tokens that a text takes within a message.
    pub fn text_tokens(&self, text: &str) -> u64 {
        self.tokens(json_chars(text))
    }

    /// The tokens that the messages of a span take now, by estimate.
    pub fn tokens_between(&self, span: Span) -> u64 {
        self.tokens(self.chars_from(span.from) - self.chars_from(span.to.next()))
    }

    /// The estimate of the next round's request.
    pub fn estimate(&self) -> Estimate {
        let rule = self
            .policy()
            .map(|policy| policy.compaction.estimate)
            .unwrap_or_default();
        self.chars().estimate(rule, self.ledger.factor(rule))
    }

    /// The learned factor that estimates use now, in thousandths.
    pub fn factor(&self) -> u64 {
        let rule = self
            .policy()
            .map(|policy| policy.compaction.estimate)
            .unwrap_or_default();
        self.ledger.factor(rule)
    }

    /// The sizes now; `None` before there are settings.
    pub fn sizes(&self) -> Option<Sizes> {
        let setup = self.setup()?;
        let factor = self.factor();
        let fixed = self
            .fixed_chars()
            .estimate(setup.policy.compaction.estimate, factor)
            .tokens;
        Some(Sizes::new(
            &setup.wire.models.main,
            &setup.policy,
            fixed,
            factor,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Profile;

    fn sizes(window: Option<u64>, output: Option<u64>) -> Sizes {
        let mut model = Model {
            name: "m".into(),
            server: None,
            api: crate::setup::Api::Chat,
            profile: Profile::default(),
            window,
            parameters: crate::setup::Parameters::default(),
        };
        model.parameters.max_output_tokens = output;
        Sizes::new(&model, &Policy::default(), 1000, 1000)
    }

    #[test]
    fn sizes_follow_from_the_window() {
        let known = sizes(Some(200_000), None);
        assert_eq!(
            (known.output, known.fits, known.trigger),
            (25_000, 171_000, 110_000)
        );
        assert_eq!(
            (known.room, known.target, known.tail),
            (109_000, 44_600, 27_250)
        );
        assert_eq!((known.bands, known.summary), (21_800, 10_900));
        assert_eq!(sizes(Some(200_000), Some(4000)).fits, 192_000);
        assert_eq!(sizes(Some(200_000), Some(90_000)).output, 25_000);
        let unknown = sizes(None, None);
        assert_eq!(
            (unknown.output, unknown.fits, unknown.trigger),
            (8192, 110_000, 110_000)
        );
    }
}
