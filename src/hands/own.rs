//! The directory of a confined process's own: made for it, removed with all it holds.
//!
//! Who made one holds a lock on it. What a run that was killed left behind has none, and is removed
//! by the next.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sandbox;

/// How such a directory is called; its numbers follow.
const NAME: &str = "undertext-hands-";

/// How many entries of the directory above are looked at for what was left behind.
const ENTRIES: usize = 10_000;

/// A directory that is removed with this.
#[derive(Debug)]
pub(super) struct OwnDirectory {
    path: PathBuf,
    /// Open and locked for as long as the directory is used.
    _lock: File,
}

impl OwnDirectory {
    /// Makes one below another directory, and removes what was left behind there.
    pub(super) fn make(parent: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = parent.canonicalize()?;
        remove_abandoned(&parent);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{NAME}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                // Somebody's of the same number, in other namespaces.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // Until it is locked, another run may take it for abandoned.
            let Some(lock) = locked(&path) else { continue };
            let own = Self { path, _lock: lock };
            for name in ["root", "tmp", "home"] {
                fs::create_dir(own.path.join(name))?;
            }
            return Ok(own);
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// The directory, opened and locked; `None` if another has it, or has removed it.
fn locked(path: &Path) -> Option<File> {
    let directory = File::open(path).ok()?;
    directory.try_lock().ok()?;
    let is_there = directory.metadata().is_ok_and(|data| data.nlink() > 0);
    is_there.then_some(directory)
}

/// Removes what runs left behind that could not do so themselves.
fn remove_abandoned(parent: &Path) {
    let user = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.take(ENTRIES) {
        let is_one = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(NAME));
        let is_ours = || {
            let data = fs::symlink_metadata(entry.path());
            data.is_ok_and(|data| data.is_dir() && data.uid() == user)
        };
        if is_one
            && is_ours()
            && let Some(_lock) = locked(&entry.path())
        {
            remove(&entry.path());
        }
    }
}

/// Removes a directory with all it holds, also what tools made read-only, as Go's cache is.
fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_err() {
        open_up(path);
        fs::remove_dir_all(path).ok();
    }
}

/// Lets the owner change every directory from here down.
///
/// Tools may have laid a link between two looks, so each directory is opened part by part and changed
/// by what was opened: none that lies elsewhere.
fn open_up(path: &Path) {
    let mut rest = vec![path.to_owned()];
    while let Some(path) = rest.pop() {
        let Ok(opened) = sandbox::open(&path) else {
            continue;
        };
        let held = sandbox::path_of(&opened);
        if !fs::metadata(&held).is_ok_and(|data| data.is_dir()) {
            continue;
        }
        fs::set_permissions(&held, Permissions::from_mode(0o700)).ok();
        let entries = fs::read_dir(&held).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        rest.extend(below.map(|entry| path.join(entry.file_name())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_behind_is_removed_and_what_is_used_stays() {
        let place = tempfile::tempdir().unwrap();
        let there = || {
            let entries = fs::read_dir(place.path()).unwrap().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        // As a run that was killed leaves it, and others that are not ours to remove.
        let left = place.path().join(format!("{NAME}1-0/tmp/cache"));
        fs::create_dir_all(&left).unwrap();
        fs::set_permissions(&left, Permissions::from_mode(0o000)).unwrap();
        fs::create_dir(place.path().join("mine")).unwrap();
        std::os::unix::fs::symlink("mine", place.path().join(format!("{NAME}2-0"))).unwrap();

        let first = OwnDirectory::make(place.path()).unwrap();
        let second = OwnDirectory::make(place.path()).unwrap();
        assert!(first.path().join("tmp").is_dir() && second.path().join("tmp").is_dir());
        assert_eq!(there().len(), 4, "{:?}", there());
        assert!(!left.exists());
        drop((first, second));
        assert_eq!(there(), ["mine", &format!("{NAME}2-0")]);
    }

    #[test]
    fn every_directory_can_be_opened_up() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::set_permissions(&deep, Permissions::from_mode(0o500)).unwrap();
        fs::set_permissions(place.path().join("a"), Permissions::from_mode(0o000)).unwrap();
        let top = place.path().canonicalize().unwrap().join("a");
        open_up(&top);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&deep), 0o700);

        // As it is when a link takes a directory's place after it was seen.
        let mine = place.path().join("mine");
        fs::create_dir_all(mine.join("sub")).unwrap();
        for path in [&mine, &mine.join("sub")] {
            fs::set_permissions(path, Permissions::from_mode(0o750)).unwrap();
        }
        std::os::unix::fs::symlink(&mine, top.join("link")).unwrap();
        for path in [top.join("link"), top.join("link/sub"), top.join("none")] {
            open_up(&path);
        }
        assert_eq!((mode(&mine), mode(&mine.join("sub"))), (0o750, 0o750));
    }
}
