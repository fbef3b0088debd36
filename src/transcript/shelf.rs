//! Where entries lie that a transcript lets go, and how they are read again.
//!
//! What is read is checked: an entry that is not there any more as it was taken in is
//! [`Lost`], and never reads as another one.

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

fn empty<T>(count: usize) -> Box<[OnceLock<T>]> {
    (0..count).map(|_| OnceLock::new()).collect()
}

impl Shelf for Box<dyn Shelf> {
    fn fetch(&self, id: EntryId, line: Line) -> io::Result<Entry> {
        self.as_ref().fetch(id, line)
    }
}
