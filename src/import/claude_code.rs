//! Claude Code: one record a line, usually one block of a message.
//!
//! Records form a tree; read is the branch that ends last. A result whose call is on it is on it as
//! well, wherever its record stands: calls that ran side by side fork the tree. A file may hold several
//! conversations (`/clear` begins another): each is a run. System text and specs of tools are not
//! recorded; signatures, and what `toolUseResult` repeats, are left out; messages of sub-agents are
//! counted.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::exchange::{Ending, Status, Usage};
use crate::import::Unread;
use crate::import::lines::{parts, string, take_text, text};
use crate::import::pen::{Compaction, Pen};
use crate::import::source::Source;
use crate::import::tree::Tree;
use crate::import::{is_put_in, lines, typed};
use crate::overlay::Origin;
use crate::transcript::{At, Attachment, Speaker};

/// A record that may be part of a conversation.
struct Record {
    at: Option<At>,
    cwd: String,
    version: String,
    session: String,
    kind: Kind,
}

enum Kind {
    /// A message in the user's place, and whether the client wrote it.
    User(Vec<Value>, bool),
    Assistant(Box<Assistant>),
    /// What stands for the conversation so far.
    Summary(String),
    /// Who asked for the compaction whose summary comes next, and how large the context was.
    Boundary(Origin, u64),
    /// A text that the client put in.
    Injected(String),
    /// Something on the way.
    Other,
}

/// A piece of a response.
struct Assistant {
    id: String,
    model: String,
    stop: Option<String>,
    usage: Usage,
    blocks: Vec<Value>,
    request: String,
    /// The client wrote it, not a model: an error, as a rule.
    synthetic: bool,
}

pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let mut tree = Tree::default();
    let mut records: Vec<Record> = Vec::new();
    let mut aside = 0_u64;
    let mut lines = source.lines();
    while let Some(mut line) = lines.next()? {
        if line["isSidechain"] == true {
            aside += u64::from(line["message"].is_object());
            continue;
        }
        let Some(record) = record(&mut line) else {
            continue;
        };
        let before = ["parentUuid", "logicalParentUuid"];
        let before = before.into_iter().find_map(|name| line[name].as_str());
        match line["uuid"].as_str() {
            Some(id) => tree.add(id, before),
            None => tree.add_next(),
        }
        records.push(record);
    }
    let skipped = lines.skipped();
    drop(lines);
    let live = live(&tree, &records);
    let mut conversations: BTreeMap<usize, Conversation> = BTreeMap::new();
    for (place, record) in records.into_iter().enumerate() {
        let conversation = conversations.entry(tree.root(place)).or_default();
        if live[place] {
            conversation.live.push(record);
        } else {
            conversation.off += u64::from(record.is_message());
        }
    }
    let mut pens = Vec::new();
    let mut unanswered = 0_u64;
    for conversation in conversations.into_values() {
        let pen = conversation.pen();
        if pen.has_responses() {
            pens.push(pen);
        } else {
            unanswered += u64::from(pen.holds_a_run());
        }
    }
    if let Some(pen) = pens.first_mut() {
        pen.skipped = skipped;
        if aside > 0 {
            pen.note(format!("records of sub-agents, left out: {aside}"));
        }
        if unanswered > 0 {
            pen.note(format!(
                "conversations without a reply, left out: {unanswered}"
            ));
        }
    }
    Ok(pens)
}

/// The records that stand on one root.
#[derive(Default)]
struct Conversation {
    /// Those on the branch that is read, oldest first.
    live: Vec<Record>,
    /// How many messages stand on others.
    off: u64,
}

impl Conversation {
    fn pen(self) -> Pen {
        let mut writer = Writer::default();
        let mut records = self.live.into_iter().peekable();
        while let Some(record) = records.next() {
            writer.expands = records.peek().is_some_and(Record::is_put_in);
            writer.write(record);
        }
        let mut pen = writer.pen;
        if self.off > 0 {
            pen.note(format!(
                "records of branches that were given up, left out: {}",
                self.off
            ));
        }
        pen
    }
}

/// Which records are on the branch that ends last, of each conversation.
fn live(tree: &Tree, records: &[Record]) -> Vec<bool> {
    let mut live = vec![false; records.len()];
    let mut done = HashSet::new();
    for (place, record) in records.iter().enumerate().rev() {
        if record.is_message() && done.insert(tree.root(place)) {
            tree.mark(place, &mut live);
        }
    }
    // Pieces of a response that is on it, then results of its calls.
    let mut ids = HashSet::new();
    for (record, _) in records.iter().zip(&live).filter(|(_, live)| **live) {
        if let Kind::Assistant(assistant) = &record.kind {
            ids.insert(assistant.id.as_str());
        }
    }
    let mut calls = HashSet::new();
    for (place, record) in records.iter().enumerate() {
        if let Kind::Assistant(assistant) = &record.kind {
            live[place] |= ids.contains(assistant.id.as_str());
            if live[place] {
                calls.extend(
                    assistant
                        .blocks
                        .iter()
                        .filter_map(|block| block["id"].as_str()),
                );
            }
        }
    }
    for (place, record) in records.iter().enumerate() {
        if let Kind::User(blocks, _) = &record.kind {
            let answers = |block: &Value| {
                block["tool_use_id"]
                    .as_str()
                    .is_some_and(|id| calls.contains(id))
            };
            live[place] |= !blocks.is_empty() && blocks.iter().all(answers);
        }
    }
    live
}

