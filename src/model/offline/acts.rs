//! Calls of the tools that are offered, judged by their names and what they take. Where one is
//! missing, the shell stands in, or it is gone without.

use serde_json::{Value, json};

use crate::exchange::ToolCall;
use crate::model::Reply;
use crate::model::offline::quote;
use crate::model::offline::read::Offer;

/// How long a test may run with a try in it, in milliseconds: a try may well run for ever.
const TRY_MS: u64 = 30_000;

/// A reply in the making.
#[derive(Clone, Debug)]
pub(super) struct Acts<'a> {
    offers: &'a [Offer],
    text: String,
    calls: Vec<(&'static str, Value)>,
}

impl<'a> Acts<'a> {
    pub(super) fn new(offers: &'a [Offer]) -> Self {
        Self {
            offers,
            text: String::new(),
            calls: Vec::new(),
        }
    }

    /// A tool of this name that takes this argument.
    pub(super) fn offer(&self, name: &str, argument: &str) -> Option<&'a Offer> {
        let mut offers = self.offers.iter();
        offers.find(|offer| offer.name == name && offer.properties.get(argument).is_some())
    }

    pub(super) fn has_shell(&self) -> bool {
        self.offer("Bash", "command").is_some()
    }

    pub(super) fn has_edit(&self) -> bool {
        self.offer("Edit", "edits").is_some()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a line.
    pub(super) fn say(mut self, line: impl AsRef<str>) -> Self {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line.as_ref());
        self
    }

    fn call(mut self, name: &'static str, arguments: Value) -> Self {
        self.calls.push((name, arguments));
        self
    }

    fn shell(self, command: &str) -> Self {
        if self.has_shell() {
            self.call("Bash", json!({"command": command}))
        } else {
            self
        }
    }

    /// Lists the files; with the shell if the tool for it is missing or did not do.
    pub(super) fn list(self, with_shell: bool) -> Self {
        if self.offer("Glob", "pattern").is_some() && !with_shell {
            return self.call("Glob", json!({"pattern": "**/*"}));
        }
        self.shell("find . -type f -not -path '*/.git/*' | LC_ALL=C sort | head -n 500")
    }

    /// Looks for any of these words in the files that these patterns name.
    pub(super) fn search(self, words: &[&str], files: &[String]) -> Self {
        let pattern = words
            .iter()
            .map(|word| regex::escape(word))
            .collect::<Vec<_>>()
            .join("|");
        let Some(offer) = self.offer("Grep", "pattern") else {
            let pattern = quote::quoted(&pattern);
            // Patterns of files are no more than letters, and the shell is to expand them.
            let files = files.join(" ");
            return self.shell(&format!(
                "grep -niE {pattern} {files} /dev/null | head -n 100"
            ));
        };
        let takes = |name: &str| offer.properties.get(name);
        let mut arguments = json!({"pattern": pattern});
        let glob = match files {
            [] => None,
            [one] => Some(one.clone()),
            [..] => Some(format!("{{{}}}", files.join(","))),
        };
        if let (Some(glob), Some(schema)) = (glob, takes("glob")) {
            let list = schema.to_string().contains("\"array\"");
            arguments["glob"] = if list { json!([glob]) } else { json!(glob) };
        }
        if takes("case_insensitive").is_some() {
            arguments["case_insensitive"] = json!(true);
        }
        self.call("Grep", arguments)
    }

    /// Reads a file: whole, or so many lines of it.
    pub(super) fn read(self, path: &str, lines: Option<u64>) -> Self {
        match (self.offer("Read", "path"), lines) {
            (Some(offer), Some(lines)) if offer.properties.get("limit").is_some() => {
                self.call("Read", json!({"path": path, "limit": lines}))
            }
            (Some(_), _) => self.call("Read", json!({"path": path})),
            (None, _) => self.shell(&quote::cat(path)),
        }
    }

    /// Runs the test, for as long as the tool lets it run.
    pub(super) fn test(self, command: &str) -> Self {
        self.call("Bash", json!({"command": command}))
    }

    /// Runs the test with a try in it.
    pub(super) fn test_try(self, command: &str) -> Self {
        let Some(offer) = self.offer("Bash", "command") else {
            return self;
        };
        let mut arguments = json!({"command": command});
        if offer.properties.get("timeout_ms").is_some() {
            arguments["timeout_ms"] = json!(TRY_MS);
        }
        self.call("Bash", arguments)
    }

    /// Makes these edits, if there are any.
    pub(super) fn edit(self, path: &str, edits: &[Value]) -> Self {
        if edits.is_empty() {
            return self;
        }
        self.call("Edit", json!({"path": path, "edits": edits}))
    }

    pub(super) fn load_skill(self, name: &str) -> Self {
        self.call("LoadSkill", json!({"name": name}))
    }

    /// Asks for a compaction, if that can be asked for.
    pub(super) fn compact(self, focus: &str) -> Self {
        if self.offer("Compact", "focus").is_some() {
            self.call("Compact", json!({"focus": focus}))
        } else {
            self
        }
    }

    /// Writes the todo list, if there is one: items in order, of which the first so many are done
    /// and the next one is being worked on.
    pub(super) fn todo(self, items: &[String], done: usize) -> Self {
        if self.offer("TodoWrite", "todos").is_none() {
            return self;
        }
        let todos: Vec<Value> = items
            .iter()
            .enumerate()
            .map(|(place, item)| {
                let status = match place.cmp(&done) {
                    std::cmp::Ordering::Less => "completed",
                    std::cmp::Ordering::Equal => "in_progress",
                    std::cmp::Ordering::Greater => "pending",
                };
                json!({"content": item, "status": status})
            })
            .collect();
        self.call("TodoWrite", json!({"todos": todos}))
    }

    /// The reply.
    pub(super) fn reply(self) -> Reply {
        let finish = if self.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        let call = |(name, arguments): (&str, Value)| ToolCall {
            provider_id: None,
            name: name.to_owned(),
            arguments: arguments.to_string(),
            extra: None,
        };
        Reply {
            text: self.text,
            calls: self.calls.into_iter().map(call).collect(),
            finish: Some(finish.to_owned()),
            ..Reply::default()
        }
    }
}
