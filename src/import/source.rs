//! Where a recording comes from: a file, a pipe, or a directory that counts as one. Everything that is
//! read goes into one digest, and is read once.

use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::IgnoredAny;
use sha2::{Digest as _, Sha256};

use crate::id::Digest;
use crate::import::ImportError;
use crate::import::detect::{self, Format, Found, HEAD};
use crate::import::lines::Lines;
use crate::transcript::At;
use crate::words::grouped;

/// The longest recording that is read whole, in bytes: formats of lines have no such bound.
const WHOLE: u64 = 2 << 30;

/// The most files of a directory that counts as one recording.
const MEMBERS: usize = 100_000;

/// The longest file of a directory that is read, in bytes.
const MEMBER: u64 = 256 << 20;

/// A recording, as bytes.
pub(super) struct Source {
    name: String,
    path: PathBuf,
    modified: Option<At>,
    /// How long it is, if that is known before it is read.
    length: Option<u64>,
    inner: Inner,
}

enum Inner {
    Bytes(BufReader<Hashed>),
    Directory(Directory),
}

/// The files of a directory that counts as one recording.
struct Directory {
    path: PathBuf,
    /// Their names, sorted.
    names: Vec<OsString>,
    /// How many more there are.
    left_out: u64,
    /// The digest of those read so far.
    state: Sha256,
}

/// A reader that makes the digest of what passes.
struct Hashed {
    inner: Box<dyn Read>,
    state: Sha256,
}

impl Read for Hashed {
    /// Fills the buffer: a pipe gives little at a time, and a beginning is to be one.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.inner.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if filled == 0 => return Err(error),
                // The next read tells of it.
                Err(_) => break,
            }
        }
        self.state.update(&buffer[..filled]);
        Ok(filled)
    }
}

/// How the JSON of a recording is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One value a line.
    Lines,
    /// One list.
    List,
    /// One object, on several lines or on one that is long.
    Object,
}

impl Source {
    /// Opens a file or a pipe, or a directory with the files in it; nothing is read yet.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        let modified = found.modified().ok().and_then(moment);
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy();
        if !found.is_dir() {
            let of = Self::of(&name, Box::new(File::open(path)?), modified);
            return Ok(Self {
                path: path.to_owned(),
                length: Some(found.len()),
                ..of
            });
        }
        let (names, left_out) = events(path)?;
        Ok(Self {
            name: name.into_owned(),
            path: path.to_owned(),
            modified,
            length: None,
            inner: Inner::Directory(Directory {
                path: path.to_owned(),
                names,
                left_out,
                state: Sha256::new(),
            }),
        })
    }

    /// What this reader reads, under a name, as of this moment.
    pub(super) fn of(name: &str, inner: Box<dyn Read>, modified: Option<At>) -> Self {
        let state = Sha256::new();
        Self {
            name: name.to_owned(),
            path: name.into(),
            modified,
            length: None,
            inner: Inner::Bytes(BufReader::with_capacity(HEAD, Hashed { inner, state })),
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

    /// The format that it looks like, or the one that was named, which it must not contradict; with
    /// what it looks like if it looks like none.
    pub(super) fn format(
        &mut self,
        wanted: Option<Format>,
    ) -> Result<(Format, Option<String>), ImportError> {
        let name = self.name.clone();
        let found = match &self.inner {
            Inner::Directory(directory) => detect::directory(&directory.names),
            Inner::Bytes(_) => {
                let path = self.path.clone();
                let read = |source| ImportError::Read { path, source };
                detect::head(&name, self.head().map_err(read)?)
            }
        };
        match (found, wanted) {
            (Found::Format(found), Some(wanted)) if found != wanted => Err(ImportError::Other {
                name,
                found,
                wanted,
            }),
            (Found::Format(found), _) => Ok((found, None)),
            (Found::Transcript, _) => Err(ImportError::Transcript { name }),
            // Whoever names a format may know better than we can see.
            (Found::Unknown(looks), Some(wanted)) => Ok((wanted, Some(looks))),
            (Found::Unknown(looks), None) => Err(ImportError::Unknown { name, looks }),
            (Found::Nothing(looks), _) => Err(ImportError::Nothing { name, looks }),
        }
    }

    /// How it is laid out.
    pub(super) fn shape(&mut self) -> io::Result<Shape> {
        let is_lines = Path::new(&self.name).extension() == Some("jsonl".as_ref());
        let head = self.head()?;
        let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
        let head = head.trim_ascii_start();
        let line = head.split(|byte| *byte == b'\n').next();
        let is_value = |line: &[u8]| serde_json::from_slice::<IgnoredAny>(line).is_ok();
        Ok(if head.starts_with(b"[") {
            Shape::List
        } else if is_lines || line.is_some_and(is_value) {
            Shape::Lines
        } else {
            Shape::Object
        })
    }

    /// The beginning, which stays to be read. A directory has none.
    fn head(&mut self) -> io::Result<&[u8]> {
        match &mut self.inner {
            Inner::Bytes(bytes) => bytes.fill_buf(),
            Inner::Directory(_) => Ok(&[]),
        }
    }

    /// The bytes, as they are read. A directory has none.
    pub(super) fn bytes(&mut self) -> Box<dyn BufRead + '_> {
        match &mut self.inner {
            Inner::Bytes(bytes) => Box::new(bytes),
            Inner::Directory(_) => Box::new(io::empty()),
        }
    }

    /// The lines that are JSON objects, one after the other.
    pub(super) fn lines(&mut self) -> Lines<'_> {
        Lines::new(self.bytes())
    }

    /// Everything at once. What is too long for that is not read at all where its length is known.
    pub(super) fn whole(&mut self) -> io::Result<Vec<u8>> {
        self.at_once(WHOLE)
    }

    fn at_once(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        if self.length.is_none_or(|length| length <= most) {
            self.bytes().take(most + 1).read_to_end(&mut whole)?;
        }
        let length = self.length.unwrap_or_default().max(whole.len() as u64);
        if length > most {
            let most = grouped(most);
            return Err(io::Error::other(format!(
                "it is one JSON value of more than {most} bytes, and such a one is read at once"
            )));
        }
        Ok(whole)
    }

    /// Whether it is a directory, whose files are read one by one.
    pub(super) fn is_directory(&self) -> bool {
        matches!(self.inner, Inner::Directory(_))
    }

    /// The files of a directory, by name, one after the other; none of what is no directory. Of one
    /// that is too long only the beginning is there.
    pub(super) fn members(&mut self) -> impl Iterator<Item = io::Result<Vec<u8>>> + '_ {
        let directory = match &mut self.inner {
            Inner::Directory(directory) => Some(directory),
            Inner::Bytes(_) => None,
        };
        directory.into_iter().flat_map(|directory| {
            let Directory {
                path, names, state, ..
            } = directory;
            names.iter().map(|name| {
                let mut bytes = Vec::new();
                let file = File::open(path.join(name))?;
                file.take(MEMBER).read_to_end(&mut bytes)?;
                state.update(name.to_string_lossy().as_bytes());
                state.update(bytes.len().to_le_bytes());
                state.update(&bytes);
                Ok(bytes)
            })
        })
    }

    /// How many files of a directory are not among its members.
    pub(super) fn left_out(&self) -> u64 {
        match &self.inner {
            Inner::Directory(directory) => directory.left_out,
            Inner::Bytes(_) => 0,
        }
    }

    /// The digest of everything; what was not read yet is read.
    pub(super) fn digest(&mut self) -> io::Result<Digest> {
        io::copy(&mut self.bytes(), &mut io::sink())?;
        let state = match &self.inner {
            Inner::Bytes(bytes) => bytes.get_ref().state.clone(),
            Inner::Directory(directory) => directory.state.clone(),
        };
        Ok(Digest(state.finalize().into()))
    }
}

