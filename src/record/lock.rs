//! The lock that makes a writer the only one.
//!
//! It is the operating system's lock on the transcript itself, not on a file beside it: it follows
//! the file when it is renamed, cannot be left behind, and ends with the process that holds it.
//! Whether the path still leads to the locked file is another question, which storage asks before
//! every write.
//!
//! A process that is killed while it starts another one leaves a copy of all that it had open, until
//! the other's program takes over. Such a copy is waited for: see [`past_the_dead`].

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

/// How long a copy that a dead process left may keep its lock.
const PATIENCE: Duration = Duration::from_millis(600);

/// How often is looked whether it still does.
const PAUSE: Duration = Duration::from_millis(5);

/// The lock cannot be had.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another process has it.
    InUse,
    /// The file system has no locks that work.
    Unusable(io::Error),
}

/// Locks the file for as long as it is open, without waiting for anybody who lives.
pub(super) fn take(file: &File) -> Result<(), LockError> {
    taken(|| past_the_dead(file, File::try_lock))
}

/// Attempts to lock the file, which is not waited for if a process that lives has it. If the one
/// that took the lock is dead, a copy is left of what it had open, and that is waited for a moment.
pub fn past_the_dead(
    file: &File,
    attempt: impl Fn(&File) -> Result<(), TryLockError>,
) -> Result<(), TryLockError> {
    past_the_dead_within(PATIENCE, file, attempt)
}

fn past_the_dead_within(
    patience: Duration,
    file: &File,
    attempt: impl Fn(&File) -> Result<(), TryLockError>,
) -> Result<(), TryLockError> {
    let mut left = patience;
    loop {
        match attempt(file) {
            Err(TryLockError::WouldBlock) if !left.is_zero() && is_of_the_dead(file) => {
                std::thread::sleep(PAUSE);
                left = left.saturating_sub(PAUSE);
            }
            done => return done,
        }
    }
}

/// Whether no process that lives is known to have locked the file. Where the system does not tell,
/// somebody lives.
fn is_of_the_dead(file: &File) -> bool {
    let (Ok(found), Ok(locks)) = (file.metadata(), fs::read_to_string("/proc/locks")) else {
        return false;
    };
    // `1: FLOCK  ADVISORY  WRITE 4711 fe:00:10338409 0 EOF`: who took the lock, and on which file. Some
    // file systems have other devices than they say, so files are told apart by the last number alone.
    let end = format!(":{}", found.ino());
    !locks.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let kind = words.next();
        let process = words.nth(2).unwrap_or_default();
        let is_it = kind == Some("FLOCK") && words.next().is_some_and(|word| word.ends_with(&end));
        is_it && lives(process)
    })
}

/// Whether the process of this number runs. One that nobody has waited for yet does not.
fn lives(process: &str) -> bool {
    let Ok(state) = fs::read_to_string(format!("/proc/{process}/stat")) else {
        return false;
    };
    let state = state.rsplit(") ").next();
    state.is_none_or(|state| !state.starts_with(['Z', 'X']))
}

/// Whether another process has locked the file. It is locked for a moment to see that, beside any
/// other who looks.
pub(super) fn is_taken(file: &File) -> bool {
    let found = taken(|| file.try_lock_shared());
    if found.is_ok() {
        file.unlock().ok();
    }
    matches!(found, Err(LockError::InUse))
}

/// What comes of attempts, of which one that is interrupted is made again.
fn taken(mut attempt: impl FnMut() -> Result<(), TryLockError>) -> Result<(), LockError> {
    loop {
        return match attempt() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(LockError::InUse),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {
                continue;
            }
            Err(TryLockError::Error(error)) => Err(LockError::Unusable(error)),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// What is said where attempts end so.
    fn said(attempts: impl IntoIterator<Item = Result<(), TryLockError>>) -> String {
        let mut attempts = attempts.into_iter();
        match taken(|| attempts.next().unwrap()) {
            Ok(()) => "taken".to_owned(),
            Err(LockError::InUse) => "in use".to_owned(),
            Err(LockError::Unusable(error)) => error.kind().to_string(),
        }
    }

    #[test]
    fn a_file_system_without_locks_is_told_from_a_lock_that_another_has() {
        let error = |kind: io::ErrorKind| Err(TryLockError::Error(kind.into()));
        let interrupted = || error(io::ErrorKind::Interrupted);
        assert_eq!(said([Ok(())]), "taken");
        assert_eq!(said([interrupted(), interrupted(), Ok(())]), "taken");
        assert_eq!(
            said([interrupted(), Err(TryLockError::WouldBlock)]),
            "in use"
        );
        assert_eq!(said([error(io::ErrorKind::Unsupported)]), "unsupported");
    }

    /// A program that takes a lock and ends, beside another one that has the same file open and ends
    /// when it is told to: as when somebody is killed who was just starting another.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_copy_that_a_dead_process_left_is_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let file = File::create(&path).unwrap();
        #[expect(clippy::disallowed_methods, reason = "it is not a tool's")]
        let mut command = Command::new("sh");
        let script = "exec 9<\"$0\"; flock 9 && echo locked; read told";
        command.arg("-c").arg(script).arg(&path);
        let mut copy = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut output = BufReader::new(copy.stdout.take().unwrap());
        output.read_line(&mut said).unwrap();
        if said != "locked\n" {
            println!("skipped: there is no program that takes a lock");
            drop(copy.stdin.take());
            copy.wait().unwrap();
            return;
        }
        assert!(is_of_the_dead(&file));
        let taken = |patience| past_the_dead_within(patience, &file, File::try_lock);
        let at_once = taken(Duration::ZERO);
        assert!(
            matches!(at_once, Err(TryLockError::WouldBlock)),
            "{at_once:?}"
        );
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| taken(LONG));
            drop(copy.stdin.take());
            copy.wait().unwrap();
            waiting.join().unwrap().unwrap();
        });
    }

    #[test]
    fn nobody_waits_for_a_lock_that_somebody_has_who_lives() {
        let place = tempfile::tempdir().unwrap();
        let open = || File::create(place.path().join("file")).unwrap();
        let (held, file) = (open(), open());
        held.lock().unwrap();
        assert!(!is_of_the_dead(&file));
        for attempt in [File::try_lock, File::try_lock_shared] {
            let tried = Cell::new(0);
            let refused = past_the_dead_within(10 * PAUSE, &file, |file| {
                tried.set(tried.get() + 1);
                attempt(file)
            });
            assert!(
                matches!(refused, Err(TryLockError::WouldBlock)),
                "{refused:?}"
            );
            assert_eq!(tried.get(), 1);
        }
    }
}
