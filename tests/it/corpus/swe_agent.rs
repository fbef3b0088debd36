//! SWE-agent and mini-swe-agent: one object, messages as they were sent. Some call tools, some write
//! a command into their text, which the next message answers.

use serde_json::{Value, json};

use super::lines::{list, string, text};
use super::recording::{Pen, Recording};

/// The messages of a SWE-agent run.
pub(super) fn read(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let run: Value = serde_json::from_slice(bytes).unwrap_or_default();
    messages(name, list(&run["history"]))
}

/// Those of a run of its small sister, of any version.
pub(super) fn read_mini(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let run: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let inner = run["messages"].as_array();
    messages(name, inner.map_or_else(|| list(&run), Vec::as_slice))
}

fn messages(name: &str, messages: &[Value]) -> Vec<Recording> {
    let mut pen = Pen::default();
    // The command in the newest text, until it is answered.
    let mut open = None;
    for (number, message) in messages.iter().enumerate() {
        let key = number.to_string();
        let content = text(&message["content"]);
        match string(&message["role"]) {
            "assistant" => {
                let calls = list(&message["tool_calls"]);
                let command = command(message, &content).filter(|_| calls.is_empty());
                let thought = message["thought"].as_str().unwrap_or(&content);
                pen.said(Some(&key), thought);
                for call in calls {
                    let function = &call["function"];
                    let (id, tool) = (string(&call["id"]), string(&function["name"]));
                    pen.called(Some(&key), id, tool, &function["arguments"]);
                }
                if let Some(command) = command {
                    pen.called(Some(&key), &key, "bash", &json!({ "command": command }));
                    open = Some(key);
                }
            }
            "user" => match open.take() {
                Some(id) => pen.answered(&id, &content, went_well(&content)),
                None => pen.user(&content),
            },
            "tool" => {
                let id = list(&message["tool_call_ids"]).first();
                let id = string(id.unwrap_or(&message["tool_call_id"]));
                pen.answered(id, &content, went_well(&content));
            }
            _ => {}
        }
    }
    pen.recording(name).into_iter().collect()
}

/// The command in a text: named beside it, or its one fenced block.
fn command<'a>(message: &'a Value, content: &'a str) -> Option<&'a str> {
    if let Some(action) = message["action"].as_str() {
        return Some(action);
    }
    let (_, fenced) = content.split_once("```")?;
    let (_, block) = fenced.split_once('\n')?;
    Some(block.split_once("```")?.0.trim())
}

fn went_well(content: &str) -> bool {
    let code = content.split_once("<returncode>").map(|(_, rest)| rest);
    code.is_none_or(|code| code.starts_with('0'))
}
