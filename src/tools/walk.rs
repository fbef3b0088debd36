//! A directory of the workspace and everything below it, for tools that search.
//!
//! Each directory is opened in the opened one above it and no link is followed, so a walk cannot
//! leave the directory it began in, and has an end. Names come sorted, directory by directory.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use tokio_util::sync::CancellationToken;

use crate::exchange::Status;
use crate::tools::ignored::Ignored;
use crate::tools::scope::{Missing, Refusal, Site, Spot, one_line, quoted, real_path};
use crate::tools::{Outcome, clip};
use crate::words::grouped;

/// How long a search may take.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);

/// How many files and directories a search looks at.
const MOST: u64 = 1_000_000;

/// How many directories deep a search goes.
const DEEPEST: usize = 64;

/// Tells a search when to end early.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    cancel: CancellationToken,
    late: CancellationToken,
}

impl Watch {
    /// Ends the search as cancelled by the one, as too long by the other.
    pub(crate) fn new(cancel: CancellationToken, late: CancellationToken) -> Self {
        Self { cancel, late }
    }

    /// Whether it is to end, and how.
    pub(crate) fn ended(&self) -> Option<Status> {
        if self.cancel.is_cancelled() {
            Some(Status::Cancelled)
        } else if self.late.is_cancelled() {
            Some(Status::Timeout)
        } else {
            None
        }
    }
}

/// What a path names.
#[derive(Debug)]
pub(crate) enum Place {
    /// A directory to walk.
    Directory(Tree),
    /// Something else, and its path as the operating system knows it.
    Other(Spot, PathBuf),
}

/// An opened directory.
#[derive(Debug)]
pub(crate) struct Tree {
    opened: OwnedFd,
    real: PathBuf,
}

/// A thing that a walk comes to.
#[derive(Debug)]
pub(crate) struct Thing<'a> {
    /// The opened directory that holds it.
    pub(crate) parent: BorrowedFd<'a>,
    /// Its name.
    pub(crate) name: &'a OsStr,
    /// Its path.
    pub(crate) path: &'a Path,
    /// Its path below the directory of the walk.
    pub(crate) below: &'a Path,
    /// What it is.
    pub(crate) kind: FileType,
}

/// What a walk could not look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unseen {
    /// Directories that could not be read.
    pub(crate) unreadable: u64,
    /// Directories that lie too deep.
    deep: u64,
    /// There were more than are looked at.
    full: bool,
    /// It was ended early.
    ended: Option<Status>,
}

/// Finds what `path` names, below a root.
pub(crate) fn find(site: &Site, path: &str) -> Result<Place, Refusal> {
    let spot = site.find(path, Missing::Refuse)?;
    match directory(spot.parent.as_fd(), &spot.file) {
        Ok(opened) => {
            let real = real_path(opened.as_fd())?;
            if !site.workspace.holds(&real) {
                return Err(Refusal::Moved);
            }
            Ok(Place::Directory(Tree { opened, real }))
        }
        Err(Refusal::NotBelowFile) => {
            let real = real_path(spot.parent.as_fd())?.join(&spot.file);
            Ok(Place::Other(spot, real))
        }
        Err(refusal) => Err(refusal),
    }
}

/// The answer to a path that cannot be searched.
pub(crate) fn refused(refusal: &Refusal, path: &str) -> Outcome {
    if matches!(refusal, Refusal::Missing) {
        let path = quoted(path);
        return Outcome::error(format!("{path}: there is no such file or directory"));
    }
    refusal.outcome(path)
}

/// A path as the model may give it to a file tool: relative to the working directory if it lies
/// below it, else absolute.
pub(crate) fn shown(directory: &Path, path: &Path) -> String {
    let path = path.strip_prefix(directory).unwrap_or(path);
    one_line(&clip::text(path.as_os_str().as_bytes()))
}

impl Tree {
    /// Comes to everything below the directory but what `.gitignore` files name, and `.git`.
    pub(crate) fn walk(
        self,
        site: &Site,
        watch: &Watch,
        visit: &mut dyn FnMut(Thing<'_>),
    ) -> Unseen {
        let ignored = Ignored::above(&site.workspace, &self.real);
        self.walk_but(ignored, watch, visit)
    }

    /// The same but what these files name, and those in the directory.
    pub(crate) fn walk_but(
        self,
        ignored: Ignored,
        watch: &Watch,
        visit: &mut dyn FnMut(Thing<'_>),
    ) -> Unseen {
        let mut walk = Walk {
            ignored,
            base: &self.real,
            watch,
            visit,
            looked_at: 0,
            depth: 0,
            unseen: Unseen::default(),
        };
        walk.enter(&self.opened, &self.real);
        walk.unseen.ended = watch.ended();
        walk.unseen
    }
}

/// A walk on its way.
struct Walk<'a> {
    base: &'a Path,
    watch: &'a Watch,
    visit: &'a mut dyn FnMut(Thing<'_>),
    ignored: Ignored,
    looked_at: u64,
    depth: usize,
    unseen: Unseen,
}

