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
//! stamp                             a frame, and the SHA-256 of that digest and it; or nothing
//! ```

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use sha2::digest::Output;
use sha2::{Digest as _, Sha256};

use crate::record::Storage;
use crate::record::blobs::Kept;
use crate::record::index_place::{IndexPlace, Stamp};
use crate::record::seen::Seen;
use crate::transcript::GENERATOR;
use crate::view::saved::{LISTS, Saved};
use crate::view::{Hold, View};

/// How a file begins.
const MAGIC: &[u8; 16] = b"undertext index\n";

/// The form of what follows. One more with every change of what a view folds or how it is kept: an
/// index of another form is made anew.
pub(super) const LAYOUT: u32 = 2;

/// So much of a transcript may be behind what its index covers, and as much as that has bytes itself, before
/// it is worth another. So all that is ever written of indexes is no more than the transcript, and reading
/// what is behind takes no longer than reading the index.
const BEHIND: u64 = 1 << 20;

/// The bytes of a digest.
const DIGEST: u64 = 32;

/// The longest frame that is read.
const LONGEST: u32 = 1 << 30;

/// What begins an index.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    layout: u32,
    generator: String,
    length: u64,
    /// The state of hashing those bytes.
    hash: Vec<u8>,
    kept: Kept,
}

/// A transcript as its index has it.
#[derive(Debug)]
pub(super) struct Indexed {
    pub(super) view: View,
    pub(super) kept: Kept,
    /// What it was made from.
    pub(super) seen: Seen,
    pub(super) index: IndexKept,
}

/// An index that lies beside its transcript and fits it.
#[derive(Clone, Debug)]
pub struct IndexKept {
    /// How many bytes of the transcript it covers.
    covers: u64,
    /// How many bytes it has up to its digest.
    bytes: u64,
    digest: Output<Sha256>,
    stamp: Option<Stamp>,
}

impl IndexKept {
    pub(super) fn covers(&self) -> u64 {
        self.covers
    }

    /// Whether the transcript is the one that it was made from, as far as that can be told without reading
    /// it.
    pub(super) fn fits(&self, place: &IndexPlace) -> bool {
        self.stamp.is_some() && place.stamp() == self.stamp
    }
}

/// An index that is to be kept, with all that takes: another thread may do it.
#[derive(Debug)]
pub struct IndexDue {
    place: IndexPlace,
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// All of it.
    Anew(Box<(View, Kept, Seen)>),
    /// That it fits, as was proved, a transcript into which nobody but its writer wrote since.
    Stamp(IndexKept),
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
    let place = storage.index_place()?;
    let index = match place.open() {
        Ok(index) => index?,
        Err(error) => {
            tracing::debug!("the index is not used: {error}");
            return None;
        }
    };
    match read(storage, &place, index) {
        Ok(indexed) => Some(indexed),
        Err(why) => {
            tracing::debug!("the index is not used: {why}");
            None
        }
    }
}

fn read(storage: &dyn Storage, place: &IndexPlace, index: impl Read) -> Result<Indexed, Unfit> {
    let mut index = Hashed::new(index);
    if index.array()? != *MAGIC {
        return Err(Unfit::Torn);
    }
    let head: Head = postcard::from_bytes(&index.frame()?).map_err(|_| Unfit::Torn)?;
    if (head.layout, head.generator.as_str()) != (LAYOUT, GENERATOR) {
        return Err(Unfit::Version);
    }
    let seen = Seen::restore(head.length, &head.hash).ok_or(Unfit::Torn)?;
    let mut saved = Saved::of(&index.frame()?).map_err(|_| Unfit::Torn)?;
    for list in 0..LISTS {
        for _ in 0..index.number()? {
            let block = index.frame()?.into_boxed_slice();
            saved.take(list, block).map_err(|_| Unfit::Torn)?;
        }
    }
    let index = index.finish(head.length)?;

    if head.length > storage.length()? {
        return Err(Unfit::Stranger);
    }
    if !index.fits(place) {
        let now = Seen::of(storage.read()?, head.length)?;
        if now.digest() != seen.digest() {
            return Err(Unfit::Stranger);
        }
    }
    let shelf = storage.shelf().ok_or(Unfit::Stranger)?;
    let view = View::restore(saved, shelf, Hold::default()).map_err(|_| Unfit::Stranger)?;
    Ok(Indexed {
        view,
        kept: head.kept,
        seen,
        index,
    })
}

