//! Which ways out are closed, and by what.

use serde::Serialize;

use crate::sandbox::{Enforced, Mechanism};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// Closed, by this.
    By(&'static str),
    /// Open: why, or what is done instead.
    Open(&'static str),
}

impl Class {
    /// All of them, in order.
    pub const ALL: [Self; 18] = [
        Self::Write,
        Self::Attributes,
        Self::Repositories,
        Self::NewRepositories,
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

/// Which of the ways out are closed by what was enforced.
pub fn stopped(by: &Enforced) -> Vec<(Class, Held)> {
    let (spaces, scoped) = (by.mechanism == Mechanism::Namespaces, by.landlock >= 6);
    let held = |class| match class {
        Class::Write | Class::Read | Class::Names if spaces => Held::By("a file system of its own"),
        Class::Write => Held::By("Landlock"),
        Class::Read => Held::By("Landlock; parts of the workspace itself cannot be hidden"),
        Class::Attributes if spaces => Held::By("read-only mounts"),
        Class::Repositories if spaces => {
            Held::By("read-only mounts; what runs is ended, should you replace one of them")
        }
        Class::Attributes | Class::Names => Held::Open("Landlock knows no right for them"),
        Class::Repositories | Class::NewRepositories => {
            Held::Open("file tools refuse them, commands are not kept from them")
        }
        Class::Network if spaces => Held::By("a network of its own"),
        Class::Sockets if spaces => {
            Held::By("a file system and a network of its own, but for those in what it may read")
        }
        Class::Network | Class::Sockets | Class::Limits => Held::By("a filter of system calls"),
        Class::Messages if spaces => Held::By("messages of its own"),
        Class::Messages => Held::Open("they are those of this machine"),
        Class::Signals | Class::Priorities | Class::Arguments if spaces => {
            Held::By("processes of its own")
        }
        Class::Priorities => Held::Open("no filter can tell them from those of its own threads"),
        Class::Arguments => Held::Open("/proc shows them"),
        Class::Signals if scoped => Held::By("Landlock"),
        Class::Signals => Held::Open("this Landlock is too old for it"),
        Class::Processes if spaces => {
            Held::By("processes of its own, and a filter of system calls")
        }
        Class::Processes => Held::By("Landlock and a filter of system calls"),
        Class::Kernel => Held::By("a filter of system calls; no capabilities"),
        Class::Leftovers if spaces => Held::By("the kernel: they end with their first process"),
        Class::Leftovers if scoped => {
            Held::By("a process beside that tools cannot signal, which ends them")
        }
        Class::Bombs if spaces => Held::By("a count ten times a second; they end all at once"),
        Class::Bombs if scoped => {
            Held::By("a count ten times a second; they are stopped, then ended")
        }
        Class::Memory if spaces => {
            Held::Open("/dev/shm is limited; memfds, pipes, sockets and messages are not counted")
        }
        Class::Memory => Held::Open("memfds, pipes and sockets are not counted"),
        Class::Leftovers | Class::Bombs => {
            Held::Open("they are ended, unless they kill the processes that see to it")
        }
    };
    Class::ALL
        .into_iter()
        .map(|class| (class, held(class)))
        .collect()
}