impl Record {
    /// Whether it is a message that the client wrote, such as what a command of the person stands for.
    fn is_put_in(&self) -> bool {
        matches!(self.kind, Kind::User(_, true))
    }

    /// Whether it is a message, and not only something on the way to one.
    fn is_message(&self) -> bool {
        match self.kind {
            Kind::User(..) | Kind::Assistant(_) | Kind::Summary(_) => true,
            Kind::Boundary(..) | Kind::Injected(_) | Kind::Other => false,
        }
    }
}

/// The record of a line; `None` if it has no place among the messages.
fn record(line: &mut Value) -> Option<Record> {
    let kind = string(&line["type"]).to_owned();
    let is = |flag: &str| line[flag] == true;
    let (meta, sums, api_error) = (
        is("isMeta"),
        is("isCompactSummary"),
        is("isApiErrorMessage"),
    );
    let request = string(&line["requestId"]).to_owned();
    let kind = match kind.as_str() {
        "user" => {
            let mut message = line["message"].take();
            let blocks = parts(message["content"].take());
            if sums {
                Kind::Summary(text(Value::Array(blocks)))
            } else {
                Kind::User(blocks, meta)
            }
        }
        "assistant" => Kind::Assistant(Box::new(assistant(
            line["message"].take(),
            request,
            api_error,
        ))),
        "system" if line["subtype"] == "compact_boundary" => {
            let data = &line["compactMetadata"];
            let asked = data["trigger"] == "manual";
            let origin = if asked { Origin::User } else { Origin::Auto };
            Kind::Boundary(origin, data["preTokens"].as_u64().unwrap_or_default())
        }
        "attachment" => injected(line["attachment"].take()).map_or(Kind::Other, Kind::Injected),
        // Without an id of its own nothing hangs on it.
        _ if line["uuid"].is_string() => Kind::Other,
        _ => return None,
    };
    Some(Record {
        at: string(&line["timestamp"]).parse().ok(),
        cwd: take_text(line, "cwd"),
        version: take_text(line, "version"),
        session: take_text(line, "sessionId"),
        kind,
    })
}

fn assistant(mut message: Value, request: String, api_error: bool) -> Assistant {
    let usage = &message["usage"];
    let count = |name: &str| usage[name].as_u64();
    let (cached, cache_write) = (
        count("cache_read_input_tokens"),
        count("cache_creation_input_tokens"),
    );
    let input = count("input_tokens");
    let usage = Usage {
        input: input.map(|input| {
            let cached = cached.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
            input.saturating_add(cached)
        }),
        cached,
        cache_write,
        output: count("output_tokens"),
        reasoning: None,
    };
    let model = take_text(&mut message, "model");
    let blocks = parts(message["content"].take());
    Assistant {
        id: take_text(&mut message, "id"),
        synthetic: api_error || model == "<synthetic>",
        model,
        stop: message["stop_reason"].as_str().map(str::to_owned),
        usage,
        blocks,
        request,
    }
}

/// The text that an attachment puts before the model; `None` if it shows something to the person only.
fn injected(mut attachment: Value) -> Option<String> {
    let kind = take_text(&mut attachment, "type");
    let event = string(&attachment["hookEvent"]).to_owned();
    match kind.as_str() {
        "hook_system_message" | "command_permissions" => return None,
        // Of a hook that went well only these events are told.
        "hook_success" if !matches!(event.as_str(), "SessionStart" | "UserPromptSubmit") => {
            return None;
        }
        _ => {}
    }
    let mut texts = Vec::new();
    for member in [
        "filename",
        "path",
        "content",
        "prompt",
        "snippet",
        "addedLines",
        "addedBlocks",
        "addedNames",
        "newDate",
        "planFilePath",
        "stderr",
    ] {
        if let Some(value) = attachment.get_mut(member).map(Value::take) {
            texts.push(text(value));
        }
    }
    texts.retain(|text| !text.is_empty());
    (!texts.is_empty()).then(|| format!("[{kind}]\n{}", texts.join("\n")))
}

/// Tells a pen one record after the other.
#[derive(Default)]
struct Writer {
    pen: Pen,
    boundary: Option<(Origin, u64)>,
    /// The client wrote the next message: a command stands for it.
    expands: bool,
}

