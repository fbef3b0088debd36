//! A reply as the items that it was made of, in their order.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exchange::{Reasoning, SentCall};
use crate::setup::Profile;
use crate::wire::call::{self, call_id};
use crate::wire::chat::Members;
use crate::wire::object::is_object;
use crate::wire::responses::member;
use crate::wire::string::string;

/// One of several messages of one reply, and where it stood.
#[derive(Debug, Deserialize, Serialize)]
pub struct Placed {
    /// The length of its text.
    pub bytes: usize,
    /// The number of opaque items that came before it.
    pub reasoning: usize,
    /// The number of calls that came before it.
    pub calls: u32,
    /// Its own members beside the text.
    pub item: Box<RawValue>,
}

/// What a response keeps beside its text where that is made of several messages, or of one that does
/// not stand between the first reasoning and the first call.
#[derive(Debug, Deserialize, Serialize)]
pub struct Several {
    /// The messages, in order.
    pub messages: Vec<Placed>,
}

/// What stands between the texts of messages that make one text.
pub const BETWEEN: &str = "\n\n";

/// A message within a reply.
struct Part<'a> {
    text: &'a str,
    reasoning: usize,
    calls: u32,
    members: Vec<(String, Box<RawValue>)>,
}

/// The messages that a text is made of.
fn parts<'a>(text: &'a str, extra: Option<&str>) -> Vec<Part<'a>> {
    if text.is_empty() {
        return Vec::new();
    }
    let several = extra.and_then(|extra| serde_json::from_str::<Several>(extra).ok());
    let members = match several {
        None => extra.map(members).unwrap_or_default(),
        Some(several) => match split(text, several) {
            Some(parts) => return parts,
            None => Vec::new(),
        },
    };
    vec![Part {
        text,
        reasoning: usize::MAX,
        calls: 0,
        members,
    }]
}

/// The text as it was put together; `None` if it is another.
fn split(text: &str, several: Several) -> Option<Vec<Part<'_>>> {
    let mut rest = Some(text);
    let mut parts = Vec::new();
    for placed in several.messages {
        let (text, behind) = rest?.split_at_checked(placed.bytes)?;
        if behind.is_empty() {
            rest = None;
        } else {
            rest = Some(behind.strip_prefix(BETWEEN)?);
        }
        parts.push(Part {
            text,
            reasoning: placed.reasoning,
            calls: placed.calls,
            members: members(placed.item.get()),
        });
    }
    rest.is_none().then_some(parts)
}

fn members(object: &str) -> Vec<(String, Box<RawValue>)> {
    serde_json::from_str::<Members>(object).map_or_else(|_| Vec::new(), |members| members.0)
}

/// An item of the model's, and its place: the calls before it, the opaque items before it, and what
/// comes first of what stands at one place.
struct Item {
    place: (u32, usize, u8),
    is_reasoning: bool,
    bytes: Vec<u8>,
}

/// Appends the items of a reply: its text, what of its reasoning goes back, and its calls.
pub(super) fn assistant(
    out: &mut Vec<u8>,
    (text, extra): (&str, Option<&str>),
    reasoning: &[Reasoning],
    calls: &[SentCall<'_>],
    profile: &Profile,
) {
    let mut items = Vec::new();
    let opaque = reasoning.iter().filter_map(|block| match block {
        Reasoning::Raw {
            raw,
            field: None,
            after,
        } => Some((raw, after.unwrap_or(0))),
        Reasoning::Raw { .. } | Reasoning::Text { .. } => None,
    });
    for (index, (raw, after)) in opaque.enumerate() {
        if let Some(is_reasoning) = goes_back(raw) {
            items.push(Item {
                place: (after, index, 1),
                is_reasoning,
                bytes: raw.clone().into_bytes(),
            });
        }
    }
    let known = items.iter().any(|item| item.is_reasoning);
    items.extend(parts(text, extra).iter().map(|part| Item {
        place: (part.calls, part.reasoning, 0),
        is_reasoning: false,
        bytes: said(part, known),
    }));
    items.extend(calls.iter().map(|call| Item {
        place: (call.id.place.saturating_sub(1), usize::MAX, 2),
        is_reasoning: false,
        bytes: sent_call(call, profile),
    }));
    items.sort_by_key(|item| item.place);
    // Reasoning that nothing follows any more would be refused.
    while items.pop_if(|item| item.is_reasoning).is_some() {}
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&item.bytes);
    }
}

/// Whether an opaque item is reasoning; `None` if it cannot go back: a provider that stores nothing
/// knows reasoning by its content alone.
fn goes_back(raw: &str) -> Option<bool> {
    let Ok(Value::Object(item)) = serde_json::from_str(raw) else {
        return None;
    };
    let is_reasoning = item.get("type")?.as_str()? == "reasoning";
    let encrypted = item.get("encrypted_content").and_then(Value::as_str);
    let content = item.get("content").and_then(Value::as_array);
    let says = encrypted.is_some_and(|text| !text.is_empty())
        || content.is_some_and(|content| !content.is_empty());
    (says || !is_reasoning).then_some(is_reasoning)
}

/// A message of the model's: as it was where it stands beside its reasoning, else its text.
fn said(part: &Part<'_>, known: bool) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(b"{\"type\":\"message\"");
    let id = part.members.iter().find(|(name, _)| name == "id");
    if let Some((_, id)) = id.filter(|_| known) {
        member(&mut out, "id", id);
        out.extend_from_slice(b",\"status\":\"completed\",\"role\":\"assistant\"");
        out.extend_from_slice(b",\"content\":[{\"type\":\"output_text\",\"text\":");
        string(&mut out, part.text);
        out.extend_from_slice(b",\"annotations\":[]}]");
    } else {
        out.extend_from_slice(b",\"role\":\"assistant\",\"content\":");
        string(&mut out, part.text);
    }
    let taken = ["type", "id", "status", "role", "content"];
    for (name, value) in &part.members {
        if !taken.contains(&name.as_str()) {
            member(&mut out, name, value);
        }
    }
    out.push(b'}');
    out
}

fn sent_call(call: &SentCall<'_>, profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(b"{\"type\":\"function_call\",\"call_id\":");
    string(&mut out, &call_id(call.id, &profile.calls));
    member(&mut out, "name", &call::name(&call.name, &profile.tools));
    // The call's result says what was wrong with arguments that are no object.
    let arguments = if is_object(&call.arguments) {
        &*call.arguments
    } else {
        "{}"
    };
    out.extend_from_slice(b",\"arguments\":");
    string(&mut out, arguments);
    let extra = call.extra.as_deref().map(members).unwrap_or_default();
    // A call of another type is told of as one of a function; what it held has no place there.
    if !extra.iter().any(|(name, _)| name == "type") {
        let taken = ["id", "status", "call_id", "name", "arguments"];
        for (name, value) in extra {
            if !taken.contains(&name.as_str()) {
                member(&mut out, &name, &value);
            }
        }
    }
    out.push(b'}');
    out
}
