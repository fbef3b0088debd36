//! Chat Completions: the head of a body, and each message by itself.

use std::io::Write as _;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::exchange::{Message, Reasoning, SentCall, ToolSpec};
use crate::setup::{
    CacheMarkers, EmptyContent, OutputFormat, OutputSchema, Profile, SchemaForm, SendBack,
};
use crate::wire::call::{self, call_id};
use crate::wire::object::is_object;
use crate::wire::string::string;
use crate::wire::{Head, lower};

/// Everything of a body before its first message, the instructions' message included.
pub fn head(head: &Head<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let (parameters, profile) = (&head.model.parameters, &head.model.profile);
    let takes = |name: &str| head.takes(name);
    out.extend_from_slice(b"{\"model\":");
    json(&mut out, &head.model.name);
    out.extend_from_slice(b",\"stream\":true");
    if profile.parameters.stream_usage && takes("stream_options") {
        out.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}");
    }
    let most = &profile.parameters.max_output_tokens;
    if let Some(tokens) = parameters.max_output_tokens.filter(|_| takes(most)) {
        out.push(b',');
        json(&mut out, most);
        out.push(b':');
        json(&mut out, &tokens);
    }
    if let Some(temperature) = parameters.temperature.filter(|_| takes("temperature")) {
        out.extend_from_slice(b",\"temperature\":");
        json(&mut out, &temperature);
    }
    let effort = parameters.reasoning_effort.as_ref();
    if let Some(effort) = effort.filter(|_| takes("reasoning_effort")) {
        out.extend_from_slice(b",\"reasoning_effort\":");
        json(&mut out, effort);
    }
    let key = parameters.cache_key.as_ref().filter(|_| profile.cache.key);
    if let Some(key) = key.filter(|_| takes("prompt_cache_key")) {
        out.extend_from_slice(b",\"prompt_cache_key\":");
        json(&mut out, key);
    }
    let markers = profile.cache.markers;
    if markers == CacheMarkers::Request && takes("cache_control") {
        out.extend_from_slice(b",\"cache_control\":{\"type\":\"ephemeral\"}");
    }
    for (name, value) in head.added() {
        out.push(b',');
        json(&mut out, name);
        out.push(b':');
        json(&mut out, value);
    }
    tools(&mut out, head, tool);
    if let Some(schema) = head.form().filter(|_| takes("response_format")) {
        response_format(&mut out, schema, profile.output.format);
    }
    out.extend_from_slice(b",\"messages\":[");
    if !head.instructions.is_empty() {
        out.extend_from_slice(b"{\"role\":\"system\",\"content\":");
        if markers == CacheMarkers::Instructions && takes("cache_control") {
            out.extend_from_slice(b"[{\"type\":\"text\",\"text\":");
            json(&mut out, head.instructions);
            out.extend_from_slice(b",\"cache_control\":{\"type\":\"ephemeral\"}}]");
        } else {
            json(&mut out, head.instructions);
        }
        out.push(b'}');
    }
    out
}

/// Tells of the tools, each as `tool` writes it, and whether none of them may be called.
pub(super) fn tools(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    tool: fn(&mut Vec<u8>, &ToolSpec, SchemaForm),
) {
    let form = head.model.profile.tools.schema;
    for (place, spec) in head.told().iter().enumerate() {
        out.extend_from_slice(if place > 0 { b"," } else { b",\"tools\":[" });
        tool(out, spec, form);
    }
    if !head.told().is_empty() {
        out.push(b']');
    }
    if head.forbids_calls() {
        out.extend_from_slice(b",\"tool_choice\":\"none\"");
    }
}

fn response_format(out: &mut Vec<u8>, output: &OutputSchema, format: OutputFormat) {
    match format {
        OutputFormat::JsonSchema => {
            out.extend_from_slice(
                b",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":",
            );
            json(out, &output.name);
            out.extend_from_slice(b",\"schema\":");
            out.extend_from_slice(output.schema.get().as_bytes());
            out.extend_from_slice(b"}}");
        }
        OutputFormat::JsonObject => {
            out.extend_from_slice(b",\"response_format\":{\"type\":\"json_object\"}");
        }
        OutputFormat::None => {}
    }
}

fn tool(out: &mut Vec<u8>, spec: &ToolSpec, form: SchemaForm) {
    out.extend_from_slice(b"{\"type\":\"function\",\"function\":{\"name\":");
    json(out, &spec.name);
    out.extend_from_slice(b",\"description\":");
    json(out, &spec.description);
    out.extend_from_slice(b",\"parameters\":");
    match form {
        SchemaForm::Full => out.extend_from_slice(spec.schema.get().as_bytes()),
        SchemaForm::Plain => json(out, &lower::plain(spec.schema.get())),
    }
    out.extend_from_slice(b"}}");
}

/// One message as a JSON object.
pub fn message(out: &mut Vec<u8>, message: &Message<'_>, profile: &Profile) {
    match message {
        Message::User { text } => {
            out.extend_from_slice(b"{\"role\":\"user\",\"content\":");
            string(out, text);
            out.push(b'}');
        }
        Message::Assistant {
            text,
            reasoning,
            calls,
            extra: _,
        } => {
            assistant(out, text, reasoning, calls, profile);
        }
        Message::Tool { call, text } => {
            out.extend_from_slice(b"{\"role\":\"tool\",\"tool_call_id\":");
            string(out, &call_id(*call, &profile.calls));
            out.extend_from_slice(b",\"content\":");
            string(out, text);
            out.push(b'}');
        }
    }
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
        match content {
            Some(text) => string(out, text),
            None => out.extend_from_slice(b"null"),
        }
    }
    if profile.reasoning.send_back == SendBack::Always {
        for (name, field) in fields(reasoning) {
            out.push(b',');
            string(out, name);
            out.push(b':');
            match field {
                Field::Text(text) => string(out, &text),
                Field::Items(items) => {
                    out.push(b'[');
                    out.extend_from_slice(&items);
                    out.push(b']');
                }
            }
        }
    }
    if !calls.is_empty() {
        let unsigned = calls.iter().all(|call| call.extra.is_none());
        out.extend_from_slice(b",\"tool_calls\":[");
        for (place, call) in calls.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            sent_call(out, call, unsigned && place == 0, profile);
        }
        out.push(b']');
    }
    out.push(b'}');
}