/// What is to be kept of all that was read and written, beside the index that lies there; `None` if that
/// is too short, or nothing is to be done.
///
/// Little that is new is left to be read behind the index, but then it is stamped again where its stamp does
/// not fit: whoever comes next would have to hash all that it covers, as was done this time if it did not fit
/// before.
pub(super) fn due(
    storage: &dyn Storage,
    (view, kept): (&View, &Kept),
    seen: &Seen,
    index: Option<&IndexKept>,
) -> Option<IndexDue> {
    let (least, place) = (storage.indexed_from()?, storage.index_place()?);
    let length = seen.length();
    if length < least || storage.length().ok()? != length {
        return None;
    }
    let behind = length.saturating_sub(index.map_or(0, IndexKept::covers));
    let own = index.map_or(0, |index| index.bytes);
    let work = if behind >= BEHIND.min(least).max(own) {
        Work::Anew(Box::new((view.clone(), kept.clone(), seen.clone())))
    } else {
        Work::Stamp(index.filter(|index| !index.fits(&place))?.clone())
    };
    Some(IndexDue { place, work })
}

impl IndexDue {
    /// Keeps it, and says what lies there then.
    pub fn keep(self) -> io::Result<IndexKept> {
        let place = &self.place;
        let index = match self.work {
            Work::Anew(whole) => {
                let (view, kept, seen) = *whole;
                write(place, (&view, kept), &seen)?
            }
            Work::Stamp(index) => index,
        };
        let stamp = place.write_stamp(index.bytes, |stamp| stamped(&index.digest, stamp))?;
        Ok(IndexKept { stamp, ..index })
    }

    /// Whether all of it is made, and not only its stamp.
    pub(super) fn is_anew(&self) -> bool {
        matches!(self.work, Work::Anew(_))
    }
}

fn write(place: &IndexPlace, (view, kept): (&View, Kept), seen: &Seen) -> io::Result<IndexKept> {
    let head = Head {
        layout: LAYOUT,
        generator: GENERATOR.to_owned(),
        length: seen.length(),
        hash: seen.state(),
        kept,
    };
    let head = postcard::to_allocvec(&head).map_err(io::Error::other)?;
    let state = view.save().map_err(io::Error::other)?;
    let mut written = None;
    place.write(&mut |out| {
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
        let bytes = out.bytes + DIGEST;
        let (_, digest) = out.put_digest()?;
        written = Some(IndexKept {
            covers: seen.length(),
            bytes,
            digest,
            stamp: None,
        });
        Ok(())
    })?;
    written.ok_or_else(|| io::ErrorKind::WriteZero.into())
}

/// What follows the digest of an index: when it fits without reading what it was made from.
fn stamped(digest: &Output<Sha256>, stamp: Stamp) -> io::Result<Vec<u8>> {
    let stamp = postcard::to_allocvec(&stamp).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    let mut out = Hashed::new(&mut bytes);
    out.hash(digest);
    out.put_frame(&stamp)?;
    out.put_digest()?;
    Ok(bytes)
}

/// Bytes that are hashed as they pass.
struct Hashed<T> {
    inner: T,
    hash: Sha256,
    bytes: u64,
}

impl<T> Hashed<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
            bytes: 0,
        }
    }

    fn hash(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<R: Read> Hashed<R> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unfit> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes).map_err(torn)?;
        self.hash(&bytes);
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
        self.hash(&bytes);
        Ok(bytes)
    }

    /// Reads the digest of all before, and the stamp behind it. One that is not whole is none.
    fn finish(mut self, covers: u64) -> Result<IndexKept, Unfit> {
        let digest = std::mem::take(&mut self.hash).finalize();
        let said: [u8; 32] = self.array()?;
        if *digest != said {
            return Err(Unfit::Torn);
        }
        let bytes = self.bytes;
        Ok(IndexKept {
            covers,
            bytes,
            digest,
            stamp: self.stamp(),
        })
    }

    fn stamp(mut self) -> Option<Stamp> {
        let stamp = self.frame().ok()?;
        let digest = std::mem::take(&mut self.hash).finalize();
        let said: [u8; 32] = self.array().ok()?;
        let is_whole = *digest == said && self.inner.read(&mut [0]).ok()? == 0;
        postcard::from_bytes(&stamp).ok().filter(|_| is_whole)
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
        self.hash(bytes);
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

    fn put_digest(mut self) -> io::Result<(W, Output<Sha256>)> {
        let digest = self.hash.finalize();
        self.inner.write_all(&digest)?;
        Ok((self.inner, digest))
    }
}
