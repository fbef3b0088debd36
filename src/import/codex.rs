//! Codex: items of the Responses API, by the line, among duplicates of what was shown.
//!
//! A response ends with the first output or message after it, or where the tokens are counted. What
//! only the provider can read (encrypted reasoning, encrypted summaries) is left out; the readable
//! summaries of the reasoning stay.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::exchange::{Status, Usage};
use crate::import::Unread;
use crate::import::lines::{self, parts, string, take_list, take_text, text};
use crate::import::pen::{Compaction, Mark, Pen};
use crate::import::source::Source;
use crate::import::{is_put_in, typed};
use crate::overlay::Origin;
use crate::transcript::{Attachment, Speaker};
use crate::words;

/// How messages begin that the client wrote in the user's place.
const INJECTED: [&str; 10] = [
    "<environment_context>",
    "<user_instructions>",
    "<recommended_plugins>",
    "<permissions",
    "<INSTRUCTIONS>",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
    "# AGENTS.md",
];

/// How many bytes of what a person typed outlive a compaction that does not say what is kept: 20,000
/// tokens.
const KEPT: usize = 80_000;

pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let mut rollout = Rollout::default();
    let mut lines = source.lines();
    while let Some(line) = lines.next()? {
        rollout.line(line);
    }
    rollout.pen.skipped = lines.skipped();
    Ok(vec![rollout.pen])
}

#[derive(Default)]
struct Rollout {
    pen: Pen,
    model: String,
    window: Option<u64>,
    /// The sum of all tokens, by which a count that is told twice shows.
    counted: Option<Value>,
    /// Where messages stand, by their text.
    messages: HashMap<String, Mark>,
    /// Where messages of a person stand, and how many bytes they are.
    typed: Vec<(Mark, usize)>,
    searches: u32,
}

impl Rollout {
    fn line(&mut self, mut line: Value) {
        self.pen.at(string(&line["timestamp"]).parse().ok());
        let kind = take_text(&mut line, "type");
        let mut payload = line["payload"].take();
        match kind.as_str() {
            "session_meta" => self.meta(&mut payload),
            "turn_context" => {
                self.pen.run(string(&payload["cwd"]), "", "");
                self.model = take_text(&mut payload, "model");
                self.pen.model(&self.model, self.window);
            }
            "response_item" => self.item(payload),
            "compacted" => self.compacted(&mut payload),
            "event_msg" => self.event(&payload),
            // The oldest rollouts: the session, then bare items.
            "" => self.meta(&mut line),
            _ if payload.is_null() => {
                line["type"] = kind.into();
                self.item(line);
            }
            _ => {}
        }
    }

    fn meta(&mut self, meta: &mut Value) {
        let version = string(&meta["cli_version"]);
        self.pen
            .run(string(&meta["cwd"]), version, string(&meta["id"]));
        let instructions = take_text(&mut meta["base_instructions"], "text");
        if !instructions.is_empty() {
            self.pen.instructions(&instructions);
        }
    }

    fn item(&mut self, mut item: Value) {
        let id = string(&item["call_id"]).to_owned();
        let kind = take_text(&mut item, "type");
        match kind.as_str() {
            "message" => self.message(item),
            "reasoning" => {
                let parts = take_list(&mut item, "summary").into_iter();
                let parts = parts.chain(take_list(&mut item, "content"));
                for mut part in parts {
                    self.pen.mused(None, take_text(&mut part, "text"));
                }
            }
            "function_call" => {
                let arguments = take_text(&mut item, "arguments");
                self.pen.called(None, &id, string(&item["name"]), arguments);
            }
            "custom_tool_call" => {
                let arguments = json!({ "input": item["input"].take() }).to_string();
                self.pen.called(None, &id, string(&item["name"]), arguments);
            }
            "local_shell_call" => {
                let arguments = item["action"].to_string();
                self.pen.called(None, &id, "local_shell", arguments);
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                let (text, status) = output(item["output"].take());
                self.pen.answered(&id, status, text);
            }
            "agent_message" => {
                let text = readable(take_list(&mut item, "content"));
                self.pen.user(Speaker::Runtime, text, Vec::new());
            }
            // Calls that the provider runs itself record no output.
            kind if kind.ends_with("_call") => {
                self.searches += 1;
                let id = match id.as_str() {
                    "" => format!("{kind} {}", self.searches),
                    id => id.to_owned(),
                };
                let name = kind.trim_end_matches("_call");
                let action = &item["action"];
                let arguments = if action.is_null() {
                    "{}".to_owned()
                } else {
                    action.to_string()
                };
                self.pen.called(None, &id, name, arguments);
                if kind == "web_search_call" {
                    self.pen.answered(&id, Status::Ok, String::new());
                }
            }
            kind if kind.ends_with("_call_output") || kind.ends_with("_output") => {
                let (text, status) = output(item["output"].take());
                self.pen.answered(&id, status, text);
            }
            _ => {}
        }
    }

