//! The index beside a transcript: what spares reading all of it before its next request.
//!
//! It holds where the entries lie and what a view folded of them, up to some length of the transcript.
//! It is a cache and may be deleted at any time. What it says is believed if its own digest is right,
//! this version wrote it, and the transcript begins with the very bytes that it was made from: those
//! have not been touched since, as the file's stamp says, or they have the same digest. Entries are read
//! from the transcript, never from here, and each is checked.
//!
//! ```text
//! undertext index␊                  16 bytes
//! head, state                       frames: a length in four bytes, little-endian, then so many bytes
//! four lists                        each: the number of its blocks in four bytes, then a frame a block
//! SHA-256 of all before             32 bytes
//! ```

use std::io::{self, BufRead as _, Read, Write};

use serde::{Deserialize, Serialize};
use sha2::digest::common::hazmat::SerializableState as _;
use sha2::{Digest as _, Sha256};

use crate::record::Storage;
use crate::record::blobs::Kept;
use crate::record::storage::Stamp;
use crate::transcript::GENERATOR;
use crate::view::saved::{LISTS, Saved};
use crate::view::{Hold, View};

/// How a file begins.
const MAGIC: &[u8; 16] = b"undertext index\n";

/// The form of what follows. One more with every change of what a view folds or how it is kept: an
/// index of another form is made anew.
pub(super) const LAYOUT: u32 = 2;

/// So much of a transcript may be behind what its index covers before it is worth another.
const BEHIND: u64 = 1 << 20;

/// The longest frame that is read.
const LONGEST: u32 = 1 << 30;

/// What an index was made from.
#[derive(Clone, Debug, Default)]
pub(super) struct Covered {
    /// The number of bytes of the transcript, from its beginning.
    pub(super) length: u64,
    hash: Sha256,
}

/// What begins an index.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    layout: u32,
    generator: String,
    length: u64,
    /// The state of hashing those bytes.
    hash: Vec<u8>,
    stamp: Option<Stamp>,
    kept: Kept,
}

/// A transcript as its index has it.
#[derive(Debug)]
pub(super) struct Indexed {
    pub(super) view: View,
    pub(super) kept: Kept,
    pub(super) covered: Covered,
}

/// Why an index is made anew.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("it is no index, or not all of one")]
    Torn,
    #[error("another version made it")]
    Version,
    #[error("it was made from other bytes")]
    Stranger,
}

/// The transcript of a storage as its index has it; `None` if it has to be read whole.
pub(super) fn take_up(storage: &dyn Storage) -> Option<Indexed> {
    storage.indexed_from()?;
    let index = match storage.read_index() {
        Ok(index) => index?,
        Err(error) => {
            tracing::debug!("the index is not used: {error}");
            return None;
        }
    };
    match read(storage, index) {
        Ok(indexed) => Some(indexed),
        Err(why) => {
            tracing::debug!("the index is not used: {why}");
            None
        }
    }
}

fn read(storage: &dyn Storage, index: impl Read) -> Result<Indexed, Unfit> {
    let mut index = Hashed::new(index);
    if index.array()? != *MAGIC {
        return Err(Unfit::Torn);
    }
    let head: Head = postcard::from_bytes(&index.frame()?).map_err(|_| Unfit::Torn)?;
    if (head.layout, head.generator.as_str()) != (LAYOUT, GENERATOR) {
        return Err(Unfit::Version);
    }
    let covered = covered(&head).ok_or(Unfit::Torn)?;
    let mut saved = Saved::of(&index.frame()?).map_err(|_| Unfit::Torn)?;
    for list in 0..LISTS {
        for _ in 0..index.number()? {
            let block = index.frame()?.into_boxed_slice();
            saved.take(list, block).map_err(|_| Unfit::Torn)?;
        }
    }
    index.finish()?;

    if covered.length > storage.length()? {
        return Err(Unfit::Stranger);
    }
    let untouched = head.stamp.is_some() && storage.stamp()? == head.stamp;
    if !untouched && digest(storage, covered.length)? != covered.hash.clone().finalize() {
        return Err(Unfit::Stranger);
    }
    let shelf = storage.shelf().ok_or(Unfit::Stranger)?;
    let view = View::restore(saved, shelf, Hold::default()).map_err(|_| Unfit::Stranger)?;
    Ok(Indexed {
        view,
        kept: head.kept,
        covered,
    })
}

