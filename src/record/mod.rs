//! The one writer of a transcript.
//!
//! Begin at [`Recorder`]: every entry goes through [`Recorder::record`], into the storage and into
//! the view, and [`Recorder::sync`] makes what was recorded durable. When that must happen is for
//! the loop to say. [`Storage`] is the seam under it; [`runs`] finds transcripts and reads them
//! without writing; [`Clock`] is the only source of time.
//!
//! Nothing here changes or removes what was written, and nothing is written after a failure: the
//! transcript is taken up again instead, by reading what is really there.

mod directory;
mod ahead;
mod blobs;
mod clock;
mod file;
mod follow;
pub mod fork;
mod index;
mod index_place;
mod journal;
mod lock;
mod memory;
mod removed;
pub mod runs;
mod seen;
mod shelf;
mod storage;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

pub use blobs::Blobs;
pub use clock::{Clock, Fixed, Stopwatch};
pub use directory::make_directory;
pub use file::{FileError, FileStorage};
pub use follow::{Follow, FollowError};
pub use index_place::IndexPlace;
pub use lock::past_the_dead;
pub use memory::{Failure, MemoryStorage, SECTOR};
pub use storage::{Durability, Storage};

use crate::id::{Digest, EntryId, RunId};
use crate::record::blobs::Kept;
use crate::record::index::Indexed;
pub use crate::record::index::{IndexDue, IndexKept};
use crate::record::journal::{Found, Journal};
use crate::record::seen::{Passing, Seen};
use crate::secret::Known;
use crate::transcript::jsonl::{Damage, EncodeError, Reader};
use crate::transcript::shelf::{Line, Lost};
use crate::transcript::{At, Entry, Event, FORMAT, Note, Run, Transcript};
use crate::view::{Defers, Hold, View};

/// What to do with a transcript that is damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// Leave it alone.
    #[default]
    Refuse,
    /// Go on with what is left, and record a note of what is not.
    Accept,
}

/// A transcript cannot be written, or not gone on with.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It cannot be read.
    #[error("cannot read {location}")]
    Read {
        /// The transcript.
        location: String,
        /// The reason.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write to {location}")]
    Write {
        /// The transcript.
        location: String,
        /// The reason.
        source: io::Error,
    },
    /// What was written cannot be made durable.
    #[error("cannot sync {location}")]
    Sync {
        /// The transcript.
        location: String,
        /// The reason.
        source: io::Error,
    },
    /// A blob cannot be kept.
    #[error("cannot keep a blob of {location}")]
    Keep {
        /// The transcript.
        location: String,
        /// The reason.
        source: io::Error,
    },
    /// An entry that was let go cannot be read again as it was, so that nothing that is derived from
    /// the transcript can be relied on.
    #[error("{location} is not as it was read or written")]
    Lost {
        /// The transcript.
        location: String,
        /// The entry, and why.
        source: Lost,
    },
    /// Something failed before.
    #[error("{location} takes no more entries since a write failed")]
    Poisoned {
        /// The transcript.
        location: String,
    },
    /// The entry cannot be written as a line.
    #[error("cannot record entry {id}")]
    Encode {
        /// The id it would have had.
        id: EntryId,
        /// The reason.
        source: EncodeError,
    },
    /// The event was read from another version's transcript.
    #[error("an event that is not understood cannot be recorded")]
    Unknown,
    /// A new run was to begin in a transcript that holds something.
    #[error("{location} is not empty")]
    NotEmpty {
        /// The transcript.
        location: String,
    },
    /// It is no transcript.
    #[error("{location} does not begin with a run")]
    NoRun {
        /// The file.
        location: String,
    },
    /// A newer version of the program wrote it.
    #[error("{location} has format {format}, this version knows formats up to {FORMAT}")]
    Newer {
        /// The transcript.
        location: String,
        /// Its format.
        format: u32,
    },
    /// It is damaged.
    #[error("{location} is damaged: {}", places(damage))]
    Damaged {
        /// The transcript.
        location: String,
        /// Every place.
        damage: Vec<Damage>,
    },
}

/// Places of damage as people read them; the first ones, if there are very many.
fn places(damage: &[Damage]) -> String {
    const SHOWN: usize = 100;
    let shown: Vec<_> = damage.iter().take(SHOWN).map(ToString::to_string).collect();
    let text = shown.join("; ");
    match damage.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text}; and {more} more places"),
    }
}

/// The one writer of a transcript, and the view of what it wrote.
#[derive(Debug)]
pub struct Recorder {
    journal: Journal,
    view: View,
    clock: Clock,
    run: RunId,
    kept: Kept,
    known: Known,
    index: Option<IndexKept>,
    /// All lines are entries, or described by one.
    is_whole: bool,
}

impl Recorder {
    /// Begins a run: records its first entry. The storage must be empty.
    pub fn create(storage: Box<dyn Storage>, clock: Clock, run: Run) -> Result<Self, RecordError> {
        let view = view(&*storage);
        let mut recorder = Self {
            journal: Journal::create(storage)?,
            view,
            clock,
            run: run.run,
            kept: Kept::default(),
            known: Known::default(),
            index: None,
            is_whole: true,
        };
        recorder.record(Event::Run(run))?;
        Ok(recorder)
    }

