//! The input items of Responses.

use crate::setup::Profile;
use crate::wire::judge::json::Json;
use crate::wire::judge::{Calls, Unsound, wrong};

/// Judges the items one after the other. Items of a kind that is not known are the provider's own.
pub(super) fn judge(items: &[Json<'_>], profile: &Profile) -> Result<(), Unsound> {
    let mut calls = Calls::default();
    let mut answering = false;
    let mut asks = false;
    for (place, item) in items.iter().enumerate() {
        let wrong = |what| wrong(format!("input {place}"), what);
        if item.members().is_none() {
            return wrong("is no object");
        }
        let kind = item.get("type").text().unwrap_or("message");
        if kind != "function_call_output" && answering && !calls.awaited.is_empty() {
            return wrong("stands where a result is awaited");
        }
        answering = kind == "function_call_output";
        asks = answering;
        match kind {
            "message" => {
                let role = item.get("role").text().unwrap_or_default();
                asks = role == "user";
                if !matches!(role, "user" | "assistant" | "system" | "developer") {
                    return wrong("is of no role that may stand here");
                }
                if role != "assistant" && !calls.awaited.is_empty() {
                    return wrong("stands where a result is awaited");
                }
                if !has_text(item.get("content")) {
                    return wrong("is empty");
                }
            }
            "function_call" => {
                let call = (item.get("call_id"), item.get("name"), item.get("arguments"));
                if let Some(what) = calls.call(call, profile) {
                    return wrong(what);
                }
            }
            "function_call_output" => {
                if let Some(what) = calls.result(item.get("call_id"), item.get("output")) {
                    return wrong(what);
                }
            }
            _ => {}
        }
    }
    if asks && calls.awaited.is_empty() {
        Ok(())
    } else {
        wrong("input", "ends with something that asks for no answer")
    }
}

/// Whether a content says anything: a text, or parts of which each has one.
fn has_text(content: &Json<'_>) -> bool {
    let said = |json: &Json<'_>| json.text().is_some_and(|text| !text.is_empty());
    let part = |part: &Json<'_>| said(part.get("text")) || said(part.get("refusal"));
    let parts = content.items().unwrap_or_default();
    said(content) || (!parts.is_empty() && parts.iter().all(part))
}
