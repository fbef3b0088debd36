//! What tools take of the machine together: looked at many times a second, and ended when it is too
//! much.
//!
//! Memory is what they use, not what they reserve: some programs reserve a thousand times as much.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use crate::setup::Allowance;
use crate::tools::descent::{self, Listed};
use crate::tools::{Outcome, family, scope};
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
    told: Mutex<Vec<String>>,
}

/// What was ended and may not have gone yet: it is nothing new, whatever it still takes, so that each call
/// is told what befell itself and no call what an earlier one was told.
#[derive(Debug, Default)]
struct Ended {
    /// Whoever began until then was ended, in ticks since the machine was started.
    until: u64,
    /// Whether that was all of them at once. One by one, only those are known to be that are seen to be.
    at_once: bool,
    /// Whether not all of them were seen to be.
    goes_on: bool,
    /// Those that were ended alone, by their numbers and when they began.
    alone: BTreeSet<(i32, u64)>,
}

/// What to do about how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Few,
    Many,
    /// The same that was told already.
    StillMany,
}

impl Ended {
    /// Whether one was ended with all others.
    fn holds(&self, one: &Listed) -> bool {
        one.began <= self.until && (self.at_once || one.ended)
    }

    /// What to do about those that are there now, if there may be so many.
    fn judge(&mut self, there: &[Listed], most: u64) -> Verdict {
        let new = there.iter().filter(|one| !self.holds(one));
        if new.map(|one| one.threads).sum::<u64>() <= most {
            self.goes_on = false;
            Verdict::Few
        } else if self.goes_on {
            Verdict::StillMany
        } else {
            Verdict::Many
        }
    }

    /// All of them were ended by now, and seen to be or not.
    fn note_all(&mut self, now: u64, ending: Ending) {
        self.until = now;
        self.at_once = ending == Ending::AtOnce;
        self.goes_on = ending == Ending::Unseen;
    }

    /// Those that are to be ended one by one so that no more is taken than may be, of these and what each
    /// takes.
    fn largest(&mut self, mut there: Vec<(u64, Listed)>, most: u64) -> Vec<Listed> {
        there.retain(|(_, one)| !self.holds(one) && !self.alone.contains(&one.identity()));
        there.sort_by_key(|(takes, _)| *takes);
        let mut all: u64 = there.iter().map(|(takes, _)| takes).sum();
        let mut largest = Vec::new();
        while all > most
            && let Some((takes, one)) = there.pop()
        {
            all -= takes;
            self.alone.insert(one.identity());
            largest.push(one);
        }
        largest
    }
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
            let mut ended = Ended::default();
            loop {
                let now = self.look(&mut ended);
                let grows = now > before + MANY;
                descent::sleep(if grows { HURRIED } else { LOOKING });
                before = now;
            }
        };
        thread.spawn(look).map(drop)
    }

    /// Looks at what this process has started, and ends what is too much; how many there were.
    fn look(&self, ended: &mut Ended) -> u64 {
        if family::is_childless() {
            *ended = Ended::default();
            return 0;
        }
        family::bury();
        let taken = descent::below(rustix::process::getpid());
        let count = taken.iter().map(|one| one.threads).sum::<u64>();
        let verdict = ended.judge(&taken, self.processes);
        if verdict == Verdict::Many {
            self.remember(format!(
                "[more than {} processes and threads ran at once, which is the limit (sandbox); all \
                 of them were ended; the user allows more with sandbox.limits.processes in \
                 config.yaml]",
                grouped(self.processes)
            ));
        }
        if verdict != Verdict::Few {
            let ending = end_all();
            ended.note_all(descent::now(), ending);
            return count;
        }
        if let Some(line) = self.disk.shortage() {
            self.remember(line);
            let ending = end_all();
            ended.note_all(descent::now(), ending);
            return count;
        }
        // Counts twice what is shared, so it is only a first look.
        if taken.iter().map(Listed::memory).sum::<u64>() <= self.memory {
            return count;
        }
        let taken = taken.into_iter().map(|one| (one.own_memory(), one));
        for largest in ended.largest(taken.collect(), self.memory) {
            self.remember(format!(
                "[processes took more than {} MiB of memory together, which is the limit (sandbox); \
                 the largest was ended; the user allows more with sandbox.limits.memory in \
                 config.yaml]",
                grouped(self.memory >> 20)
            ));
            largest.signal(Signal::KILL);
        }
        count
    }

    /// Adds what was ended since the last call.
    pub(super) fn tell(&self, outcome: &mut Outcome) {
        for line in std::mem::take(&mut *self.told()) {
            outcome.add_line(&line);
        }
    }

    /// To be told before it is ended: its call may be answered at once then.
    fn remember(&self, line: String) {
        tracing::warn!("{line}");
        let mut told = self.told();
        if !told.contains(&line) {
            told.push(line);
        }
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How everything was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// All at once, so that none can begin another.
    AtOnce,
    /// One by one, until none was seen.
    Seen,
    /// One by one, and some may live.
    Unseen,
}

