//! Reading a transcript while somebody else writes it, without a lock and without writing.

use std::fs::{self, File, OpenOptions};
use std::io::BufReader;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::record::file::{FileError, open_plain};
use crate::transcript::jsonl::{Item, Reader};

/// A transcript can be followed no longer.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] FileError),
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The transcript.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Its path leads to another file, or to none.
    #[error("{} is gone, or another file has taken its place", path.display())]
    Replaced {
        /// The transcript.
        path: PathBuf,
    },
    /// It lost what was read of it.
    #[error("{} has become shorter than what was read of it", path.display())]
    Shrunk {
        /// The transcript.
        path: PathBuf,
    },
}

/// A transcript that is read as it grows: only whole lines, each once.
pub struct Follow {
    path: PathBuf,
    reader: Reader<BufReader<File>>,
    device: u64,
    inode: u64,
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Follow {
    /// Opens the transcript at this path; nothing is read yet.
    pub fn open(path: &Path) -> Result<Self, FollowError> {
        let file = open_plain(path, OpenOptions::new().read(true))?;
        let found = file.metadata().map_err(|source| FollowError::Read {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            reader: Reader::growing(BufReader::with_capacity(64 << 10, file)),
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Hands out what came since the last time, up to the last line that is finished. After an error
    /// there is nothing more to be had.
    pub fn more(&mut self, mut take: impl FnMut(Item)) -> Result<(), FollowError> {
        let found = fs::symlink_metadata(&self.path).ok();
        let found = found.filter(|found| (found.dev(), found.ino()) == (self.device, self.inode));
        let Some(found) = found else {
            let path = self.path.clone();
            return Err(FollowError::Replaced { path });
        };
        if found.len() < self.reader.offset() {
            let path = self.path.clone();
            return Err(FollowError::Shrunk { path });
        }
        loop {
            match self.reader.read() {
                Ok(Some(item)) => take(item),
                Ok(None) => return Ok(()),
                Err(source) => {
                    let path = self.path.clone();
                    return Err(FollowError::Read { path, source });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::id::EntryId;
    use crate::transcript::{At, Entry, Event, Note, jsonl};

    fn line(id: u64) -> Vec<u8> {
        let text = format!("note {id}");
        let event = Event::Note(Note::Warning { text });
        jsonl::encode(&Entry {
            id: EntryId(id),
            at: At(0),
            event,
        })
        .unwrap()
    }

    fn more(follow: &mut Follow) -> String {
        let mut got = Vec::new();
        let end = follow.more(|item| {
            let text = match item {
                Item::Entry { entry, offset, .. } => format!("e{} at {offset}", entry.id),
                Item::Damage(damage) => damage.to_string(),
                Item::Torn(_) => "torn".to_owned(),
            };
            got.push(text);
        });
        let dir = follow.path().parent().unwrap().display().to_string();
        got.extend(end.err().map(|error| error.to_string().replace(&dir, "")));
        got.join(", ")
    }

    #[test]
    fn only_whole_lines_are_read_and_each_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let mut file = File::create(&path).unwrap();
        let mut follow = Follow::open(&path).unwrap();
        let (one, two) = (line(1), line(2));
        let length = one.len();
        let (head, tail) = two.split_at(20);
        // What is written, and what is then to be had.
        for (bytes, expected) in [
            (&b""[..], String::new()),
            (&one, "e1 at 0".to_owned()),
            (head, String::new()),
            (b"", String::new()),
            (tail, format!("e2 at {length}")),
            // Whether a bad line is damage or the trace of a crash, the next entry says.
            (b"{\"id\":3\n", String::new()),
            (
                &line(5),
                format!(
                    "line 3: no checksum, line 4: entries 3 to 4 are missing, e5 at {}",
                    2 * length + 8
                ),
            ),
            (
                &[line(6), line(5)].concat(),
                format!("e6 at {}, line 6: entry 5 is there twice", 3 * length + 8),
            ),
        ] {
            file.write_all(bytes).unwrap();
            assert_eq!(
                more(&mut follow),
                expected,
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
    }

    #[test]
    fn another_file_in_its_place_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let begin = || {
            fs::write(&path, line(1)).unwrap();
            let mut follow = Follow::open(&path).unwrap();
            assert_eq!(more(&mut follow), "e1 at 0");
            follow
        };
        let mut follow = begin();
        fs::write(&path, "").unwrap();
        assert_eq!(
            more(&mut follow),
            "/a.jsonl has become shorter than what was read of it"
        );
        let mut follow = begin();
        fs::rename(&path, dir.path().join("b.jsonl")).unwrap();
        assert_eq!(
            more(&mut follow),
            "/a.jsonl is gone, or another file has taken its place"
        );
        fs::write(&path, line(1)).unwrap();
        assert_eq!(
            more(&mut follow),
            "/a.jsonl is gone, or another file has taken its place"
        );
    }
}
