//! What a run leaves behind that acts later, outside any sandbox: by the user's version control, by an
//! editor, by a shell.
//!
//! It may be written, since that may be the task. When a run ends it is compared with what was there
//! when the process for tools began, and a person is told.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::hands::replaced::replaced;
use crate::hands::watched::{self, Depth};
use crate::sandbox::{Ground, Protected, Walls, follow, is_there};
use crate::tools::{Outcome, scope};

/// How many entries of a repository are looked at for links.
const ENTRIES: usize = 20_000;

/// How many traces are compared.
const TRACES: usize = 50_000;

/// How many of one kind are told at once.
const TOLD: usize = 5;

/// What in a repository says how something that was begun goes on, with the commands to run.
const BEGUN: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// What of a repository is looked at elsewhere, or holds nothing that is written by its name.
const APART: [&str; 5] = ["hooks", "modules", "objects", "lfs", "annex"];

/// What may act later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Trace {
    /// What version control takes for a repository.
    Repository,
    /// A link in a repository that leads out of it.
    Link,
    /// What stands in a repository in the place of what was committed.
    Replaced,
    /// Something that was begun in a repository.
    Begun,
    /// What keeps version control from its work.
    Lock,
    /// What is looked at after each call as well.
    Watched,
}

/// The traces that were there at a moment, and what each is known by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remains {
    known: BTreeMap<u64, u64>,
    /// Whether there was more than can be compared.
    is_cut: bool,
}

/// Looks for traces in what may be written.
#[derive(Debug)]
pub(super) struct Left {
    root: PathBuf,
    /// All that may be written and is protected.
    roots: Vec<PathBuf>,
    protected: Protected,
    /// What holds places: it is made anew by each process, and says nothing.
    placeholders: Vec<PathBuf>,
    before: Mutex<Remains>,
}

/// Traces as they are found.
#[derive(Debug, Default)]
struct Found {
    traces: BTreeMap<(Trace, String), u64>,
    is_cut: bool,
}

impl Left {
    /// Those of this workspace: whatever is there now, or was when another process began, is not left
    /// by a run.
    pub(super) fn new(
        root: &Path,
        roots: Vec<PathBuf>,
        walls: &Walls,
        before: Option<Remains>,
    ) -> Self {
        let protected = &walls.protected;
        let left = Self {
            root: root.to_owned(),
            roots,
            protected: protected.clone(),
            placeholders: walls.enforced.placeholders.clone(),
            before: Mutex::default(),
        };
        let now = || {
            let places = protected.places().map(Path::to_owned).collect();
            left.found(places, protected.is_cut()).remains()
        };
        let before = Mutex::new(before.unwrap_or_else(now));
        Self { before, ..left }
    }

