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
    loop {
        return match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(LockError::InUse),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {
                continue;
            }
            Err(TryLockError::Error(error)) => Err(LockError::Unusable(error)),
        };
    }
}
