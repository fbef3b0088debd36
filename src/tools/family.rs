//! Families of processes: one that was started, and everything that descends from it.
//!
//! A family is its leader's process group and, on Linux, every process whose environment carries
//! the mark of the leader, or that descends from it when it is ended. It is ended as a whole. All
//! that live are known here, so that a program that must leave at once leaves nothing behind.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

#[cfg(target_os = "linux")]
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
#[cfg(target_os = "linux")]
use rustix::process::{WaitId, WaitIdOptions, WaitOptions};
use tokio::process::Child;

#[cfg(target_os = "linux")]
use crate::tools::descent::{self, LOOKS, Listed};

/// The variable that marks a process and all that descends from it.
pub(crate) const MARK: &str = "UNDERTEXT_CALL";

/// What the marks of this process begin with. Its id alone is not enough: another process that sees the
/// same ones may have it in a namespace of its own, as the first there has.
static OWN: LazyLock<String> = LazyLock::new(|| {
    // The standard library draws its keys at random for each process.
    let random = RandomState::new().hash_one(());
    format!("{}.{random:016x}.", std::process::id())
});

/// The families that live.
static LIVING: Mutex<Living> = Mutex::new(Living {
    begun: false,
    closed: false,
    leaders: Vec::new(),
});

#[derive(Debug)]
struct Living {
    /// Any family began, so that there may be marked processes.
    begun: bool,
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
    if end_running() {
        end_marked(&format!("{MARK}={}", *OWN));
    }
}

/// Ends the families that live without asking them to, and refuses to begin more; whether any ever
/// began, which may have left something behind.
pub(crate) fn end_running() -> bool {
    // Whoever ends them already is waited for: a program that exited before would leave them stopped.
    static ENDING: Mutex<()> = Mutex::new(());
    let _ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let (begun, leaders) = {
        let mut living = living();
        living.closed = true;
        (living.begun, std::mem::take(&mut living.leaders))
    };
    for leader in leaders {
        end_tree(leader);
    }
    begun
}

/// A process and everything that descends from it. All of it is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Family {
    leader: Option<Pid>,
    /// Looked for while the leader lives: what it leaves behind has another parent.
    #[cfg(target_os = "linux")]
    descendants: Vec<Listed>,
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
        let mark = format!("{}{number}.", *OWN);
        // Held while it starts: whoever ends all of them must know of this one.
        let mut living = living();
        if living.closed {
            return Err(io::Error::other("the program is ending"));
        }
        living.begun = true;
        let child = spawn(&mark)?;
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        living.leaders.extend(leader);
        let family = Self {
            leader,
            #[cfg(target_os = "linux")]
            descendants: Vec::new(),
            mark,
            ended: false,
        };
        Ok((child, family))
    }

    /// Asks the process and its group to end, and remembers what descends from it until then.
    pub(crate) fn ask_to_end(&mut self) {
        self.remember();
        self.signal(Signal::TERM);
    }

    /// Ends all of it.
    pub(crate) fn end(&mut self) {
        if !self.ended {
            self.remember();
            self.signal(Signal::KILL);
            #[cfg(target_os = "linux")]
            for process in &self.descendants {
                process.signal(Signal::KILL);
            }
            end_marked(&format!("{MARK}={}", self.mark));
            self.ended = true;
        }
    }

    /// Whether nothing of it is left, once its leader was waited for: this process gets whatever its
    /// own leave behind, and has no child. Then nothing is looked for.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_gone(&mut self) -> bool {
        if !self.ended {
            self.ended = gets_what_is_left() && is_childless();
        }
        self.ended
    }

    /// Elsewhere that is not known.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn is_gone(&mut self) -> bool {
        self.ended
    }

    /// Remembers what descends from the leader.
    fn remember(&mut self) {
        #[cfg(target_os = "linux")]
        self.descendants
            .extend(self.leader.map(descent::below).unwrap_or_default());
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

/// Whether what descends from this process comes to it when its parents end, as it does to the process
/// in which confined tools run.
#[cfg(target_os = "linux")]
fn gets_what_is_left() -> bool {
    rustix::process::child_subreaper().is_ok_and(|subreaper| subreaper.is_some())
}

/// Whether this process has no child, ended or not, and so nothing that descends from it.
#[cfg(target_os = "linux")]
pub(crate) fn is_childless() -> bool {
    let looked = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::All, looked).is_err_and(|error| error == Errno::CHILD)
}

