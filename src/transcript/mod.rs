//! The transcript: entries that only grow.
//!
//! [`Transcript::append`] is its only change. [`Entry`] is one line, [`Event`] says what happened,
//! [`jsonl`] is the file format, [`turn`] counts turns and rounds. Nothing here knows how entries
//! read; that is the view's. A transcript on a [`shelf`] may let entries go, of which it keeps only where
//! they lie, and reads them again when somebody asks for them.

mod entries;
mod entry;
mod event;
pub mod jsonl;
mod plain;
mod purpose;
mod run;
pub(crate) mod sequence;
pub mod shelf;
pub mod turn;
mod work;

use std::sync::Arc;

pub use entries::{Entries, Iter};
pub use entry::{At, Entry};
pub use event::{
    Attachment, BodyDigest, Check, End, Estimate, Event, Fault, FaultClass, Hook, Note, Pin,
    Reason, Request, Retract, Speaker, Started, Torn, Totals, Unknown, User,
};
pub use purpose::{Combine, Purpose, Source, Summarize};
pub use run::{BatchTask, GENERATOR, Import, Parent, Run};
pub use sequence::Stretch;
use serde::{Deserialize, Serialize};
pub use work::Work;

use crate::id::{EntryId, Span};
use sequence::Sequence;
use shelf::{Fetched, Lately, Line, Lost, Shelf, Shelved};

/// The version of the file format, written in the first entry.
pub const FORMAT: u32 = 1;

/// The entries of a run, in the order of their ids.
///
/// Copies share what they hold.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    slots: Sequence<Slot>,
    /// Where ids begin to follow one another: once, unless entries are missing.
    begins: Vec<Begin>,
    /// How many entries are held.
    held: usize,
    shelf: Option<Arc<Shelved>>,
    /// What was let go and read again since the newest entry was appended.
    fetched: Fetched,
    /// What was let go last, and is at hand for some time.
    lately: Lately,
    /// What was let go, if somebody wants it.
    spent: Option<Vec<Arc<Entry>>>,
}

/// An entry: held, or let go.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Slot {
    #[serde(skip)]
    entry: Option<Arc<Entry>>,
    /// Where it lies; of no bytes if that is not known.
    line: Line,
}

/// From this place on each id follows the one before it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Begin {
    place: usize,
    id: EntryId,
}

impl Transcript {
    /// A transcript whose entries can be read again from this shelf, so that it may let them go.
    pub fn on(shelf: impl Shelf + 'static) -> Self {
        Self {
            shelf: Some(Arc::new(Shelved::new(shelf))),
            ..Self::default()
        }
    }

    /// Where entries begin and lie, as an index keeps it.
    pub(crate) fn places(&self) -> (&[Begin], &Sequence<Slot>) {
        (&self.begins, &self.slots)
    }

    /// A transcript of entries that lie in these places of a shelf, none of which is held.
    pub(crate) fn lying(
        shelf: impl Shelf + 'static,
        begins: Vec<Begin>,
        slots: Sequence<Slot>,
    ) -> Self {
        Self {
            slots,
            begins,
            ..Self::on(shelf)
        }
    }

    /// The id that the next entry takes.
    pub fn next_id(&self) -> EntryId {
        self.last().map_or(EntryId::FIRST, |entry| entry.id.next())
    }

    /// Appends an entry and returns whether it was taken: an id that is not above the last one is
    /// damage, which whoever reads the file has reported.
    pub fn append(&mut self, entry: Arc<Entry>) -> bool {
        self.append_line(entry, Line::default())
    }

    /// The same of an entry that lies on the shelf, in this line.
    pub fn append_line(&mut self, entry: Arc<Entry>, line: Line) -> bool {
        let (expected, id) = (self.next_id(), entry.id);
        if id < expected {
            return false;
        }
        if id > expected || self.begins.is_empty() {
            let place = self.slots.len();
            self.begins.push(Begin { place, id });
        }
        let entry = Some(entry);
        self.slots.push(Slot { entry, line });
        self.held += 1;
        self.fetched.forget();
        true
    }

    /// The entry with this id; `None` if there is none, and if it cannot be read again, which
    /// [`lost`](Self::lost) tells.
    ///
    /// One that was let go is held until the next entry is appended.
    pub fn get(&self, id: EntryId) -> Option<&Arc<Entry>> {
        self.at(self.place(id)?)
    }

    /// The newest entry. It is never let go.
    pub fn last(&self) -> Option<&Arc<Entry>> {
        self.slots.last()?.entry.as_ref()
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> Entries<'_> {
        Entries::new(self, 0, self.slots.len())
    }

