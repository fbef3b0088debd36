//! Finding recordings below a directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::import::Format;
use crate::import::source::Source;

/// How deep directories are looked into, and how many files are looked at.
const DEPTH: usize = 16;
const FILES: usize = 100_000;

/// The recordings at a path, by name: the file itself, or the directory if it counts as one, else every
/// file and directory below it that looks like a recording. Links are not followed below it.
pub fn recordings(path: &Path) -> io::Result<Vec<PathBuf>> {
    if fs::metadata(path)?.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut left = FILES;
    walk(path, DEPTH, &mut left, &mut found)?;
    Ok(found)
}

/// The format that the file or directory at a path looks like; `None` if it looks like none or cannot
/// be read.
pub fn looks_like(path: &Path) -> Option<Format> {
    Source::open(path).ok()?.format(None).ok()
}

fn walk(path: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if looks_like(path).is_some() {
        found.push(path.to_owned());
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
            return Ok(());
        };
        *left = fewer;
        match depth.checked_sub(1) {
            Some(depth) if is_directory => {
                // One that may not be read hides what is in it, and no more.
                walk(&path, depth, left, found).ok();
            }
            Some(_) | None if is_directory => {}
            Some(_) | None => found.extend(looks_like(&path).map(|_| path)),
        }
    }
    Ok(())
}
