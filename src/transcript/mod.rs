//! The transcript: entries that only grow.
//!
//! [`Transcript::append`] is its only change. [`Entry`] is one line, [`Event`] says what happened,
//! [`jsonl`] is the file format, [`turn`] counts turns and rounds. Nothing here knows how entries
//! read; that is the view's.

mod entry;
mod event;
pub mod jsonl;
mod plain;
mod purpose;
mod run;
pub mod turn;
mod work;

use std::sync::Arc;

pub use entry::{At, Entry};
pub use event::{
    Attachment, BodyDigest, Check, End, Estimate, Event, Fault, FaultClass, Hook, Note, Pin,
    Reason, Request, Retract, Speaker, Started, Torn, Totals, Unknown, User,
};
pub use purpose::{Combine, Purpose, Source, Summarize};
pub use run::{BatchTask, Import, Parent, Run};
pub use work::Work;

use crate::id::EntryId;

/// The version of the file format, written in the first entry.
pub const FORMAT: u32 = 1;

/// The entries of a run, in the order of their ids.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    entries: Vec<Arc<Entry>>,
}

impl Transcript {
    /// The id that the next entry takes.
    pub fn next_id(&self) -> EntryId {
        self.last().map_or(EntryId::FIRST, |entry| entry.id.next())
    }

    /// Appends an entry and returns whether it was taken: an id that is not above the last one is
    /// damage, which whoever reads the file has reported.
    pub fn append(&mut self, entry: Arc<Entry>) -> bool {
        let grows = entry.id >= self.next_id();
        if grows {
            self.entries.push(entry);
        }
        grows
    }

    /// The entry with this id.
    pub fn get(&self, id: EntryId) -> Option<&Arc<Entry>> {
        let place = usize::try_from(id.0).ok()?.checked_sub(1)?;
        match self.entries.get(place) {
            Some(entry) if entry.id == id => Some(entry),
            // Ids have gaps only in a damaged file.
            _ => {
                let place = self
                    .entries
                    .binary_search_by_key(&id, |entry| entry.id)
                    .ok()?;
                self.entries.get(place)
            }
        }
    }

    /// The newest entry.
    pub fn last(&self) -> Option<&Arc<Entry>> {
        self.entries.last()
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The entries from this id on, oldest first.
    pub fn from(&self, id: EntryId) -> &[Arc<Entry>] {
        let place = self.entries.partition_point(|entry| entry.id < id);
        &self.entries[place..]
    }

    /// The entries of a span, oldest first.
    pub fn span(&self, span: crate::id::Span) -> &[Arc<Entry>] {
        let from = self.entries.partition_point(|entry| entry.id < span.from);
        let to = self.entries.partition_point(|entry| entry.id <= span.to);
        self.entries.get(from..to).unwrap_or_default()
    }
}
