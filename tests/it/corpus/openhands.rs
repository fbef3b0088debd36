//! `OpenHands`: events of an evaluation, many runs in a file, or an event a file.

use serde_json::Value;

use super::lines::{list, objects, string, text};
use super::recording::{Pen, Recording};

/// A file of an evaluation, one run a line.
pub(super) fn read(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let runs = (1..).zip(objects(bytes));
    let runs = runs.map(|(number, run): (u32, Value)| {
        let mut pen = Pen::default();
        for one in list(&run["history"]) {
            event(&mut pen, one);
        }
        pen.recording(&format!("{name}:{number}"))
    });
    runs.flatten().collect()
}

fn event(pen: &mut Pen, event: &Value) {
    if event["observation"].is_string() {
        let exit = &event["extras"]["metadata"]["exit_code"];
        let ok = exit.as_i64().unwrap_or_default() == 0;
        pen.answered(&text(&event["cause"]), string(&event["content"]), ok);
        return;
    }
    let content = string(&event["args"]["content"]);
    match (string(&event["source"]), string(&event["action"])) {
        ("user", "message") => pen.user(content),
        ("agent", "message") => pen.said(None, content),
        ("agent", _) => called(pen, event),
        _ => {}
    }
}

/// A call, whose id is its event's: those of the provider are not unique.
fn called(pen: &mut Pen, event: &Value) {
    let meta = &event["tool_call_metadata"];
    let response = &meta["model_response"];
    let key = response["id"].as_str();
    let message = &response["choices"][0]["message"];
    let mut calls = list(&message["tool_calls"]).iter();
    let first = message["tool_calls"][0]["id"] == meta["tool_call_id"];
    if first {
        pen.said(key, string(&message["content"]));
    }
    if let Some(call) = calls.find(|call| call["id"] == meta["tool_call_id"]) {
        let name = string(&meta["function_name"]);
        let arguments = &call["function"]["arguments"];
        pen.called(key, &text(&event["id"]), name, arguments);
    }
}

/// The events of a folder of its newer version, in order.
pub(super) fn read_events(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let mut pen = Pen::default();
    for event in objects(bytes) {
        let key = event["llm_response_id"].as_str();
        let id = string(&event["tool_call_id"]);
        match string(&event["kind"]) {
            "MessageEvent" => {
                let content = text(&event["llm_message"]["content"]);
                match string(&event["source"]) {
                    "user" => pen.user(&content),
                    _ => pen.said(key, &content),
                }
            }
            "ActionEvent" => {
                pen.thought(key, string(&event["reasoning_content"]));
                pen.said(key, &text(&event["thought"]));
                let arguments = &event["tool_call"]["arguments"];
                pen.called(key, id, string(&event["tool_name"]), arguments);
            }
            "ObservationEvent" => {
                let seen = &event["observation"];
                let ok = seen["is_error"].as_bool() != Some(true);
                pen.answered(id, &text(&seen["content"]), ok);
            }
            _ => {}
        }
    }
    pen.recording(name).into_iter().collect()
}
