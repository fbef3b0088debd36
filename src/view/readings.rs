//! Where each message of the next round's request comes from, and which overlays changed it.
//!
//! [`View::messages`] says what the model reads; [`View::readings`] says the same and why it reads so.
//! [`View::reads_as`] looks at it from the other side: how one content of one entry reads now.

use schemars::JsonSchema;
use serde::Serialize;

use crate::exchange::Message;
use crate::id::{CallId, EntryId};
use crate::overlay::layers::{Cover, Reads};
use crate::view::View;
use crate::view::item::{Item, Kind};
use crate::view::pieces::{Part, Piece};
use crate::words;

/// A message of a request, with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading<'a> {
    /// What is read.
    pub message: Message<'a>,
    /// What it comes from.
    pub source: Source,
    /// The parts of it that do not read in full, in the order they stand in their entry.
    pub changed: Vec<Change>,
}

/// What a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(tag = "from", content = "id", rename_all = "snake_case")]
pub enum Source {
    /// A user entry, or the response of a round. If it was corrected, the correction's text is read.
    Entry(EntryId),
    /// The result of a call.
    Result(CallId),
    /// The summary that this overlay laid.
    Summary(EntryId),
    /// What this summary shows again after the last summary.
    Carry(EntryId),
    /// The assistant's word after a summary.
    Understood,
    /// What the request itself asks for: a summary, or a correction. Never in a round.
    Asked,
}

/// A content that does not read in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
pub struct Change {
    /// The content.
    pub content: Content,
    /// The overlay by which it does not.
    pub by: EntryId,
}

/// One content of an entry: what an overlay can have an opinion on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(tag = "kind", content = "id", rename_all = "snake_case")]
pub enum Content {
    /// The text of a user entry or of a response.
    Text(EntryId),
    /// The reasoning of a response.
    Reasoning(EntryId),
    /// The arguments of a call.
    Arguments(CallId),
    /// The result of a call.
    Result(CallId),
    /// An attachment of a user entry, by its place from 1.
    Attachment(EntryId, u32),
    /// A call, its arguments and its result together.
    Call(CallId),
}

/// How a content reads, as far as overlays go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(tag = "as", content = "by", rename_all = "snake_case")]
pub enum As {
    /// As it is in its entry.
    Full,
    /// As a short stub, laid by this overlay.
    Stub(EntryId),
    /// Not at all, by this overlay.
    Hidden(EntryId),
    /// In the summary that this overlay laid.
    Summarised(EntryId),
    /// Not any more: this later response, which corrects it, reads in its place.
    Corrected(EntryId),
    /// Not yet: the call has no result.
    Open,
    /// There is no such content in the conversation, or it says nothing.
    Absent,
}

impl<'a> Reading<'a> {
    /// A message of raw entries, or of what no overlay can change.
    pub(super) fn raw(message: Message<'a>, source: Source) -> Self {
        let changed = Vec::new();
        Self {
            message,
            source,
            changed,
        }
    }
}

impl As {
    /// The overlay by which a content does not read in full.
    pub fn overlay(self) -> Option<EntryId> {
        match self {
            Self::Stub(by) | Self::Hidden(by) | Self::Summarised(by) => Some(by),
            Self::Full | Self::Corrected(_) | Self::Open | Self::Absent => None,
        }
    }
}

