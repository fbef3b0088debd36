//! The messages as a body for Chat Completions.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use undertext::exchange::{Message, Reasoning, SentCall};
use undertext::id::{CallId, EntryId};
use undertext::setup::{CallIds, EmptyContent, MessageOrder, Profile, SchemaForm, SendBack};
use undertext::transcript::Entry;
use undertext::wire::lower;

use super::Past;

/// The bytes of the request for the next round; `None` without a setup.
pub(crate) fn body(entries: &[Arc<Entry>]) -> Option<Vec<u8>> {
    let past = Past::new(entries);
    let wire = &past.setup_before(EntryId(u64::MAX))?.wire;
    let (model, profile) = (&wire.models.main, &wire.models.main.profile);
    let mut members = vec![
        format!("\"model\":{}", quoted(&model.name)),
        "\"stream\":true".into(),
    ];
    if profile.parameters.stream_usage {
        members.push("\"stream_options\":{\"include_usage\":true}".into());
    }
    if let Some(most) = model.parameters.max_output_tokens {
        members.push(format!(
            "{}:{most}",
            quoted(&profile.parameters.max_output_tokens)
        ));
    }
    if let Some(temperature) = model.parameters.temperature {
        members.push(format!("\"temperature\":{}", Value::from(temperature)));
    }
    if let Some(effort) = &model.parameters.reasoning_effort {
        members.push(format!("\"reasoning_effort\":{}", quoted(effort)));
    }
    if !wire.tools.is_empty() {
        let tools = wire.tools.iter().map(|tool| {
            let (name, description) = (quoted(&tool.name), quoted(&tool.description));
            let schema = match profile.tools.schema {
                SchemaForm::Full => tool.schema.get().to_owned(),
                // What it is lowered to is judged where that is done.
                SchemaForm::Plain => lower::plain(tool.schema.get()).to_string(),
            };
            format!(
                "{{\"type\":\"function\",\"function\":{{\"name\":{name},\
                 \"description\":{description},\"parameters\":{schema}}}}}"
            )
        });
        members.push(format!(
            "\"tools\":[{}]",
            tools.collect::<Vec<_>>().join(",")
        ));
    }
    let mut messages = Vec::new();
    if !wire.instructions.is_empty() {
        let text = quoted(&wire.instructions);
        messages.push(format!("{{\"role\":\"system\",\"content\":{text}}}"));
    }
    let arranged = arranged(past.messages(), profile);
    messages.extend(arranged.iter().map(|message| rendered(message, profile)));
    members.push(format!("\"messages\":[{}]", messages.join(",")));
    Some(format!("{{{}}}", members.join(",")).into_bytes())
}

