//! Copilot CLI: events, one a line; those of a sub-agent name the call that began it, and are a run
//! of their own.

use std::collections::HashMap;
use std::mem;

use serde_json::Value;

use crate::exchange::{Status, Usage};
use crate::import::Unread;
use crate::import::fields;
use crate::import::lines::{string, take_list, take_text, text};
use crate::import::pen::{Compaction, Pen};
use crate::import::source::Source;
use crate::overlay::Origin;
use crate::transcript::{Attachment, Speaker};

/// Events that say nothing that other events do not say.
const INTERNAL: [&str; 13] = [
    "assistant.turn_start",
    "assistant.turn_end",
    "assistant.intent",
    "assistant.message_delta",
    "assistant.reasoning_delta",
    "tool.execution_start",
    "tool.execution_progress",
    "tool.execution_partial_result",
    "tool.user_requested",
    "session.idle",
    "session.compaction_start",
    "session.usage_info",
    "session.usage_checkpoint",
];

/// The run of a session, and those of its sub-agents.
pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let mut runs = vec![Told::default()];
    // Where each run stands, by the call that began it.
    let mut places = HashMap::from([(String::new(), 0)]);
    let mut lines = source.lines();
    while let Some(mut event) = lines.next()? {
        let mut data = fields::take(&mut event, "data");
        let parent = take_text(&mut data, "parentToolCallId");
        let place = *places.entry(parent).or_insert_with_key(|parent| {
            runs.push(Told::under(parent.clone()));
            runs.len() - 1
        });
        if let Some(run) = runs.get_mut(place) {
            run.pen.at(fields::moment(&event["timestamp"]));
            run.event(string(&event["type"]), data);
        }
    }
    if let Some(run) = runs.first_mut() {
        (0..lines.skipped()).for_each(|_| run.pen.skipped());
    }
    Ok(runs.into_iter().map(Told::ended).collect())
}

/// What was told of one run so far.
#[derive(Default)]
struct Told {
    pen: Pen,
    /// The call that began it; empty: nobody's.
    parent: String,
    /// The number of the newest response.
    response: u64,
    /// The id of the message that goes on in further pieces.
    going_on: String,
    /// What that message says so far.
    said: String,
    /// Reasoning whose message has not come yet.
    reasoning: Vec<String>,
}

impl Told {
    /// The run of a sub-agent that this call began.
    fn under(parent: String) -> Self {
        let mut told = Self::default();
        told.pen.run("", "", &parent);
        told.parent = parent;
        told
    }

    fn event(&mut self, kind: &str, mut data: Value) {
        if kind != "assistant.message" {
            self.finish();
        }
        let pen = &mut self.pen;
        match kind {
            "session.start" | "session.resume" => {
                let directory = string(&data["context"]["cwd"]);
                pen.run(
                    directory,
                    string(&data["copilotVersion"]),
                    string(&data["sessionId"]),
                );
                pen.model(string(&data["selectedModel"]), None);
            }
            "session.model_change" => pen.model(string(&data["newModel"]), None),
            "system.message" => pen.instructions(string(&data["content"])),
            "system.notification" => {
                pen.user(
                    Speaker::Runtime,
                    take_text(&mut data, "content"),
                    Vec::new(),
                );
            }
            "user.message" => user(pen, data),
            "assistant.reasoning" => self.reasoning.push(take_text(&mut data, "content")),
            "assistant.message" => self.message(data),
            "assistant.usage" => {
                let usage = counted(&data);
                pen.usage(None, usage);
            }
            "tool.execution_complete" => answer(pen, data),
            "session.compaction_complete" => compacted(pen, &data),
            "session.truncation" => {
                let count = data["messagesRemovedDuringTruncation"].as_u64();
                pen.note(format!(
                    "session.truncation: {} messages were left out",
                    count.unwrap_or_default()
                ));
            }
            "session.shutdown" => pen.note(format!("session.shutdown: {}", data["modelMetrics"])),
            internal if INTERNAL.contains(&internal) => {}
            // A hook is handed what the events beside it say.
            "hook.start" => pen.note(format!("hook.start: {}", string(&data["hookType"]))),
            other => pen.note(format!("{other}: {data}")),
        }
    }

