//! The sandbox: what the process in which tools run may reach, enforced by the kernel.
//!
//! [`Bounds`] say what may be read, written and reached; they are worked out once, before the run,
//! from what the user said and from nothing else. On Linux a process that has just begun holds
//! itself to them for good, and everything it starts inherits that: nothing is decided a call, no
//! argument of a tool and no file of the workspace changes it.
//!
//! Two [`Mechanism`]s do it. With *namespaces* the process sees a file system of its own, in which
//! only what may be read is there and only what may be written can be written; it has its own
//! processes and its own network. Where the system does not allow that, Landlock alone refuses what
//! is out of bounds. A filter of system calls stands beside either. What cannot be held to either is
//! refused: there is no third way, and [`stopped`] says which of the usual ways out each of them
//! closes.

mod bounds;
mod classes;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod loopback;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
mod protected;
#[cfg(target_os = "linux")]
mod seccomp;

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use self::bounds::{Bounds, Home, KNOWN_DIRECTORIES, Way};
pub use self::classes::{Class, Held, stopped};
#[cfg(target_os = "linux")]
pub(crate) use self::namespaces::{begin_own, map_ids};
#[cfg(target_os = "linux")]
pub(crate) use self::protected::remove_placeholders;

/// What holds a process to its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// Namespaces of its own, with Landlock where there is one.
    Namespaces,
    /// Landlock alone.
    Landlock,
}

/// What was enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// By what.
    pub mechanism: Mechanism,
    /// The version of Landlock, 0 without it.
    pub landlock: u8,
    /// Directories and files that were made only to be protected. They are removed at the end.
    #[serde(default, with = "os_paths")]
    pub placeholders: Vec<PathBuf>,
}

/// The bounds cannot be enforced.
#[derive(Debug, thiserror::Error)]
pub enum Unenforceable {
    /// A step of it failed.
    #[error("{step}")]
    Step {
        /// What could not be done.
        step: String,
        /// Why.
        source: io::Error,
    },
    /// Landlock is not there, or too old to be enough alone.
    #[error("{0}")]
    Landlock(String),
    /// The filter of system calls cannot be had.
    #[error("system calls cannot be filtered: {0}")]
    Seccomp(String),
    /// Without a network of its own nothing can be let through.
    #[error(
        "single hosts can be allowed only where namespaces can be had; --network allows all of them"
    )]
    Hosts,
    /// What must be protected is a link, which cannot be.
    #[error(
        "{} is a link and cannot be protected; name .git in sandbox.write if tools may replace it",
        .0.display()
    )]
    Link(PathBuf),
    /// This system has no such thing.
    #[error("there is no sandbox for this system")]
    NoSystem,
}

impl Unenforceable {
    /// A step that failed.
    #[cfg(target_os = "linux")]
    fn step(step: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Step {
            step: step.into(),
            source: source.into(),
        }
    }
}

/// Holds this process, which has one thread, to these bounds, by this mechanism.
#[cfg(target_os = "linux")]
pub(crate) fn enforce(bounds: &Bounds, mechanism: Mechanism) -> Result<Enforced, Unenforceable> {
    if mechanism == Mechanism::Landlock && !bounds.hosts.is_empty() {
        return Err(Unenforceable::Hosts);
    }
    privileges::limit(bounds)?;
    let placeholders = match mechanism {
        Mechanism::Namespaces => {
            if !bounds.open {
                loopback::raise()?;
            }
            mounts::build(bounds)?
        }
        Mechanism::Landlock => Vec::new(),
    };
    privileges::drop_all()?;
    let landlock = landlock::restrict(bounds, mechanism)?;
    seccomp::filter(bounds, mechanism, landlock)?;
    Ok(Enforced {
        mechanism,
        landlock,
        placeholders,
    })
}

/// Paths as bytes, which need not be text.
pub(crate) mod os_paths {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        let paths = paths.iter().map(|path| path.as_os_str().to_owned());
        paths.collect::<Vec<OsString>>().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let paths = Vec::<OsString>::deserialize(from)?;
        Ok(paths.into_iter().map(PathBuf::from).collect())
    }
}

#[cfg(test)]
mod tests;
