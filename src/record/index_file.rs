//! Where the index of a transcript lies, and how it is put there whole.

use std::fs::{self, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::record::file::{FileError, open_plain};

/// What this writer writes.
pub(super) type Writing<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

/// Where the index of a transcript lies, and where it is written first.
fn places(transcript: &Path) -> [PathBuf; 2] {
    ["index", "index.part"].map(|end| transcript.with_extension(end))
}

/// Opens the index of a transcript; `None` if there is none.
pub(super) fn open(transcript: &Path) -> io::Result<Option<Box<dyn Read + Send>>> {
    let [path, _] = places(transcript);
    match open_plain(&path, OpenOptions::new().read(true)) {
        Ok(file) => Ok(Some(Box::new(BufReader::with_capacity(64 << 10, file)))),
        Err(FileError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Puts what this writes in the place of the index, whole or not at all.
pub(super) fn write(transcript: &Path, write: Writing<'_>) -> io::Result<()> {
    let [path, part] = places(transcript);
    // One that was never finished is in nobody's hands: the transcript is locked.
    remove_one(&part)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&part)?;
    let mut out = BufWriter::with_capacity(64 << 10, file);
    let written = write(&mut out).and_then(|()| out.flush());
    let kept = written.and_then(|()| fs::rename(&part, &path));
    if kept.is_err() {
        fs::remove_file(&part).ok();
    }
    kept
}

/// Removes the index of a transcript, and what is left of writing one.
pub(super) fn remove(transcript: &Path) -> io::Result<()> {
    places(transcript)
        .iter()
        .try_for_each(|path| remove_one(path))
}

fn remove_one(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
