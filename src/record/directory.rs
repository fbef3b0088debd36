//! Directories: which one a file stands in, and making durable what changed in one.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Creates a directory for nobody else, and those above it that are missing. If it was not there, it
/// is durable, so that what is made in it can be.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    let changed = create_directory(directory)?;
    changed
        .iter()
        .try_for_each(|changed| sync_directory(changed))
}

/// The same, not durable yet; returns those in which something was created.
pub(super) fn create_directory(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let changed = above_missing(directory);
    if !changed.is_empty() {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory)?;
        // Whatever the umask is.
        fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    }
    Ok(changed)
}

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

/// Of this directory and those above it, the parent of each that is missing.
fn above_missing(directory: &Path) -> Vec<PathBuf> {
    let mut changed = Vec::new();
    let mut at = directory;
    while !at.exists() && parent(at) != at {
        at = parent(at);
        changed.push(at.to_owned());
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_that_changes_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("a/b");
        let changed = [dir.path().join("a"), dir.path().to_owned()];
        assert_eq!(create_directory(&new).unwrap(), changed);
        assert_eq!(create_directory(&new).unwrap(), Vec::<PathBuf>::new());
        assert_eq!(parent(Path::new("transcripts")), Path::new("."));
    }
}
