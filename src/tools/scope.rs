//! Where file tools may act: below the roots of the workspace, judged by the opened file.
//!
//! A path is first made plain by its text alone ([`name`] is that, as facts record it), then
//! opened without effect. What was opened, not what was written, must lie below a root: so
//! symbolic links, `..`, absolute paths and swaps lead nowhere else. From there on everything
//! goes through the opened parent directory and does not follow a link in the last component.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::exchange::Status;
use crate::id::{CallId, Digest};
use crate::tools::workspace::Workspace;
use crate::tools::{Outcome, clip};
use crate::words::grouped;

/// Opens a thing to look at it: on Linux without any effect on it.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Where and how one call acts.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The call.
    pub(crate) call: CallId,
    /// The workspace.
    pub(crate) workspace: Arc<Workspace>,
    /// The working directory, if one was kept.
    pub(crate) cwd: Option<String>,
    /// The digest of the file as the model last saw it.
    pub(crate) known: Option<Digest>,
    /// The longest content, in characters.
    pub(crate) chars: u64,
}

/// A place for a file: an opened directory below a root, and a name in it.
#[derive(Debug)]
pub(crate) struct Spot {
    /// The directory.
    pub(crate) parent: OwnedFd,
    /// The name.
    pub(crate) file: OsString,
}

/// What to do about directories that are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Refuse the path.
    Refuse,
    /// Make them.
    Create,
}

/// What is said of every path that is [`Refusal::Outside`].
pub(crate) const OUTSIDE: &str = "file tools act only below it";

/// Why a file tool does not act on a path.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// Policy forbids it.
    #[error("outside the workspace {root}; {OUTSIDE}")]
    Outside { root: String },
    #[error(
        "protected: it would run programs outside the sandbox; the user allows it with `write` below \
         `sandbox` in config.yaml"
    )]
    Protected,
    #[error("there is no such file")]
    Missing,
    #[error("not a usable path")]
    NoPath,
    #[error("a part of the path is no directory")]
    NotBelowFile,
    #[error("a directory, not a file")]
    Directory,
    #[error("{0}, not a file")]
    NoFile(&'static str),
    #[error("read-only; if it is to change, make it writable first: chmod u+w in Bash")]
    ReadOnly,
    #[error("larger than {} bytes, which is more than file tools take; use Bash", grouped(*.0))]
    TooLarge(u64),
    #[error("it was moved while it was being opened; try again")]
    Moved,
    #[error("{}", .0.kind())]
    System(#[source] std::io::Error),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            Errno::NOTDIR => Self::NotBelowFile,
            errno => Self::System(errno.into()),
        }
    }
}

impl Refusal {
    /// The refusal as the answer to a call that named `path`.
    pub(crate) fn outcome(&self, path: &str) -> Outcome {
        let status = match self {
            Self::Outside { .. } | Self::Protected => Status::Denied,
            Self::Missing
            | Self::NoPath
            | Self::NotBelowFile
            | Self::Directory
            | Self::NoFile(_)
            | Self::ReadOnly
            | Self::TooLarge(_)
            | Self::Moved
            | Self::System(_) => Status::Error,
        };
        Outcome::new(status, format!("{}: {self}", quoted(path)))
    }
}

/// The path as text of one line, between backquotes.
pub(crate) fn quoted(path: &str) -> String {
    format!("`{}`", one_line(clip::first(path, 300)))
}

/// The text on one line: what cannot be seen, and backslashes, are escaped.
pub(crate) fn one_line(text: &str) -> String {
    let text: String = text.escape_debug().collect();
    text.replace("\\'", "'").replace("\\\"", "\"")
}

/// The name of a file as facts record it: relative to `root` if it lies below it, else absolute.
///
/// It is found by text alone. A relative `path` counts from `cwd`, if that is below `root`.
pub fn name(root: &Path, cwd: Option<&str>, path: &str) -> String {
    let full = plain(&directory(root, cwd), path);
    match full.strip_prefix(root) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => rest.to_string_lossy().into_owned(),
        Err(_) => full.to_string_lossy().into_owned(),
    }
}

/// The directory that relative paths count from.
fn directory(root: &Path, cwd: Option<&str>) -> PathBuf {
    match cwd.map(Path::new) {
        Some(cwd) if cwd.starts_with(root) => cwd.to_owned(),
        Some(_) | None => root.to_owned(),
    }
}

/// The absolute path without `.` and `..`.
fn plain(directory: &Path, path: &str) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in directory.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                plain.push(component);
            }
        }
    }
    plain
}

impl Site {
    /// The name of a path as facts record it.
    pub(crate) fn name(&self, path: &str) -> String {
        name(self.workspace.root(), self.cwd.as_deref(), path)
    }

