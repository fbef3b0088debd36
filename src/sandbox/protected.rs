//! What of a workspace runs programs for whoever looks at it: it may not be written from inside.
//!
//! A repository's hooks and configuration name programs that the user's own version control runs
//! later, outside any sandbox. Those that are there are fixed in place, and the directory around them
//! cannot be moved away. Where there is no repository, an empty directory holds its place.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::sandbox::{Bounds, Unenforceable};

/// The directory of a repository.
const REPOSITORY: &str = ".git";

/// What in it names programs.
const NAMES: [&str; 4] = ["hooks", "config", "config.worktree", "commondir"];

/// What says that a repository's files are where they usually are.
const HERE: &[u8] = b".\n";

/// How many parts the name of a submodule has at most, but for one.
const MODULES: usize = 6;

/// How far below a root repositories are looked for, and among how many entries.
const DEPTH: usize = 4;
const ENTRIES: usize = 100_000;

/// What is protected.
#[derive(Debug, Default)]
pub(super) struct Protected {
    /// What may be written but not moved.
    pub(super) whole: Vec<PathBuf>,
    /// What may not be written.
    pub(super) fixed: Vec<PathBuf>,
    /// What was made to hold a place.
    pub(super) placeholders: Vec<PathBuf>,
    /// The same, opened and locked.
    pub(super) held: Vec<File>,
}

/// Finds what must be protected in what may be written, and makes what holds its place.
pub(super) fn find(bounds: &Bounds) -> Result<Protected, Unenforceable> {
    let mut found = Protected::default();
    for root in bounds.write.iter().filter(|root| root.is_dir()) {
        if bounds.unprotected.contains(root) {
            continue;
        }
        let mut repositories = search(root);
        let own = root.join(REPOSITORY);
        if !repositories.contains(&own) {
            repositories.push(own);
        }
        repositories.retain(|path| !is_granted(path, bounds));
        for repository in repositories {
            protect(&repository, bounds, &mut found)?;
        }
    }
    Ok(found)
}

/// Whether the user named it, or what it is in, to be written.
fn is_granted(path: &Path, bounds: &Bounds) -> bool {
    let mut granted = bounds.unprotected.iter();
    granted.any(|granted| path.starts_with(granted))
}

/// Repositories at and below a root, those that lie nearest to it first.
fn search(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), ENTRIES);
    let mut directories = VecDeque::from([(root.to_owned(), DEPTH)]);
    while let Some((directory, depth)) = directories.pop_front() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if left == 0 {
                return found;
            }
            left -= 1;
            let (name, kind) = (entry.file_name(), entry.file_type());
            if name == REPOSITORY {
                found.push(entry.path());
            } else if depth > 0 && name != "node_modules" && kind.is_ok_and(|kind| kind.is_dir()) {
                directories.push_back((entry.path(), depth - 1));
            }
        }
    }
    found
}

/// Protects a repository, or the place of one.
fn protect(repository: &Path, bounds: &Bounds, found: &mut Protected) -> Result<(), Unenforceable> {
    match fs::symlink_metadata(repository) {
        // Nothing can stand before a link, and whoever may write beside it may replace it.
        Ok(data) if data.is_symlink() => return Err(Unenforceable::Link(repository.to_owned())),
        // A file that says where the repository is.
        Ok(data) if !data.is_dir() => found.fixed.push(repository.to_owned()),
        Ok(_) if repository.join("HEAD").exists() => {
            fix(repository, bounds, found)?;
            modules(&repository.join("modules"), MODULES, bounds, found)?;
            worktrees(&repository.join("worktrees"), found);
        }
        Ok(_) => {
            // Left by a run that was killed, as it seems: an empty one is nobody's.
            let empty = fs::read_dir(repository).is_ok_and(|mut entries| entries.next().is_none());
            if empty {
                found.keep(repository)?;
            }
            found.fixed.push(repository.to_owned());
        }
        Err(_) => {
            if fs::create_dir(repository).is_ok() {
                found.keep(repository)?;
                found.fixed.push(repository.to_owned());
            }
        }
    }
    Ok(())
}

