//! Chat Completions: the head of a body, and each message by itself.

use std::io::Write as _;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::exchange::{Message, Reasoning, SentCall, ToolSpec};
use crate::id::CallId;
use crate::setup::{EmptyContent, Model, Profile, SendBack};

/// What closes a body after the last message.
pub const TAIL: &[u8] = b"]}";

/// Everything of a body before its first message, the instructions' message included.
pub fn head(model: &Model, tools: &[ToolSpec], instructions: &str) -> Vec<u8> {
    head_with(model, tools, instructions, b"")
}

/// The same for a request that asks for a text: the tools are told of but must not be called.
pub fn head_for_text(model: &Model, tools: &[ToolSpec], instructions: &str) -> Vec<u8> {
    head_with(model, tools, instructions, b",\"tool_choice\":\"none\"")
}

fn head_with(model: &Model, tools: &[ToolSpec], instructions: &str, choice: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let parameters = &model.parameters;
    out.extend_from_slice(b"{\"model\":");
    json(&mut out, &model.name);
    out.extend_from_slice(b",\"stream\":true");
    if model.profile.parameters.stream_usage {
        out.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}");
    }
    if let Some(tokens) = parameters.max_output_tokens {
        out.push(b',');
        json(&mut out, &model.profile.parameters.max_output_tokens);
        out.push(b':');
        json(&mut out, &tokens);
    }
    if let Some(temperature) = parameters.temperature {
        out.extend_from_slice(b",\"temperature\":");
        json(&mut out, &temperature);
    }
    if let Some(effort) = &parameters.reasoning_effort {
        out.extend_from_slice(b",\"reasoning_effort\":");
        json(&mut out, effort);
    }
    if !tools.is_empty() {
        out.extend_from_slice(b",\"tools\":[");
        for (place, spec) in tools.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            tool(&mut out, spec);
        }
        out.push(b']');
        out.extend_from_slice(choice);
    }
    out.extend_from_slice(b",\"messages\":[");
    if !instructions.is_empty() {
        out.extend_from_slice(b"{\"role\":\"system\",\"content\":");
        json(&mut out, instructions);
        out.push(b'}');
    }
    out
}

/// Whether a comma stands between a head and the first message.
pub fn head_has_message(instructions: &str) -> bool {
    !instructions.is_empty()
}

fn tool(out: &mut Vec<u8>, spec: &ToolSpec) {
    out.extend_from_slice(b"{\"type\":\"function\",\"function\":{\"name\":");
    json(out, &spec.name);
    out.extend_from_slice(b",\"description\":");
    json(out, &spec.description);
    out.extend_from_slice(b",\"parameters\":");
    out.extend_from_slice(spec.schema.get().as_bytes());
    out.extend_from_slice(b"}}");
}

/// One message as a JSON object.
pub fn message(out: &mut Vec<u8>, message: &Message<'_>, profile: &Profile) {
    match message {
        Message::User { text } => {
            out.extend_from_slice(b"{\"role\":\"user\",\"content\":");
            json(out, text);
            out.push(b'}');
        }
        Message::Assistant {
            text,
            reasoning,
            calls,
        } => {
            assistant(out, text, reasoning, calls, profile);
        }
        Message::Tool { call, text } => {
            out.extend_from_slice(b"{\"role\":\"tool\",\"tool_call_id\":");
            json(out, &call_id(*call));
            out.extend_from_slice(b",\"content\":");
            json(out, text);
            out.push(b'}');
        }
    }
}

/// The id of a call on the wire: unique within a transcript, the same in every request.
pub fn call_id(call: CallId) -> String {
    format!("call_{}_{}", call.response, call.place)
}

fn assistant(
    out: &mut Vec<u8>,
    text: &str,
    reasoning: &[Reasoning],
    calls: &[SentCall<'_>],
    profile: &Profile,
) {
    out.extend_from_slice(b"{\"role\":\"assistant\"");
    let content = match (text.is_empty(), profile.messages.empty_content) {
        (true, EmptyContent::Omit) => None,
        (true, EmptyContent::Null) => Some(None),
        (true, EmptyContent::Empty) | (false, _) => Some(Some(text)),
    };
    if let Some(content) = content {
        out.extend_from_slice(b",\"content\":");
        json(out, &content);
    }
    if profile.reasoning.send_back == SendBack::Always {
        for (field, text) in fields(reasoning) {
            out.push(b',');
            json(out, field);
            out.push(b':');
            json(out, &text);
        }
    }
    if !calls.is_empty() {
        out.extend_from_slice(b",\"tool_calls\":[");
        for (place, call) in calls.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            sent_call(out, call);
        }
        out.push(b']');
    }
    out.push(b'}');
}

