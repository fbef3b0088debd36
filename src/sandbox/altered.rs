//! What tools could alter although it lies outside of what they may write.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::sandbox::{Bounds, paths};

impl Bounds {
    /// Where tools, now or in an earlier run, may put something else in the place of what a path leads to.
    pub fn replaceable(&self, path: &Path) -> Option<PathBuf> {
        paths::replaceable(path, &self.distrusted()).map(Path::to_owned)
    }

    /// What tools write that a text names anywhere: in an option, in a list, in a command.
    pub fn written_in(&self, text: &str) -> Option<PathBuf> {
        let names = |root: &PathBuf| {
            let root = root.to_string_lossy();
            // What only begins like it is another one.
            let goes_on =
                |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || "._-".contains(c));
            let mut places = text.match_indices(&*root);
            places.any(|(at, _)| !goes_on(&text[at + root.len()..]))
        };
        self.distrusted().into_iter().find(names)
    }
}

/// Whether a file that tools could write, were it in their reach, has a name that is not beside it: by
/// that one it may be. Where such a name is nobody knows without a look at the whole file system, so any
/// counts; those that a system gives its own programs stand in one directory.
pub fn has_names_elsewhere(path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else {
        return false;
    };
    let Ok(found) = fs::metadata(&real) else {
        return false;
    };
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    let is_open = found.mode() & 0o022 != 0;
    if !found.is_file() || found.nlink() < 2 || !(is_ours || is_open) {
        return false;
    }
    let beside = real.parent().and_then(|parent| fs::read_dir(parent).ok());
    let beside = beside.into_iter().flatten().flatten();
    let same = beside
        .filter_map(|entry| fs::symlink_metadata(entry.path()).ok())
        .filter(|other| (other.dev(), other.ino()) == (found.dev(), found.ino()));
    u64::try_from(same.count()).is_ok_and(|count| count < found.nlink())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_a_name_elsewhere_is_known() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        for directory in ["bin", "w"] {
            fs::create_dir(at.join(directory)).unwrap();
        }
        for name in ["bin/plain", "bin/both", "bin/elsewhere"] {
            fs::write(at.join(name), "").unwrap();
        }
        fs::hard_link(at.join("bin/both"), at.join("bin/both-2")).unwrap();
        fs::hard_link(at.join("bin/elsewhere"), at.join("w/it")).unwrap();
        std::os::unix::fs::symlink("elsewhere", at.join("bin/link")).unwrap();
        for (name, expected) in [
            ("bin/plain", false),
            ("bin/both", false),
            ("bin/none", false),
            ("bin", false),
            ("bin/elsewhere", true),
            ("bin/link", true),
        ] {
            assert_eq!(has_names_elsewhere(&at.join(name)), expected, "{name}");
        }
    }
}
