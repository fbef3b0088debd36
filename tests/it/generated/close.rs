//! How a reply ends, and whether it is whole then.

use super::draw::Draw;

/// The most tokens of output that are asked for.
pub(super) const MOST_TOKENS: u64 = 1000;

/// How a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// With one of these words.
    Word(&'static str),
    /// With the end marker alone.
    Marker,
    /// With a word that takes back what an earlier one said, or is taken back by it.
    Words(&'static str, &'static str),
    /// Without anything.
    Nothing,
    /// In the middle.
    Middle,
    /// With an error, after the finish reason or instead of it.
    Error { after_the_word: bool },
    /// As much was written as had been asked for.
    Full,
    /// The model declined.
    Refusal,
}

const SOUND: [&str; 8] = [
    "tool_calls",
    "tool_calls",
    "tool_calls",
    "stop",
    "function_call",
    "eos",
    "STOP",
    "weird",
];
const UNSOUND: [&str; 12] = [
    "length",
    "max_tokens",
    "LENGTH",
    "content_filter",
    "SAFETY",
    "refusal",
    "error",
    "abort",
    "network_error",
    "insufficient_system_resource",
    "model_context_window_exceeded",
    "cancelled",
];

impl Close {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        match draw.below(20) {
            0 => Self::Marker,
            1 => Self::Words(draw.pick(&SOUND), draw.pick(&UNSOUND)),
            2 => Self::Words(draw.pick(&UNSOUND), draw.pick(&SOUND)),
            3 => Self::Nothing,
            4 | 5 => Self::Middle,
            6 => Self::Error {
                after_the_word: draw.one_in(2),
            },
            7 => Self::Full,
            8 => Self::Refusal,
            9 | 10 => Self::Word(draw.pick(&UNSOUND)),
            _ => Self::Word(draw.pick(&SOUND)),
        }
    }

    pub(super) fn is_whole(self) -> bool {
        match self {
            Self::Word(word) => SOUND.contains(&word),
            Self::Marker => true,
            Self::Words(..)
            | Self::Nothing
            | Self::Middle
            | Self::Error { .. }
            | Self::Full
            | Self::Refusal => false,
        }
    }
}

/// Counts; as much was written as may be if the reply ends like that.
pub(super) fn usage(close: Close) -> String {
    let written = if close == Close::Full {
        MOST_TOKENS
    } else {
        10
    };
    format!("{{\"prompt_tokens\":100,\"completion_tokens\":{written}}}")
}
