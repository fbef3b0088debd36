//! What tools take of the machine together: looked at many times a second, and ended when it is too
//! much.
//!
//! Memory is what they use, not what they reserve: some programs reserve a thousand times as much.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::setup::Allowance;
use crate::tools::{Outcome, family};
use crate::words::grouped;

/// What they may take together.
#[derive(Debug)]
pub(super) struct Limits {
    processes: u64,
    memory: u64,
    /// What was ended, until it is told.
    told: Mutex<Option<String>>,
}

impl Limits {
    /// Those of this allowance, on this machine.
    pub(super) fn of(allowance: &Allowance) -> Self {
        let usual = || machine_memory().map_or(u64::MAX, |all| all / 4 * 3);
        Self {
            processes: allowance.processes,
            memory: allowance.memory.unwrap_or_else(usual),
            told: Mutex::default(),
        }
    }

    /// Looks at what this process has started, and ends what is too much.
    pub(super) fn look(&self) {
        if family::is_childless() {
            return;
        }
        family::bury();
        let mut taken = family::taken();
        if taken.iter().map(|one| one.threads).sum::<u64>() > self.processes {
            self.remember(format!(
                "[more than {} processes and threads ran at once, which is the limit (sandbox); all \
                 of them were ended; the user allows more with sandbox.limits.processes in \
                 config.yaml]",
                grouped(self.processes)
            ));
            end_all();
            return;
        }
        // Counts twice what is shared, so it is only a first look.
        if taken.iter().map(|one| one.memory).sum::<u64>() <= self.memory {
            return;
        }
        for one in &mut taken {
            one.memory = one.own_memory();
        }
        taken.sort_by_key(|one| one.memory);
        let mut all: u64 = taken.iter().map(|one| one.memory).sum();
        while all > self.memory
            && let Some(largest) = taken.pop()
        {
            self.remember(format!(
                "[processes took more than {} MiB of memory together, which is the limit (sandbox); \
                 the largest was ended; the user allows more with sandbox.limits.memory in \
                 config.yaml]",
                grouped(self.memory >> 20)
            ));
            largest.end();
            all -= largest.memory;
        }
    }

    /// Adds a line if anything was ended since the last call.
    pub(super) fn tell(&self, outcome: &mut Outcome) {
        if let Some(line) = self.told().take() {
            if !(outcome.content.is_empty() || outcome.content.ends_with('\n')) {
                outcome.content.push('\n');
            }
            outcome.content.push_str(&line);
        }
    }

    fn remember(&self, line: String) {
        tracing::warn!("{line}");
        *self.told() = Some(line);
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends everything that this process has started, also if it multiplies.
pub(super) fn end_all() {
    let alone = rustix::process::getpid() == rustix::process::Pid::INIT;
    if alone {
        // All at once, so that none can begin another: only its own are within reach of the first
        // process of a namespace.
        let everybody = nix::unistd::Pid::from_raw(-1);
        nix::sys::signal::kill(everybody, nix::sys::signal::Signal::SIGKILL).ok();
    } else {
        family::end_strays();
    }
}

/// The memory of this machine, or of the part of it that this process may have.
fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total = total.and_then(|total| total.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let total = total.map(|kilobytes| kilobytes << 10);
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let granted = groups.lines().flat_map(granted);
    granted.chain(total).min()
}

/// What the control groups of one line of `/proc/self/cgroup` grant.
fn granted(line: &str) -> Vec<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(kind), Some(path)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (root, file) = match kind {
        "" => ("/sys/fs/cgroup", "memory.max"),
        "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return Vec::new(),
    };
    let path = Path::new(path.trim_start_matches('/'));
    let read = path.ancestors().filter_map(|group| {
        let text = std::fs::read_to_string(Path::new(root).join(group).join(file)).ok()?;
        // Without a limit it is a word.
        text.trim().parse().ok()
    });
    read.collect()
}
