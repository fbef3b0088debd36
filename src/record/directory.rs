//! Directories: which one a file stands in, and making durable what changed in one.

use std::fs::File;
use std::io;
use std::path::Path;

/// The directory in which a path stands.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// Makes durable what was created or renamed in a directory.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
