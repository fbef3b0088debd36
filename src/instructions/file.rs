//! Text files of a project or a user, which may be anything and must not hold up a run.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use crate::instructions::agents;
use crate::tools::scope;

/// The longest text in place of the built-in one, in bytes.
const LONGEST: u64 = 256 << 10;

/// The beginning of a text file.
#[derive(Debug)]
pub(super) struct Text {
    /// As much of it as was asked for, cut at the end of a character.
    pub(super) text: String,
    /// Its size in bytes.
    pub(super) size: u64,
}

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error("it is not a plain file")]
    NoFile,
    #[error("it leads out of {0}")]
    Outside(&'static str),
    #[error("it leads to nothing that can be read")]
    Nowhere,
    #[error("it is not text in UTF-8")]
    NoText,
    #[error("it cannot be read: {}", .0.kind())]
    System(#[source] io::Error),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// The first `most` bytes of the text file at `path`, or nothing if there is none.
///
/// It may be a link, but what is opened must lie below `root`, which is called `named` when it
/// does not. Nothing but a plain file is read, and nothing is waited for.
pub(super) fn text(
    path: &Path,
    most: u64,
    (root, named): (&Path, &'static str),
) -> Result<Option<Text>, Unread> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
        Ok(_) => {}
    }
    let real = match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Unread::Nowhere),
        real => real?,
    };
    if !agents::is_of(root, &real) {
        return Err(Unread::Outside(named));
    }
    if !real.symlink_metadata()?.is_file() {
        return Err(Unread::NoFile);
    }
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&real, flags, Mode::empty()).map_err(io::Error::from)?;
    let stat = rustix::fs::fstat(&opened).map_err(io::Error::from)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Unread::NoFile);
    }
    // It may have been moved since it was looked at.
    let is_below = scope::real_path(opened.as_fd()).is_ok_and(|real| agents::is_of(root, &real));
    if !is_below {
        return Err(Unread::Outside(named));
    }
    let mut bytes = Vec::new();
    let taken = File::from(opened).take(most).read_to_end(&mut bytes)? as u64;
    let size = u64::try_from(stat.st_size).unwrap_or(0).max(taken);
    if let Err(error) = std::str::from_utf8(&bytes) {
        let is_cut = taken < size && error.error_len().is_none();
        if !is_cut {
            return Err(Unread::NoText);
        }
        bytes.truncate(error.valid_up_to());
    }
    let text = String::from_utf8(bytes).map_err(|_| Unread::NoText)?;
    if text.contains('\0') {
        return Err(Unread::NoText);
    }
    Ok(Some(Text { text, size }))
}

/// The text of a file that must be there and be read whole.
pub(super) fn whole(path: &Path) -> io::Result<String> {
    // Judged before it is opened: to open a pipe would wait for its other end.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut text = String::new();
    let read = File::open(path)?
        .take(LONGEST + 1)
        .read_to_string(&mut text)?;
    if read as u64 > LONGEST {
        return Err(io::Error::other("larger than 256 KiB"));
    }
    if text.contains('\0') {
        return Err(io::Error::other("not text"));
    }
    Ok(text)
}

/// The path as text of one line, however it is named.
pub(super) fn shown(path: &Path) -> String {
    let mut text = String::new();
    for c in path.to_string_lossy().chars().take(300) {
        if c.is_control() || "\u{2028}\u{2029}".contains(c) {
            write!(text, "{}", c.escape_default()).ok();
        } else {
            text.push(c);
        }
    }
    text
}
