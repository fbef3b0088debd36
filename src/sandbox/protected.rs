//! What of a workspace runs programs for whoever looks at it: it may not be written from inside.
//!
//! A repository's hooks and configuration name programs that the user's own version control runs
//! later, outside any sandbox; so does whatever tells version control to look for them elsewhere.
//! [`Protected`] is all of it, found once before tools begin. The mounts hold it, file tools refuse
//! it, and what is watched includes it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::sandbox::placeholders::Used;

/// The directory of a repository.
pub(crate) const REPOSITORY: &str = ".git";

/// What in it names programs, or says where such names stand.
pub(crate) const NAMES: [&str; 4] = ["hooks", "config", "config.worktree", "commondir"];

/// Directories in it that hold repositories of their own, or parts of one.
const NESTED: [&str; 2] = ["modules", "worktrees"];

/// What says where the worktree of a repository's part is.
pub(super) const BACK: &str = "gitdir";

/// What is protected. All paths are real: no link is on the way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Protected {
    /// What may not be moved, removed or replaced, though what is in it may be written.
    pub(super) held: BTreeSet<PathBuf>,
    /// What may not be written.
    pub(super) fixed: BTreeSet<PathBuf>,
    /// Repositories that the workspace belongs to and that lie elsewhere.
    pub(super) beyond: Vec<Beyond>,
    /// Below these nothing is protected.
    pub(super) granted: Vec<PathBuf>,
    /// What version control runs or reads and tools may write: whoever looks is told when it changes.
    pub(super) watched: BTreeSet<PathBuf>,
    /// The directories of the repositories that were found.
    pub(super) repositories: BTreeSet<PathBuf>,
    /// What of the workspace version control takes for its own.
    pub(super) places: BTreeSet<PathBuf>,
    /// Whether there is more of it than was searched.
    pub(super) is_cut: bool,
    /// Whether the workspace is a directory of a repository.
    pub(super) is_part: bool,
    /// What a person should know.
    pub(super) told: Vec<String>,
}

/// What of a repository lies outside the workspace.
#[derive(Clone, Debug)]
pub(super) struct Beyond {
    /// What is to be seen.
    pub(super) path: PathBuf,
    /// Whether it may be written, but for what is protected.
    pub(super) writes: bool,
    /// What in it may be written where nothing in it can be fixed.
    pub(super) parts: Vec<PathBuf>,
}

/// Something that was made only to be protected, while it is used.
#[derive(Debug)]
pub(super) struct Placeholder {
    /// Where it is.
    pub(super) path: PathBuf,
    /// It is locked: whoever uses it last removes it.
    pub(super) _used: Used,
}

impl Protected {
    /// Whether file tools may not write this: what is fixed, and what in any repository, also in
    /// one that was made since, names programs.
    pub(crate) fn forbids(&self, real: &Path) -> bool {
        if self.is_granted(real) {
            return false;
        }
        // What stands nearest decides: parts of what is fixed may be written.
        let mut above = real.ancestors();
        let nearest = above.find(|above| self.fixed.contains(*above) || self.held.contains(*above));
        if nearest.is_some_and(|nearest| nearest == real || self.fixed.contains(nearest)) {
            return true;
        }
        // Some file systems do not tell letters of either case apart.
        let is_one = |part: &&std::ffi::OsStr| part.eq_ignore_ascii_case(REPOSITORY);
        let mut parts = real.iter().skip_while(|part| !is_one(part)).skip(1);
        let in_repository = real.iter().any(|part| is_one(&part));
        let Some(first) = parts.next() else {
            return in_repository;
        };
        let named = |part: &std::ffi::OsStr| NAMES.iter().any(|name| part == *name);
        let is_nested = NESTED.iter().any(|nested| first == *nested);
        named(first) || is_nested && parts.any(|part| named(part) || part == BACK)
    }

    /// Whether the workspace is a directory of a repository, which is found above it.
    pub(crate) fn is_part(&self) -> bool {
        self.is_part
    }

    /// What below this directory says what a repository runs, makes one of it, or is run by one, as it
    /// is named from there.
    pub(crate) fn telling(&self, root: &Path) -> Vec<String> {
        let own = NAMES.iter().map(|name| format!("{REPOSITORY}/{name}"));
        let watched = self.watched.iter().map(|path| {
            let named = path.strip_prefix(root).unwrap_or(path);
            named.display().to_string()
        });
        own.chain(["HEAD".to_owned()]).chain(watched).collect()
    }

    /// What may not be written.
    pub(crate) fn fixed(&self) -> impl Iterator<Item = &Path> {
        self.fixed.iter().map(PathBuf::as_path)
    }

    /// The directories of the repositories that were found.
    pub(crate) fn repositories(&self) -> impl Iterator<Item = &Path> {
        self.repositories.iter().map(PathBuf::as_path)
    }

    /// What of the workspace version control took for its own, before anything was made.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(PathBuf::as_path)
    }

    /// Whether there was more than was searched.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether the user named it, or what it is in, to be written.
    pub(crate) fn is_granted(&self, path: &Path) -> bool {
        let mut granted = self.granted.iter();
        granted.any(|granted| path.starts_with(granted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_programs_is_forbidden_and_nothing_else() {
        let protected = Protected {
            fixed: ["/w/separate/config", "/w/.git/hooks", "/w/.git/modules"]
                .map(PathBuf::from)
                .into(),
            held: ["/w/vendor", "/w/.git/modules/a"].map(PathBuf::from).into(),
            granted: vec!["/w/mine/.git".into()],
            ..Protected::default()
        };
        for (path, forbidden) in [
            ("/w/a", false),
            ("/w/vendor/a", false),
            ("/w/vendor", true),
            ("/w/separate/config", true),
            ("/w/separate/HEAD", false),
            ("/w/.git", true),
            ("/w/.git/hooks/pre-commit", true),
            ("/w/.git/refs/heads/config", false),
            ("/w/.git/index", false),
            ("/w/.git/commondir", true),
            ("/w/sub/.git/config.worktree", true),
            ("/w/sub/.Git/config", true),
            ("/w/.git/modules/a/b/hooks/x", true),
            ("/w/.git/modules/a/index", false),
            ("/w/.git/modules/b/index", true),
            ("/w/.git/worktrees/a/gitdir", true),
            ("/w/mine/.git/config", false),
        ] {
            assert_eq!(protected.forbids(Path::new(path)), forbidden, "{path}");
        }
    }
}
