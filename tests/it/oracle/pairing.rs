//! A strict judge of a request's body, which knows nothing of entries.

use std::collections::HashSet;

use async_openai::types::chat::CreateChatCompletionRequest;
use serde_json::{Map, Value};

/// Judges a body strictly: what it must be for any provider, whatever the entries were.
pub(crate) fn pairing(body: &[u8]) -> Result<(), String> {
    serde_json::from_slice::<CreateChatCompletionRequest>(body)
        .map_err(|error| format!("not a request: {error}"))?;
    let body: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| format!("not an object: {error}"))?;
    let Some((last, Value::Array(messages))) = body.iter().next_back() else {
        return Err("the last key is no array".to_owned());
    };
    if last != "messages" {
        return Err(format!("the last key is {last}"));
    }
    let mut awaited: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    let mut role = "";
    for (place, message) in messages.iter().enumerate() {
        let wrong = |what: &str| Err(format!("message {place}: {what}"));
        let content = message["content"].as_str();
        role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !awaited.is_empty() {
            return wrong("a call before it has no result");
        }
        match role {
            "system" if place == 0 => {}
            "user" if content.is_some_and(|text| !text.is_empty()) => {}
            "tool" if content.is_some() => {
                let id = message["tool_call_id"].as_str();
                if awaited.is_empty() || id != Some(awaited.remove(0)) {
                    return wrong("not the result awaited here");
                }
            }
            "assistant" => {
                let calls = message
                    .get("tool_calls")
                    .map(|calls| calls.as_array().cloned());
                if content.is_none_or(str::is_empty) && calls.is_none() {
                    return wrong("empty");
                }
                if calls.is_some_and(|calls| calls.is_none_or(|calls| calls.is_empty())) {
                    return wrong("no calls in tool_calls");
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let Some(id) = call["id"].as_str().filter(|id| seen.insert(*id)) else {
                        return wrong("a call without an id of its own");
                    };
                    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                    if serde_json::from_str::<Map<String, Value>>(arguments).is_err() {
                        return wrong("arguments are no object");
                    }
                    awaited.push(id);
                }
            }
            _ => return wrong("neither role nor content are allowed here"),
        }
    }
    match role {
        "user" | "tool" if awaited.is_empty() => Ok(()),
        _ => Err(format!(
            "the last message is of role {role:?}, {} results missing",
            awaited.len()
        )),
    }
}