/// Ends everything that descends from this process: none of it is wanted, and no call runs.
#[cfg(target_os = "linux")]
pub(crate) fn end_strays() {
    let own = rustix::process::getpid();
    for _ in 0..LOOKS {
        // Whoever has no child is the parent of nothing that could have escaped.
        if is_childless() {
            return;
        }
        bury();
        if is_childless() {
            return;
        }
        descent::end_below(own);
        descent::pause();
    }
    tracing::warn!("processes that were left behind could not be ended");
}

/// Ends everything that descends from this process while calls run; whether it was seen to be gone. None
/// begins meanwhile.
#[cfg(target_os = "linux")]
pub(crate) fn end_everything() -> bool {
    let _none_begins = living();
    let are_gone = descent::end_below(rustix::process::getpid());
    if !are_gone {
        tracing::warn!("processes could not be ended");
    }
    are_gone
}

/// Ends a process, and everything below it first: stopped, it begins nothing and gets what they leave.
#[cfg(target_os = "linux")]
pub(crate) fn end_tree(leader: Pid) {
    rustix::process::kill_process(leader, Signal::STOP).ok();
    descent::end_below(leader);
    rustix::process::kill_process_group(leader, Signal::KILL).ok();
    rustix::process::kill_process(leader, Signal::KILL).ok();
}

/// Elsewhere the group has to do.
#[cfg(not(target_os = "linux"))]
fn end_tree(leader: Pid) {
    rustix::process::kill_process_group(leader, Signal::KILL).ok();
    rustix::process::kill_process(leader, Signal::KILL).ok();
}

/// Elsewhere what was left behind has other parents.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end_strays() {}

/// Waits for those that have ended and came to this process when their parents did.
#[cfg(target_os = "linux")]
pub(crate) fn bury() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    for process in descent::children(own) {
        if process.ended {
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
    let mut next = Next::Everybody;
    for _ in 0..LOOKS {
        let (there, known) = match next {
            Next::Everybody => (processes(), 0),
            Next::Those(those) => {
                let known = those.len();
                (those, known)
            }
        };
        let Some(again) = signal_marked(variable.as_bytes(), &there).next(known) else {
            return;
        };
        next = again;
        // An ended process keeps its environment for a moment.
        descent::pause();
    }
    tracing::warn!(variable, "processes of a call could not be ended");
}

/// Who is looked at next.
#[cfg(target_os = "linux")]
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Everybody,
    /// On a busy machine somebody always becomes another program, so only whoever was seen to.
    Those(Vec<Pid>),
}

/// All processes of the machine, as far as they can be seen.
#[cfg(target_os = "linux")]
fn processes() -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

/// What was seen of processes.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
struct Looked {
    /// How many have an environment, or will have.
    seen: usize,
    /// Whether any was marked, and so was ended.
    marked: bool,
    /// Those that are becoming another program, which has no environment yet.
    becoming: Vec<Pid>,
}

#[cfg(target_os = "linux")]
impl Looked {
    /// Who is looked at next, where so many were known to be becoming another program; `None`: none is left.
    fn next(self, known: usize) -> Option<Next> {
        // Whoever was marked may have begun others, and so may who is gone since.
        if self.marked || self.seen < known {
            Some(Next::Everybody)
        } else if self.becoming.is_empty() {
            None
        } else {
            Some(Next::Those(self.becoming))
        }
    }
}

