//! Where the index of a transcript lies, how it is put there whole, and what tells that nobody but its
//! writer has touched the transcript since.
//!
//! A place outlives the storage that it is of, so that an index can be written on another thread.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufReader, BufWriter, Cursor, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::record::file::{FileError, Stranger, leads_to, open_plain};
use crate::record::{Durability, MemoryStorage};

/// What this writer writes.
pub(super) type Writing<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

/// Where the index of a transcript lies.
#[derive(Debug)]
pub struct IndexPlace(At);

#[derive(Debug)]
enum At {
    /// Beside the transcript's file.
    File(Beside),
    /// With a transcript in memory.
    Memory(MemoryStorage),
}

/// A transcript's file, and what it was left as.
#[derive(Debug)]
struct Beside {
    path: PathBuf,
    file: Arc<File>,
    left: Option<Stamp>,
    durability: Durability,
}

/// What tells, without reading a file, that nobody has written into it: which file it is, its length,
/// when its bytes changed and when anything of it did. It tells as much apart as the file system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    file: [u64; 2],
    length: u64,
    /// In seconds and nanoseconds.
    changed: [i64; 4],
}

impl Stamp {
    pub(super) fn of(found: &Metadata) -> Self {
        Self {
            file: [found.dev(), found.ino()],
            length: found.len(),
            changed: [
                found.mtime(),
                found.mtime_nsec(),
                found.ctime(),
                found.ctime_nsec(),
            ],
        }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }
}

impl IndexPlace {
    /// Beside a transcript that is open and was left so by whoever has it locked; `None`: somebody else
    /// has touched it.
    pub(super) fn beside(
        path: &Path,
        file: &Arc<File>,
        left: Option<Stamp>,
        durability: Durability,
    ) -> Self {
        Self(At::File(Beside {
            path: path.to_owned(),
            file: Arc::clone(file),
            left,
            durability,
        }))
    }

    pub(super) fn memory(storage: MemoryStorage) -> Self {
        Self(At::Memory(storage))
    }

    /// Opens the index; `None` if there is none.
    pub(super) fn open(&self) -> io::Result<Option<Box<dyn Read + Send>>> {
        match &self.0 {
            At::File(beside) => open(&beside.path),
            At::Memory(storage) => Ok(storage
                .index()
                .map(|index| Box::new(Cursor::new(index)) as _)),
        }
    }

    /// The transcript's stamp, if it is as it was left; `None`: somebody touched it, or nothing tells.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        match &self.0 {
            At::File(beside) => {
                let now = Stamp::of(&beside.file.metadata().ok()?);
                beside.left.filter(|left| *left == now)
            }
            At::Memory(_) => None,
        }
    }

    /// The same where it stays so when the machine loses power: a file may be as long and as old as it was
    /// then, without what was written into it.
    pub(super) fn lasting_stamp(&self) -> Option<Stamp> {
        match &self.0 {
            At::File(beside) => match beside.durability {
                Durability::Data => self.stamp(),
                Durability::None => None,
            },
            At::Memory(_) => None,
        }
    }

    /// Puts this in the place of whatever stands behind the first bytes of the index. If that is not
    /// done to its end, nothing stands there that means anything.
    pub(super) fn write_behind(&self, length: u64, bytes: &[u8]) -> io::Result<()> {
        let At::File(beside) = &self.0 else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let [path, _] = places(&beside.path);
        let index = open_plain(&path, OpenOptions::new().append(true)).map_err(io::Error::other)?;
        // A shorter one is another.
        if index.metadata()?.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        index.set_len(length)?;
        (&index).write_all(bytes)
    }

    /// Removes the index, and what is left of writing one.
    pub(super) fn clear(&self) -> io::Result<()> {
        match &self.0 {
            At::File(beside) => remove(&beside.path),
            At::Memory(storage) => {
                storage.set_index(None);
                Ok(())
            }
        }
    }

    /// Puts what this writes in the place of the index, whole or not at all. It is not durable.
    pub(super) fn write(&self, write: Writing<'_>) -> io::Result<()> {
        match &self.0 {
            At::File(beside) => {
                if !leads_to(&beside.path, &beside.file.metadata()?) {
                    return Err(io::Error::other(Stranger::Replaced));
                }
                put(&beside.path, write)
            }
            At::Memory(storage) => {
                let mut index = Vec::new();
                write(&mut index)?;
                storage.set_index(Some(index));
                Ok(())
            }
        }
    }
}

/// Where the index of a transcript lies, and where it is written first.
fn places(transcript: &Path) -> [PathBuf; 2] {
    ["index", "index.part"].map(|end| transcript.with_extension(end))
}

fn open(transcript: &Path) -> io::Result<Option<Box<dyn Read + Send>>> {
    let [path, _] = places(transcript);
    match open_plain(&path, OpenOptions::new().read(true)) {
        Ok(file) => Ok(Some(Box::new(BufReader::with_capacity(64 << 10, file)))),
        Err(FileError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io::Error::other(error)),
    }
}

fn put(transcript: &Path, write: Writing<'_>) -> io::Result<()> {
    let [path, part] = places(transcript);
    // One that was never finished is in nobody's hands: the transcript is locked.
    remove_one(&part)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&part)?;
    let mut out = BufWriter::with_capacity(64 << 10, file);
    let written = write(&mut out).and_then(|()| out.flush());
    let kept = written.and_then(|()| fs::rename(&part, &path));
    if kept.is_err() {
        fs::remove_file(&part).ok();
    }
    kept
}

/// Removes the index of a transcript, and what is left of writing one.
pub(super) fn remove(transcript: &Path) -> io::Result<()> {
    places(transcript)
        .iter()
        .try_for_each(|path| remove_one(path))
}

fn remove_one(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
