//! What of a workspace runs programs for whoever looks at it: it may not be written from inside.
//!
//! A repository's hooks and configuration name programs that the user's own version control runs
//! later, outside any sandbox. Those that are there are fixed in place, and the directory around them
//! cannot be moved away. Where there is no repository, an empty directory holds its place.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::Bounds;

/// The directory of a repository.
const REPOSITORY: &str = ".git";

/// What in it names programs.
const NAMES: [&str; 3] = ["hooks", "config", "config.worktree"];

/// How far below a root repositories are looked for, and among how many entries.
const DEPTH: usize = 4;
const ENTRIES: usize = 20_000;

/// What is protected.
#[derive(Debug, Default)]
pub(super) struct Protected {
    /// What may be written but not moved.
    pub(super) whole: Vec<PathBuf>,
    /// What may not be written.
    pub(super) fixed: Vec<PathBuf>,
    /// What was made to hold a place.
    pub(super) placeholders: Vec<PathBuf>,
}

/// Finds what must be protected in what may be written, and makes what holds its place.
pub(super) fn find(bounds: &Bounds) -> Protected {
    let mut found = Protected::default();
    for root in bounds.write.iter().filter(|root| root.is_dir()) {
        if bounds.unprotected.contains(root) {
            continue;
        }
        let mut left = ENTRIES;
        let mut repositories = Vec::new();
        search(root, DEPTH, &mut left, &mut repositories);
        let own = root.join(REPOSITORY);
        if !repositories.contains(&own) {
            repositories.push(own);
        }
        repositories.retain(|path| !is_granted(path, bounds));
        for repository in repositories {
            protect(&repository, bounds, &mut found);
        }
    }
    found
}

/// Whether the user named it, or what it is in, to be written.
fn is_granted(path: &Path, bounds: &Bounds) -> bool {
    let mut granted = bounds.unprotected.iter();
    granted.any(|granted| path.starts_with(granted))
}

/// Looks for repositories at and below a directory.
fn search(directory: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let (name, kind) = (entry.file_name(), entry.file_type());
        if name == REPOSITORY {
            found.push(entry.path());
        } else if depth > 0 && name != "node_modules" && kind.is_ok_and(|kind| kind.is_dir()) {
            search(&entry.path(), depth - 1, left, found);
        }
    }
}

/// Protects a repository, or the place of one.
fn protect(repository: &Path, bounds: &Bounds, found: &mut Protected) {
    match fs::symlink_metadata(repository) {
        // A file that says where the repository is, or a link to it.
        Ok(data) if !data.is_dir() => found.fixed.push(repository.to_owned()),
        Ok(_) if repository.join("HEAD").exists() => {
            found.whole.push(repository.to_owned());
            fix(repository, bounds, found);
            let modules = fs::read_dir(repository.join("modules"));
            for module in modules.into_iter().flatten().flatten().take(ENTRIES) {
                if module.path().join("HEAD").exists() {
                    found.whole.push(module.path());
                    fix(&module.path(), bounds, found);
                }
            }
        }
        Ok(_) => {
            // Left by a run that was killed, as it seems: an empty one is nobody's.
            let empty = fs::read_dir(repository).is_ok_and(|mut entries| entries.next().is_none());
            found
                .placeholders
                .extend(empty.then(|| repository.to_owned()));
            found.fixed.push(repository.to_owned());
        }
        Err(_) => {
            if fs::create_dir(repository).is_ok() {
                found.placeholders.push(repository.to_owned());
                found.fixed.push(repository.to_owned());
            }
        }
    }
}

/// Fixes what in a repository names programs. Hooks that are not there have their place held.
fn fix(repository: &Path, bounds: &Bounds, found: &mut Protected) {
    for name in NAMES {
        let path = repository.join(name);
        if is_granted(&path, bounds) {
            continue;
        }
        if name == "hooks" && fs::create_dir(&path).is_ok() {
            found.placeholders.push(path.clone());
        }
        if fs::symlink_metadata(&path).is_ok() {
            found.fixed.push(path);
        }
    }
}

/// Removes what held a place, as far as it is still empty.
pub(crate) fn remove_placeholders(placeholders: &[PathBuf]) {
    for path in placeholders {
        fs::remove_dir(path).ok();
    }
}
