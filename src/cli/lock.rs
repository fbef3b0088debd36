//! The lock on a workspace: two runs do not edit one tree unless somebody says so.
//!
//! It is the operating system's lock on files below the user's state directory, one for each path:
//! alone on the workspace's own, shared on those of the directories above it, so that a workspace
//! within another one is in its way as well. It ends with the process. Nothing is written into
//! the workspace.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use undertext::config;
use undertext::id::{Digest, RunId};
use undertext::record::{make_directory, past_the_dead};

use crate::cli::Process;
use crate::cli::exit::Failure;

/// The lock, for as long as this is alive.
#[derive(Debug)]
pub(crate) struct WorkspaceLock {
    workspace: PathBuf,
    own: Option<(PathBuf, Locked)>,
    /// Locked as well, and not written into.
    _shared: Vec<Locked>,
}

/// The lock on a batch, for as long as this is alive: one process at a time works on its lines.
#[derive(Debug)]
pub(crate) struct BatchLock {
    _file: Option<Locked>,
}

impl BatchLock {
    /// Locks the batch of this file and name. Where locks cannot be had there is none.
    pub(crate) fn take(file: &str, name: Option<&str>, process: &Process) -> Result<Self, Failure> {
        let Some(state) = config::state_dir(&process.environment) else {
            return Ok(Self { _file: None });
        };
        let directory = state.join("locks");
        let made = make_directory(&directory);
        let which = [file, name.unwrap_or_default()].join("\0");
        let path = directory.join(format!("{}.batch", Digest::of(which.as_bytes()).hex()));
        match made.and_then(|()| locked(&path, Hold::Alone)) {
            Ok(Ok(file)) => Ok(Self { _file: Some(file) }),
            Ok(Err(_)) => Err(Failure::usage(format!(
                "another `undertext batch` works on {file}; wait until it ends, or give --name to begin \
                 its tasks anew"
            ))),
            Err(error) => {
                tracing::warn!(%error, "the batch is not locked");
                Ok(Self { _file: None })
            }
        }
    }
}

/// A file that is unlocked when this ends. To close it is not enough: a process that is just being
/// started has a copy of everything that is open until its program takes over.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        self.0.unlock().ok();
    }
}

/// Whether a workspace may have several runs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Only this one.
    Alone,
    /// Whoever is there or comes.
    Shared,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// Another run works there, above it or below it.
    #[error("{0}; wait until it ends, or give --share-workspace if both may change the same files")]
    InUse(String),
    /// Locks cannot be had here.
    #[error("cannot lock the workspace")]
    Unusable(#[from] io::Error),
}

/// What a locked file says of who holds it.
#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    workspace: PathBuf,
    process: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
}

impl Holder {
    /// `run 9f2c41aa (process 4711)`
    fn name(holder: Option<&Self>) -> String {
        match holder {
            Some(Self {
                run: Some(run),
                process,
                ..
            }) => format!("run {} (process {process})", run.short()),
            Some(Self { process, .. }) => format!("another run (process {process})"),
            None => "another run".to_owned(),
        }
    }
}

/// How a file is locked.
#[derive(Clone, Copy)]
enum Hold {
    Alone,
    Shared,
}

impl WorkspaceLock {
    /// Locks a workspace, named as the file system does, by files in `directory`.
    pub(crate) fn take(
        workspace: &Path,
        directory: &Path,
        sharing: Sharing,
    ) -> Result<Self, LockError> {
        make_directory(directory)?;
        let mut shared = Vec::new();
        for above in workspace.ancestors().skip(1) {
            let path = file_of(above, directory);
            match (locked(&path, Hold::Shared)?, sharing) {
                (Ok(file), _) => shared.push(file),
                (Err(_), Sharing::Shared) => {}
                (Err(file), Sharing::Alone) => {
                    return Err(LockError::InUse(format!(
                        "workspace {} lies in {}, where {} works",
                        workspace.display(),
                        above.display(),
                        Holder::name(read(file).as_ref())
                    )));
                }
            }
        }
        let path = file_of(workspace, directory);
        if sharing == Sharing::Shared {
            shared.extend(locked(&path, Hold::Shared)?);
            return Ok(Self {
                workspace: workspace.to_owned(),
                own: None,
                _shared: shared,
            });
        }
        let Ok(own) = locked(&path, Hold::Alone)? else {
            return Err(LockError::InUse(taken(workspace, &path, directory)?));
        };
        let mut lock = Self {
            workspace: workspace.to_owned(),
            own: Some((path, own)),
            _shared: shared,
        };
        lock.say(None)?;
        Ok(lock)
    }

