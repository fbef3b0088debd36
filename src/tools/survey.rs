//! What the files of a workspace hold, for whoever compares them later.
//!
//! A survey takes two steps: [`list`] names the files, [`contents`] tells what some of them hold. Neither
//! follows a link, in any part of a path: what a command has put in the place of a directory leads
//! nowhere. What `.gitignore` files leave out is left out, and so is `.git`.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use crate::tools::ignored::Ignored;
use crate::tools::scope::{Refusal, Site, real_path};
use crate::tools::walk::{self, Place, Watch};
use crate::tools::{Outcome, file};

/// The names under which hands know the two steps. No tool that a model calls has them.
pub(crate) const LIST: &str = "(files)";
pub(crate) const CONTENTS: &str = "(contents)";

/// The largest file whose text is told, in bytes.
pub const LARGEST: usize = 1 << 20;

/// About how much one answer holds, in bytes.
const MOST: usize = 8 << 20;

/// What is listed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listed {
    /// The root of the project, above or at the workspace: from there on `.gitignore` files count.
    pub(crate) project: PathBuf,
    /// How many files were listed before.
    pub(crate) skip: usize,
}

/// What a file is, or what else is at its path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// Nothing that a patch could hold.
    Nothing,
    /// It cannot be read.
    Unreadable,
    /// A plain file, or a link, which holds where it leads to.
    File(HeldFile),
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldFile {
    /// What it is, as git writes it.
    pub mode: u32,
    /// The digest of its bytes.
    pub digest: [u8; 32],
    /// Its bytes, if they are a text of a size that is told.
    #[serde(skip)]
    pub text: Option<Vec<u8>>,
}

/// What stands beside the texts of an answer: each with the length of its own.
pub(crate) type Told = Vec<(Held, Option<usize>)>;

/// Names files below the root of the workspace, each ended by a zero, as bytes beside the answer. The
/// answer itself is `more` if there are more.
pub(crate) fn list(site: &Site, arguments: &str) -> Outcome {
    let Ok(Listed { project, skip }) = serde_json::from_str(arguments) else {
        return Outcome::error("it cannot be told what is wanted");
    };
    let tree = match walk::find(site, ".") {
        Ok(Place::Directory(tree)) => tree,
        Ok(Place::Other(..)) => return Outcome::error("the workspace is no directory any more"),
        Err(refusal) => return Outcome::error(refusal.to_string()),
    };
    let (mut names, mut seen, mut more) = (Vec::new(), 0usize, false);
    let ignored = Ignored::of_project(&project, site.workspace.root());
    let never = CancellationToken::new;
    tree.walk_but(ignored, &Watch::new(never(), never()), &mut |thing| {
        if thing.kind == FileType::Directory {
            return;
        }
        seen += 1;
        if names.len() >= MOST {
            more = true;
        } else if seen > skip {
            names.extend_from_slice(thing.below.as_os_str().as_bytes());
            names.push(0);
        }
    });
    let mut outcome = Outcome::ok(if more { "more" } else { "" });
    outcome.whole = Some(names);
    outcome
}

/// Tells what the first of these files hold, at least one, as many as there is room for; their texts
/// stand one behind the other beside the answer.
pub(crate) fn contents(site: &Site, arguments: &str) -> Outcome {
    let Ok(paths) = serde_json::from_str::<Vec<std::ffi::OsString>>(arguments) else {
        return Outcome::error("it cannot be told what is wanted");
    };
    let root = site.workspace.root();
    let (mut told, mut texts): (Told, Vec<u8>) = (Vec::new(), Vec::new());
    for path in &paths {
        if texts.len() >= MOST {
            break;
        }
        let held = match held(root, Path::new(path)) {
            Ok(file) => file.map_or(Held::Nothing, Held::File),
            Err(_) => Held::Unreadable,
        };
        let text = match &held {
            Held::File(HeldFile {
                text: Some(text), ..
            }) => {
                texts.extend_from_slice(text);
                Some(text.len())
            }
            Held::File(_) | Held::Nothing | Held::Unreadable => None,
        };
        told.push((held, text));
    }
    match serde_json::to_string(&told) {
        Ok(content) => {
            let mut outcome = Outcome::ok(content);
            outcome.whole = Some(texts);
            outcome
        }
        Err(error) => Outcome::error(error.to_string()),
    }
}

/// Reads the file at a path below the root; `None` if there is nothing that a patch could hold.
fn held(root: &Path, path: &Path) -> io::Result<Option<HeldFile>> {
    let Some(parent) = directory(root, path)? else {
        return Ok(None);
    };
    let name = path.file_name().unwrap_or(OsStr::new("."));
    let stat = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(errno) if is_nothing(errno) => return Ok(None),
        stat => stat?,
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::Symlink {
        let target = rustix::fs::readlinkat(&parent, name, Vec::new())?.into_bytes();
        return Ok(Some(HeldFile {
            mode: 0o120_000,
            digest: Sha256::digest(&target).into(),
            text: Some(target),
        }));
    }
    if kind != FileType::RegularFile {
        return Ok(None);
    }
    let (mut opened, stat) = match file::open(parent.as_fd(), name) {
        Ok(opened) => opened,
        Err(Refusal::Missing) => return Ok(None),
        Err(Refusal::System(error)) => return Err(error),
        Err(other) => return Err(io::Error::other(other.to_string())),
    };
    let mut head = Vec::new();
    let most = LARGEST as u64 + 1;
    opened.by_ref().take(most).read_to_end(&mut head)?;
    let mut digest = Sha256::new_with_prefix(&head);
    let mut chunk = vec![0; 64 << 10];
    loop {
        match opened.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => digest.update(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let executable = stat.st_mode & 0o100 != 0;
    Ok(Some(HeldFile {
        mode: if executable { 0o100_755 } else { 0o100_644 },
        digest: digest.finalize().into(),
        text: (head.len() <= LARGEST && !head.contains(&0)).then_some(head),
    }))
}

/// Opens the directory of a path below the root; `None` if it is not there, or if a link leads to it.
fn directory(root: &Path, path: &Path) -> io::Result<Option<OwnedFd>> {
    let whole = root.join(path.parent().unwrap_or(Path::new("")));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(&whole, flags, Mode::empty()) {
        Err(errno) if is_nothing(errno) => return Ok(None),
        opened => opened?,
    };
    let real = real_path(opened.as_fd()).map_err(|error| io::Error::other(error.to_string()))?;
    Ok((real.iter().eq(whole.iter())).then_some(opened))
}

/// Whether the error says that nothing is there.
fn is_nothing(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_took_the_place_of_a_directory_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("w");
        let secret = root.with_file_name("secret");
        for directory in [root.join("a/b"), secret.join("b")] {
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("key"), "text").unwrap();
        }
        let text = |path: &str| {
            let held = held(&root, Path::new(path)).unwrap();
            held.and_then(|file| file.text)
        };
        assert_eq!(text("a/b/key").as_deref(), Some(&b"text"[..]));
        fs::rename(root.join("a"), root.join("c")).unwrap();
        symlink(&secret, root.join("a")).unwrap();
        assert_eq!(text("a/b/key"), None);
        assert_eq!(text("../secret/b/key"), None);
        assert_eq!(text("a").as_deref(), Some(secret.as_os_str().as_bytes()));
        fs::remove_dir_all(root.join("c/b")).unwrap();
        symlink(secret.join("b"), root.join("c/b")).unwrap();
        assert_eq!(text("c/b/key"), None);
    }
}
