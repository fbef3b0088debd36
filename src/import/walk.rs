//! Finding recordings below a directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::import::Format;
use crate::import::source::Source;

/// How deep directories are looked into, and how many files are looked at.
const DEPTH: usize = 16;
const FILES: usize = 100_000;

/// What was found below a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recordings {
    /// The recordings, by name.
    pub paths: Vec<PathBuf>,
    /// Whether there was more than is looked through: too many files, or too deep.
    pub is_cut: bool,
}

/// The recordings at a path: the file or pipe itself, or the directory if it counts as one, else every
/// file and directory below it that looks like a recording. Links are not followed below it.
pub fn recordings(path: &Path) -> io::Result<Recordings> {
    let mut found = Recordings::default();
    if fs::metadata(path)?.is_dir() {
        let mut left = FILES;
        walk(path, DEPTH, &mut left, &mut found)?;
    } else {
        found.paths.push(path.to_owned());
    }
    Ok(found)
}

/// The format that the file or directory at a path looks like; `None` if it looks like none or cannot
/// be read.
pub fn looks_like(path: &Path) -> Option<Format> {
    let (format, _) = Source::open(path).ok()?.format(None).ok()?;
    Some(format)
}

fn walk(path: &Path, depth: usize, left: &mut usize, found: &mut Recordings) -> io::Result<()> {
    if looks_like(path).is_some() {
        found.paths.push(path.to_owned());
        return Ok(());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_file() || kind.is_dir() {
            paths.push((entry.path(), kind.is_dir()));
        }
    }
    paths.sort_unstable();
    for (path, is_directory) in paths {
        let Some(fewer) = left.checked_sub(1) else {
            found.is_cut = true;
            return Ok(());
        };
        *left = fewer;
        match depth.checked_sub(1) {
            Some(depth) if is_directory => {
                // One that may not be read hides what is in it, and no more.
                walk(&path, depth, left, found).ok();
            }
            Some(_) | None if is_directory => found.is_cut = true,
            Some(_) | None => found.paths.extend(looks_like(&path).map(|_| path)),
        }
    }
    Ok(())
}
