//! Which entries a view holds, and which it lets go.
//!
//! What the next request reads in full is held, with a few of the newest entries, the settings in force
//! and the summaries in place; all else is let go as soon as that is so, and is read from where it lies
//! when somebody asks for it. What is looked at for that is what a new entry changed, so it costs
//! nothing that grows with the run. Where nothing can be read again, everything is held.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::id::{CallId, EntryId};
use crate::overlay::layers::Reads;
use crate::transcript::shelf::{Line, Shelf};
use crate::transcript::{Entry, Event, Transcript};
use crate::view::{Defers, View};

/// How many of the newest entries are held, whatever they are.
const NEWEST: usize = 16;

/// What a view holds besides its newest entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// What the next request reads in full, the settings in force, the summaries in place.
    #[default]
    Read,
    /// Nothing, not even those: for tests.
    Nothing,
}

/// What may be held no longer, or has to be held again, since an entry changed how it reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Stirred {
    items: Vec<usize>,
    /// Summaries and settings.
    entries: Vec<EntryId>,
}

impl View {
    /// An empty view of entries that can be read again from this shelf, so that it may let them go.
    pub fn on(shelf: impl Shelf + 'static, hold: Hold) -> Self {
        Self {
            transcript: Transcript::on(shelf),
            hold,
            ..Self::default()
        }
    }

    /// Has what was let go last at hand besides: up to so many bytes of its lines.
    pub(crate) fn keep_lately(&mut self, bytes: u64) {
        self.transcript.keep_lately(bytes);
    }

    /// How many entries are held.
    pub fn held(&self) -> usize {
        self.transcript.held()
    }

    /// Remembers items that read differently now.
    pub(super) fn stir(&mut self, items: impl IntoIterator<Item = usize>) {
        if self.transcript.is_shelved() {
            self.stirred.items.extend(items);
        }
    }

    /// Remembers summaries and settings that may stand no longer, or again.
    pub(super) fn stir_entries(&mut self, entries: impl IntoIterator<Item = EntryId>) {
        if self.transcript.is_shelved() {
            self.stirred.entries.extend(entries);
        }
    }

    /// Takes the next entry in, and gives back what was let go, to be dropped where it was made: an
    /// allocator may have two threads wait for each other when one frees what the other allocates.
    pub(crate) fn take_back(&mut self, entry: Arc<Entry>, line: Line) -> Vec<Arc<Entry>> {
        self.transcript.collect_spent(true);
        self.take_line(entry, line);
        let spent = self.transcript.take_spent();
        self.transcript.collect_spent(false);
        spent
    }

    /// Renders and counts what was put off, and from now on each entry's messages as it comes.
    pub(crate) fn catch_up(&mut self) {
        self.defers = Defers::Nothing;
        self.count_old();
        self.settle(true);
    }

    /// Lets go of what is not needed any more.
    pub(super) fn let_go(&mut self) {
        if !self.transcript.is_shelved() {
            return;
        }
        let newest = match self.hold {
            Hold::Read => NEWEST,
            Hold::Nothing => 1,
        };
        let old = self.transcript.held_before(newest).map(Arc::clone);
        let stirred = std::mem::take(&mut self.stirred);
        let oldest_new = self.transcript.last().map_or(0, |last| last.id.0);
        let is_old = |id: &EntryId| id.0 + newest as u64 <= oldest_new;
        if let Some(old) = old.filter(|old| !self.needs(old)) {
            self.transcript.let_go(old.id);
        }
        for index in stirred.items {
            let parts = self.parts_held(index);
            self.work.visited += parts.len() as u64;
            for (id, needed) in parts.into_iter().filter(|(id, _)| is_old(id)) {
                if needed {
                    self.transcript.hold(id);
                } else {
                    self.transcript.let_go(id);
                }
            }
        }
        for id in stirred.entries.into_iter().filter(is_old) {
            let stands = self.bands.place(id).is_some() || self.setups.last() == Some(&id);
            if stands && self.hold == Hold::Read {
                self.transcript.hold(id);
            } else {
                self.transcript.let_go(id);
            }
        }
    }

    /// Holds again what a view that was kept holds besides what it reads: its newest entries, the first
    /// one, the settings in force and the summaries in place.
    pub(super) fn hold_again(&mut self) {
        let newest = match self.hold {
            Hold::Read => NEWEST,
            Hold::Nothing => 1,
        };
        self.transcript.hold_newest(newest);
        if self.hold == Hold::Read {
            let summaries = self.bands.places().into_keys();
            let others = self.setups.last().copied().into_iter();
            for id in others.chain([EntryId::FIRST]).chain(summaries) {
                self.transcript.hold(id);
            }
        }
        self.transcript.forget_fetched();
    }

    /// Holds again what it reads.
    pub(super) fn hold_read(&mut self) {
        let items: BTreeSet<usize> = self.pieces.list().iter().map(|it| it.item).collect();
        for index in items {
            for (id, _) in self
                .parts_held(index)
                .into_iter()
                .filter(|(_, needed)| *needed)
            {
                self.transcript.hold(id);
            }
        }
        self.transcript.forget_fetched();
    }

    /// Whether an old entry is held.
    fn needs(&self, entry: &Entry) -> bool {
        let id = entry.id;
        let reads = match &entry.event {
            // Where the run stands, which is looked at again and again.
            Event::Run(_) => true,
            Event::Setup(_) => self.setups.last() == Some(&id),
            Event::User(_) => self.reads_item(self.items.index(id)),
            Event::Response(_) => self.reads_item(self.item_of(id)),
            Event::Result(result) => self.reads_result(result.call, id),
            Event::Overlay(_) => self.bands.place(id).is_some(),
            Event::Request(_)
            | Event::Started(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => false,
        };
        reads && self.hold == Hold::Read
    }

    /// The entries that an item reads from, and whether each is held.
    fn parts_held(&self, index: usize) -> Vec<(EntryId, bool)> {
        let Some(item) = self.items.get(index) else {
            return Vec::new();
        };
        let reads = self.hold == Hold::Read && self.reads_item(Some(index));
        let reply = self.corrected(item.entry);
        let mut parts = vec![(item.entry, reads && reply == item.entry)];
        if reply != item.entry {
            parts.push((reply, reads));
        }
        for (place, call) in item.calls().iter().enumerate() {
            let held = |id| reads && self.reads_result(CallId::at(item.entry, place), id);
            parts.extend(call.result.map(|id| (id, held(id))));
        }
        parts
    }

    fn reads_item(&self, index: Option<usize>) -> bool {
        index.is_some_and(|index| self.covered(index).is_none())
    }

    fn reads_result(&self, call: CallId, result: EntryId) -> bool {
        let found = self.items.call(call).and_then(|(item, place)| {
            let state = self.items.get(item)?.calls().get(place)?;
            Some((item, state))
        });
        found.is_some_and(|(item, state)| {
            let is_first = state.result == Some(result);
            is_first && state.layers.result() == Reads::Full && self.covered(item).is_none()
        })
    }
}