fn moment(time: SystemTime) -> Option<At> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(At)
}

/// The names of the files of a directory that are events of a recording, sorted, and how many more
/// there are.
fn events(directory: &Path) -> io::Result<(Vec<OsString>, u64)> {
    let names = fs::read_dir(directory)?.filter_map(|entry| {
        let name = entry.and_then(|entry| {
            let is_event = detect::is_event(&entry.file_name()) && entry.file_type()?.is_file();
            Ok(is_event.then(|| entry.file_name()))
        });
        name.transpose()
    });
    first(names, MEMBERS)
}

/// The first of these names, sorted, and how many there are behind them. No more are held at a time.
fn first(
    names: impl Iterator<Item = io::Result<OsString>>,
    most: usize,
) -> io::Result<(Vec<OsString>, u64)> {
    let mut first = BinaryHeap::new();
    let mut more = 0;
    for name in names {
        first.push(name?);
        if first.len() > most {
            first.pop();
            more += 1;
        }
    }
    Ok((first.into_sorted_vec(), more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_before_they_are_too_many() {
        let names = ["d", "a", "c", "b"].map(|name| Ok(name.into()));
        let first = first(names.into_iter(), 3).unwrap();
        assert_eq!(first, (vec!["a".into(), "b".into(), "c".into()], 1));
    }

    #[test]
    fn what_is_read_at_once_has_an_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "[1,2]").unwrap();
        let pipe = || Source::of("-", Box::new(&b"[1,2]"[..]), None);
        let open = || Source::open(file.path()).unwrap();
        for (mut source, most, is_read) in [
            (pipe(), 5, true),
            (pipe(), 4, false),
            (open(), 5, true),
            (open(), 4, false),
        ] {
            let read = source.at_once(most);
            let Err(error) = read else {
                assert!(is_read);
                continue;
            };
            assert!(!is_read);
            assert_eq!(
                error.to_string(),
                "it is one JSON value of more than 4 bytes, and such a one is read at once"
            );
        }
    }

    #[test]
    fn a_beginning_tells_how_a_recording_is_laid_out() {
        for (name, beginning, shape) in [
            ("a", "{\"a\":1}\n{\"b\":2}", Shape::Lines),
            ("a.jsonl", "{\"a\":", Shape::Lines),
            ("a", "{\n\"a\":1}", Shape::Object),
            ("a", "\u{feff} [\n{\"a\":1}]", Shape::List),
            ("a", "", Shape::Object),
        ] {
            let mut source = Source::of(name, Box::new(beginning.as_bytes()), None);
            assert_eq!(source.shape().unwrap(), shape, "{beginning}");
        }
    }
}
