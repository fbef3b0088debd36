//! `Recall`: whatever this run ever saw, in full, by handle or by pattern.
//!
//! It reads raw entries and what was clipped away from them, never what they read as. Its results
//! are clipped and age like any other; their facts name the entries that were shown, so that what
//! was hidden too early can be counted. [`handle`] says what is meant, [`passage`] what it says,
//! [`search`] which lines match.

mod handle;
mod passage;
mod search;

use std::fmt::Write as _;
use std::ops::Range;

use futures::future::{BoxFuture, FutureExt as _};
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::exchange::{Facts, ToolSpec};
use crate::id::EntryId;
use crate::tools::{Call, Outcome, Tool, declared, schema};
use crate::transcript::Event;
use handle::Handle;
use passage::Passage;
use search::Found;

/// The name of the tool.
const NAME: &str = "Recall";

/// The most lines shown if a call asks for no number.
const LINES: u64 = 200;

/// What the line about the rest takes, in characters.
const REST: u64 = 200;

/// The tool by which the model reads what was put away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recall;

/// The arguments of `Recall`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A call (41.2), an entry (e57 or 57), a summary by its overlay's number, or a round (r12)
    #[serde(default)]
    handle: Option<String>,
    /// A regular expression to search for in everything this run has seen
    #[serde(default)]
    pattern: Option<String>,
    /// The first line to show, from 1
    #[serde(default)]
    from_line: Option<u64>,
    /// The number of lines to show (default 200)
    #[serde(default)]
    lines: Option<u64>,
}

impl Tool for Recall {
    fn spec(&self) -> ToolSpec {
        declared::spec(NAME, schema::of::<Arguments>())
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        let outcome = answer(&call).unwrap_or_else(Outcome::error);
        futures::future::ready(outcome).boxed()
    }
}

/// The answer to a call; `Err` says what is wrong with it.
fn answer(call: &Call<'_>) -> Result<Outcome, String> {
    let arguments: Arguments = serde_json::from_str(call.arguments)
        .map_err(|error| format!("The arguments do not fit: {error}"))?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let handle = given(&arguments.handle).map(|text| {
        Handle::parse(&text).ok_or_else(|| {
            format!(
                "`{}` is no handle. A handle is a call such as 41.2, an entry such as e57, the \
                 number of a summary's overlay, or a round such as r12.",
                text.trim().chars().take(80).collect::<String>()
            )
        })
    });
    let passages = handle.transpose()?.map(|handle| handle.passages(call));
    match (passages.transpose()?, given(&arguments.pattern)) {
        (None, None) => Err("Give a handle (such as 41.2), a pattern, or both.".to_owned()),
        (Some(passages), None) => show(call, &passages, &arguments),
        (Some(passages), Some(pattern)) => {
            let wanted = wanted(&arguments, u64::MAX);
            search(&pattern, |pattern| {
                let mut found = Found::default();
                let mut before = 0;
                for passage in &passages {
                    // Its lines among all, with an empty one behind each passage.
                    let lines = passage::lines(std::slice::from_ref(passage)).len() as u64;
                    let within =
                        wanted.start.saturating_sub(before)..wanted.end.saturating_sub(before);
                    found.look(passage, pattern, &within);
                    before += lines + 1;
                }
                found
            })
        }
        (None, Some(pattern)) => search(&pattern, |pattern| {
            let mut found = Found::default();
            for entry in call.view.transcript().entries().passing() {
                // The call that searches names what it looks for.
                let own =
                    matches!(&entry.event, Event::Response(_)) && entry.id == call.id.response;
                if !own
                    && passage::is_said(call, &entry)
                    && let Some(passage) = Passage::of(call, &entry)
                {
                    found.look(&passage, pattern, &(1..u64::MAX));
                }
            }
            found
        }),
    }
}

/// The numbers of the lines that a call asks for.
fn wanted(arguments: &Arguments, usual: u64) -> Range<u64> {
    let from = arguments.from_line.unwrap_or(1).max(1);
    let count = arguments.lines.unwrap_or(usual).max(1);
    from..from.saturating_add(count)
}

