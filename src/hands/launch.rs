//! How a confined process is started, and why it cannot be.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::hands::Upstream;

/// How a confined process is started: a program that, started with these arguments and one of
/// [`STAGES`](crate::hands::STAGES), does nothing but call [`attend`](crate::hands::attend).
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, before the stage.
    pub arguments: Vec<OsString>,
    /// Where it may have a directory of its own.
    pub temporary: PathBuf,
    /// The proxies through which single hosts are reached, if the user's own network has any.
    pub upstream: Option<Upstream>,
}

/// Confined hands cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ConfinedError {
    /// The process cannot be started.
    #[error("the process for tools cannot be started")]
    Start(#[source] io::Error),
    /// It has no directory of its own.
    #[error("no directory can be made below {}", .path.display())]
    Directory {
        /// Where it would be.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It ended, said nothing in time, or nothing that can be understood.
    #[error(
        "the process for tools ended or said nothing in time; `-vv` shows what it complains of"
    )]
    Stranger,
    /// It cannot be held to its bounds.
    #[error("{0}")]
    Refused(String),
    /// Namespaces cannot be had here, whatever the bounds are.
    #[error("{0}")]
    Without(String),
    /// What was named to be written lies elsewhere.
    #[error(
        "{} may not be written: a link in the workspace leads it elsewhere; name in sandbox.write \
         what it leads to",
        .path.display()
    )]
    LedAway {
        /// As it was named.
        path: PathBuf,
    },
}
