//! Where entries lie that a transcript lets go, and how they are read again.
//!
//! What is read is checked: an entry that is not there any more as it was taken in is
//! [`Lost`], and never reads as another one.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::id::EntryId;
use crate::transcript::Entry;

/// Where the line of an entry lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its length, the line end included if there is one.
    pub bytes: u32,
}

/// What reads entries again: the file of a transcript, seen from here.
pub trait Shelf: Send + Sync + fmt::Debug {
    /// The entry with this id, which lies in this line. It is an error if anything else lies there.
    fn fetch(&self, id: EntryId, line: Line) -> io::Result<Entry>;
}

/// An entry that was let go cannot be read again as it was.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot read entry {entry} again")]
pub struct Lost {
    /// The entry.
    pub entry: EntryId,
    /// The reason.
    pub source: Arc<io::Error>,
}

/// A shelf, and what came of reading from it.
#[derive(Debug)]
pub(super) struct Shelved {
    shelf: Box<dyn Shelf>,
    fetched: AtomicU64,
    lost: OnceLock<Lost>,
}

impl Shelved {
    pub(super) fn new(shelf: impl Shelf + 'static) -> Self {
        Self {
            shelf: Box::new(shelf),
            fetched: AtomicU64::new(0),
            lost: OnceLock::new(),
        }
    }

    pub(super) fn fetch(&self, entry: EntryId, line: Line) -> Option<Arc<Entry>> {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        match self.shelf.fetch(entry, line) {
            Ok(found) => Some(Arc::new(found)),
            Err(source) => {
                let source = Arc::new(source);
                self.lost.get_or_init(|| Lost { entry, source });
                None
            }
        }
    }

    pub(super) fn fetched(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }

    pub(super) fn lost(&self) -> Option<&Lost> {
        self.lost.get()
    }
}

/// Entries that were read again, by their places. Looking something up may add it, and nothing is taken
/// out.
///
/// Only the ways to what was looked up are made: that must cost little, since an entry that is appended
/// begins this anew.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetched(Arc<Cells<Cells<Cells<Arc<Entry>>>>>);

/// Cells that are made when one of them is needed first.
type Cells<T> = OnceLock<Box<[OnceLock<T>]>>;

/// The number of cells in each of the two lower levels.
const CELLS: usize = 64;

impl Fetched {
    /// Forgets them. What nothing was added to, and nobody else has, serves on.
    pub(super) fn forget(&mut self) {
        let is_empty = |blocks: &mut OnceLock<_>| blocks.get().is_none();
        if !Arc::get_mut(&mut self.0).is_some_and(is_empty) {
            *self = Self::default();
        }
    }

    /// The entry at a place below `count`, read now if it was not before.
    pub(super) fn get_or(
        &self,
        place: usize,
        count: usize,
        read: impl FnOnce() -> Option<Arc<Entry>>,
    ) -> Option<&Arc<Entry>> {
        let (block, cell) = (place / CELLS, place % CELLS);
        let blocks = self
            .0
            .get_or_init(|| empty(count.div_ceil(CELLS * CELLS)))
            .get(block / CELLS)?;
        let blocks = blocks.get_or_init(OnceLock::new);
        let cells = blocks.get_or_init(|| empty(CELLS)).get(block % CELLS)?;
        let cells = cells.get_or_init(OnceLock::new);
        let cell = cells.get_or_init(|| empty(CELLS)).get(cell)?;
        if let Some(entry) = cell.get() {
            return Some(entry);
        }
        let entry = read()?;
        Some(cell.get_or_init(|| entry))
    }
}

/// The entries that were let go last, by their places: up to so many bytes of their lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Lately {
    most: u64,
    bytes: u64,
    order: VecDeque<(usize, u32)>,
    entries: BTreeMap<usize, Arc<Entry>>,
}

impl Lately {
    /// None yet, and never more than so many bytes of them.
    pub(super) fn up_to(most: u64) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// The entry at a place.
    pub(super) fn get(&self, place: usize) -> Option<&Arc<Entry>> {
        self.entries.get(&place)
    }

    /// Takes in what is let go, and tells of each entry that has to leave for it, itself perhaps.
    pub(super) fn take(
        &mut self,
        place: usize,
        bytes: u32,
        entry: Arc<Entry>,
        mut leaves: impl FnMut(Arc<Entry>),
    ) {
        if u64::from(bytes) > self.most {
            return leaves(entry);
        }
        self.entries.insert(place, entry);
        self.order.push_back((place, bytes));
        self.bytes += u64::from(bytes);
        while self.bytes > self.most
            && let Some((place, bytes)) = self.order.pop_front()
        {
            self.bytes -= u64::from(bytes);
            // One that was let go twice leaves with the first time.
            if let Some(entry) = self.entries.remove(&place) {
                leaves(entry);
            }
        }
    }
}

fn empty<T>(count: usize) -> Box<[OnceLock<T>]> {
    (0..count).map(|_| OnceLock::new()).collect()
}

impl Shelf for Box<dyn Shelf> {
    fn fetch(&self, id: EntryId, line: Line) -> io::Result<Entry> {
        self.as_ref().fetch(id, line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{At, Event, Note};

    #[test]
    fn what_was_let_go_last_is_kept_up_to_so_many_bytes() {
        let entry = |id: u64| {
            let text = String::new();
            let (id, at) = (EntryId(id), At(0));
            let event = Event::Note(Note::Warning { text });
            Arc::new(Entry { id, at, event })
        };
        let mut lately = Lately::up_to(10);
        let mut check = |place: usize, bytes: u32, left: &[u64], kept: &[usize]| {
            let mut leaving = Vec::new();
            lately.take(place, bytes, entry(place as u64), |entry| {
                leaving.push(entry.id.0);
            });
            assert_eq!(leaving, left);
            let all = (0..9).filter(|place| lately.get(*place).is_some());
            assert_eq!(all.collect::<Vec<_>>(), kept);
            assert!(lately.bytes <= 10);
        };
        check(1, 4, &[], &[1]);
        check(2, 6, &[], &[1, 2]);
        check(3, 1, &[1], &[2, 3]);
        check(2, 2, &[], &[2, 3]);
        check(4, 3, &[2], &[3, 4]);
        check(5, 11, &[5], &[3, 4]);
        check(6, 10, &[3, 4], &[6]);
        let mut none = Lately::default();
        none.take(1, 1, entry(1), |entry| assert_eq!(entry.id.0, 1));
        assert!(none.get(1).is_none());
    }
}
