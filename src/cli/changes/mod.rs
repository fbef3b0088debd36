//! What changes in a directory between two moments, as a patch that `git apply` takes.
//!
//! [`Before`] keeps what the files hold now; [`Before::changes`] compares that with what they hold
//! later. Git need not be there: what a repository ignores is left out by reading its rules, and
//! `.git` is never looked at. What is too large or no text is compared, and named in the patch
//! where it changed, but not contained in it.

mod patch;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use crate::cli::changes::patch::{Side, named, shown};

/// The largest file that a patch may contain.
const FILE_BYTES: usize = 1 << 20;

/// How much is kept in all.
const ALL_BYTES: u64 = 256 << 20;

/// Of how many files something is kept.
const ALL_FILES: usize = 50_000;

/// The files of a directory as they were at one moment.
#[derive(Debug)]
pub(crate) struct Before {
    root: PathBuf,
    left_out: Vec<PathBuf>,
    files: BTreeMap<PathBuf, Kept>,
    /// The texts, one behind the other, in a file without a name: it ends with the process.
    texts: File,
}

/// What changed.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The patch.
    pub(crate) patch: Vec<u8>,
    /// How many files it changes.
    pub(crate) files: usize,
    /// How many further files changed that it only names.
    pub(crate) named: usize,
}

/// What is known of a file.
#[derive(Debug)]
struct Found {
    /// As git writes it.
    mode: u32,
    digest: [u8; 32],
    /// What it holds, if that is a text of a size that is shown.
    text: Option<Vec<u8>>,
}

/// What is kept of a file; `None` if it could not be read.
type Kept = Option<KeptFile>;

#[derive(Debug)]
struct KeptFile {
    mode: u32,
    digest: [u8; 32],
    /// Where its text begins among the kept ones, and how long it is.
    text: Option<(u64, usize)>,
}

impl Before {
    /// Keeps what the files below `root` hold, those in `left_out` and below left out.
    pub(crate) fn take(root: &Path, left_out: Vec<PathBuf>) -> io::Result<Self> {
        let mut before = Self {
            root: root.to_owned(),
            left_out,
            files: BTreeMap::new(),
            texts: tempfile::tempfile()?,
        };
        let mut end = 0;
        for path in before.walk() {
            let kept = match found(&before.root.join(&path)) {
                Ok(None) => continue,
                Ok(Some(file)) => Some(before.keep(&file, &mut end)?),
                Err(_) => None,
            };
            before.files.insert(path, kept);
        }
        Ok(before)
    }

    fn keep(&self, file: &Found, end: &mut u64) -> io::Result<KeptFile> {
        let fits =
            |text: &&Vec<u8>| self.files.len() < ALL_FILES && *end + text.len() as u64 <= ALL_BYTES;
        let mut at = None;
        if let Some(text) = file.text.as_ref().filter(fits) {
            (&self.texts).write_all(text)?;
            at = Some((*end, text.len()));
            *end += text.len() as u64;
        }
        Ok(KeptFile {
            mode: file.mode,
            digest: file.digest,
            text: at,
        })
    }

    /// What changed since.
    pub(crate) fn changes(&self) -> io::Result<Changes> {
        let mut changes = Changes::default();
        let mut paths: Vec<PathBuf> = self.files.keys().cloned().collect();
        // What is ignored by now is still there.
        paths.extend(self.walk());
        paths.sort_unstable();
        paths.dedup();
        for path in paths {
            let old = match self.files.get(&path) {
                Some(Some(old)) => Some(old),
                Some(None) => continue,
                None => None,
            };
            // Of a file that cannot be read nothing can be said.
            let Ok(new) = found(&self.root.join(&path)) else {
                continue;
            };
            self.compare(&path, old, new.as_ref(), &mut changes)?;
        }
        Ok(changes)
    }

    fn compare(
        &self,
        path: &Path,
        old: Option<&KeptFile>,
        new: Option<&Found>,
        changes: &mut Changes,
    ) -> io::Result<()> {
        let before = old.map(|old| (old.mode, old.digest));
        let after = new.map(|new| (new.mode, new.digest));
        if before == after {
            return Ok(());
        }
        let path = path.as_os_str().as_bytes();
        let only_mode = before.zip(after).is_some_and(|(old, new)| old.1 == new.1);
        let has_texts =
            old.is_none_or(|old| old.text.is_some()) && new.is_none_or(|new| new.text.is_some());
        if !has_texts && !only_mode {
            changes.named += 1;
            named(path, old.is_some(), new.is_some(), &mut changes.patch);
            return Ok(());
        }
        let mut kept = Vec::new();
        if let Some((offset, length)) = old.and_then(|old| old.text) {
            kept.resize(length, 0);
            self.texts.read_exact_at(&mut kept, offset)?;
        }
        // A file whose mode alone changed is the same text on both sides, whatever it is.
        let side = |mode, text| Side {
            mode,
            text: if only_mode { b"" } else { text },
        };
        let text = new.and_then(|new| new.text.as_deref()).unwrap_or_default();
        let old = old.map(|old| side(old.mode, &kept));
        let new = new.map(|new| side(new.mode, text));
        shown(path, old, new, &mut changes.patch);
        changes.files += 1;
        Ok(())
    }

    /// The paths of the files, below the root, that no repository's rules leave out.
    fn walk(&self) -> Vec<PathBuf> {
        let left_out = self.left_out.clone();
        let walk = WalkBuilder::new(&self.root)
            .standard_filters(false)
            .parents(true)
            .git_ignore(true)
            .git_exclude(true)
            .filter_entry(move |entry| {
                entry.file_name() != ".git" && !left_out.iter().any(|path| path == entry.path())
            })
            .build();
        let below = |entry: ignore::DirEntry| {
            let is_directory = entry.file_type().is_none_or(|kind| kind.is_dir());
            let path = entry.path().strip_prefix(&self.root).ok()?.to_owned();
            (!is_directory).then_some(path)
        };
        walk.filter_map(Result::ok).filter_map(below).collect()
    }
}

/// Reads a file, or where a link leads to; `None` if there is nothing that a patch could hold.
fn found(path: &Path) -> io::Result<Option<Found>> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if is_nothing(&error) => return Ok(None),
        metadata => metadata?,
    };
    if metadata.is_symlink() {
        let target = fs::read_link(path)?.as_os_str().as_bytes().to_owned();
        return Ok(Some(Found {
            mode: 0o120_000,
            digest: Sha256::digest(&target).into(),
            text: Some(target),
        }));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    let mut file = options.read(true).custom_flags(flags).open(path)?;
    let mut head = Vec::new();
    Read::by_ref(&mut file)
        .take(FILE_BYTES as u64 + 1)
        .read_to_end(&mut head)?;
    let mut digest = Sha256::new_with_prefix(&head);
    let mut chunk = vec![0; 64 << 10];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => digest.update(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let executable = metadata.mode() & 0o100 != 0;
    Ok(Some(Found {
        mode: if executable { 0o100_755 } else { 0o100_644 },
        digest: digest.finalize().into(),
        text: (head.len() <= FILE_BYTES && !head.contains(&0)).then_some(head),
    }))
}

/// Whether the error says that nothing is there.
fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests;
