//! A transcript in a file that only grows, locked while it is open.
//!
//! Paths are not trusted: only a plain file is opened, and nothing is written once the path no
//! longer leads to the file that is open, or someone else changed its length.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{
    FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::id::{Digest, RunId};
use crate::record::blobs::Blobs;
use crate::record::directory::{create_directory, parent, sync_directory};
use crate::record::index_place::{IndexPlace, Stamp};
use crate::record::lock::{self, LockError};
use crate::record::shelf::Bytes;
use crate::record::storage::{Durability, Storage};
use crate::transcript::shelf::Shelf;

/// How long a transcript is of which an index is kept: reading less takes no time that matters.
const INDEXED: u64 = 4 << 20;

/// A transcript cannot be opened for writing.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Another process writes it.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// The transcript.
        path: PathBuf,
    },
    /// Its file system has no locks that work.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// The transcript.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// There is something else at its path.
    #[error("{} is a {kind}, not a plain file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// Another file took its place while it was being opened.
    #[error("{} was replaced while it was opened", path.display())]
    Replaced {
        /// The path.
        path: PathBuf,
    },
    /// It cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The transcript.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It cannot be created.
    #[error("cannot create {}", path.display())]
    Create {
        /// The transcript or its directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// The file is not as this writer left it, so nothing is written into it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stranger {
    #[error("another file has taken its place")]
    Replaced,
    #[error("someone else changed its length from {left} to {found} bytes")]
    Length { left: u64, found: u64 },
}

/// A transcript in a file, locked for as long as it is open.
#[derive(Debug)]
pub struct FileStorage {
    path: PathBuf,
    file: Arc<File>,
    length: u64,
    /// What its last write left it as, or opening; `None`: somebody else has touched it since, or nothing
    /// would tell.
    left: Option<Stamp>,
    durability: Durability,
    indexed_from: Option<u64>,
    /// Directories in which something was created since they were last synced.
    unsynced: Vec<PathBuf>,
    blobs: Blobs,
}

impl FileStorage {
    /// Creates the empty transcript of a new run, and its directory if there is none.
    pub fn create(dir: &Path, run: RunId, durability: Durability) -> Result<Self, FileError> {
        Self::create_at(dir, &format!("{run}.jsonl"), durability)
    }

    /// The same under a name by which nobody finds it, until it is published.
    pub(super) fn create_unlisted(
        dir: &Path,
        run: RunId,
        durability: Durability,
    ) -> Result<Self, FileError> {
        Self::create_at(dir, &format!("{run}.part"), durability)
    }

    /// Gives what was created unlisted the name of a transcript. It stays locked.
    pub(super) fn publish(&mut self) -> io::Result<()> {
        let path = self.path.with_extension("jsonl");
        let was_left = self.left == Some(Stamp::of(&self.file.metadata()?));
        // A link takes no other file's place, as renaming would; not every file system has links.
        match fs::hard_link(&self.path, &path) {
            Ok(()) => fs::remove_file(&self.path)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => fs::rename(&self.path, &path)?,
        }
        self.path = path;
        // A name is a change as well.
        self.left = self.leave(was_left);
        if self.durability == Durability::Data {
            sync_directory(parent(&self.path))?;
        }
        Ok(())
    }

    /// Removes what was created unlisted, its blobs with it.
    pub(super) fn discard(self) -> io::Result<()> {
        fs::remove_file(&self.path)?;
        self.blobs.remove().map(|_| ())
    }

    /// Has another run's blob here as well; `false` if it is not to be had.
    pub(super) fn adopt(&mut self, from: &Blobs, digest: Digest) -> io::Result<bool> {
        self.blobs.adopt(from, digest, self.durability)
    }

