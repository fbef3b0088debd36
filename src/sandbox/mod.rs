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

#[cfg(target_os = "linux")]
mod altered;
#[cfg(target_os = "linux")]
mod beyond;
mod bounds;
mod classes;
#[cfg(target_os = "linux")]
mod ground;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod loopback;
#[cfg(target_os = "linux")]
mod layers;
#[cfg(target_os = "linux")]
mod modes;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod ours;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod placeholders;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
mod protected;
#[cfg(target_os = "linux")]
mod repositories;
#[cfg(target_os = "linux")]
mod scene;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod settings;

use std::io;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
pub use self::altered::has_names_elsewhere;
pub use self::bounds::{Bounds, Home, KNOWN_DIRECTORIES, Way};
pub use self::classes::{Class, Held, stopped};
#[cfg(target_os = "linux")]
pub(crate) use self::ground::{Ground, is_in_repository};
#[cfg(target_os = "linux")]
pub(crate) use self::namespaces::{begin_own, map_ids};
#[cfg(target_os = "linux")]
pub(crate) use self::paths::{follow, is_there, of as path_of, open};
#[cfg(target_os = "linux")]
pub(crate) use self::placeholders::remove_placeholders;
#[cfg(target_os = "linux")]
pub(crate) use self::protected::Protected;

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
    /// What a person should know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
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
    /// Namespaces can be had, but are of no use.
    #[error("{0}")]
    Namespaces(&'static str, #[source] io::Error),
    /// Landlock is not there, or too old to be enough alone.
    #[error("{0}")]
    Landlock(String),
    /// The filter of system calls cannot be had.
    #[error("system calls cannot be filtered: {0}")]
    Seccomp(String),
    /// Without a network of its own nothing can be let through.
    #[error(
        "single hosts can be allowed only where namespaces can be had; --network=open allows all"
    )]
    Hosts,
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

/// What stands around a process that holds itself to its bounds.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(crate) struct Walls {
    /// What was enforced.
    pub(crate) enforced: Enforced,
    /// What of the workspace is protected.
    pub(crate) protected: Protected,
    mounts: mounts::Mounts,
    /// Those that are used for as long as these walls stand.
    _placeholders: Vec<protected::Placeholder>,
}

#[cfg(target_os = "linux")]
impl Walls {
    /// What is not held any more, because something else was put in its place from outside.
    pub(crate) fn breach(&self) -> Option<&Path> {
        self.mounts.missing()
    }
}

/// Holds this process, which has one thread, to these bounds, by this mechanism.
#[cfg(target_os = "linux")]
pub(crate) fn enforce(bounds: &Bounds, mechanism: Mechanism) -> Result<Walls, Unenforceable> {
    if mechanism == Mechanism::Landlock && !bounds.hosts.is_empty() {
        return Err(Unenforceable::Hosts);
    }
    privileges::limit(bounds)?;
    if mechanism == Mechanism::Namespaces && !bounds.open {
        loopback::raise()?;
    }
    if mechanism == Mechanism::Namespaces
        && let Some(memory) = bounds.limits.memory
    {
        namespaces::limit_segments(memory);
    }
    let (protected, placeholders) = repositories::find(bounds, mechanism)?;
    let built = match mechanism {
        Mechanism::Namespaces => mounts::Mounts::build(bounds, &protected),
        Mechanism::Landlock => Ok(mounts::Mounts::default()),
    };
    let paths: Vec<PathBuf> = placeholders.iter().map(|one| one.path.clone()).collect();
    let held = built.and_then(|mounts| {
        privileges::drop_all()?;
        let landlock = landlock::restrict(bounds, &protected, mechanism)?;
        seccomp::filter(bounds, mechanism, landlock)?;
        Ok((mounts, landlock))
    });
    let (mounts, landlock) = match held {
        Ok(held) => held,
        Err(error) => {
            // Nobody is told of what was made.
            drop(placeholders);
            remove_placeholders(&paths);
            return Err(error);
        }
    };
    let mut told = protected.told.clone();
    told.extend(modes::shared(bounds).map(|place| {
        let place = place.display();
        format!("modes with setgid are let through, since {place} has one")
    }));
    let enforced = Enforced {
        mechanism,
        landlock,
        placeholders: paths,
        told,
    };
    Ok(Walls {
        enforced,
        protected,
        mounts,
        _placeholders: placeholders,
    })
}

/// A path as bytes, if there is one.
pub(crate) mod os_path {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "it is how a field is handed over")]
    pub(crate) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_ref().map(|path| path.as_os_str()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<OsString>::deserialize(from)?.map(PathBuf::from))
    }
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