    /// The working directory, if it is still there and below the root; else the root.
    pub(crate) fn directory(&self) -> PathBuf {
        let root = self.workspace.root();
        let directory = directory(root, self.cwd.as_deref());
        match directory.canonicalize() {
            Ok(real) if real.starts_with(root) && real.is_dir() => real,
            Ok(_) | Err(_) => root.to_owned(),
        }
    }

    /// Opens the place that a path names. It lies below a root; whether there is a file at it is
    /// another question.
    pub(crate) fn find(&self, path: &str, missing: Missing) -> Result<Spot, Refusal> {
        self.search(path, missing, false)
    }

    /// The same for a file that is to be written: it is none of those that are protected.
    pub(crate) fn find_to_write(&self, path: &str, missing: Missing) -> Result<Spot, Refusal> {
        self.search(path, missing, true)
    }

    fn search(&self, path: &str, missing: Missing, writes: bool) -> Result<Spot, Refusal> {
        if path.is_empty() || path.contains('\0') {
            return Err(Refusal::NoPath);
        }
        let root = self.workspace.root();
        let wanted = plain(&directory(root, self.cwd.as_deref()), path);
        let (opened, rest) = deepest(&wanted)?;
        let real = real_path(opened.as_fd())?;
        if !self.workspace.holds(&real) {
            return Err(Refusal::Outside {
                root: quoted(&root.to_string_lossy()),
            });
        }
        let whole = rest.iter().fold(real.clone(), |path, part| path.join(part));
        if writes && self.workspace.protects(&whole) {
            return Err(Refusal::Protected);
        }
        let Some((file, directories)) = rest.split_last() else {
            return beside(&real);
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
        if kind != FileType::Directory {
            return Err(Refusal::NotBelowFile);
        }
        match (missing, directories) {
            (Missing::Refuse, _) => Err(Refusal::Missing),
            (Missing::Create, directories) => Ok(Spot {
                parent: make(opened, directories)?,
                file: file.clone(),
            }),
        }
    }
}

/// Opens the path, or the deepest directory on the way that is there; and what is missing below.
fn deepest(path: &Path) -> Result<(OwnedFd, Vec<OsString>), Refusal> {
    let mut rest = Vec::new();
    for there in path.ancestors() {
        match rustix::fs::open(there, LOOK, Mode::empty()) {
            Ok(opened) => {
                rest.reverse();
                return Ok((opened, rest));
            }
            Err(Errno::NOENT | Errno::NOTDIR) => {
                rest.extend(there.file_name().map(OsStr::to_owned));
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Refusal::Missing)
}

/// The spot of a thing that is there, named as the operating system names it.
fn beside(real: &Path) -> Result<Spot, Refusal> {
    let (Some(parent), Some(file)) = (real.parent(), real.file_name()) else {
        return Err(Refusal::NoPath);
    };
    let opened = rustix::fs::open(parent, LOOK | OFlags::DIRECTORY, Mode::empty())?;
    if real_path(opened.as_fd())? != parent {
        return Err(Refusal::Moved);
    }
    Ok(Spot {
        parent: opened,
        file: file.to_owned(),
    })
}

/// Makes these directories one in the other, and opens the last. Links are not followed.
fn make(mut directory: OwnedFd, names: &[OsString]) -> Result<OwnedFd, Refusal> {
    for name in names {
        match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = LOOK | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        directory = rustix::fs::openat(&directory, name, flags, Mode::empty())?;
    }
    Ok(directory)
}

/// The path of an opened thing, as the operating system knows it.
#[cfg(target_os = "linux")]
pub(crate) fn real_path(opened: std::os::fd::BorrowedFd<'_>) -> Result<PathBuf, Refusal> {
    use std::os::fd::AsRawFd as _;
    let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
    std::fs::read_link(link).map_err(Refusal::System)
}

/// The path of an opened thing, as the operating system knows it.
#[cfg(target_vendor = "apple")]
pub(crate) fn real_path(opened: std::os::fd::BorrowedFd<'_>) -> Result<PathBuf, Refusal> {
    use std::os::unix::ffi::OsStringExt as _;
    let path = rustix::fs::getpath(opened)?;
    Ok(PathBuf::from(OsString::from_vec(path.into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_turned_into_a_link_is_not_entered() {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("root"), place.path().join("outside"));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        let open = || rustix::fs::open(&root, LOOK, Mode::empty()).unwrap();
        assert!(make(open(), &["link".into(), "new".into()]).is_err());
        assert!(!outside.join("new").exists());
        assert!(make(open(), &["real".into(), "new".into()]).is_ok());
        assert!(root.join("real/new").is_dir());
    }
}
