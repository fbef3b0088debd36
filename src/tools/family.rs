//! Families of processes: one that was started, and everything that descends from it.
//!
//! A family is its leader's process group and, on Linux, every process whose environment carries
//! the mark of the leader, or that descends from it when it is ended. It is ended as a whole. All
//! that live are known here, so that a program that must leave at once leaves nothing behind.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
#[cfg(target_os = "linux")]
use rustix::process::{WaitId, WaitIdOptions, WaitOptions};
use tokio::process::Child;

/// The variable that marks a process and all that descends from it.
pub(crate) const MARK: &str = "UNDERTEXT_CALL";

/// The families that live.
static LIVING: Mutex<Living> = Mutex::new(Living {
    closed: false,
    leaders: Vec::new(),
});

#[derive(Debug)]
struct Living {
    /// Nothing begins any more.
    closed: bool,
    leaders: Vec<Pid>,
}

/// Those that live. Every change is whole, also if its thread then panicked.
fn living() -> MutexGuard<'static, Living> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every process that tools of this process have started, and refuses to start more.
///
/// For a program that is about to exit and does not wait for its hands.
pub fn end_all() {
    let leaders = {
        let mut living = living();
        living.closed = true;
        std::mem::take(&mut living.leaders)
    };
    for leader in leaders {
        let descendants = descendants(Some(leader));
        rustix::process::kill_process_group(leader, Signal::KILL).ok();
        rustix::process::kill_process(leader, Signal::KILL).ok();
        end_each(&descendants);
    }
    end_marked(&format!("{MARK}={}.", std::process::id()));
}

/// A process and everything that descends from it. All of it is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Family {
    leader: Option<Pid>,
    /// Looked for while the leader lives: what it leaves behind has another parent.
    descendants: Vec<OwnedFd>,
    mark: String,
    ended: bool,
}

impl Family {
    /// Begins a family with the process that `spawn` starts as the leader of a group, with this
    /// mark in its environment.
    pub(crate) fn begin(
        spawn: impl FnOnce(&str) -> io::Result<Child>,
    ) -> io::Result<(Child, Self)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}.{number}.", std::process::id());
        // Held while it starts: whoever ends all of them must know of this one.
        let mut living = living();
        if living.closed {
            return Err(io::Error::other("the program is ending"));
        }
        let child = spawn(&mark)?;
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        living.leaders.extend(leader);
        let family = Self {
            leader,
            descendants: Vec::new(),
            mark,
            ended: false,
        };
        Ok((child, family))
    }

    /// Asks the process and its group to end, and remembers what descends from it until then.
    pub(crate) fn ask_to_end(&mut self) {
        self.descendants.extend(descendants(self.leader));
        self.signal(Signal::TERM);
    }

    /// Ends all of it.
    pub(crate) fn end(&mut self) {
        if !self.ended {
            self.descendants.extend(descendants(self.leader));
            self.signal(Signal::KILL);
            end_each(&self.descendants);
            end_marked(&format!("{MARK}={}", self.mark));
            self.ended = true;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            rustix::process::kill_process_group(leader, signal).ok();
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        self.end();
        // Known until its leader is waited for, so that nobody else does.
        if let Some(leader) = self.leader {
            release(leader);
        }
    }
}

/// Lets a process that is no tool's be known as one that lives; whether it may.
#[cfg(target_os = "linux")]
pub(crate) fn adopt(leader: Pid) -> bool {
    let mut living = living();
    if !living.closed {
        living.leaders.push(leader);
    }
    !living.closed
}

/// Forgets a process that has ended.
pub(crate) fn release(leader: Pid) {
    let mut living = living();
    if let Some(at) = living.leaders.iter().position(|known| *known == leader) {
        living.leaders.swap_remove(at);
    }
}

/// Whether this process has no child, ended or not, and so nothing that descends from it.
#[cfg(target_os = "linux")]
pub(crate) fn is_childless() -> bool {
    let looked = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::All, looked).is_err_and(|error| error == Errno::CHILD)
}

/// Ends everything that descends from this process: none of it is wanted.
#[cfg(target_os = "linux")]
pub(crate) fn end_strays() {
    const PASSES: usize = 500;
    if is_childless() {
        return;
    }
    for _ in 0..PASSES {
        bury();
        let strays = descendants(Some(rustix::process::getpid()));
        if strays.is_empty() {
            return;
        }
        end_each(&strays);
        std::thread::sleep(Duration::from_millis(1));
    }
    tracing::warn!("processes that were left behind could not be ended");
}

/// Elsewhere what was left behind has other parents.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end_strays() {}

/// Waits for those that have ended and came to this process when their parents did.
#[cfg(target_os = "linux")]
pub(crate) fn bury() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    for process in processes() {
        if process.ended && process.parent == own {
            // Asked with the lock: one that just began is known by then.
            let living = living();
            let pid = Pid::from_raw(process.id).filter(|pid| !living.leaders.contains(pid));
            if pid.is_some() {
                rustix::process::waitpid(pid, WaitOptions::NOHANG).ok();
            }
        }
    }
}

