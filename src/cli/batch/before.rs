//! What was done of a batch before. The transcripts alone know: their first entries say which task
//! they work on, and their last ones how that ended.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use undertext::id::{EntryId, RunId};
use undertext::record::runs;
use undertext::transcript::{BatchTask, Entry, Event, Reason, jsonl};
use undertext::view::View;

use crate::cli::batch::tasks::Key;
use crate::cli::exit::Failure;

/// How much of the end of a transcript is looked at for its last entry, in bytes.
const TAIL: u64 = 256 << 10;

/// Which batch it is: a file of tasks, and the name that a person gave to this use of it.
#[derive(Clone, Debug)]
pub(super) struct Which {
    /// The full path of the file.
    pub(super) file: String,
    /// The name, if it was given one.
    pub(super) name: Option<String>,
}

impl Which {
    /// What a run records of its task.
    pub(super) fn task(&self, key: Key, id: Option<String>) -> BatchTask {
        BatchTask {
            file: self.file.clone(),
            name: self.name.clone(),
            sha256: key.sha256,
            before: key.before,
            id,
        }
    }
}

/// A run of the batch that was begun before.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    /// The run.
    pub(super) run: RunId,
    /// Its transcript.
    pub(super) path: PathBuf,
    /// Where it works.
    pub(super) workspace: PathBuf,
}

/// The runs of a batch that were begun before, by what their lines are known by.
pub(super) fn begun(dir: &Path, which: &Which) -> Result<HashMap<Key, Begun>, Failure> {
    let mut begun = HashMap::new();
    for file in runs::list(dir)? {
        let Some(run) = file.run() else { continue };
        let Some(task) = run.batch else { continue };
        if task.file != which.file || task.name != which.name {
            continue;
        }
        let key = Key {
            sha256: task.sha256,
            before: task.before,
        };
        // The newest counts, which comes first.
        begun.entry(key).or_insert(Begun {
            run: run.run,
            path: file.path,
            workspace: PathBuf::from(run.workspace),
        });
    }
    Ok(begun)
}

/// Why a run ended, as its transcript says, and the entry that says so; `None` if it did not, or goes on.
pub(super) fn ended(path: &Path) -> Result<Option<(Reason, EntryId)>, Failure> {
    let last = last(path);
    if let Some(Event::End(end)) = last.as_ref().map(|entry| &entry.event) {
        return Ok(last.as_ref().map(|entry| (end.reason, entry.id)));
    }
    // A person may have changed how it reads since.
    Ok(of_view(&runs::fold_along(path, |_, _| {})?.view))
}

/// The same as a view says.
pub(super) fn of_view(view: &View) -> Option<(Reason, EntryId)> {
    let ledger = view.ledger();
    let ended = ledger.ended.filter(|_| ledger.begun.is_none());
    ended.zip(ledger.last_end)
}

/// The last entry, if it is short; nothing else is read.
fn last(path: &Path) -> Option<Entry> {
    let file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let from = length.saturating_sub(TAIL);
    let mut tail = vec![0; usize::try_from(length - from).ok()?];
    file.read_exact_at(&mut tail, from).ok()?;
    let line = tail.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n');
    jsonl::decode(line.into_iter().next()?).ok()
}

/// Whether a run that ended so was stopped by something that has nothing to do with its task, so that
/// the same command goes on with it.
pub(super) fn was_stopped(reason: Reason) -> bool {
    match reason {
        Reason::Interrupted | Reason::Provider | Reason::Storage | Reason::Hands => true,
        Reason::Finished
        | Reason::Check
        | Reason::Schema
        | Reason::Stuck
        | Reason::Empty
        | Reason::Refused
        | Reason::Compaction
        | Reason::Oversize
        | Reason::Rounds
        | Reason::Tokens
        | Reason::Cost
        | Reason::WallTime => false,
    }
}
