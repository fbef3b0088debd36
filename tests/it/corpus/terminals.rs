//! Gemini CLI, Copilot CLI and aider: what their terminals show, with calls or without.

use serde_json::{Value, json};

use super::lines::{list, objects, string, text};
use super::recording::{Pen, Recording};

/// Gemini CLI: call and result stand in one record.
pub(super) fn read_gemini(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let session: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let mut pen = Pen::default();
    for message in list(&session["messages"]) {
        let key = message["id"].as_str();
        match string(&message["type"]) {
            "user" => pen.user(&text(&message["content"])),
            "gemini" => {
                for thought in list(&message["thoughts"]) {
                    pen.thought(key, string(&thought["description"]));
                }
                pen.said(key, &text(&message["content"]));
                let calls = list(&message["toolCalls"]);
                for call in calls {
                    let (id, tool) = (string(&call["id"]), string(&call["name"]));
                    pen.called(key, id, tool, &call["args"]);
                }
                for call in calls {
                    let results = list(&call["result"]).iter();
                    let texts = results.map(|result| {
                        let response = &result["functionResponse"]["response"];
                        let output = response["output"].as_str().or(response["error"].as_str());
                        output.unwrap_or_default()
                    });
                    let ok = call["status"] == "success";
                    let texts = texts.collect::<Vec<_>>().join("\n");
                    pen.answered(string(&call["id"]), &texts, ok);
                }
            }
            _ => {}
        }
    }
    pen.recording(name).into_iter().collect()
}

/// Copilot CLI: events, those of sub-agents among them.
pub(super) fn read_copilot(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let mut pen = Pen::default();
    for event in objects(bytes) {
        let data = &event["data"];
        if data["parentToolCallId"].is_string() {
            continue;
        }
        match string(&event["type"]) {
            "user.message" => pen.user(string(&data["content"])),
            "assistant.message" => {
                let key = data["messageId"].as_str();
                pen.thought(key, string(&data["reasoningText"]));
                pen.said(key, string(&data["content"]));
                for call in list(&data["toolRequests"]) {
                    let (id, tool) = (string(&call["toolCallId"]), string(&call["name"]));
                    pen.called(key, id, tool, &call["arguments"]);
                }
            }
            "tool.execution_complete" => {
                let ok = data["success"].as_bool() == Some(true);
                let content = text(&data["result"]["content"]);
                pen.answered(string(&data["toolCallId"]), &content, ok);
            }
            _ => {}
        }
    }
    pen.recording(name).into_iter().collect()
}

/// Aider: a chat as Markdown. What it reports between two requests, such as a test that fails with
/// the edits made, is taken as the result of a call.
pub(super) fn read_aider(name: &str, bytes: &[u8]) -> Vec<Recording> {
    let chat = String::from_utf8_lossy(bytes);
    let mut pen = Pen::default();
    let (mut asked, mut report, mut answer) = (Vec::new(), Vec::new(), Vec::new());
    for line in chat.lines() {
        let told = line.strip_prefix("> ");
        if told.is_some_and(|told| told.contains(" prompt tokens, ")) {
            pen.said(None, &answer.join("\n"));
            if asked.is_empty() {
                pen.called(None, "edits", "apply_edits", &json!({}));
                pen.answered("edits", &report.join("\n"), true);
            }
            pen.user(&asked.join("\n"));
            asked.clear();
            report.clear();
            answer.clear();
        } else if let Some(said) = line.strip_prefix("#### ") {
            asked.push(said);
        } else if let Some(told) = told {
            report.push(told);
        } else if !line.starts_with("# aider chat started at ") {
            answer.push(line);
        }
    }
    pen.said(None, &answer.join("\n"));
    pen.recording(name).into_iter().collect()
}
