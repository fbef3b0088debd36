//! What reading a transcript costs, beside what the machine can do with the same bytes.
//!
//! Instead, with `cargo bench --bench reading -- …`:
//!
//! - `--write DIR ENTRIES` records a run of about so many entries in a new file: a million are 1 GiB.
//! - `--open FILE` opens it as a run that is taken up and makes its next request, by its index if one
//!   lies beside it.
//! - `--index FILE` keeps an index of it.
//! - `--verify FILE` builds every request again.
//! - `--entries FILE` does nothing with its entries.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at what it did not expect, and prints what it found"
)]

mod made;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use serde::de::IgnoredAny;
use undertext::id::Digest;
use undertext::record::{Clock, Durability, FileStorage, MemoryStorage, OnDamage, Recorder, runs};
use undertext::replay::{self, Replay};
use undertext::transcript::jsonl::{Item, Reader};
use undertext::transcript::{Entry, Event, Purpose};
use undertext::view::View;

/// The entries that are read.
const ENTRIES: u64 = 20_000;

/// The entries of a transcript, one by one.
fn entries(bytes: &[u8]) -> impl Iterator<Item = Entry> {
    Reader::new(bytes).filter_map(|item| match item.unwrap() {
        Item::Entry { entry, .. } => Some(Arc::unwrap_or_clone(entry)),
        Item::Damage(_) | Item::Torn(_) => None,
    })
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}

/// Rates by bytes of transcript.
fn rates(criterion: &mut Criterion, bytes: &[u8]) {
    let mut group = criterion.benchmark_group("a transcript");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("as entries", |bencher| {
        bencher.iter(|| entries(black_box(bytes)).count());
    });
    group.bench_function("as a view", |bencher| {
        bencher.iter(|| View::of(entries(black_box(bytes)).map(Arc::new)));
    });
    group.bench_function("verified", |bencher| {
        bencher.iter(|| {
            let mut replay = Replay::new(entries(black_box(bytes)).map(Arc::new));
            assert!(replay.all(|rebuilt| rebuilt.is_equal()));
        });
    });
    group.bench_function("skipped by serde_json", |bencher| {
        bencher.iter(|| {
            let read = lines(black_box(bytes)).map(serde_json::from_slice::<IgnoredAny>);
            read.flatten().count()
        });
    });
    group.bench_function("as values of serde_json", |bencher| {
        bencher.iter(|| {
            let read = lines(black_box(bytes)).map(serde_json::from_slice::<serde_json::Value>);
            read.flatten().count()
        });
    });
    group.bench_function("hashed", |bencher| {
        bencher.iter(|| Digest::of(black_box(bytes)));
    });
    group.bench_function("copied", |bencher| {
        bencher.iter(|| black_box(bytes).to_vec());
    });
    group.finish();
}

/// Prints what is read, and how much of its requests' bytes is hashed to verify them.
fn describe(bytes: &[u8]) {
    let (mut count, mut requests, mut sent) = (0, 0, 0);
    let mut view = View::default();
    for entry in entries(bytes) {
        count += 1;
        if let Event::Request(request) = &entry.event {
            requests += 1;
            sent += request.body.bytes;
        }
        view.take(Arc::new(entry));
    }
    let hashed = view.work().hashed;
    println!(
        "{count} entries in {} bytes; {requests} requests of {sent} bytes, of which {hashed} are \
         hashed to verify them",
        bytes.len()
    );
}

fn write(directory: &str, entries: u64) {
    let run = Clock::System.new_run();
    let storage = FileStorage::create(Path::new(directory), run, Durability::None).unwrap();
    let recorder = made::record(storage, entries);
    let (storage, transcript) = (recorder.storage(), recorder.view().transcript());
    println!(
        "{}: {} entries in {} bytes",
        storage.location(),
        transcript.last().unwrap().id,
        storage.length().unwrap()
    );
}

fn take_up(path: &Path) -> Recorder {
    let storage = FileStorage::open(path, Durability::Data).unwrap();
    Recorder::open(Box::new(storage), Clock::System, OnDamage::Refuse).unwrap()
}

/// Opens a transcript up to its next request.
fn open(path: &Path) {
    let begun = Clock::System.stopwatch();
    let recorder = take_up(path);
    let view = recorder.view();
    let body = view.body(&Purpose::Round).unwrap();
    let took = begun.ms();
    println!(
        "entry {}, a request of {} bytes after {} ms; an index spared reading {} of {} bytes",
        view.transcript().next_id(),
        body.bytes.len(),
        took,
        recorder.indexed(),
        recorder.storage().length().unwrap()
    );
    println!("{}", memory());
}

/// Keeps an index of a transcript.
fn index(path: &Path) {
    let mut recorder = take_up(path);
    let begun = Clock::System.stopwatch();
    assert!(recorder.keep_index().unwrap(), "it is short, or has one");
    let bytes = path.with_extension("index").metadata().unwrap().len();
    println!("{bytes} bytes in {} ms", begun.ms());
}

/// The most memory that this process had.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    peak.unwrap_or("the most memory is not known here")
        .to_owned()
}

/// Builds every request of a transcript again.
fn verify(path: &Path) {
    let (mut all, mut equal) = (0, 0);
    let loaded = runs::fold_along(path, |view, entry| {
        if let Some(rebuilt) = replay::rebuilt(view, entry) {
            all += 1;
            equal += u64::from(rebuilt.is_equal());
        }
    });
    let hashed = loaded.unwrap().view.work().hashed;
    println!("{equal} of {all} requests rebuilt, {hashed} bytes hashed");
}

/// Reads the entries of a transcript, and no more.
fn scan(path: &Path) {
    println!("{} entries", runs::scan(path).unwrap().entries);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let arguments: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match arguments[..] {
        ["--write", directory, entries, ..] => return write(directory, entries.parse().unwrap()),
        ["--open", path, ..] => return open(Path::new(path)),
        ["--index", path, ..] => return index(Path::new(path)),
        ["--verify", path, ..] => return verify(Path::new(path)),
        ["--entries", path, ..] => return scan(Path::new(path)),
        _ => {}
    }
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let storage = MemoryStorage::default();
    drop(made::record(storage.clone(), ENTRIES));
    let bytes = storage.bytes();
    describe(&bytes);
    rates(&mut criterion, &bytes);
    criterion.final_summary();
}
