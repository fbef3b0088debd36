//! What Undertext costs, each figure beside what the machine itself takes for the same: one table, as
//! `docs/performance.md` has it.
//!
//! ```sh
//! cargo bench --bench table            # all of it
//! cargo bench --bench table -- start   # the rows that name one of these words
//! ```
//!
//! Every limit is measured in the same run as what stands beside it, so that a slow machine is slow on
//! both sides. A figure is the median: of the rounds of a run, of 25 starts, and of three tries where
//! one try is a whole run or a whole transcript.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at what it did not expect, and prints what it found"
)]

mod library;
mod limits;
mod many;
mod program;
mod reading;
mod server;
mod timed;

#[path = "../made/mod.rs"]
mod made;

use std::cmp::Ordering;
use std::process::Command;
use std::time::{Duration, Instant};

use made::scene;

/// A line of the table.
struct Row {
    /// What was measured.
    what: String,
    /// What is to be reached.
    reach: String,
    /// What the machine itself takes for it, measured beside.
    limit: String,
    /// What was found.
    found: String,
    /// Whether it is reached.
    reached: bool,
}

impl Row {
    /// A row that is reached if `reached`.
    fn new(
        what: &str,
        reach: impl Into<String>,
        limit: impl Into<String>,
        found: impl Into<String>,
        reached: bool,
    ) -> Self {
        Self {
            what: what.to_owned(),
            reach: reach.into(),
            limit: limit.into(),
            found: found.into(),
            reached,
        }
    }
}

/// Makes rows.
type Measure = fn() -> Vec<Row>;

/// What is measured, each under the words by which it is chosen.
const ALL: [(&str, Measure); 7] = [
    ("start", program::start),
    ("round", library::round),
    ("shell memory disk", program::shell),
    ("long", library::long),
    ("reading", reading::reading),
    ("many", many::many),
    ("binary", program::binary),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [what, path] = &arguments[..]
        && reading::child(what, path)
    {
        return;
    }
    if many::child(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        return;
    }
    let wanted: Vec<String> = arguments
        .into_iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (day, machine) = (limits::today(), limits::machine());
    println!("{day} · {machine} · {cores} cores\n");
    println!("| what | reach | the machine's own | found | |");
    println!("| --- | --- | --- | --- | --- |");
    for (words, measure) in ALL {
        let is_wanted = |wanted: &String| words.contains(wanted.as_str());
        if !(wanted.is_empty() || wanted.iter().any(is_wanted)) {
            continue;
        }
        for row in measure() {
            let mark = if row.reached { "reached" } else { "**missed**" };
            println!(
                "| {} | {} | {} | {} | {mark} |",
                row.what, row.reach, row.limit, row.found
            );
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures the machine's time"
)]
fn now() -> Instant {
    Instant::now()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark starts the program as a user does"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}

/// The time that `what` takes, in the middle of so many tries.
fn median(tries: usize, mut what: impl FnMut()) -> Duration {
    middle((0..tries).map(|_| {
        let begun = now();
        what();
        begun.elapsed()
    }))
}

/// The one in the middle.
fn middle(times: impl IntoIterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.into_iter().collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// How often what takes long is tried.
const TRIES: [(); 3] = [(); 3];

/// The one in the middle by this order.
fn middle_by<T, const N: usize>(mut tries: [T; N], order: impl FnMut(&T, &T) -> Ordering) -> T {
    tries.sort_by(order);
    tries.into_iter().nth(N / 2).unwrap()
}

/// A time in milliseconds.
fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// Bytes in MiB.
fn mib(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    let bytes = bytes as f64;
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}
