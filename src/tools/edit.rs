//! `Edit`: replaces exact texts in a file.
//!
//! It works on bytes: what is no UTF-8, the line ends and a missing final line end stay as they
//! are. A text is looked for as it was given first, then with the file's line ends.

use std::borrow::Cow;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffableStr as _, group_diff_ops};

use crate::difference;
use crate::exchange::{Facts, FileWritten, ToolSpec};
use crate::tools::scope::{Missing, Refusal, Site, quoted};
use crate::tools::{Outcome, clip, declared, file, schema, stand_in};

/// The longest difference shown, in characters.
const DIFFERENCE: u64 = 4000;

/// How many places of a text that is found too often are named.
const PLACES: usize = 8;

/// How many lines of the nearest text are shown, and of the text that was looked for compared.
const NEAREST: usize = 10;

/// The arguments of `Edit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the working directory or absolute.
    path: String,
    /// The edits, made in order.
    #[schemars(length(min = 1))]
    edits: Vec<Replacement>,
}

/// One edit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Replacement {
    /// The text to replace, exactly as it is in the file.
    #[schemars(length(min = 1))]
    old: String,
    /// The text that takes its place.
    new: String,
    /// Replace it wherever it is, not only where it is unique.
    replace_all: Option<bool>,
}

/// The spec of `Edit`.
pub(crate) fn spec() -> ToolSpec {
    declared::spec("Edit", schema::of::<Arguments>())
}

/// Edits the file.
pub(crate) fn run(site: &Site, arguments: &str) -> Outcome {
    match serde_json::from_str(arguments) {
        Ok(arguments) => {
            edit(site, &arguments).unwrap_or_else(|refusal| refusal.outcome(&arguments.path))
        }
        Err(error) => Outcome::error(format!("The arguments do not fit: {error}")),
    }
}

fn edit(site: &Site, Arguments { path, edits }: &Arguments) -> Result<Outcome, Refusal> {
    let spot = site.find_to_write(path, Missing::Refuse)?;
    let old = file::read(site, &spot)?.ok_or(Refusal::Missing)?;
    let refused = |why: &str| {
        Ok(Outcome::error(format!(
            "{}: not changed, {why}",
            quoted(path)
        )))
    };
    if site.known.is_some_and(|known| known != old.digest) {
        return refused("it changed since you last read it. Read it again.");
    }
    let mut bytes = Cow::Borrowed(old.bytes.as_slice());
    for (number, edit) in edits.iter().enumerate() {
        match edit.apply(&bytes) {
            Ok(edited) => bytes = Cow::Owned(edited),
            Err(why) if edits.len() == 1 => return refused(&why),
            Err(why) => return refused(&format!("edit {} of {}: {why}", number + 1, edits.len())),
        }
    }
    if *bytes == old.bytes {
        return refused("the edits leave everything as it is.");
    }
    if let Some(why) = stand_in::loss(&old.bytes, &bytes) {
        return refused(&why);
    }
    let sha256 = file::replace(&spot, &bytes, Some(&old))?;
    let name = site.name(path);
    let difference = difference(&old.bytes, &bytes);
    let difference = clip::clip(&difference, DIFFERENCE, site.call).unwrap_or(difference);
    let text = format!("Edited {}.\n{difference}", quoted(&name));
    Ok(Outcome::ok(text).with_facts(Facts {
        wrote: vec![FileWritten { path: name, sha256 }],
        ..Facts::default()
    }))
}

impl Replacement {
    /// The bytes after this edit; `Err` says why it cannot be made.
    fn apply(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        if self.old.is_empty() {
            return Err("`old` is empty. To write a whole file use Write.".to_owned());
        }
        if self.old == self.new {
            return Err("`old` and `new` are the same.".to_owned());
        }
        let (old, places) = self.places(bytes);
        match places.as_slice() {
            [] => return Err(self.not_found(bytes)),
            [_] => {}
            [..] if self.replace_all == Some(true) => {}
            [..] => return Err(found_often(bytes, &places)),
        }
        let new = if style(old.as_bytes()).or_else(|| style(bytes)) == Some(LineEnd::CrLf) {
            with_crlf(&self.new)
        } else {
            Cow::Borrowed(self.new.as_str())
        };
        let mut edited = Vec::with_capacity(bytes.len() + new.len());
        let mut from = 0;
        for place in places {
            edited.extend_from_slice(&bytes[from..place]);
            edited.extend_from_slice(new.as_bytes());
            from = place + old.len();
        }
        edited.extend_from_slice(&bytes[from..]);
        Ok(edited)
    }

    /// The text as it is in the file, and where.
    fn places(&self, bytes: &[u8]) -> (Cow<'_, str>, Vec<usize>) {
        let plain = Cow::Borrowed(self.old.as_str());
        let forms = [
            plain.clone(),
            with_crlf(&self.old),
            self.old.replace("\r\n", "\n").into(),
        ];
        let found = forms.into_iter().find_map(|old| {
            let places = matches(bytes, &old);
            (!places.is_empty()).then_some((old, places))
        });
        found.unwrap_or((plain, Vec::new()))
    }

