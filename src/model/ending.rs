//! How a reply ended: whole, cut, filtered, refused, failed or torn.
//!
//! A reply is whole only if the server said so, by a finish reason or by the end marker. A closed
//! connection says nothing, and an end marker behind nothing does not either.

use crate::exchange::{Ending, Usage};
use crate::transcript::FaultClass;

/// What is known of the end of a reply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence<'a> {
    /// The finish reason, word for word; empty is none.
    pub(crate) finish: Option<&'a str>,
    /// Whether the end marker came.
    pub(crate) marker: bool,
    /// Whether the model declined in a field made for it.
    pub(crate) refusal: bool,
    /// Whether there is neither text nor reasoning nor a call.
    pub(crate) silent: bool,
    /// What the provider counted.
    pub(crate) usage: Option<Usage>,
    /// The most tokens of output that were asked for.
    pub(crate) maximum: Option<u64>,
    /// The context window in tokens.
    pub(crate) window: Option<u64>,
}

/// The judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// There is a reply.
    Ended(Ending),
    /// The provider's word means a failure.
    Failed(FaultClass),
    /// Nobody said that the reply is whole.
    Torn,
}

/// Judges how a reply ended. A word that is not known is a harmless one.
pub(crate) fn judge(evidence: &Evidence<'_>) -> Verdict {
    let word = evidence.finish.unwrap_or_default().trim().to_lowercase();
    match word.as_str() {
        "" if !evidence.marker || evidence.silent => Verdict::Torn,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => {
            if evidence.silent && evidence.window_is_full() {
                Verdict::Failed(FaultClass::Overflow)
            } else {
                Verdict::Ended(Ending::Cut)
            }
        }
        "model_context_window_exceeded"
        | "context_window_exceeded"
        | "context_length_exceeded"
        | "context_overflow" => Verdict::Failed(FaultClass::Overflow),
        "content_filter"
        | "content_filtered"
        | "safety"
        | "recitation"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "sensitive"
        | "guardrail_intervened" => Verdict::Ended(Ending::Filtered),
        "refusal" => Verdict::Ended(Ending::Refused),
        "insufficient_system_resource" | "overloaded" => Verdict::Failed(FaultClass::Overload),
        "error" | "abort" | "aborted" | "cancelled" | "canceled" | "failed" | "timeout"
        | "network_error" | "server_error" => Verdict::Failed(FaultClass::Server),
        // The model wrote no call that could be read, so the same request again is no help.
        word if word.contains("malformed_function_call") => Verdict::Failed(FaultClass::Permanent),
        _ if evidence.refusal => Verdict::Ended(Ending::Refused),
        _ if evidence.reaches_maximum() => Verdict::Ended(Ending::Cut),
        _ => Verdict::Ended(Ending::Complete),
    }
}

/// Whether a finish reason by itself says that the reply is whole.
pub(crate) fn ends_well(word: &str) -> bool {
    let evidence = Evidence {
        finish: Some(word),
        ..Evidence::default()
    };
    judge(&evidence) == Verdict::Ended(Ending::Complete)
}

impl Evidence<'_> {
    /// Whether as much was written as had been asked for, even if it happens to look whole.
    fn reaches_maximum(&self) -> bool {
        let written = self.usage.and_then(|usage| usage.output);
        let both = written.zip(self.maximum);
        both.is_some_and(|(written, maximum)| maximum > 0 && written >= maximum)
    }

    /// Whether what was read leaves no room in the window: less than a twentieth.
    fn window_is_full(&self) -> bool {
        let read = self.usage.and_then(|usage| usage.input);
        let both = read.zip(self.window);
        both.is_some_and(|(read, window)| read >= window - window / 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE: Verdict = Verdict::Ended(Ending::Complete);
    const CUT: Verdict = Verdict::Ended(Ending::Cut);

    fn evidence(finish: &str) -> Evidence<'_> {
        Evidence {
            finish: Some(finish),
            ..Evidence::default()
        }
    }

    #[test]
    fn the_word_decides() {
        for (word, verdict) in [
            ("", Verdict::Torn),
            (" ", Verdict::Torn),
            ("stop", COMPLETE),
            ("tool_calls", COMPLETE),
            ("function_call", COMPLETE),
            ("eos", COMPLETE),
            ("length", CUT),
            ("MAX_TOKENS", CUT),
            ("content_filter", Verdict::Ended(Ending::Filtered)),
            ("SAFETY", Verdict::Ended(Ending::Filtered)),
            ("refusal", Verdict::Ended(Ending::Refused)),
            ("error", Verdict::Failed(FaultClass::Server)),
            ("abort", Verdict::Failed(FaultClass::Server)),
            (
                "insufficient_system_resource",
                Verdict::Failed(FaultClass::Overload),
            ),
            (
                "model_context_window_exceeded",
                Verdict::Failed(FaultClass::Overflow),
            ),
        ] {
            assert_eq!(judge(&evidence(word)), verdict, "{word}");
        }
    }

    #[test]
    fn without_a_word_the_marker_counts_and_nothing_else() {
        let mut none = Evidence::default();
        assert_eq!(judge(&none), Verdict::Torn);
        none.refusal = true;
        assert_eq!(judge(&none), Verdict::Torn);
        none.marker = true;
        assert_eq!(judge(&none), Verdict::Ended(Ending::Refused));
        none.refusal = false;
        assert_eq!(judge(&none), COMPLETE);
        none.silent = true;
        assert_eq!(judge(&none), Verdict::Torn);
    }

    #[test]
    fn counts_speak_against_the_word() {
        for (finish, silent, input, output, maximum, window, verdict) in [
            ("stop", false, 10, Some(100), Some(100), None, CUT),
            ("tool_calls", false, 10, Some(101), Some(100), None, CUT),
            ("stop", false, 10, Some(99), Some(100), None, COMPLETE),
            ("stop", false, 10, None, Some(100), None, COMPLETE),
            ("stop", false, 10, Some(0), Some(0), None, COMPLETE),
            (
                "length",
                true,
                8190,
                None,
                None,
                Some(8192),
                Verdict::Failed(FaultClass::Overflow),
            ),
            ("length", false, 8190, Some(2), None, Some(8192), CUT),
            ("length", true, 4000, Some(0), None, Some(8192), CUT),
            ("length", true, 8190, None, None, None, CUT),
        ] {
            let usage = Usage {
                input: Some(input),
                output,
                ..Usage::default()
            };
            let evidence = Evidence {
                silent,
                maximum,
                window,
                usage: Some(usage),
                ..evidence(finish)
            };
            assert_eq!(judge(&evidence), verdict, "{evidence:?}");
        }
    }
}
