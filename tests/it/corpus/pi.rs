//! pi: messages by the line, of the user, the assistant and its tools.

use serde_json::Value;

use super::lines::{list, objects, string, text};
use super::recording::{Pen, Recording};

pub(super) fn read(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let mut pen = Pen::default();
    for (number, line) in objects(bytes).enumerate() {
        let message = &line["message"];
        match string(&message["role"]) {
            "user" => pen.user(&text(&message["content"])),
            "assistant" => said(&mut pen, &number.to_string(), message),
            "toolResult" => {
                let ok = message["isError"].as_bool() != Some(true);
                let content = text(&message["content"]);
                pen.answered(string(&message["toolCallId"]), &content, ok);
            }
            "bashExecution" => {
                let (command, output) = (string(&message["command"]), string(&message["output"]));
                pen.user(&format!("Ran `{command}`\n{output}"));
            }
            _ => {}
        }
    }
    pen.recording(name).into_iter().collect()
}

fn said(pen: &mut Pen, key: &str, message: &Value) {
    for block in list(&message["content"]) {
        match string(&block["type"]) {
            "text" => pen.said(Some(key), string(&block["text"])),
            "thinking" => pen.thought(Some(key), string(&block["thinking"])),
            "toolCall" => {
                let (id, tool) = (string(&block["id"]), string(&block["name"]));
                pen.called(Some(key), id, tool, &block["arguments"]);
            }
            _ => {}
        }
    }
}