    /// Takes a transcript up again: reads every entry into the view, and closes a last line that
    /// was never finished. Damage is an error before anything is written, unless it is accepted.
    pub fn open(
        storage: Box<dyn Storage>,
        clock: Clock,
        damage: OnDamage,
    ) -> Result<Self, RecordError> {
        let location = storage.location();
        let Read {
            view,
            kept,
            index,
            seen,
            found,
        } = read(&*storage, damage).map_err(|source| {
            let location = location.clone();
            RecordError::Read { location, source }
        })?;
        let journal = Journal::open(storage, &found, seen);

        let transcript = view.transcript();
        if let Some(source) = transcript.lost().cloned() {
            return Err(RecordError::Lost { location, source });
        }
        if let Some(format) = newer(transcript) {
            return Err(RecordError::Newer { location, format });
        }
        let accepted = places(&found.damage);
        if !found.damage.is_empty() && damage == OnDamage::Refuse && transcript.last().is_some() {
            let damage = found.damage;
            return Err(RecordError::Damaged { location, damage });
        }
        let Some(run) = run(transcript) else {
            return Err(RecordError::NoRun { location });
        };

        let mut recorder = Self {
            journal,
            clock,
            run: run.run,
            kept,
            view,
            known: Known::default(),
            index,
            is_whole: accepted.is_empty(),
        };
        if let Some(torn) = found.torn {
            recorder.record(Event::Note(Note::Torn(torn)))?;
        }
        if !accepted.is_empty() {
            recorder.clear_index();
        }
        if !accepted.is_empty() && !recorder.has_accepted(&accepted) {
            recorder.record(Event::Note(Note::Damage { text: accepted }))?;
        }
        Ok(recorder)
    }

    /// Keeps these values out of all that is recorded from now on: of an entry and of a blob they
    /// leave `[secret]`.
    pub fn keep_out(&mut self, known: Known) {
        self.known = known;
    }

    /// The values that are kept out.
    pub fn kept_out(&self) -> &Known {
        &self.known
    }

    /// Records an event with one write, and takes it into the view. It is not durable yet.
    ///
    /// If it cannot be written as a line, nothing is written and nothing changes. If the write
    /// fails, it is the recorder's last. Nothing is written either once an entry that the view let go
    /// could not be read again: what was to be recorded may come of its not having been there.
    pub fn record(&mut self, event: Event) -> Result<EntryId, RecordError> {
        if let Event::Unknown(_) = event {
            return Err(RecordError::Unknown);
        }
        self.is_there()?;
        let event = self.known.event(event);
        let entry = Entry {
            id: self.view.transcript().next_id(),
            at: self.clock.now(),
            event,
        };
        let line = self.journal.append(&entry)?;
        self.kept.take(&entry.event);
        let id = entry.id;
        self.view.take_line(Arc::new(entry), line);
        Ok(id)
    }

    /// Makes everything recorded so far durable; does nothing if it is.
    ///
    /// It is an error as well if an entry that the view let go could not be read again: what follows a
    /// sync is sent or done, and may come of that.
    pub fn sync(&mut self) -> Result<(), RecordError> {
        self.journal.sync()?;
        self.is_there()
    }

    /// Whether every entry that was looked for could be read.
    fn is_there(&self) -> Result<(), RecordError> {
        let Some(source) = self.view.transcript().lost().cloned() else {
            return Ok(());
        };
        let location = self.storage().location();
        Err(RecordError::Lost { location, source })
    }

    /// Keeps the whole output that a result is clipped from, durable at once, to be named by an
    /// entry recorded afterwards. `None` if it is too large, or the run has kept too much already.
    pub fn keep(&mut self, bytes: &[u8]) -> Result<Option<Digest>, RecordError> {
        let bytes = &*self.known.replace_bytes(bytes);
        let Some(digest) = self.kept.fits(bytes) else {
            return Ok(None);
        };
        self.journal.keep(digest, bytes)?;
        self.kept.add(digest, bytes.len() as u64);
        Ok(Some(digest))
    }

    /// Keeps beside the transcript what spares whoever takes it up next reading all of it, if it is long
    /// and an index is kept at all; returns whether it was made anew. It may be deleted at any time. Nothing
    /// is recorded, so an error here is no failure of the run.
    ///
    /// It makes everything recorded so far durable, whatever a sync does else: only of such a file its
    /// length and its times tell later what it holds.
    pub fn keep_index(&mut self) -> io::Result<bool> {
        let Some(due) = self.index_due().map_err(io::Error::other)? else {
            return Ok(false);
        };
        let is_anew = due.is_anew();
        self.index = Some(due.keep()?);
        Ok(is_anew)
    }

