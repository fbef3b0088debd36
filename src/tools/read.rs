//! `Read`: shows the lines of a file.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::exchange::{Facts, FileRead, ToolSpec};
use crate::tools::file::{self, Contents};
use crate::tools::scope::{Missing, Refusal, Site, quoted};
use crate::tools::{Outcome, clip, declared, schema};
use crate::words::grouped;

/// How many lines are shown unless asked for otherwise.
const LINES: u64 = 2000;

/// The longest line shown, in characters.
const LONGEST: usize = 2000;

/// How far from its beginning a file is looked at to see whether it is text.
const SAMPLE: usize = 8192;

/// How many names of a directory are shown.
const NAMES: usize = 100;

/// The arguments of `Read`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the working directory or absolute.
    path: String,
    /// The first line to show, from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines to show (2000 unless given).
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

/// The spec of `Read`.
pub(crate) fn spec() -> ToolSpec {
    declared::spec("Read", schema::of::<Arguments>())
}

/// Reads the file.
pub(crate) fn run(site: &Site, arguments: &str) -> Outcome {
    let arguments: Arguments = match serde_json::from_str(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return Outcome::error(format!("The arguments do not fit: {error}")),
    };
    let path = &arguments.path;
    let contents = site.find(path, Missing::Refuse).and_then(|spot| {
        match file::read(site, &spot) {
            Ok(Some(contents)) => Ok(Ok(contents)),
            Ok(None) => Err(Refusal::Missing),
            // What the model meant is probably one of the files in it.
            Err(Refusal::Directory) => Ok(Err(file::names(&spot, NAMES)?)),
            Err(refusal) => Err(refusal),
        }
    });
    match contents {
        Ok(Ok(contents)) => show(site, &arguments, &contents),
        Ok(Err((names, more))) => listing(path, &names, more),
        Err(refusal) => refusal.outcome(path),
    }
}

/// The answer to a path that names a directory.
fn listing(path: &str, names: &[String], more: usize) -> Outcome {
    let mut text = format!("{}: a directory, not a file. ", quoted(path));
    if names.is_empty() {
        text.push_str("It is empty.");
    } else {
        write!(text, "Read one of the files in it:\n{}", names.join("\n")).ok();
    }
    if more > 0 {
        write!(text, "\n[… and more: at least {}]", grouped(more as u64)).ok();
    }
    Outcome::error(text)
}

/// The lines that were asked for, as many as fit.
fn show(site: &Site, arguments: &Arguments, contents: &Contents) -> Outcome {
    let path = &arguments.path;
    let bytes = &contents.bytes;
    if bytes[..bytes.len().min(SAMPLE)].contains(&0) {
        let bytes = grouped(bytes.len() as u64);
        return Outcome::error(format!(
            "{}: a binary file of {bytes} bytes; use Bash",
            quoted(path)
        ));
    }
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let total = if bytes.is_empty() {
        0
    } else {
        body.split(|byte| *byte == b'\n').count() as u64
    };
    let first = arguments.offset.unwrap_or(1).max(1);
    if first > total.max(1) {
        let total = grouped(total);
        return Outcome::error(format!(
            "{}: has {total} lines; there is no line {first}",
            quoted(path)
        ));
    }
    let limit = arguments.limit.unwrap_or(LINES).max(1);
    // What is left for lines once the line about the rest is taken off.
    let room = site.chars.saturating_sub(100);
    let (mut text, mut chars, mut last) = (String::new(), 0, first - 1);
    let lines = body
        .split(|byte| *byte == b'\n')
        .zip(1_u64..)
        .take(usize::try_from(total).unwrap_or(usize::MAX));
    for (line, number) in lines.skip_while(|(_, number)| *number < first) {
        let line = line_text(number, line);
        chars += line.chars().count() as u64;
        let shown = number - first;
        if shown >= limit || (shown > 0 && chars > room) {
            break;
        }
        text.push_str(&line);
        last = number;
    }
    if total == 0 {
        text.push_str("[an empty file]");
    } else if last < total {
        write!(
            text,
            "[lines {first}–{last} of {total}; go on with offset {}]",
            last + 1
        )
        .ok();
    }
    Outcome::ok(text).with_facts(Facts {
        read: vec![FileRead {
            path: site.name(path),
            sha256: contents.digest,
            lines: (last >= first).then_some([first, last]),
        }],
        ..Facts::default()
    })
}

/// One line with its number.
fn line_text(number: u64, line: &[u8]) -> String {
    let line = clip::text(line.strip_suffix(b"\r").unwrap_or(line));
    let shown = clip::first(&line, LONGEST);
    let mut text = format!("{number:>6}\t{shown}");
    if shown.len() < line.len() {
        let more = line[shown.len()..].chars().count() as u64;
        write!(text, "[… {} more characters]", grouped(more)).ok();
    }
    text.push('\n');
    text
}
