//! Where the index of a transcript lies, how it is put there whole, and what tells that nobody but its
//! writer has touched the transcript since.
//!
//! A place outlives the storage that it is of, so that an index can be written on another thread.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufReader, BufWriter, Cursor, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
use serde::{Deserialize, Serialize};

use crate::record::MemoryStorage;
use crate::record::file::{FileError, Stranger, leads_to, open_plain};

/// How many milliseconds are waited for the clock that a file system dates by to go on: more than it
/// usually stands still. Where it tells no more apart than seconds, there is no stamp.
const TICKS: u32 = 20;

/// The present moment, by that clock.
const NOW: Timestamps = {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    Timestamps {
        last_access: now,
        last_modification: now,
    }
};

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

    /// Whether this file changed last before the other one did.
    fn is_before(&self, other: &Self) -> bool {
        let [.., seconds, nanoseconds] = self.changed;
        let [.., other_seconds, other_nanoseconds] = other.changed;
        (seconds, nanoseconds) < (other_seconds, other_nanoseconds)
    }
}

impl IndexPlace {
    /// Beside a transcript that is open and was left so by whoever has it locked; `None`: somebody else
    /// has touched it.
    pub(super) fn beside(path: &Path, file: &Arc<File>, left: Option<Stamp>) -> Self {
        Self(At::File(Beside {
            path: path.to_owned(),
            file: Arc::clone(file),
            left,
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
            At::File(beside) => beside.stamp(),
            At::Memory(_) => None,
        }
    }

    /// Puts the transcript's stamp, in the form that is given, in the place of whatever stands behind the
    /// first bytes of the index, and returns it. If that is not done to its end, nothing stands there that
    /// means anything, as where there is no stamp.
    pub(super) fn write_stamp(
        &self,
        behind: u64,
        form: impl Fn(Stamp) -> io::Result<Vec<u8>>,
    ) -> io::Result<Option<Stamp>> {
        let At::File(beside) = &self.0 else {
            return Ok(None);
        };
        let [path, _] = places(&beside.path);
        let index = open_plain(&path, OpenOptions::new().append(true)).map_err(io::Error::other)?;
        // A shorter one is another.
        if index.metadata()?.len() < behind {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        index.set_len(behind)?;
        let stamp = beside.lasting_stamp(&index)?;
        if let Some(stamp) = stamp {
            (&index).write_all(&form(stamp)?)?;
        }
        Ok(stamp)
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

impl Beside {
    fn stamp(&self) -> Option<Stamp> {
        let now = Stamp::of(&self.file.metadata().ok()?);
        self.left.filter(|left| *left == now)
    }

    /// The same once it can be relied on later: what was written stays when the machine loses power (the
    /// file might be as long and as old then, and hold something else), and whatever changes from now on is
    /// dated later, by the clock that dates the index.
    fn lasting_stamp(&self, index: &File) -> io::Result<Option<Stamp>> {
        self.file.sync_data()?;
        for _ in 0..TICKS {
            futimens(index, &NOW)?;
            let now = Stamp::of(&index.metadata()?);
            let stamp = self.stamp();
            if stamp.is_none_or(|stamp| stamp.is_before(&now)) {
                return Ok(stamp);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(None)
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