    fn message(&mut self, mut data: Value) {
        let id = take_text(&mut data, "messageId");
        // Only what says that it is a piece goes on: ids need not be unique.
        let is_piece = data["chunkCount"].as_u64().unwrap_or_default() > 1;
        if !(is_piece && self.going_on == id) {
            self.finish();
            self.response += 1;
        }
        self.going_on = if is_piece { id } else { String::new() };
        self.said.push_str(string(&data["content"]));
        let key = self.response.to_string();
        let (pen, key) = (&mut self.pen, Some(key.as_str()));
        pen.model(string(&data["model"]), None);
        let said = take_text(&mut data, "reasoningText");
        for thought in self.reasoning.drain(..).filter(|thought| *thought != said) {
            pen.mused(key, thought);
        }
        pen.mused(key, said);
        for mut call in take_list(&mut data, "toolRequests") {
            let arguments = fields::arguments(fields::take(&mut call, "arguments"));
            pen.called(
                key,
                string(&call["toolCallId"]),
                string(&call["name"]),
                arguments,
            );
        }
        let last = data["chunkIndex"].as_u64().unwrap_or_default() + 1;
        if !is_piece || data["chunkCount"].as_u64() <= Some(last) {
            self.finish();
        }
        let (pen, key) = (&mut self.pen, self.response.to_string());
        let key = Some(key.as_str());
        if let Some(output) = data["outputTokens"].as_u64().filter(|output| *output > 0) {
            let usage = Usage {
                output: Some(output),
                ..Usage::default()
            };
            pen.usage(key, usage);
        }
        pen.provider_request(key, string(&data["requestId"]));
    }

    /// Tells what the newest message says, once all of it is there.
    fn finish(&mut self) {
        let key = self.response.to_string();
        self.pen.said(Some(&key), &mem::take(&mut self.said));
        self.going_on.clear();
    }

    fn ended(mut self) -> Pen {
        self.finish();
        for thought in self.reasoning {
            self.pen.note(format!("assistant.reasoning: {thought}"));
        }
        self.pen
    }
}

/// A message: as it was sent, if that is recorded.
fn user(pen: &mut Pen, mut data: Value) {
    let typed = take_text(&mut data, "content");
    let sent = take_text(&mut data, "transformedContent");
    let (text, unsent) = match (sent.is_empty(), sent.contains(&typed)) {
        (true, _) => (typed, None),
        (false, true) => (sent, None),
        (false, false) => (sent, Some(typed)),
    };
    let mut attachments = Vec::new();
    let mut bare = Vec::new();
    for mut attachment in take_list(&mut data, "attachments") {
        let names = [
            &attachment["displayName"],
            &attachment["path"],
            &attachment["filePath"],
        ];
        let name = names
            .into_iter()
            .find_map(Value::as_str)
            .unwrap_or_default();
        let name = name.to_owned();
        let text = [
            take_text(&mut attachment, "text"),
            take_text(&mut attachment, "content"),
        ];
        match text.into_iter().find(|text| !text.is_empty()) {
            Some(text) => attachments.push(Attachment {
                name,
                media: "text/plain".to_owned(),
                text,
                clipped: None,
            }),
            None => bare.push(name),
        }
    }
    match string(&data["source"]) {
        "" | "user" => pen.typed(text, attachments),
        _ => pen.user(Speaker::Runtime, text, attachments),
    }
    if let Some(typed) = unsent {
        pen.note(format!("as it was typed: {typed}"));
    }
    if !bare.is_empty() {
        pen.note(format!("attached, without its text: {}", bare.join(", ")));
    }
}

fn answer(pen: &mut Pen, mut data: Value) {
    let id = take_text(&mut data, "toolCallId");
    let mut result = fields::take(&mut data, "result");
    let mut error = fields::take(&mut data, "error");
    let said = [
        fields::take(&mut result, "content"),
        fields::take(&mut error, "message"),
        if result.is_string() {
            result
        } else {
            error.clone()
        },
    ];
    let said = said
        .into_iter()
        .find(|said| said.is_string() || said.is_array());
    let content = text(said.unwrap_or_default());
    let status = match (data["success"].as_bool(), string(&error["code"])) {
        (Some(true), _) => Status::Ok,
        (_, "denied" | "rejected") => Status::Denied,
        (_, "timeout") => Status::Timeout,
        (_, _) => Status::Error,
    };
    pen.answered(&id, status, content);
}

/// Everything before reads as the summary from here on.
fn compacted(pen: &mut Pen, data: &Value) {
    let text = string(&data["summaryContent"]);
    if data["success"] == false || text.is_empty() {
        pen.note(format!("session.compaction_complete: {data}"));
        return;
    }
    let by_hand = data["trigger"] == "manual" || !string(&data["customInstructions"]).is_empty();
    pen.compacted(Compaction {
        text: text.to_owned(),
        origin: if by_hand { Origin::User } else { Origin::Auto },
        reason: format!("{} tokens", data["preCompactionTokens"]),
        keeps: None,
        again: Vec::new(),
    });
}

