//! How providers say that a request is too long, and which window they name.
//!
//! Throttling is not overflow: a message about tokens per minute is none of these, whatever its
//! numbers are.

use crate::model::Fault;
use crate::transcript::FaultClass;

/// Codes that mean overflow.
const CODES: [&str; 6] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "context_overflow",
    "prompt_too_long",
];

/// Where a message names the window.
#[derive(Clone, Copy, Debug)]
enum Window {
    /// Nowhere.
    Unnamed,
    /// In the next number after these words, if it is near.
    After(&'static str),
}

use Window::{After, Unnamed};

/// Messages that mean overflow: all words of a row, in any order, and where the window stands.
/// The first row counts that names a window, else the first that matches.
const MESSAGES: [(&[&str], Window); 24] = [
    (
        &["maximum context length"],
        After("maximum context length is"),
    ),
    (
        &["maximum context length"],
        After("maximum context length of"),
    ),
    (
        &["maximum context length", "model with"],
        After("model with"),
    ),
    (&["prompt is too long", "maximum"], After(">")),
    (&["prompt is too long"], Unnamed),
    (&["prompt too long"], Unnamed),
    (&["exceed context limit"], After(">")),
    (
        &["token", "exceed", "maximum number of tokens allowed"],
        After("number of tokens allowed"),
    ),
    (
        &["maximum prompt length"],
        After("maximum prompt length is"),
    ),
    (&["reduce the length of the messages"], Unnamed),
    (&["reduce the length of the prompt"], Unnamed),
    (&["reduce the length of the input"], Unnamed),
    (&["longer than", "context length"], After("context length")),
    (
        &["greater than the context length"],
        After("context length"),
    ),
    (&["context length of only"], After("context length of only")),
    (
        &[
            "requested",
            "output tokens",
            "prompt contains",
            "input tokens",
        ],
        Unnamed,
    ),
    (&["exceed", "context size"], After("context size")),
    (&["exceed", "max context length"], Unnamed),
    (&["exceed", "context window"], After("context window of")),
    (&["exceeded model token limit"], After("model token limit")),
    (
        &["token", "exceeds the limit of"],
        After("exceeds the limit of"),
    ),
    (
        &["maximum allowed input length"],
        After("maximum allowed input length"),
    ),
    (&["too long for requested model"], Unnamed),
    (
        &["tokens", "max_new_tokens", "must be <="],
        After("must be <="),
    ),
];

/// Words of throttling.
const THROTTLED: [&str; 7] = [
    "per minute",
    "per hour",
    "per day",
    "per second",
    "rate limit",
    "rate_limit",
    "quota",
];

/// A request was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow {
    /// The context window in tokens, if it is named.
    pub(crate) window: Option<u64>,
}

/// Whether a code means overflow.
pub(crate) fn is_code(code: &str) -> bool {
    CODES.contains(&code)
}

/// The overflow that a message, in lower case, tells of; `None` if it tells of something else.
pub(crate) fn recognise(message: &str) -> Option<Overflow> {
    if THROTTLED.iter().any(|word| message.contains(word)) {
        return None;
    }
    let means = |words: &[&str]| words.iter().all(|word| message.contains(word));
    let mut windows = MESSAGES
        .iter()
        .filter(|(words, _)| means(words))
        .map(|(_, window)| match window {
            Unnamed => None,
            After(words) => number_after(message, words),
        })
        .peekable();
    windows.peek()?;
    Some(Overflow {
        window: windows.flatten().next(),
    })
}

/// Makes an overflow of a refusal that this provider words in its own way: `wordings`, in lower case.
///
/// Only what would be given up, or is a server's unexplained failure, is looked at: what says that
/// requests come too often, or who may not ask, stays what it is.
pub(crate) fn reclassify(fault: &mut Fault, wordings: &[String]) {
    match fault.class {
        FaultClass::Permanent | FaultClass::Server => {}
        FaultClass::Rate
        | FaultClass::Overload
        | FaultClass::Transport
        | FaultClass::Stall
        | FaultClass::Torn
        | FaultClass::Auth
        | FaultClass::ContentFilter
        | FaultClass::Overflow
        | FaultClass::Local => return,
    }
    let message = fault.message.to_lowercase();
    let means = |words: &&String| !words.is_empty() && message.contains(words.as_str());
    if let Some(words) = wordings.iter().find(means) {
        fault.class = FaultClass::Overflow;
        fault.wait_ms = None;
        fault.window = fault.window.or_else(|| number_after(&message, words));
    }
}

