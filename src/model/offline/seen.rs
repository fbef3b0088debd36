//! What the visible messages say: the only memory there is.
//!
//! The script counts on nothing but what it is sent. What it must not forget it says in lines that
//! it can read again, in its own words or in a summary: `Test:`, `Suspects:`, `Next in`, `Try 8 in`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::offline::change::{Change, Try};
use crate::model::offline::quote;
use crate::model::offline::read::{Made, Message};
use crate::words;

/// The conversation, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// What the user wants: the newest message that is the user's own.
    pub(super) task: String,
    /// The last message, if it is the user's or the runtime's.
    pub(super) asked: Option<String>,
    /// Everything of ours since the task.
    pub(super) steps: Vec<Step>,
}

/// One thing in the conversation.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Words of ours, or a summary of them.
    Said { text: String, summary: bool },
    /// A call and its result.
    Called(Called),
}

/// A call and what it gave.
#[derive(Clone, Debug)]
pub(super) struct Called {
    pub(super) name: String,
    pub(super) arguments: Value,
    /// The result as it reads; empty while there is none.
    pub(super) result: String,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It did what it was asked to.
    Good,
    /// It did not.
    Bad,
}

impl Called {
    pub(super) fn argument(&self, name: &str) -> &str {
        self.arguments[name].as_str().unwrap_or_default()
    }

    /// Whether the result was put away.
    pub(super) fn is_hidden(&self) -> bool {
        self.result.starts_with("[Previous: used ") || self.result.starts_with("[compacted] ")
    }

    pub(super) fn fate(&self) -> Fate {
        let text = self.result.trim_end();
        let last = text.lines().next_back().unwrap_or_default();
        let good = if self.is_hidden() {
            let words = ["error", "timeout", "denied", "interrupted", "cancelled"];
            let told = |word: &str| {
                text.contains(&format!("({word},")) || text.contains(&format!(": {word} "))
            };
            !words.iter().any(|word| told(word))
        } else if text.is_empty() || is_unrun(text) {
            false
        } else if self.name == "Bash" {
            !(last.starts_with("[exit ")
                || last.starts_with("[ended ")
                || last.starts_with("[cancelled"))
        } else if self.name == "Edit" {
            text.starts_with("Edited ")
        } else {
            true
        };
        if good { Fate::Good } else { Fate::Bad }
    }

    /// Whether it was ended because it took too long.
    pub(super) fn is_endless(&self) -> bool {
        let last = self.result.trim_end().lines().next_back();
        last.is_some_and(|last| last.starts_with("[ended after "))
    }

    /// The text of the file that this call shows, if it does.
    fn shows(&self) -> Option<(Cow<'_, str>, String)> {
        let path = self.reads()?;
        if self.is_hidden() || self.fate() == Fate::Bad {
            return None;
        }
        if self.name == "Bash" {
            return Some((path, self.result.clone()));
        }
        let mut text = String::new();
        for (line, number) in self.result.lines().zip(1_usize..) {
            let numbered = line
                .split_once('\t')
                .filter(|(digits, _)| digits.trim().parse() == Ok(number));
            match numbered {
                Some((_, line)) => {
                    text.push_str(line);
                    text.push('\n');
                }
                None if number > 1 && line.starts_with("[lines ") => break,
                None => return None,
            }
        }
        (!text.is_empty()).then_some((path, text))
    }

    /// The file that this call was to show.
    pub(super) fn reads(&self) -> Option<Cow<'_, str>> {
        match self.name.as_str() {
            "Read" => self.arguments["path"].as_str().map(Cow::Borrowed),
            "Bash" => quote::shown(self.argument("command")).map(Cow::Owned),
            _ => None,
        }
    }

    pub(super) fn is_listing(&self) -> bool {
        self.name == "Glob"
            || (self.name == "Bash" && self.argument("command").starts_with("find "))
    }

    pub(super) fn is_search(&self) -> bool {
        self.name == "Grep"
            || (self.name == "Bash" && self.argument("command").starts_with("grep "))
    }
}

/// Whether a result says that the call did not run or nobody knows.
fn is_unrun(text: &str) -> bool {
    text == words::INTERRUPTED
        || text == words::NO_HANDS
        || text == words::NEIGHBOUR_MALFORMED
        || [
            "[undertext]",
            "not run: ",
            "cancelled: ",
            "The arguments do not fit",
        ]
        .iter()
        .any(|start| text.starts_with(start))
}

