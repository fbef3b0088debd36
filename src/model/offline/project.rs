//! What is known of the project: its files by kind, the command of its test.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::offline::quote;
use crate::model::offline::seen::Seen;

/// What a file is, judged by its path alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Source,
    Document,
    Test,
    Data,
}

const SOURCES: &[&str] = &[
    "awk", "sh", "bash", "ksh", "sed", "py", "pl", "rb", "lua", "js", "mjs", "ts", "php", "tcl",
    "c", "h", "cc", "cpp", "go", "rs", "java", "swift", "bc", "jq", "m4",
];

/// Directories that hold nothing of the project's own.
const FOREIGN: &[&str] = &[".git", "node_modules", "target", "vendor", ".venv"];

/// How many files of a listing are looked at.
const FILES: usize = 2000;

/// What a path is.
pub(super) fn sort(path: &str) -> Sort {
    let lower = path.to_lowercase();
    let mut parts: Vec<&str> = lower.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_test = |part: &str| {
        ["test", "spec"].iter().any(|word| {
            part == *word
                || part.strip_suffix('s') == Some(word)
                || part.starts_with(&format!("{word}_"))
                || part.starts_with(&format!("{word}-"))
                || part.ends_with(&format!("_{word}"))
                || part.ends_with(&format!("-{word}"))
        })
    };
    if parts.iter().any(|part| is_test(part)) || is_test(stem) {
        Sort::Test
    } else if matches!(end, "md" | "txt" | "rst" | "adoc") {
        Sort::Document
    } else if SOURCES.contains(&end)
        || (end.is_empty()
            && parts
                .iter()
                .any(|part| matches!(*part, "bin" | "scripts" | "libexec")))
    {
        Sort::Source
    } else {
        Sort::Data
    }
}

/// The files of a listing, in its order.
pub(super) fn files(seen: &Seen) -> Option<Vec<String>> {
    let listing = seen
        .calls()
        .rev()
        .find(|called| called.is_listing() && !called.is_hidden())?;
    let paths = listing
        .result
        .lines()
        .map(|line| line.trim().trim_start_matches("./"));
    let is_path = |path: &&str| {
        !path.is_empty()
            && !path.starts_with('[')
            && !path.ends_with('/')
            && !path.contains(['`', '"'])
            && !path.split('/').any(|part| FOREIGN.contains(&part))
    };
    let mut files: Vec<String> = paths
        .filter(is_path)
        .take(FILES)
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    Some(files)
}

/// The project's documents, top level first.
pub(super) fn documents(files: &[String]) -> Vec<&str> {
    let is_document = |path: &&String| sort(path) == Sort::Document && !path.starts_with('.');
    let mut documents: Vec<&str> = files
        .iter()
        .filter(is_document)
        .map(String::as_str)
        .collect();
    documents.sort_by_key(|path| path.matches('/').count());
    documents
}

static SPAN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("`([^`\n]+)`").ok());

/// Programs that run tests.
const RUNNERS: &[&str] = &[
    "sh", "bash", "dash", "ksh", "make", "awk", "python", "python3", "perl", "ruby", "node", "npm",
    "pytest", "tox", "cargo", "go", "bats", "prove", "env", "php", "lua", "just", "ninja", "zig",
];

/// Words of commands that do more than test.
const EFFECTS: &[&str] = &[
    "install",
    "uninstall",
    "add",
    "get",
    "remove",
    "rm",
    "update",
    "upgrade",
    "publish",
    "push",
    "deploy",
    "release",
    "login",
    "clean",
    "init",
    "new",
    "clone",
    "download",
    "venv",
];

fn is_command(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let second = words.next();
    if text.contains(['…', '|', ';', '<', '>', '&']) || text.contains("..") {
        return false;
    }
    if RUNNERS.contains(&first) {
        return second.is_some() || matches!(first, "make" | "pytest" | "tox" | "bats" | "just");
    }
    first.starts_with("./") && first.len() > 2
}

/// Beginnings of words by which a task says that something is to be mended.
const MENDING: &[&str] = &[
    "fail", "fix", "mend", "repair", "bug", "broke", "break", "wrong", "error", "defect", "fault",
    "debug", "crash", "correct", "test", "check", "pass", "solve",
];

/// Whether a task asks for something to be mended, or names the command of a test.
pub(super) fn is_mending(task: &str) -> bool {
    let task_words = task.to_lowercase();
    let mut words = task_words.split(|c: char| !c.is_alphanumeric());
    words.any(|word| MENDING.iter().any(|begins| word.starts_with(begins)))
        || command_in_task(task).is_some()
}

