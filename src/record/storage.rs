//! The seam under the recorder: where the bytes of a transcript go.
//!
//! [`FileStorage`](crate::record::FileStorage) is a file that only grows;
//! [`MemoryStorage`](crate::record::MemoryStorage) stands in for it in tests and fails when it is
//! told to. Neither knows what an entry is.

use std::fmt;
use std::io::{self, BufRead, Read as _};

use crate::id::Digest;
use crate::record::index_place::IndexPlace;
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

    /// How long a transcript is of which an index is kept; `None`: none is kept or used.
    fn indexed_from(&self) -> Option<u64> {
        None
    }

    /// Where an index of the transcript would lie; `None`: nowhere.
    fn index_place(&self) -> Option<IndexPlace> {
        None
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
