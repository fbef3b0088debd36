//! The messages of each request, by number: a message that reads as before keeps its number, so that
//! a request is told by what differs from the one before.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::exchange::{Message, SentCall};
use crate::id::{CallId, EntryId};
use crate::overlay::Layer;
use crate::page::texts::Texts;
use crate::view::View;
use crate::view::{Content, Reading, Source};
use crate::words;

/// A message as it was sent. What is not said reads as it is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Piece {
    /// What it comes from: `e17` an entry, `17.2` a result, `s410` a summary, `y410` what it carries,
    /// `k` the word after it, `a` what the request itself asks.
    of: String,
    /// Who speaks: `u`, `a` or `t`.
    role: char,
    /// The text that is read in the place of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<usize>,
    /// The calls that are read, if not all of them are.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Vec<u32>>,
    /// The calls whose arguments read as nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    emptied: Vec<u32>,
    /// The calls whose arguments read differently, with what they read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<(u32, usize)>,
    /// The blocks of reasoning that are read, if not all of them are.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<usize>,
    /// The entry whose text is read in the place of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    correction: Option<EntryId>,
    /// The attachments that read as a line, from 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without: Vec<u32>,
    /// The overlay that changed each part which does not read in full.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    by: BTreeMap<String, EntryId>,
}

/// A request's messages, told by those of the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct List {
    /// How many of the first messages are the same.
    keep: usize,
    /// The numbers of those that follow; `a, -b` are all from `a` to `b`.
    then: Vec<i64>,
}

/// The messages so far.
#[derive(Debug, Default)]
pub(super) struct Lists {
    numbers: HashMap<Piece, usize>,
    new: Vec<Piece>,
    last: Vec<usize>,
    /// Something came since the last list that may change old messages.
    changed: bool,
    /// The numbers of messages that read as they did when they were told.
    known: HashMap<Source, usize>,
}

impl Lists {
    /// All messages may read differently from here on.
    pub(super) fn change_all(&mut self) {
        self.changed = true;
        self.known.clear();
    }

    /// What this overlay lies on may read differently from here on.
    pub(super) fn change(&mut self, layer: &Layer) {
        self.changed = true;
        match layer {
            Layer::Stub(stub) => self.change_calls(stub.results.iter().chain(&stub.arguments)),
            Layer::Show(show) => self.change_calls(&show.calls),
            Layer::Hide(hide) => {
                self.change_calls(&hide.calls);
                let attachments = hide.attachments.iter().map(|(entry, _)| entry);
                for entry in hide.reasoning.iter().chain(attachments) {
                    self.known.remove(&Source::Entry(*entry));
                }
                // Rounds are left out whole, or read as they did before.
            }
            // So does what it covers.
            Layer::Summary(_) => {}
        }
    }

    fn change_calls<'a>(&mut self, calls: impl IntoIterator<Item = &'a CallId>) {
        for call in calls {
            self.known.remove(&Source::Result(*call));
            self.known.remove(&Source::Entry(call.response));
        }
    }

    /// A reply reads as another does.
    pub(super) fn correct(&mut self, reply: EntryId) {
        self.changed = true;
        self.known.remove(&Source::Entry(reply));
    }

    /// A call is answered: late, if a request that reads it was made already, of which this is the newest.
    pub(super) fn answer(&mut self, call: CallId, asked: EntryId) {
        self.changed |= call.response < asked;
        self.known.remove(&Source::Result(call));
    }

    /// The messages that the view reads as now, for the next round.
    pub(super) fn round(&mut self, view: &View, texts: &mut Texts) -> List {
        let known = if self.changed { 0 } else { self.last.len() };
        let mut list: Vec<usize> = self.last.iter().copied().take(known).collect();
        for (place, source) in view.sources_from(known) {
            if let Some(number) = self.known.get(&source) {
                list.push(*number);
            } else if let Some(reading) = view.reading_at(place) {
                let number = self.number(piece(view, &reading, texts));
                self.known.insert(source, number);
                list.push(number);
            }
        }
        self.changed = false;
        let keep = self.last.iter().zip(&list);
        let keep = keep.take_while(|(one, other)| one == other).count();
        let then = ranges(list.get(keep..).unwrap_or_default());
        self.last = list;
        List { keep, then }
    }

    /// The messages of a request that is not for a round.
    pub(super) fn asked(&mut self, view: &View, asked: &[Reading<'_>], texts: &mut Texts) -> List {
        let asked = asked.iter();
        let list: Vec<usize> = asked
            .map(|reading| self.number(piece(view, reading, texts)))
            .collect();
        List {
            keep: 0,
            then: ranges(&list),
        }
    }

    fn number(&mut self, piece: Piece) -> usize {
        let next = self.numbers.len();
        let new = &mut self.new;
        *self.numbers.entry(piece).or_insert_with_key(|piece| {
            new.push(piece.clone());
            next
        })
    }

    /// The messages that were not handed out yet.
    pub(super) fn take(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.new)
    }
}

/// Numbers with runs of neighbours as `from, -to`.
fn ranges(numbers: &[usize]) -> Vec<i64> {
    let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let mut told = Vec::new();
    for run in numbers.chunk_by(|one, next| one + 1 == *next) {
        if let [first, .., last] = run {
            told.extend([signed(*first), -signed(*last)]);
        } else {
            told.extend(run.iter().copied().map(signed));
        }
    }
    told
}