/// What was counted.
fn counted(data: &Value) -> Usage {
    Usage {
        input: data["inputTokens"].as_u64(),
        cached: data["cacheReadTokens"].as_u64(),
        cache_write: data["cacheWriteTokens"].as_u64(),
        output: data["outputTokens"].as_u64(),
        reasoning: data["reasoningTokens"].as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use crate::import::Format;
    use crate::import::told::{survives, told};

    fn check(events: &[(&str, &str)]) -> String {
        let lines = events.iter().map(|(kind, data)| {
            format!(r#"{{"type":"{kind}","data":{data},"id":"x","parentId":null}}"#)
        });
        let recording = lines.collect::<Vec<_>>().join("\n");
        survives("events.jsonl", Format::CopilotCli, &recording);
        told("events.jsonl", &recording)
    }

    #[test]
    fn events_are_told_and_sub_agents_are_runs_of_their_own() {
        insta::assert_snapshot!(check(&[
            ("session.start", r#"{"sessionId":"s","copilotVersion":"1.0","selectedModel":"m","context":{"cwd":"/w"}}"#),
            ("system.message", r#"{"content":"You act."}"#),
            ("user.message", r#"{"content":"Fix it.","transformedContent":"<now>Fix it.","attachments":[{"type":"file","displayName":"a.txt"},{"type":"selection","displayName":"b.txt","text":"b"}]}"#),
            ("assistant.turn_start", "{}"),
            ("assistant.reasoning", r#"{"content":"Hm."}"#),
            ("assistant.message", r#"{"messageId":"same","content":"Two.","reasoningText":"Hm.","outputTokens":12,"toolRequests":[{"toolCallId":"c1","name":"shell","arguments":"{\"command\":\"ls\"}"},{"toolCallId":"c2","name":"task","arguments":{"prompt":"Look."}}]}"#),
            ("tool.execution_complete", r#"{"toolCallId":"c1","success":false,"error":{"message":"Not allowed.","code":"denied"}}"#),
            ("system.message", r#"{"parentToolCallId":"c2","content":"You look."}"#),
            ("user.message", r#"{"parentToolCallId":"c2","content":"Look."}"#),
            ("assistant.message", r#"{"parentToolCallId":"c2","messageId":"same","content":"Seen."}"#),
            ("tool.execution_complete", r#"{"toolCallId":"c2","success":true,"result":{"content":"seen","detailedContent":"all of it"}}"#),
            ("assistant.message", r#"{"messageId":"same","content":"Do","chunkCount":2,"chunkIndex":0}"#),
            ("assistant.message", r#"{"messageId":"same","content":"ne.","chunkCount":2,"chunkIndex":1}"#),
            ("system.notification", r#"{"content":"An agent is done."}"#),
            ("abort", r#"{"reason":"user"}"#),
        ]), @r#"
        run copilot-cli 1.0 in "/w" session "s"
        setup m "You act."
        Task "<now>Fix it." [b.txt: b]
        note "attached, without its text: a.txt"
        Complete "Two." thought "Hm." c1:shell{"command":"ls"} c2:task{"prompt":"Look."} (- - - 12 -)
          result 6.1 denied "Not allowed."
          result 6.2 ok "seen"
        Complete "Done."
        Runtime "An agent is done."
        note "abort: {\"reason\":\"user\"}"
        run copilot-cli session "c2"
        setup unknown "You look."
        Task "Look."
        Complete "Seen."
        "#);
    }

    #[test]
    fn a_compaction_stands_for_all_before() {
        insta::assert_snapshot!(check(&[
            ("user.message", r#"{"content":"Fix it."}"#),
            ("assistant.message", r#"{"messageId":"a","content":"Half done."}"#),
            ("session.compaction_start", "{}"),
            ("session.compaction_complete", r#"{"success":false}"#),
            ("session.compaction_complete", r#"{"success":true,"trigger":"manual","preCompactionTokens":150000,"summaryContent":"Half was done."}"#),
            ("user.message", r#"{"content":"<transformed>","transformedContent":"Go on.","source":"skill-x"}"#),
            ("assistant.message", r#"{"messageId":"b","content":"Done."}"#),
            ("session.truncation", r#"{"messagesRemovedDuringTruncation":3}"#),
        ]), @r#"
        run copilot-cli
        setup unknown ""
        Task "Fix it."
        Complete "Half done."
        note "session.compaction_complete: {\"success\":false}"
        User e3–e5 "Half was done."
        Runtime "Go on."
        note "as it was typed: <transformed>"
        Complete "Done."
        note "session.truncation: 3 messages were left out"
        "#);
    }
}