/// Ends every process with a variable that begins so, until there is none, also if they multiply.
#[cfg(target_os = "linux")]
fn end_marked(variable: &str) {
    const PASSES: usize = 500;
    for _ in 0..PASSES {
        if !signal_marked(variable.as_bytes()) {
            return;
        }
        // An ended process keeps its environment for a moment.
        std::thread::sleep(Duration::from_millis(1));
    }
    tracing::warn!(variable, "processes of a call could not be ended");
}

/// Looks for marked processes once; whether there were any.
#[cfg(target_os = "linux")]
fn signal_marked(variable: &[u8]) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    let mut found = false;
    for entry in processes.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.parse().ok())
            .and_then(Pid::from_raw);
        let Some(pid) = pid else { continue };
        // Opened before it is looked at, so that the signal meets what was looked at.
        let flags = rustix::process::PidfdFlags::empty();
        let Ok(process) = rustix::process::pidfd_open(pid, flags) else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|set| set.starts_with(variable))
        {
            found = true;
            rustix::process::pidfd_send_signal(&process, Signal::KILL).ok();
        }
    }
    found
}

#[cfg(target_os = "linux")]
fn end_each(processes: &[OwnedFd]) {
    for process in processes {
        rustix::process::pidfd_send_signal(process, Signal::KILL).ok();
    }
}

#[cfg(not(target_os = "linux"))]
fn end_each(_processes: &[OwnedFd]) {}

/// A process as the system lists it.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug)]
struct Listed {
    id: i32,
    parent: i32,
    /// Whether it has ended and is waited for.
    ended: bool,
    threads: u64,
    /// What it holds in memory, in pages, shared or not.
    pages: u64,
}

/// All processes.
#[cfg(target_os = "linux")]
fn processes() -> impl Iterator<Item = Listed> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(entry.path().join("stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // `pid (name) state parent …`, where the name may hold anything.
        let mut fields = stat.rsplit(") ").next()?.split(' ');
        Some(Listed {
            id,
            ended: fields.next() == Some("Z"),
            parent: fields.next()?.parse().ok()?,
            threads: fields.nth(15)?.parse().ok()?,
            pages: fields.nth(3)?.parse().ok()?,
        })
    })
}

/// What descends from a process, whatever group and environment it gave itself.
#[cfg(target_os = "linux")]
fn below(leader: Pid) -> Vec<Listed> {
    let mut children: BTreeMap<i32, Vec<Listed>> = BTreeMap::new();
    for process in processes() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![leader.as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            parents.push(process.id);
            found.push(process);
        }
    }
    found
}

/// The same, held so that a signal meets what was found.
#[cfg(target_os = "linux")]
fn descendants(leader: Option<Pid>) -> Vec<OwnedFd> {
    let found = leader.map(below).unwrap_or_default();
    let held = found.into_iter().filter_map(|process| {
        let flags = rustix::process::PidfdFlags::empty();
        rustix::process::pidfd_open(Pid::from_raw(process.id)?, flags).ok()
    });
    held.collect()
}

/// A process that descends from this one, and what it takes.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    id: i32,
    /// Its threads.
    pub(crate) threads: u64,
    /// What it holds in memory, in bytes; what it shares with others counts as well.
    pub(crate) memory: u64,
}

#[cfg(target_os = "linux")]
impl Taken {
    /// What it holds in memory that no file holds as well, in bytes, its part of what is shared;
    /// nothing if it has ended, what is known already where the system does not tell.
    pub(crate) fn own_memory(&self) -> u64 {
        let text = match std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.id)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return self.memory,
            Err(_) => return 0,
        };
        let kilobytes = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix(" kB")?.parse().ok()
        };
        let parts = [kilobytes("Pss_Anon:"), kilobytes("Pss_Shmem:")];
        let sum: Option<u64> = parts.into_iter().sum();
        sum.or_else(|| kilobytes("Pss:")).unwrap_or(0) << 10
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        if let Some(id) = Pid::from_raw(self.id) {
            rustix::process::kill_process(id, Signal::KILL).ok();
        }
    }
}

/// What descends from this process takes this.
#[cfg(target_os = "linux")]
pub(crate) fn taken() -> Vec<Taken> {
    let page = rustix::param::page_size() as u64;
    let found = below(rustix::process::getpid()).into_iter();
    let found = found.map(|process| Taken {
        id: process.id,
        threads: process.threads,
        memory: process.pages * page,
    });
    found.collect()
}

/// Elsewhere the group has to do.
#[cfg(not(target_os = "linux"))]
fn descendants(_leader: Option<Pid>) -> Vec<OwnedFd> {
    Vec::new()
}

/// Elsewhere the environment of other processes cannot be seen: the group has to do.
#[cfg(not(target_os = "linux"))]
fn end_marked(_variable: &str) {}