/// The first number within a few characters after the words, if it can be a window.
fn number_after(message: &str, words: &str) -> Option<u64> {
    let (_, rest) = message.split_once(words)?;
    let at = rest.find(|c: char| c.is_ascii_digit())?;
    let between = rest.get(..at)?;
    if between.len() > 16 || between.contains(['.', ';']) {
        return None;
    }
    let digits = rest.get(at..)?.char_indices();
    let mut number = String::new();
    for (_, c) in digits {
        match c {
            '0'..='9' => number.push(c),
            ',' | '_' | '\'' => {}
            _ => break,
        }
    }
    number
        .parse()
        .ok()
        .filter(|window| (256..=1_000_000_000).contains(window))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile's own words count where nothing else explains a refusal.
    #[test]
    fn a_profile_adds_wordings() {
        let wordings = ["trop de mots, au plus".to_owned(), String::new()];
        for (class, message, expected) in [
            (
                FaultClass::Permanent,
                "400: Trop de mots, au plus 8192.",
                (FaultClass::Overflow, Some(8192)),
            ),
            (
                FaultClass::Server,
                "trop de mots, au plus !",
                (FaultClass::Overflow, None),
            ),
            (
                FaultClass::Rate,
                "trop de mots, au plus 8192",
                (FaultClass::Rate, None),
            ),
            (FaultClass::Permanent, "trop", (FaultClass::Permanent, None)),
        ] {
            let mut fault = Fault::new(class, message);
            reclassify(&mut fault, &wordings);
            assert_eq!((fault.class, fault.window), expected, "{message}");
        }
    }

    #[test]
    fn every_known_wording_is_recognised() {
        for (message, window) in [
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
                Some(128_000),
            ),
            (
                "This endpoint's maximum context length is 131,072 tokens. However, you requested about 140000 tokens",
                Some(131_072),
            ),
            (
                "Your input exceeds the context window of this model. Please adjust your input.",
                None,
            ),
            (
                "prompt is too long: 210000 tokens > 200000 maximum",
                Some(200_000),
            ),
            (
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
                Some(200_000),
            ),
            (
                "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
                Some(131_072),
            ),
            (
                "Please reduce the length of the messages or completion.",
                None,
            ),
            (
                "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
                Some(32_768),
            ),
            (
                "you requested 1000 output tokens and your prompt contains at least 3097 input tokens",
                None,
            ),
            (
                "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
                Some(4096),
            ),
            (
                "prompt too long; exceeded max context length by 1200 tokens",
                None,
            ),
            (
                "The number of tokens to keep from the initial prompt is greater than the context length. Try another",
                None,
            ),
            (
                "Trying to keep the first 9000 tokens when context overflows. However, the model is loaded with context length of only 4096 tokens",
                Some(4096),
            ),
            (
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                Some(32_768),
            ),
            (
                "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)",
                Some(131_072),
            ),
            ("invalid params, context window exceeds limit (2013)", None),
            (
                "prompt token count of 150000 exceeds the limit of 128000",
                Some(128_000),
            ),
            (
                "Input length 9000 exceeds the maximum allowed input length of 8192 tokens",
                Some(8192),
            ),
            ("Input is too long for requested model.", None),
            (
                "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
                Some(4096),
            ),
        ] {
            assert_eq!(
                recognise(&message.to_lowercase()),
                Some(Overflow { window }),
                "{message}"
            );
        }
    }

    #[test]
    fn other_limits_are_not_overflow() {
        for message in [
            "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
            "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 8000, please reduce the length of the messages",
            "the number of tools 130 exceeds the limit of 128",
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
            "Unsupported parameter: max_tokens",
            "<html><title>413 Request Entity Too Large</title>",
        ] {
            assert_eq!(recognise(&message.to_lowercase()), None, "{message}");
        }
    }
}
