//! The SDK of `OpenHands`: a directory with a file for each event, in the order of their names; or all
//! events in one file.
//!
//! Actions with one response id are one response. A condensation names the events that it forgets and
//! says what takes their place.

use std::collections::HashMap;

use serde_json::Value;

use crate::exchange::Status;
use crate::import::Unread;
use crate::import::fields;
use crate::import::json;
use crate::import::lines::{string, take_list, take_text, text};
use crate::import::objects::Objects;
use crate::import::openhands;
use crate::import::pen::{Mark, Pen};
use crate::import::source::Source;
use crate::transcript::Speaker;

/// The run of a directory or file.
pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let mut pen = Pen::default();
    let mut told = Told::default();
    if !source.is_directory() {
        let mut objects = Objects::of(source)?;
        while let Some(event) = objects.next()? {
            told.event(&mut pen, event);
        }
        pen.skipped += objects.skipped();
        return Ok(vec![pen]);
    }
    for member in source.members() {
        match json::parse(&member?) {
            Ok(event) if event.is_object() => told.event(&mut pen, event),
            Ok(_) | Err(_) => pen.skipped(),
        }
    }
    let left_out = source.left_out();
    if left_out > 0 {
        pen.note(format!(
            "newest events, too many to read, left out: {left_out}"
        ));
    }
    Ok(vec![pen])
}

/// What was told so far.
#[derive(Default)]
struct Told {
    /// Where events stand, in order, and the place of each in that order by its id.
    marks: Vec<Mark>,
    places: HashMap<String, usize>,
    /// The provider's ids of calls, by the event of the action.
    calls: HashMap<String, String>,
}

impl Told {
    fn event(&mut self, pen: &mut Pen, mut event: Value) {
        pen.at(fields::moment(&event["timestamp"]));
        let id = string(&event["id"]).to_owned();
        self.places.insert(id.clone(), self.marks.len());
        self.marks.push(pen.mark());
        let kind = string(&event["kind"]).to_owned();
        match kind.as_str() {
            "SystemPromptEvent" => {
                for part in ["system_prompt", "dynamic_context"] {
                    let part = text(fields::take(&mut event, part));
                    if !part.is_empty() {
                        pen.instructions(&part);
                    }
                }
                fields::tools(pen, &take_list(&mut event, "tools"));
            }
            "MessageEvent" => message(pen, event),
            "ActionEvent" => {
                let call = take_text(&mut event, "tool_call_id");
                self.calls.insert(id, call.clone());
                action(pen, &call, event);
            }
            "ObservationEvent" => {
                let call = self.call(&mut event);
                let mut seen = fields::take(&mut event, "observation");
                let status = status(&seen);
                let content = [
                    fields::take(&mut seen, "content"),
                    fields::take(&mut seen, "output"),
                ];
                let content = content.into_iter().find(|content| !content.is_null());
                pen.answered(&call, status, text(content.unwrap_or_default()));
            }
            "AgentErrorEvent" => {
                let call = self.call(&mut event);
                pen.answered(&call, Status::Error, take_text(&mut event, "error"));
            }
            "UserRejectObservation" => {
                let call = self.call(&mut event);
                let why = take_text(&mut event, "rejection_reason");
                pen.answered(&call, Status::Denied, why);
            }
            "Condensation" => self.condensed(pen, &event),
            "ConversationStateUpdateEvent"
            | "PauseEvent"
            | "CondensationRequest"
            | "TokenEvent" => {}
            "ConversationErrorEvent" => {
                pen.note(format!(
                    "{}: {}",
                    string(&event["code"]),
                    string(&event["detail"])
                ));
            }
            _ => pen.note(format!("{kind}: {event}")),
        }
    }

    /// The provider's id of the call that an observation answers.
    fn call(&mut self, event: &mut Value) -> String {
        let action = string(&event["action_id"]);
        match self.calls.remove(action) {
            Some(call) => call,
            None => take_text(event, "tool_call_id"),
        }
    }

    fn condensed(&self, pen: &mut Pen, event: &Value) {
        let listed = event["forgotten_event_ids"].as_array();
        let ids = listed.into_iter().flatten().filter_map(Value::as_str);
        let last = ids.filter_map(|id| self.places.get(id)).max();
        let keeps = last.and_then(|last| self.marks.get(last + 1));
        openhands::forgotten(pen, string(&event["summary"]), keeps.copied());
    }
}

fn message(pen: &mut Pen, mut event: Value) {
    let mut message = fields::take(&mut event, "llm_message");
    let content = text(fields::take(&mut message, "content"));
    let key = take_text(&mut event, "llm_response_id");
    if message["role"] == "assistant" {
        if key.is_empty() {
            pen.over();
            pen.said(None, &content);
            pen.over();
        } else {
            fields::reasoning(pen, &key, &mut message);
            pen.said(Some(&key), &content);
            pen.provider_request(Some(&key), &key);
        }
        return;
    }
    // What skills add goes out behind the message.
    let added = text(fields::take(&mut event, "extended_content"));
    if event["source"] == "user" {
        pen.typed(content, Vec::new());
    } else {
        pen.user(Speaker::Runtime, content, Vec::new());
    }
    pen.user(Speaker::Runtime, added, Vec::new());
}

