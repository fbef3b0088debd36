//! How a confined process is started, and why it cannot be.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use crate::hands::Upstream;
use crate::hands::keeper::Starting;

/// How a confined process begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// As one that is told how once that is known.
    Ahead,
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
    const ALL: [Self; 8] = [
        Self::Ahead,
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
            Self::Ahead => "ahead",
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

impl Launch {
    /// Starts the process now, to be told later what it is to do: who has work of their own to do until
    /// they know spares the time that a program takes to begin. It ends by itself if this is dropped.
    pub fn ahead(self) -> Ahead {
        let begun = Begun::start(&self, Stage::Ahead).ok();
        Ahead {
            launch: self,
            begun,
        }
    }
}

/// How a confined process is started, and the first one, if it is started already.
#[derive(Debug)]
pub struct Ahead {
    pub(super) launch: Launch,
    /// `None`: it is started when it is needed.
    pub(super) begun: Option<Begun>,
}

impl From<Launch> for Ahead {
    fn from(launch: Launch) -> Self {
        Self {
            launch,
            begun: None,
        }
    }
}

/// A process that is being started, and the way to it.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) stream: UnixStream,
    pub(super) starting: Starting,
}

impl Begun {
    /// Starts one at this stage.
    pub(super) fn start(launch: &Launch, stage: Stage) -> io::Result<Self> {
        let (stream, theirs) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        let starting = Starting::begin(launch, stage, theirs)?;
        Ok(Self { stream, starting })
    }
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
