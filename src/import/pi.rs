//! pi: messages by the line, of the user, the assistant and its tools.
//!
//! Newer sessions name the entry before each: read is the branch that ends last. The system text is not
//! recorded, nor are specs of tools; signatures are left out.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::exchange::{Ending, Status, Usage};
use crate::import::Unread;
use crate::import::lines::{self, parts, string, take_list, take_text, text};
use crate::import::pen::{Compaction, Mark, Pen};
use crate::import::source::Source;
use crate::import::tree::Tree;
use crate::overlay::Origin;
use crate::transcript::Speaker;

/// The name of the first entry among the others.
const SESSION: &str = "session";

pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let mut tree = Tree::default();
    let mut entries = Vec::new();
    let mut lines = source.lines();
    let mut lost = 0;
    while let Some(line) = lines.next()? {
        // Places are those of the file: a line that cannot be read has one as well.
        for _ in lost..lines.skipped() {
            if entries.is_empty() {
                tree.add(SESSION, None);
            } else {
                tree.add_next();
            }
            entries.push(Value::Null);
        }
        lost = lines.skipped();
        match (line["id"].as_str(), line.get("parentId")) {
            _ if entries.is_empty() => tree.add(SESSION, None),
            // What stands behind nothing stands behind the session.
            (Some(id), Some(before)) => tree.add(id, Some(before.as_str().unwrap_or(SESSION))),
            _ => tree.add_next(),
        }
        entries.push(line);
    }
    let skipped = lines.skipped();
    drop(lines);
    let mut live = vec![false; entries.len()];
    if let Some(leaf) = entries.len().checked_sub(1) {
        tree.mark(leaf, &mut live);
    }
    let mut session = Session::default();
    let mut off = 0_u64;
    for (place, entry) in entries.into_iter().enumerate() {
        if live[place] {
            session.entry(place, entry);
        } else {
            off += u64::from(entry["message"].is_object());
            session.marks.push(session.pen.mark());
        }
    }
    let mut pen = session.pen;
    pen.skipped = skipped;
    if off > 0 {
        pen.note(format!(
            "messages of branches that were given up, left out: {off}"
        ));
    }
    Ok(vec![pen])
}

#[derive(Default)]
struct Session {
    pen: Pen,
    /// Where each entry begins, by its place in the file and by its id.
    marks: Vec<Mark>,
    ids: HashMap<String, Mark>,
    /// Where the newest response begins.
    response: Option<Mark>,
}

impl Session {
    fn entry(&mut self, place: usize, mut entry: Value) {
        let mut mark = self.pen.mark();
        let kind = take_text(&mut entry, "type");
        // A session that branched off another has older entries than itself.
        if kind != "session" {
            self.pen.at(string(&entry["timestamp"]).parse().ok());
        }
        match kind.as_str() {
            "session" => {
                let (cwd, id) = (string(&entry["cwd"]), string(&entry["id"]));
                self.pen.run(cwd, "", id);
                self.pen.model(string(&entry["modelId"]), None);
            }
            "model_change" => self.pen.model(string(&entry["modelId"]), None),
            "message" => {
                // A result belongs where its response is.
                if entry["message"]["role"] == "toolResult" {
                    mark = self.response.unwrap_or(mark);
                }
                self.message(&place.to_string(), entry["message"].take());
            }
            "compaction" => self.compacted(&mut entry),
            // What is told of a branch that was left, and what extensions say.
            "branch_summary" => {
                let text = take_text(&mut entry, "summary");
                self.pen.user(Speaker::Runtime, text, Vec::new());
            }
            "custom_message" => {
                let text = text(entry["content"].take());
                self.pen.user(Speaker::Runtime, text, Vec::new());
            }
            _ => {}
        }
        self.marks.push(mark);
        if let Some(id) = entry["id"].as_str() {
            self.ids.insert(id.to_owned(), mark);
        }
    }

    fn message(&mut self, key: &str, mut message: Value) {
        let pen = &mut self.pen;
        let role = take_text(&mut message, "role");
        match role.as_str() {
            "user" => {
                let content = parts(message["content"].take());
                let is_image = |part: &Value| string(&part["type"]) == "image";
                let (images, texts): (Vec<_>, Vec<_>) = content.into_iter().partition(is_image);
                let images = images.iter().map(lines::attachment).collect();
                pen.typed(text(Value::Array(texts)), images);
            }
            "assistant" => {
                self.response = Some(pen.mark());
                said(pen, key, message);
            }
            "toolResult" => {
                let failed = message["isError"] == true;
                let status = if failed { Status::Error } else { Status::Ok };
                let content = text(message["content"].take());
                pen.answered(string(&message["toolCallId"]), status, content);
            }
            "bashExecution" if message["excludeFromContext"] != true => {
                let (command, output) = (string(&message["command"]), string(&message["output"]));
                let mut text = format!("Ran `{command}`\n```\n{output}\n```");
                let code = message["exitCode"].as_i64();
                if let Some(code) = code.filter(|code| *code != 0) {
                    write!(text, "\n\nCommand exited with code {code}").ok();
                }
                pen.user(Speaker::Runtime, text, Vec::new());
            }
            "custom" | "branchSummary" | "compactionSummary" => {
                let content = [message["content"].take(), message["summary"].take()];
                for content in content {
                    pen.user(Speaker::Runtime, text(content), Vec::new());
                }
            }
            _ => {}
        }
    }

    fn compacted(&mut self, entry: &mut Value) {
        let by_place = entry["firstKeptEntryIndex"].as_u64();
        let by_place = by_place.and_then(|place| self.marks.get(usize::try_from(place).ok()?));
        let by_id = entry["firstKeptEntryId"].as_str();
        let by_id = by_id.and_then(|id| self.ids.get(id));
        let reason = match entry["tokensBefore"].as_u64() {
            Some(tokens) => format!("recorded by pi, at {tokens} tokens"),
            None => "recorded by pi".to_owned(),
        };
        self.pen.compacted(Compaction {
            text: take_text(entry, "summary"),
            // Whether a person asked for it is not recorded.
            origin: Origin::Auto,
            reason,
            keeps: by_id.or(by_place).copied(),
            again: Vec::new(),
        });
    }
}

fn said(pen: &mut Pen, key: &str, mut message: Value) {
    let key = Some(key);
    pen.model(string(&message["model"]), None);
    for mut block in take_list(&mut message, "content") {
        match string(&block["type"]) {
            "text" => pen.said(key, string(&block["text"])),
            "thinking" => pen.mused(key, take_text(&mut block, "thinking")),
            "toolCall" => {
                let arguments = block["arguments"].to_string();
                pen.called(key, string(&block["id"]), string(&block["name"]), arguments);
            }
            _ => {}
        }
    }
    let counted = &message["usage"];
    let count = |name: &str| counted[name].as_u64();
    let (cached, cache_write) = (count("cacheRead"), count("cacheWrite"));
    let usage = Usage {
        input: count("input").map(|input| {
            let cached = cached.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
            input.saturating_add(cached)
        }),
        cached,
        cache_write,
        output: count("output"),
        reasoning: None,
    };
    // A request that was stopped before anything came was not counted.
    if usage.input.unwrap_or(0) > 0 {
        pen.usage(key, usage);
    }
    let stop = string(&message["stopReason"]);
    let ending = match stop {
        "length" => Ending::Cut,
        _ => Ending::Complete,
    };
    pen.ending(key, ending, Some(stop).filter(|stop| !stop.is_empty()));
    if let Some(error) = message["errorMessage"].as_str() {
        pen.note(format!("the request failed: {error}"));
    }
}