    fn create_at(dir: &Path, name: &str, durability: Durability) -> Result<Self, FileError> {
        let created = create_directory(dir);
        let mut unsynced = created.map_err(|source| FileError::Create {
            path: dir.to_owned(),
            source,
        })?;
        unsynced.push(dir.to_owned());
        let path = dir.join(name);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            // Whatever the umask is.
            .and_then(|file| {
                file.set_permissions(fs::Permissions::from_mode(0o600))?;
                Ok(file)
            });
        match file {
            Ok(file) => Self::locked(path, file, durability, unsynced),
            Err(source) => Err(FileError::Create { path, source }),
        }
    }

    /// Opens the transcript at this path to go on with it. Only a plain file is taken.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, FileError> {
        let file = open_plain(path, OpenOptions::new().read(true).append(true))?;
        // The program that created it may have ended before it synced the directory.
        let unsynced = vec![parent(path).to_owned()];
        Self::locked(path.to_owned(), file, durability, unsynced)
    }

    /// Keeps an index of a transcript of at least so many bytes; `None`: of none, and uses none.
    #[must_use]
    pub fn indexed_from(mut self, bytes: Option<u64>) -> Self {
        self.indexed_from = bytes;
        self
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is left as, in which a write of somebody else shows, if it was left so before.
    fn leave(&self, was_left: bool) -> Option<Stamp> {
        let left = was_left.then(|| Stamp::telling(&self.file).ok().flatten());
        left.flatten().filter(|left| left.length() == self.length)
    }

    /// The same for an append. A short transcript has no index and need not tell: to date a file costs as much
    /// as to write into it. One that grows longer tells from when it is opened again.
    fn left_by_append(&self, was_left: bool) -> Option<Stamp> {
        let is_long = self.indexed_from.is_some_and(|from| self.length >= from);
        if is_long {
            return self.leave(was_left && self.left.is_some_and(|left| left.tells()));
        }
        let found = was_left.then(|| self.file.metadata().ok()).flatten();
        let left = found.map(|found| Stamp::of(&found));
        left.filter(|left| left.length() == self.length)
    }

    /// Makes durable that what was created is there.
    fn sync_directories(&mut self) -> io::Result<()> {
        for directory in &self.unsynced {
            sync_directory(directory)?;
        }
        self.unsynced.clear();
        Ok(())
    }

    fn locked(
        path: PathBuf,
        file: File,
        durability: Durability,
        unsynced: Vec<PathBuf>,
    ) -> Result<Self, FileError> {
        match lock::take(&file) {
            Ok(()) => {}
            Err(LockError::InUse) => return Err(FileError::InUse { path }),
            Err(LockError::Unusable(source)) => return Err(FileError::Lock { path, source }),
        }
        let found = match file.metadata() {
            Ok(found) => found,
            Err(source) => return Err(FileError::Open { path, source }),
        };
        if !leads_to(&path, &found) {
            return Err(FileError::Replaced { path });
        }
        Ok(Self {
            blobs: Blobs::beside(&path),
            path,
            length: found.len(),
            // Before anything is read.
            left: Stamp::telling(&file).ok().flatten(),
            file: Arc::new(file),
            durability,
            indexed_from: Some(INDEXED),
            unsynced,
        })
    }
}

impl Drop for FileStorage {
    /// Closing is not enough: a process that is just being started has a copy of everything that is
    /// open until its program takes over.
    fn drop(&mut self) {
        self.file.unlock().ok();
    }
}

