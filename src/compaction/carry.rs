//! What is shown again after the last summary: messages of the user, pins, todos, skills, the
//! working state, and what the survival check found missing.

use std::fmt::Write as _;

use crate::compaction::survival::{self, Room, Survival, covered};
use crate::id::{CallId, EntryId, Span};
use crate::meter::Chars;
use crate::overlay::Carry;
use crate::transcript::Event;
use crate::view::{Sizes, View};
use crate::words;

/// The failing commands that stand before everything else: many a command fails once and is never
/// run again.
pub(super) const FAILURES: usize = 5;

/// What is shown again after a summary, and what came of its survival check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// What is shown again.
    pub carry: Carry,
    /// What was looked for, and what was missing.
    pub survival: Survival,
}

/// What is shown again after a summary of this span with this text: what it, or an older one,
/// covers, and what must survive and is in neither. `keep` is what was asked to be kept.
pub fn carry(view: &View, sizes: &Sizes, span: Span, text: &str, keep: &[String]) -> Carry {
    carried(view, sizes, span, text, keep).carry
}

/// The same, with what the survival check found.
pub fn carried(view: &View, sizes: &Sizes, span: Span, text: &str, keep: &[String]) -> Carried {
    let (calls, unlisted) = calls(view, sizes, span);
    let mut carry = Carry {
        entries: entries(view, sizes, span),
        calls,
        ..Carry::default()
    };
    // The list has a third of the room, and what the state leaves of its own.
    let room = sizes.as_chars(sizes.share(0.03));
    carry.state = working_state(view, &unlisted, room / 3 * 2);
    let list = Room {
        list: room.saturating_sub(cost(&carry.state)),
        keep: sizes.as_chars(sizes.share(0.1)),
    };
    let survival = survival::check(view, span, text, keep, &carry, list);
    if survival.text.is_empty() {
        carry.state = working_state(view, &unlisted, room);
    }
    carry.survival.clone_from(&survival.text);
    Carried { carry, survival }
}

/// Later messages of the user, within their share, and pins.
fn entries(view: &View, sizes: &Sizes, span: Span) -> Vec<EntryId> {
    let mut entries = Vec::new();
    let mut room = sizes.share(0.05);
    for entry in view
        .working()
        .follow_ups
        .iter()
        .rev()
        .filter(|entry| covered(view, span, **entry))
    {
        let takes = view.text_tokens(&view.carried(*entry).unwrap_or_default());
        if takes <= room {
            room -= takes;
            entries.push(*entry);
        }
    }
    entries.reverse();
    // A result is covered where its call is.
    let place = |entry| {
        view.result(entry)
            .map_or(entry, |result| result.call.response)
    };
    let pins = view
        .pins()
        .iter()
        .filter(|(entry, reads)| **reads && covered(view, span, place(**entry)));
    for (pinned, _) in pins {
        if !entries.contains(pinned) {
            entries.push(*pinned);
        }
    }
    entries
}

/// What of the live state has no room as calls, and stands in the working state line by line.
#[derive(Debug, Default)]
struct Unlisted {
    todos: Vec<String>,
    skills: Vec<String>,
}

/// The newest todo list and loaded skills, within their share.
fn calls(view: &View, sizes: &Sizes, span: Span) -> (Vec<CallId>, Unlisted) {
    let working = view.working();
    let covered = |call: &CallId| covered(view, span, call.response);
    let mut room = sizes.share(0.1);
    let mut calls: Vec<CallId> = Vec::new();
    let mut unlisted = Unlisted::default();
    if let Some(call) = working.todo.filter(covered) {
        let takes = call_tokens(view, call);
        // Only a list that reads as one can be told by its items.
        unlisted.todos = view.open_todos();
        if takes <= room || unlisted.todos.is_empty() {
            unlisted.todos.clear();
            calls.push(call);
        }
        room = room.saturating_sub(takes);
    }
    let mut skills: Vec<(&String, &CallId)> = working.skills.iter().collect();
    skills.sort_unstable_by_key(|(_, call)| std::cmp::Reverse(**call));
    for (name, call) in skills.into_iter().filter(|(_, call)| covered(call)) {
        let takes = call_tokens(view, *call);
        if takes <= room {
            room -= takes;
            calls.push(*call);
        } else {
            unlisted.skills.push(name.clone());
        }
    }
    (calls, unlisted)
}