    /// What was there when this began.
    pub(super) fn before(&self) -> Remains {
        let before = self.before.lock();
        before.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is there now and was not, as lines in JSON. It is told once.
    pub(super) fn perform(&self) -> Outcome {
        match serde_json::to_string(&self.lines()) {
            Ok(text) => Outcome::ok(text),
            Err(error) => Outcome::error(error.to_string()),
        }
    }

    fn lines(&self) -> Vec<String> {
        let (mut places, mut is_cut) = (Vec::new(), false);
        for root in &self.roots {
            let ground = Ground::below(root);
            is_cut |= ground.is_cut;
            places.extend(ground.found.into_iter().map(|(path, _)| path));
        }
        let now = self.found(places, is_cut);
        let remains = now.remains();
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = Vec::new();
        let mut made = Vec::new();
        for of in [
            Trace::Repository,
            Trace::Link,
            Trace::Replaced,
            Trace::Begun,
            Trace::Lock,
            Trace::Watched,
        ] {
            let traces = now.traces.iter().filter(|((trace, _), _)| *trace == of);
            let new = traces.filter(|(trace, stamp)| before.known.get(&key(trace)) != Some(*stamp));
            let mut names: Vec<&str> = new.map(|((_, name), _)| name.as_str()).collect();
            if of == Trace::Repository {
                made.clone_from(&names);
            } else {
                // What lies in a repository that is told of is told with it.
                names.retain(|name| !made.iter().any(|made| Path::new(name).starts_with(made)));
            }
            lines.extend((!names.is_empty()).then(|| of.line(&named(&names))));
        }
        if now.is_cut && !before.is_cut {
            lines.push(
                "the workspace has become too large to be looked at whole: whether tools made \
                 repositories in it is not known"
                    .to_owned(),
            );
        }
        *before = remains;
        lines
    }

    /// All traces, with these places of repositories.
    fn found(&self, places: Vec<PathBuf>, is_cut: bool) -> Found {
        let mut found = Found {
            is_cut,
            ..Found::default()
        };
        for place in places {
            found.add(Trace::Repository, self.name(&place), 0);
        }
        for repository in self.protected.repositories() {
            self.links(repository, &mut found);
            for (name, stamp) in replaced(repository) {
                let path = repository.join(name);
                found.add(Trace::Replaced, self.name(&path), stamp);
            }
            let parts = fs::read_dir(repository.join("worktrees")).into_iter();
            let parts = parts.flatten().flatten().take(ENTRIES);
            let parts = parts.map(|part| part.path());
            for directory in std::iter::once(repository.to_owned()).chain(parts) {
                for path in BEGUN.map(|name| directory.join(name)) {
                    if is_there(&path) {
                        let stamp = watched::stamp(&path, Depth::All);
                        found.add(Trace::Begun, self.name(&path), stamp);
                    }
                }
                let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
                let entries = entries.take(ENTRIES).map(|entry| entry.path());
                for path in entries.filter(|path| path.extension().is_some_and(|end| end == "lock"))
                {
                    found.add(Trace::Lock, self.name(&path), 0);
                }
            }
        }
        // Not every mechanism keeps what is protected from commands.
        let fixed = self.protected.fixed().map(|path| {
            let name = path.strip_prefix(&self.root).unwrap_or(path);
            (name.to_string_lossy().into_owned(), Depth::Entries)
        });
        for (name, depth) in watched::names(&self.root, &self.protected)
            .into_iter()
            .chain(fixed)
        {
            let path = self.root.join(&name);
            if is_there(&path) && !self.placeholders.contains(&path) {
                let stamp = watched::stamp(&path, depth);
                let name = if name.is_empty() {
                    ".".to_owned()
                } else {
                    name
                };
                found.add(Trace::Watched, scope::one_line(&name), stamp);
            }
        }
        found
    }

    /// The links in a repository that lead out of it: version control follows them where it writes.
    fn links(&self, repository: &Path, found: &mut Found) {
        let mut left = ENTRIES;
        let mut directories = VecDeque::from([repository.to_owned()]);
        directories.extend(["objects", "objects/info"].map(|name| repository.join(name)));
        while let Some(directory) = directories.pop_front() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let Some(still) = left.checked_sub(1) else {
                    return;
                };
                left = still;
                let (path, name) = (entry.path(), entry.file_name());
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_symlink() {
                    let led = follow(&path, &[]).map(|led| led.real).unwrap_or_default();
                    if !led.starts_with(repository) {
                        let told = format!("{} to {}", self.name(&path), led.display());
                        found.add(Trace::Link, scope::one_line(&told), 0);
                    }
                } else if kind.is_dir()
                    && !directory.starts_with(repository.join("objects"))
                    && !APART
                        .iter()
                        .any(|apart| name == *apart && directory == *repository)
                {
                    directories.push_back(path);
                }
            }
        }
    }

    /// A path as a person reads it.
    fn name(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        scope::one_line(&path.to_string_lossy())
    }
}

impl Found {
    fn add(&mut self, of: Trace, name: String, stamp: u64) {
        if self.traces.len() < TRACES {
            self.traces.insert((of, name), stamp);
        } else {
            self.is_cut = true;
        }
    }

    fn remains(&self) -> Remains {
        let known = self.traces.iter();
        Remains {
            known: known.map(|(trace, stamp)| (key(trace), *stamp)).collect(),
            is_cut: self.is_cut,
        }
    }
}

impl Trace {
    /// What a person is told of these.
    fn line(self, names: &str) -> String {
        match self {
            Self::Repository => format!(
                "repositories were made while this ran: {names}; version control runs what their \
                 settings and hooks name as soon as it looks there, also from a directory above: look \
                 at those first"
            ),
            Self::Link => format!(
                "links were laid in a repository while this ran: {names}; version control writes \
                 through them: remove them first"
            ),
            Self::Begun => format!(
                "begun while this ran and not finished: {names}; going on with it runs what is written \
                 there: look at that first, or abort it"
            ),
            Self::Replaced => format!(
                "replaced while this ran: {names}; version control shows and checks out something else \
                 than was committed there: `git --no-replace-objects` does not and `git replace -d` ends \
                 it; `info/grafts` and `shallow`, where commits have other parents or none, are files to \
                 remove unless you know them"
            ),
            Self::Lock => format!(
                "locks were left in a repository while this ran: {names}; version control does nothing \
                 there until they are removed"
            ),
            Self::Watched => format!(
                "changed while this ran: {names}; editors, shells or version control act on what \
                 stands there, outside the sandbox: look at that first"
            ),
        }
    }
}

/// The first of these names, and how many more there are.
fn named(names: &[&str]) -> String {
    let told = names.get(..TOLD).unwrap_or(names).join(", ");
    match names.len().saturating_sub(TOLD) {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}

/// What a trace is known by: it may pass between processes, and names may be long.
fn key(trace: &(Trace, String)) -> u64 {
    let mut hasher = DefaultHasher::new();
    trace.hash(&mut hasher);
    hasher.finish()
}