impl Storage for FileStorage {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let found = self.file.metadata()?;
        if !leads_to(&self.path, &found) {
            return Err(io::Error::other(Stranger::Replaced));
        }
        if found.len() != self.length {
            let (left, found) = (self.length, found.len());
            return Err(io::Error::other(Stranger::Length { left, found }));
        }
        let was_left = self.left == Some(Stamp::of(&found));
        write_once(&mut &*self.file, bytes)?;
        self.length += bytes.len() as u64;
        self.left = self.left_by_append(was_left);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.durability {
            Durability::None => Ok(()),
            Durability::Data => {
                self.file.sync_data()?;
                self.sync_directories()
            }
        }
    }

    fn read(&self) -> io::Result<Box<dyn BufRead + Send + '_>> {
        self.read_from(0)
    }

    fn read_from(&self, offset: u64) -> io::Result<Box<dyn BufRead + Send + '_>> {
        let bytes = FileBytes {
            file: &self.file,
            offset,
        };
        Ok(Box::new(BufReader::with_capacity(64 << 10, bytes)))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn shelf(&self) -> Option<Box<dyn Shelf>> {
        let file = Arc::clone(&self.file);
        let read = move |offset, bytes: &mut [u8]| file.read_exact_at(bytes, offset);
        Some(Box::new(Bytes::new(read)))
    }

    fn indexed_from(&self) -> Option<u64> {
        self.indexed_from
    }

    fn index_place(&self) -> Option<IndexPlace> {
        Some(IndexPlace::beside(&self.path, &self.file, self.left))
    }

    fn write_blob(&mut self, digest: Digest, bytes: &[u8]) -> io::Result<()> {
        self.blobs.write(digest, bytes, self.durability)?;
        // The blobs' own directory may be as new as what stands in it.
        match self.durability {
            Durability::None => Ok(()),
            Durability::Data => self.sync_directories(),
        }
    }

    fn read_blob(&self, digest: Digest) -> io::Result<Option<Vec<u8>>> {
        self.blobs.read(digest)
    }

    fn location(&self) -> String {
        self.path.display().to_string()
    }
}

/// The bytes of an open file, read at an offset of their own.
struct FileBytes<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for FileBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// Writes with one call that takes everything: what a full disk cuts short is an error, since a
/// second call could fuse with what someone else wrote between.
fn write_once(file: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    loop {
        return match file.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(written) => Err(io::Error::new(
                io::ErrorKind::WriteZero,
                format!("only {written} of {} bytes were written", bytes.len()),
            )),
        };
    }
}

/// Opens a file that must be a plain one: no link, and nothing that opening would wait for.
pub(super) fn open_plain(path: &Path, options: &mut OpenOptions) -> Result<File, FileError> {
    let plain = |found: &Metadata| match kind(found) {
        None => Ok(()),
        Some(kind) => Err(FileError::NotAFile {
            path: path.to_owned(),
            kind,
        }),
    };
    let opened = |result: io::Result<Metadata>| {
        result.map_err(|source| FileError::Open {
            path: path.to_owned(),
            source,
        })
    };
    // Looked at before, because opening a device may do something, and after, because it may have
    // changed meanwhile.
    plain(&opened(fs::symlink_metadata(path))?)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path);
    let file = file.map_err(|source| FileError::Open {
        path: path.to_owned(),
        source,
    })?;
    plain(&opened(file.metadata())?)?;
    Ok(file)
}

/// What it is instead of a plain file.
fn kind(found: &Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("directory")
    } else if kind.is_symlink() {
        Some("symbolic link")
    } else if kind.is_fifo() {
        Some("named pipe")
    } else if kind.is_socket() {
        Some("socket")
    } else {
        Some("device")
    }
}

/// Whether the path leads to this open file.
pub(super) fn leads_to(path: &Path, open: &Metadata) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|found| (found.dev(), found.ino()) == (open.dev(), open.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is interrupted at first, then takes no more than `room` bytes.
    struct Disk {
        calls: u32,
        room: usize,
        bytes: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls == 1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let written = bytes.len().min(self.room);
            self.bytes.extend_from_slice(&bytes[..written]);
            Ok(written)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_write_is_done_again_when_interrupted_but_never_continued() {
        for (room, left, error) in [
            (6, "abcdef", None),
            (4, "abcd", Some("only 4 of 6 bytes were written")),
            (0, "", Some("only 0 of 6 bytes were written")),
        ] {
            let mut disk = Disk {
                calls: 0,
                room,
                bytes: Vec::new(),
            };
            let outcome = write_once(&mut disk, b"abcdef");
            assert_eq!(
                outcome.err().map(|error| error.to_string()).as_deref(),
                error
            );
            assert_eq!((disk.calls, disk.bytes), (2, left.as_bytes().to_vec()));
        }
    }
}
