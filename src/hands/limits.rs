//! What tools take of the machine together: looked at many times a second, and ended when it is too
//! much.
//!
//! Memory is what they use, not what they reserve: some programs reserve a thousand times as much.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use crate::setup::Allowance;
use crate::tools::{Outcome, descent, family, scope};
use crate::words::grouped;

/// How often what tools have started is looked at.
const LOOKING: Duration = Duration::from_millis(100);

/// The same while they become many.
const HURRIED: Duration = Duration::from_millis(5);

/// How many more of them there are then than at the look before.
const MANY: u64 = 32;

/// How many files it must be possible to make on a disk still, where that is limited and some of the
/// disk is to stay free at all.
const FILES: u64 = 10_000;

/// How much sooner who looks gets its turn than whoever is looked at, where that is allowed.
const PRIORITY: i32 = 10;

/// What they may take together.
#[derive(Debug)]
pub(super) struct Limits {
    processes: u64,
    memory: u64,
    disk: Disk,
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
            disk: Disk {
                floor: allowance.free_disk,
                places: Vec::new(),
            },
            told: Mutex::default(),
        }
    }

    /// The memory that they may take, in bytes.
    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    /// The same for tools that write in these directories.
    pub(super) fn writing(mut self, written: &[PathBuf]) -> Self {
        self.disk.places = Place::all(written);
        // What is free now is what a disk is held against, however quickly it is filled then.
        self.disk.shortage();
        self
    }

    /// Lets a thread of its own look for as long as this process lives.
    pub(super) fn watch(self: Arc<Self>) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("limits".to_owned());
        let look = move || {
            let mut before = 0;
            loop {
                let now = self.look(before);
                let grows = now > before + MANY;
                std::thread::sleep(if grows { HURRIED } else { LOOKING });
                before = now;
            }
        };
        thread.spawn(look).map(drop)
    }

    /// Looks at what this process has started, and ends what is too much; how many there were. Of those that
    /// were too many at the look `before` already, and have not all gone yet, is told once.
    fn look(&self, before: u64) -> u64 {
        if family::is_childless() {
            return 0;
        }
        family::bury();
        let mut taken = descent::below(rustix::process::getpid());
        let count = taken.iter().map(|one| one.threads).sum::<u64>();
        if count > self.processes {
            if before <= self.processes {
                self.remember(format!(
                    "[more than {} processes and threads ran at once, which is the limit (sandbox); all \
                     of them were ended; the user allows more with sandbox.limits.processes in \
                     config.yaml]",
                    grouped(self.processes)
                ));
            }
            end_all();
            return count;
        }
        if let Some(line) = self.disk.shortage() {
            self.remember(line);
            end_all();
            return count;
        }
        // Counts twice what is shared, so it is only a first look.
        if taken.iter().map(descent::Listed::memory).sum::<u64>() <= self.memory {
            return count;
        }
        let mut taken: Vec<(u64, descent::Listed)> =
            taken.drain(..).map(|one| (one.own_memory(), one)).collect();
        taken.sort_by_key(|(memory, _)| *memory);
        let mut all: u64 = taken.iter().map(|(memory, _)| memory).sum();
        while all > self.memory
            && let Some((memory, largest)) = taken.pop()
        {
            self.remember(format!(
                "[processes took more than {} MiB of memory together, which is the limit (sandbox); \
                 the largest was ended; the user allows more with sandbox.limits.memory in \
                 config.yaml]",
                grouped(self.memory >> 20)
            ));
            largest.signal(Signal::KILL);
            all -= memory;
        }
        count
    }

    /// Adds a line if anything was ended since the last call.
    pub(super) fn tell(&self, outcome: &mut Outcome) {
        if let Some(line) = self.told().take() {
            outcome.add_line(&line);
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
        family::end_everything();
    }
}

/// Lets this thread have its turn sooner, where that is allowed; whatever it starts then does as well.
///
/// Returns what it had before, which it may always have again.
pub(super) fn hurry() -> Option<i32> {
    let usual = rustix::process::getpriority_process(None).ok()?;
    rustix::process::setpriority_process(None, usual - PRIORITY).ok()?;
    Some(usual)
}

/// The file systems in which tools write, and what is to stay free of them.
///
/// Whoever else fills them counts as well: what is left is what matters, and nothing else is known
/// without walking the tree.
#[derive(Debug)]
struct Disk {
    floor: u64,
    places: Vec<Place>,
}

/// A file system.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    bytes: Least,
    files: Least,
}

/// How much is to be left of something: below this whoever runs is ended. Then it is lowered, so that
/// something can be removed.
#[derive(Debug, Default)]
struct Least(Mutex<u64>);

impl Disk {
    /// What to say if too little is left.
    fn shortage(&self) -> Option<String> {
        self.places.iter().find_map(|place| {
            let free = Free::at(&place.path)?;
            let few = if self.floor == 0 { 0 } else { FILES };
            let (left, allows) = if place.bytes.is_passed(free.bytes, self.floor) {
                let left = format!("{} MiB were left", grouped(free.bytes >> 20));
                (left, "sets how much must stay free with sandbox.limits.free_disk")
            } else if let Some(files) = free.files
                && place.files.is_passed(files, few)
            {
                let left = format!("{} files could still be made", grouped(files));
                (left, "lifts that with sandbox.limits.free_disk: 0")
            } else {
                return None;
            };
            Some(format!(
                "[only {left} on the disk of {}, so whatever ran was ended (sandbox); remove what is \
                 not needed; the user {allows} in config.yaml]",
                scope::one_line(&place.path.to_string_lossy())
            ))
        })
    }
}

impl Place {
    /// Those in which these directories lie, each once.
    fn all(directories: &[PathBuf]) -> Vec<Self> {
        let mut known = Vec::new();
        let mut places = Vec::new();
        for path in directories {
            let system = std::fs::metadata(path).ok().map(|data| data.dev());
            if system.is_some() && !known.contains(&system) {
                known.push(system);
                places.push(Self {
                    path: path.clone(),
                    bytes: Least::default(),
                    files: Least::default(),
                });
            }
        }
        places
    }
}

impl Least {
    /// Whether so little is free that whoever runs is ended: less than the floor, or where less than
    /// twice that was there, half of what was.
    fn is_passed(&self, free: u64, floor: u64) -> bool {
        let mut least = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_short = free < *least;
        let bound = floor.min(free / 2);
        *least = if is_short { bound } else { bound.max(*least) };
        is_short
    }
}

/// What is free of a file system, for whoever is not root.
#[derive(Clone, Copy, Debug)]
struct Free {
    bytes: u64,
    /// How many files can be made; `None` where they are as many as there is room for.
    files: Option<u64>,
}

impl Free {
    /// Where this lies.
    fn at(path: &Path) -> Option<Self> {
        let system = rustix::fs::statvfs(path).ok()?;
        Some(Self {
            bytes: system.f_bavail.saturating_mul(system.f_frsize),
            files: (system.f_files > 0).then_some(system.f_favail),
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_never_loses_more_than_half_of_what_is_left_at_once() {
        let least = Least::default();
        // What is free at each look, with a floor of 100, and whether it is too little.
        for (free, is_short) in [
            (1000, false),
            (100, false),
            (99, true),
            // Somebody may remove something now.
            (99, false),
            (50, false),
            (48, true),
            (30, false),
            (180, false),
            (91, false),
            (89, true),
            (900, false),
            (99, true),
        ] {
            assert_eq!(least.is_passed(free, 100), is_short, "{free}");
        }
    }
}