/// Looks once at these processes, and ends those that are marked.
#[cfg(target_os = "linux")]
fn signal_marked(variable: &[u8], there: &[Pid]) -> Looked {
    let mut looked = Looked::default();
    for &pid in there {
        // Opened before it is looked at, so that the signal meets what was looked at.
        let flags = rustix::process::PidfdFlags::empty();
        let Ok(process) = rustix::process::pidfd_open(pid, flags) else {
            continue;
        };
        let Some(environment) = descent::environment(pid) else {
            looked.seen += 1;
            looked.becoming.push(pid);
            continue;
        };
        looked.seen += usize::from(!environment.is_empty());
        let mut set = environment.split(|byte| *byte == 0);
        if set.any(|set| set.starts_with(variable)) {
            looked.marked = true;
            rustix::process::pidfd_send_signal(&process, Signal::KILL).ok();
        }
    }
    looked
}

/// Elsewhere the environment of other processes cannot be seen: the group has to do.
#[cfg(not(target_os = "linux"))]
fn end_marked(_variable: &str) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Whoever ends what lives first may not have done so when another wants to leave.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "it stands for what a tool began")]
    fn whoever_ends_all_that_lives_second_leaves_nothing_either() {
        const ALONE: &str = "UNDERTEXT_TEST_ALONE";
        const NAME: &str =
            "tools::family::tests::whoever_ends_all_that_lives_second_leaves_nothing_either";
        // A program in which all that lives was ended begins nothing any more, so it has one of its own.
        if std::env::var_os(ALONE).is_none() {
            let mut test = std::process::Command::new(std::env::current_exe().unwrap());
            let done = test.args(["--exact", NAME]).env(ALONE, "1").output();
            let done = done.unwrap();
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(done.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let begin = |_| {
            let mut shell = std::process::Command::new("/bin/sh");
            std::os::unix::process::CommandExt::process_group(&mut shell, 0);
            let child = shell
                .args(["-c", "sleep 60 & sleep 60 & wait"])
                .spawn()
                .unwrap();
            let leader = Pid::from_child(&child);
            assert!(adopt(leader));
            while descent::below(leader).len() < 2 {
                std::thread::yield_now();
            }
            (child, descent::below(leader))
        };
        let (mut leaders, below): (Vec<_>, Vec<_>) = (0..8).map(begin).unzip();
        let below = below.concat();
        let below: Vec<_> = below.iter().map(Listed::identity).collect();
        let together = std::sync::Barrier::new(2);
        let left = || {
            together.wait();
            end_running();
            let there = descent::processes().filter(|one| !one.ended);
            there.filter(|one| below.contains(&one.identity())).count()
        };
        let left = std::thread::scope(|scope| {
            let other = scope.spawn(left);
            (left(), other.join().unwrap())
        });
        for leader in &mut leaders {
            leader.kill().unwrap();
            leader.wait().unwrap();
        }
        assert_eq!(left, (0, 0));
    }

    /// Whatever a marked process may have begun is found, and nobody who only becomes a program is looked
    /// for among all.
    #[test]
    fn whoever_becomes_another_program_is_looked_at_again() {
        let pid = |number| Pid::from_raw(number).unwrap();
        let looked = |seen, marked, becoming: &[i32]| Looked {
            seen,
            marked,
            becoming: becoming.iter().copied().map(pid).collect(),
        };
        let those = |pids: &[i32]| Some(Next::Those(pids.iter().copied().map(pid).collect()));
        for (looked, known, next) in [
            (looked(90, false, &[]), 0, None),
            (looked(90, true, &[7]), 0, Some(Next::Everybody)),
            (looked(90, false, &[7, 8]), 0, those(&[7, 8])),
            // Of these one has become a program that is not marked.
            (looked(2, false, &[8]), 2, those(&[8])),
            (looked(2, false, &[]), 2, None),
            // Or is gone.
            (looked(1, false, &[8]), 2, Some(Next::Everybody)),
            (looked(1, true, &[]), 1, Some(Next::Everybody)),
        ] {
            assert_eq!(looked.next(known), next);
        }
    }
}
