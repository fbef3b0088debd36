//! What went wrong: a status and a body of any shape become a fault of one class.
//!
//! The class comes from the status, then the code, then the type, then the message; either of
//! code and type is enough. An error within a reply of status 200 has the class that it would
//! have had outside. When nothing of the body can be read, the status decides.

use crate::model::Fault;
use crate::model::limit::Limit;
use crate::model::overflow::{self, Overflow};
use crate::model::refused;
use crate::model::said::Said;
use crate::model::wait::{self, Wait};
use crate::transcript::{At, FaultClass};

/// What to do where tools are not taken.
const NO_TOOLS: &str = "this model or server takes no tools, and all work here is done by tools: \
     choose another model, or start the server with tools on (vLLM: --enable-auto-tool-choice \
     --tool-call-parser NAME; llama-server: --jinja)";

/// A failed answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Failure<'a> {
    /// The HTTP status; absent for an error within a reply.
    pub(crate) status: Option<u16>,
    /// The headers by which the server asks to wait, as often as they came.
    pub(crate) waits: &'a [Wait<'a>],
    /// The body, or as much as was read of it.
    pub(crate) body: &'a str,
    /// Whether the request was so long that an unexplained refusal may be an overflow.
    pub(crate) is_long: bool,
    /// Now, by the server's clock if it tells.
    pub(crate) now: At,
}

/// Gives a failed answer its class and reads what else it says.
pub(crate) fn fault(failure: &Failure<'_>) -> Fault {
    let said = Said::of(failure.body);
    // A status within a reply counts only where there is none outside.
    let status = failure.status.or(said.status);
    let message = said.message.to_lowercase();
    let is_empty = failure.body.trim().is_empty();
    let asked_ms = wait::asked_ms(failure.waits, &said.waits_ms, &message, failure.now);
    let limit = said.limit(status, &message, asked_ms.is_some());
    let (class, window) = if let Some(limit) = limit {
        (limit.class(), None)
    } else if let Some(Overflow { window }) = said.overflow(status, &message) {
        (FaultClass::Overflow, window)
    } else if is_empty && failure.is_long && matches!(status, Some(400 | 413)) {
        (FaultClass::Overflow, None)
    } else {
        (said.class(status, &message), None)
    };
    let refused = refused::refused(status, said.refused.clone(), &said.message);
    let is_other = refused.tools || refused.call.is_some();
    let class = if is_other && class == FaultClass::Server {
        FaultClass::Permanent
    } else {
        class
    };
    // A limit that lasts ends as well, and a person may want to know when.
    let passes = class.retried() || limit == Some(Limit::Lasting);
    Fault {
        class,
        status,
        message: if refused.tools {
            format!("{}; {NO_TOOLS}", said.shown(status))
        } else {
            said.shown(status)
        },
        wait_ms: asked_ms.filter(|_| passes),
        window,
        parameter: refused.parameter.filter(|_| class == FaultClass::Permanent),
        refused_call: refused.call.filter(|_| class == FaultClass::Permanent),
        unclear: limit == Some(Limit::Unclear),
        usage: None,
    }
}

impl Said {
    /// The overflow that it tells of; `None` for anything else.
    fn overflow(&self, status: Option<u16>, message: &str) -> Option<Overflow> {
        let coded = self
            .codes
            .iter()
            .chain(&self.types)
            .any(|w| overflow::is_code(w));
        let worded = match status {
            Some(401..=404 | 429 | 502..=504 | 529) => None,
            _ => overflow::recognise(message),
        };
        let window = self.window.or(worded.and_then(|overflow| overflow.window));
        (coded || worded.is_some()).then_some(Overflow { window })
    }

    fn class(&self, status: Option<u16>, message: &str) -> FaultClass {
        let by_words = || self.class_by_words();
        match status {
            Some(401) => FaultClass::Auth,
            Some(403) => match by_words() {
                Some(FaultClass::ContentFilter) => FaultClass::ContentFilter,
                _ if message.contains("flagged") || message.contains("moderation") => {
                    FaultClass::ContentFilter
                }
                _ => FaultClass::Auth,
            },
            Some(503 | 529) => FaultClass::Overload,
            Some(408 | 409 | 425 | 499) => FaultClass::Server,
            Some(500..) => match by_words() {
                Some(FaultClass::Overload) => FaultClass::Overload,
                _ if message.contains("overloaded") => FaultClass::Overload,
                _ => FaultClass::Server,
            },
            // What is wrong with a request stays wrong, whatever the server calls it.
            Some(400 | 404 | 405 | 410 | 422) => by_words()
                .filter(|class| !class.retried())
                .or_else(|| class_by_refusal(message))
                .unwrap_or(FaultClass::Permanent),
            Some(_) => by_words()
                .or_else(|| class_by_refusal(message))
                .unwrap_or(FaultClass::Permanent),
            None => by_words()
                .or_else(|| class_by_refusal(message))
                .or_else(|| class_by_message(message))
                .unwrap_or(FaultClass::Server),
        }
    }

