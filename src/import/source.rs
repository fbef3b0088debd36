//! Where a recording comes from: a file, a directory that counts as one, or bytes at hand. Everything
//! that is read goes into one digest.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use crate::id::Digest;
use crate::import::ImportError;
use crate::import::detect::{self, Format};
use crate::import::lines::Lines;
use crate::transcript::At;

/// How much of the beginning is looked at to find out the format.
const HEAD: usize = 1 << 20;

/// The longest recording that is read whole, in bytes: formats of lines have no such bound.
const WHOLE: u64 = 2 << 30;

/// The most files of a directory that counts as one recording.
const MEMBERS: usize = 100_000;

/// A recording, as bytes.
#[derive(Debug)]
pub(super) struct Source {
    name: String,
    path: PathBuf,
    modified: Option<At>,
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    File(Box<BufReader<Hashed<File>>>),
    Bytes(BufReader<Hashed<Cursor<Vec<u8>>>>),
    /// The files of a directory, by name, and the digest of those read so far.
    Directory(Vec<PathBuf>, Sha256),
}

/// A reader that makes the digest of what passes.
#[derive(Debug)]
struct Hashed<R> {
    inner: R,
    state: Sha256,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.state.update(&buffer[..read]);
        Ok(read)
    }
}

fn hashed<R: Read>(inner: R) -> BufReader<Hashed<R>> {
    let state = Sha256::new();
    BufReader::with_capacity(HEAD, Hashed { inner, state })
}

impl Source {
    /// Opens a plain file, or a directory with the files in it; nothing is read yet.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        let inner = if found.is_dir() {
            Inner::Directory(files(path)?, Sha256::new())
        } else if found.is_file() {
            Inner::File(Box::new(hashed(File::open(path)?)))
        } else {
            return Err(io::Error::other("it is no plain file"));
        };
        let name = path.file_name().unwrap_or(path.as_os_str());
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            path: path.to_owned(),
            modified: found.modified().ok().and_then(moment),
            inner,
        })
    }

    /// These bytes, under a name.
    pub(super) fn of(name: &str, bytes: Vec<u8>) -> Self {
        Self {
            name: name.to_owned(),
            path: name.into(),
            modified: None,
            inner: Inner::Bytes(hashed(Cursor::new(bytes))),
        }
    }

    /// The name of the file or directory.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, for messages.
    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// When it was last written, if that is known.
    pub(super) fn modified(&self) -> Option<At> {
        self.modified
    }

    /// The format that it looks like; one that was named must not look like another.
    pub(super) fn format(&mut self, wanted: Option<Format>) -> Result<Format, ImportError> {
        let name = self.name.clone();
        let found = match &mut self.inner {
            Inner::Directory(files, _) => detect::directory(files),
            Inner::File(bytes) => detect::head(&name, head(bytes, &self.path)?),
            Inner::Bytes(bytes) => detect::head(&name, head(bytes, &self.path)?),
        };
        match (found, wanted) {
            (detect::Found::Format(found), Some(wanted)) if found != wanted => {
                Err(ImportError::Other {
                    name,
                    found,
                    wanted,
                })
            }
            (detect::Found::Format(found), _) => Ok(found),
            (detect::Found::Transcript, _) => Err(ImportError::Transcript { name }),
            // Whoever names a format may know better than we can see.
            (detect::Found::Unknown(_), Some(wanted)) => Ok(wanted),
            (detect::Found::Unknown(looks), None) => Err(ImportError::Unknown { name, looks }),
        }
    }

    /// The bytes, as they are read. A directory has none.
    pub(super) fn bytes(&mut self) -> Box<dyn BufRead + '_> {
        match &mut self.inner {
            Inner::File(bytes) => Box::new(bytes),
            Inner::Bytes(bytes) => Box::new(bytes),
            Inner::Directory(..) => Box::new(io::empty()),
        }
    }

    /// The lines that are JSON objects, one after the other.
    pub(super) fn lines(&mut self) -> Lines<'_> {
        Lines::new(self.bytes())
    }

    /// Everything at once.
    pub(super) fn whole(&mut self) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        self.bytes().take(WHOLE + 1).read_to_end(&mut whole)?;
        if whole.len() as u64 > WHOLE {
            return Err(io::Error::other(format!("it is longer than {WHOLE} bytes")));
        }
        Ok(whole)
    }

    /// The files of a directory, by name, one after the other; none of what is no directory.
    pub(super) fn members(&mut self) -> impl Iterator<Item = io::Result<(String, Vec<u8>)>> + '_ {
        let (files, state) = match &mut self.inner {
            Inner::Directory(files, state) => (files.as_slice(), Some(state)),
            Inner::File(_) | Inner::Bytes(_) => (&[][..], None),
        };
        let mut state = state;
        files.iter().map(move |path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let bytes = fs::read(path)?;
            if let Some(state) = &mut state {
                state.update(name.as_bytes());
                state.update(bytes.len().to_le_bytes());
                state.update(&bytes);
            }
            Ok((name.into_owned(), bytes))
        })
    }

    /// The digest of everything; what was not read yet is read.
    pub(super) fn digest(&mut self) -> io::Result<Digest> {
        io::copy(&mut self.bytes(), &mut io::sink())?;
        let state = match &self.inner {
            Inner::File(bytes) => bytes.get_ref().state.clone(),
            Inner::Bytes(bytes) => bytes.get_ref().state.clone(),
            Inner::Directory(_, state) => state.clone(),
        };
        Ok(Digest(state.finalize().into()))
    }
}

fn moment(time: SystemTime) -> Option<At> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(At)
}

/// The beginning, without taking it.
fn head<'a>(bytes: &'a mut impl BufRead, path: &Path) -> Result<&'a [u8], ImportError> {
    bytes.fill_buf().map_err(|source| ImportError::Read {
        path: path.to_owned(),
        source,
    })
}

/// The plain files of a directory, by name.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)?.take(MEMBERS) {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort_unstable();
    Ok(files)
}
