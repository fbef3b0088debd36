//! What a round costs, apart from the model and the tools: it must not grow with the run.
//!
//! A scripted run of 2,000 rounds is timed where its model is asked, so that early rounds can be
//! held against late ones; then the parts of a round are measured one by one.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at what it did not expect, and prints what it found"
)]

#[path = "../tests/it/scene.rs"]
#[expect(
    dead_code,
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    reason = "the stage of the tests, which need more of it"
)]
mod scene;
#[path = "table/timed.rs"]
mod timed;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput};
use undertext::record::{Clock, Durability, FileStorage, MemoryStorage, Storage};
use undertext::transcript::{Entry, Event, Purpose, jsonl};
use undertext::view::View;

/// The rounds of a long run.
const ROUNDS: u32 = 2000;

/// How often each long run is made. It does the same work each time, so the fastest time of each round
/// is the one that nothing else on the machine disturbed.
const RUNS: usize = 5;

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures the machine's time"
)]
fn now() -> Instant {
    Instant::now()
}

/// Prints what early and late rounds of a long run take.
///
/// A summary is made once in many rounds, so that two short stretches may hold different numbers of
/// them: the medians compare plain rounds, the halves of the run compare everything.
fn long_run<S: Storage + 'static>(name: &str, storage: impl Fn() -> S) {
    let mut took = vec![Duration::MAX; ROUNDS as usize];
    let mut summaries = Vec::new();
    for _ in 0..RUNS {
        let (asked, recorder) = timed::run(ROUNDS, 64_000, true, storage());
        for (fastest, pair) in took.iter_mut().zip(asked.windows(2)) {
            *fastest = (*fastest).min(pair[1] - pair[0]);
        }
        summaries = rounds_of_summaries(recorder.view());
    }
    println!("{name}:");
    let stretches = [(100, 200), (1900, 2000), (0, 1000), (1000, 2000)].map(|(from, to)| {
        let count = summaries
            .iter()
            .filter(|at| (from..to).contains(*at))
            .count();
        let mut stretch = took[from..to].to_vec();
        stretch.sort_unstable();
        let mean = stretch.iter().sum::<Duration>() / u32::try_from(stretch.len()).unwrap();
        let median = stretch[stretch.len() / 2];
        let dearest = stretch[stretch.len() - 1];
        println!(
            "  rounds {from} to {to}: {mean:?} a round, median {median:?}, dearest {dearest:?}, \
             {count} summaries"
        );
        (mean, median)
    });
    let [early, late, first, second] = stretches;
    let times = |later: Duration, earlier: Duration| later.as_secs_f64() / earlier.as_secs_f64();
    println!(
        "  rounds 1900 to 2000 against 100 to 200: {:.2} times, medians {:.2} times; the halves: \
         {:.2} times, medians {:.2} times",
        times(late.0, early.0),
        times(late.1, early.1),
        times(second.0, first.0),
        times(second.1, first.1)
    );
}

/// The rounds after which a summary was asked for.
fn rounds_of_summaries(view: &View) -> Vec<usize> {
    let mut round = 0;
    let mut found = Vec::new();
    for entry in view.transcript().entries() {
        if let Event::Request(request) = &entry.event {
            match request.purpose {
                Purpose::Round => round += 1,
                Purpose::Summary(_) | Purpose::Combine(_) | Purpose::Repair { .. } => {
                    found.push(round - 1);
                }
            }
        }
    }
    found
}

/// Measures the parts of a round, on a view of 100,000 tokens.
fn parts(criterion: &mut Criterion) {
    let (_, recorder) = timed::run(110, 1_000_000, false, MemoryStorage::default());
    let entries = recorder.view().transcript().entries().to_vec();
    let is_result = |entry: &Arc<Entry>| matches!(entry.event, Event::Result(_));
    let newest = entries.iter().rposition(is_result).unwrap();
    let before = View::of(entries[..newest].iter().cloned());
    let result = &entries[newest];
    let mut view = before.clone();
    view.take(Arc::clone(result));
    println!("a view of {} tokens", view.estimate().tokens);
    assert!(view.estimate().tokens > 100_000);

    criterion.bench_function("a result into the view", |bencher| {
        bencher.iter_batched(
            || (before.clone(), Arc::clone(result)),
            |(mut view, result)| {
                view.take(result);
                view
            },
            BatchSize::LargeInput,
        );
    });
    let mut group = criterion.benchmark_group("per byte");
    let body = view.body(&Purpose::Round).unwrap();
    group.throughput(Throughput::Bytes(body.bytes.len() as u64));
    group.bench_function("the body of the view", |bencher| {
        bencher.iter(|| black_box(&view).body(&Purpose::Round));
    });
    let line = jsonl::encode(result).unwrap();
    group.throughput(Throughput::Bytes(line.len() as u64));
    group.bench_function("a result to a line and back", |bencher| {
        bencher.iter(|| {
            let line = jsonl::encode(black_box(result)).unwrap();
            jsonl::decode(line.trim_ascii_end()).unwrap()
        });
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    long_run("in memory", MemoryStorage::default);
    let directory = tempfile::tempdir().unwrap();
    long_run("in a file", || {
        let run = Clock::System.new_run();
        FileStorage::create(directory.path(), run, Durability::None).unwrap()
    });
    parts(&mut criterion);
    criterion.final_summary();
}
