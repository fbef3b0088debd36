//! The shape of a body: which members stand where and of which types, without what they say.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::wire::judge::json::Json;

/// Members whose words are part of the shape.
const WORDS: [&str; 3] = ["role", "type", "tool_choice"];

/// Members that are of any shape.
const OPEN: [&str; 2] = ["parameters", "schema"];

/// The shape of a body; bodies of one shape are taken or refused alike. `None` if it is no JSON.
pub fn shape(body: &[u8]) -> Option<String> {
    let body: Json<'_> = serde_json::from_slice(body).ok()?;
    let mut out = String::new();
    write(&mut out, &body);
    Some(out)
}

fn write(out: &mut String, json: &Json<'_>) {
    match json {
        Json::Null => out.push_str("null"),
        Json::Bool => out.push_str("bool"),
        Json::Number => out.push_str("number"),
        Json::Text(text) if text.is_empty() => out.push_str("empty"),
        Json::Text(_) => out.push_str("text"),
        Json::Items(items) => {
            let shapes = items.iter().map(|item| {
                let mut shape = String::new();
                write(&mut shape, item);
                shape
            });
            let shapes: Vec<String> = shapes.collect::<BTreeSet<_>>().into_iter().collect();
            write!(out, "[{}]", shapes.join("|")).ok();
        }
        Json::Members(members) => {
            out.push('{');
            for (name, value) in members {
                write!(out, "{name}:").ok();
                match value.text() {
                    Some(word) if WORDS.contains(&&**name) => out.push_str(word),
                    Some(_) | None if OPEN.contains(&&**name) => out.push_str("any"),
                    Some(_) | None => write(out, value),
                }
                out.push(',');
            }
            out.push('}');
        }
    }
}
