//! The repairs: one at a time, each taken back before the next.

use crate::model::Reply;
use crate::model::offline::acts::Acts;
use crate::model::offline::change::{self, Change, Try};
use crate::model::offline::policy::Mind;
use crate::model::offline::seen::{Fate, Step};
use crate::model::offline::{diagnose, rank, tell};

/// After how many tries it is given up.
pub(super) const TRIES: usize = 80;

/// What is said when the last try is taken back.
pub(super) const BACK: &str = "I take the last try back.";

/// What comes next.
enum Next {
    /// This repair, once nothing more is to be tried in these files.
    Try(Vec<String>, String, Change),
    /// First this file must be read again.
    Read(String),
    /// Nothing is left.
    Nothing,
}

/// Makes the next try, or what it needs first.
pub(super) fn mend(mind: &Mind<'_>, command: &str) -> Reply {
    let tries = mind.seen.tries();
    if mind.seen.noted(BACK).is_some() {
        return tell::gave_up(mind, command, &tries);
    }
    let applied = applied(mind);
    let last = Try::last(&tries);
    let next = if last < TRIES {
        next(mind, command, &tries)
    } else {
        Next::Nothing
    };
    let (left, path, change) = match next {
        Next::Try(left, path, change) => (left, path, change),
        Next::Read(path) => return again(mind, &path),
        Next::Nothing => return take_back(mind, command, &tries),
    };
    let mut acts = mind.acts();
    let number = last + 1;
    let this = Try {
        number,
        path,
        change,
    };
    acts = acts.say(this.words());
    for path in &left {
        acts = acts.say(format!("Done with `{path}`"));
    }
    if !left.is_empty() {
        acts = acts.todo(
            &mind.todos(&format!("Repair: `{}`; try {number}", this.path)),
            3,
        );
    }
    // What another file still holds of the last try goes first.
    if let Some(last) = applied.filter(|last| last.path != this.path) {
        let Some(now) = mind.seen.content(&last.path) else {
            return again(mind, &last.path);
        };
        acts = acts.edit(&last.path, &change::edits(&now, &without(&now, &last)));
    }
    edit_and_test(mind, acts, command, &this).reply()
}

fn edit_and_test<'a>(mind: &Mind<'_>, acts: Acts<'a>, command: &str, this: &Try) -> Acts<'a> {
    let now = mind.seen.content(&this.path).unwrap_or_default();
    let before = original(mind, &this.path).unwrap_or_default();
    let after = with(&before, &this.change).unwrap_or(before);
    acts.edit(&this.path, &change::edits(&now, &after))
        .test_try(command)
}

fn again(mind: &Mind<'_>, path: &str) -> Reply {
    let acts = mind.acts().say(format!("I need to see `{path}` again."));
    acts.read(path, None).reply()
}

/// The next repair: those that were judged likely, then file by file.
fn next(mind: &Mind<'_>, command: &str, tries: &[Try]) -> Next {
    let seen = &mind.seen;
    let is_tried = |path: &str, change: &Change| {
        tries
            .iter()
            .any(|tried| tried.path == path && tried.change == *change)
    };
    for (path, change) in seen.likely() {
        if is_tried(&path, &change) || seen.is_unreadable(&path) || seen.is_closed(&path) {
            continue;
        }
        match original(mind, &path) {
            None => return Next::Read(path),
            Some(before) if with(&before, &change).is_some() => {
                return Next::Try(Vec::new(), path, change);
            }
            Some(_) => {}
        }
    }
    let clues = diagnose::clues(mind, command);
    let known = diagnose::known(mind);
    let mut left = Vec::new();
    for path in suspects(mind) {
        let done = format!("Done with `{path}`");
        if seen.lines().any(|line| line.contains(&done))
            || seen.is_unreadable(&path)
            || seen.is_closed(&path)
        {
            continue;
        }
        let Some(before) = original(mind, &path) else {
            return Next::Read(path);
        };
        let candidates = rank::candidates(&path, &before, 0, &known, &clues);
        let untried = candidates
            .into_iter()
            .find(|one| !is_tried(&path, &one.change));
        match untried {
            Some(one) => return Next::Try(left, path, one.change),
            None => left.push(path),
        }
    }
    Next::Nothing
}

/// The suspects that were named.
pub(super) fn suspects(mind: &Mind<'_>) -> Vec<String> {
    let noted = mind.seen.noted("Suspects:").unwrap_or_default();
    noted
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The try that the files hold now: the last one that was made and not taken back.
pub(super) fn applied(mind: &Mind<'_>) -> Option<Try> {
    let mut applied = None;
    let mut said: Option<Try> = None;
    let mut back = false;
    for step in &mind.seen.steps {
        match step {
            Step::Said { text, summary } => {
                let newest = text.lines().rev().find_map(Try::read);
                if *summary {
                    applied = newest.or(applied).filter(|_| !text.contains(BACK));
                } else {
                    said = newest;
                    back = text.contains(BACK);
                }
            }
            Step::Called(called) if called.name == "Edit" && called.fate() == Fate::Good => {
                let path = called.arguments["path"].as_str();
                let is_in = |tried: &Try| path.is_none_or(|path| path == tried.path);
                if back && applied.as_ref().is_some_and(is_in) {
                    applied = None;
                } else if said.as_ref().is_some_and(is_in) {
                    applied = said.take();
                }
            }
            Step::Called(_) => {}
        }
    }
    applied
}

/// A file as it was before the try that it holds.
fn original(mind: &Mind<'_>, path: &str) -> Option<String> {
    let now = mind.seen.content(path)?;
    match applied(mind).filter(|last| last.path == path) {
        Some(last) => Some(without(&now, &last)),
        None => Some(now),
    }
}

/// The text with the change of one line; `None` if the line is another.
fn with(text: &str, change: &Change) -> Option<String> {
    line_for_line(text, change.line, |line| change.made(line))
}

/// The text without the change of a try; the same if it does not hold it.
fn without(text: &str, tried: &Try) -> String {
    let change = &tried.change;
    line_for_line(text, change.line, |line| change.unmade(line)).unwrap_or_else(|| text.to_owned())
}

fn line_for_line(
    text: &str,
    number: usize,
    made: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = lines.get_mut(number.checked_sub(1)?)?;
    *line = made(line)?;
    Some(lines.join("\n") + "\n")
}

/// The last try is taken back, and the test run once more: it must fail as it did.
fn take_back(mind: &Mind<'_>, command: &str, tries: &[Try]) -> Reply {
    let Some(last) = applied(mind) else {
        return tell::gave_up(mind, command, tries);
    };
    let Some(now) = mind.seen.content(&last.path) else {
        if mind.seen.is_unreadable(&last.path) {
            return tell::gave_up(mind, command, tries);
        }
        return again(mind, &last.path);
    };
    let acts = mind.acts().say(BACK);
    let acts = acts.edit(&last.path, &change::edits(&now, &without(&now, &last)));
    acts.todo(&mind.todos(""), 4).test(command).reply()
}
