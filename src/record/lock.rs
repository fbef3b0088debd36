//! The lock that makes a writer the only one.
//!
//! It is the operating system's lock on the transcript itself, not on a file beside it: it follows
//! the file when it is renamed, cannot be left behind, and ends with the process that holds it.
//! Whether the path still leads to the locked file is another question, which storage asks before
//! every write.

use std::fs::{File, TryLockError};
use std::io;

/// The lock cannot be had.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another process has it.
    InUse,
    /// The file system has no locks that work.
    Unusable(io::Error),
}

/// Locks the file for as long as it is open, without waiting.
pub(super) fn take(file: &File) -> Result<(), LockError> {
    taken(|| file.try_lock())
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
    use super::*;

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
}
