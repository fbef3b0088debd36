//! Files as the file tools read and replace them, through an opened [`Spot`].

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Uid};

use crate::id::Digest;
use crate::tools::scope::{Refusal, Site, Spot, real_path};

/// The largest file that file tools read or replace, in bytes.
const LARGEST: u64 = 64 << 20;

/// How many names of a directory are looked at.
const MOST_NAMES: usize = 10_000;

/// A whole file as it was when it was read.
#[derive(Debug)]
pub(crate) struct Contents {
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// Their digest.
    pub(crate) digest: Digest,
    /// Its owner and mode.
    stat: Stat,
}

/// The file at the spot; `None` if nothing is there.
///
/// Anything but a plain file is refused, and is not waited for.
pub(crate) fn read(site: &Site, spot: &Spot) -> Result<Option<Contents>, Refusal> {
    let (opened, stat) = match open(spot.parent.as_fd(), &spot.file) {
        Ok(opened) => opened,
        Err(Refusal::Missing) => return Ok(None),
        Err(refusal) => return Err(refusal),
    };
    if !site.workspace.holds(&real_path(opened.as_fd())?) {
        return Err(Refusal::Moved);
    }
    let mut bytes = Vec::new();
    opened
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(Refusal::System)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Refusal::TooLarge(LARGEST));
    }
    let digest = Digest::of(&bytes);
    Ok(Some(Contents {
        bytes,
        digest,
        stat,
    }))
}

/// Opens the plain file of this name in an opened directory, to read it. No link is followed.
pub(crate) fn open(parent: BorrowedFd<'_>, name: &OsStr) -> Result<(File, Stat), Refusal> {
    plain_file(&rustix::fs::statat(
        parent,
        name,
        AtFlags::SYMLINK_NOFOLLOW,
    )?)?;
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&opened)?;
    plain_file(&stat)?;
    Ok((opened.into(), stat))
}

/// Puts a file with these bytes at the spot, whole or not at all, and returns their digest.
///
/// `old` is the file it replaces: its mode and, where that is allowed, its owner are kept. Other
/// names of the old file (hard links) keep the old bytes.
pub(crate) fn replace(
    spot: &Spot,
    bytes: &[u8],
    old: Option<&Contents>,
) -> Result<Digest, Refusal> {
    if old.is_some_and(|old| old.stat.st_mode & 0o222 == 0) {
        return Err(Refusal::ReadOnly);
    }
    let name = temporary_name();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(if old.is_some() { 0o600 } else { 0o666 });
    let mut file = File::from(rustix::fs::openat(&spot.parent, &name, flags, mode)?);
    let done = file
        .write_all(bytes)
        .map_err(Refusal::System)
        .and_then(|()| old.map_or(Ok(()), |old| keep(&file, &old.stat)))
        .and_then(|()| {
            rustix::fs::renameat(&spot.parent, &name, &spot.parent, &spot.file)?;
            Ok(())
        });
    if done.is_err() {
        // The file as it was is still in its place; what is left over is only ours.
        rustix::fs::unlinkat(&spot.parent, &name, AtFlags::empty()).ok();
    }
    done.map(|()| Digest::of(bytes))
}

/// Up to `most` names in the directory at the spot, sorted, directories with a `/`; and how many
/// there are beyond them, as far as was looked.
pub(crate) fn names(spot: &Spot, most: usize) -> Result<(Vec<String>, usize), Refusal> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&spot.parent, &spot.file, flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&opened)?.take(MOST_NAMES) {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            let slash = if entry.file_type() == FileType::Directory {
                "/"
            } else {
                ""
            };
            let name: String = String::from_utf8_lossy(name).escape_debug().collect();
            names.push(format!("{name}{slash}"));
        }
    }
    names.sort_unstable();
    let more = names.len().saturating_sub(most);
    names.truncate(most);
    Ok((names, more))
}

/// Refuses what is no plain file.
fn plain_file(stat: &Stat) -> Result<(), Refusal> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Refusal::Directory),
        FileType::Symlink => Err(Refusal::NoFile("a symbolic link to nothing")),
        FileType::Fifo => Err(Refusal::NoFile("a FIFO")),
        FileType::Socket => Err(Refusal::NoFile("a socket")),
        FileType::CharacterDevice | FileType::BlockDevice => Err(Refusal::NoFile("a device")),
        FileType::Unknown => Err(Refusal::NoFile("something unknown")),
    }
}

/// Gives the new file the owner, as far as that is allowed, and the mode of the old one. It gives nobody
/// its owner's rights (setuid, setgid), as no file does that was written into.
fn keep(file: &File, old: &Stat) -> Result<(), Refusal> {
    let new = rustix::fs::fstat(file)?;
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
        let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        rustix::fs::fchown(file, Some(user), Some(group)).ok();
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(old.st_mode & 0o1777))?;
    Ok(())
}

/// A name that nothing else has.
fn temporary_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(".undertext-{}-{number}.tmp", std::process::id())
}
