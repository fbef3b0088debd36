//! The seam under the recorder: where the bytes of a transcript go.
//!
//! [`FileStorage`](crate::record::FileStorage) is a file that only grows;
//! [`MemoryStorage`](crate::record::MemoryStorage) stands in for it in tests and fails when it is
//! told to. Neither knows what an entry is.

use std::fmt;
use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use crate::id::Digest;
use crate::transcript::shelf::Shelf;

/// Where a transcript is kept. There is one writer at a time.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Adds bytes at the end, in one write. After an error any part of them may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything appended so far durable.
    fn sync(&mut self) -> io::Result<()>;

    /// Reads from the start.
    fn read(&self) -> io::Result<Box<dyn BufRead + Send + '_>>;

    /// Reads from an offset on.
    fn read_from(&self, offset: u64) -> io::Result<Box<dyn BufRead + Send + '_>> {
        let mut bytes = self.read()?;
        io::copy(&mut (&mut bytes).take(offset), &mut io::sink())?;
        Ok(bytes)
    }

    /// The number of bytes.
    fn length(&self) -> io::Result<u64>;

    /// What reads single entries again while more are written, so that whoever took them in need not
    /// hold them all; `None`: nothing does.
    fn shelf(&self) -> Option<Box<dyn Shelf>> {
        None
    }

    /// How long a transcript is of which an index is kept; `None`: none is kept.
    fn indexed_from(&self) -> Option<u64> {
        None
    }

    /// The index of the transcript, if there is one.
    fn read_index(&self) -> io::Result<Option<Box<dyn Read + Send + '_>>> {
        Ok(None)
    }

    /// Puts what this writes in the place of the index, whole or not at all. It need not be durable.
    fn write_index(
        &mut self,
        _write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What is another whenever the bytes may have changed; `None`: nothing tells.
    fn stamp(&self) -> io::Result<Option<Stamp>> {
        Ok(None)
    }

    /// Keeps a blob, durable at once; does nothing if it is there already.
    fn write_blob(&mut self, digest: Digest, bytes: &[u8]) -> io::Result<()>;

    /// The blob with this digest, checked against it; `None` if it was not kept.
    fn read_blob(&self, digest: Digest) -> io::Result<Option<Vec<u8>>>;

    /// What to call it in messages.
    fn location(&self) -> String;
}

/// What a sync does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It waits until the data is on the device.
    #[default]
    Data,
    /// Nothing: a crash of the machine may cost entries, one of the program does not.
    None,
}

/// What tells, without reading a file, that nobody has written into it: which file it is, its length,
/// when its bytes changed and when anything of it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub(super) file: [u64; 2],
    pub(super) length: u64,
    /// In seconds and nanoseconds.
    pub(super) changed: [i64; 4],
}
