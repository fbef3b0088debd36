//! The one place that reads a clock.
//!
//! Everything else is handed a moment. A fixed clock stands still until it is moved, and numbers
//! the runs it names, so that a test writes the same transcript every time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::id::RunId;
use crate::transcript::At;

/// How often whoever waits looks whether the machine has slept meanwhile.
const LOOK: Duration = Duration::from_secs(5);

/// What time it is.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The clock of the machine.
    System,
    /// A clock that stands still until it is moved; clones share their time.
    Fixed(Arc<Fixed>),
}

/// The state of a clock that stands still.
#[derive(Debug)]
pub struct Fixed {
    now: AtomicI64,
    runs: AtomicU64,
}

impl Clock {
    /// A clock that shows this moment until it is moved.
    pub fn fixed(at: At) -> Self {
        Self::Fixed(Arc::new(Fixed {
            now: AtomicI64::new(at.0),
            runs: AtomicU64::new(0),
        }))
    }

    /// Moves a fixed clock forward. The machine's clock stays as it is.
    pub fn advance(&self, ms: u64) {
        match self {
            Self::System => {}
            Self::Fixed(fixed) => {
                let now = At(fixed.now.load(Ordering::Relaxed)).plus_ms(ms);
                fixed.now.store(now.0, Ordering::Relaxed);
            }
        }
    }

    /// Sets a fixed clock to a moment, such as one that another agent recorded. The machine's clock
    /// stays as it is.
    pub fn set(&self, moment: At) {
        match self {
            Self::System => {}
            Self::Fixed(fixed) => fixed.now.store(moment.0, Ordering::Relaxed),
        }
    }

    /// The present moment.
    pub fn now(&self) -> At {
        match self {
            Self::System => At(machine_time()),
            Self::Fixed(fixed) => At(fixed.now.load(Ordering::Relaxed)),
        }
    }

    /// Waits until a moment. A fixed clock is moved there at once.
    pub async fn wait(&self, until: At) {
        let ms = until.ms_since(self.now());
        match self {
            Self::System => sleep(ms, || self.now() >= until).await,
            Self::Fixed(_) => self.advance(ms),
        }
    }

    /// Waits until a moment comes by itself. A fixed clock stands still, so for it none ever does.
    pub async fn comes(&self, moment: At) {
        match self {
            Self::System => self.wait(moment).await,
            Self::Fixed(_) => std::future::pending().await,
        }
    }

    /// An id for a run that begins now: random, or counted by a fixed clock.
    pub fn new_run(&self) -> RunId {
        RunId(match self {
            Self::System => Uuid::now_v7(),
            Self::Fixed(fixed) => {
                let run = fixed.runs.fetch_add(1, Ordering::Relaxed) + 1;
                let mut bytes = [0; 10];
                bytes[2..].copy_from_slice(&run.to_be_bytes());
                let ms = u64::try_from(self.now().0).unwrap_or(0);
                uuid::Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid()
            }
        })
    }

    /// Begins to measure how long something takes.
    pub fn stopwatch(&self) -> Stopwatch {
        Stopwatch(match self {
            Self::System => Start::Machine(machine_instant()),
            Self::Fixed(_) => Start::Fixed(self.clone(), self.now()),
        })
    }
}

/// Measures how long something takes, whatever becomes of the wall clock meanwhile.
#[derive(Clone, Debug)]
pub struct Stopwatch(Start);

#[derive(Clone, Debug)]
enum Start {
    Machine(Instant),
    Fixed(Clock, At),
}

impl Stopwatch {
    /// The milliseconds so far: with a fixed clock, those by which it was moved.
    pub fn ms(&self) -> u64 {
        match &self.0 {
            Start::Machine(start) => u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
            Start::Fixed(clock, start) => clock.now().ms_since(*start),
        }
    }
}

/// Waits this long, but not longer than until it has come: timers stand still while the machine
/// sleeps, and a wall clock may be set back.
async fn sleep(ms: u64, has_come: impl Fn() -> bool) {
    let end = tokio::time::Instant::now() + Duration::from_millis(ms);
    while !has_come() {
        let look = tokio::time::Instant::now() + LOOK;
        tokio::time::sleep_until(look.min(end)).await;
        if end <= look {
            break;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the wall clock"
)]
fn machine_time() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the monotonic clock"
)]
fn machine_instant() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_clock_moves_only_when_told_and_clones_move_with_it() {
        let clock = Clock::fixed(At(1_000));
        let (other, stopwatch) = (clock.clone(), clock.stopwatch());
        assert_eq!((clock.now(), stopwatch.ms()), (At(1_000), 0));
        other.advance(234);
        assert_eq!((clock.now(), stopwatch.ms()), (At(1_234), 234));
    }

    #[test]
    fn runs_of_a_fixed_clock_are_counted() {
        let clock = Clock::fixed(At(1_795_291_200_123));
        let runs = [clock.new_run(), clock.clone().new_run()];
        assert_eq!(
            runs.map(|run| run.to_string()),
            [
                "01a1ffb1-ba7b-7000-8000-000000000001",
                "01a1ffb1-ba7b-7000-8000-000000000002",
            ]
        );
    }

    #[test]
    fn runs_of_the_machine_are_of_version_7_and_differ() {
        let (one, two) = (Clock::System.new_run(), Clock::System.new_run());
        assert_eq!(one.0.get_version_num(), 7);
        assert!(one < two);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_over_when_the_machine_has_slept_through_it() {
        let begun = tokio::time::Instant::now();
        sleep(60_000, || false).await;
        assert_eq!(begun.elapsed().as_secs(), 60);
        sleep(60_000, || begun.elapsed().as_secs() >= 67).await;
        assert_eq!(begun.elapsed().as_secs(), 70);
        sleep(60_000, || true).await;
        assert_eq!(begun.elapsed().as_secs(), 70);
    }
}
