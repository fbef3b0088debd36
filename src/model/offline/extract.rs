//! A summary: an extract of what it was given, by rules. The script reads it again itself.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::model::offline::change::{Change, Try};
use crate::model::offline::diagnose::{LOOKS, WANTED, WORDS_OF};
use crate::model::offline::mend::BACK;
use crate::model::offline::seen::{Called, Fate, Seen};
use crate::model::offline::{clues, project};

/// The words that a summary may have if it is not said.
const WORDS: usize = 800;

/// The most of the task that is quoted, in characters.
const TASK: usize = 800;

/// The lines of the newest failure that are quoted.
const FAILURE: usize = 6;

/// How many tries stand on a line.
const A_LINE: usize = 6;

/// How many files are named.
const FILES: usize = 60;

/// The summary that is asked for.
pub(super) fn extract(ask: &str, seen: &Seen) -> String {
    let words = number_before(ask, " words").unwrap_or(WORDS);
    let mut page = Page {
        text: String::from("An extract by rules; no LLM wrote it."),
        words: words.saturating_sub(10),
        chars: words.saturating_mul(5),
    };
    // What must not be lost first: of many summaries only the heads are kept.
    tries(seen, &mut page);
    page.section("Task", &quoted(&seen.task));
    page.lines(&kept(ask));
    if let Some(focus) = after(ask, "Pay special attention to: ") {
        page.section("Focus", focus);
    }
    test(seen, &mut page);
    for key in ["Suspects:", WORDS_OF, LOOKS, WANTED] {
        if let Some(noted) = seen.noted(key) {
            page.lines(&format!("{key} {noted}"));
        }
    }
    if seen.noted(BACK).is_some() {
        page.lines(BACK);
    }
    likely(seen, &mut page);
    todos(seen, &mut page);
    done(seen, &mut page);
    page.text
}

/// A text in the making, with the room that is left.
struct Page {
    text: String,
    words: usize,
    chars: usize,
}

impl Page {
    /// Adds as many lines as there is room for.
    fn lines(&mut self, lines: &str) {
        for line in lines.lines() {
            let (words, chars) = (line.split_whitespace().count(), line.chars().count() + 1);
            if words > self.words || chars > self.chars {
                return;
            }
            self.words -= words;
            self.chars -= chars;
            self.text.push('\n');
            self.text.push_str(line);
        }
    }

    fn section(&mut self, heading: &str, text: &str) {
        if !text.is_empty() {
            self.lines(&format!("\n{heading}:\n{text}"));
        }
    }
}

fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(TASK).collect();
    let lines = cut.lines().map(|line| format!("> {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The test, and how it went when it last ran.
fn test(seen: &Seen, page: &mut Page) {
    let noted = seen.noted("Test: `").and_then(|text| text.split_once('`'));
    let command = noted.map(|(command, _)| command.to_owned());
    let Some(command) = command.or_else(|| project::command_in_task(&seen.task)) else {
        return;
    };
    page.lines(&format!("\nTest: `{command}`"));
    let Some(run) = seen.runs(&command).next_back() else {
        return;
    };
    match run.fate() {
        Fate::Good => page.lines("It passed when it last ran."),
        Fate::Bad => {
            page.lines("It failed when it last ran:");
            let failing = clues::failing(&run.result);
            let shown = failing
                .into_iter()
                .take(FAILURE)
                .map(|line| format!("    {}", cut(line)));
            page.lines(&shown.collect::<Vec<_>>().join("\n"));
        }
    }
}

fn tries(seen: &Seen, page: &mut Page) {
    let tries = seen.tries();
    let mut paths: Vec<&str> = Vec::new();
    for tried in &tries {
        if !paths.contains(&tried.path.as_str()) {
            paths.push(&tried.path);
        }
    }
    if let Some(last) = tries.iter().max_by_key(|tried| tried.number) {
        page.lines(&format!("Tries so far: {}, the last one:", last.number));
        page.lines(&last.words());
    }
    for path in paths {
        let changes = tries.iter().filter(|tried| tried.path == path);
        let changes: Vec<&Change> = changes.map(|tried| &tried.change).collect();
        for some in changes.chunks(A_LINE) {
            page.lines(&Try::words_of_all(path, some));
        }
    }
    let done = seen.lines().filter(|line| line.contains("Done with `"));
    page.lines(&done.collect::<Vec<_>>().join("\n"));
}

/// What was judged likely and not tried yet.
fn likely(seen: &Seen, page: &mut Page) {
    let tries = seen.tries();
    let left = seen.likely();
    let left = left.iter().filter(|(path, change)| {
        !tries
            .iter()
            .any(|tried| tried.path == *path && tried.change == *change)
    });
    let left: Vec<String> = left
        .map(|(path, change)| Try::words_next(path, change))
        .collect();
    page.section("To try", &left.join("\n"));
}

fn todos(seen: &Seen, page: &mut Page) {
    let newest = seen.calls().rev().find(|called| called.name == "TodoWrite");
    let todos = newest.and_then(|called| called.arguments["todos"].as_array());
    let lines = todos.into_iter().flatten().map(|todo| {
        let text = |key: &str| todo[key].as_str().unwrap_or_default();
        format!(
            "- {} ({})",
            cut(text("content")),
            text("status").replace('_', " ")
        )
    });
    page.section("Todo list", &lines.collect::<Vec<_>>().join("\n"));
}

/// What was looked at and changed, and which files there are.
fn done(seen: &Seen, page: &mut Page) {
    let once = |paths: Vec<Cow<'_, str>>| {
        let mut all: Vec<Cow<'_, str>> = Vec::new();
        for path in paths {
            if !all.contains(&path) {
                all.push(path);
            }
        }
        all.join("`, `")
    };
    let mut text = String::new();
    let skills = seen.calls().filter(|called| called.name == "LoadSkill");
    let facts = [
        (
            "skill loaded",
            once(
                skills
                    .map(|called| called.argument("name").into())
                    .collect(),
            ),
        ),
        (
            "read",
            once(seen.calls().filter_map(Called::reads).collect()),
        ),
        ("edited", {
            let edits = seen.calls().filter(|called| called.name == "Edit");
            once(
                edits
                    .map(|called| called.argument("path"))
                    .filter(|path| !path.is_empty())
                    .map(Cow::Borrowed)
                    .collect(),
            )
        }),
    ];
    for (what, paths) in facts {
        if !paths.is_empty() {
            writeln!(text, "- {what}: `{paths}`").ok();
        }
    }
    page.section("Done", text.trim_end());
    if let Some(files) = project::files(seen).filter(|files| !files.is_empty()) {
        let shown: Vec<&str> = files.iter().take(FILES).map(String::as_str).collect();
        let more = files.len() - shown.len();
        let more = if more > 0 {
            format!(", and {more} more")
        } else {
            String::new()
        };
        page.section(
            "Files of the project",
            &format!("{}{more}", shown.join(", ")),
        );
    }
}

/// What must be in the summary word for word.
fn kept(ask: &str) -> String {
    let Some((_, list)) = ask.split_once("These must be in the summary, word for word:\n") else {
        return String::new();
    };
    let items = list.lines().take_while(|line| line.starts_with("- "));
    items.collect::<Vec<_>>().join("\n")
}

fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    rest.lines().next()
}

/// The last number before this text.
fn number_before(text: &str, key: &str) -> Option<usize> {
    let numbers = text.match_indices(key).filter_map(|(at, _)| {
        let digits = text[..at].rsplit(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    });
    numbers.last()
}

fn cut(line: &str) -> String {
    line.chars().take(160).collect()
}