impl View {
    /// The messages of the next round's request as [`messages`](Self::messages) gives them, each with
    /// what it comes from and what changed it.
    pub fn readings(&self) -> Vec<Reading<'_>> {
        let pieces = self.pieces.list().iter();
        pieces.filter_map(|piece| self.traced(piece)).collect()
    }

    /// What the messages come from, without the first ones, each with its place.
    pub(crate) fn sources_from(&self, first: usize) -> impl Iterator<Item = (usize, Source)> {
        let pieces = self.pieces.list().iter().enumerate().skip(first);
        pieces.filter_map(|(place, piece)| Some((place, self.source(piece)?)))
    }

    /// The message at a place.
    pub(crate) fn reading_at(&self, place: usize) -> Option<Reading<'_>> {
        self.traced(self.pieces.list().get(place)?)
    }

    fn source(&self, piece: &Piece) -> Option<Source> {
        let item = self.items.get(piece.item)?;
        Some(match piece.part {
            Part::User | Part::Assistant => Source::Entry(item.entry),
            Part::Result(index) => Source::Result(CallId::at(item.entry, index)),
            Part::Summary(overlay) => Source::Summary(overlay),
            Part::Carry(overlay) => Source::Carry(overlay),
            Part::Understood => Source::Understood,
        })
    }

    fn traced(&self, piece: &Piece) -> Option<Reading<'_>> {
        let source = self.source(piece)?;
        let changed = match source {
            Source::Entry(_) => self.changed(contents(self.items.get(piece.item)?)),
            Source::Result(call) => self.changed(vec![Content::Result(call)]),
            Source::Summary(_) | Source::Carry(_) | Source::Understood | Source::Asked => {
                Vec::new()
            }
        };
        Some(Reading {
            message: self.message(piece)?,
            source,
            changed,
        })
    }

    fn changed(&self, contents: Vec<Content>) -> Vec<Change> {
        let changed = contents.into_iter().filter_map(|content| {
            let by = self.reads_as(content).overlay()?;
            Some(Change { content, by })
        });
        changed.collect()
    }

    /// What of a user entry or a response does not read in full, results apart.
    pub fn changes(&self, entry: EntryId) -> Vec<Change> {
        let item = self.item_of(entry).and_then(|index| self.items.get(index));
        item.map_or_else(Vec::new, |item| self.changed(contents(item)))
    }

    /// How a content reads now.
    pub fn reads_as(&self, content: Content) -> As {
        let found = match content {
            Content::Text(entry) => self.text_as(entry),
            Content::Reasoning(entry) => self.reasoning_as(entry),
            Content::Attachment(entry, place) => self.attachment_as(entry, place),
            Content::Arguments(call) | Content::Result(call) | Content::Call(call) => {
                self.call_as(call, content)
            }
        };
        found.unwrap_or(As::Absent)
    }

    /// The item of an entry: of a correction, the item of the response that it corrects.
    pub(super) fn item_of(&self, entry: EntryId) -> Option<usize> {
        self.items.index(entry).or_else(|| {
            let mut corrections = self.corrections.iter();
            let (corrected, _) = corrections.find(|(_, by)| **by == entry)?;
            self.items.index(*corrected)
        })
    }

    /// By what a whole item is left out.
    fn left_out(&self, index: usize) -> Option<As> {
        let summary = self.bands.winner(index).map(As::Summarised);
        summary.or_else(|| Some(As::Hidden(self.items.get(index)?.hidden()?)))
    }

    /// How what a message comes from reads now: whether there is such a message, and if not, why not.
    pub fn stands_as(&self, source: Source) -> As {
        let found = match source {
            Source::Entry(entry) => self.entry_as(entry),
            Source::Result(call) => Some(self.reads_as(Content::Result(call))),
            Source::Summary(overlay) => self.summary_as(overlay),
            Source::Carry(overlay) => (self.carrying() == Some(overlay)).then_some(As::Full),
            Source::Understood | Source::Asked => None,
        };
        found.unwrap_or(As::Absent)
    }

    /// The summary that shows something again behind the last one in place, if one does.
    pub fn carrying(&self) -> Option<EntryId> {
        let newest = self.bands.places().keys().max().copied();
        newest.filter(|summary| self.bands.carries(*summary))
    }

    fn entry_as(&self, entry: EntryId) -> Option<As> {
        let index = self.item_of(entry)?;
        let item = self.items.get(index)?;
        let reads = self.corrected(item.entry);
        let is_reply = matches!(item.kind, Kind::Response { .. });
        if is_reply && reads != entry {
            return Some(As::Corrected(reads));
        }
        Some(
            self.left_out(index)
                .unwrap_or_else(|| self.message_as(index)),
        )
    }

    fn summary_as(&self, overlay: EntryId) -> Option<As> {
        if self.bands.place(overlay).is_some() {
            return Some(As::Full);
        }
        let first = self.bands.first(overlay)?;
        self.bands.winner(first).map(As::Summarised)
    }

    /// Whether an item that nothing covers has a message of its own, which one that says and calls
    /// nothing has not.
    fn message_as(&self, index: usize) -> As {
        if self
            .parts(index)
            .iter()
            .any(|part| matches!(part, Part::User | Part::Assistant))
        {
            return As::Full;
        }
        let calls = self.items.get(index).map_or(&[][..], Item::calls).iter();
        let hides = calls.filter_map(|call| match call.layers.result() {
            Reads::Hidden(by) => Some(by),
            Reads::Full | Reads::Stubbed(_) => None,
        });
        hides.max().map_or(As::Absent, As::Hidden)
    }

    fn text_as(&self, entry: EntryId) -> Option<As> {
        let index = self.item_of(entry)?;
        let item = self.items.get(index)?;
        let text = match &item.kind {
            Kind::User(_) => &self.user(entry)?.text,
            Kind::Response { .. } => &self.response(entry)?.text,
        };
        if text.is_empty() {
            return None;
        }
        let reads = self.corrected(item.entry);
        if reads != entry && matches!(item.kind, Kind::Response { .. }) {
            return Some(As::Corrected(reads));
        }
        Some(self.left_out(index).unwrap_or(As::Full))
    }

    fn reasoning_as(&self, entry: EntryId) -> Option<As> {
        let index = self.item_of(entry)?;
        let item = self.items.get(index)?;
        let Kind::Response { reasoning, .. } = &item.kind else {
            return None;
        };
        let response = self.response(entry)?;
        if response.reasoning.is_empty() {
            return None;
        }
        let reads = self.corrected(item.entry);
        if reads != entry {
            return Some(As::Corrected(reads));
        }
        if let Some(left_out) = self.left_out(index) {
            return Some(left_out);
        }
        if let Some(by) = reasoning.newest() {
            return Some(As::Hidden(by));
        }
        Some(self.message_as(index))
    }

    fn attachment_as(&self, entry: EntryId, place: u32) -> Option<As> {
        let index = self.items.index(entry)?;
        let Kind::User(attachments) = &self.items.get(index)?.kind else {
            return None;
        };
        let cover: &Cover = attachments.get(usize::try_from(place).ok()?.checked_sub(1)?)?;
        let hidden = || cover.newest().map(As::Hidden);
        Some(self.left_out(index).or_else(hidden).unwrap_or(As::Full))
    }

    /// How a call, or a half of it, reads.
    fn call_as(&self, call: CallId, content: Content) -> Option<As> {
        let (index, place) = self.items.call(call)?;
        let state = self.items.get(index)?.calls().get(place)?;
        if let Some(left_out) = self.left_out(index) {
            return Some(left_out);
        }
        let reads = match content {
            Content::Arguments(_) => state.layers.arguments(),
            Content::Result(_)
            | Content::Call(_)
            | Content::Text(_)
            | Content::Reasoning(_)
            | Content::Attachment(..) => state.layers.result(),
        };
        let made = self.tool_call(call)?;
        Some(match (content, reads) {
            (_, Reads::Hidden(by)) => As::Hidden(by),
            (Content::Result(_), _) if state.result.is_none() => As::Open,
            // What says nothing reads as its stub does.
            (Content::Arguments(_), Reads::Stubbed(_))
                if made.arguments == words::NO_ARGUMENTS && made.extra.is_none() =>
            {
                As::Full
            }
            (Content::Arguments(_) | Content::Result(_), Reads::Stubbed(stub)) => {
                As::Stub(stub.overlay)
            }
            (_, Reads::Full | Reads::Stubbed(_)) => As::Full,
        })
    }
}

/// What of an item's own message an overlay can change. Of a call that is left out whole, nothing else
/// is named.
fn contents(item: &Item) -> Vec<Content> {
    match &item.kind {
        Kind::User(attachments) => {
            let places = (1..).zip(attachments);
            let attachments = places.map(|(place, _)| Content::Attachment(item.entry, place));
            attachments.collect()
        }
        Kind::Response { calls, .. } => {
            let mut contents = vec![Content::Reasoning(item.entry)];
            contents.extend((0..calls.len()).map(|index| {
                let call = CallId::at(item.entry, index);
                if item.hides_call(index) {
                    Content::Call(call)
                } else {
                    Content::Arguments(call)
                }
            }));
            contents
        }
    }
}
