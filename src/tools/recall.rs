//! `Recall`: whatever this run ever saw, in full, by handle or by pattern.
//!
//! It reads raw entries and what was clipped away from them, never what they read as. Its results
//! are clipped and age like any other.

use std::borrow::Cow;
use std::fmt::Write as _;

use futures::future::{BoxFuture, FutureExt as _};
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::exchange::{Clipped, ToolResult, ToolSpec};
use crate::id::{CallId, EntryId};
use crate::overlay::Layer;
use crate::tools::{Call, Outcome, Tool, declared, schema};
use crate::transcript::{Entry, Event};

/// The lines shown if a call asks for no number.
const LINES: u64 = 200;

/// The matches shown of one search.
const MATCHES: usize = 50;

/// The longest line of a match, in characters.
const MATCH_CHARS: usize = 300;

/// The tool by which the model reads what was put away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recall;

/// The arguments of `Recall`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A call (41.2), an entry (e57 or 57), or a summary by its overlay's number
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
        declared::spec("Recall", schema::of::<Arguments>())
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        futures::future::ready(answer(&call)).boxed()
    }
}

fn answer(call: &Call<'_>) -> Outcome {
    let arguments = match serde_json::from_str::<Arguments>(call.arguments) {
        Ok(arguments) => arguments,
        Err(error) => return Outcome::error(format!("The arguments do not fit: {error}")),
    };
    let handle = arguments
        .handle
        .as_deref()
        .map(|text| (text, Handle::parse(text)));
    let handle = match handle {
        Some((text, None)) => {
            return Outcome::error(format!(
                "`{}` is no handle. A handle is a call such as 41.2, an entry such as e57, or the \
                 number of a summary's overlay.",
                text.chars().take(80).collect::<String>()
            ));
        }
        Some((_, found)) => found,
        None => None,
    };
    match (handle, arguments.pattern.as_deref()) {
        (None, None) => Outcome::error("Give a handle (such as 41.2), a pattern, or both."),
        (handle, Some(pattern)) => search(call, handle, pattern),
        (Some(handle), None) => show(call, handle, &arguments),
    }
}

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handle {
    Call(CallId),
    Entry(EntryId),
}

impl Handle {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(call) = text.parse() {
            return Some(Self::Call(call));
        }
        let digits = text.strip_prefix('e').unwrap_or(text);
        let number = digits.parse().ok().filter(|number| *number > 0)?;
        Some(Self::Entry(EntryId(number)))
    }
}

fn show(call: &Call<'_>, handle: Handle, arguments: &Arguments) -> Outcome {
    let view = call.view;
    let text = match handle {
        Handle::Call(id) => call_text(call, id),
        Handle::Entry(entry) => match view.overlay(entry).map(|overlay| &overlay.layer) {
            Some(Layer::Summary(summary)) => {
                let entries = view.transcript().span(summary.span);
                let texts = entries.iter().filter_map(|entry| raw_text(call, entry));
                Some(texts.collect::<Vec<_>>().join("\n\n"))
            }
            Some(Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_)) | None => view
                .transcript()
                .get(entry)
                .and_then(|entry| raw_text(call, entry)),
        },
    };
    let Some(text) = text else {
        return Outcome::error("Nothing has this handle, or it holds no text.");
    };
    let all = text.lines().count() as u64;
    let from = arguments.from_line.unwrap_or(1).max(1);
    let count = arguments.lines.unwrap_or(LINES).max(1);
    if from > all {
        return Outcome::error(format!("It has {all} lines; line {from} is past the end."));
    }
    let skip = usize::try_from(from - 1).unwrap_or(usize::MAX);
    let take = usize::try_from(count).unwrap_or(usize::MAX);
    let shown: Vec<&str> = text.lines().skip(skip).take(take).collect();
    let last = from + shown.len() as u64 - 1;
    let mut content = shown.join("\n");
    if last < all || from > 1 {
        write!(content, "\n[lines {from}–{last} of {all}").ok();
        if last < all {
            write!(content, "; go on with from_line {}", last + 1).ok();
        }
        content.push(']');
    }
    Outcome::ok(content)
}

/// A call in full: its arguments and its whole result.
fn call_text(call: &Call<'_>, id: CallId) -> Option<String> {
    let made = call.view.tool_call(id)?;
    let heading = format!("[{id}] {} {}", made.name, made.arguments);
    let result = call.view.result_of(id).map(|(_, result)| result);
    let text = result.map_or(Cow::Borrowed("(no result)"), |result| whole(call, result));
    Some(format!("{heading}\n{text}"))
}

/// A result with what was clipped away from it, if that was kept.
fn whole<'a>(call: &Call<'_>, result: &'a ToolResult) -> Cow<'a, str> {
    unclipped(call, result.clipped, &result.content)
}

/// A text with what was clipped away from it, if that was kept.
fn unclipped<'a>(call: &Call<'_>, clipped: Option<Clipped>, text: &'a str) -> Cow<'a, str> {
    let blob = clipped.and_then(|clipped| clipped.blob);
    match blob.and_then(|blob| (call.blobs)(blob)) {
        Some(bytes) => Cow::Owned(crate::tools::clip::text(&bytes)),
        None => Cow::Borrowed(text),
    }
}

