//! What an error body says, whatever its shape: an object, an array around one, a string, JSON
//! within a string, a page, or nothing.

use crate::model::loose::{Object, Value};
use crate::model::refused::Refused;
use crate::model::wait;

/// The longest message of a fault in characters.
const MESSAGE_MAX: usize = 600;
/// The longest message that is read for what it says, in bytes.
const READ_MAX: usize = 64 << 10;
/// How deep errors within errors are read.
const DEPTH_MAX: u8 = 10;

/// What an error body says, whatever its shape.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Its messages, the outermost first.
    pub(crate) message: String,
    /// Its codes and reasons, in lower case.
    pub(crate) codes: Vec<String>,
    /// Its types, in lower case.
    pub(crate) types: Vec<String>,
    /// The HTTP status that it names.
    pub(crate) status: Option<u16>,
    /// The context window in tokens that it names in a member.
    pub(crate) window: Option<u64>,
    /// How long to wait, by its members.
    pub(crate) waits_ms: Vec<u64>,
    /// The parameter or the call that its members name.
    pub(crate) refused: Refused,
}

impl Said {
    /// What this body says.
    pub(crate) fn of(body: &str) -> Self {
        let mut said = Self::default();
        said.read(body, DEPTH_MAX);
        said
    }

    fn read(&mut self, text: &str, depth: u8) {
        let text = text.trim();
        let (values, rest) = Value::sequence(text);
        match values.first() {
            Some(value) if rest.is_empty() => self.value(*value, depth),
            _ if text.starts_with('<') => self.say(&page_text(text)),
            _ => self.say(text),
        }
    }

    fn say(&mut self, text: &str) {
        let room = READ_MAX.saturating_sub(self.message.len());
        let ends = (0..=room.min(text.len())).rev();
        let end = ends.into_iter().find(|end| text.is_char_boundary(*end));
        let text = text.get(..end.unwrap_or(0)).unwrap_or_default();
        if !text.is_empty() && !self.message.contains(text) {
            if !self.message.is_empty() {
                self.message.push_str(": ");
            }
            self.message.push_str(text);
        }
    }

    fn value(&mut self, value: Value<'_>, depth: u8) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if let Some(text) = value.text() {
            // JSON within a string, or words.
            if text.text.trim_start().starts_with(['{', '[']) {
                self.read(&text.text, depth);
            } else {
                self.say(text.text.trim());
            }
        } else if let Some(items) = value.array() {
            for item in items.into_iter().take(8) {
                self.value(item, depth);
            }
        } else if let Some(object) = value.object() {
            self.object(&object, depth);
        }
    }

    fn object(&mut self, object: &Object<'_>, depth: u8) {
        self.refused.take(object);
        for name in ["code", "status", "reason", "quotaId", "type"] {
            let Some(value) = object.get(name) else {
                continue;
            };
            if let Some(number) = value.count() {
                let number = u16::try_from(number).ok();
                let known = number.filter(|number| (400..=599).contains(number));
                self.status = self.status.or(known);
            } else if let Some(word) = value.text() {
                let words = match name {
                    "type" => &mut self.types,
                    _ => &mut self.codes,
                };
                words.push(word.text.trim().to_lowercase());
            }
        }
        let window = object.get("n_ctx").and_then(Value::count);
        // Nothing else is a window.
        let window = window.filter(|window| (256..=1_000_000_000).contains(window));
        self.window = self.window.or(window);
        for (name, unit) in [
            ("retry_after_ms", 1.0),
            ("retry_after", 1000.0),
            ("retry_after_seconds", 1000.0),
            ("retryDelay", 1000.0),
        ] {
            let text = object.get(name).map(|value| value.raw().trim_matches('"'));
            let wait = text.and_then(|text| {
                wait::plain_ms(text, unit).or_else(|| wait::duration_ms(&text.to_lowercase()))
            });
            self.waits_ms.extend(wait);
        }
        // The error itself, then its words, then what stands behind it.
        for name in [
            "error",
            "errors",
            "message",
            "msg",
            "detail",
            "error_description",
            "title",
            "metadata",
            "raw",
            "details",
            "violations",
        ] {
            if let Some(value) = object.get(name) {
                self.value(value, depth);
            }
        }
    }

    /// The message as it is shown, or what stands for it.
    pub(crate) fn shown(&self, status: Option<u16>) -> String {
        let line = one_line(&self.message);
        match (line.is_empty(), status) {
            (false, _) => line,
            (true, Some(status)) => format!("status {status} without a message"),
            (true, None) => "an error without a message".to_owned(),
        }
    }
}

/// One line of bounded length without anything a terminal would act on.
pub(crate) fn one_line(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let plain: String = plain.take(16 * MESSAGE_MAX).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MESSAGE_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The words of an HTML page, without its tags, styles and scripts.
fn page_text(page: &str) -> String {
    let mut words = String::new();
    let mut rest = page;
    while let Some((text, tag)) = rest.split_once('<') {
        words.push_str(text);
        words.push(' ');
        let lower: String = tag.chars().take(7).collect::<String>().to_lowercase();
        let from = if lower.starts_with("style") {
            tag.find("</style")
        } else if lower.starts_with("script") {
            tag.find("</script")
        } else {
            Some(0)
        };
        let from = from.and_then(|from| Some(from + tag.get(from..)?.find('>')? + 1));
        rest = from.and_then(|from| tag.get(from..)).unwrap_or_default();
    }
    words.push_str(rest);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_any_shape_is_read() {
        for (body, message, status, codes) in [
            (
                r#"{"error":{"message":"m","code":"C","type":"t"}}"#,
                "m",
                None,
                "c",
            ),
            (
                r#"[{"error":{"code":400,"status":"S","message":"m"}}]"#,
                "m",
                Some(400),
                "s",
            ),
            (r#"{"error":"m"}"#, "m", None, ""),
            (r#"{"message":"m","code":"503"}"#, "m", Some(503), ""),
            (r#"{"detail":[{"msg":"a"},{"msg":"b"}]}"#, "a: b", None, ""),
            (r#""{\"error\":{\"message\":\"m\"}}""#, "m", None, ""),
            (
                r#"{"message":"{\"message\":\"m\",\"code\":\"c\"}"}"#,
                "m",
                None,
                "c",
            ),
            (
                r#"{"error":{"message":"m","metadata":{"raw":"why"}}}"#,
                "m: why",
                None,
                "",
            ),
            ("words\n", "words", None, ""),
            (
                "<html><style>a{}</style><title>Bad</title><p>nginx",
                "Bad nginx",
                None,
                "",
            ),
            (
                r#"{"error":{"message":"cut"#,
                r#"{"error":{"message":"cut"#,
                None,
                "",
            ),
            ("", "", None, ""),
        ] {
            let said = Said::of(body);
            assert_eq!(said.message, message, "{body}");
            assert_eq!(
                (said.status, said.codes.join(" ").as_str()),
                (status, codes),
                "{body}"
            );
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(Said::of(&deep).message, "");
        let long = Said::of(&format!(
            r#"{{"error":"{}","detail":"more"}}"#,
            "é".repeat(READ_MAX)
        ));
        assert_eq!(long.message, "é".repeat(READ_MAX / 2));
    }

    #[test]
    fn what_is_shown_is_one_line() {
        assert_eq!(one_line("a\n\u{1b}[31m  b"), "a [31m b");
        assert_eq!(one_line(&"é".repeat(2000)).chars().count(), MESSAGE_MAX + 1);
        assert_eq!(
            Said::default().shown(Some(500)),
            "status 500 without a message"
        );
        assert_eq!(Said::default().shown(None), "an error without a message");
    }
}
