//! How contents read now: covered, hidden, stubbed or in full, and what protects them.

use std::collections::BTreeMap;

use crate::id::{CallId, EntryId};
use crate::overlay::layers::Reads;
use crate::overlay::{Layer, Overlay, Summary};
use crate::transcript::Event;
use crate::view::View;
use crate::view::item::{CallState, Item, Kind};
use crate::view::pieces::Part;

/// How a summary stands in the view.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// Its overlay.
    pub overlay: EntryId,
    /// The overlay's body.
    pub laid: &'a Overlay,
    /// The summary itself.
    pub summary: &'a Summary,
}

impl View {
    /// Entries that are pinned; `true` for those that read in full when they were.
    pub fn pins(&self) -> &BTreeMap<EntryId, bool> {
        &self.pins
    }

    /// Whether a pin protects this entry.
    pub fn is_protected(&self, entry: EntryId) -> bool {
        self.pins.get(&entry).copied().unwrap_or(false)
    }

    /// How the result of a call reads; `None` if it is covered with its whole round, or open.
    pub fn reads(&self, call: CallId) -> Option<Reads> {
        let state = self.uncovered(call)?;
        state.result.map(|_| state.layers.result())
    }

    /// How the arguments of a call read; `None` if it is covered with its whole round.
    pub fn reads_arguments(&self, call: CallId) -> Option<Reads> {
        self.uncovered(call).map(|state| state.layers.arguments())
    }

    /// A call whose round is not covered.
    fn uncovered(&self, call: CallId) -> Option<&CallState> {
        let (item, index) = self.items.call(call)?;
        let state = self.items.get(item)?.calls().get(index)?;
        self.covered(item).is_none().then_some(state)
    }

    /// Whether the reasoning of a response reads.
    pub fn reads_reasoning(&self, response: EntryId) -> bool {
        let Some(index) = self.items.index(response) else {
            return false;
        };
        match self.items.get(index).map(|item| &item.kind) {
            Some(Kind::Response { reasoning, .. }) => {
                self.covered(index).is_none() && reasoning.newest().is_none()
            }
            Some(Kind::User(_)) | None => false,
        }
    }

    /// Whether an attachment of a user entry reads, by its place from 1.
    pub fn reads_attachment(&self, entry: EntryId, place: u32) -> bool {
        let Some(index) = self.items.index(entry) else {
            return false;
        };
        let place = usize::try_from(place).ok().and_then(|n| n.checked_sub(1));
        match self.items.get(index).map(|item| &item.kind) {
            Some(Kind::User(attachments)) => {
                let hidden = place.and_then(|place| attachments.get(place));
                self.covered(index).is_none() && hidden.is_some_and(|it| it.newest().is_none())
            }
            Some(Kind::Response { .. }) | None => false,
        }
    }

    /// Whether an automatic stub or hide must leave a call alone: a standing `show` names it.
    pub fn is_shown(&self, call: CallId) -> bool {
        let found = self.items.call(call);
        let state = found.and_then(|(item, index)| self.items.get(item)?.calls().get(index));
        state.is_some_and(|state| state.layers.shown().is_some())
    }

    /// The summary or hidden round that an item of the conversation is covered by.
    pub fn covered_by(&self, entry: EntryId) -> Option<EntryId> {
        self.covered(self.items.index(entry)?)
    }

    /// The overlay that leaves a whole item out, by a summary or by hiding its round.
    pub(super) fn covered(&self, index: usize) -> Option<EntryId> {
        let hidden = || self.items.get(index).and_then(Item::hidden);
        self.bands.winner(index).or_else(hidden)
    }

    /// Whether what an entry says reads in full.
    pub(super) fn reads_in_full(&self, entry: EntryId) -> bool {
        match self.transcript.get(entry).map(|entry| &entry.event) {
            Some(Event::Result(result)) => self.reads(result.call) == Some(Reads::Full),
            Some(_) => self.items.index(entry).is_some() && self.covered_by(entry).is_none(),
            None => false,
        }
    }

    /// The entries of the conversation that still read, oldest first: those not covered.
    pub fn live(&self) -> Vec<EntryId> {
        let mut live: Vec<EntryId> = Vec::new();
        for piece in self.pieces.list() {
            let Some(item) = self.items.get(piece.item) else {
                continue;
            };
            let reads = matches!(piece.part, Part::User | Part::Assistant | Part::Result(_));
            if reads && live.last() != Some(&item.entry) {
                live.push(item.entry);
            }
        }
        live
    }

    /// The number of entries of the conversation that still read: what was said, replies, results.
    pub fn reading(&self) -> u64 {
        let parts = self.pieces.list().iter().map(|piece| &piece.part);
        let reads = |part: &&Part| matches!(part, Part::User | Part::Assistant | Part::Result(_));
        parts.filter(reads).count() as u64
    }

    /// The summaries in place, in the order they are read.
    pub fn summaries(&self) -> Vec<Standing<'_>> {
        let places = self.bands.places().into_iter();
        let mut places: Vec<_> = places.map(|(id, place)| (place, id)).collect();
        places.sort_unstable();
        places
            .into_iter()
            .filter_map(|(_, id)| self.standing(id))
            .collect()
    }

    /// Whether a summary was laid and not retracted.
    pub(crate) fn is_laid(&self, summary: EntryId) -> bool {
        self.bands.first(summary).is_some()
    }

    /// The overlays that are not retracted, oldest first.
    pub fn overlays(&self) -> Vec<EntryId> {
        let mut all: Vec<EntryId> = self.bands.all().chain(self.laid.iter().copied()).collect();
        all.sort_unstable();
        all
    }

    fn standing(&self, overlay: EntryId) -> Option<Standing<'_>> {
        let laid = self.overlay(overlay)?;
        let Layer::Summary(summary) = &laid.layer else {
            return None;
        };
        Some(Standing {
            overlay,
            laid,
            summary,
        })
    }
}