/// What an entry says, raw; `None` if it is of a kind that says nothing.
fn raw_text(call: &Call<'_>, entry: &Entry) -> Option<String> {
    let id = entry.id;
    Some(match &entry.event {
        Event::User(user) => {
            let mut text = format!("[entry {id}, user] ");
            text.push_str(&unclipped(call, user.clipped, &user.text));
            for attachment in &user.attachments {
                let whole = unclipped(call, attachment.clipped, &attachment.text);
                write!(text, "\n[attachment {}]\n{whole}", attachment.name).ok();
            }
            text
        }
        Event::Response(response) => {
            let mut text = format!("[entry {id}, assistant] {}", response.text);
            for (place, made) in (1..).zip(&response.calls) {
                let handle = CallId::new(id, place);
                write!(text, "\n[{handle}] {} {}", made.name, made.arguments).ok();
            }
            text
        }
        Event::Result(result) => {
            let name = call
                .view
                .tool_call(result.call)
                .map_or("?", |made| made.name.as_str());
            format!(
                "[{}, result of {name}]\n{}",
                result.call,
                whole(call, result)
            )
        }
        Event::Run(_)
        | Event::Setup(_)
        | Event::Request(_)
        | Event::Started(_)
        | Event::Overlay(_)
        | Event::Retract(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Fault(_)
        | Event::Note(_)
        | Event::End(_)
        | Event::Unknown(_) => return None,
    })
}

fn search(call: &Call<'_>, handle: Option<Handle>, pattern: &str) -> Outcome {
    let pattern = match Regex::new(pattern) {
        Ok(pattern) => pattern,
        Err(error) => return Outcome::error(format!("The pattern is not understood: {error}")),
    };
    let mut found = Vec::new();
    let mut more = 0_usize;
    let mut look = |place: &str, text: &str| {
        for (number, line) in (1..).zip(text.lines()) {
            let Some(hit) = pattern.find(line) else {
                continue;
            };
            if found.len() < MATCHES {
                found.push(format!("{place}:{number}: {}", around(line, hit.start())));
            } else {
                more += 1;
            }
        }
    };
    let transcript = call.view.transcript();
    match handle {
        Some(Handle::Call(id)) => {
            look(&id.to_string(), &call_text(call, id).unwrap_or_default());
        }
        Some(Handle::Entry(id)) => {
            let summary = call
                .view
                .overlay(id)
                .and_then(|overlay| match &overlay.layer {
                    Layer::Summary(summary) => Some(summary.span),
                    Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_) => None,
                });
            let entries = summary.map_or_else(
                || transcript.span(crate::id::Span::new(id, id)),
                |span| transcript.span(span),
            );
            for entry in entries {
                look(&place(entry), &raw_text(call, entry).unwrap_or_default());
            }
        }
        None => {
            for entry in transcript.entries() {
                let own =
                    matches!(&entry.event, Event::Response(_)) && entry.id == call.id.response;
                if !own && let Some(text) = raw_text(call, entry) {
                    look(&place(entry), &text);
                }
            }
        }
    }
    if found.is_empty() {
        return Outcome::ok("No line matches.");
    }
    let mut content = found.join("\n");
    if more > 0 {
        write!(
            content,
            "\n[{more} more matches; make the pattern narrower]"
        )
        .ok();
    }
    Outcome::ok(content)
}

/// The handle of an entry in a list of matches: of a result, its call.
fn place(entry: &Entry) -> String {
    if let Event::Result(result) = &entry.event {
        return result.call.to_string();
    }
    format!("e{}", entry.id)
}

/// A line, or the part of a long one around a match.
fn around(line: &str, at: usize) -> Cow<'_, str> {
    if line.chars().count() <= MATCH_CHARS {
        return Cow::Borrowed(line);
    }
    let before = line[..at].chars().count().saturating_sub(MATCH_CHARS / 3);
    let part: String = line.chars().skip(before).take(MATCH_CHARS).collect();
    let head = if before > 0 { "…" } else { "" };
    Cow::Owned(format!("{head}{part}…"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::View;

    fn recall(view: &View, arguments: &str) -> String {
        let id = CallId::new(EntryId(u64::MAX), 1);
        answer(&Call {
            id,
            arguments,
            view,
            blobs: &|_| None,
        })
        .content
    }

    #[test]
    fn a_handle_is_a_call_or_an_entry() {
        for (text, handle) in [
            ("41.2", Some(Handle::Call(CallId::new(EntryId(41), 2)))),
            ("e57", Some(Handle::Entry(EntryId(57)))),
            (" 57 ", Some(Handle::Entry(EntryId(57)))),
            ("0", None),
            ("last", None),
            ("-1", None),
        ] {
            assert_eq!(Handle::parse(text), handle, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_answered() {
        let view = View::default();
        for (arguments, answer) in [
            ("{}", "Give a handle (such as 41.2), a pattern, or both."),
            (
                r#"{"handle":"5.1"}"#,
                "Nothing has this handle, or it holds no text.",
            ),
            (r#"{"pattern":"x"}"#, "No line matches."),
        ] {
            assert_eq!(recall(&view, arguments), answer);
        }
        assert!(recall(&view, r#"{"pattern":"("}"#).starts_with("The pattern is not understood"));
    }
}
