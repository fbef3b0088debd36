//! What lies in a directory that version control takes for its own, wherever below it that is.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::paths::is_there;
use crate::sandbox::protected::REPOSITORY;

/// How many entries are looked at.
pub(super) const ENTRIES: usize = 50_000;

/// Where other systems than git keep what they know.
const OTHERS: [&str; 2] = [".hg", ".jj"];

/// What something is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// What is called `.git`: a directory, a file or a link.
    Git,
    /// A directory that reads as a repository without a worktree.
    Bare,
    /// What another system keeps.
    Other,
}

impl Sort {
    /// What something is taken for by its name alone.
    fn named(name: &OsStr) -> Option<Self> {
        // Some file systems do not tell letters of either case apart.
        if name.eq_ignore_ascii_case(REPOSITORY) {
            return Some(Self::Git);
        }
        let mut others = OTHERS.iter();
        others
            .any(|other| name.eq_ignore_ascii_case(other))
            .then_some(Self::Other)
    }
}

/// Whether a path without links is, or lies in, what any version control takes for its own.
pub(crate) fn is_in_repository(real: &Path) -> bool {
    let mut above = real.ancestors();
    above.any(|above| {
        let is_named = above.file_name().and_then(Sort::named).is_some();
        is_named || Seen::of(above).is_repository()
    })
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Ground {
    /// Those near the root first.
    pub(crate) found: Vec<(PathBuf, Sort)>,
    /// Whether there are more entries than are looked at.
    pub(crate) is_cut: bool,
}

impl Ground {
    /// What lies below a directory, without what installed packages bring along.
    pub(crate) fn below(root: &Path) -> Self {
        let mut ground = Self::default();
        let mut left = ENTRIES;
        let mut directories = VecDeque::from([root.to_owned()]);
        while let Some(directory) = directories.pop_front() {
            let mut seen = Seen::default();
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let Some(still) = left.checked_sub(1) else {
                    ground.is_cut = true;
                    return ground;
                };
                left = still;
                let name = entry.file_name();
                seen.note(&name);
                if let Some(sort) = Sort::named(&name) {
                    ground.found.push((entry.path(), sort));
                } else if name != "node_modules" && entry.file_type().is_ok_and(|of| of.is_dir()) {
                    directories.push_back(entry.path());
                }
            }
            // The root is looked at by whoever asks.
            if seen.is_repository() && directory != root {
                ground.found.push((directory, Sort::Bare));
            }
        }
        ground
    }
}

/// What of a repository lies in a directory, by its number in [`PARTS`].
#[derive(Clone, Copy, Debug, Default)]
struct Seen([bool; PARTS.len()]);

/// What makes a directory a repository.
const PARTS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

impl Seen {
    /// What of it is in a directory.
    fn of(directory: &Path) -> Self {
        Self(PARTS.map(|part| is_there(&directory.join(part))))
    }

    fn note(&mut self, name: &OsStr) {
        for (seen, part) in self.0.iter_mut().zip(PARTS) {
            *seen |= name.eq_ignore_ascii_case(part);
        }
    }

    /// Whether version control takes the directory for one: the rest may be said to lie elsewhere.
    fn is_repository(self) -> bool {
        let [head, objects, refs, elsewhere] = self.0;
        head && (objects && refs || elsewhere)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_for_a_repository_is_found() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        for name in [
            ".git/objects/x/.git",
            "a/.GIT",
            "b/c/objects",
            "b/c/refs",
            "d",
            "e/refs",
            "e/objects",
            "f/.hg",
            "f/x/.JJ",
            "node_modules/g/.git",
        ] {
            fs::create_dir_all(at.join(name)).unwrap();
        }
        for name in ["b/c/HEAD", "d/HEAD", "d/commondir", "f/HEAD", "HEAD"] {
            fs::write(at.join(name), "").unwrap();
        }
        fs::write(at.join("e/.git"), "gitdir: elsewhere\n").unwrap();
        let ground = Ground::below(at);
        let found = ground.found.iter();
        let found = found.map(|(path, sort)| (path.strip_prefix(at).unwrap(), *sort));
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(path, _)| path.to_owned());
        let expected = [
            (".git", Sort::Git),
            ("a/.GIT", Sort::Git),
            ("b/c", Sort::Bare),
            ("d", Sort::Bare),
            ("e/.git", Sort::Git),
            ("f/.hg", Sort::Other),
            ("f/x/.JJ", Sort::Other),
        ];
        assert_eq!(found, expected.map(|(path, sort)| (Path::new(path), sort)));
        assert!(!ground.is_cut);
        for (path, is_in) in [
            ("d/hooks/new", true),
            ("b/c/config", true),
            ("b/c", true),
            ("b/file", false),
            ("a/.GIT/config", true),
            ("a/new/.Git", true),
            ("f/.hg/hgrc", true),
            ("f/x/.JJ/repo", true),
            ("e/objects/x", false),
            ("e/.gitignore", false),
        ] {
            assert_eq!(is_in_repository(&at.join(path)), is_in, "{path}");
        }
    }
}
