//! What changes in a workspace between two moments, as a patch that `git apply` takes.
//!
//! [`Before`] keeps what the files hold now; [`Before::changes`] compares that with what they hold
//! later. Hands look at the workspace, so that nothing but the workspace is seen, and no git is run: what
//! `.gitignore` files leave out is left out, and `.git` is never looked at. What is too large or no text
//! is compared, and named in the patch where it changed, but not contained in it.

pub(crate) mod patch;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use undertext::hands::{Hands, Held, HeldFile, LookError};

use crate::cli::changes::patch::{Side, named, shown};

/// How much is kept in all.
const ALL_BYTES: u64 = 256 << 20;

/// Of how many files something is kept.
const ALL_FILES: usize = 50_000;

/// The files of a directory as they were at one moment.
#[derive(Debug)]
pub(crate) struct Before {
    root: PathBuf,
    project: PathBuf,
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

/// What changed cannot be told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangesError {
    /// The workspace cannot be looked at.
    #[error(transparent)]
    Look(#[from] LookError),
    /// What it held cannot be kept.
    #[error("what the files held cannot be kept")]
    Keep(#[from] io::Error),
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
    /// Keeps what the files in the workspace of these hands hold, those in `left_out` and below left
    /// out. `project` is the root of the project.
    pub(crate) async fn take(
        hands: &Hands,
        project: &Path,
        left_out: Vec<PathBuf>,
    ) -> Result<Self, ChangesError> {
        let mut before = Self {
            root: hands.root().to_owned(),
            project: project.to_owned(),
            left_out,
            files: BTreeMap::new(),
            texts: tempfile::tempfile()?,
        };
        let mut end = 0;
        let paths = before.paths(hands).await?;
        let keep = |path: &Path, held| -> Result<(), ChangesError> {
            let kept = match held {
                Held::Nothing => return Ok(()),
                Held::File(file) => Some(before.keep(&file, &mut end)?),
                Held::Unreadable => None,
            };
            before.files.insert(path.to_owned(), kept);
            Ok(())
        };
        hands.contents(&paths, keep).await?;
        Ok(before)
    }

    fn keep(&self, file: &HeldFile, end: &mut u64) -> io::Result<KeptFile> {
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
    pub(crate) async fn changes(&self, hands: &Hands) -> Result<Changes, ChangesError> {
        let mut changes = Changes::default();
        let mut paths: Vec<PathBuf> = self.files.keys().cloned().collect();
        // What is ignored by now is still there.
        paths.extend(self.paths(hands).await?);
        paths.sort_unstable();
        paths.dedup();
        let compare = |path: &Path, held| -> Result<(), ChangesError> {
            let old = match self.files.get(path) {
                Some(Some(old)) => Some(old),
                Some(None) => return Ok(()),
                None => None,
            };
            match held {
                // Of a file that cannot be read nothing can be said.
                Held::Unreadable => {}
                Held::Nothing => self.compare(path, old, None, &mut changes)?,
                Held::File(new) => self.compare(path, old, Some(&new), &mut changes)?,
            }
            Ok(())
        };
        hands.contents(&paths, compare).await?;
        Ok(changes)
    }

    fn compare(
        &self,
        path: &Path,
        old: Option<&KeptFile>,
        new: Option<&HeldFile>,
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

    /// The paths of the files, below the root, that no rules leave out.
    async fn paths(&self, hands: &Hands) -> Result<Vec<PathBuf>, LookError> {
        let mut paths = hands.files(&self.project).await?;
        let is_left_out = |path: &Path| {
            let whole = self.root.join(path);
            self.left_out
                .iter()
                .any(|left_out| whole.starts_with(left_out))
        };
        paths.retain(|path| !is_left_out(path));
        Ok(paths)
    }
}

#[cfg(test)]
mod tests;
