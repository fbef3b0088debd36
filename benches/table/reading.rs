//! A transcript of a million entries: taken up with and without its index, and verified. Each is
//! measured in a process of its own.

use std::fs::{self, File};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::IgnoredAny;
use undertext::record::{Clock, Durability, FileStorage, OnDamage, Recorder, runs};
use undertext::replay;
use undertext::transcript::Purpose;

use crate::{Row, TRIES, command, limits, made, mib, middle_by, ms, now};

/// The entries of the long transcript, about: 1 GiB.
const ENTRIES: u64 = 1_000_000;

/// What a process of its own found.
struct Found {
    took: Duration,
    /// The time that it computed.
    computed: Duration,
    /// The most memory that it had, in bytes.
    memory: u64,
    /// What it counted: entries, or the bytes that were hashed.
    count: u64,
}

/// A long transcript, and what it costs.
#[expect(clippy::cast_precision_loss, reason = "shown in megabytes a second")]
pub(crate) fn reading() -> Vec<Row> {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::System;
    let storage = FileStorage::create(directory.path(), clock.new_run(), Durability::None).unwrap();
    let path = storage.path().to_owned();
    drop(made::record(storage, ENTRIES));
    // As a copy, or a run that was killed: its index fits by its digest alone, until a run has ended.
    let file = File::options().append(true).open(&path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.set_modified(modified - Duration::from_secs(1))
        .unwrap();
    let first = middle(|| measure("--open", &path));
    take_up(&path).keep_index().unwrap();
    let length = fs::metadata(&path).unwrap().len();
    let index = path.with_extension("index");
    let with = middle(|| measure("--open", &path));
    let kept = fs::metadata(&index).unwrap().len();
    let without = {
        fs::remove_file(&index).unwrap();
        middle(|| measure("--open", &path))
    };
    let scanned = middle(|| measure("--scan", &path));
    let verified = middle(|| measure("--verify", &path));
    let skipped = skipped(&path);

    let entries = u32::try_from(with.count).unwrap();
    let entry = without.computed.saturating_sub(scanned.computed) / entries;
    let rate = |bytes: u64, time: Duration| bytes as f64 / time.as_secs_f64() / 1e6;
    let verify = rate(length, verified.computed);
    let hash = rate(1 << 20, limits::digest(1 << 20));
    // As they are hashed there: body by body.
    let bodies = usize::try_from(verified.count / (with.count / 3)).unwrap();
    let hashed = rate(bodies as u64, limits::digest(bodies));
    let whole = format!("{entries} entries, {}", mib(length));
    vec![
        Row::new(
            "one entry into the view at 1,000,000 entries, without rendering",
            "2 µs",
            format!("{whole}; reading alone computes {}", ms(scanned.computed)),
            format!("{:.2} µs", entry.as_secs_f64() * 1e6),
            entry <= Duration::from_micros(2),
        ),
        Row::new(
            "1 GiB of 1,000,000 entries, ready for its first request",
            "5 s and 256 MiB",
            format!("serde_json skips its values in {}", ms(skipped)),
            format!("{} and {}", ms(without.took), mib(without.memory)),
            without.took <= Duration::from_secs(5) && without.memory <= 256 << 20,
        ),
        Row::new(
            "the same with its index, where the last run ended",
            "200 ms and 64 MiB",
            format!(
                "one copy of the index: {}",
                ms(limits::copy(usize::try_from(kept).unwrap()))
            ),
            format!("{} and {}", ms(with.took), mib(with.memory)),
            with.took <= Duration::from_millis(200) && with.memory <= 64 << 20,
        ),
        Row::new(
            "the same with its index, of a copy or after a crash",
            "200 ms and 64 MiB",
            format!(
                "SHA-256 of the transcript: {}",
                ms(Duration::from_secs_f64(length as f64 / hash / 1e6))
            ),
            format!("{} and {}", ms(first.took), mib(first.memory)),
            first.took <= Duration::from_millis(200) && first.memory <= 64 << 20,
        ),
        Row::new(
            "`replay --verify`, a core",
            "100 MB/s",
            format!(
                "serde_json skips the same at {:.0} MB/s",
                rate(length, skipped)
            ),
            format!("{verify:.0} MB/s"),
            verify >= 100.0,
        ),
        Row::new(
            "the SHA-256 that it needs",
            "1 GB/s",
            format!(
                "a MiB at once: {hash:.0} MB/s; {} are hashed",
                mib(verified.count)
            ),
            format!("{hashed:.0} MB/s, {bodies} bytes at once"),
            hashed >= 1000.0,
        ),
    ]
}

/// The one of three in the middle.
fn middle(mut measure: impl FnMut() -> Found) -> Found {
    let tries = TRIES.map(|()| measure());
    middle_by(tries, |a, b| a.took.cmp(&b.took))
}

/// How long `serde_json` takes to skip the values of every line.
fn skipped(path: &Path) -> Duration {
    let bytes = fs::read(path).unwrap();
    let begun = now();
    let lines = bytes.split(|byte| *byte == b'\n');
    let read = lines.map(serde_json::from_slice::<IgnoredAny>);
    black_box(read.flatten().count());
    begun.elapsed()
}

/// Has another process do this with a transcript.
fn measure(what: &str, path: &Path) -> Found {
    let mut command = command(std::env::current_exe().unwrap().to_str().unwrap());
    let output = command.arg(what).arg(path).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|it| it.parse().unwrap())
        .collect();
    let [took, computed, memory, count] = <[u64; 4]>::try_from(numbers).unwrap();
    Found {
        took: Duration::from_micros(took),
        computed: Duration::from_micros(computed),
        memory,
        count,
    }
}

fn take_up(path: &Path) -> Recorder {
    let storage = FileStorage::open(path, Durability::None).unwrap();
    Recorder::open(Box::new(storage), Clock::System, OnDamage::Refuse).unwrap()
}

/// Does it, in that process, and says what it took.
pub(crate) fn child(what: &str, path: &str) -> bool {
    let path = PathBuf::from(path);
    let begun = now();
    let count = match what {
        "--open" => {
            let recorder = take_up(&path);
            black_box(recorder.view().body(&Purpose::Round).unwrap());
            let took = begun.elapsed();
            return say(took, recorder.view().transcript().next_id().0);
        }
        "--scan" => runs::scan(&path).unwrap().entries,
        "--verify" => {
            let mut is_equal = true;
            let loaded = runs::fold_along(&path, |view, entry| {
                let rebuilt = replay::rebuilt(view, entry);
                is_equal &= rebuilt.is_none_or(|rebuilt| rebuilt.is_equal());
            });
            assert!(is_equal);
            loaded.unwrap().view.work().hashed
        }
        _ => return false,
    };
    say(begun.elapsed(), count)
}

fn say(took: Duration, count: u64) -> bool {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let computed = time.tv_sec * 1_000_000 + time.tv_nsec / 1000;
    let peak = limits::peak("self");
    println!("{} {computed} {peak} {count}", took.as_micros());
    true
}
