//! Finding runs and reading them, without a lock and without writing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use crate::id::{EntryId, RunId};
use crate::record::file::{FileError, open_plain};
pub use crate::record::removed::{Removed, remove};
use crate::record::shelf::Bytes;
use crate::record::{Blobs, journal, lock};
use crate::transcript::jsonl::{Damage, Item, LINE_WRITTEN, Reader};
use crate::transcript::{At, Entry, Event, Run, Torn, Transcript};
use crate::view::{Defers, Hold, View};

/// So many bytes of what was let go last are at hand while a transcript is folded: a request for a summary
/// is made of entries that read in full until shortly before.
const LATELY: u64 = 8 << 20;

/// A run cannot be found or read.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The directory of transcripts cannot be read.
    #[error("cannot list transcripts in {}", path.display())]
    List {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The text can name no run.
    #[error("`{text}` is no run id, no part of one, and no path to a .jsonl file")]
    NoRunId {
        /// What was asked for.
        text: String,
    },
    /// There is no such run.
    #[error("no run `{text}` in {}", path.display())]
    NotFound {
        /// What was asked for.
        text: String,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// There are several.
    #[error("`{text}` may be any of {}", short(candidates))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// The runs it may be, newest first.
        candidates: Vec<RunId>,
    },
    /// The file holds no run.
    #[error("{} holds no run", path.display())]
    NoRun {
        /// The file.
        path: PathBuf,
    },
    /// The transcript or its blobs cannot be removed.
    #[error("cannot remove {}", path.display())]
    Remove {
        /// The transcript.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The transcript cannot be opened.
    #[error(transparent)]
    Open(#[from] FileError),
    /// The transcript cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The transcript.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// A few of these runs, and how many more there are.
fn short(runs: &[RunId]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<_> = runs.iter().take(SHOWN).map(|run| run.short()).collect();
    let shown = shown.join(", ");
    match runs.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The transcript of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFile {
    /// Its path.
    pub path: PathBuf,
    /// The run, as its name says.
    pub id: RunId,
    /// When something was last recorded.
    pub modified: At,
}

impl RunFile {
    /// The run, as its first entry says; nothing else is read. `None` if that entry cannot be read.
    pub fn run(&self) -> Option<Run> {
        begun(&self.path)
    }
}

/// The run that a transcript begins with; nothing else of it is read. `None` if it cannot be read.
pub fn begun(path: &Path) -> Option<Run> {
    let line = BufReader::new(open(path).ok()?.take(LINE_WRITTEN as u64));
    let Item::Entry { entry, .. } = Reader::new(line).read().ok()?? else {
        return None;
    };
    if let Event::Run(run) = &entry.event {
        Some(run.clone())
    } else {
        None
    }
}

/// Whether a process is recording in a transcript right now.
pub fn is_at_work(path: &Path) -> bool {
    open(path).is_ok_and(|file| lock::is_taken(&file))
}

/// The runs in a directory of transcripts, those that began last first. None if there is no such
/// directory.
///
/// A run's id says when it began; when its file was changed says little, since files are copied.
pub fn list(dir: &Path) -> Result<Vec<RunFile>, FindError> {
    let mut runs = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        files => files.and_then(|files| {
            files
                .filter_map(|file| file.and_then(|file| run_file(&file)).transpose())
                .collect::<io::Result<Vec<_>>>()
        }),
    }
    .map_err(|source| FindError::List {
        path: dir.to_owned(),
        source,
    })?;
    runs.sort_unstable_by_key(|run| std::cmp::Reverse(run.id));
    Ok(runs)
}

/// The run whose transcript this is; `None` if it is something else.
fn run_file(file: &fs::DirEntry) -> io::Result<Option<RunFile>> {
    let path = file.path();
    let id = path
        .file_stem()
        .and_then(|stem| stem.to_str()?.parse::<RunId>().ok());
    let (Some(id), true) = (id, is_jsonl(&path)) else {
        return Ok(None);
    };
    let found = match file.metadata() {
        // Removed since the directory was read.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let since = found.modified()?.duration_since(UNIX_EPOCH);
    let modified = since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0));
    Ok(found.is_file().then_some(RunFile {
        path,
        id,
        modified: At(modified),
    }))
}

fn is_jsonl(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "jsonl")
}

/// The transcript that a text names: a run id, a beginning or ending that only one run has, with or
/// without hyphens, or a path to a `.jsonl` file.
pub fn find(dir: &Path, text: &str) -> Result<PathBuf, FindError> {
    let path = Path::new(text);
    if is_jsonl(path) {
        return match fs::symlink_metadata(path) {
            Ok(_) => Ok(path.to_owned()),
            Err(source) => Err(FindError::Read {
                path: path.to_owned(),
                source,
            }),
        };
    }
    let part: String = text
        .chars()
        .filter(|char| *char != '-')
        .map(|char| char.to_ascii_lowercase())
        .collect();
    let hexadecimal = part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if part.is_empty() || part.len() > 32 || !hexadecimal {
        return Err(FindError::NoRunId {
            text: text.to_owned(),
        });
    }
    let mut runs = list(dir)?;
    runs.retain(|run| {
        let id = run.id.0.simple().to_string();
        // People know a run by the digits that lists show, and copy the beginning of them.
        id.starts_with(&part) || id.ends_with(&part) || run.id.short().starts_with(&part)
    });
    match (runs.pop(), runs.is_empty()) {
        (Some(run), true) => Ok(run.path),
        (Some(oldest), false) => Err(FindError::Ambiguous {
            text: text.to_owned(),
            candidates: runs.iter().map(|run| run.id).chain([oldest.id]).collect(),
        }),
        (None, _) => Err(FindError::NotFound {
            text: text.to_owned(),
            path: dir.to_owned(),
        }),
    }
}

/// The run of this workspace that began last; of each file only the first line is read.
pub fn newest(dir: &Path, workspace: &str) -> Result<Option<RunFile>, FindError> {
    let mut runs = list(dir)?.into_iter();
    Ok(runs.find(|file| file.run().is_some_and(|run| run.workspace == workspace)))
}

/// A transcript that was read and not locked: nothing can be recorded in it.
#[derive(Debug)]
pub struct Loaded {
    /// What its entries say.
    pub view: View,
    /// The whole outputs that results were clipped from.
    pub blobs: Blobs,
    /// Places that do not hold what they should.
    pub damage: Vec<Damage>,
    /// The remains of a last line that was never finished, or that is being written right now.
    pub torn: Option<Torn>,
}

impl Loaded {
    /// The run, as the first entry says.
    pub fn run(&self) -> Option<&Run> {
        super::run(self.view.transcript())
    }

    /// The format, if it is newer than this version knows: what is shown of it may be wrong.
    pub fn newer(&self) -> Option<u32> {
        super::newer(self.view.transcript())
    }
}

/// Reads a transcript, damaged or not, without a lock and without writing.
pub fn read(path: &Path) -> Result<Loaded, FindError> {
    read_along(path, |_, _| {})
}

/// The same, with a look at each entry and at the view of all that stands before it: nothing of the
/// transcript has to be read or folded twice for that.
pub fn read_along(path: &Path, look: impl FnMut(&View, &Entry)) -> Result<Loaded, FindError> {
    along(path, open(path)?, View::default(), look)
}

/// The same for who is done with most entries once they were looked at: the view lets go of what no
/// request needs, so that a transcript may be longer than memory.
///
/// What grows old is counted at the end: a look that asks what micro-compaction may put away finds nothing.
/// What is asked for again is read again. Whoever has asked asks [`lost`](Transcript::lost) whether all of
/// it was still there.
pub fn fold_along(path: &Path, look: impl FnMut(&View, &Entry)) -> Result<Loaded, FindError> {
    let file = Arc::new(open(path)?);
    let again = Arc::clone(&file);
    let shelf = Bytes::new(move |offset, bytes: &mut [u8]| again.read_exact_at(bytes, offset));
    let mut view = View::on(shelf, Hold::default());
    view.keep_lately(LATELY);
    view.defer(Defers::Aging);
    let mut loaded = along(path, file, view, look)?;
    loaded.view.catch_up();
    loaded.view.keep_lately(0);
    Ok(loaded)
}

fn along(
    path: &Path,
    file: impl io::Read + Send,
    mut view: View,
    mut look: impl FnMut(&View, &Entry),
) -> Result<Loaded, FindError> {
    let bytes = BufReader::with_capacity(64 << 10, file);
    let found = journal::scan(bytes, |entry, line| {
        look(&view, &entry);
        view.take_back(entry, line)
    });
    let found = found.map_err(|source| FindError::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(Loaded {
        view,
        blobs: Blobs::beside(path),
        damage: found.damage,
        torn: found.torn,
    })
}

/// What a transcript is found to be that was read through, of which nothing is held.
#[derive(Debug)]
pub struct Scanned {
    head: Transcript,
    /// Places that do not hold what they should.
    pub damage: Vec<Damage>,
    /// The remains of a last line that was never finished, or that is being written right now.
    pub torn: Option<Torn>,
    /// How many entries it has.
    pub entries: u64,
}

impl Scanned {
    /// The run, as the first entry says.
    pub fn run(&self) -> Option<&Run> {
        super::run(&self.head)
    }

    /// The format, if it is newer than this version knows.
    pub fn newer(&self) -> Option<u32> {
        super::newer(&self.head)
    }
}

/// Reads a transcript through, damaged or not, as [`read`] does. However long it is, this takes little
/// memory.
pub fn scan(path: &Path) -> Result<Scanned, FindError> {
    let (mut head, mut entries) = (Transcript::default(), 0);
    let bytes = BufReader::with_capacity(64 << 10, open(path)?);
    let found = journal::scan(bytes, |entry, _| {
        entries += 1;
        if entry.id == EntryId::FIRST {
            head.append(Arc::clone(&entry));
        }
        vec![entry]
    });
    let found = found.map_err(|source| FindError::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(Scanned {
        head,
        damage: found.damage,
        torn: found.torn,
        entries,
    })
}

fn open(path: &Path) -> Result<File, FileError> {
    open_plain(path, OpenOptions::new().read(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Clock, Durability, FileStorage, Recorder};
    use crate::transcript::FORMAT;

    /// Three runs in a directory, the last one of another workspace; among other files.
    fn directory() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (id, workspace) in [
            ("019a0000-0000-7000-8000-0000aaaa1111", "/w"),
            ("019a0001-0000-7000-8000-0000bbbb1111", "/w"),
            ("019b0000-0000-7000-8000-0000cccc2222", "/other"),
        ] {
            let run = Run {
                format: FORMAT,
                run: id.parse().unwrap(),
                workspace: workspace.to_owned(),
                generator: "undertext 0.1.0".to_owned(),
                name: None,
                parent: None,
                imported: None,
                batch: None,
            };
            let storage = FileStorage::create(dir.path(), run.run, Durability::None).unwrap();
            Recorder::create(Box::new(storage), Clock::fixed(At(0)), run).unwrap();
        }
        for name in ["notes.jsonl", "019c0000-0000-7000-8000-0000dddd3333.json"] {
            fs::write(dir.path().join(name), "{}\n").unwrap();
        }
        fs::create_dir(
            dir.path()
                .join("019d0000-0000-7000-8000-0000eeee4444.jsonl"),
        )
        .unwrap();
        dir
    }

    #[test]
    fn runs_are_listed_by_when_they_began() {
        let dir = directory();
        let runs = list(dir.path()).unwrap();
        let shown: Vec<_> = runs.iter().map(|run| run.id.short()).collect();
        assert_eq!(shown, ["cccc2222", "bbbb1111", "aaaa1111"]);
        assert!(runs.iter().all(|run| run.modified > At(0)));
        assert_eq!(list(&dir.path().join("none")).unwrap(), []);

        let newest = |workspace: &str| newest(dir.path(), workspace).unwrap();
        assert_eq!(newest("/w").unwrap().id, runs[1].id);
        assert_eq!(newest("/other").unwrap().id, runs[0].id);
        assert_eq!(newest("/nowhere"), None);
        // A newer run whose first line cannot be read belongs to no workspace.
        fs::write(&runs[1].path, "damage\n").unwrap();
        assert_eq!(newest("/w").unwrap().id, runs[2].id);
    }

    #[test]
    fn a_run_is_found_by_any_part_that_only_it_has() {
        let dir = directory();
        let path = |id: &str| dir.path().join(format!("{id}.jsonl")).display().to_string();
        let (first, second, third) = (
            path("019a0000-0000-7000-8000-0000aaaa1111"),
            path("019a0001-0000-7000-8000-0000bbbb1111"),
            path("019b0000-0000-7000-8000-0000cccc2222"),
        );
        let nowhere = dir.path().display();
        for (text, expected) in [
            ("019a0000-0000-7000-8000-0000aaaa1111", first.clone()),
            ("019a000000007000800000 00aaaa1111", "`019a000000007000800000 00aaaa1111` is no run id, no part of one, and no path to a .jsonl file".to_owned()),
            ("019A00010000", second.clone()),
            ("019a0001-0", second.clone()),
            ("bbbb1111", second),
            ("2", third.clone()),
            ("019b", third.clone()),
            (&first, first.clone()),
            ("1111", "`1111` may be any of bbbb1111, aaaa1111".to_owned()),
            ("019a", "`019a` may be any of bbbb1111, aaaa1111".to_owned()),
            ("cccc", third.clone()),
            ("7000", format!("no run `7000` in {nowhere}")),
            ("none.jsonl", "cannot read none.jsonl".to_owned()),
            ("last", "`last` is no run id, no part of one, and no path to a .jsonl file".to_owned()),
            ("-", "`-` is no run id, no part of one, and no path to a .jsonl file".to_owned()),
        ] {
            let found = match find(dir.path(), text) {
                Ok(path) => path.display().to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_run_is_removed_with_its_blobs_unless_it_is_in_use() {
        let dir = directory();
        let runs = list(dir.path()).unwrap();
        let path = &runs[0].path;
        let blobs = path.with_extension("blobs");
        fs::create_dir(&blobs).unwrap();
        fs::write(blobs.join("blob"), "bytes").unwrap();
        let held = FileStorage::open(path, Durability::None).unwrap();
        let refused = remove(path).unwrap_err();
        assert!(
            matches!(refused, FindError::Open(FileError::InUse { .. })),
            "{refused}"
        );
        assert!(path.exists() && blobs.exists());
        drop(held);
        let removed = remove(path).unwrap();
        assert_eq!((removed.run, removed.blobs), (runs[0].id, 1));
        assert!(removed.bytes > 100 && !path.exists() && !blobs.exists());

        // Damage is no reason to keep one; a copy says by its first entry what it is.
        fs::write(&runs[1].path, "damage\n").unwrap();
        assert_eq!(remove(&runs[1].path).unwrap().run, runs[1].id);
        let copy = dir.path().join("copy.jsonl");
        fs::copy(&runs[2].path, &copy).unwrap();
        assert_eq!(remove(&copy).unwrap().run, runs[2].id);
        let notes = dir.path().join("notes.jsonl");
        assert!(matches!(remove(&notes), Err(FindError::NoRun { .. })));
        assert!(notes.exists());
        assert_eq!(list(dir.path()).unwrap(), runs[2..]);
    }

    #[test]
    fn a_damaged_transcript_is_read_as_far_as_it_can_be() {
        let dir = directory();
        let path = &list(dir.path()).unwrap()[0].path;
        let mut bytes = fs::read(path).unwrap();
        bytes.extend_from_slice(b"damage\"}\n{\"id\":3,\"type\":\"pin\",\"en");
        fs::write(path, &bytes).unwrap();
        for _ in 0..2 {
            let loaded = read(path).unwrap();
            assert_eq!(loaded.run().unwrap().workspace, "/other");
            assert_eq!(loaded.view.transcript().entries().len(), 1);
            assert!(loaded.torn.is_some());
            // Read through, it is found to be the same.
            let scanned = scan(path).unwrap();
            assert_eq!(scanned.run(), loaded.run());
            assert_eq!(
                (scanned.entries, scanned.damage.len()),
                (1, loaded.damage.len())
            );
            assert_eq!(scanned.torn, loaded.torn);
        }
        assert_eq!(fs::read(path).unwrap(), bytes);
    }
}
