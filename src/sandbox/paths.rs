//! Paths that lead nowhere else: each is opened part by part, and no link is followed on the way.
//!
//! What tools may write is not to be trusted: between two looks at a path a link may lie on it. So
//! whatever is made, shown or removed there is held by a descriptor that was had without one.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// How many links one path may go through.
const LINKS: usize = 40;

/// The root of what this process sees.
const ROOT: &str = "/";

/// Opens what is at an absolute path to point at it, be it a link.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    let root = rustix::fs::open(ROOT, POINTING, Mode::empty())?;
    open_below(root, path)
}

/// The same below another root.
pub(super) fn open_below(root: OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    parts(path)?
        .into_iter()
        .try_fold(root, |at, part| Ok(openat(&at, &part)?))
}

/// The same; the directories on the way are made if they are not there, and a directory or an
/// empty file at the end.
pub(super) fn make_below(root: OwnedFd, path: &Path, directory: bool) -> io::Result<OwnedFd> {
    let parts = parts(path)?;
    let last = parts.len().saturating_sub(1);
    let mut at = root;
    for (number, part) in parts.iter().enumerate() {
        at = match openat(&at, part) {
            Err(Errno::NOENT) => {
                if directory || number < last {
                    rustix::fs::mkdirat(&at, part, Mode::from_raw_mode(0o755))?;
                } else {
                    create(&at, part)?;
                }
                openat(&at, part)?
            }
            opened => opened?,
        };
    }
    Ok(at)
}

/// Makes an empty file that is not there yet.
pub(super) fn create(directory: impl AsFd, name: &OsString) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY;
    let mode = Mode::from_raw_mode(0o644);
    rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, mode)
}

/// A path by which the system finds what a descriptor points at, and nothing else.
pub(crate) fn of(opened: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()))
}

/// Whether anything is at a path, be it a link that leads nowhere.
pub(crate) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Where a path leads, and the links that it goes through, each with what it says. `Err` is a link
/// below one of these directories: whoever may write there may have laid it.
pub(crate) fn follow(path: &Path, distrusted: &[PathBuf]) -> Result<Led, PathBuf> {
    let mut led = Led {
        real: PathBuf::from(ROOT),
        links: Vec::new(),
    };
    let mut left: Vec<OsString> = names(path);
    while let Some(name) = left.pop() {
        if name == ".." {
            led.real.pop();
            continue;
        }
        led.real.push(&name);
        // Whatever is no link, or is not there, is taken as it is.
        let Ok(target) = fs::read_link(&led.real) else {
            continue;
        };
        let is_below = |above: &PathBuf| led.real != *above && led.real.starts_with(above);
        if distrusted.iter().any(is_below) || led.links.len() == LINKS {
            return Err(led.real);
        }
        left.extend(names(&target));
        led.links.push((led.real.clone(), target.clone()));
        if target.is_absolute() {
            led.real = PathBuf::from(ROOT);
        } else {
            led.real.pop();
        }
    }
    Ok(led)
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Led {
    /// The path without links.
    pub(crate) real: PathBuf,
    /// The links it goes through.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
}

/// Pointing at something gives no right to it.
const POINTING: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn openat(at: &OwnedFd, name: &OsString) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(at, name, POINTING, Mode::empty())
}

/// The names of a plain path below the root.
fn parts(path: &Path) -> io::Result<Vec<OsString>> {
    let named = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(Ok(name.to_owned())),
        Component::RootDir | Component::CurDir => None,
        Component::ParentDir | Component::Prefix(_) => {
            Some(Err(io::Error::from(io::ErrorKind::InvalidInput)))
        }
    });
    named.collect()
}

/// The names of a path, the first one last.
fn names(path: &Path) -> Vec<OsString> {
    let named = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_but_those_that_others_may_have_laid() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("w/sub")).unwrap();
        fs::create_dir_all(at.join("keys")).unwrap();
        symlink("w", at.join("link")).unwrap();
        symlink("../../keys", at.join("w/sub/out")).unwrap();
        symlink("loop", at.join("loop")).unwrap();
        for (path, led) in [
            ("w/sub", Ok("w/sub")),
            ("link/sub", Ok("w/sub")),
            ("link/../keys", Ok("keys")),
            ("link/none/at/all", Ok("w/none/at/all")),
            ("link/sub/out/id", Err("w/sub/out")),
            ("loop", Err("loop")),
        ] {
            let found = follow(&at.join(path), &[at.join("w")]).map(|led| led.real);
            assert_eq!(
                found,
                led.map(|led| at.join(led)).map_err(|link| at.join(link)),
                "{path}"
            );
            let opened = open(&at.join(path)).is_ok();
            assert_eq!(opened, path == "w/sub" || path == "loop", "{path}");
        }
        assert!(open(&at.join("w/../keys")).is_err());
    }
}
