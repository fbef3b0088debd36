//! What descends from a process, as the system lists it: found, counted, stopped and ended.
//!
//! What is stopped begins no other process. So what multiplies is stopped before it is ended, until a
//! look finds none that was not: what is only ended, one by one, makes room for others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

/// How often what should be gone is looked for.
pub(super) const LOOKS: usize = 500;

/// How often it is ended without being stopped first: few processes do not multiply.
const SIMPLY: usize = 2;

/// How long it may take to be gone before it is looked for again.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// A process as the system lists it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    pub(super) id: i32,
    pub(super) parent: i32,
    /// Whether it has ended and is waited for.
    pub(super) ended: bool,
    /// When it began: another one that has its number later began later.
    began: u64,
    /// Its threads.
    pub(crate) threads: u64,
    /// What it holds in memory, in pages, shared or not.
    pages: u64,
}

impl Listed {
    /// The process of this number as it is now.
    fn of(id: i32) -> Option<Self> {
        let stat = told(format!("/proc/{id}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // `pid (name) state parent …`, where the name may hold anything.
        let mut fields = stat.rsplit(") ").next()?.split(' ');
        Some(Self {
            id,
            ended: fields.next() == Some("Z"),
            parent: fields.next()?.parse().ok()?,
            threads: fields.nth(15)?.parse().ok()?,
            began: fields.nth(1)?.parse().ok()?,
            pages: fields.nth(1)?.parse().ok()?,
        })
    }

    /// Sends it a signal, unless another has its number by now.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.id) else {
            return;
        };
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(held) => {
                // Looked at again once it is held.
                if Self::of(self.id).is_some_and(|now| now.began == self.began) {
                    rustix::process::pidfd_send_signal(&held, signal).ok();
                }
            }
            Err(Errno::SRCH) => {}
            // Nothing more can be opened.
            Err(_) => {
                rustix::process::kill_process(pid, signal).ok();
            }
        }
    }

    /// What it holds in memory, in bytes; what it shares with others counts as well.
    pub(crate) fn memory(&self) -> u64 {
        self.pages * rustix::param::page_size() as u64
    }

    /// What it holds in memory that no file holds as well, in bytes, its part of what is shared;
    /// nothing if it has ended, all of it where the system does not tell.
    pub(crate) fn own_memory(&self) -> u64 {
        let text = match std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.id)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return self.memory(),
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
}

/// What a file of `/proc` says. Such a file says nothing of its length, and is read at once where it
/// fits: read as others are, it takes three times as many system calls.
pub(super) fn told(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(4096);
    let file = File::open(path)?;
    file.take(u64::MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// All processes.
pub(super) fn processes() -> impl Iterator<Item = Listed> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Listed::of(entry.file_name().to_str()?.parse().ok()?))
}

/// What descends from a process, whatever group and environment it gave itself.
pub(crate) fn below(leader: Pid) -> Vec<Listed> {
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

/// The same without what has ended.
fn living_below(leader: Pid) -> Vec<Listed> {
    let mut found = below(leader);
    found.retain(|process| !process.ended);
    found
}

/// Ends everything below a process, also if it multiplies; whether it was seen to be gone.
///
/// What gets another parent when its own ends must get this process, or one below it.
pub(super) fn end_below(leader: Pid) -> bool {
    for look in 0..LOOKS {
        let mut found = living_below(leader);
        if look >= SIMPLY {
            found = stop_below(leader, found);
        }
        if found.is_empty() {
            return true;
        }
        for process in &found {
            process.signal(Signal::KILL);
        }
        std::thread::sleep(PAUSE);
    }
    false
}

/// Stops everything below a process, of which this was found, until two looks in a row find nothing
/// that is new: what began behind one look is seen by the next.
fn stop_below(leader: Pid, mut found: Vec<Listed>) -> Vec<Listed> {
    let mut stopped = BTreeSet::new();
    let mut quiet = 0;
    for _ in 0..LOOKS {
        let mut is_quiet = true;
        for process in &found {
            if stopped.insert((process.id, process.began)) {
                process.signal(Signal::STOP);
                is_quiet = false;
            }
        }
        quiet = if is_quiet { quiet + 1 } else { 0 };
        if quiet == 2 {
            break;
        }
        found = living_below(leader);
    }
    found
}
