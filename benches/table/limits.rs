//! What the machine itself takes.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use undertext::id::Digest;

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
