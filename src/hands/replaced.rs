//! What a repository shows in the place of what was committed: replaced objects, grafts, and a history that
//! is cut.
//!
//! Version control says nothing of them: whoever looks at a commit sees what stands in its place.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use crate::hands::watched::{self, Depth};
use crate::sandbox;

/// Where replacements are told, one a file.
const ONE_EACH: &str = "refs/replace";

/// Where they are told together with all other names.
const PACKED: &str = "packed-refs";

/// Where commits are told to have other parents, or none.
const PARENTS: [&str; 2] = ["info/grafts", "shallow"];

/// How many replacements are told apart.
const ENTRIES: usize = 20_000;

/// How much is read of a file of names, and of a single one.
const ALL: u64 = 64 << 20;
const ONE: u64 = 200;

/// Each replacement by its name in a repository, with what it is known by: the same wherever it is told.
pub(super) fn replaced(repository: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let directory = repository.join(ONE_EACH);
    let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
    for name in entries.take(ENTRIES).map(|entry| entry.file_name()) {
        let mut text = String::new();
        if let Some(file) = opened(&directory.join(&name)) {
            // What is no text replaces nothing.
            file.take(ONE).read_to_string(&mut text).ok();
        }
        let name = format!("{ONE_EACH}/{}", name.to_string_lossy());
        found.insert(name, known_by(text.trim().as_bytes()));
    }
    if let Some(file) = opened(&repository.join(PACKED)) {
        let lines = BufReader::new(file.take(ALL)).split(b'\n');
        // `OBJECT NAME`, but for a first line and lines of tags. Other names need not be text.
        for line in lines.map_while(Result::ok) {
            let mut parts = line.splitn(2, |byte| *byte == b' ');
            if let (Some(object), Some(name)) = (parts.next(), parts.next())
                && name.starts_with(ONE_EACH.as_bytes())
                && found.len() < ENTRIES
            {
                let name = String::from_utf8_lossy(name).into_owned();
                // One that stands for itself as well counts before.
                found.entry(name).or_insert_with(|| known_by(object));
            }
        }
    }
    for name in PARENTS {
        let path = repository.join(name);
        if sandbox::is_there(&path) {
            found.insert(name.to_owned(), watched::stamp(&path, Depth::Entries));
        }
    }
    found
}

/// A plain file, to read: anything else might be waited for.
fn opened(path: &Path) -> Option<File> {
    let pointing = sandbox::open(path).ok()?;
    let held = sandbox::path_of(&pointing);
    // What is opened is what was looked at.
    let is_plain = fs::metadata(&held).is_ok_and(|data| data.is_file());
    is_plain.then(|| File::open(&held).ok())?
}

fn known_by(object: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}