impl Seen {
    /// Reads the messages.
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut seen = Self::default();
        let mut open: BTreeMap<&str, usize> = BTreeMap::new();
        for message in messages {
            seen.asked = None;
            match message {
                Message::User(text) => seen.hear(text),
                Message::Own { text, calls } => {
                    if !text.is_empty() && text != words::UNDERSTOOD {
                        seen.say(text, false);
                    }
                    for Made {
                        id,
                        name,
                        arguments,
                    } in calls
                    {
                        open.insert(id, seen.steps.len());
                        seen.steps.push(Step::Called(Called {
                            name: name.clone(),
                            arguments: arguments.clone(),
                            result: String::new(),
                        }));
                    }
                }
                Message::Result { id, text } => {
                    let place = open.get(id.as_str()).copied();
                    let step = place.and_then(|place| seen.steps.get_mut(place));
                    if let Some(Step::Called(called)) = step {
                        called.result.clone_from(text);
                    }
                }
            }
        }
        seen
    }

    fn say(&mut self, text: &str, summary: bool) {
        let text = text.to_owned();
        self.steps.push(Step::Said { text, summary });
    }

    /// Takes in a message in the user's place: a task, or something of the runtime's.
    fn hear(&mut self, text: &str) {
        self.asked = Some(text.to_owned());
        if text.starts_with("[undertext, not the user]") {
            // A request to combine carries the summaries in itself.
            if text.contains("\n\n[summary 1 of ") {
                self.say(text, true);
            }
        } else if text.starts_with("[CONVERSATION HISTORY SUMMARY") {
            self.say(text, true);
            if let Some((_, task)) = text.rsplit_once(&format!(", {}]\n", words::FROM_USER)) {
                let end = task.find("\n\n[").unwrap_or(task.len());
                task[..end].clone_into(&mut self.task);
            }
        } else if text.starts_with(words::CARRIED) {
            if let Some((_, task)) = text.rsplit_once(&format!(", {}]\n", words::FROM_USER)) {
                let end = task.find("\n\n[").unwrap_or(task.len());
                task[..end].clone_into(&mut self.task);
            }
        } else {
            if !self.task.is_empty() && !self.steps.is_empty() {
                // A new task: what was tried for the old one does not count.
                self.steps.clear();
            }
            text.clone_into(&mut self.task);
        }
    }

    /// The calls, in order.
    pub(super) fn calls(&self) -> impl DoubleEndedIterator<Item = &Called> {
        self.steps.iter().filter_map(|step| match step {
            Step::Called(called) => Some(called),
            Step::Said { .. } => None,
        })
    }

    /// The lines of what was said, in order.
    pub(super) fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        let said = self.steps.iter().filter_map(|step| match step {
            Step::Said { text, .. } => Some(text.as_str()),
            Step::Called(_) => None,
        });
        said.flat_map(str::lines)
    }

    /// What the newest line with this beginning says.
    pub(super) fn noted(&self, key: &str) -> Option<&str> {
        self.lines()
            .rev()
            .find_map(|line| line.split_once(key).map(|(_, rest)| rest.trim()))
    }

    /// Every try so far, once each.
    pub(super) fn tries(&self) -> Vec<Try> {
        let mut tries: Vec<Try> = Vec::new();
        for line in self.lines() {
            let found = Try::read_all(line).into_iter().chain(Try::read(line));
            for found in found {
                let known = tries
                    .iter_mut()
                    .find(|known| known.path == found.path && known.change == found.change);
                match known {
                    Some(known) => known.number = known.number.max(found.number),
                    None => tries.push(found),
                }
            }
        }
        tries
    }

    /// The repairs that were judged likely, best first.
    pub(super) fn likely(&self) -> Vec<(String, Change)> {
        let mut likely = Vec::new();
        for found in self.lines().filter_map(Try::read_next) {
            if !likely.contains(&found) {
                likely.push(found);
            }
        }
        likely
    }

    /// The runs of a command, in order.
    pub(super) fn runs<'a>(
        &'a self,
        command: &'a str,
    ) -> impl DoubleEndedIterator<Item = &'a Called> {
        self.calls()
            .filter(move |called| called.name == "Bash" && called.argument("command") == command)
    }

    /// The text of a file as it is now, as far as the visible messages tell.
    pub(super) fn content(&self, path: &str) -> Option<String> {
        let mut content = None;
        for called in self.calls() {
            if let Some((_, text)) = called.shows().filter(|(shown, _)| *shown == path) {
                content = Some(text);
            } else if called.name == "Edit" {
                let target = called.arguments["path"].as_str();
                if target.is_none_or(|target| target == path) {
                    content = content.and_then(|text| edited(text, called));
                }
            } else if called.name == "Write" && called.argument("path") == path {
                content = None;
            }
        }
        content
    }

    /// Whether a file cannot be changed: every attempt that is visible was rejected.
    pub(super) fn is_closed(&self, path: &str) -> bool {
        let edits = self
            .calls()
            .filter(|called| called.name == "Edit" && called.argument("path") == path)
            .filter(|called| !called.result.is_empty() && !is_unrun(&called.result));
        let fates: Vec<Fate> = edits.map(Called::fate).collect();
        fates.len() >= REFUSED && !fates.contains(&Fate::Good)
    }

    /// Whether the newest attempt to read this file failed.
    pub(super) fn is_unreadable(&self, path: &str) -> bool {
        let newest = self
            .calls()
            .rev()
            .find(|called| called.reads().as_deref() == Some(path));
        newest.is_some_and(|called| !called.is_hidden() && called.shows().is_none())
    }
}

/// After how many refusals a file is taken for one that cannot be changed.
const REFUSED: usize = 2;

/// The text after an edit; `None` if that cannot be told.
fn edited(mut text: String, edit: &Called) -> Option<String> {
    if edit.fate() == Fate::Bad {
        // Rejected edits change nothing; of those that were cut short nobody knows.
        return (!is_unrun(&edit.result) && !edit.result.is_empty()).then_some(text);
    }
    for one in edit.arguments["edits"].as_array()? {
        let (old, new) = (one["old"].as_str()?, one["new"].as_str()?);
        if text.matches(old).count() != 1 {
            return None;
        }
        text = text.replacen(old, new, 1);
    }
    Some(text)
}
