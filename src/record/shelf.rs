//! Entries that a view let go, read again from where they were written.

use std::fmt;
use std::io;

use crate::id::EntryId;
use crate::transcript::Entry;
use crate::transcript::jsonl;
use crate::transcript::shelf::{Line, Shelf};

/// The bytes of a transcript, of which any can be read while more are written.
pub(super) struct Bytes<R> {
    read: R,
}

/// What lies where an entry was written is not that entry.
#[derive(Debug, thiserror::Error)]
#[error("its bytes have changed since they were read or written")]
struct Changed;

impl<R: Fn(u64, &mut [u8]) -> io::Result<()>> Bytes<R> {
    /// A shelf of what this reads: as many bytes as there is room for, from an offset on.
    pub(super) fn new(read: R) -> Self {
        Self { read }
    }
}

impl<R: Fn(u64, &mut [u8]) -> io::Result<()> + Send + Sync> Shelf for Bytes<R> {
    fn fetch(&self, id: EntryId, line: Line) -> io::Result<Entry> {
        let mut bytes = vec![0; usize::try_from(line.bytes).unwrap_or_default()];
        (self.read)(line.offset, &mut bytes)?;
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        // Its checksum says that the line is whole, its id and its length that it is the one.
        let entry = jsonl::decode(line).ok().filter(|entry| entry.id == id);
        entry.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, Changed))
    }
}

impl<R> fmt::Debug for Bytes<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bytes").finish_non_exhaustive()
    }
}
