//! How a confined process is started, and why it cannot be.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::hands::Upstream;

/// How a confined process begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// As the warden of one that Landlock alone holds.
    Alone,
    /// As the one that it starts.
    Kept,
    /// As the one that takes namespaces, but for that of the network.
    ApartOnline,
    /// As the one that takes namespaces.
    Apart,
    /// As their first process.
    Inside,
    /// As the warden of one that nothing holds.
    Free,
    /// As the one that it starts.
    Loose,
}

impl Stage {
    /// All of them.
    const ALL: [Self; 7] = [
        Self::Alone,
        Self::Kept,
        Self::ApartOnline,
        Self::Apart,
        Self::Inside,
        Self::Free,
        Self::Loose,
    ];

    /// The word that a process is started with.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Kept => "kept",
            Self::ApartOnline => "apart-online",
            Self::Apart => "apart",
            Self::Inside => "inside",
            Self::Free => "free",
            Self::Loose => "loose",
        }
    }

    /// The stage of this word.
    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.word() == word)
    }
}

/// How a confined process is started: a program that, started with these arguments and one more, a
/// stage, does nothing but call [`attend`](crate::hands::attend) with that.
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
    /// This system lacks what it takes, whatever the bounds are.
    #[error("{0}")]
    Without(String),
    /// Without a network of its own nothing can be let through.
    #[error(
        "single hosts can be allowed only where namespaces can be had; --network=open allows all"
    )]
    Hosts,
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
