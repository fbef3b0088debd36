//! What `.gitignore` files say, with or without a repository around them.
//!
//! Only those at or below a root of the workspace count. No other file has a say: not the
//! user's own settings of git, and no settings of a search program.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags};

use crate::tools::clip;
use crate::tools::file;
use crate::tools::scope::real_path;
use crate::tools::workspace::Workspace;

/// How much of one file is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// What the files from a root down to one directory say.
#[derive(Debug)]
pub(crate) struct Ignored {
    /// One for each directory, outermost first.
    levels: Vec<Gitignore>,
}

impl Ignored {
    /// What the directories above this one say, from the outermost that lies at or below a root.
    pub(crate) fn above(workspace: &Workspace, directory: &Path) -> Self {
        let mut above: Vec<&Path> = directory
            .ancestors()
            .skip(1)
            .take_while(|above| workspace.holds(above))
            .collect();
        above.reverse();
        let levels = above.into_iter().map(|above| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::open(above, flags, Mode::empty()) {
                Ok(opened) if real_path(opened.as_fd()).is_ok_and(|real| real == above) => {
                    said(opened.as_fd(), above)
                }
                Ok(_) | Err(_) => Gitignore::empty(),
            }
        });
        Self {
            levels: levels.collect(),
        }
    }

    /// What the directories above the workspace say, from the root of its project on, and what the
    /// repository of the project excludes besides.
    pub(crate) fn of_project(project: &Path, workspace: &Path) -> Self {
        let mut above: Vec<&Path> = workspace
            .ancestors()
            .skip(1)
            .take_while(|above| above.starts_with(project))
            .collect();
        above.reverse();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |directory: &Path| rustix::fs::open(directory, flags, Mode::empty()).ok();
        let excluded = open(&project.join(".git/info"));
        let excluded = excluded.map(|opened| lines(opened.as_fd(), "exclude", project));
        let said = above
            .into_iter()
            .filter_map(|above| Some(said(open(above)?.as_fd(), above)));
        Self {
            levels: excluded.into_iter().chain(said).collect(),
        }
    }

    /// Goes into a directory of the innermost one.
    pub(crate) fn enter(&mut self, opened: BorrowedFd<'_>, directory: &Path) {
        self.levels.push(said(opened, directory));
    }

    /// Leaves the innermost directory.
    pub(crate) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Whether a thing in the innermost directory is to be left out. The innermost file that
    /// says anything of it decides.
    pub(crate) fn names(&self, path: &Path, is_directory: bool) -> bool {
        for level in self.levels.iter().rev() {
            match level.matched(path, is_directory) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}

/// What the file in this directory says; nothing, if there is none. Lines that make no sense are
/// passed over.
fn said(opened: BorrowedFd<'_>, directory: &Path) -> Gitignore {
    lines(opened, ".gitignore", directory)
}

/// What the file of this name says of what is in a directory.
fn lines(opened: BorrowedFd<'_>, name: &str, directory: &Path) -> Gitignore {
    let mut bytes = Vec::new();
    let read = file::open(opened, OsStr::new(name))
        .is_ok_and(|(file, _)| file.take(LARGEST).read_to_end(&mut bytes).is_ok());
    if !read {
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(directory);
    for line in clip::text(&bytes).trim_start_matches('\u{feff}').lines() {
        builder.add_line(None, line).ok();
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