impl Walk<'_> {
    /// Comes to everything in a directory and below.
    fn enter(&mut self, opened: &OwnedFd, path: &Path) {
        let Ok(names) = self.names(opened) else {
            self.unseen.unreadable += 1;
            return;
        };
        self.ignored.enter(opened.as_fd(), path);
        self.depth += 1;
        for (name, kind) in names {
            if self.watch.ended().is_some() {
                break;
            }
            let (path, is_directory) = (path.join(&name), kind == FileType::Directory);
            if name == ".git" || self.ignored.names(&path, is_directory) {
                continue;
            }
            (self.visit)(Thing {
                parent: opened.as_fd(),
                name: &name,
                path: &path,
                below: path.strip_prefix(self.base).unwrap_or(&path),
                kind,
            });
            if is_directory && self.depth == DEEPEST {
                self.unseen.deep += 1;
            } else if is_directory {
                match directory(opened.as_fd(), &name) {
                    Ok(opened) => self.enter(&opened, &path),
                    Err(_) => self.unseen.unreadable += 1,
                }
            }
        }
        self.depth -= 1;
        self.ignored.leave();
    }

    /// What is in a directory, sorted by name.
    fn names(&mut self, opened: &OwnedFd) -> Result<Vec<(OsString, FileType)>, Refusal> {
        let mut names = Vec::new();
        for entry in Dir::read_from(opened)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.looked_at == MOST || self.watch.ended().is_some() {
                self.unseen.full |= self.looked_at == MOST;
                break;
            }
            self.looked_at += 1;
            let mut kind = entry.file_type();
            if kind == FileType::Unknown
                && let Ok(stat) = rustix::fs::statat(opened, name, AtFlags::SYMLINK_NOFOLLOW)
            {
                kind = FileType::from_raw_mode(stat.st_mode);
            }
            names.push((name.to_owned(), kind));
        }
        names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(names)
    }
}

/// Opens a directory to read it. No link is followed.
fn directory(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Refusal> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

impl Unseen {
    /// The same for a search of one file.
    pub(crate) fn of_file(watch: &Watch) -> Self {
        Self {
            ended: watch.ended(),
            ..Self::default()
        }
    }

    /// How the call ended.
    pub(crate) fn status(&self) -> Status {
        self.ended.unwrap_or(Status::Ok)
    }

    /// Says what was not looked at, a line each.
    pub(crate) fn tell(&self, text: &mut String) {
        if self.unreadable > 0 {
            let what = counted(self.unreadable, "file or directory", "files or directories");
            writeln!(text, "[{what} could not be read]").ok();
        }
        if self.deep > 0 {
            let what = counted(self.deep, "directory", "directories");
            writeln!(
                text,
                "[{what} more than {DEEPEST} levels down left out; give one as path]"
            )
            .ok();
        }
        if self.full {
            let most = grouped(MOST);
            writeln!(
                text,
                "[ended after {most} files and directories; give one below as path]"
            )
            .ok();
        }
        match self.ended {
            Some(Status::Cancelled) => {
                text.push_str("[cancelled before everything was searched]\n");
            }
            Some(_) => {
                let seconds = LONGEST.as_secs();
                writeln!(
                    text,
                    "[ended after {seconds} s before everything was searched; give a directory \
                     below as path]"
                )
                .ok();
            }
            None => {}
        }
    }
}

/// A number of things.
pub(crate) fn counted(number: u64, one: &str, more: &str) -> String {
    let what = if number == 1 { one } else { more };
    format!("{} {what}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_so_that_they_lead_back() {
        for (directory, path, expected) in [
            ("/w", "/w/src/a", "src/a"),
            ("/w/src", "/w/src/a", "a"),
            ("/w/src", "/w/lib/a", "/w/lib/a"),
            ("/w", "/w/a\nb", r"a\nb"),
            ("/w", "/w/it's \"é\"", "it's \"é\""),
            ("/w", "/w/\u{1b}[31m\u{202e}x", r"\u{1b}[31m\u{202e}x"),
        ] {
            assert_eq!(shown(Path::new(directory), Path::new(path)), expected);
        }
        let bytes = Path::new(OsStr::from_bytes(b"/w/caf\xe9"));
        assert_eq!(shown(Path::new("/w"), bytes), "caf\u{fffd}");
    }
}
