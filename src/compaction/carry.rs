//! What is shown again after the last summary: messages of the user, pins, todos, skills, and the
//! working state.

use std::fmt::Write as _;

use crate::id::{CallId, EntryId, Span};
use crate::overlay::Carry;
use crate::view::{Sizes, View};
use crate::words;

/// What is shown again after a summary of this span: what it, or an older one, covers.
pub fn carry(view: &View, sizes: &Sizes, span: Span) -> Carry {
    let working = view.working();
    let covered = |entry: EntryId| span.contains(entry) || view.covered_by(entry).is_some();
    let mut entries = Vec::new();
    let mut room = sizes.share(0.05);
    for entry in working
        .follow_ups
        .iter()
        .rev()
        .filter(|entry| covered(**entry))
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
        .filter(|(entry, reads)| **reads && covered(place(**entry)));
    for (pinned, _) in pins {
        if !entries.contains(pinned) {
            entries.push(*pinned);
        }
    }

    let mut room = sizes.share(0.1);
    let mut calls: Vec<CallId> = Vec::new();
    let mut by_name: Vec<&str> = Vec::new();
    let mut skills: Vec<(&String, &CallId)> = working.skills.iter().collect();
    skills.sort_unstable_by_key(|(_, call)| std::cmp::Reverse(**call));
    for call in working.todo.iter().filter(|call| covered(call.response)) {
        room = room.saturating_sub(call_tokens(view, *call));
        calls.push(*call);
    }
    for (name, call) in skills
        .into_iter()
        .filter(|(_, call)| covered(call.response))
    {
        let takes = call_tokens(view, *call);
        if takes <= room {
            room -= takes;
            calls.push(*call);
        } else {
            by_name.push(name);
        }
    }
    let state = working_state(view, &by_name, sizes.as_chars(sizes.share(0.03)));
    Carry {
        entries,
        calls,
        state,
        survival: String::new(),
    }
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

/// The working state as text, at most so many characters.
fn working_state(view: &View, skills: &[&str], chars: u64) -> String {
    let working = view.working();
    let mut lines = Vec::new();
    let mut files: Vec<_> = working.files.iter().collect();
    files.sort_unstable_by_key(|(_, file)| std::cmp::Reverse(file.call));
    for changed in [true, false] {
        let these = files.iter().filter(|(_, file)| file.changed == changed);
        lines.extend(these.map(|(path, file)| words::file(changed, path, file.call)));
    }
    let mut failures: Vec<_> = working.failures.iter().collect();
    failures.sort_unstable_by_key(|(_, failure)| std::cmp::Reverse(failure.call));
    let failures = failures.into_iter().map(|(command, failure)| {
        let command: String = command.chars().take(200).collect();
        words::failed_command(&command, failure.exit, failure.call)
    });
    // Failures first: they are few, and the next step often is to mend them.
    let skills = skills.iter().map(|name| words::skill_by_name(name));
    let lines: Vec<String> = failures.chain(skills).chain(lines).collect();
    if lines.is_empty() {
        return String::new();
    }
    let mut text = words::WORKING_STATE.to_owned();
    let mut left = usize::try_from(chars)
        .unwrap_or(usize::MAX)
        .saturating_sub(text.len());
    for line in lines {
        let takes = line.chars().count() + 1;
        if takes > left {
            break;
        }
        left -= takes;
        write!(text, "\n{line}").ok();
    }
    text
}
