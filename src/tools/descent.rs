//! What descends from a process, as the system lists it: found, counted, stopped and ended.
//!
//! What is stopped begins no other process. So what multiplies is stopped before it is ended, until a
//! look finds none that was not: what is only ended, one by one, makes room for others.
//!
//! Where the system tells the children of a process, only what descends from it is looked at: to list a
//! busy machine takes seconds. Whoever changes its parent meanwhile may be missed by that, so what seems
//! to be gone is looked for among all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// How often what should be gone is looked for.
pub(super) const LOOKS: usize = 500;

/// How often it is ended without being stopped first: few processes do not multiply.
const SIMPLY: usize = 2;

/// How long it may take to be gone before it is looked for again.
const PAUSE: Duration = Duration::from_millis(1);

/// How often an environment is read that is said to be there.
const TRIES: usize = 8;

/// A process as the system lists it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    pub(crate) id: i32,
    pub(crate) parent: i32,
    /// Whether it has ended and is waited for.
    pub(crate) ended: bool,
    /// When it began, in ticks since the machine was started: another one that has its number later
    /// began later.
    pub(crate) began: u64,
    /// Its threads.
    pub(crate) threads: u64,
    /// What it holds in memory, in pages, shared or not.
    pub(crate) pages: u64,
}

impl Listed {
    /// The process of this number as it is now.
    fn of(id: i32) -> Option<Self> {
        let stat = told(format!("/proc/{id}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // `pid (name) state parent …`, where the name may hold anything.
        let mut fields = stat.rsplit(") ").next()?.split(' ');
        let is_zombie = fields.next() == Some("Z");
        let parent = fields.next()?.parse().ok()?;
        let threads = fields.nth(15)?.parse().ok()?;
        Some(Self {
            id,
            parent,
            // Where only its first thread has ended, the others go on.
            ended: is_zombie && threads <= 1,
            threads,
            began: fields.nth(1)?.parse().ok()?,
            pages: fields.nth(1)?.parse().ok()?,
        })
    }

    /// What no other process has, now or later.
    pub(crate) fn identity(&self) -> (i32, u64) {
        (self.id, self.began)
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

/// Now, as it is said of a process that begins now.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let ticks = u128::from(rustix::param::clock_ticks_per_second());
    let since = Duration::try_from(now).unwrap_or_default().as_nanos();
    u64::try_from(since * ticks / 1_000_000_000).unwrap_or(u64::MAX)
}

/// What a file of `/proc` says. Such a file says nothing of its length, and is read at once where it
/// fits: read as others are, it takes three times as many system calls.
fn told(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(4096);
    let file = File::open(path)?;
    file.take(u64::MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// The environment that a process was given; empty also if it has ended, is the kernel's or is not to
/// be looked at. `None` while it becomes another program, which has not been given one yet.
pub(super) fn environment(process: Pid) -> Option<Vec<u8>> {
    let at = |file: &str| format!("/proc/{}/{file}", process.as_raw_nonzero());
    for _ in 0..TRIES {
        let Ok(environment) = told(at("environ")) else {
            return Some(Vec::new());
        };
        if !environment.is_empty() {
            return Some(environment);
        }
        match Given::of(&told(at("stat")).unwrap_or_default()) {
            Given::Nothing => return Some(Vec::new()),
            Given::NotYet => return None,
            // By now, unless that memory is not there any more.
            Given::Something => {}
        }
    }
    Some(Vec::new())
}

/// Whether a process was given an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Nothing,
    /// It has let go of the memory of its last program, and the next one's holds no environment yet.
    NotYet,
    Something,
}

impl Given {
    /// As its `stat` says.
    fn of(stat: &[u8]) -> Self {
        let stat = String::from_utf8_lossy(stat);
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        let mut number = |skipped| {
            fields
                .nth(skipped)
                .and_then(|field| field.trim().parse().ok())
        };
        // Its memory is the twenty-third field, where its code begins the twenty-sixth, where its environment
        // begins and ends the fiftieth and the one behind it.
        let memory: u64 = number(20).unwrap_or(0);
        let code: u64 = number(2).unwrap_or(0);
        let begins: u64 = number(23).unwrap_or(0);
        let ends: u64 = number(0).unwrap_or(0);
        // What has ended or is the kernel's has no memory. The place of the code is noted last: until then an
        // environment that seems to be empty is still being laid out.
        if memory > 0 && (ends == 0 || code == 0) {
            Self::NotYet
        } else if begins < ends {
            Self::Something
        } else {
            Self::Nothing
        }
    }
}

/// All processes.
pub(super) fn processes() -> impl Iterator<Item = Listed> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Listed::of(entry.file_name().to_str()?.parse().ok()?))
}

/// Whether the system tells the children of a process.
static TELLS_CHILDREN: LazyLock<bool> =
    LazyLock::new(|| Path::new("/proc/thread-self/children").exists());

/// The children of a process.
pub(super) fn children(parent: i32) -> Vec<Listed> {
    if !*TELLS_CHILDREN {
        return processes()
            .filter(|process| process.parent == parent)
            .collect();
    }
    // Each is told of the thread that began it.
    let threads = std::fs::read_dir(format!("/proc/{parent}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let told = threads.flat_map(|thread| told(thread.path().join("children")));
    let told = told.flat_map(|told| {
        let ids = String::from_utf8_lossy(&told);
        let ids = ids.split_whitespace().filter_map(|id| id.parse().ok());
        ids.collect::<Vec<i32>>()
    });
    told.filter_map(Listed::of).collect()
}

/// What descends from a process, whatever group and environment it gave itself.
pub(crate) fn below(leader: Pid) -> Vec<Listed> {
    // All that the first process sees descends from it.
    if leader == Pid::INIT || !*TELLS_CHILDREN {
        return all_below(leader);
    }
    let mut found = Vec::new();
    let mut parents = vec![leader.as_raw_nonzero().get()];
    // One that gets another parent may be seen below both.
    let mut seen = BTreeSet::new();
    while let Some(parent) = parents.pop() {
        for process in children(parent) {
            if seen.insert(process.id) {
                parents.extend((!process.ended).then_some(process.id));
                found.push(process);
            }
        }
    }
    found
}

/// The same by a look at all processes.
fn all_below(leader: Pid) -> Vec<Listed> {
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

/// What descends from a process and has not ended; nothing only if none is among all processes.
fn living_below(leader: Pid) -> Vec<Listed> {
    let living = |mut found: Vec<Listed>| {
        found.retain(|process| !process.ended);
        found
    };
    let found = living(below(leader));
    if found.is_empty() {
        living(all_below(leader))
    } else {
        found
    }
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
        pause();
    }
    false
}

/// Waits a little before the next look.
pub(super) fn pause() {
    sleep(PAUSE);
}

/// Sleeps so long, and no longer if signals arrive meanwhile.
///
/// A sleep of a length is begun again for what is left after each signal, and the system adds its slack
/// (50 µs) each time: asked to end more often than that, a program would sleep for as long as it is asked.
pub(crate) fn sleep(length: Duration) {
    let length = Timespec {
        tv_sec: length.as_secs().cast_signed(),
        tv_nsec: length.subsec_nanos().into(),
    };
    let until = clock_gettime(ClockId::Monotonic) + length;
    while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(Errno::INTR) {}
}

/// Stops everything below a process, of which this was found, until two looks in a row find nothing
/// that is new: what began behind one look is seen by the next.
fn stop_below(leader: Pid, mut found: Vec<Listed>) -> Vec<Listed> {
    let mut stopped = BTreeSet::new();
    let mut quiet = 0;
    for _ in 0..LOOKS {
        let mut is_quiet = true;
        for process in &found {
            if stopped.insert(process.identity()) {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use nix::sys::pthread::{pthread_kill, pthread_self};
    use tokio::signal::unix::{SignalKind, signal};

    use super::*;

    /// What begins is neither of the past nor of the future.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "it stands for what a tool began")]
    fn now_is_told_as_the_beginning_of_a_process_is() {
        let before = now();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let began = Listed::of(Pid::from_child(&child).as_raw_nonzero().get()).map(|one| one.began);
        child.wait().unwrap();
        assert!((before..=now()).contains(&began.unwrap()));
    }

    /// However it is looked for, the same is found, also below a thread that is not the first.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "it stands for what a tool began")]
    fn what_descends_is_found_from_parent_to_child() {
        let ids = |found: Vec<Listed>| found.iter().map(|one| one.id).collect::<BTreeSet<_>>();
        let begin = || {
            let mut shell = std::process::Command::new("/bin/sh");
            std::os::unix::process::CommandExt::process_group(&mut shell, 0);
            shell.args(["-c", "sleep 60 & (sleep 60 & wait) & wait"]);
            let mut child = shell.spawn().unwrap();
            let leader = Pid::from_child(&child);
            while all_below(leader).len() < 3 {
                std::thread::yield_now();
            }
            let own = ids(below(rustix::process::getpid()));
            let found = (ids(below(leader)), ids(all_below(leader)));
            rustix::process::kill_process_group(leader, Signal::KILL).unwrap();
            child.wait().unwrap();
            assert_eq!(found.0, found.1);
            assert!(own.is_superset(&found.1));
            assert!(own.contains(&leader.as_raw_nonzero().get()));
        };
        std::thread::scope(|scope| scope.spawn(begin).join().unwrap());
    }

    /// Signals come for as long as it sleeps, but not without end.
    #[test]
    fn a_sleep_ends_also_while_signals_arrive() {
        const MOST: u64 = 1_000_000;
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_io().build().unwrap();
        let _entered = runtime.enter();
        let _outlived = signal(SignalKind::user_defined1()).unwrap();
        let sleeper = pthread_self();
        let sent = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while sent.fetch_add(1, Ordering::Relaxed) < MOST {
                    pthread_kill(sleeper, nix::sys::signal::SIGUSR1).unwrap();
                }
            });
            while sent.load(Ordering::Relaxed) < 2 {
                std::thread::yield_now();
            }
            for _ in 0..30 {
                sleep(PAUSE);
            }
            let before = sent.swap(MOST, Ordering::Relaxed);
            assert!(before < MOST, "it slept until no signal came any more");
        });
    }

    /// A `stat` of a process with so much memory whose code and environment lie here.
    fn stat(memory: u64, code: u64, begins: u64, ends: u64) -> String {
        let fields = |from: u32, to: u32| {
            let fields = (from..=to).map(|field| field.to_string());
            fields.collect::<Vec<_>>().join(" ")
        };
        format!(
            "7 (a) b) R {} {memory} 24 25 {code} {} {begins} {ends} 0\n",
            fields(4, 22),
            fields(27, 49)
        )
    }

    #[test]
    fn what_is_becoming_a_program_is_not_without_an_environment() {
        for (memory, code, begins, ends, given) in [
            (0, 0, 0, 0, Given::Nothing),
            (4096, 0, 0, 0, Given::NotYet),
            (4096, 0, 9000, 9000, Given::NotYet),
            (4096, 1, 9000, 9000, Given::Nothing),
            (4096, 1, 9000, 9100, Given::Something),
        ] {
            let stat = stat(memory, code, begins, ends);
            assert_eq!(Given::of(stat.as_bytes()), given, "{stat}");
        }
        assert_eq!(Given::of(b""), Given::Nothing);
        let own = told("/proc/self/stat").unwrap();
        assert_eq!(Given::of(&own), Given::Something);
    }

    /// A program that becomes itself again and again is looked at until it was seen in between.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "it stands for what a tool left behind"
    )]
    fn a_mark_is_never_missing_from_what_becomes_another_program() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("again");
        std::fs::write(&script, "exec /bin/sh \"$0\"\n").unwrap();
        let mut child = std::process::Command::new("/bin/sh")
            .arg(&script)
            .env("MARK", "7")
            .spawn()
            .unwrap();
        let process = Pid::from_child(&child);
        let mut between = 0;
        while between < 3 {
            match environment(process) {
                None => between += 1,
                Some(environment) => {
                    let mut set = environment.split(|byte| *byte == 0);
                    assert!(set.any(|set| set == b"MARK=7"), "{environment:?}");
                }
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