/// A message, with what of it is not as it is recorded.
fn piece(view: &View, reading: &Reading<'_>, texts: &mut Texts) -> Piece {
    let mut piece = Piece {
        of: name(reading.source),
        role: match reading.message {
            Message::User { .. } => 'u',
            Message::Assistant { .. } => 'a',
            Message::Tool { .. } => 't',
        },
        by: by(reading),
        ..Piece::default()
    };
    match (&reading.message, reading.source) {
        (Message::User { text }, Source::Entry(entry)) => {
            piece.without = without(reading);
            let reads = user_text(view, entry, &piece.without);
            piece.text = (reads.as_deref() != Some(text)).then(|| texts.number(text));
        }
        (
            Message::Assistant {
                text,
                reasoning,
                calls,
                ..
            },
            Source::Entry(entry),
        ) => assistant(
            &mut piece,
            view,
            entry,
            (text, reasoning.len(), calls),
            texts,
        ),
        (Message::Tool { text, .. }, Source::Result(call)) => {
            let result = view.result_of(call);
            let same = result.is_some_and(|(_, result)| result.content == *text);
            piece.text = (!same).then(|| texts.number(text));
        }
        (
            Message::User { text } | Message::Assistant { text, .. } | Message::Tool { text, .. },
            Source::Entry(_)
            | Source::Result(_)
            | Source::Summary(_)
            | Source::Carry(_)
            | Source::Understood
            | Source::Asked,
        ) => piece.text = Some(texts.number(text)),
    }
    piece
}

/// What an assistant's message comes to: text, blocks of reasoning, calls.
type Said<'a> = (&'a str, usize, &'a [SentCall<'a>]);

fn assistant(
    piece: &mut Piece,
    view: &View,
    entry: EntryId,
    (text, reasoning, calls): Said<'_>,
    texts: &mut Texts,
) {
    let reads = view.corrected(entry);
    piece.correction = (reads != entry).then_some(reads);
    let response = view.response(reads);
    let same = response.is_some_and(|response| response.text == text);
    piece.text = (!same).then(|| texts.number(text));
    let blocks = response.map_or(0, |response| response.reasoning.len());
    piece.reasoning = (blocks != reasoning).then_some(reasoning);
    let all = view
        .response(entry)
        .map_or(0, |response| response.calls.len());
    if calls.len() != all {
        piece.calls = Some(calls.iter().map(|call| call.id.place).collect());
    }
    for call in calls {
        let made = view.tool_call(call.id);
        if made.is_some_and(|made| made.arguments == call.arguments) {
            continue;
        }
        if call.arguments == words::NO_ARGUMENTS {
            piece.emptied.push(call.id.place);
        } else {
            let reads = texts.number(&call.arguments);
            piece.arguments.push((call.id.place, reads));
        }
    }
}

/// What a message comes from, as the page names it.
fn name(source: Source) -> String {
    match source {
        Source::Entry(entry) => format!("e{entry}"),
        Source::Result(call) => call.to_string(),
        Source::Summary(overlay) => format!("s{overlay}"),
        Source::Carry(overlay) => format!("y{overlay}"),
        Source::Understood => "k".to_owned(),
        Source::Asked => "a".to_owned(),
    }
}

fn by(reading: &Reading<'_>) -> BTreeMap<String, EntryId> {
    let changed = reading.changed.iter().map(|change| {
        let part = match change.content {
            Content::Text(_) => "text".to_owned(),
            Content::Reasoning(_) => "reasoning".to_owned(),
            Content::Arguments(call) => format!("arguments {}", call.place),
            Content::Result(_) => "result".to_owned(),
            Content::Attachment(_, place) => format!("attachment {place}"),
            Content::Call(call) => format!("call {}", call.place),
        };
        (part, change.by)
    });
    changed.collect()
}

/// The attachments that an overlay hides.
fn without(reading: &Reading<'_>) -> Vec<u32> {
    let changed = reading.changed.iter();
    changed
        .filter_map(|change| match change.content {
            Content::Attachment(_, place) => Some(place),
            Content::Text(_)
            | Content::Reasoning(_)
            | Content::Arguments(_)
            | Content::Result(_)
            | Content::Call(_) => None,
        })
        .collect()
}

/// A user's text with its attachments, some of them as a line.
fn user_text(view: &View, entry: EntryId, without: &[u32]) -> Option<String> {
    let user = view.user(entry)?;
    let mut text = user.text.clone();
    for (place, attachment) in (1..).zip(&user.attachments) {
        text.push_str("\n\n");
        let name = &attachment.name;
        text.push_str(&if without.contains(&place) {
            words::attachment_hidden(name, attachment.text.chars().count())
        } else {
            words::attachment(name, &attachment.media, &attachment.text)
        });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_told_by_their_ends() {
        assert_eq!(ranges(&[]), [0; 0]);
        assert_eq!(ranges(&[0, 1, 2, 7, 9, 10]), [0, -2, 7, 9, -10]);
        assert_eq!(ranges(&[5, 4, 3]), [5, 4, 3]);
    }
}
