//! Inspect and ATIF: logs that are made to be exchanged.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::archive;
use super::lines::{list, string, text};
use super::recording::{Pen, Recording};

/// Inspect: samples, zipped.
pub(super) fn read_inspect(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let members = archive::members(bytes).into_iter();
    let samples: BTreeMap<String, Vec<u8>> = members
        .filter(|(member, _)| member.starts_with("samples/"))
        .collect();
    let runs = (1..).zip(samples.values());
    let runs = runs.map(|(number, sample): (u32, &Vec<u8>)| {
        let sample: Value = serde_json::from_slice(sample).unwrap_or_default();
        self::sample(&sample).recording(&format!("{name}:{number}"))
    });
    runs.flatten().collect()
}

fn sample(sample: &Value) -> Pen {
    let whole = |text: &str| {
        let hash = text.strip_prefix("attachment://");
        let whole = hash.and_then(|hash| sample["attachments"][hash].as_str());
        whole.unwrap_or(text).to_owned()
    };
    let mut pen = Pen::default();
    for (number, message) in list(&sample["messages"]).iter().enumerate() {
        let key = number.to_string();
        match string(&message["role"]) {
            "user" => pen.user(&whole(&text(&message["content"]))),
            "assistant" => {
                match &message["content"] {
                    Value::Array(parts) => parts.iter().for_each(|part| {
                        pen.thought(Some(&key), &whole(string(&part["reasoning"])));
                        pen.said(Some(&key), &whole(string(&part["text"])));
                    }),
                    content => pen.said(Some(&key), &whole(string(content))),
                }
                for call in list(&message["tool_calls"]) {
                    let (id, tool) = (string(&call["id"]), string(&call["function"]));
                    pen.called(Some(&key), id, tool, &call["arguments"]);
                }
            }
            "tool" => {
                let id = string(&message["tool_call_id"]);
                let ok = message["error"].is_null();
                pen.answered(id, &whole(&text(&message["content"])), ok);
            }
            _ => {}
        }
    }
    pen
}

/// ATIF: steps, whose results stand beside their calls. A program's own steps are taken as calls.
pub(super) fn read_atif(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let run: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let mut pen = Pen::default();
    for step in list(&run["steps"]) {
        let key = text(&step["step_id"]);
        let message = text(&step["message"]);
        let calls = list(&step["tool_calls"]);
        let results = list(&step["observation"]["results"]);
        match string(&step["source"]) {
            "agent" => {
                pen.thought(Some(&key), string(&step["reasoning_content"]));
                pen.said(Some(&key), &message);
            }
            _ if results.is_empty() => pen.user(&message),
            _ => pen.said(Some(&key), &message),
        }
        for call in calls {
            let (id, tool) = (
                string(&call["tool_call_id"]),
                string(&call["function_name"]),
            );
            pen.called(Some(&key), id, tool, &call["arguments"]);
        }
        for result in results {
            let content = text(&result["content"]);
            let id = result["source_call_id"].as_str().unwrap_or(&key);
            if calls.is_empty() {
                let arguments = json!({ "command": result["content"]["command"] });
                pen.called(Some(&key), id, "verify", &arguments);
            }
            pen.answered(
                id,
                &content,
                result["content"]["passed"].as_bool() != Some(false),
            );
        }
    }
    pen.recording(name).into_iter().collect()
}