    /// Says which run holds the lock, for those who want it.
    pub(crate) fn name(&mut self, run: RunId) {
        // Whoever cannot read it is told of another run without a name.
        self.say(Some(run)).ok();
    }

    fn say(&mut self, run: Option<RunId>) -> io::Result<()> {
        let Some((_, Locked(file))) = &mut self.own else {
            return Ok(());
        };
        let holder = Holder {
            workspace: self.workspace.clone(),
            process: std::process::id(),
            run,
        };
        file.set_len(0)?;
        io::Seek::rewind(file)?;
        file.write_all(&serde_json::to_vec(&holder)?)
    }
}

impl Drop for WorkspaceLock {
    fn drop(&mut self) {
        // While it is still locked: who opens it meanwhile looks whether it is still there.
        if let Some((path, _)) = &self.own {
            fs::remove_file(path).ok();
        }
    }
}

/// Says who holds a workspace that cannot be had alone.
fn taken(workspace: &Path, path: &Path, directory: &Path) -> io::Result<String> {
    let shown = workspace.display();
    if let Err(file) = locked(path, Hold::Shared)? {
        let holder = Holder::name(read(file).as_ref());
        return Ok(format!("workspace {shown} is in use by {holder}"));
    }
    // Somebody shares it: a run below it, or one that shares it on purpose.
    for file in fs::read_dir(directory)? {
        let path = file?.path();
        let Some(Err(file)) = locked_if_there(&path, Hold::Shared)? else {
            continue;
        };
        if let Some(holder) = read(file)
            && holder.workspace.starts_with(workspace)
        {
            return Ok(format!(
                "workspace {shown} holds {}, where {} works",
                holder.workspace.display(),
                Holder::name(Some(&holder))
            ));
        }
    }
    Ok(format!(
        "workspace {shown} is in use by a run that shares it"
    ))
}

/// The file whose lock stands for a path.
fn file_of(path: &Path, directory: &Path) -> PathBuf {
    let name = Digest::of(path.as_os_str().as_bytes()).hex();
    directory.join(format!("{name}.lock"))
}

/// The locked file, made if it is not there; if somebody else holds it, the file without a lock.
fn locked(path: &Path, hold: Hold) -> io::Result<Result<Locked, File>> {
    loop {
        let file = options().create(true).mode(0o600).open(path)?;
        if let Some(locked) = try_lock(path, file, hold)? {
            return Ok(locked);
        }
    }
}

/// The same of a file that is not made.
fn locked_if_there(path: &Path, hold: Hold) -> io::Result<Option<Result<Locked, File>>> {
    match options().open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => try_lock(path, file?, hold),
    }
}

fn options() -> OpenOptions {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(flags);
    options
}

