//! Where the index of a transcript lies, how it is put there whole, and what tells that nobody but its
//! writer has touched the transcript since.
//!
//! A place outlives the storage that it is of, so that an index can be written on another thread.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufReader, BufWriter, Cursor, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Timespec, Timestamps, UTIME_OMIT, futimens};
use serde::{Deserialize, Serialize};

use crate::record::MemoryStorage;
use crate::record::file::{FileError, Stranger, leads_to, open_plain};

/// By how many nanoseconds a file is dated before its last change: what most file systems tell apart.
const MARK: i64 = 1_000;

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
/// when its bytes changed and when anything of it did.
///
/// The clock of a file system stands still for milliseconds or seconds, and what is written meanwhile has
/// the same moment. But whatever is written is dated in both ways alike. So a file is left with its bytes
/// dated a little before its last change, and then a write shows, however soon it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    file: [u64; 2],
    length: u64,
    /// In seconds and nanoseconds.
    changed: [i64; 4],
}

impl Stamp {
    /// The stamp of a file in which a later write shows; its bytes are dated anew for that if need be.
    /// `None` where that cannot be told.
    pub(super) fn telling(file: &File) -> io::Result<Option<Self>> {
        let found = Self::of(&file.metadata()?);
        if found.tells() {
            return Ok(Some(found));
        }
        let [.., seconds, nanoseconds] = found.changed;
        let before = match nanoseconds.checked_sub(MARK) {
            Some(before @ 0..) => [seconds, before],
            Some(_) | None => [seconds - 1, nanoseconds + 1_000_000_000 - MARK],
        };
        let at = |[tv_sec, tv_nsec]: [i64; 2]| Timespec { tv_sec, tv_nsec };
        let dated = Timestamps {
            last_access: at([0, UTIME_OMIT]),
            last_modification: at(before),
        };
        // It takes who owns the file to date it.
        if futimens(file, &dated).is_err() {
            return Ok(None);
        }
        let marked = Self::of(&file.metadata()?);
        // A file system that rounds may round a later moment to the same.
        let is_kept = marked.changed.starts_with(&before) && marked.length == found.length;
        Ok(Some(marked).filter(|marked| is_kept && marked.tells()))
    }

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

    /// Whether no write can leave a file with this stamp.
    pub(super) fn tells(&self) -> bool {
        let [seconds, nanoseconds, any_seconds, any_nanoseconds] = self.changed;
        (seconds, nanoseconds) != (any_seconds, any_nanoseconds)
    }

    pub(super) fn length(&self) -> u64 {
        self.length
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
        let stamp = beside.lasting_stamp()?;
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

    /// The same once it can be relied on later: what was written stays when the machine loses power. The
    /// file might be as long and as old then, and hold something else.
    fn lasting_stamp(&self) -> io::Result<Option<Stamp>> {
        self.file.sync_data()?;
        Ok(self.stamp())
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
