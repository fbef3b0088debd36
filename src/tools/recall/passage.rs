//! What entries say, raw: the texts that are shown and searched, and their lines.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::exchange::Clipped;
use crate::id::{CallId, EntryId};
use crate::tools::{Call, clip};
use crate::transcript::{Entry, Event, Speaker};

/// A longer line counts as several of this many characters, so that each of them can be had.
pub(super) const WIDEST: usize = 2000;

/// The text of one entry or call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// Its handle.
    pub(super) place: String,
    /// The entry that says it, of a call that of its result; `None` if the text was made here.
    pub(super) entry: Option<EntryId>,
    /// The text, with a heading.
    pub(super) text: String,
    /// The lines at the beginning that nobody said.
    pub(super) heading: usize,
}

impl Passage {
    /// What an entry says of its own: of a response its text, of a result the whole call.
    pub(super) fn of(call: &Call<'_>, entry: &Entry) -> Option<Self> {
        let id = entry.id;
        let said = |who: &str, text: &str| Self {
            place: format!("e{id}"),
            entry: Some(id),
            text: format!("[entry {id}, {who}]\n{text}"),
            heading: 1,
        };
        match &entry.event {
            Event::User(user) => {
                let mut text = unclipped(call, user.clipped, &user.text).into_owned();
                for attachment in &user.attachments {
                    let whole = unclipped(call, attachment.clipped, &attachment.text);
                    write!(text, "\n[attachment {}]\n{whole}", attachment.name).ok();
                }
                let who = match user.origin {
                    Speaker::Task | Speaker::FollowUp => "user",
                    Speaker::Hook | Speaker::Runtime => "runtime",
                };
                Some(said(who, &text))
            }
            Event::Response(response) => {
                (!response.text.is_empty()).then(|| said("assistant", &response.text))
            }
            Event::Result(result) => {
                let first = call.view.result_of(result.call).map(|(entry, _)| entry);
                Self::of_call(call, result.call).filter(|_| first == Some(id))
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
            | Event::Unknown(_) => None,
        }
    }

    /// An entry by itself: a response with the calls that it made.
    pub(super) fn in_full(call: &Call<'_>, entry: &Entry) -> Option<Self> {
        let Event::Response(response) = &entry.event else {
            return Self::of(call, entry);
        };
        let id = entry.id;
        let mut text = format!("[entry {id}, assistant]");
        if !response.text.is_empty() {
            write!(text, "\n{}", response.text).ok();
        }
        for (place, made) in (1..).zip(&response.calls) {
            let handle = CallId::new(id, place);
            write!(text, "\n[{handle}] {} {}", made.name, made.arguments).ok();
        }
        Some(Self {
            place: format!("e{id}"),
            entry: Some(id),
            text,
            heading: 1,
        })
    }

    /// A call in full: its arguments and its whole result.
    pub(super) fn of_call(call: &Call<'_>, id: CallId) -> Option<Self> {
        let made = call.view.tool_call(id)?;
        let result = call.view.result_of(id);
        let text = result.map_or(Cow::Borrowed("(no result)"), |(_, result)| {
            unclipped(call, result.clipped, &result.content)
        });
        Some(Self {
            place: id.to_string(),
            entry: Some(result.map_or(id.response, |(entry, _)| entry)),
            text: format!("[{id}] {} {}\n{text}", made.name, made.arguments),
            heading: 0,
        })
    }

    /// A list that nobody said.
    pub(super) fn list(overlay: EntryId, text: String) -> Self {
        Self {
            place: format!("e{overlay}"),
            entry: None,
            text,
            heading: 1,
        }
    }
}

/// Whether an entry is part of the conversation, as far as the model ever saw it: replies that were
/// asked for beside it, such as summaries, are not, nor is what `Recall` itself showed of it.
pub(super) fn is_said(call: &Call<'_>, entry: &Entry) -> bool {
    let view = call.view;
    match &entry.event {
        Event::Response(_) => view.rounds().of_response(entry.id).is_some(),
        Event::Result(result) => {
            let tool = view.tool_call(result.call);
            tool.is_some_and(|made| made.name != super::NAME)
                && view.rounds().of_response(result.call.response).is_some()
        }
        Event::User(_) => true,
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
        | Event::Unknown(_) => false,
    }
}

/// A text with what was clipped away from it, if that was kept.
fn unclipped<'a>(call: &Call<'_>, clipped: Option<Clipped>, text: &'a str) -> Cow<'a, str> {
    let blob = clipped.and_then(|clipped| clipped.blob);
    match blob.and_then(|blob| (call.blobs)(blob)) {
        Some(bytes) => Cow::Owned(clip::text(&bytes)),
        None => Cow::Borrowed(text),
    }
}

/// A line as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The index of its passage; `None` between two.
    pub(super) passage: Option<usize>,
    /// Its text.
    pub(super) text: &'a str,
    /// Whether it goes on where the one before it was cut.
    pub(super) goes_on: bool,
}

/// The lines of passages, one behind the other with an empty line between.
pub(super) fn lines(passages: &[Passage]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for (index, passage) in passages.iter().enumerate() {
        if index > 0 {
            lines.push(Line {
                passage: None,
                text: "",
                goes_on: false,
            });
        }
        for line in passage.text.lines() {
            let mut rest = line;
            let mut goes_on = false;
            loop {
                let text = clip::first(rest, WIDEST);
                lines.push(Line {
                    passage: Some(index),
                    text,
                    goes_on,
                });
                rest = &rest[text.len()..];
                goes_on = true;
                if rest.is_empty() {
                    break;
                }
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_counts_as_several() {
        let passage = |text: &str| Passage::list(EntryId(1), text.to_owned());
        let long = "ä".repeat(WIDEST * 2 + 1);
        let passages = [passage(&format!("a\n\n{long}\nb")), passage("c")];
        let lines = lines(&passages);
        let lengths: Vec<_> = lines
            .iter()
            .map(|line| (line.passage, line.text.chars().count(), line.goes_on))
            .collect();
        let (first, second) = (Some(0), Some(1));
        let expected = [
            (first, 1, false),
            (first, 0, false),
            (first, WIDEST, false),
            (first, WIDEST, true),
            (first, 1, true),
            (first, 1, false),
            (None, 0, false),
            (second, 1, false),
        ];
        assert_eq!(lengths, expected);
    }
}
