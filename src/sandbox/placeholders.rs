//! What is made only so that it can be protected: nothing can be laid over what is not there.
//!
//! Each reads as if it were not there, to every program that knows it. Runs may share one: whoever
//! uses it holds a lock on it, and the last one removes it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::sandbox::paths;
use crate::sandbox::protected::Placeholder;

/// How often, and after which pause, one is tried to remove that a process which is ending still
/// uses.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An empty directory.
    Directory,
    /// A file that holds this.
    File(&'static str),
}

impl Kind {
    /// What says that a repository is where it is.
    pub(super) const HERE: Self = Self::File(".\n");
}

/// One that is open, and locked for as long as it is used.
///
/// The lock is given back by name: a process that is being started has a copy of all that is open here
/// until its program begins, and what is only closed stays locked that long.
#[derive(Debug)]
pub(super) struct Used(OwnedFd);

impl Used {
    fn lock(&self, how: FlockOperation) -> Result<(), Errno> {
        rustix::fs::flock(&self.0, how)
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        // Where that fails, it ends with the last copy.
        self.lock(FlockOperation::Unlock).ok();
    }
}

/// Makes one; `None` if something is there already.
pub(super) fn make(path: &Path, kind: Kind) -> io::Result<Option<Placeholder>> {
    let (directory, name) = beside(path)?;
    let made = match kind {
        Kind::Directory => rustix::fs::mkdirat(&directory, &name, Mode::from_raw_mode(0o755)),
        Kind::File(text) => match paths::create(&directory, &name) {
            Ok(file) => {
                File::from(file).write_all(text.as_bytes())?;
                Ok(())
            }
            Err(errno) => Err(errno),
        },
    };
    match made {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    }
    let used = Used(read(&directory, &name)?);
    used.lock(FlockOperation::NonBlockingLockShared)?;
    Ok(Some(Placeholder {
        path: path.to_owned(),
        _used: used,
    }))
}

/// Uses one that another run uses too, or that a killed one left; `None` if it is something else.
pub(super) fn adopt(path: &Path, kind: Kind) -> Option<Placeholder> {
    let (directory, name) = beside(path).ok()?;
    let used = Used(read(&directory, &name).ok()?);
    if !is_one(&used.0, kind)? {
        return None;
    }
    // A directory for hooks that nobody uses is as likely the user's.
    let in_use = || used.lock(FlockOperation::NonBlockingLockExclusive).is_err();
    if path.ends_with("hooks") && !in_use() {
        return None;
    }
    used.lock(FlockOperation::NonBlockingLockShared).ok()?;
    Some(Placeholder {
        path: path.to_owned(),
        _used: used,
    })
}

/// Removes those that nobody uses any more, as far as they are as they were made.
pub(crate) fn remove_placeholders(placeholders: &[PathBuf]) {
    for path in placeholders {
        for _ in 0..TRIES {
            match remove(path) {
                Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                Ok(()) | Err(_) => break,
            }
        }
    }
}

fn remove(path: &Path) -> Result<(), Errno> {
    let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let (directory, name) = beside(path).map_err(errno)?;
    let opened = Used(read(&directory, &name)?);
    opened.lock(FlockOperation::NonBlockingLockExclusive)?;
    if is_one(&opened.0, Kind::Directory) == Some(true) {
        rustix::fs::unlinkat(&directory, &name, AtFlags::REMOVEDIR)
    } else if [Kind::File(""), Kind::HERE]
        .iter()
        .any(|kind| is_one(&opened.0, *kind) == Some(true))
    {
        rustix::fs::unlinkat(&directory, &name, AtFlags::empty())
    } else {
        Ok(())
    }
}

/// Whether this is as such a one is made.
fn is_one(opened: &OwnedFd, kind: Kind) -> Option<bool> {
    let of = FileType::from_raw_mode(rustix::fs::fstat(opened).ok()?.st_mode);
    match kind {
        Kind::Directory if of == FileType::Directory => {
            let mut entries = std::fs::read_dir(paths::of(opened)).ok()?;
            Some(entries.next().is_none())
        }
        Kind::File(text) if of == FileType::RegularFile => {
            let mut held = String::new();
            let again = File::open(paths::of(opened)).ok()?;
            let longest = u64::try_from(text.len()).unwrap_or(0) + 1;
            let read = again.take(longest).read_to_string(&mut held);
            Some(read.is_ok() && held == text)
        }
        Kind::Directory | Kind::File(_) => Some(false),
    }
}

/// The directory in which something is, and its name there.
fn beside(path: &Path) -> io::Result<(OwnedFd, OsString)> {
    let nameless = || io::Error::from(io::ErrorKind::InvalidInput);
    let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(nameless)?;
    Ok((paths::open(parent)?, name.to_owned()))
}

/// Opens it to read, without waiting for anything and without following it.
fn read(directory: &OwnedFd, name: &OsString) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    #[expect(
        clippy::used_underscore_binding,
        reason = "what keeps a place is held and not used, but for a copy here"
    )]
    fn the_last_who_uses_one_removes_it() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        for (name, kind) in [
            (".git", Kind::Directory),
            ("hooks", Kind::Directory),
            ("config.worktree", Kind::File("")),
            ("commondir", Kind::HERE),
        ] {
            let path = at.join(name);
            let first = make(&path, kind).unwrap().unwrap();
            assert!(make(&path, kind).unwrap().is_none());
            let second = adopt(&path, kind).unwrap();
            drop(first);
            remove(&path).unwrap_err();
            assert!(path.exists(), "{name}");
            // As a process has one that is being started by another thread.
            let _copy = second._used.0.try_clone().unwrap();
            drop(second);
            assert_eq!(adopt(&path, kind).is_some(), name != "hooks");
            remove_placeholders(std::slice::from_ref(&path));
            assert!(!path.exists(), "{name}");
        }
        // What is somebody's stays, and links are not followed.
        fs::write(at.join("config.worktree"), "[core]\n").unwrap();
        fs::create_dir_all(at.join("elsewhere/hooks")).unwrap();
        std::os::unix::fs::symlink(at.join("elsewhere"), at.join("x")).unwrap();
        assert!(adopt(&at.join("config.worktree"), Kind::File("")).is_none());
        remove_placeholders(&[at.join("config.worktree"), at.join("x/hooks"), at.join("x")]);
        assert!(at.join("config.worktree").exists() && at.join("elsewhere/hooks").exists());
    }
}