/// `None` if the file was removed meanwhile: then its lock keeps nobody away.
fn try_lock(path: &Path, file: File, hold: Hold) -> io::Result<Option<Result<Locked, File>>> {
    let attempt = match hold {
        Hold::Alone => File::try_lock,
        Hold::Shared => File::try_lock_shared,
    };
    match past_the_dead(&file, attempt) {
        Ok(()) => {
            let file = Locked(file);
            let found = file.0.metadata()?;
            let is_there = fs::symlink_metadata(path)
                .is_ok_and(|there| (there.dev(), there.ino()) == (found.dev(), found.ino()));
            Ok(is_there.then_some(Ok(file)))
        }
        Err(TryLockError::WouldBlock) => Ok(Some(Err(file))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Who holds a file, as far as it says.
fn read(file: File) -> Option<Holder> {
    let mut text = String::new();
    file.take(64 << 10).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_had_by_one_run_unless_they_share_it() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state/locks");
        let run: RunId = "019a0000-0000-7000-8000-0000aaaa1111".parse().unwrap();
        let take = |path: &str, sharing| {
            let lock = WorkspaceLock::take(Path::new(path), &directory, sharing);
            lock.map_err(|error| {
                error
                    .to_string()
                    .replace(&std::process::id().to_string(), "PID")
            })
        };
        let advice =
            "; wait until it ends, or give --share-workspace if both may change the same files";
        for (held, sharing, wanted, refused) in [
            (
                "/w",
                Sharing::Alone,
                "/w",
                Some("workspace /w is in use by run aaaa1111 (process PID)"),
            ),
            (
                "/w",
                Sharing::Alone,
                "/w/a/b",
                Some("workspace /w/a/b lies in /w, where run aaaa1111 (process PID) works"),
            ),
            (
                "/w/a/b",
                Sharing::Alone,
                "/w",
                Some("workspace /w holds /w/a/b, where run aaaa1111 (process PID) works"),
            ),
            (
                "/w",
                Sharing::Shared,
                "/w",
                Some("workspace /w is in use by a run that shares it"),
            ),
            ("/w/a", Sharing::Alone, "/w/ab", None),
            ("/w", Sharing::Alone, "/v", None),
        ] {
            let mut first = take(held, sharing).unwrap();
            first.name(run);
            let second = take(wanted, Sharing::Alone);
            let expected = refused.map(|text| format!("{text}{advice}"));
            assert_eq!(second.err(), expected, "{held} {wanted}");
            drop(take(wanted, Sharing::Shared).unwrap());
            drop(first);
            drop(take(wanted, Sharing::Alone).unwrap());
        }
        let files = fs::read_dir(&directory).unwrap();
        let left: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        assert_eq!(left, [file_of(Path::new("/"), &directory)]);
    }

    #[test]
    fn a_copy_in_a_process_that_is_being_started_holds_nothing() {
        let place = tempfile::tempdir().unwrap();
        let take = || WorkspaceLock::take(Path::new("/w"), place.path(), Sharing::Alone);
        let lock = take().unwrap();
        let (_, Locked(file)) = lock.own.as_ref().unwrap();
        let _copy = file.try_clone().unwrap();
        drop(lock);
        take().unwrap();
    }

    #[test]
    fn one_that_was_killed_leaves_no_lock_behind() {
        let place = tempfile::tempdir().unwrap();
        let workspace = Path::new("/w");
        let path = file_of(workspace, place.path());
        fs::write(&path, "{\"workspace\":\"/w\",\"process\":1}").unwrap();
        drop(WorkspaceLock::take(workspace, place.path(), Sharing::Alone).unwrap());
        // A file that cannot be read as a holder's, and one in use without any words.
        fs::write(&path, "{").unwrap();
        let _held = locked(&path, Hold::Alone).unwrap().unwrap();
        let refused = WorkspaceLock::take(workspace, place.path(), Sharing::Alone).unwrap_err();
        let text = refused.to_string();
        assert!(
            text.starts_with("workspace /w is in use by another run;"),
            "{text}"
        );
        // A link in place of the file is not followed.
        std::os::unix::fs::symlink(&path, file_of(Path::new("/v"), place.path())).unwrap();
        let refused = WorkspaceLock::take(Path::new("/v"), place.path(), Sharing::Alone);
        assert!(
            matches!(refused, Err(LockError::Unusable(_))),
            "{refused:?}"
        );
    }
}
