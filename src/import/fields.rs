//! What several formats write alike: one JSON value a file, moments, counts of tokens, and messages
//! as Chat Completions has them.

use serde_json::Value;

use crate::exchange::{Ending, Usage};
use crate::import::Unread;
use crate::import::json;
use crate::import::lines::{string, take_list, take_text};
use crate::import::pen::Pen;
use crate::import::source::Source;
use crate::transcript::At;

/// Numbers from this on are milliseconds since the epoch, those below it seconds.
const MILLISECONDS: f64 = 1e11;

/// A recording that is one JSON value.
pub(super) fn whole(source: &mut Source) -> Result<Value, Unread> {
    let bytes = source.whole()?;
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    json::parse(text).map_err(|error| unread(&error))
}

/// Why a text is not the one JSON value that it should be.
pub(super) fn unread(error: &serde_json::Error) -> Unread {
    let (line, column) = (error.line(), error.column());
    Unread::Broken(if error.is_eof() {
        format!("its JSON is cut off: it ends within a value, at line {line}, column {column}")
    } else {
        format!("it is not one JSON value: {error}")
    })
}

/// Takes a member; null if there is none.
pub(super) fn take(value: &mut Value, member: &str) -> Value {
    value.get_mut(member).map(Value::take).unwrap_or_default()
}

/// A moment: a text, which is in UTC unless it names a zone, or the seconds or milliseconds since the
/// epoch.
pub(super) fn moment(value: &Value) -> Option<At> {
    if let Some(number) = value.as_f64() {
        let ms = if number.abs() < MILLISECONDS {
            number * 1000.0
        } else {
            number
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "what is out of range becomes the end of it"
        )]
        return Some(At(ms.round() as i64));
    }
    let text = value.as_str()?;
    text.parse().or_else(|_| format!("{text}Z").parse()).ok()
}

/// Arguments as they were received: a text stays as it is.
pub(super) fn arguments(value: Value) -> String {
    match value {
        Value::Null => "{}".to_owned(),
        Value::String(text) => text,
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// What a server of Chat Completions counted.
pub(super) fn counted(usage: &Value) -> Option<Usage> {
    let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
    let found = Usage {
        input: usage["prompt_tokens"].as_u64(),
        cached: cached.or_else(|| usage["cache_read_input_tokens"].as_u64()),
        cache_write: usage["cache_creation_input_tokens"].as_u64(),
        output: usage["completion_tokens"].as_u64(),
        reasoning: usage["completion_tokens_details"]["reasoning_tokens"].as_u64(),
    };
    (found != Usage::default()).then_some(found)
}

/// What a provider's word for the end of a response means.
pub(super) fn ending(word: &str) -> Ending {
    match word {
        "length" | "max_tokens" | "model_length" => Ending::Cut,
        "content_filter" => Ending::Filtered,
        "refusal" => Ending::Refused,
        _ => Ending::Complete,
    }
}

/// Tells what a run cost, where its agent counted that.
pub(super) fn cost(pen: &mut Pen, usd: &Value) {
    if let Some(usd) = usd.as_f64().filter(|usd| *usd > 0.0) {
        pen.note(format!("the agent counted a cost of {usd} USD"));
    }
}

/// Tells what stands beside the message in a response of Chat Completions.
pub(super) fn response(pen: &mut Pen, key: &str, response: &Value) {
    if let Some(usage) = counted(&response["usage"]) {
        pen.usage(Some(key), usage);
    }
    if let Some(word) = response["choices"][0]["finish_reason"].as_str() {
        pen.ending(Some(key), ending(word), Some(word));
    }
    pen.provider_request(Some(key), string(&response["id"]));
}

/// Tells the reasoning beside a message, as far as it can be read.
pub(super) fn reasoning(pen: &mut Pen, key: &str, message: &mut Value) {
    let text = take_text(message, "reasoning_content");
    let blocks = take_list(message, "thinking_blocks");
    if !text.is_empty() {
        pen.mused(Some(key), text);
        return;
    }
    for mut block in blocks {
        pen.mused(Some(key), take_text(&mut block, "thinking"));
    }
}

/// Tells calls in the form of Chat Completions.
pub(super) fn calls(pen: &mut Pen, key: &str, calls: Vec<Value>) {
    for mut call in calls {
        let mut function = take(&mut call, "function");
        let name = take_text(&mut function, "name");
        let arguments = arguments(take(&mut function, "arguments"));
        pen.called(Some(key), string(&call["id"]), &name, arguments);
    }
}

/// Tells tools in the form of Chat Completions, or of anything like it.
pub(super) fn tools(pen: &mut Pen, tools: &[Value]) {
    for tool in tools {
        let function = if tool["function"].is_object() {
            &tool["function"]
        } else {
            tool
        };
        let schema = ["parameters", "input_schema", "inputSchema"];
        let schema = schema.into_iter().map(|name| &function[name]);
        let schema = schema.into_iter().find(|schema| schema.is_object());
        let schema = schema.map(Value::to_string).unwrap_or_default();
        let names = [&function["name"], &function["title"]];
        if let Some(name) = names.into_iter().find_map(Value::as_str) {
            pen.tool(name, string(&function["description"]), &schema);
        }
    }
}