    fn class_by_words(&self) -> Option<FaultClass> {
        use FaultClass::{Auth, ContentFilter, Overload, Permanent, Server};
        let known: [(&[&str], FaultClass); 5] = [
            (
                &[
                    "content_filter",
                    "content_policy",
                    "contentfilter",
                    "moderation",
                ],
                ContentFilter,
            ),
            (&["overloaded", "unavailable", "capacity"], Overload),
            (
                &[
                    "authentication",
                    "permission",
                    "api_key",
                    "unauthorized",
                    "unauthenticated",
                ],
                Auth,
            ),
            (
                &[
                    "internal",
                    "server_error",
                    "api_error",
                    "timeout",
                    "bad_gateway",
                    "upstream",
                ],
                Server,
            ),
            (
                &[
                    "invalid",
                    "not_found",
                    "badrequest",
                    "bad_request",
                    "unsupported",
                ],
                Permanent,
            ),
        ];
        let any = |words: &[String], parts: &[&str]| {
            let has = |word: &String| parts.iter().any(|part| word.contains(part));
            words.iter().any(has)
        };
        [&self.codes, &self.types].into_iter().find_map(|words| {
            let found = known.iter().find(|(parts, _)| any(words, parts));
            found.map(|(_, class)| *class)
        })
    }

    pub(crate) fn any_word(&self, parts: &[&str]) -> bool {
        let mut words = self.codes.iter().chain(&self.types);
        words.any(|word| parts.iter().any(|part| word.contains(part)))
    }
}

/// The class that a message asks for whatever the status says.
fn class_by_refusal(message: &str) -> Option<FaultClass> {
    let filtered = [
        "content management policy",
        "content filter",
        "content policy",
        "safety system",
    ];
    let keyless = ["api key not valid", "invalid api key", "incorrect api key"];
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if has(&filtered) {
        Some(FaultClass::ContentFilter)
    } else if has(&keyless) {
        Some(FaultClass::Auth)
    } else {
        None
    }
}

