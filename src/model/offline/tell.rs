//! The end: what was wrong and what was done, or that it could not be done.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::model::Reply;
use crate::model::offline::change::Try;
use crate::model::offline::diagnose::WORDS_OF;
use crate::model::offline::mend;
use crate::model::offline::policy::Mind;

/// What it is, where it has to say that it cannot.
const LIMITS: &str =
    "I am a script and no LLM: I can only look for a failing test and try plain repairs.";

/// The test passes.
pub(super) fn passed(mind: &Mind<'_>, command: &str) -> Reply {
    let applied = mend::applied(mind);
    let acts = mind.acts();
    let finished = |todos: &serde_json::Value| {
        let mut list = todos.as_array().into_iter().flatten();
        list.all(|todo| todo["status"] == "completed")
    };
    let newest = mind
        .seen
        .calls()
        .rev()
        .find(|called| called.name == "TodoWrite");
    let told = newest.is_some_and(|newest| finished(&newest.arguments["todos"]));
    if !told && acts.offer("TodoWrite", "todos").is_some() {
        let items = mind.todos(&match &applied {
            Some(tried) => format!("Repair: `{}`, {}", tried.path, tried.change.words()),
            None => String::new(),
        });
        return acts
            .say("The test passes.")
            .todo(&items, items.len())
            .reply();
    }
    let Some(tried) = applied else {
        let text = format!("`{command}` passes as it is, so I changed nothing. {LIMITS}");
        return acts.say(text).reply();
    };
    let change = &tried.change;
    let mut text = format!(
        "`{command}` passes now.\n\nWhat was wrong: in `{}`, line {}, `{}` stood where `{}` belongs.",
        tried.path, change.line, change.old, change.new
    );
    let now = mind.seen.content(&tried.path).unwrap_or_default();
    let line = now.lines().nth(change.line - 1).unwrap_or_default();
    if let Some(before) = change.unmade(line) {
        write!(text, "\n\n    - {}\n    + {}", before.trim(), line.trim()).ok();
    }
    let counted = match tried.number {
        1 => "It was the first try.".to_owned(),
        number => format!("It was try {number}; those before it are taken back."),
    };
    write!(
        text,
        "\n\nHow I know: the test failed before this change and passes with it. {counted} I am a script \
         and no LLM: that the test passes is all I can judge, so have a look at the change."
    )
    .ok();
    acts.say(text).reply()
}

/// Every try failed.
pub(super) fn gave_up(mind: &Mind<'_>, command: &str, tries: &[Try]) -> Reply {
    let mut text = format!("I could not mend it: `{command}` still fails.");
    let (closed, tries): (Vec<&Try>, Vec<&Try>) = tries
        .iter()
        .partition(|tried| mind.seen.is_closed(&tried.path));
    let number = tries.iter().map(|tried| tried.number).max();
    let number = number.unwrap_or_default().saturating_sub(closed.len());
    let left = mend::applied(mind);
    if tries.is_empty() && !closed.is_empty() {
        text.push_str(" I could change nothing.");
    } else if tries.is_empty() {
        text.push_str(" I found nothing that I could try.");
    } else {
        let mut paths: Vec<&str> = Vec::new();
        for tried in &tries {
            if !paths.contains(&tried.path.as_str()) {
                paths.push(&tried.path);
            }
        }
        write!(
            text,
            " I tried {number} plain {}, one at a time, in `{}`",
            if number == 1 { "repair" } else { "repairs" },
            paths.join("`, `")
        )
        .ok();
        text.push_str(match left {
            None => ", and took all of them back: the files are as they were.",
            Some(_) => ".",
        });
    }
    if let Some(left) = left {
        write!(
            text,
            " One of them I could not take back: `{}` still has {}.",
            left.path,
            left.change.words()
        )
        .ok();
    }
    let rejected: BTreeSet<&str> = closed.iter().map(|tried| tried.path.as_str()).collect();
    if !rejected.is_empty() {
        let rejected = rejected.into_iter().collect::<Vec<_>>().join("`, `");
        write!(text, " Every change of `{rejected}` was rejected.").ok();
    }
    if let Some(words) = mind.seen.noted(WORDS_OF).filter(|words| !words.is_empty()) {
        write!(text, " What fails speaks of: {words}.").ok();
    }
    write!(text, " {LIMITS}").ok();
    mind.acts().say(text).reply()
}

/// There is nothing to try.
pub(super) fn nothing_to_try(mind: &Mind<'_>, command: &str) -> Reply {
    gave_up(mind, command, &[])
}

/// No test was found.
pub(super) fn no_test(mind: &Mind<'_>) -> Reply {
    let text = format!(
        "I found no test to run. {LIMITS} Name the command of a test in the task, in backquotes, and I \
         can begin with it."
    );
    mind.acts().say(text).reply()
}

/// The test does not end.
pub(super) fn endless(mind: &Mind<'_>, command: &str) -> Reply {
    let text = format!(
        "`{command}` did not end in time, so I cannot tell what is wrong, and I changed nothing. {LIMITS} \
         Name a test in the task that takes less time."
    );
    mind.acts().say(text).reply()
}

/// The task is another one.
pub(super) fn another_task(mind: &Mind<'_>) -> Reply {
    let text = format!(
        "This is nothing that I can do, and I changed nothing. {LIMITS} A task that says what fails, with \
         the command of a test in backquotes, is one for me."
    );
    mind.acts().say(text).reply()
}

/// No source files were found.
pub(super) fn no_sources(mind: &Mind<'_>, command: &str) -> Reply {
    let text =
        format!("`{command}` fails, and I found no source files that I know how to read. {LIMITS}");
    mind.acts().say(text).reply()
}

/// Nothing can be run.
pub(super) fn no_shell(mind: &Mind<'_>) -> Reply {
    let text = format!("I have no tool to run a test with (Bash is not offered). {LIMITS}");
    mind.acts().say(text).reply()
}

/// Nothing can be changed.
pub(super) fn no_edit(mind: &Mind<'_>, command: &str) -> Reply {
    let text = format!(
        "`{command}` fails, and I have no tool to change files with (Edit is not offered). {LIMITS}"
    );
    mind.acts().say(text).reply()
}