/// Shows lines of passages: those asked for, else as many as fit a result.
fn show(call: &Call<'_>, passages: &[Passage], arguments: &Arguments) -> Result<Outcome, String> {
    let lines = passage::lines(passages);
    let all = lines.len() as u64;
    let wanted = wanted(arguments, LINES);
    let from = wanted.start;
    if from > all {
        return Err(format!("It has {all} lines; line {from} is past the end."));
    }
    let room = match arguments.lines {
        Some(_) => u64::MAX,
        None => room(call),
    };
    let (mut content, mut entries) = (String::new(), Vec::<EntryId>::new());
    let (mut last, mut chars) = (from - 1, 0);
    for (number, line) in (1..wanted.end).zip(&lines) {
        if number < from {
            continue;
        }
        chars += line.text.chars().count() as u64 + 1;
        if number > from && chars > room {
            break;
        }
        if number > from && !line.goes_on {
            content.push('\n');
        }
        content.push_str(line.text);
        let entry = line.passage.and_then(|index| passages[index].entry);
        if let Some(entry) = entry.filter(|entry| entries.last() != Some(entry)) {
            entries.push(entry);
        }
        last = number;
    }
    if last < all || from > 1 {
        write!(content, "\n[lines {from}–{last} of {all}").ok();
        if last < all {
            write!(content, "; go on with from_line {}", last + 1).ok();
        }
        content.push(']');
    }
    Ok(shown(content, entries))
}

/// The characters of a result that is not clipped.
fn room(call: &Call<'_>) -> u64 {
    let view = call.view;
    let calls = view
        .response(call.id.response)
        .map_or(1, |reply| reply.calls.len());
    let sizes = view.sizes().zip(view.policy());
    sizes.map_or(u64::MAX, |(sizes, policy)| {
        sizes.result_chars(policy, calls).saturating_sub(REST)
    })
}

/// Searches for a pattern as it is; where nothing matches, ignoring case, and as plain text.
fn search(pattern: &str, look: impl Fn(&Regex) -> Found) -> Result<Outcome, String> {
    let ignoring_case = |pattern: &str| RegexBuilder::new(pattern).case_insensitive(true).build();
    let plain = || ignoring_case(&regex::escape(pattern)).ok();
    let exact = Regex::new(pattern);
    let attempts: [(&str, &dyn Fn() -> Option<Regex>); 3] = [
        ("", &|| exact.clone().ok()),
        (
            "[no line matches exactly; ignoring case these do]\n",
            &|| {
                exact
                    .as_ref()
                    .ok()
                    .and_then(|_| ignoring_case(pattern).ok())
            },
        ),
        (
            "[the pattern was searched for as plain text, ignoring case]\n",
            &plain,
        ),
    ];
    for (heading, regex) in attempts {
        let found = regex()
            .map(|regex| look(&regex))
            .filter(|found| !found.is_empty());
        if let Some((text, entries)) = found.map(Found::told) {
            return Ok(shown(format!("{heading}{text}"), entries));
        }
    }
    match exact {
        Err(error) => Err(format!("The pattern is not understood: {error}")),
        Ok(_) => Ok(Outcome::ok("No line matches.")),
    }
}

/// The answer that shows texts of these entries.
fn shown(content: String, recalled: Vec<EntryId>) -> Outcome {
    Outcome::ok(content).with_facts(Facts {
        recalled,
        ..Facts::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::CallId;
    use crate::view::View;

    #[test]
    fn what_cannot_be_understood_is_answered() {
        let view = View::default();
        let id = CallId::new(EntryId(u64::MAX), 1);
        let recall = |arguments: &str| {
            let answer = answer(&Call {
                id,
                arguments,
                view: &view,
                blobs: &|_| None,
            });
            answer.map_or_else(|error| error, |outcome| outcome.content)
        };
        for (arguments, answer) in [
            ("{}", "Give a handle (such as 41.2), a pattern, or both."),
            (
                r#"{"handle":" "}"#,
                "Give a handle (such as 41.2), a pattern, or both.",
            ),
            (r#"{"handle":"5.1"}"#, "There is no call 5.1."),
            (
                r#"{"handle":"r3"}"#,
                "There is no round 3 with a reply: the run has 1 to 0.",
            ),
            (r#"{"pattern":"x"}"#, "No line matches."),
        ] {
            assert_eq!(recall(arguments), answer);
        }
        assert!(recall(r#"{"pattern":"("}"#).starts_with("The pattern is not understood"));
        assert!(recall(r#"{"handle":"the last"}"#).starts_with("`the last` is no handle. "));
    }
}