/// Fixes what of the worktrees of a repository says where it is.
fn worktrees(directory: &Path, found: &mut Protected) {
    if directory.is_dir() {
        found.whole.push(directory.to_owned());
    }
    for worktree in fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .take(ENTRIES)
    {
        let told =
            ["commondir", "gitdir", "config.worktree"].map(|name| worktree.path().join(name));
        let told = told.into_iter().filter(|path| path.is_file());
        let before = found.fixed.len();
        found.fixed.extend(told);
        if found.fixed.len() > before {
            found.whole.push(worktree.path());
        }
    }
}

/// Fixes the repositories of submodules, whose names may have several parts.
fn modules(
    directory: &Path,
    depth: usize,
    bounds: &Bounds,
    found: &mut Protected,
) -> Result<(), Unenforceable> {
    // Whoever could move it could put another in its place.
    if directory.is_dir() {
        found.whole.push(directory.to_owned());
    }
    for entry in fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .take(ENTRIES)
    {
        let path = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if path.join("HEAD").exists() {
            fix(&path, bounds, found)?;
            // Submodules have submodules.
            modules(&path.join("modules"), depth, bounds, found)?;
        } else if depth > 0 {
            modules(&path, depth - 1, bounds, found)?;
        }
    }
    Ok(())
}

/// Fixes what in a repository names programs, or says where that is told. Hooks that are not there have
/// their place held, and so has what says that all of that is elsewhere.
fn fix(repository: &Path, bounds: &Bounds, found: &mut Protected) -> Result<(), Unenforceable> {
    found.whole.push(repository.to_owned());
    for name in NAMES {
        let path = repository.join(name);
        if is_granted(&path, bounds) {
            continue;
        }
        match fs::symlink_metadata(&path) {
            // What is a link could be replaced: then nothing of the repository is written.
            Ok(data) if data.is_symlink() => {
                found.whole.retain(|path| path != repository);
                found.fixed.push(repository.to_owned());
                return Ok(());
            }
            Ok(_) => {}
            Err(_) => match name {
                "hooks" if fs::create_dir(&path).is_ok() => {}
                // It means what is usual: this directory itself.
                "commondir" if fs::write(&path, HERE).is_ok() => {}
                "config" if fs::write(&path, "").is_ok() => {}
                "config.worktree"
                    if is_per_worktree(repository) && fs::write(&path, "").is_ok() => {}
                _ => continue,
            },
        }
        if is_placeholder(&path) {
            found.keep(&path)?;
        }
        found.fixed.push(path);
    }
    Ok(())
}

/// Whether settings of a single worktree are read as well.
fn is_per_worktree(repository: &Path) -> bool {
    let settings = fs::read_to_string(repository.join("config"));
    settings.is_ok_and(|text| text.to_ascii_lowercase().contains("worktreeconfig"))
}

/// Whether that is only there to hold its place, also if a run that was killed has left it.
fn is_placeholder(path: &Path) -> bool {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("commondir") => fs::read(path).is_ok_and(|text| text == HERE),
        Some("config" | "config.worktree") => {
            fs::symlink_metadata(path).is_ok_and(|data| data.is_file() && data.len() == 0)
        }
        Some("hooks" | REPOSITORY) => {
            fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
        }
        Some(_) | None => false,
    }
}

impl Protected {
    /// Lets something hold its place for as long as this process lives: several runs may need it.
    fn keep(&mut self, path: &Path) -> Result<(), Unenforceable> {
        let step = || format!("cannot hold the place of {}", path.display());
        let held = File::open(path).and_then(|file| {
            file.try_lock_shared().map_err(io::Error::from)?;
            Ok(file)
        });
        self.held
            .push(held.map_err(|error| Unenforceable::step(step(), error))?);
        self.placeholders.push(path.to_owned());
        Ok(())
    }
}

/// Removes what held a place, as far as nothing was put there and no other run needs it.
pub(crate) fn remove_placeholders(placeholders: &[PathBuf]) {
    for path in placeholders {
        let held = File::open(path).and_then(|file| {
            file.try_lock().map_err(io::Error::from)?;
            Ok(file)
        });
        if held.is_ok() && is_placeholder(path) {
            fs::remove_dir(path).or_else(|_| fs::remove_file(path)).ok();
        }
    }
}