/// The command of the test that a task names.
pub(super) fn command_in_task(task: &str) -> Option<String> {
    let spans = SPAN.as_ref()?.captures_iter(task);
    let spans = spans.map(|span| span[1].trim().to_owned());
    spans.into_iter().find(|span| is_command(span))
}

/// The command of the test that a document names, in a span or on a line of its own.
pub(super) fn command_in(text: &str) -> Option<String> {
    let spans = SPAN
        .as_ref()?
        .captures_iter(text)
        .map(|span| span[1].trim().to_owned());
    let lines = text
        .lines()
        .map(|line| line.trim().trim_start_matches("$ ").to_owned());
    let speaks = |text: &String| {
        ["test", "check", "spec"]
            .iter()
            .any(|word| text.contains(word))
    };
    // Documents say how to install as well.
    let does_more = |text: &String| {
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '$'));
        words.any(|word| EFFECTS.contains(&word) || word.contains('$'))
    };
    lines
        .chain(spans)
        .find(|text| is_command(text) && speaks(text) && !does_more(text))
}

/// The command of the test that the files suggest.
pub(super) fn command_of(files: &[String]) -> Option<String> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let runner = |path: &String| {
        let program = match path.rsplit_once('.').map(|(_, end)| end) {
            Some("sh") => "sh",
            Some("bash") => "bash",
            // Code that is kept compiled may be older than a try.
            Some("py") => "python3 -B",
            Some("pl") => "perl",
            Some("awk") => "awk -f",
            Some("js") => "node",
            _ => return None,
        };
        (sort(path) == Sort::Test && quote::quoted(path) == *path)
            .then(|| (path.clone(), format!("{program} {path}")))
    };
    let mut found: Vec<(String, String)> = files.iter().filter_map(runner).collect();
    // One that runs all others is nearer to the top and often says so.
    found.sort_by_key(|(path, _)| {
        let stem = name(path);
        let says = ["run", "all", "test", "check"]
            .iter()
            .any(|word| stem.starts_with(word));
        (path.matches('/').count(), !says, path.clone())
    });
    let makefile = || {
        files
            .iter()
            .any(|path| path == "Makefile")
            .then(|| "make test".to_owned())
    };
    found
        .into_iter()
        .next()
        .map(|(_, command)| command)
        .or_else(makefile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sorted_by_their_paths() {
        for (path, expected) in [
            ("src/area.awk", Sort::Source),
            ("bin/measure", Sort::Source),
            ("GUIDE.md", Sort::Document),
            ("spec/wanted.txt", Sort::Test),
            ("spec/all.sh", Sort::Test),
            ("area_test.sh", Sort::Test),
            ("latest.sh", Sort::Source),
            ("rows.tsv", Sort::Data),
            ("Makefile", Sort::Data),
        ] {
            assert_eq!(sort(path), expected, "{path}");
        }
    }

    #[test]
    fn the_test_is_found_where_somebody_names_it() {
        for (task, expected) in [
            (
                "Mend `area`: `sh spec/all.sh` fails.",
                Some("sh spec/all.sh"),
            ),
            ("`make` fails", Some("make")),
            ("Mend `sh` and `a b`; see `./x > y`", None),
            ("`./check` is red", Some("./check")),
        ] {
            assert_eq!(command_in_task(task).as_deref(), expected, "{task}");
        }
        for (task, expected) in [
            ("Write a poem about the sea.", false),
            ("It crashes. Why?", true),
            ("`./check`", true),
        ] {
            assert_eq!(is_mending(task), expected, "{task}");
        }
        let text = "Use `sh bin/x` so.\n\n    $ sh spec/all.sh\n\nor `make check`";
        assert_eq!(command_in(text).as_deref(), Some("sh spec/all.sh"));
        let text = "python3 -m pip install pytest\nnpm publish test\nsh $(a) test\nthen `pytest`";
        assert_eq!(command_in(text).as_deref(), Some("pytest"));
        let files = |paths: &[&str]| {
            paths
                .iter()
                .map(|path| (*path).to_owned())
                .collect::<Vec<_>>()
        };
        for (paths, expected) in [
            (
                &["a.sh", "test/one.py", "test/run.sh"][..],
                Some("sh test/run.sh"),
            ),
            (&["Makefile", "a.sh"], Some("make test")),
            (&["test/a b.sh", "test/$(a).sh"], None),
            (&["a_test.py"], Some("python3 -B a_test.py")),
            (&["a.sh"], None),
        ] {
            assert_eq!(command_of(&files(paths)).as_deref(), expected);
        }
    }
}
