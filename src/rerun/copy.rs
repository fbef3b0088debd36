//! A copy of a directory, to work in.

use std::fs::{self, DirEntry, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// A directory cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Something in it cannot be.
    #[error("cannot copy {}", path.display())]
    Copy {
        /// What.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Whoever wanted it does not wait.
    #[error("the copy was given up")]
    GivenUp,
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files and links.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sockets, pipes and devices, which are no part of a copy.
    pub left_out: u64,
}

/// Copies what a directory holds into another one, which is made: files with their rights and the
/// time of their last change, links as they are. Links into the directory lead into the copy.
pub fn copy(from: &Path, to: &Path, is_given_up: impl Fn() -> bool) -> Result<Copied, CopyError> {
    let copying = Copying { from, to };
    let mut copied = Copied::default();
    let mut left = vec![PathBuf::new()];
    while let Some(directory) = left.pop() {
        let source: PathBuf = from.join(&directory).components().collect();
        let failed = |error: io::Error| CopyError::Copy {
            path: source.clone(),
            source: error,
        };
        fs::create_dir_all(to.join(&directory)).map_err(failed)?;
        for entry in fs::read_dir(&source).map_err(failed)? {
            if is_given_up() {
                return Err(CopyError::GivenUp);
            }
            let entry = entry.map_err(failed)?;
            let path = directory.join(entry.file_name());
            let failed = |source: io::Error| CopyError::Copy {
                path: entry.path(),
                source,
            };
            let found = entry.metadata().map_err(failed)?;
            if !found.is_dir() {
                copying
                    .one(&entry, &found, &path, &mut copied)
                    .map_err(failed)?;
            } else if entry.path() != to {
                left.push(path);
            }
        }
        let rights = fs::metadata(&source).map_err(failed)?.permissions();
        // A directory that may not be written is filled first; its own copies are made later.
        if !rights.readonly() {
            fs::set_permissions(to.join(&directory), rights).map_err(failed)?;
        }
    }
    Ok(copied)
}

struct Copying<'a> {
    from: &'a Path,
    to: &'a Path,
}

impl Copying<'_> {
    fn one(
        &self,
        entry: &DirEntry,
        found: &Metadata,
        path: &Path,
        copied: &mut Copied,
    ) -> io::Result<()> {
        let target = self.to.join(path);
        if found.is_symlink() {
            let leads = fs::read_link(entry.path())?;
            let leads = match leads.strip_prefix(self.from) {
                Ok(inside) => self.to.join(inside),
                Err(_) => leads,
            };
            std::os::unix::fs::symlink(leads, target)?;
        } else if found.is_file() {
            copied.bytes += fs::copy(entry.path(), &target)?;
            if let Ok(changed) = found.modified() {
                // It needs no right to write to be dated, only to be its owner's.
                File::open(&target).and_then(|file| file.set_modified(changed))?;
            }
        } else {
            copied.left_out += 1;
            return Ok(());
        }
        copied.files += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_copy_is_what_was_there() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("w"), place.path().join("w/sub/copy"));
        fs::create_dir_all(from.join("sub/.git")).unwrap();
        fs::write(from.join("sub/run.sh"), "echo").unwrap();
        fs::write(from.join("sub/.git/x"), "").unwrap();
        let mode = fs::Permissions::from_mode(0o555);
        fs::set_permissions(from.join("sub/run.sh"), mode).unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        File::open(from.join("sub/run.sh"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        symlink("sub/run.sh", from.join("near")).unwrap();
        symlink(from.join("sub"), from.join("inside")).unwrap();
        symlink("/nowhere", from.join("outside")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();

        let copied = copy(&from, &to, || false).unwrap();
        let expected = Copied {
            files: 5,
            bytes: 4,
            left_out: 1,
        };
        assert_eq!(copied, expected);
        let script = fs::metadata(to.join("sub/run.sh")).unwrap();
        assert_eq!(script.permissions().mode() & 0o777, 0o555);
        assert_eq!(script.modified().unwrap(), old);
        for (link, leads) in [
            ("near", PathBuf::from("sub/run.sh")),
            ("inside", to.join("sub")),
            ("outside", PathBuf::from("/nowhere")),
        ] {
            assert_eq!(fs::read_link(to.join(link)).unwrap(), leads);
        }
        assert!(!to.join("sub/copy").exists());

        let error = copy(&from, &place.path().join("given up"), || true).unwrap_err();
        assert_eq!(error.to_string(), "the copy was given up");
        let error = copy(&place.path().join("none"), &place.path().join("b"), || {
            false
        });
        let text = error.unwrap_err().to_string();
        assert_eq!(
            text,
            format!("cannot copy {}", place.path().join("none").display())
        );
    }
}