    /// Why the text was not found, with what comes nearest to it.
    fn not_found(&self, bytes: &[u8]) -> String {
        let mut text = "`old` is not in the file.".to_owned();
        if let Some(advice) = stand_in::advice(&self.old) {
            write!(text, " {advice}").ok();
        }
        if let Some((first, lines)) = nearest(bytes, &self.old) {
            match lines.len() {
                0 | 1 => write!(text, " The nearest text, line {first}:"),
                count => write!(
                    text,
                    " The nearest text, lines {first}–{}:",
                    first + count - 1
                ),
            }
            .ok();
            for line in lines {
                write!(text, "\n{}", clip::first(&line, 300)).ok();
            }
        }
        text
    }
}

/// Where the text is, without overlaps. Text can only be in those parts that are UTF-8.
fn matches(bytes: &[u8], text: &str) -> Vec<usize> {
    let (mut places, mut start) = (Vec::new(), 0);
    for chunk in bytes.utf8_chunks() {
        places.extend(
            chunk
                .valid()
                .match_indices(text)
                .map(|(place, _)| start + place),
        );
        start += chunk.valid().len() + chunk.invalid().len();
    }
    places
}

/// That a text is there more than once, and on which lines.
fn found_often(bytes: &[u8], places: &[usize]) -> String {
    let line = |place: &usize| bytes[..*place].split(|byte| *byte == b'\n').count();
    let lines: Vec<String> = places
        .iter()
        .take(PLACES)
        .map(|place| line(place).to_string())
        .collect();
    let more = if places.len() > PLACES { ", …" } else { "" };
    format!(
        "`old` is found {} times, on lines {}{more}. Add lines around it until it is unique, or \
         set replace_all.",
        places.len(),
        lines.join(", ")
    )
}

/// How lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Lf,
    CrLf,
}

/// How most lines end; `None` if there is but one line.
fn style(bytes: &[u8]) -> Option<LineEnd> {
    let all = bytes.split(|byte| *byte == b'\n').count() - 1;
    let both = bytes.windows(2).filter(|pair| pair == b"\r\n").count();
    match all {
        0 => None,
        _ if both * 2 > all => Some(LineEnd::CrLf),
        _ => Some(LineEnd::Lf),
    }
}

/// The text with CRLF at the end of each line.
fn with_crlf(text: &str) -> Cow<'_, str> {
    if text.contains('\n') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The lines of the file that are most like the text, and the number of the first of them.
fn nearest(bytes: &[u8], text: &str) -> Option<(usize, Vec<String>)> {
    let file = clip::text(bytes);
    let lines: Vec<&str> = file.lines().collect();
    let wanted: Vec<&str> = text.lines().map(str::trim).take(NEAREST).collect();
    let telling = |line: &str| line.chars().filter(|char| char.is_alphanumeric()).count();
    // How much of the text stands there, but for spaces at both ends.
    let score = |start: usize| -> usize {
        let there = lines[start..].iter().zip(&wanted);
        there
            .filter(|(line, wanted)| line.trim() == **wanted)
            .map(|(_, wanted)| telling(wanted))
            .sum()
    };
    // Among equals the first.
    let best = (0..lines.len()).rev().max_by_key(|start| score(*start))?;
    let start = if score(best) > 0 {
        best
    } else {
        let (offset, line) = wanted
            .iter()
            .enumerate()
            .rev()
            .max_by_key(|(_, line)| telling(line))?;
        let trimmed: Vec<&str> = lines.iter().take(20_000).map(|line| line.trim()).collect();
        let close = difference::close(line, &trimmed, 1, 0.6);
        let place = trimmed
            .iter()
            .position(|line| Some(line) == close.first())?;
        place.saturating_sub(offset)
    };
    let shown = lines[start..].iter().take(wanted.len().max(1));
    Some((start + 1, shown.map(|line| (*line).to_owned()).collect()))
}

/// What changed, as a unified difference without file names.
fn difference(old: &[u8], new: &[u8]) -> String {
    let (old, new) = (
        clip::text(old).replace("\r\n", "\n"),
        clip::text(new).replace("\r\n", "\n"),
    );
    let (old, new) = (old.tokenize_lines(), new.tokenize_lines());
    let operations = difference::operations(&old, &new);
    let mut shown = String::new();
    for hunk in group_diff_ops(operations, 2) {
        writeln!(shown, "{}", UnifiedHunkHeader::new(&hunk)).ok();
        let changes = hunk.iter();
        for change in changes.flat_map(|operation| operation.iter_changes(&old[..], &new[..])) {
            write!(shown, "{}{}", change.tag(), change.value()).ok();
            if !change.value().ends_with_newline() {
                shown.push('\n');
            }
        }
    }
    shown
}
