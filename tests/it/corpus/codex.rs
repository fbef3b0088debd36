//! Codex: items of the Responses API, among duplicates of what was shown.

use serde_json::{Value, json};

use super::lines::{list, objects, string, text};
use super::recording::{Pen, Recording};

/// How messages begin that the client wrote in the user's place.
const INJECTED: [&str; 6] = [
    "<environment_context>",
    "<user_instructions>",
    "<recommended_plugins>",
    "<permissions",
    "<INSTRUCTIONS>",
    "# AGENTS.md",
];

pub(super) fn read(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let mut pen = Pen::default();
    for line in objects(bytes).filter(|line| line["type"] == "response_item") {
        let item = &line["payload"];
        let id = string(&item["call_id"]);
        match string(&item["type"]) {
            "message" => message(&mut pen, item),
            "reasoning" => {
                let parts = list(&item["summary"]).iter().chain(list(&item["content"]));
                parts.for_each(|part| pen.thought(None, string(&part["text"])));
            }
            "function_call" => {
                pen.called(None, id, string(&item["name"]), &item["arguments"]);
            }
            "custom_tool_call" => {
                let arguments = json!({ "input": item["input"] });
                pen.called(None, id, string(&item["name"]), &arguments);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let (text, ok) = output(&item["output"]);
                pen.answered(id, &text, ok);
            }
            _ => {}
        }
    }
    pen.recording(name).into_iter().collect()
}

fn message(pen: &mut Pen, item: &Value) {
    let text = text(&item["content"]);
    match string(&item["role"]) {
        "assistant" => pen.said(None, &text),
        "user" if !INJECTED.iter().any(|start| text.starts_with(start)) => pen.user(&text),
        _ => {}
    }
}

/// The text of an output, and whether it went well. Older ones are JSON in a string.
fn output(output: &Value) -> (String, bool) {
    let inner: Option<Value> = output.as_str().and_then(|o| serde_json::from_str(o).ok());
    if let Some(inner) = inner.filter(|inner| inner["output"].is_string()) {
        let exit = inner["metadata"]["exit_code"].as_i64().unwrap_or_default();
        return (string(&inner["output"]).to_owned(), exit == 0);
    }
    let text = text(output);
    let head: String = text.chars().take(200).collect();
    let failed = head.starts_with("failed in sandbox")
        || ["exited with code ", "exit code: "].iter().any(|key| {
            let code = head.split_once(key).map(|(_, rest)| rest);
            code.is_some_and(|code| !code.starts_with('0'))
        });
    (text, !failed)
}
