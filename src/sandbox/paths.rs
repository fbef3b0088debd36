//! Paths that lead nowhere else: no link is followed on the way. The kernel sees to that at once where
//! it can; else each is opened part by part.
//!
//! What tools may write is not to be trusted: between two looks at a path a link may lie on it. So
//! whatever is made, shown or removed there is held by a descriptor that was had without one.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// How many links one path may go through.
const LINKS: usize = 40;

/// The root of what this process sees.
const ROOT: &str = "/";

/// Opens what is at an absolute path to point at it, be it a link.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    let parts = parts(path)?;
    match at_once(rustix::fs::CWD, &whole(&parts)) {
        Some(opened) => Ok(opened?),
        None => part_by_part(rustix::fs::open(ROOT, POINTING, Mode::empty())?, &parts),
    }
}

/// The same below another root.
pub(super) fn open_below(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let parts = parts(path)?;
    match at_once(root, &plain(&parts)) {
        Some(opened) => Ok(opened?),
        None => part_by_part(root.try_clone()?, &parts),
    }
}

/// The same; the directories on the way are made if they are not there, and a directory or an
/// empty file at the end.
pub(super) fn make_below(root: &OwnedFd, path: &Path, directory: bool) -> io::Result<OwnedFd> {
    match open_below(root, path) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) => {}
        opened => return opened,
    }
    let mut parts = parts(path)?;
    let Some(last) = parts.pop() else {
        return root.try_clone();
    };
    let parent = make_below(root, &plain(&parts), true)?;
    if directory {
        rustix::fs::mkdirat(&parent, &last, Mode::from_raw_mode(0o755))?;
    } else {
        create(&parent, &last)?;
    }
    Ok(openat(&parent, &last)?)
}

/// Opens a path on which the kernel itself follows no link; `None` where it cannot be told to.
fn at_once(at: impl AsFd, path: &Path) -> Option<Result<OwnedFd, Errno>> {
    match rustix::fs::openat2(at, path, POINTING, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Kernels before 5.6 do not know it, and some filters of system calls refuse it.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => None,
        // It tells a link from what is no directory, which the other way does not.
        Err(Errno::LOOP) => Some(Err(Errno::NOTDIR)),
        opened => Some(opened),
    }
}

fn part_by_part(root: OwnedFd, parts: &[OsString]) -> io::Result<OwnedFd> {
    let mut parts = parts.iter();
    parts.try_fold(root, |at, part| Ok(openat(&at, part)?))
}

/// The path of these names below the root.
fn whole(parts: &[OsString]) -> PathBuf {
    std::iter::once(ROOT.as_ref())
        .chain(parts.iter().map(OsString::as_os_str))
        .collect()
}

/// The path of these names below a directory; that itself without any.
fn plain(parts: &[OsString]) -> PathBuf {
    if parts.is_empty() {
        PathBuf::from(".")
    } else {
        parts.iter().collect()
    }
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
    if let Some(real) = without_links(path) {
        let links = Vec::new();
        return Ok(Led { real, links });
    }
    let is_below = |place: &Path| distrusted.iter().any(|above| is_below(place, above));
    walk(path, |place, is_link| is_link && is_below(place))
}

/// The one of these directories in which whoever may write there can lead a path elsewhere, or change what
/// it leads to.
pub(crate) fn replaceable<'a>(path: &Path, written: &'a [PathBuf]) -> Option<&'a Path> {
    let is_below = |place: &Path| written.iter().any(|above| is_below(place, above));
    let place = match walk(path, |place, _| is_below(place)) {
        Ok(led) => led.real,
        Err(place) => place,
    };
    let mut written = written.iter().map(PathBuf::as_path);
    written.find(|above| place.starts_with(above))
}

fn is_below(place: &Path, above: &Path) -> bool {
    place != above && place.starts_with(above)
}

/// Follows a path part by part. `Err` is a place on the way that is refused, told whether it is a link, or
/// one link too many.
fn walk(path: &Path, is_refused: impl Fn(&Path, bool) -> bool) -> Result<Led, PathBuf> {
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
        let target = fs::read_link(&led.real);
        let is_too_long = target.is_ok() && led.links.len() == LINKS;
        if is_refused(&led.real, target.is_ok()) || is_too_long {
            return Err(led.real);
        }
        // Whatever is no link, or is not there, is taken as it is.
        let Ok(target) = target else {
            continue;
        };
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

/// The path itself if there is no link on it, as far as it is there: most paths are such, and the
/// kernel knows at once. `None` where it is to be looked at part by part.
fn without_links(path: &Path) -> Option<PathBuf> {
    let real = whole(&parts(path).ok()?);
    // A link at the end is told as well.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let none = ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(rustix::fs::CWD, &real, flags, Mode::empty(), none) {
        // What is not there is taken as it is.
        Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => Some(real),
        Err(_) => None,
    }
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
            // Where the kernel cannot be told to follow none, the same is found part by part.
            if let Ok(parts) = parts(&at.join(path)) {
                let root = rustix::fs::open(ROOT, POINTING, Mode::empty()).unwrap();
                assert_eq!(part_by_part(root, &parts).is_ok(), opened, "{path}");
            }
        }
        assert!(open(&at.join("w/../keys")).is_err());
    }

    #[test]
    fn what_can_be_led_elsewhere_or_changed_is_known() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("w/sub")).unwrap();
        fs::create_dir_all(at.join("bin")).unwrap();
        symlink("w/sub/it", at.join("in")).unwrap();
        symlink("../bin/it", at.join("w/out")).unwrap();
        symlink("bin", at.join("link")).unwrap();
        symlink("loop", at.join("loop")).unwrap();
        for (path, expected) in [
            ("bin/it", false),
            ("link/it", false),
            ("w/../bin/it", false),
            ("loop", false),
            ("w", true),
            ("w/sub/it", true),
            ("in", true),
            ("w/out", true),
            ("w/sub/../../bin/it", true),
            ("w/none/at/all", true),
        ] {
            let written = [at.join("w")];
            let found = replaceable(&at.join(path), &written);
            assert_eq!(found, expected.then_some(written[0].as_path()), "{path}");
        }
    }
}