/// The messages as the profile wants them to follow one another, two neighbours at a time.
fn arranged(mut messages: Vec<Message<'static>>, profile: &Profile) -> Vec<Message<'static>> {
    let turns = profile.messages.order == MessageOrder::Alternate;
    if turns && matches!(messages.first(), Some(Message::Assistant { .. })) {
        let text = "[undertext, not the user] What was said before this is left out.".into();
        messages.insert(0, Message::User { text });
    }
    let mut place = 1;
    while place < messages.len() {
        let one = match (&messages[place - 1], &messages[place]) {
            (Message::Tool { call, text }, Message::User { text: said })
                if !profile.messages.user_after_tool =>
            {
                let mark = "[undertext: this is no part of the result, it was said after it]";
                Message::Tool {
                    call: *call,
                    text: format!("{text}\n\n{mark}\n{said}").into(),
                }
            }
            (Message::User { text }, Message::User { text: more }) if turns => Message::User {
                text: format!("{text}\n\n{more}").into(),
            },
            (
                Message::Assistant {
                    text,
                    reasoning,
                    extra,
                    ..
                },
                Message::Assistant {
                    text: more_text,
                    reasoning: more_reasoning,
                    calls,
                    extra: more_extra,
                },
            ) if turns => {
                let texts = [text, more_text].map(AsRef::as_ref);
                let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
                Message::Assistant {
                    text: texts.join("\n\n").into(),
                    reasoning: [&reasoning[..], &more_reasoning[..]].concat().into(),
                    calls: calls.clone(),
                    extra: extra.clone().or_else(|| more_extra.clone()),
                }
            }
            _ => {
                place += 1;
                continue;
            }
        };
        messages[place - 1] = one;
        messages.remove(place);
    }
    messages
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn rendered(message: &Message<'_>, profile: &Profile) -> String {
    let mut members = Vec::new();
    match message {
        Message::User { text } => {
            members.push("\"role\":\"user\"".to_owned());
            members.push(format!("\"content\":{}", quoted(text)));
        }
        Message::Tool { call, text } => {
            members.push("\"role\":\"tool\"".to_owned());
            members.push(format!("\"tool_call_id\":\"{}\"", wire_id(*call, profile)));
            members.push(format!("\"content\":{}", quoted(text)));
        }
        Message::Assistant {
            text,
            reasoning,
            calls,
            ..
        } => {
            members.push("\"role\":\"assistant\"".to_owned());
            match (text.is_empty(), profile.messages.empty_content) {
                (true, EmptyContent::Omit) => {}
                (true, EmptyContent::Null) => members.push("\"content\":null".to_owned()),
                (true, EmptyContent::Empty) | (false, _) => {
                    members.push(format!("\"content\":{}", quoted(text)));
                }
            }
            if profile.reasoning.send_back == SendBack::Always {
                for (field, value) in fields(reasoning) {
                    members.push(format!("{}:{value}", quoted(field)));
                }
            }
            if !calls.is_empty() {
                let calls: Vec<_> = calls
                    .iter()
                    .map(|call| rendered_call(call, profile))
                    .collect();
                members.push(format!("\"tool_calls\":[{}]", calls.join(",")));
            }
        }
    }
    format!("{{{}}}", members.join(","))
}

/// Reasoning by field, each field where it comes first: texts as one, items as a list.
fn fields(reasoning: &[Reasoning]) -> Vec<(&str, String)> {
    let mut names: Vec<&str> = Vec::new();
    for block in reasoning {
        let (Reasoning::Text { field, .. }
        | Reasoning::Raw {
            field: Some(field), ..
        }) = block
        else {
            continue;
        };
        if !names.contains(&field.as_str())
            && !["role", "content", "tool_calls"].contains(&&**field)
        {
            names.push(field);
        }
    }
    let value = |name: &&str| {
        let (mut text, mut items) = (String::new(), Vec::new());
        for block in reasoning {
            match block {
                Reasoning::Text { field, text: part } if field == name => text.push_str(part),
                Reasoning::Raw { raw, field, .. } if field.as_deref() == Some(*name) => {
                    items.push(raw.as_str());
                }
                Reasoning::Text { .. } | Reasoning::Raw { .. } => {}
            }
        }
        if items.is_empty() {
            quoted(&text)
        } else {
            format!("[{}]", items.join(","))
        }
    };
    names.iter().map(|name| (*name, value(name))).collect()
}

fn rendered_call(call: &SentCall<'_>, profile: &Profile) -> String {
    let arguments = match serde_json::from_str::<Map<String, Value>>(&call.arguments) {
        Ok(_) => quoted(&call.arguments),
        Err(_) => quoted("{}"),
    };
    let mut members = vec![
        format!("\"id\":\"{}\"", wire_id(call.id, profile)),
        "\"type\":\"function\"".to_owned(),
        format!(
            "\"function\":{{\"name\":{},\"arguments\":{arguments}}}",
            quoted(&called(&call.name))
        ),
    ];
    let extra = call
        .extra
        .as_deref()
        .and_then(|extra| serde_json::from_str::<Members>(extra).ok());
    for (name, value) in extra.into_iter().flat_map(|members| members.0) {
        let held = call.name.starts_with(&format!("{name}:"));
        if !held && !["id", "type", "function", "index"].contains(&name.as_str()) {
            members.push(format!("{}:{}", quoted(&name), value.get()));
        }
    }
    format!("{{{}}}", members.join(","))
}

/// A name that a provider takes.
fn called(name: &str) -> String {
    let name: String = name.trim().chars().take(64).collect();
    let name = name.replace(
        |c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)),
        "_",
    );
    if name.is_empty() {
        "unnamed".to_owned()
    } else {
        name
    }
}

fn wire_id(call: CallId, profile: &Profile) -> String {
    let (mut entry, mut place) = (call.response.0, u64::from(call.place));
    match profile.calls.ids {
        CallIds::Plain => format!("call_{entry}_{place}"),
        CallIds::Nine => {
            let digits: Vec<char> = ('0'..='9').chain('a'..='z').chain('A'..='Z').collect();
            let mut id = ['0'; 9];
            for digit in id[6..].iter_mut().rev() {
                *digit = digits[usize::try_from(place % 62).unwrap()];
                place /= 62;
            }
            for digit in id[..6].iter_mut().rev() {
                *digit = digits[usize::try_from(entry % 62).unwrap()];
                entry /= 62;
            }
            id.into_iter().collect()
        }
    }
}

/// The members of a JSON object in their order, each value as its exact text.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        deserializer.deserialize_map(Object)
    }
}