    /// The same work to be done elsewhere: it takes its time where the transcript is very long. What
    /// comes of it is for [`index_kept`](Self::index_kept).
    pub fn index_due(&mut self) -> Result<Option<IndexDue>, RecordError> {
        let is_sure = self.is_whole && self.view.transcript().lost().is_none();
        let due = self.journal.seen().filter(|_| is_sure).and_then(|seen| {
            let folded = (&self.view, &self.kept);
            index::due(self.journal.storage(), folded, seen, self.index.as_ref())
        });
        if due.is_some() {
            // Here an error of it is the recorder's last.
            self.sync()?;
        }
        Ok(due)
    }

    /// Takes in that an index of this transcript lies there now.
    pub fn index_kept(&mut self, index: IndexKept) {
        self.index = Some(index);
    }

    /// How many bytes of the transcript an index spared reading, or covers by now.
    pub fn indexed(&self) -> u64 {
        self.index.as_ref().map_or(0, IndexKept::covers)
    }

    /// What the entries say.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The present moment.
    pub fn now(&self) -> At {
        self.clock.now()
    }

    /// The clock that entries are dated by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The run's id.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Where it is kept, for reading.
    pub fn storage(&self) -> &dyn Storage {
        self.journal.storage()
    }

    /// How often something was made durable.
    pub fn syncs(&self) -> u64 {
        self.journal.syncs()
    }

    /// Removes an index that was made before the transcript was damaged: none is made of it any more.
    fn clear_index(&self) {
        let place = self.storage().index_place();
        if let Some(Err(error)) = place.map(|place| place.clear()) {
            tracing::debug!("an old index stays: {error}");
        }
    }

    /// Whether a note says already that this damage was accepted.
    fn has_accepted(&self, places: &str) -> bool {
        let mut entries = self.view.transcript().entries().passing();
        entries.any(
            |entry| matches!(&entry.event, Event::Note(Note::Damage { text }) if text == places),
        )
    }
}

/// What was read of a storage.
struct Read {
    view: View,
    kept: Kept,
    index: Option<IndexKept>,
    seen: Option<Seen>,
    found: Found,
}

/// Reads every entry; by the index as far as it goes, if there is one that is right and nothing behind
/// it is in doubt. Whoever accepts damage has all of it looked for.
fn read(storage: &dyn Storage, damage: OnDamage) -> io::Result<Read> {
    if damage == OnDamage::Refuse
        && let Some(indexed) = index::take_up(storage)
    {
        let Indexed {
            mut view,
            mut kept,
            mut seen,
            index,
        } = indexed;
        let covered = seen.length();
        let rest = Passing::new(storage.read_from(covered)?, Some(&mut seen));
        let expected = view.transcript().next_id();
        let rest = Reader::behind(rest, covered, expected);
        view.defer(Defers::All);
        let found = journal::scan_with(rest, taking(&mut view, &mut kept))?;
        view.catch_up();
        let is_there = view.transcript().lost().is_none();
        if found.damage.is_empty() && found.torn.is_none() && is_there {
            return Ok(Read {
                view,
                kept,
                index: Some(index),
                seen: Some(seen),
                found,
            });
        }
    }
    let mut view = view(storage);
    let mut kept = Kept::default();
    let mut seen = storage.indexed_from().map(|_| Seen::default());
    let bytes = Passing::new(storage.read()?, seen.as_mut());
    view.defer(Defers::All);
    let found = journal::scan(bytes, taking(&mut view, &mut kept))?;
    view.catch_up();
    Ok(Read {
        view,
        kept,
        index: None,
        seen,
        found,
    })
}

fn taking<'a>(
    view: &'a mut View,
    kept: &'a mut Kept,
) -> impl FnMut(Arc<Entry>, Line) -> Vec<Arc<Entry>> + 'a {
    |entry, line| {
        kept.take(&entry.event);
        view.take_back(entry, line)
    }
}

/// An empty view, which lets entries go that this storage reads again.
fn view(storage: &dyn Storage) -> View {
    storage
        .shelf()
        .map_or_else(View::default, |shelf| View::on(shelf, Hold::default()))
}

/// The run that a transcript begins with.
fn run(transcript: &Transcript) -> Option<&Run> {
    if let Event::Run(run) = &transcript.get(EntryId::FIRST)?.event {
        Some(run)
    } else {
        None
    }
}

/// The format of a transcript, if it is newer than this version knows.
fn newer(transcript: &Transcript) -> Option<u32> {
    newer_format(&transcript.get(EntryId::FIRST)?.event)
}

/// The format that a first entry names, if it is newer than this version knows.
pub fn newer_format(first: &Event) -> Option<u32> {
    /// All that is sure about a newer first entry.
    #[derive(serde::Deserialize)]
    struct Head {
        format: u32,
    }
    let format = if let Event::Run(run) = first {
        run.format
    } else if let Event::Unknown(unknown) = first
        && unknown.kind == "run"
    {
        let head: Head = serde_json::from_str(unknown.json.get()).ok()?;
        head.format
    } else {
        return None;
    };
    Some(format).filter(|format| *format > FORMAT)
}