/// Members of a message that are not reasoning's to set.
const OURS: [&str; 4] = ["role", "content", "tool_calls", "tool_call_id"];

/// What goes back under one name.
enum Field {
    /// Text, joined.
    Text(String),
    /// Opaque items, in their order.
    Items(Vec<u8>),
}

/// Reasoning by field: blocks of one field are joined at the place of the first. Opaque items that
/// came in no list have no place in Chat Completions.
fn fields(reasoning: &[Reasoning]) -> Vec<(&str, Field)> {
    let mut fields: Vec<(&str, Field)> = Vec::new();
    for block in reasoning {
        let (field, part) = match block {
            Reasoning::Text { field, text } => (field, Field::Text(text.clone())),
            Reasoning::Raw { raw, field, .. } => match field {
                Some(field) => (field, Field::Items(raw.clone().into_bytes())),
                None => continue,
            },
        };
        if OURS.contains(&field.as_str()) {
            continue;
        }
        match (fields.iter_mut().find(|(name, _)| name == field), part) {
            (Some((_, Field::Text(joined))), Field::Text(text)) => joined.push_str(&text),
            (Some((_, Field::Items(items))), Field::Items(item)) => {
                items.push(b',');
                items.extend_from_slice(&item);
            }
            // Text and items under one name: the first form stands.
            (Some(_), _) => {}
            (None, part) => fields.push((field, part)),
        }
    }
    fields
}

fn sent_call(out: &mut Vec<u8>, call: &SentCall<'_>, stands_in: bool, profile: &Profile) {
    out.extend_from_slice(b"{\"id\":");
    string(out, &call_id(call.id, &profile.calls));
    out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
    string(out, &call::name(&call.name, &profile.tools));
    out.extend_from_slice(b",\"arguments\":");
    // Servers parse the arguments of old calls; a text that is no object would fail every later
    // request. The call's result says what was wrong with it.
    let arguments = if is_object(&call.arguments) {
        &*call.arguments
    } else {
        "{}"
    };
    string(out, arguments);
    out.push(b'}');
    if stands_in {
        let others = profile.calls.unsigned.iter();
        for (name, value) in others.filter(|(name, _)| !is_ours(name)) {
            out.push(b',');
            string(out, name);
            out.push(b':');
            json(out, value);
        }
    }
    let extra = call
        .extra
        .as_deref()
        .and_then(|extra| serde_json::from_str::<Members>(extra).ok());
    // A call of another type goes back as one of a function; what it held has no place there.
    let kind = call.name.split_once(':').map(|(kind, _)| kind);
    for (name, value) in extra.map(|members| members.0).unwrap_or_default() {
        if !is_ours(&name) && kind != Some(&*name) {
            out.push(b',');
            string(out, &name);
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    out.push(b'}');
}

/// Whether a member of a call is ours to set.
fn is_ours(name: &str) -> bool {
    matches!(name, "id" | "type" | "function" | "index")
}

/// Writes a value as compact JSON.
pub(super) fn json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let written = serde_json::to_writer(&mut *out, value);
    if let Err(error) = written {
        // Strings, numbers and null always serialize into memory.
        debug_assert!(false, "cannot serialize: {error}");
        out.write_all(b"null").ok();
    }
}

/// The members of a JSON object in their order, values exactly as they were.
pub(super) struct Members(pub(super) Vec<(String, Box<RawValue>)>);

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
    use crate::id::{CallId, EntryId};

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
                Reasoning::raw("{}"),
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
            extra: None,
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
    fn something_stands_in_for_a_signature_that_is_missing() {
        let mut profile = Profile::default();
        let unsigned = serde_json::json!({"extra_content": {"s": "skip"}, "id": "x"});
        profile.calls.unsigned = unsigned.as_object().cloned().unwrap_or_default();
        for (extras, shown) in [
            ([None, None], [r#","extra_content":{"s":"skip"}"#, ""]),
            ([None, Some(r#"{"sig":1}"#)], ["", r#","sig":1"#]),
            ([Some(r#"{"sig":1}"#), None], [r#","sig":1"#, ""]),
        ] {
            let calls = [1, 2].map(|place| SentCall {
                id: CallId::new(EntryId(17), place),
                name: Cow::Borrowed("Read"),
                arguments: Cow::Borrowed("{}"),
                extra: extras[place as usize - 1].map(Cow::Borrowed),
            });
            let mut out = Vec::new();
            assistant(&mut out, "", &[], &calls, &profile);
            let call = |place: usize| {
                format!(
                    r#"{{"id":"call_17_{place}","type":"function","function":{{"name":"Read","arguments":"{{}}"}}{}}}"#,
                    shown[place - 1]
                )
            };
            let expected = format!(
                r#"{{"role":"assistant","tool_calls":[{},{}]}}"#,
                call(1),
                call(2)
            );
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
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
