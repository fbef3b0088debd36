//! The replies that cases are made of, and what is told of one that is whole.

use super::server::Answer;

/// A piece of text.
pub(crate) const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"Hé 漢😀"}}]}"#;
/// The usual end.
pub(crate) const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
/// The end of a reply with calls.
pub(crate) const CALLS: &str =
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
/// What the provider counted.
pub(crate) const COUNTS: &str =
    r#"{"choices":[],"usage":{"prompt_tokens":240,"completion_tokens":3}}"#;
/// The end marker.
pub(crate) const DONE: &str = "[DONE]";

/// What is told of a run whose first reply was [`whole`].
pub(crate) const WHOLE: &str = "
    Complete stop: Hé 漢😀
    end, finished: Hé 漢😀
    requests 1";

/// A reply that ends a run.
pub(crate) fn whole() -> Answer {
    Answer::events(&[TEXT, STOP, DONE])
}

/// An event that ends a reply with this finish reason.
pub(crate) fn finish(word: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{word}"}}]}}"#)
}

/// An event with a piece of the call of this index; the first piece names it.
pub(crate) fn call(index: u32, name: &str, arguments: &str) -> String {
    let arguments = serde_json::Value::from(arguments);
    let id = if name.is_empty() {
        String::new()
    } else {
        format!(r#""id":"c{index}","type":"function","#)
    };
    let name = if name.is_empty() {
        String::new()
    } else {
        format!(r#""name":"{name}","#)
    };
    format!(
        r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{index},{id}"function":{{{name}"arguments":{arguments}}}}}]}}}}]}}"#
    )
}
