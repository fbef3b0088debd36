//! Files of a workspace that editors and shells act on by themselves, outside any sandbox.
//!
//! They may be written, since that may be the task; whoever reads the call's result learns of it.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::sandbox::Protected;
use crate::tools::Outcome;

/// What is looked at beside repositories of git.
const NAMES: [&str; 20] = [
    ".hg/hgrc",
    ".jj/repo/config.toml",
    ".envrc",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".husky",
    ".pre-commit-config.yaml",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".mise.toml",
    ".zed",
    ".mcp.json",
    ".claude",
    ".cursor",
    ".cargo/config.toml",
    "mise.toml",
    "lefthook.yml",
];

/// How many entries of a directory are looked at, with those of the directories in it.
const ENTRIES: usize = 1000;

/// Those files, as they were last seen.
#[derive(Debug)]
pub(super) struct Watched {
    root: PathBuf,
    /// What is looked at, below the root.
    names: Vec<(String, Depth)>,
    seen: Mutex<Vec<u64>>,
}

impl Watched {
    /// Those of this workspace, as they are now, and those that its repositories run.
    pub(super) fn new(root: &Path, protected: &Protected) -> Self {
        let names = names(root, protected);
        let seen = Mutex::new(stamps(root, &names));
        Self {
            root: root.to_owned(),
            names,
            seen,
        }
    }

    /// Adds a line if any has changed since the last call.
    pub(super) fn tell(&self, outcome: &mut Outcome) {
        let now = stamps(&self.root, &self.names);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.names.iter().zip(seen.iter().zip(&now));
        let changed = changed.filter(|(_, (seen, now))| seen != now);
        let changed: Vec<&str> = changed.map(|((name, _), _)| name.as_str()).collect();
        *seen = now;
        drop(seen);
        if changed.is_empty() {
            return;
        }
        outcome.add_line(&format!(
            "[changed: {}; editors, shells or version control run what stands there, outside the \
             sandbox: tell the user]",
            changed.join(", ")
        ));
    }
}

/// How far below a directory is looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Only what lies in it: hooks are looked for no deeper, and it may be the workspace itself.
    Entries,
    /// All below it.
    All,
}

/// What is looked at in this workspace, as it is named from there.
pub(super) fn names(root: &Path, protected: &Protected) -> Vec<(String, Depth)> {
    let told = protected.telling(root).into_iter();
    let told = told.map(|name| (name, Depth::Entries));
    let known = NAMES.map(|name| (name.to_owned(), Depth::All));
    told.chain(known).collect()
}

fn stamps(root: &Path, names: &[(String, Depth)]) -> Vec<u64> {
    let stamps = names
        .iter()
        .map(|(name, depth)| stamp(&root.join(name), *depth));
    stamps.collect()
}

/// What a file, or a directory with all below it, is known by; two that differ have changed. The order
/// in which entries are listed has no part in it.
pub(super) fn stamp(path: &Path, depth: Depth) -> u64 {
    let mut sum = 0_u64;
    let mut left = ENTRIES;
    let mut directories = Vec::new();
    // Most of what is looked for is not there. What is a link may lead to a directory.
    if let Ok(data) = fs::symlink_metadata(path) {
        sum = sum.wrapping_add(one(path, &data));
        directories.extend((!data.is_file()).then(|| path.to_owned()));
    }
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Some(still) = left.checked_sub(1) else {
                return sum;
            };
            left = still;
            let Ok(data) = entry.metadata() else { continue };
            sum = sum.wrapping_add(one(&entry.path(), &data));
            if data.is_dir() && depth == Depth::All {
                directories.push(entry.path());
            }
        }
    }
    sum
}

fn one(path: &Path, data: &fs::Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    let written = (data.mtime(), data.mtime_nsec());
    // Whoever writes a file can say that it was written earlier, but not when it was changed last.
    let changed = (data.ctime(), data.ctime_nsec());
    (path, data.ino(), data.size(), data.mode(), written, changed).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once() {
        let place = tempfile::tempdir().unwrap();
        let told = |watched: &Watched| {
            let mut outcome = Outcome::ok("done\n");
            watched.tell(&mut outcome);
            let line = outcome.content.strip_prefix("done\n").unwrap();
            line.split(';').next().unwrap().to_owned()
        };
        let watched = Watched::new(place.path(), &Protected::default());
        assert_eq!(told(&watched), "");
        fs::write(place.path().join("a"), "").unwrap();
        assert_eq!(told(&watched), "");
        fs::write(place.path().join(".envrc"), "x").unwrap();
        fs::create_dir_all(place.path().join(".vscode")).unwrap();
        assert_eq!(told(&watched), "[changed: .envrc, .vscode");
        assert_eq!(told(&watched), "");
        fs::write(place.path().join(".vscode/tasks.json"), "x").unwrap();
        assert_eq!(told(&watched), "[changed: .vscode");
        fs::create_dir_all(place.path().join(".idea/runConfigurations")).unwrap();
        let deep = place.path().join(".idea/runConfigurations/all.xml");
        fs::write(&deep, "x").unwrap();
        assert_eq!(told(&watched), "[changed: .idea");
        fs::write(&deep, "more").unwrap();
        assert_eq!(told(&watched), "[changed: .idea");
    }

    /// Another text of the same length, said to be as old as the first.
    #[test]
    fn a_change_that_pretends_to_be_old_is_told() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(".envrc");
        fs::write(&file, "true\n").unwrap();
        let (before, was) = (stamp(&file, Depth::All), fs::metadata(&file).unwrap());
        let changed = |data: &fs::Metadata| (data.ctime(), data.ctime_nsec());
        // The clock of a file system may stand still for some milliseconds.
        while changed(&fs::metadata(&file).unwrap()) == changed(&was) {
            fs::write(&file, "evil\n").unwrap();
            let opened = fs::File::options().write(true).open(&file).unwrap();
            opened.set_modified(was.modified().unwrap()).unwrap();
        }
        let now = fs::metadata(&file).unwrap();
        let rest = |data: &fs::Metadata| (data.mtime_nsec(), data.ino(), data.size());
        assert_eq!(rest(&now), rest(&was));
        assert_ne!(stamp(&file, Depth::All), before);
    }
}
