//! The messages of Chat Completions.

use crate::setup::{EmptyContent, MessageOrder, Profile};
use crate::wire::judge::json::Json;
use crate::wire::judge::{Calls, Unsound, wrong};

/// Judges the messages one after the other.
pub(super) fn judge(messages: &[Json<'_>], profile: &Profile) -> Result<(), Unsound> {
    let mut calls = Calls::default();
    let mut before = "";
    for (place, message) in messages.iter().enumerate() {
        let wrong = |what| wrong(format!("messages {place}"), what);
        let role = message.get("role").text().unwrap_or_default();
        if role != "tool" && !calls.awaited.is_empty() {
            return wrong("stands where a result is awaited");
        }
        let content = message.get("content");
        match role {
            "system" if place == 0 => {
                if content.text().is_none() && content.items().is_none() {
                    return wrong("has no content");
                }
            }
            "user" => {
                if content.text().is_none_or(str::is_empty) {
                    return wrong("is empty");
                }
                if before == "tool" && !profile.messages.user_after_tool {
                    return wrong("is a user's after a result");
                }
            }
            "assistant" => {
                if let Some(what) = assistant(message, profile) {
                    return wrong(what);
                }
                for call in message.get("tool_calls").items().unwrap_or_default() {
                    let function = call.get("function");
                    if call.get("type").text() != Some("function") {
                        return wrong("holds a call that is no function's");
                    }
                    let (name, arguments) = (function.get("name"), function.get("arguments"));
                    if let Some(what) = calls.call((call.get("id"), name, arguments), profile) {
                        return wrong(what);
                    }
                }
            }
            "tool" => {
                if let Some(what) = calls.result(message.get("tool_call_id"), content) {
                    return wrong(what);
                }
            }
            _ => return wrong("is of no role that may stand here"),
        }
        if profile.messages.order == MessageOrder::Alternate {
            let begins = matches!(before, "" | "system");
            if role == "assistant" && begins || role == before && role != "tool" {
                return wrong("does not take turns");
            }
        }
        before = role;
    }
    match before {
        "user" | "tool" if calls.awaited.is_empty() => Ok(()),
        _ => wrong("messages", "end with something that asks for no answer"),
    }
}

/// What is wrong with an assistant's message, its calls left out.
fn assistant(message: &Json<'_>, profile: &Profile) -> Option<&'static str> {
    let calls = message.member("tool_calls");
    if calls.is_some_and(|calls| calls.items().is_none_or(<[_]>::is_empty)) {
        return Some("has a list of calls without calls");
    }
    let content = message.member("content");
    if content.is_some_and(|content| content.text().is_some_and(|text| !text.is_empty())) {
        return None;
    }
    if calls.is_none() {
        return Some("is empty");
    }
    let wanted = match profile.messages.empty_content {
        EmptyContent::Omit => content.is_none(),
        EmptyContent::Null => content == Some(&Json::Null),
        EmptyContent::Empty => content.is_some_and(|content| content.text() == Some("")),
    };
    (!wanted).then_some("has another empty content than the provider takes")
}