/// The class of an error of which only the message is understood.
fn class_by_message(message: &str) -> Option<FaultClass> {
    let known: [(&[&str], FaultClass); 3] = [
        (
            &["overloaded", "capacity", "too busy", "unavailable"],
            FaultClass::Overload,
        ),
        (&["rate limit", "too many requests"], FaultClass::Rate),
        (
            &["not found", "not supported", "invalid", "unknown model"],
            FaultClass::Permanent,
        ),
    ];
    let means = |words: &[&str]| words.iter().any(|word| message.contains(word));
    known
        .iter()
        .find(|(words, _)| means(words))
        .map(|(_, class)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FaultClass::{Auth, ContentFilter, Overload, Permanent, Rate, Server};

    const OVERFLOW: FaultClass = FaultClass::Overflow;

    fn of(status: u16, body: &str) -> Fault {
        fault(&Failure {
            status: (status != 200).then_some(status),
            body,
            ..Failure::default()
        })
    }

    #[test]
    fn each_failure_has_one_class() {
        for (status, body, class) in [
            (401, "Unauthorized", Auth),
            (403, r#"{"error":{"message":"no","code":"x"}}"#, Auth),
            (
                403,
                r#"{"error":{"message":"Input was flagged","code":403}}"#,
                ContentFilter,
            ),
            (404, r#"{"error":"model 'x' not found"}"#, Permanent),
            (
                400,
                r#"{"error":{"code":400,"message":"bad","type":"invalid_request_error"}}"#,
                Permanent,
            ),
            (
                422,
                r#"{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}"#,
                Permanent,
            ),
            (
                400,
                r#"{"error":{"message":"x","code":"content_filter"}}"#,
                ContentFilter,
            ),
            (
                400,
                r#"{"__type":"x","code":"ThrottlingException","message":"slow"}"#,
                Rate,
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
                Auth,
            ),
            (
                400,
                r#"{"error":{"message":"no such model here","code":"model_unavailable","type":"api_error"}}"#,
                Permanent,
            ),
            (404, r#"{"error":{"type":"internal_error"}}"#, Permanent),
            (402, "", Permanent),
            (408, "", Server),
            (
                413,
                "<html><head><title>413 Request Entity Too Large</title></head></html>",
                Permanent,
            ),
            (429, "", Rate),
            (429, "slow down", Rate),
            (
                429,
                r#"{"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                Permanent,
            ),
            (
                429,
                r#"{"error":{"message":"Rate limit reached on requests per day (RPD). Please try again in 7m12s."}}"#,
                Permanent,
            ),
            (
                429,
                r#"{"error":{"message":"exceeded your quota, check your plan and billing. Please retry in 34.5s."}}"#,
                Rate,
            ),
            (
                429,
                r#"{"error":{"message":"exceeded your quota, check your plan and billing."}}"#,
                Rate,
            ),
            (
                429,
                r#"{"error":{"message":"prompt is too long: 9000 tokens > 4096 maximum"}}"#,
                Rate,
            ),
            (
                413,
                r#"{"error":{"message":"Request too large: tokens per minute (TPM): Limit 6000","code":"rate_limit_exceeded"}}"#,
                Rate,
            ),
            (
                500,
                r#"{"error":{"message":"oops","type":"server_error","code":null}}"#,
                Server,
            ),
            (
                500,
                r#"{"error":{"message":"Overloaded","type":"overloaded_error"}}"#,
                Overload,
            ),
            (502, "<html><h1>Bad Gateway</h1></html>", Server),
            (503, "", Overload),
            (504, "upstream timeout", Server),
            (522, "", Server),
            (529, "{}", Overload),
        ] {
            assert_eq!(of(status, body).class, class, "{status} {body}");
        }
    }

    #[test]
    fn a_request_that_is_too_long_is_an_overflow_wherever_that_stands() {
        for (status, body, class) in [
            (
                400,
                r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#,
                OVERFLOW,
            ),
            (
                400,
                r#""{\"error\":{\"message\":\"m\",\"type\":\"exceed_context_size_error\"}}""#,
                OVERFLOW,
            ),
            (
                400,
                r#"{"error":{"message":"Provider error","code":400,"metadata":{"raw":"{\"message\":\"prompt is too long: 9 tokens > 8 maximum\"}"}}}"#,
                OVERFLOW,
            ),
        ] {
            assert_eq!(of(status, body).class, class, "{status} {body}");
        }
    }

    #[test]
    fn an_error_within_a_reply_has_the_class_it_would_have_outside() {
        for (status, body, class) in [
            (200, r#"{"error":{"code":429,"message":"m"}}"#, Rate),
            (200, r#"{"error":{"code":"502","message":"m"}}"#, Server),
            (
                200,
                r#"{"error":{"message":"m","type":"overloaded_error"}}"#,
                Overload,
            ),
            (
                200,
                r#"{"error":"The engine is currently overloaded"}"#,
                Overload,
            ),
            (
                200,
                r#"{"error":{"type":"exceed_context_size_error","n_ctx":4096}}"#,
                OVERFLOW,
            ),
            (
                200,
                r#"{"object":"error","message":"bad","code":40001,"type":"BadRequestError"}"#,
                Permanent,
            ),
            (
                200,
                r#"{"error":{"message":"Invalid key","code":"invalid_api_key"}}"#,
                Auth,
            ),
            (200, "something", Server),
        ] {
            assert_eq!(of(status, body).class, class, "{status} {body}");
        }
    }

    #[test]
    fn an_unexplained_refusal_is_an_overflow_only_of_a_long_request() {
        for (status, body, is_long, class) in [
            (400, "", true, OVERFLOW),
            (413, " ", true, OVERFLOW),
            (413, "", false, Permanent),
            (400, "", false, Permanent),
            (400, "no", true, Permanent),
            (404, "", true, Permanent),
        ] {
            let failure = Failure {
                status: Some(status),
                body,
                is_long,
                ..Failure::default()
            };
            assert_eq!(fault(&failure).class, class, "{status} {body:?} {is_long}");
        }
    }

    #[test]
    fn the_window_is_learned() {
        let n_ctx = r#"{"error":{"code":500,"type":"exceed_context_size_error","message":"m","n_prompt_tokens":5000,"n_ctx":4096}}"#;
        for (status, body, window) in [
            (400, n_ctx, Some(4096)),
            (500, n_ctx, Some(4096)),
            (200, n_ctx, Some(4096)),
            (
                400,
                "This model's maximum context length is 8192 tokens.",
                Some(8192),
            ),
            (400, r#"{"message":"prompt is too long"}"#, None),
        ] {
            let fault = of(status, body);
            assert_eq!((fault.class, fault.window), (OVERFLOW, window), "{body}");
        }
    }

    #[test]
    fn waits_are_those_of_attempts_that_are_made_again() {
        let body =
            r#"{"error":{"message":"in 1s","details":[{"retryDelay":"34.2s"}],"retry_after":2}}"#;
        for (status, wait_ms) in [(429, Some(34_200)), (503, Some(34_200)), (401, None)] {
            let failure = Failure {
                status: Some(status),
                waits: &[Wait::Seconds("5")],
                body,
                ..Failure::default()
            };
            assert_eq!(fault(&failure).wait_ms, wait_ms, "{status}");
        }
    }
}
