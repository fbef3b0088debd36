//! Removing a run for good, with all that stands beside its transcript.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use crate::id::RunId;
use crate::record::file::FileStorage;
use crate::record::runs::FindError;
use crate::record::{Blobs, Durability, Storage as _, index_place};
use crate::transcript::Event;
use crate::transcript::jsonl::{Item, LINE_WRITTEN, Reader};

/// What was removed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The run, as its file's name or its first entry says.
    pub run: RunId,
    /// The bytes of the transcript.
    pub bytes: u64,
    /// How many blobs stood beside it.
    pub blobs: u64,
}

/// Removes a run's transcript and its blobs for good, damaged or not. One that is in use stays,
/// and so does a file that is no transcript.
pub fn remove(path: &Path) -> Result<Removed, FindError> {
    // Held until the end, so that nobody takes it up meanwhile.
    let storage = FileStorage::open(path, Durability::None)?;
    let failed = |source| FindError::Remove {
        path: path.to_owned(),
        source,
    };
    let named = path
        .file_stem()
        .and_then(|stem| stem.to_str()?.parse().ok());
    let begun = || {
        let line = storage.read().ok()?.take(LINE_WRITTEN as u64);
        let Item::Entry { entry, .. } = Reader::new(line).read().ok()?? else {
            return None;
        };
        if let Event::Run(run) = &entry.event {
            Some(run.run)
        } else {
            None
        }
    };
    let Some(run) = named.or_else(begun) else {
        return Err(FindError::NoRun {
            path: path.to_owned(),
        });
    };
    // Blobs first: what is left of an attempt that failed can be removed by another.
    let blobs = Blobs::beside(path).remove().map_err(failed)?;
    let bytes = storage.length().map_err(failed)?;
    index_place::remove(path).map_err(failed)?;
    fs::remove_file(path).map_err(failed)?;
    Ok(Removed { run, bytes, blobs })
}
