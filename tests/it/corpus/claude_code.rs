//! Claude Code: one object a line, usually one block of a message.

use serde_json::{Value, json};

use super::lines::{list, objects, string, text};
use super::recording::{Pen, Recording};

pub(super) fn read(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let mut pen = Pen::default();
    for line in objects(bytes) {
        // A sub-agent's messages, and what the client wrote in the user's place.
        let is = |flag: &str| line[flag].as_bool() == Some(true);
        if is("isSidechain") || is("isMeta") || is("isCompactSummary") {
            continue;
        }
        let message = &line["message"];
        match string(&line["type"]) {
            "user" => user(&mut pen, &message["content"]),
            "assistant" => {
                let key = message["id"].as_str();
                for block in list(&message["content"]) {
                    match string(&block["type"]) {
                        "text" => pen.said(key, string(&block["text"])),
                        "thinking" => pen.thought(key, string(&block["thinking"])),
                        "tool_use" => {
                            let (id, tool) = (string(&block["id"]), string(&block["name"]));
                            pen.called(key, id, tool, &block["input"]);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    pen.recording(name).into_iter().collect()
}

fn user(pen: &mut Pen, content: &Value) {
    let Some(blocks) = content.as_array() else {
        typed(pen, string(content));
        return;
    };
    for block in blocks {
        match string(&block["type"]) {
            "tool_result" => {
                let ok = block["is_error"].as_bool() != Some(true);
                pen.answered(string(&block["tool_use_id"]), &text(&block["content"]), ok);
            }
            "text" => typed(pen, string(&block["text"])),
            _ => {}
        }
    }
}

/// A text in the user's place, which the client may have put there: what its own commands say is
/// not for the model, and what it tells of work in the background is a result.
fn typed(pen: &mut Pen, text: &str) {
    if text.starts_with("<task-notification>") {
        pen.called(None, text, "Notification", &json!({}));
        pen.answered(text, text, true);
    } else if !text.starts_with("<local-command-") && !text.starts_with("<command-name>") {
        pen.user(text);
    }
}