impl Writer {
    fn write(&mut self, record: Record) {
        let pen = &mut self.pen;
        pen.at(record.at);
        pen.run(&record.cwd, &record.version, &record.session);
        match record.kind {
            Kind::User(blocks, meta) => user(pen, blocks, meta, self.expands),
            Kind::Assistant(assistant) => said(pen, *assistant),
            Kind::Injected(text) => pen.user(Speaker::Runtime, text, Vec::new()),
            Kind::Boundary(origin, tokens) => self.boundary = Some((origin, tokens)),
            Kind::Summary(text) => {
                let (origin, tokens) = self.boundary.take().unwrap_or((Origin::Auto, 0));
                let by = match origin {
                    Origin::User => "asked for by a person",
                    Origin::Auto | Origin::Micro | Origin::Tool | Origin::Recovery => "automatic",
                };
                let reason = match tokens {
                    0 => format!("recorded by Claude Code: {by}"),
                    _ => format!("recorded by Claude Code: {by}, at {tokens} tokens"),
                };
                pen.compacted(Compaction {
                    text,
                    origin,
                    reason,
                    keeps: None,
                    again: Vec::new(),
                });
            }
            Kind::Other => {}
        }
    }
}

/// How texts begin that the client wrote in the user's place.
const INJECTED: [&str; 16] = [
    "<task-notification>",
    "<local-command-",
    "<command-name>",
    "<command-message>",
    "<command-args>",
    "<system-reminder>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<user-prompt-submit-hook>",
    "<ide_",
    "<teammate-message",
    "Caveat: The messages below were generated",
    "Stop hook feedback:",
    "[Request interrupted by user",
    "Base directory for this skill:",
];

/// How the result of a call begins that the person did not allow.
const REFUSED: &str = "The user doesn't want to";

fn user(pen: &mut Pen, blocks: Vec<Value>, meta: bool, expands: bool) {
    let mut attachments: Vec<Attachment> = Vec::new();
    let mut said: Vec<String> = Vec::new();
    for mut block in blocks {
        match string(&block["type"]) {
            "tool_result" => {
                let failed = block["is_error"] == true;
                let content = text(block["content"].take());
                let status = match failed {
                    true if content.starts_with(REFUSED) => Status::Denied,
                    true => Status::Error,
                    false => Status::Ok,
                };
                pen.answered(&take_text(&mut block, "tool_use_id"), status, content);
            }
            "text" => said.push(take_text(&mut block, "text")),
            _ => attachments.push(lines::attachment(&block)),
        }
    }
    // Texts of one kind are one message.
    let is_command = said
        .first()
        .is_some_and(|text| text.starts_with("<command-"));
    // A command that stands for a message is what the person typed; others the client carries out.
    let put_in: &[&str] = if is_command && expands {
        &[]
    } else {
        &INJECTED
    };
    let injected = |text: &String| is_put_in(text, put_in);
    let mut messages = said
        .chunk_by(|one, next| injected(one) == injected(next))
        .map(|texts| texts.join("\n\n"))
        .peekable();
    if messages.peek().is_none() {
        return typed(pen, meta, put_in, "", attachments);
    }
    while let Some(text) = messages.next() {
        let last = messages.peek().is_none();
        let beside = if last {
            std::mem::take(&mut attachments)
        } else {
            Vec::new()
        };
        typed(pen, meta, put_in, &text, beside);
    }
}

fn said(pen: &mut Pen, assistant: Assistant) {
    let Assistant {
        id,
        model,
        stop,
        usage,
        blocks,
        request,
        synthetic,
    } = assistant;
    if synthetic {
        let text = text(Value::Array(blocks));
        return pen.note(format!("Claude Code said, not the model: {text}"));
    }
    let key = Some(id.as_str()).filter(|id| !id.is_empty());
    pen.model(&model, None);
    for mut block in blocks {
        match string(&block["type"]) {
            "text" => pen.said(key, string(&block["text"])),
            "thinking" => pen.mused(key, take_text(&mut block, "thinking")),
            kind if kind.ends_with("tool_use") => {
                let arguments = block["input"].to_string();
                pen.called(key, string(&block["id"]), string(&block["name"]), arguments);
            }
            // What the provider's own tools found.
            kind if kind.ends_with("tool_result") => {
                let content = text(block["content"].take());
                pen.answered(string(&block["tool_use_id"]), Status::Ok, content);
            }
            _ => {}
        }
    }
    pen.usage(key, usage);
    pen.provider_request(key, &request);
    if let Some(stop) = stop {
        let ending = match stop.as_str() {
            "max_tokens" => Ending::Cut,
            "refusal" => Ending::Refused,
            _ => Ending::Complete,
        };
        pen.ending(key, ending, Some(&stop));
    }
}