    fn message(&mut self, mut item: Value) {
        let role = take_text(&mut item, "role");
        let content = parts(item["content"].take());
        if role == "assistant" {
            return self.pen.said(None, &text(Value::Array(content)));
        }
        let mark = self.pen.mark();
        let (images, texts): (Vec<_>, Vec<_>) = content.into_iter().partition(is_image);
        let text = readable(texts);
        let attachments: Vec<Attachment> = images.iter().map(lines::attachment).collect();
        let put_in = role != "user";
        let is_typed = !put_in && !is_put_in(&text, &INJECTED);
        if is_typed {
            self.typed.push((mark, text.len()));
        }
        typed(&mut self.pen, put_in, &INJECTED, &text, attachments);
        self.messages.entry(text).or_insert(mark);
    }

    /// What the agent put in the place of its context: the messages that it keeps are shown again, those
    /// that are new follow the summary.
    fn compacted(&mut self, payload: &mut Value) {
        let message = take_text(payload, "message");
        let (mut again, mut new) = (Vec::new(), Vec::new());
        let mut sealed = false;
        let replaced = payload["replacement_history"].is_array();
        for mut item in take_list(payload, "replacement_history") {
            match string(&item["type"]) {
                "message" => {
                    let content = parts(item["content"].take());
                    let text = readable(content);
                    match self.messages.get(&text) {
                        Some(mark) => again.push(*mark),
                        None => new.push(text),
                    }
                }
                "compaction" | "context_compaction" | "compaction_summary" => sealed = true,
                _ => {}
            }
        }
        if !replaced {
            // The newest messages of the person are kept, as far as there is room for them.
            let mut room = KEPT;
            let newest = self.typed.iter().rev().take_while(|(_, bytes)| {
                let left = room.checked_sub(*bytes);
                room = left.unwrap_or_default();
                left.is_some()
            });
            again.extend(newest.map(|(mark, _)| *mark));
            again.reverse();
        }
        // The summary is among the new messages, with a word of the client's before it.
        let holds = |text: &String| !message.is_empty() && text.contains(&message);
        let place = new.iter().position(holds);
        let place = place.or_else(|| {
            let last = new.len().checked_sub(1);
            last.filter(|_| message.is_empty() && !sealed)
        });
        let text = match place {
            Some(place) => new.remove(place),
            None if message.is_empty() => words::SEALED_SUMMARY.to_owned(),
            None => message,
        };
        if sealed {
            self.pen
                .note("the summary of this compaction is encrypted: its text is not known");
        }
        self.pen.compacted(Compaction {
            text,
            origin: Origin::Auto,
            reason: "recorded by Codex".to_owned(),
            keeps: None,
            again,
        });
        for text in new {
            let mark = self.pen.mark();
            self.pen.user(Speaker::Runtime, text.clone(), Vec::new());
            self.messages.entry(text).or_insert(mark);
        }
    }

    fn event(&mut self, event: &Value) {
        match string(&event["type"]) {
            "token_count" => self.count(&event["info"]),
            "task_started" => self.window(&event["model_context_window"]),
            "turn_aborted" => self.pen.note("the person stopped the turn here"),
            "thread_rolled_back" => self.pen.note(format!(
                "the person took back {} turns here; they still read",
                event["num_turns"]
            )),
            _ => {}
        }
    }

    /// The tokens of the newest response, which is over.
    fn count(&mut self, info: &Value) {
        self.window(&info["model_context_window"]);
        let total = &info["total_token_usage"];
        if total.is_null() || self.counted.as_ref() == Some(total) {
            return;
        }
        self.counted = Some(total.clone());
        let last = &info["last_token_usage"];
        let count = |name: &str| last[name].as_u64();
        self.pen.usage(
            None,
            Usage {
                input: count("input_tokens"),
                cached: count("cached_input_tokens"),
                cache_write: None,
                output: count("output_tokens"),
                reasoning: count("reasoning_output_tokens"),
            },
        );
        self.pen.over();
    }

    fn window(&mut self, window: &Value) {
        if let Some(window) = window.as_u64() {
            self.window = Some(window);
            self.pen.model(&self.model, Some(window));
        }
    }
}

fn is_image(part: &Value) -> bool {
    string(&part["type"]) == "input_image"
}

/// The texts of parts; those that only the provider can read leave a word.
fn readable(parts: Vec<Value>) -> String {
    let parts = parts.into_iter().map(|part| {
        if part["encrypted_content"].is_string() {
            return Value::String("[encrypted]".to_owned());
        }
        part
    });
    text(Value::Array(parts.collect()))
}

/// The text of an output, as the model read it, and how the call went.
fn output(mut output: Value) -> (String, Status) {
    // Between the oldest form and the newest it was an object.
    let inner = output.get_mut("content").map(Value::take);
    let text = text(inner.unwrap_or(output));
    let inner: Option<Value> = text
        .starts_with('{')
        .then(|| serde_json::from_str(&text).ok())
        .flatten();
    let exit = inner.and_then(|inner| inner["metadata"]["exit_code"].as_i64());
    let head: &str = crate::tools::clip::first(&text, 200);
    let worded = ["exited with code ", "exit code: ", "Exit code: "]
        .iter()
        .find_map(|words| head.split_once(words))
        .map(|(_, code)| i64::from(!code.starts_with('0')));
    let failed = exit.or(worded).unwrap_or_default() != 0
        || head.starts_with("failed in sandbox")
        || head.starts_with("execution error");
    let status = match failed {
        _ if head.starts_with("aborted") => Status::Cancelled,
        true => Status::Error,
        false => Status::Ok,
    };
    (text, status)
}