/// What a head says that it was made from.
fn covered(head: &Head) -> Option<Covered> {
    let state = head.hash.as_slice().try_into().ok()?;
    Some(Covered {
        length: head.length,
        hash: Sha256::deserialize(&state).ok()?,
    })
}

/// The digest of the first bytes of a transcript.
fn digest(storage: &dyn Storage, length: u64) -> io::Result<sha2::digest::Output<Sha256>> {
    let mut covered = Covered::default();
    covered.extend(storage, length)?;
    Ok(covered.hash.finalize())
}

impl Covered {
    /// Takes in what follows of a transcript, up to a length.
    fn extend(&mut self, storage: &dyn Storage, length: u64) -> io::Result<()> {
        let mut bytes = storage
            .read_from(self.length)?
            .take(length.saturating_sub(self.length));
        loop {
            let part = bytes.fill_buf()?;
            if part.is_empty() {
                break;
            }
            self.hash.update(part);
            let read = part.len();
            self.length += read as u64;
            bytes.consume(read);
        }
        if self.length == length {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

/// Keeps an index of all that a transcript holds by now, if that is long enough and much of it is not
/// covered yet. Returns whether it did.
pub(super) fn keep(
    storage: &mut dyn Storage,
    view: &View,
    kept: &Kept,
    covered: &mut Covered,
) -> io::Result<bool> {
    let length = storage.length()?;
    let Some(least) = storage.indexed_from() else {
        return Ok(false);
    };
    let behind = length.saturating_sub(covered.length);
    if length < least || behind < BEHIND.min(least) {
        return Ok(false);
    }
    // Taken first: what is written while they are read makes it another.
    let stamp = storage.stamp()?;
    let mut next = covered.clone();
    next.extend(storage, length)?;
    let head = Head {
        layout: LAYOUT,
        generator: GENERATOR.to_owned(),
        length,
        hash: next.hash.serialize().to_vec(),
        stamp,
        kept: kept.clone(),
    };
    let head = postcard::to_allocvec(&head).map_err(io::Error::other)?;
    let state = view.save().map_err(io::Error::other)?;
    storage.write_index(&mut |out| {
        let mut out = Hashed::new(out);
        out.put(MAGIC)?;
        out.put_frame(&head)?;
        out.put_frame(&state)?;
        view.save_lists(|blocks| {
            out.put_number(blocks.len())?;
            for block in blocks {
                out.put_frame(&block.map_err(io::Error::other)?)?;
            }
            Ok::<(), io::Error>(())
        })?;
        out.put_digest()
    })?;
    *covered = next;
    Ok(true)
}

/// Bytes that are hashed as they pass.
struct Hashed<T> {
    inner: T,
    hash: Sha256,
}

impl<T> Hashed<T> {
    fn new(inner: T) -> Self {
        let hash = Sha256::new();
        Self { inner, hash }
    }
}

impl<R: Read> Hashed<R> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unfit> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes).map_err(torn)?;
        self.hash.update(bytes);
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u32, Unfit> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn frame(&mut self) -> Result<Vec<u8>, Unfit> {
        let length = self.number()?;
        if length > LONGEST {
            return Err(Unfit::Torn);
        }
        let mut bytes = Vec::new();
        // What is not there takes no room.
        let read = (&mut self.inner)
            .take(length.into())
            .read_to_end(&mut bytes)?;
        if read as u64 != u64::from(length) {
            return Err(Unfit::Torn);
        }
        bytes.shrink_to_fit();
        self.hash.update(&bytes);
        Ok(bytes)
    }

    /// Reads the digest of all before, which ends it.
    fn finish(mut self) -> Result<(), Unfit> {
        let mut digest = [0; 32];
        self.inner.read_exact(&mut digest).map_err(torn)?;
        let is_end = self.inner.read(&mut [0])? == 0;
        if is_end && *self.hash.finalize() == digest {
            Ok(())
        } else {
            Err(Unfit::Torn)
        }
    }
}

fn torn(error: io::Error) -> Unfit {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        Unfit::Torn
    } else {
        Unfit::Read(error)
    }
}

impl<W: Write> Hashed<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.inner.write_all(bytes)
    }

    fn put_number(&mut self, number: usize) -> io::Result<()> {
        let number = u32::try_from(number).map_err(io::Error::other)?;
        self.put(&number.to_le_bytes())
    }

    fn put_frame(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put_number(bytes.len())?;
        self.put(bytes)
    }

    fn put_digest(mut self) -> io::Result<()> {
        let digest = self.hash.finalize();
        self.inner.write_all(&digest)
    }
}