fn call_tokens(view: &View, call: CallId) -> u64 {
    let arguments = view
        .tool_call(call)
        .map_or(0, |call| view.text_tokens(&call.arguments));
    let content = view
        .result_of(call)
        .map_or(0, |(_, result)| view.text_tokens(&result.content));
    arguments + content
}

/// What a text takes of a room that is given in narrow characters: a wide one takes four.
pub(super) fn cost(text: &str) -> u64 {
    let chars = Chars::of(text.as_bytes());
    chars.all + 3 * chars.wide
}

/// The working state as text, what is most useful first, in at most so much room.
fn working_state(view: &View, unlisted: &Unlisted, room: u64) -> String {
    let mut left = room.saturating_sub(cost(words::WORKING_STATE));
    let mut text = String::new();
    for line in state_lines(view, unlisted) {
        let takes = cost(&line) + 1;
        if takes > left {
            break;
        }
        left -= takes;
        write!(text, "\n{line}").ok();
    }
    if text.is_empty() {
        return text;
    }
    format!("{}{text}", words::WORKING_STATE)
}

/// The lines of the working state: first what the next step needs, then the newest files.
fn state_lines(view: &View, unlisted: &Unlisted) -> Vec<String> {
    let working = view.working();
    let mut failures: Vec<String> = failures(view).into_iter().map(|one| one.line).collect();
    let older = failures.split_off(failures.len().min(FAILURES));
    let directory = directory(view).map(|path| words::working_directory(&path));
    let todos = unlisted.todos.iter().map(|todo| words::open_todo(todo));
    let skills = unlisted.skills.iter();
    let skills = skills.map(|name| words::skill_by_name(name));
    let mut files: Vec<_> = working.files.iter().collect();
    files.sort_unstable_by_key(|(_, file)| std::cmp::Reverse(file.call));
    let these = |changed: bool| {
        let these = files
            .iter()
            .filter(move |(_, file)| file.changed == changed);
        these.map(move |(path, file)| words::file(changed, path, file.call))
    };
    // Failures first: the next step often is to mend them.
    let lines = failures.into_iter().chain(directory).chain(todos);
    let lines = lines.chain(skills).chain(these(true)).chain(older);
    lines.chain(these(false)).collect()
}

/// A command that failed when it last ran.
pub(super) struct Failed {
    pub(super) call: CallId,
    /// The command on one line.
    pub(super) command: String,
    /// The line that tells it.
    pub(super) line: String,
}

/// The commands that failed when they last ran, the newest first.
pub(super) fn failures(view: &View) -> Vec<Failed> {
    let mut failures: Vec<_> = view.working().failures.iter().collect();
    failures.sort_unstable_by_key(|(_, failure)| std::cmp::Reverse(failure.call));
    let failures = failures.into_iter().map(|(command, failure)| {
        let command = words::on_one_line(command, 200);
        Failed {
            call: failure.call,
            line: words::failed_command(&command, failure.exit, failure.call),
            command,
        }
    });
    failures.collect()
}

/// The working directory below the workspace; `None` if it is the workspace, or not below it.
fn directory(view: &View) -> Option<String> {
    let entry = view.transcript().entries().first()?;
    let Event::Run(run) = &entry.event else {
        return None;
    };
    let below = view.working().cwd.as_ref()?.strip_prefix(&run.workspace)?;
    let below = below.strip_prefix(['/', '\\'])?;
    (!below.is_empty()).then(|| below.to_owned())
}
