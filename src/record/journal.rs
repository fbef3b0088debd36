//! The bytes of a transcript: one line an entry, one write a line, nothing after a failure.
//!
//! It never looks at what an entry says; the recorder does.

use std::io::{self, BufRead};
use std::sync::Arc;

use crate::id::Digest;
use crate::record::seen::Seen;
use crate::record::{RecordError, Storage, ahead};
use crate::transcript::jsonl::{self, Damage, Item, Reader};
use crate::transcript::shelf::Line;
use crate::transcript::{Entry, Torn};

/// Writes entries at the end of a storage.
#[derive(Debug)]
pub(super) struct Journal {
    storage: Box<dyn Storage>,
    /// The last line has no end yet: it is written together with the next line.
    line_open: bool,
    unsynced: bool,
    /// A write or a sync failed. What the storage holds is uncertain, so it is left as it is.
    failed: bool,
    syncs: u64,
    /// All that was read and written, if an index may be made of it.
    seen: Option<Seen>,
}

/// What stands in a file besides its entries.
#[derive(Debug)]
pub(super) struct Found {
    /// Places that do not hold what they should.
    pub(super) damage: Vec<Damage>,
    /// The remains of a last line that was never finished.
    pub(super) torn: Option<Torn>,
    /// Whether the last line has no end.
    pub(super) line_open: bool,
}

impl Journal {
    /// Begins to write; the storage must be empty.
    pub(super) fn create(storage: Box<dyn Storage>) -> Result<Self, RecordError> {
        let location = storage.location();
        match storage.length() {
            Ok(0) => {
                let seen = storage.indexed_from().map(|_| Seen::default());
                Ok(Self::new(storage, seen))
            }
            Ok(_) => Err(RecordError::NotEmpty { location }),
            Err(source) => Err(RecordError::Read { location, source }),
        }
    }

    /// Gets ready to write behind what was found in a storage. Nothing is written yet.
    pub(super) fn open(storage: Box<dyn Storage>, found: &Found, seen: Option<Seen>) -> Self {
        let mut journal = Self::new(storage, seen);
        journal.line_open = found.line_open;
        // Whoever wrote it may have ended before its last sync.
        journal.unsynced = true;
        journal
    }

    fn new(storage: Box<dyn Storage>, seen: Option<Seen>) -> Self {
        Self {
            storage,
            line_open: false,
            unsynced: false,
            failed: false,
            syncs: 0,
            seen,
        }
    }

    /// Appends an entry with one write, and returns where it lies then. If it cannot be encoded, nothing
    /// is written.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<Line, RecordError> {
        let mut line = jsonl::encode(entry).map_err(|source| RecordError::Encode {
            id: entry.id,
            source,
        })?;
        let bytes = line.len();
        if self.line_open {
            line.insert(0, b'\n');
        }
        let before = self.storage.length();
        self.attempt(
            |storage| storage.append(&line),
            |location, source| RecordError::Write { location, source },
        )?;
        self.line_open = false;
        self.unsynced = true;
        if let Some(seen) = &mut self.seen {
            seen.take(&line);
        }
        // Where nobody knows the place, the entry is held.
        let end_before = before.map(|before| before + (line.len() - bytes) as u64);
        Ok(end_before.map_or_else(|_| Line::default(), |offset| at(offset, bytes as u64)))
    }

    /// Makes what was appended durable, if anything was.
    pub(super) fn sync(&mut self) -> Result<(), RecordError> {
        if !self.unsynced && !self.failed {
            return Ok(());
        }
        self.attempt(
            |storage| storage.sync(),
            |location, source| RecordError::Sync { location, source },
        )?;
        self.unsynced = false;
        self.syncs += 1;
        Ok(())
    }

    /// Keeps a blob, durable at once.
    pub(super) fn keep(&mut self, digest: Digest, bytes: &[u8]) -> Result<(), RecordError> {
        self.attempt(
            |storage| storage.write_blob(digest, bytes),
            |location, source| RecordError::Keep { location, source },
        )
    }

    pub(super) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// All that was read and written, if it is known and ends with a line; `None` also if something
    /// failed: what the storage holds is uncertain then.
    pub(super) fn seen(&self) -> Option<&Seen> {
        let is_sound = !self.failed && !self.line_open;
        self.seen.as_ref().filter(|_| is_sound)
    }

    pub(super) fn syncs(&self) -> u64 {
        self.syncs
    }

    /// Changes the storage. The first failure is the last attempt.
    fn attempt(
        &mut self,
        change: impl FnOnce(&mut dyn Storage) -> io::Result<()>,
        error: impl FnOnce(String, io::Error) -> RecordError,
    ) -> Result<(), RecordError> {
        if self.failed {
            return Err(RecordError::Poisoned {
                location: self.storage.location(),
            });
        }
        change(&mut *self.storage).map_err(|source| {
            self.failed = true;
            error(self.storage.location(), source)
        })
    }
}

/// A line of so many bytes at an offset.
fn at(offset: u64, bytes: u64) -> Line {
    let bytes = u32::try_from(bytes).unwrap_or_default();
    Line { offset, bytes }
}

/// Reads a whole file, entry by entry. What `take` is done with it gives back.
pub(super) fn scan(
    bytes: impl BufRead + Send,
    take: impl FnMut(Arc<Entry>, Line) -> Vec<Arc<Entry>>,
) -> io::Result<Found> {
    scan_with(Reader::new(bytes), take)
}

/// Reads the rest of a file, entry by entry.
pub(super) fn scan_with(
    mut reader: Reader<impl BufRead + Send>,
    mut take: impl FnMut(Arc<Entry>, Line) -> Vec<Arc<Entry>>,
) -> io::Result<Found> {
    let mut damage = Vec::new();
    let mut torn = None;
    ahead::read(&mut reader, |item| {
        match item {
            Item::Entry {
                offset,
                bytes,
                entry,
            } => return take(entry, at(offset, bytes)),
            Item::Damage(place) => damage.push(place),
            Item::Torn(remains) => torn = Some(remains),
        }
        Vec::new()
    })?;
    Ok(Found {
        damage,
        torn,
        line_open: reader.line_open(),
    })
}
