//! Another run from a point of this one: its own first entry, then the same entries, byte for byte.
//!
//! The parent is read without a lock, so it may be at work. The fork has another name until it is
//! whole, so that nobody finds half of one.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::id::{EntryId, RunId};
use crate::record::blobs::Kept;
use crate::record::file::open_plain;
use crate::record::{Blobs, Clock, Durability, FileError, FileStorage, Storage as _};
use crate::transcript::jsonl::{self, Damage, EncodeError, Item, Reader};
use crate::transcript::{Entry, Event, FORMAT, Parent, Run, Transcript};

/// How much is copied at once.
const CHUNK: u64 = 1 << 20;

/// A run cannot be forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// A transcript cannot be opened or created.
    #[error(transparent)]
    File(#[from] FileError),
    /// The parent cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The parent.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The parent does not begin with a run.
    #[error("{} does not begin with a run", path.display())]
    NoRun {
        /// The parent.
        path: PathBuf,
    },
    /// A newer version of the program wrote the parent.
    #[error("{} has format {format}, this version knows formats up to {FORMAT}", path.display())]
    Newer {
        /// The parent.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// The parent is damaged before the point.
    #[error("{} is damaged before e{entry}: {damage}", path.display())]
    Damaged {
        /// The parent.
        path: PathBuf,
        /// The point.
        entry: EntryId,
        /// The first place.
        damage: Damage,
        /// The last entry before that place, if there is one.
        sound: Option<EntryId>,
    },
    /// The parent has no such entry.
    #[error("{} has no entry e{entry}", path.display())]
    Short {
        /// The parent.
        path: PathBuf,
        /// The point.
        entry: EntryId,
    },
    /// The fork's first entry cannot be written as a line.
    #[error("cannot record the fork's first entry")]
    Encode(#[from] EncodeError),
    /// The fork cannot be written.
    #[error("cannot write to {}", path.display())]
    Write {
        /// The fork.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// A fork to be made.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The transcript of the parent.
    pub parent: PathBuf,
    /// The last entry that is taken over. The fork can be gone on with if no round is open there,
    /// as [`closed_at`](crate::transcript::turn::Rounds::closed_at) finds it.
    pub entry: EntryId,
    /// What the fork is called.
    pub name: Option<String>,
}

/// A fork that was made.
#[derive(Debug)]
pub struct Forked {
    /// Its transcript, still locked: a recorder can go on with it.
    pub storage: FileStorage,
    /// The run.
    pub run: RunId,
    /// Where it comes from.
    pub parent: Parent,
    /// How many blobs it has with its parent.
    pub blobs: u64,
    /// How many that its entries name are not to be had any more.
    pub lost: u64,
}

impl Fork {
    /// Makes the fork in a directory of transcripts. If that fails, nothing is left of it.
    pub fn make(
        &self,
        dir: &Path,
        clock: &Clock,
        durability: Durability,
    ) -> Result<Forked, ForkError> {
        let file = open_plain(&self.parent, OpenOptions::new().read(true))?;
        let taken = self.scan(&file)?;
        let parent = Parent {
            run: taken.run.run,
            entry: self.entry,
        };
        let run = Run {
            name: self.name.clone(),
            parent: Some(parent),
            // What was taken over is still what another agent recorded.
            imported: taken.run.imported.clone(),
            ..Run::new(clock.new_run(), taken.run.workspace.clone())
        };
        let id = run.run;
        let first = jsonl::encode(&Entry {
            id: EntryId::FIRST,
            at: clock.now(),
            event: Event::Run(run),
        })?;
        let mut storage = FileStorage::create_unlisted(dir, id, durability)?;
        match self.write(&mut storage, &first, &file, &taken) {
            Ok((blobs, lost)) => Ok(Forked {
                storage,
                run: id,
                parent,
                blobs,
                lost,
            }),
            Err(source) => {
                let path = storage.path().to_owned();
                storage.discard().ok();
                Err(ForkError::Write { path, source })
            }
        }
    }

    /// Finds the lines of the entries to take over, and what they name.
    fn scan(&self, file: &File) -> Result<Taken, ForkError> {
        let path = || self.parent.clone();
        let mut run = None;
        let mut sound = None;
        let mut lines: Vec<(u64, u64)> = Vec::new();
        let mut kept = Kept::default();
        for item in Reader::new(BufReader::with_capacity(64 << 10, file)) {
            let item = item.map_err(|source| ForkError::Read {
                path: path(),
                source,
            })?;
            let (offset, bytes, entry) = match item {
                Item::Entry {
                    offset,
                    bytes,
                    entry,
                } => (offset, bytes, entry),
                Item::Damage(damage) => {
                    return Err(ForkError::Damaged {
                        path: path(),
                        entry: self.entry,
                        damage,
                        sound,
                    });
                }
                Item::Torn(_) => break,
            };
            let id = entry.id;
            sound = Some(id);
            if id == EntryId::FIRST {
                run = Some(self.begun(Arc::clone(&entry))?);
            } else {
                kept.take(&entry.event);
                match lines.last_mut() {
                    Some((from, length)) if *from + *length == offset => *length += bytes,
                    Some(_) | None => lines.push((offset, bytes)),
                }
            }
            if id == self.entry {
                let run = run.ok_or_else(|| ForkError::NoRun { path: path() })?;
                return Ok(Taken { run, lines, kept });
            }
        }
        Err(match run {
            Some(_) => ForkError::Short {
                path: path(),
                entry: self.entry,
            },
            None => ForkError::NoRun { path: path() },
        })
    }

    /// The run that the parent begins with.
    fn begun(&self, first: Arc<Entry>) -> Result<Run, ForkError> {
        let path = self.parent.clone();
        let mut head = Transcript::default();
        head.append(first);
        if let Some(format) = super::newer(&head) {
            return Err(ForkError::Newer { path, format });
        }
        super::run(&head).cloned().ok_or(ForkError::NoRun { path })
    }

    /// Writes the whole fork, makes it durable and gives it its name. Returns how many blobs it has
    /// and how many are lost.
    fn write(
        &self,
        storage: &mut FileStorage,
        first: &[u8],
        parent: &File,
        taken: &Taken,
    ) -> io::Result<(u64, u64)> {
        storage.append(first)?;
        let mut end = b'\n';
        for (from, length) in &taken.lines {
            let mut done = 0;
            while done < *length {
                let size = usize::try_from(CHUNK.min(length - done)).unwrap_or(usize::MAX);
                let mut chunk = vec![0; size];
                parent.read_exact_at(&mut chunk, from + done)?;
                storage.append(&chunk)?;
                end = chunk.last().copied().unwrap_or(end);
                done += size as u64;
            }
        }
        // The parent's last line may lack its end still.
        if end != b'\n' {
            storage.append(b"\n")?;
        }
        let theirs = Blobs::beside(&self.parent);
        let (mut blobs, mut lost) = (0, 0);
        for digest in taken.kept.digests() {
            if storage.adopt(&theirs, digest)? {
                blobs += 1;
            } else {
                lost += 1;
            }
        }
        storage.sync()?;
        storage.publish()?;
        Ok((blobs, lost))
    }
}

/// What is taken over from the parent.
struct Taken {
    run: Run,
    /// Neighbouring lines: where they begin, and their bytes.
    lines: Vec<(u64, u64)>,
    kept: Kept,
}