/// Ends everything that this process has started, also if it multiplies.
pub(super) fn end_all() -> Ending {
    let alone = rustix::process::getpid() == rustix::process::Pid::INIT;
    if alone {
        // Only its own are within reach of the first process of a namespace.
        let everybody = nix::unistd::Pid::from_raw(-1);
        nix::sys::signal::kill(everybody, nix::sys::signal::Signal::SIGKILL).ok();
        Ending::AtOnce
    } else if family::end_everything() {
        Ending::Seen
    } else {
        Ending::Unseen
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

    /// A process that began then, with so many threads.
    fn one(id: i32, began: u64, threads: u64) -> Listed {
        Listed {
            id,
            parent: 1,
            ended: false,
            began,
            threads,
            pages: 0,
        }
    }

    /// They go one after another, and a look may miss some that the next one sees.
    #[test]
    fn what_is_ended_at_once_is_told_once_however_it_is_seen_to_go() {
        let mut ended = Ended::default();
        let bomb = |began| vec![one(7, began, 60), one(8, began + 1, 60)];
        assert_eq!(ended.judge(&bomb(5), 100), Verdict::Many);
        ended.note_all(6, Ending::AtOnce);
        for there in [bomb(5), Vec::new(), bomb(5), vec![one(9, 5, 99)], bomb(5)] {
            assert_eq!(ended.judge(&there, 100), Verdict::Few, "{there:?}");
        }
        // The next call's are others, and so is what it does.
        assert_eq!(ended.judge(&[one(9, 7, 90)], 100), Verdict::Few);
        assert_eq!(ended.judge(&bomb(7), 100), Verdict::Many);
    }

    #[test]
    fn what_is_ended_one_by_one_is_ended_again_until_it_is_gone_and_told_once() {
        let mut ended = Ended::default();
        let lives = one(7, 5, 120);
        let gone = Listed {
            ended: true,
            ..lives
        };
        assert_eq!(ended.judge(&[lives], 100), Verdict::Many);
        ended.note_all(6, Ending::Unseen);
        assert_eq!(ended.judge(&[lives], 100), Verdict::StillMany);
        // It has multiplied meanwhile.
        assert_eq!(
            ended.judge(&[gone, one(8, 7, 120)], 100),
            Verdict::StillMany
        );
        ended.note_all(8, Ending::Seen);
        assert_eq!(ended.judge(&[gone], 100), Verdict::Few);
        assert_eq!(ended.judge(&[gone, one(9, 9, 120)], 100), Verdict::Many);
        // Not ended by what was done to others, as it is there.
        ended.note_all(10, Ending::Seen);
        assert_eq!(ended.judge(&[one(9, 9, 120)], 100), Verdict::Many);
    }

    #[test]
    fn nobody_is_ended_for_the_memory_of_what_was_ended_and_is_not_gone() {
        let mut ended = Ended::default();
        let (large, small, next) = (one(7, 5, 1), one(8, 5, 1), one(7, 9, 1));
        let mut look = |there: &[(u64, Listed)]| {
            let all: Vec<Listed> = there.iter().map(|(_, one)| *one).collect();
            assert_eq!(ended.judge(&all, 100), Verdict::Few);
            let largest = ended.largest(there.to_vec(), 200);
            largest
                .iter()
                .map(|one| (one.id, one.began))
                .collect::<Vec<_>>()
        };
        assert_eq!(look(&[(190, large), (20, small)]), [(7, 5)]);
        assert_eq!(look(&[(190, large), (20, small)]), []);
        assert_eq!(look(&[(190, large), (201, small)]), [(8, 5)]);
        assert_eq!(look(&[(20, small)]), []);
        // Another one that has its number, and all that it takes to be below.
        assert_eq!(look(&[(150, next), (210, one(9, 9, 1))]), [(9, 9)]);
        assert_eq!(
            look(&[(150, next), (210, one(9, 9, 1)), (51, one(10, 9, 1))]),
            [(7, 9)]
        );
        ended.note_all(9, Ending::AtOnce);
        assert_eq!(ended.largest(vec![(300, one(11, 9, 1))], 200).len(), 0);
    }

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