fn action(pen: &mut Pen, call: &str, mut event: Value) {
    let key = take_text(&mut event, "llm_response_id");
    fields::reasoning(pen, &key, &mut event);
    pen.said(Some(&key), &text(fields::take(&mut event, "thought")));
    let mut made = fields::take(&mut event, "tool_call");
    let mut name = take_text(&mut made, "name");
    // Older versions have the form of Chat Completions.
    let mut function = fields::take(&mut made, "function");
    if name.is_empty() {
        name = take_text(&mut function, "name");
    }
    if name.is_empty() {
        name = take_text(&mut event, "tool_name");
    }
    let arguments = [
        fields::take(&mut made, "arguments"),
        fields::take(&mut function, "arguments"),
        fields::take(&mut event, "action"),
    ];
    let arguments = arguments.into_iter().find(|arguments| !arguments.is_null());
    let arguments = fields::arguments(arguments.unwrap_or_default());
    pen.called(Some(&key), call, &name, arguments);
    pen.provider_request(Some(&key), &key);
}

fn status(seen: &Value) -> Status {
    let code = [&seen["exit_code"], &seen["metadata"]["exit_code"]];
    let code = code.into_iter().find_map(Value::as_i64).unwrap_or_default();
    if seen["timeout"] == true {
        Status::Timeout
    } else if seen["is_error"] == true || code != 0 {
        Status::Error
    } else {
        Status::Ok
    }
}

#[cfg(test)]
mod tests {
    use crate::import::told::told_directory;

    #[test]
    fn events_are_told_in_order_and_a_condensation_is_a_summary() {
        let events = [
            r#"{"id":"e0","kind":"SystemPromptEvent","system_prompt":{"type":"text","text":"You act."},"dynamic_context":{"type":"text","text":"Skills."},"tools":[{"title":"terminal","description":"Runs."}]}"#,
            r#"{"id":"e1","kind":"MessageEvent","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"Fix it."}]},"extended_content":[{"type":"text","text":"A skill."}],"timestamp":"2026-02-18T19:10:19.447587"}"#,
            r#"{"id":"e2","kind":"ActionEvent","thought":[{"type":"text","text":"Two."}],"reasoning_content":"Hm.","tool_call_id":"c1","tool_call":{"id":"c1","name":"terminal","arguments":"{\"command\": \"ls\"}"},"llm_response_id":"r1"}"#,
            r#"{"id":"e3","kind":"ActionEvent","thought":[],"tool_call_id":"c2","tool_name":"finish","tool_call":{"id":"c2","function":{"name":"finish","arguments":"{}"}},"llm_response_id":"r1"}"#,
            r#"{"id":"e4","kind":"ObservationEvent","tool_call_id":"c1","action_id":"e2","observation":{"content":[{"type":"text","text":"a"}],"exit_code":1}}"#,
            r#"{"id":"e5","kind":"UserRejectObservation","tool_call_id":"c2","action_id":"e3","rejection_reason":"no"}"#,
            r#"{"id":"e6","kind":"MessageEvent","source":"agent","llm_message":{"role":"assistant","content":[{"type":"text","text":"Why?"}],"thinking_blocks":[{"type":"redacted_thinking","data":"d"}]},"llm_response_id":"r2"}"#,
            r#"{"id":"e7","kind":"MessageEvent","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"Go on."}]}}"#,
            r#"{"id":"e8","kind":"Condensation","forgotten_event_ids":["e2","e3","e4","e5"],"summary":"It began.","summary_offset":2}"#,
            r#"{"id":"e9","kind":"ConversationErrorEvent","code":"LLMError","detail":"gone"}"#,
            "{\"torn",
            r#"{"id":"e11","kind":"Dream","x":1}"#,
        ];
        let directory = tempfile::tempdir().unwrap();
        for (number, event) in events.iter().enumerate() {
            let name = format!("event-{number:05}-x.json");
            std::fs::write(directory.path().join(name), event).unwrap();
        }
        std::fs::write(directory.path().join("base_state.json"), "{}").unwrap();
        insta::assert_snapshot!(told_directory(directory.path()), @r#"
        run openhands-sdk skipped "1"
        setup unknown "You act.\n\nSkills." terminal={"type":"object","properties":{}}
        Task "Fix it."
        Runtime "A skill."
        Complete "Two." thought "Hm." c1:terminal{"command": "ls"} c2:finish{}
          result 6.1 error "a"
          result 6.2 denied "no"
        Complete "Why?"
        FollowUp "Go on."
        Auto e3–e8 "It began."
        note "LLMError: gone"
        note "Dream: {\"id\":\"e11\",\"kind\":\"Dream\",\"x\":1}"
        "#);
    }
}
