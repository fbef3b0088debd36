//! When to stop waiting for a reply.
//!
//! Two timers run: one for any byte, one for progress. They go on while the machine sleeps, which
//! the clock of the runtime does not; so whoever waits looks again every few seconds.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// How long to wait for the counts and the end marker after a finish reason.
const LINGER: Duration = Duration::from_secs(2);
/// How often to look whether the machine has slept.
const LOOK: Duration = Duration::from_secs(5);

/// How long to wait. A healthy reply may take any time altogether.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the next byte, be it a comment that only keeps the connection open.
    pub bytes: Duration,
    /// For the next piece of text, reasoning or a call.
    pub progress: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            bytes: Duration::from_secs(300),
            progress: Duration::from_secs(600),
        }
    }
}

/// The timers of one reply.
#[derive(Debug)]
pub(crate) struct Timers {
    limits: Timeouts,
    byte: Moment,
    progress: Moment,
    /// When the finish reason came.
    finished: Option<Moment>,
    /// How long the machine has slept in its life.
    slept: fn() -> Duration,
}

/// A moment, and how long the machine had slept by then.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Instant,
    slept: Duration,
}

/// Which timer has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// No byte came for this long.
    Byte(Duration),
    /// No progress was made for this long.
    Progress(Duration),
    /// Nothing more came after the finish reason.
    End,
}

impl Timers {
    /// Timers that begin to run now.
    pub(crate) fn start(limits: Timeouts) -> Self {
        Self::by(limits, slept)
    }

    fn by(limits: Timeouts, slept: fn() -> Duration) -> Self {
        let now = Moment {
            at: Instant::now(),
            slept: slept(),
        };
        Self {
            limits,
            byte: now,
            progress: now,
            finished: None,
            slept,
        }
    }

    /// Notes that bytes came.
    pub(crate) fn bytes_came(&mut self) {
        self.byte = self.now();
    }

    /// Notes that progress was made.
    pub(crate) fn progress_made(&mut self) {
        self.progress = self.now();
    }

    /// Notes that the finish reason came; only the first counts.
    pub(crate) fn finish_came(&mut self) {
        let now = self.now();
        self.finished.get_or_insert(now);
    }

    /// Notes that a part of the reply came, though the finish reason may have come before.
    pub(crate) fn reply_goes_on(&mut self) {
        self.finished = None;
    }

    /// The timer that has run out.
    pub(crate) fn late(&self) -> Option<Late> {
        let (until, late) = self.next();
        (until <= Instant::now()).then_some(late)
    }

    /// Waits for a future until a timer runs out, but not longer than a few seconds. `None` if it
    /// is not ready then.
    pub(crate) async fn wait<F: Future>(&self, future: F) -> Option<F::Output> {
        let until = self.next().0.min(Instant::now() + LOOK);
        timeout_at(until, future).await.ok()
    }

    fn now(&self) -> Moment {
        Moment {
            at: Instant::now(),
            slept: (self.slept)(),
        }
    }

    /// The next moment at which a timer runs out.
    fn next(&self) -> (Instant, Late) {
        let slept = (self.slept)();
        let after = |moment: Moment, limit: Duration| {
            moment.at + limit.saturating_sub(slept.saturating_sub(moment.slept))
        };
        if let Some(finished) = self.finished {
            return (after(finished, LINGER), Late::End);
        }
        let Timeouts {
            bytes, progress, ..
        } = self.limits;
        let byte = (after(self.byte, bytes), Late::Byte(bytes));
        let idle = (after(self.progress, progress), Late::Progress(progress));
        if byte.0 <= idle.0 { byte } else { idle }
    }
}

/// How long the machine has slept since it was started.
#[cfg(target_os = "linux")]
fn slept() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    read(ClockId::Boottime).saturating_sub(read(ClockId::Monotonic))
}

/// Nothing is known of it here.
#[cfg(not(target_os = "linux"))]
fn slept() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::time::advance;

    use super::*;

    const LIMITS: Timeouts = Timeouts {
        connect: Duration::from_secs(1),
        bytes: Duration::from_secs(60),
        progress: Duration::from_secs(90),
    };
    const BYTE: Option<Late> = Some(Late::Byte(LIMITS.bytes));
    const PROGRESS: Option<Late> = Some(Late::Progress(LIMITS.progress));

    #[tokio::test(start_paused = true)]
    async fn each_timer_runs_from_what_it_waits_for() {
        let mut timers = Timers::by(LIMITS, || Duration::ZERO);
        advance(Duration::from_secs(59)).await;
        assert_eq!(timers.late(), None);
        advance(Duration::from_secs(1)).await;
        assert_eq!(timers.late(), BYTE);
        timers.bytes_came();
        assert_eq!(timers.late(), None);
        advance(Duration::from_secs(30)).await;
        assert_eq!(timers.late(), PROGRESS);
        timers.progress_made();
        assert_eq!(timers.late(), None);
        timers.finish_came();
        advance(Duration::from_secs(1)).await;
        timers.finish_came();
        assert_eq!(timers.late(), None);
        advance(Duration::from_secs(1)).await;
        assert_eq!(timers.late(), Some(Late::End));
    }

    #[tokio::test(start_paused = true)]
    async fn they_go_on_while_the_machine_sleeps() {
        static SLEPT: AtomicU64 = AtomicU64::new(7200);
        let mut timers = Timers::by(LIMITS, || Duration::from_secs(SLEPT.load(Ordering::SeqCst)));
        let before = Instant::now();
        let waiting = async {
            while timers.late().is_none() {
                timers.wait(std::future::pending::<()>()).await;
                SLEPT.store(7200 + 3600, Ordering::SeqCst);
            }
        };
        waiting.await;
        assert_eq!(timers.late(), BYTE);
        assert_eq!(before.elapsed().as_secs(), LOOK.as_secs());
        timers.bytes_came();
        timers.progress_made();
        assert_eq!(timers.late(), None);
    }
}