    /// The entries from this id on, oldest first.
    pub fn from(&self, id: EntryId) -> Entries<'_> {
        Entries::new(self, self.first_from(id), self.slots.len())
    }

    /// The entries of a span, oldest first.
    pub fn span(&self, span: Span) -> Entries<'_> {
        let end = self.first_from(span.to.next());
        Entries::new(self, self.first_from(span.from), end)
    }

    /// How many entries are held.
    pub fn held(&self) -> usize {
        self.held
    }

    /// How many entries were read again, by this transcript and its copies.
    pub fn fetched(&self) -> u64 {
        self.shelf.as_ref().map_or(0, |shelf| shelf.fetched())
    }

    /// The first entry that could not be read again, by this transcript or a copy: from then on nothing
    /// that is derived from it can be relied on.
    pub fn lost(&self) -> Option<&Lost> {
        self.shelf.as_ref()?.lost()
    }

    /// Whether entries may be let go.
    pub(crate) fn is_shelved(&self) -> bool {
        self.shelf.is_some()
    }

    /// Lets an entry go, unless it is the newest or nobody knows where it lies.
    pub(crate) fn let_go(&mut self, id: EntryId) {
        let place = self.place(id).filter(|place| place + 1 < self.slots.len());
        let Some(place) = place.filter(|_| self.is_shelved()) else {
            return;
        };
        let slot = self.slots.get(place);
        if slot.is_some_and(|slot| slot.entry.is_some() && slot.line.bytes > 0)
            && let Some(slot) = self.slots.get_mut(place)
        {
            let (entry, bytes) = (slot.entry.take(), slot.line.bytes);
            self.held -= 1;
            let spent = &mut self.spent;
            if let Some(entry) = entry {
                self.lately.take(place, bytes, entry, |entry| {
                    if let Some(spent) = spent.as_mut() {
                        spent.push(entry);
                    }
                });
            }
        }
    }

    /// Has what was let go last at hand: up to so many bytes of lines, and of none that was let go before.
    pub(crate) fn keep_lately(&mut self, bytes: u64) {
        self.lately = Lately::up_to(bytes);
    }

    /// Keeps what is let go until it is [taken](Self::take_spent), or no longer.
    pub(crate) fn collect_spent(&mut self, collects: bool) {
        self.spent = collects.then(Vec::new);
    }

    /// What was let go, if it was kept: to be dropped where it was made.
    pub(crate) fn take_spent(&mut self) -> Vec<Arc<Entry>> {
        self.spent.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Holds an entry again that was let go.
    pub(crate) fn hold(&mut self, id: EntryId) {
        let Some(place) = self.place(id) else { return };
        let is_gone = self.slots.get(place).is_some_and(|it| it.entry.is_none());
        if is_gone
            && let Some(entry) = self.at(place).cloned()
            && let Some(slot) = self.slots.get_mut(place)
        {
            slot.entry = Some(entry);
            self.held += 1;
        }
    }

    /// Holds so many of the newest entries.
    pub(crate) fn hold_newest(&mut self, count: usize) {
        for place in self.slots.len().saturating_sub(count)..self.slots.len() {
            if let Some(id) = self.id_at(place) {
                self.hold(id);
            }
        }
    }

    /// Lets go of what was read again only to be looked at.
    pub(crate) fn forget_fetched(&mut self) {
        self.fetched.forget();
    }

    /// The entry that is so many before the newest, if it is held.
    pub(crate) fn held_before(&self, places: usize) -> Option<&Arc<Entry>> {
        let place = self.slots.len().checked_sub(places)?.checked_sub(1)?;
        self.slots.get(place)?.entry.as_ref()
    }

    /// The place of an entry.
    fn place(&self, id: EntryId) -> Option<usize> {
        let place = self.first_from(id);
        (self.id_at(place)? == id).then_some(place)
    }

    /// The place of the first entry from this id on.
    fn first_from(&self, id: EntryId) -> usize {
        let behind = self.begins.partition_point(|begin| begin.id <= id);
        let end = match self.begins.get(behind) {
            Some(next) => next.place,
            None => self.slots.len(),
        };
        let Some(begin) = behind.checked_sub(1).and_then(|it| self.begins.get(it)) else {
            return 0;
        };
        let away = usize::try_from(id.0 - begin.id.0).unwrap_or(usize::MAX);
        begin.place.saturating_add(away).min(end)
    }

    /// The id of the entry at a place.
    fn id_at(&self, place: usize) -> Option<EntryId> {
        let behind = self.begins.partition_point(|begin| begin.place <= place);
        let begin = self.begins.get(behind.checked_sub(1)?)?;
        let id = EntryId(begin.id.0 + (place - begin.place) as u64);
        (place < self.slots.len()).then_some(id)
    }

    fn at(&self, place: usize) -> Option<&Arc<Entry>> {
        let slot = self.slots.get(place)?;
        let entry = slot.entry.as_ref().or_else(|| self.lately.get(place));
        entry.or_else(|| {
            let count = self.slots.len();
            self.fetched.get_or(place, count, || self.fetch(place))
        })
    }

    /// The entry at a place, which is not held for having been asked for.
    fn pass(&self, place: usize) -> Option<Arc<Entry>> {
        let slot = self.slots.get(place)?;
        let entry = slot.entry.as_ref().or_else(|| self.lately.get(place));
        entry.cloned().or_else(|| self.fetch(place))
    }

    fn fetch(&self, place: usize) -> Option<Arc<Entry>> {
        let line = self.slots.get(place)?.line;
        self.shelf.as_ref()?.fetch(self.id_at(place)?, line)
    }
}
