//! Bodies of Responses, judged.

use std::collections::HashSet;

use async_openai::types::responses::CreateResponse;
use serde_json::{Map, Value};

/// Judges a body strictly: that it is a request of the API that stores nothing, that every call is
/// answered in order, and that the model is to speak next.
pub(super) fn judge(body: &[u8]) -> Result<(), String> {
    serde_json::from_slice::<CreateResponse>(body)
        .map_err(|error| format!("not a request: {error}"))?;
    let body: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| format!("not an object: {error}"))?;
    if body.get("store") != Some(&Value::Bool(false)) || body.contains_key("previous_response_id") {
        return Err("something would be stored".to_owned());
    }
    let Some((last, Value::Array(items))) = body.iter().next_back() else {
        return Err("the last key is no array".to_owned());
    };
    if last != "input" {
        return Err(format!("the last key is {last}"));
    }
    let (mut awaited, mut seen, mut ids) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut kind = "";
    for (place, item) in items.iter().enumerate() {
        let wrong = |what: &str| Err(format!("item {place}: {what}"));
        let before = kind;
        kind = item["type"].as_str().unwrap_or_default();
        if before == "reasoning" && matches!(kind, "function_call_output" | "") {
            return wrong("reasoning before it belongs to nothing");
        }
        if item["id"].as_str().is_some_and(|id| !ids.insert(id)) {
            return wrong("an id that another item has");
        }
        match kind {
            "message" => {
                let user = item["role"] == "user";
                let text = match &item["content"] {
                    Value::String(text) => text.as_str(),
                    content => content[0]["text"].as_str().unwrap_or_default(),
                };
                if text.is_empty() || !(user || item["role"] == "assistant") {
                    return wrong("empty, or of no role");
                }
                if user && (!awaited.is_empty() || before == "reasoning") {
                    return wrong("something before it is not finished");
                }
            }
            "reasoning" => {
                if item["encrypted_content"].as_str().is_none_or(str::is_empty) {
                    return wrong("reasoning that nobody knows");
                }
            }
            "function_call" => {
                let arguments = item["arguments"].as_str().unwrap_or_default();
                if serde_json::from_str::<Map<String, Value>>(arguments).is_err() {
                    return wrong("arguments are no object");
                }
                match item["call_id"].as_str().filter(|id| seen.insert(*id)) {
                    Some(id) => awaited.push(id),
                    None => return wrong("a call without an id of its own"),
                }
            }
            "function_call_output" => {
                let id = item["call_id"].as_str();
                if awaited.is_empty() || id != Some(awaited.remove(0)) {
                    return wrong("not the result awaited here");
                }
            }
            _ => return wrong("of no type that is sent"),
        }
    }
    let user = items.last().is_some_and(|item| item["role"] == "user");
    if awaited.is_empty() && (user || kind == "function_call_output") {
        Ok(())
    } else {
        Err(format!(
            "{} results missing, or nothing asked",
            awaited.len()
        ))
    }
}
