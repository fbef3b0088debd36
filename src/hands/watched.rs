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

/// How many entries of a directory are looked at.
const ENTRIES: usize = 1000;

/// Those files, as they were last seen.
#[derive(Debug)]
pub(super) struct Watched {
    root: PathBuf,
    /// What is looked at, below the root.
    names: Vec<String>,
    seen: Mutex<Vec<u64>>,
}

impl Watched {
    /// Those of this workspace, as they are now, and those that its repositories run.
    pub(super) fn new(root: &Path, protected: &Protected) -> Self {
        let mut names = protected.telling(root);
        names.extend(NAMES.map(str::to_owned));
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
        let changed: Vec<&str> = changed.map(|(name, _)| name.as_str()).collect();
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

fn stamps(root: &Path, names: &[String]) -> Vec<u64> {
    let stamps = names.iter().map(|name| {
        let path = root.join(name);
        let mut hasher = DefaultHasher::new();
        stamp(&path, &mut hasher);
        // An empty place kept for a repository has none of these in it.
        for entry in fs::read_dir(&path)
            .into_iter()
            .flatten()
            .flatten()
            .take(ENTRIES)
        {
            stamp(&entry.path(), &mut hasher);
        }
        hasher.finish()
    });
    stamps.collect()
}

fn stamp(path: &Path, hasher: &mut DefaultHasher) {
    if let Ok(data) = fs::symlink_metadata(path) {
        let time = (data.mtime(), data.mtime_nsec());
        (path, data.ino(), data.size(), time, data.mode()).hash(hasher);
    }
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
    }
}