/// Reasoning text by field: blocks of one field are joined at the place of the first. Opaque items
/// have no place in Chat Completions.
fn fields(reasoning: &[Reasoning]) -> Vec<(&str, String)> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    for block in reasoning {
        let Reasoning::Text { field, text } = block else {
            continue;
        };
        if matches!(field.as_str(), "role" | "content" | "tool_calls") {
            continue;
        }
        match fields.iter_mut().find(|(name, _)| name == field) {
            Some((_, joined)) => joined.push_str(text),
            None => fields.push((field, text.clone())),
        }
    }
    fields
}

fn sent_call(out: &mut Vec<u8>, call: &SentCall<'_>) {
    out.extend_from_slice(b"{\"id\":");
    json(out, &call_id(call.id));
    out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
    json(out, &call.name);
    out.extend_from_slice(b",\"arguments\":");
    // Servers parse the arguments of old calls; a text that is no object would fail every later
    // request. The call's result says what was wrong with it.
    let arguments = if is_object(&call.arguments) {
        &*call.arguments
    } else {
        "{}"
    };
    json(out, arguments);
    out.push(b'}');
    let extra = call
        .extra
        .as_deref()
        .and_then(|extra| serde_json::from_str::<Members>(extra).ok());
    for (name, value) in extra.map(|members| members.0).unwrap_or_default() {
        if !matches!(name.as_str(), "id" | "type" | "function" | "index") {
            out.push(b',');
            json(out, &name);
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    out.push(b'}');
}

/// Whether a text is one JSON object.
pub fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// Writes a value as compact JSON.
fn json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let written = serde_json::to_writer(&mut *out, value);
    if let Err(error) = written {
        // Strings, numbers and null always serialize into memory.
        debug_assert!(false, "cannot serialize: {error}");
        out.write_all(b"null").ok();
    }
}

/// The members of a JSON object in their order, values exactly as they were.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::id::EntryId;

    fn check(message: &Message<'_>, json: &str) {
        let mut out = Vec::new();
        super::message(&mut out, message, &Profile::default());
        assert_eq!(String::from_utf8(out).unwrap(), json);
    }

    fn call(arguments: &str, extra: Option<&str>) -> Message<'static> {
        Message::Assistant {
            text: Cow::Borrowed(""),
            reasoning: Cow::Owned(vec![
                Reasoning::Text {
                    field: "reasoning_content".into(),
                    text: "hm".into(),
                },
                Reasoning::Raw { raw: "{}".into() },
                Reasoning::Text {
                    field: "reasoning_content".into(),
                    text: "!".into(),
                },
            ]),
            calls: vec![SentCall {
                id: CallId::new(EntryId(17), 2),
                name: Cow::Borrowed("Read"),
                arguments: Cow::Owned(arguments.to_owned()),
                extra: extra.map(|extra| Cow::Owned(extra.to_owned())),
            }],
        }
    }

    #[test]
    fn messages_are_compact_json() {
        check(
            &Message::User {
                text: "a \"b\"\n".into(),
            },
            r#"{"role":"user","content":"a \"b\"\n"}"#,
        );
        check(
            &Message::Tool {
                call: CallId::new(EntryId(5), 1),
                text: "ok".into(),
            },
            r#"{"role":"tool","tool_call_id":"call_5_1","content":"ok"}"#,
        );
        check(
            &call("{\"path\": 1}", Some(r#"{"id":"x","sig": [1, 2.50]}"#)),
            concat!(
                r#"{"role":"assistant","reasoning_content":"hm!","tool_calls":[{"id":"call_17_2","#,
                r#""type":"function","function":{"name":"Read","arguments":"{\"path\": 1}"},"#,
                r#""sig":[1, 2.50]}]}"#
            ),
        );
    }

    #[test]
    fn arguments_that_are_no_object_are_sent_as_an_empty_one() {
        for arguments in ["", "null", "[1]", "{\"a\":", "{} x"] {
            check(
                &call(arguments, None),
                concat!(
                    r#"{"role":"assistant","reasoning_content":"hm!","tool_calls":[{"#,
                    r#""id":"call_17_2","type":"function","function":{"name":"Read","#,
                    r#""arguments":"{}"}}]}"#
                ),
            );
        }
    }
}
