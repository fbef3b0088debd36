//! Which ways out are closed, and by what.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::sandbox::{Bounds, Enforced, Mechanism};

/// A way out of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Writing, moving or removing files outside the workspace.
    Write,
    /// Changing mode, owner, times or attributes of files outside it.
    Attributes,
    /// The hooks and the configuration of repositories in the workspace.
    Repositories,
    /// Repositories that tools make themselves, below the workspace.
    NewRepositories,
    /// Files in the workspace that give whoever runs them the rights of their owner or group.
    Modes,
    /// Reading the rest of home, keys, settings and transcripts.
    Read,
    /// Which files there are in what may not be read, how large they are and when they change.
    Names,
    /// The network, name look-ups and services of this machine.
    Network,
    /// Named and abstract sockets: buses, containers, agents.
    Sockets,
    /// Signals to other processes.
    Signals,
    /// Limits of other processes, which end them as well.
    Limits,
    /// The priority, the scheduling and the processors of other processes.
    Priorities,
    /// Messages and memory that processes share by a number.
    Messages,
    /// The arguments that other processes were started with.
    Arguments,
    /// Reading and tracing other processes.
    Processes,
    /// Mounts, namespaces, modules, keyrings and other doors of the kernel.
    Kernel,
    /// Processes that outlive the run.
    Leftovers,
    /// More processes than the machine can bear.
    Bombs,
    /// Memory that the kernel holds for processes, and that none of them has mapped.
    Memory,
}

/// How a way is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// Closed, by this, but for what the user allowed.
    By(Cow<'static, str>),
    /// Open: why, what is done instead, or that the user opened it.
    Open(Cow<'static, str>),
}

impl Held {
    fn by(what: &'static str) -> Self {
        Self::By(Cow::Borrowed(what))
    }

    fn open(why: &'static str) -> Self {
        Self::Open(Cow::Borrowed(why))
    }

    /// The same where the user allowed a part of it.
    fn but_for(self, allowed: &str) -> Self {
        match self {
            Self::By(what) if !allowed.is_empty() => {
                Self::By(format!("{what}; but for {allowed}, as you said").into())
            }
            same @ (Self::By(_) | Self::Open(_)) => same,
        }
    }
}

impl Class {
    /// All of them, in order.
    pub const ALL: [Self; 19] = [
        Self::Write,
        Self::Attributes,
        Self::Repositories,
        Self::NewRepositories,
        Self::Modes,
        Self::Read,
        Self::Names,
        Self::Network,
        Self::Sockets,
        Self::Signals,
        Self::Limits,
        Self::Priorities,
        Self::Messages,
        Self::Arguments,
        Self::Processes,
        Self::Kernel,
        Self::Leftovers,
        Self::Bombs,
        Self::Memory,
    ];

    /// What it is called.
    pub fn label(self) -> &'static str {
        match self {
            Self::Write => "writing outside the workspace",
            Self::Attributes => "modes, owners and times of files outside it",
            Self::Repositories => "hooks and config of repositories that are there",
            Self::NewRepositories => "repositories that tools make in the workspace",
            Self::Modes => "setuid and setgid files in the workspace",
            Self::Read => "reading home, keys and other transcripts",
            Self::Names => "names, sizes and times of files that may not be read",
            Self::Network => "the network and services of this machine",
            Self::Sockets => "sockets of buses, containers and agents",
            Self::Signals => "signals to other processes",
            Self::Limits => "limits of other processes",
            Self::Priorities => "priorities and processors of other processes",
            Self::Messages => "System V messages and memory of other processes",
            Self::Arguments => "the command lines of other processes",
            Self::Processes => "memory and variables of other processes",
            Self::Kernel => "mounts, namespaces, modules, keyrings",
            Self::Leftovers => "processes that outlive the run",
            Self::Bombs => "thousands of processes",
            Self::Memory => "memory that no process has mapped",
        }
    }
}

/// Which of the ways out are closed by what was enforced, within these bounds.
pub fn stopped(by: &Enforced, bounds: &Bounds) -> Vec<(Class, Held)> {
    Class::ALL
        .into_iter()
        .map(|class| (class, within(bounds, class, held(by, bounds, class))))
        .collect()
}

