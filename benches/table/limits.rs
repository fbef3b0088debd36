//! What the machine itself takes.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use undertext::id::Digest;
use undertext::record::Clock;

use crate::{command, median};

/// The processor's name, or the architecture's.
pub(crate) fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let model = lines.find(|(name, _)| name.trim() == "model name");
    model.map_or_else(
        || std::env::consts::ARCH.to_owned(),
        |(_, model)| model.trim().to_owned(),
    )
}

/// The day.
pub(crate) fn today() -> String {
    let now = Clock::System.now().to_string();
    now.split('T').next().unwrap_or_default().to_owned()
}

/// The most memory that a process had, in bytes.
pub(crate) fn peak(pid: &str) -> u64 {
    kib(&format!("/proc/{pid}/status"), "VmHWM:")
}

/// The memory that a process has, with its share of what others have as well, in bytes; at its worst
/// moment, so much more as it had then.
pub(crate) fn share(pid: &str) -> u64 {
    let (most, now) = (peak(pid), kib(&format!("/proc/{pid}/status"), "VmRSS:"));
    kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:") + most.saturating_sub(now)
}

/// A number of KiB in a file of the system, in bytes; 0 if it is not there.
fn kib(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let found = text.lines().find_map(|line| line.strip_prefix(name));
    let number = found.and_then(|line| line.split_whitespace().next());
    number.and_then(|it| it.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// The bytes that a process has handed over to be written, wherever they went, and those of the pages of the
/// disk that are written because of it.
pub(crate) fn written(pid: &str) -> (u64, u64) {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let count = |name: &str| -> u64 {
        let line = io.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    };
    // Pages of files that are removed again reach no disk.
    let pages = count("write_bytes:").saturating_sub(count("cancelled_write_bytes:"));
    (count("wchar:"), pages)
}

/// The bytes of the pages that are written by so many synced appends of so many bytes.
pub(crate) fn pages(directory: &Path, appends: usize, bytes: usize) -> u64 {
    let line = vec![b'a'; bytes];
    let (_, before) = written("self");
    let mut file = File::create(directory.join("pages")).unwrap();
    for _ in 0..appends {
        file.write_all(&line).unwrap();
        file.sync_data().unwrap();
    }
    written("self").1 - before
}

/// An append of so many bytes that is on the disk when it returns.
pub(crate) fn synced_append(directory: &Path, bytes: usize) -> Duration {
    let line = vec![b'a'; bytes];
    let mut file = File::create(directory.join("appended")).unwrap();
    median(200, || {
        file.write_all(&line).unwrap();
        file.sync_data().unwrap();
    })
}

/// A copy of so many bytes.
pub(crate) fn copy(bytes: usize) -> Duration {
    let from = vec![b'a'; bytes];
    median(200, || drop(black_box(black_box(&from).clone())))
}

/// The SHA-256 of so many bytes.
pub(crate) fn digest(bytes: usize) -> Duration {
    let bytes = vec![b'a'; bytes];
    median(200, || {
        black_box(Digest::of(black_box(&bytes)));
    })
}

/// A program that is started, does this, and ends.
pub(crate) fn spawned(program: &str, arguments: &[&str], directory: &Path) -> Duration {
    median(100, || {
        let mut command = command(program);
        command.args(arguments).current_dir(directory);
        assert!(command.output().unwrap().status.success());
    })
}
