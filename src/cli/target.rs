//! A file in a place that tools may write, to be written when they have done their work.
//!
//! Its directory is held open from the beginning, and nothing that tools put in the way is followed:
//! what the model says is not written where the model wants it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::cli::exit::{Exit, Failure};
use crate::cli::outputs;

/// How many names are tried for what is not whole yet.
const NAMES: u32 = 100;

/// A file that is written when the run ends.
#[derive(Debug)]
pub(super) struct Target {
    /// Its path as the file system named it when the run began.
    path: PathBuf,
    directory: File,
    name: OsString,
    /// Whether something else than a plain file was there then, which is written into.
    special: bool,
}

/// Why a file is not written.
#[derive(Debug, thiserror::Error)]
enum Unsettled {
    #[error("its directory is another one than when the run began")]
    Moved,
    #[error("it is no plain file any more")]
    Replaced,
}

impl Target {
    /// The file at this path, without symlinks.
    pub(super) fn of(path: PathBuf) -> Result<Self, Failure> {
        let parent = path.parent().unwrap_or(&path);
        let directory = File::open(parent).map_err(|error| unwritten(&path, error))?;
        Ok(Self {
            name: path.file_name().unwrap_or_default().to_owned(),
            special: fs::metadata(&path).is_ok_and(|found| !found.is_file()),
            path,
            directory,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it whole or not at all, unless something else stands in its way by now.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let path = &self.path;
        if !self.is_in_place().map_err(|error| unwritten(path, error))? {
            return Err(unwritten(path, Unsettled::Moved));
        }
        if self.special {
            return outputs::write(path, bytes).map_err(|error| unwritten(path, error));
        }
        let mode = match self.found().map_err(|error| unwritten(path, error))? {
            Some((FileType::RegularFile, mode)) => Some(mode),
            Some(_) => return Err(unwritten(path, Unsettled::Replaced)),
            None => None,
        };
        self.replace(bytes, mode)
            .map_err(|error| unwritten(path, error))
    }

    /// Whether its path still leads to the directory that is held.
    fn is_in_place(&self) -> io::Result<bool> {
        let held = self.directory.metadata()?;
        let parent = self.path.parent().unwrap_or(&self.path);
        let now = fs::symlink_metadata(parent);
        Ok(now.is_ok_and(|now| (now.dev(), now.ino()) == (held.dev(), held.ino())))
    }

    /// What is there, and its mode.
    fn found(&self) -> io::Result<Option<(FileType, u32)>> {
        match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => {
                let kind = FileType::from_raw_mode(found.st_mode);
                Ok(Some((kind, found.st_mode & 0o777)))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Puts a new file in its place.
    fn replace(&self, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        let (mut file, name) = self.begun()?;
        let written = file.write_all(bytes).and_then(|()| match mode {
            Some(mode) => file.set_permissions(Permissions::from_mode(mode)),
            None => Ok(()),
        });
        let renamed = written.and_then(|()| {
            let (directory, name) = (&self.directory, OsStr::new(&name));
            Ok(rustix::fs::renameat(
                directory, name, directory, &self.name,
            )?)
        });
        if renamed.is_err() {
            rustix::fs::unlinkat(&self.directory, &name, AtFlags::empty()).ok();
        }
        renamed
    }

    /// A new file beside it. As others would create it: the user's mask applies.
    fn begun(&self) -> io::Result<(File, String)> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o666);
        let process = std::process::id();
        for number in 0..NAMES {
            let name = format!(".undertext-{process}-{number}");
            match rustix::fs::openat(&self.directory, &name, flags | OFlags::CLOEXEC, mode) {
                Ok(file) => return Ok((file.into(), name)),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// The failure to write a file.
pub(super) fn unwritten(path: &Path, error: impl Into<anyhow::Error>) -> Failure {
    let error = error
        .into()
        .context(format!("cannot write {}", path.display()));
    Failure::new(Exit::Unfinished, error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What tools do to a file's place.
    type Deed = fn(&Path);

    /// A place of its own with two directories.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        for name in ["out", "elsewhere"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        (place, path)
    }

    #[test]
    fn what_tools_put_in_the_way_is_not_written_through() {
        let fifo = |path: &Path| {
            let mode = Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0).unwrap();
        };
        let link = |path: &Path| symlink("../elsewhere/last", path).unwrap();
        let moved = |path: &Path| {
            let (out, above) = (path.parent().unwrap(), path.ancestors().nth(2).unwrap());
            fs::rename(out, above.join("moved")).unwrap();
            symlink(above.join("elsewhere"), out).unwrap();
        };
        let another = |path: &Path| {
            let (out, above) = (path.parent().unwrap(), path.ancestors().nth(2).unwrap());
            fs::rename(out, above.join("moved")).unwrap();
            fs::create_dir(out).unwrap();
        };
        let replaced = "cannot write /out/last: it is no plain file any more";
        let elsewhere =
            "cannot write /out/last: its directory is another one than when the run began";
        let deeds: [(Deed, &str); 5] = [
            (|_| (), "written"),
            (link, replaced),
            (fifo, replaced),
            (moved, elsewhere),
            (another, elsewhere),
        ];
        for (number, (deed, expected)) in deeds.iter().enumerate() {
            let (_place, path) = place();
            let target = Target::of(path.join("out/last")).unwrap();
            deed(target.path());
            let said = match target.write(b"x") {
                Ok(()) => "written".to_owned(),
                Err(failure) => failure.line().replace(path.to_str().unwrap(), ""),
            };
            assert_eq!(said, *expected, "{number}");
            assert_eq!(fs::read_dir(path.join("elsewhere")).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_file_is_replaced_and_keeps_its_mode() {
        let (_place, path) = place();
        let file = path.join("out/last");
        fs::write(&file, "before").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        // Somebody has taken the first name.
        let taken = format!("out/.undertext-{}-0", std::process::id());
        symlink("../elsewhere/last", path.join(taken)).unwrap();
        Target::of(file.clone()).unwrap().write(b"after").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"after");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(path.join("out")).unwrap().count(), 2);
        assert_eq!(fs::read_dir(path.join("elsewhere")).unwrap().count(), 0);
    }
}