/// How a way is held where the user opened nothing but what the bounds change of the mechanism.
fn held(by: &Enforced, bounds: &Bounds, class: Class) -> Held {
    let (spaces, scoped) = (by.mechanism == Mechanism::Namespaces, by.landlock >= 6);
    match class {
        Class::Write | Class::Read | Class::Names if spaces => Held::by("a file system of its own"),
        Class::Write => Held::by("Landlock"),
        Class::Read => Held::by("Landlock; parts of the workspace itself cannot be hidden"),
        Class::Attributes if spaces => Held::by("read-only mounts"),
        Class::Repositories if spaces => {
            Held::by("read-only mounts; what runs is ended, should you replace one of them")
        }
        Class::Attributes | Class::Names => Held::open("Landlock knows no right for them"),
        Class::Repositories | Class::NewRepositories => {
            Held::open("file tools refuse them, commands are not kept from them")
        }
        Class::Modes => Held::by(
            "a filter of system calls; but for your own that a program maps, and for setgid if what they may \
             write, or a directory in it, is setgid",
        ),
        Class::Network if spaces => Held::by("a network of its own"),
        Class::Sockets if spaces && !bounds.open => {
            Held::by("a file system and a network of its own, but for those in what it may read")
        }
        Class::Sockets if spaces && scoped => {
            Held::by("a file system of its own and Landlock, but for those in what it may read")
        }
        Class::Network | Class::Sockets | Class::Limits => Held::by("a filter of system calls"),
        Class::Messages if spaces => Held::by("messages of its own"),
        Class::Messages => Held::open("they are those of this machine"),
        Class::Signals | Class::Priorities | Class::Arguments if spaces => {
            Held::by("processes of its own")
        }
        Class::Priorities => Held::open("no filter can tell them from those of its own threads"),
        Class::Arguments => Held::open("/proc shows them"),
        Class::Signals if scoped => Held::by("Landlock"),
        Class::Signals => Held::open("this Landlock is too old for it"),
        Class::Processes if spaces => {
            Held::by("processes of its own, and a filter of system calls")
        }
        Class::Processes => Held::by("Landlock and a filter of system calls"),
        Class::Kernel => Held::by("a filter of system calls; no capabilities"),
        Class::Leftovers if spaces => Held::by("the kernel: they end with their first process"),
        Class::Leftovers if scoped => {
            Held::by("a process beside that tools cannot signal, which ends them")
        }
        Class::Bombs if spaces => Held::by("a count ten times a second; they end all at once"),
        Class::Bombs if scoped => {
            Held::by("a count ten times a second; they are stopped, then ended")
        }
        Class::Memory if spaces => {
            Held::open("/dev/shm is limited; memfds, pipes, sockets and messages are not counted")
        }
        Class::Memory => Held::open("memfds, pipes and sockets are not counted"),
        Class::Leftovers | Class::Bombs => {
            Held::open("they are ended, unless they kill the processes that see to it")
        }
    }
}

/// What is left of it where the user opened some of it, or all.
fn within(bounds: &Bounds, class: Class, held: Held) -> Held {
    match class {
        Class::Network if bounds.open => Held::open("you opened it (sandbox.network)"),
        Class::Network => held.but_for(&bounds.hosts.join(", ")),
        Class::Write | Class::Attributes => held.but_for(&told(bounds, &bounds.written_outside())),
        Class::Read => {
            let read = bounds.read_at_home();
            let home = bounds.home.as_deref();
            match read.iter().find(|path| holds(path, home)) {
                Some(path) => Held::Open(format!("you opened {}", path.display()).into()),
                None => held.but_for(&told(bounds, &read)),
            }
        }
        Class::Repositories => {
            let named = bounds.unprotected.iter().filter(|path| bounds.writes(path));
            held.but_for(&told(
                bounds,
                &named.map(PathBuf::as_path).collect::<Vec<_>>(),
            ))
        }
        Class::NewRepositories
        | Class::Modes
        | Class::Names
        | Class::Sockets
        | Class::Signals
        | Class::Limits
        | Class::Priorities
        | Class::Messages
        | Class::Arguments
        | Class::Processes
        | Class::Kernel
        | Class::Leftovers
        | Class::Bombs
        | Class::Memory => held,
    }
}

/// Whether the home directory lies in this path, or is it.
fn holds(path: &Path, home: Option<&Path>) -> bool {
    home.is_some_and(|home| home.starts_with(path))
}

/// `/a, b`: what lies in the workspace is named from there.
fn told(bounds: &Bounds, paths: &[&Path]) -> String {
    let workspace = bounds.write.iter().chain(&bounds.roots).next();
    let named = |path: &&Path| {
        let below = workspace.and_then(|workspace| path.strip_prefix(workspace).ok());
        let below = below.filter(|below| !below.as_os_str().is_empty());
        below.unwrap_or(path).display().to_string()
    };
    let paths = paths.iter().map(named);
    paths.collect::<Vec<_>>().join(", ")
}
