//! The program, as a user starts it: with its sandbox, its settings and a transcript on the disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::server::{Script, Server};
use crate::{Row, command, limits, mib, middle, ms, now};

/// The rounds of a run whose rounds and memory are measured.
const ROUNDS: usize = 200;

/// The command of a round, which prints 4,000 bytes.
const COMMAND: &str = "head -c 4000 notes.txt";

/// A home and a workspace of their own.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(place.workspace()).unwrap();
        let line = "What is to be known stands here. ";
        fs::write(place.workspace().join("notes.txt"), line.repeat(200)).unwrap();
        place
    }

    fn workspace(&self) -> PathBuf {
        self.0.path().join("home/w")
    }

    /// Starts a run in the workspace.
    fn run(&self, url: &str) -> Child {
        let mut command = command(env!("CARGO_BIN_EXE_undertext"));
        let line = ["run", "--model", "scripted", "--set", "model.api_key_env=K"];
        let window = ["--set", "model.context_window=1000000"];
        command
            .args(line)
            .args(window)
            .args(["--base-url", url, "Read the notes."]);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.0.path().join("home"))
            .env("K", "x");
        command
            .current_dir(self.workspace())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// The bytes of all transcripts.
    fn recorded(&self) -> u64 {
        let directory = self
            .0
            .path()
            .join("home/.local/state/undertext/transcripts");
        let files = fs::read_dir(directory).unwrap().flatten();
        let lengths = files.filter_map(|file| file.metadata().ok());
        lengths
            .filter(fs::Metadata::is_file)
            .map(|data| data.len())
            .sum()
    }
}

/// From the start of the program to its first request.
pub(crate) fn start() -> Vec<Row> {
    let server = Server::new(Script {
        rounds: 0,
        tool: "",
        arguments: |_| json!({}),
        before_last: Arc::new(|| {}),
    });
    let place = Place::new();
    let times = (0..30).map(|_| {
        let begun = now();
        let mut child = place.run(&server.url);
        assert!(child.wait().unwrap().success());
        server
            .take()
            .first()
            .map_or(Duration::ZERO, |asked| asked.first - begun)
    });
    let found = middle(times.collect::<Vec<_>>().split_off(5));
    let limit = limits::spawned("true", &[], Path::new("/"));
    let reached = found <= Duration::from_millis(10);
    vec![Row::new(
        "start to first request on the wire",
        "10 ms",
        format!("fork and exec: {}", ms(limit)),
        ms(found),
        reached,
    )]
}

/// A run with a command a round: the time and the processor's time of a round, memory, and the disk.
pub(crate) fn shell() -> Vec<Row> {
    let pid = Arc::new(AtomicU32::new(0));
    let (memory, written) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let seen = (Arc::clone(&pid), Arc::clone(&memory), Arc::clone(&written));
    let server = Server::new(Script {
        rounds: ROUNDS,
        tool: "Bash",
        arguments: |_| json!({ "command": COMMAND }),
        before_last: Arc::new(move || {
            let (pid, memory, written) = &seen;
            let pid = pid.load(Ordering::SeqCst);
            memory.store(peak(pid), Ordering::SeqCst);
            written.store(handed_over(pid), Ordering::SeqCst);
        }),
    });
    let place = Place::new();
    let before = children_time();
    let mut child = place.run(&server.url);
    pid.store(child.id(), Ordering::SeqCst);
    assert!(child.wait().unwrap().success());
    let cpu = children_time().saturating_sub(before) / u32::try_from(ROUNDS).unwrap();
    let asked = server.take();
    assert_eq!(asked.len(), ROUNDS + 1);
    let between = asked
        .windows(2)
        .map(|pair| pair[1].first - pair[0].answered);
    let found = middle(between);
    let before = children_time();
    let command = limits::spawned("bash", &["-c", COMMAND], &place.workspace());
    let command_cpu = children_time().saturating_sub(before) / 100;
    let recorded = place.recorded();
    let sent: usize = asked.iter().map(|asked| asked.bytes).sum();
    let (memory, written) = (
        memory.load(Ordering::SeqCst),
        // What went to the server went to no disk; what went to the tools' process is counted.
        written.load(Ordering::SeqCst) - sent as u64,
    );
    let over = found.saturating_sub(command);
    #[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
    let times = written as f64 / recorded as f64;
    vec![
        Row::new(
            "a round with one shell call, over the command",
            "2 ms",
            format!("the command: {}", ms(command)),
            ms(over),
            over <= Duration::from_millis(2),
        ),
        Row::new(
            "processor time of it, the command's own included",
            "3 ms",
            format!("the command: {}", ms(command_cpu)),
            ms(cpu),
            cpu <= Duration::from_millis(3),
        ),
        Row::new(
            "memory of 200 rounds with 4 kB results, both processes",
            "32 MiB",
            "",
            mib(memory),
            memory <= 32 << 20,
        ),
        Row::new(
            "bytes written, messages to the tools' process included",
            "1.2 × the transcript",
            format!("the transcript: {}", mib(recorded)),
            format!("{} ({times:.2} ×)", mib(written)),
            times <= 1.2,
        ),
    ]
}

/// The size of the program.
pub(crate) fn binary() -> Vec<Row> {
    let size = fs::metadata(env!("CARGO_BIN_EXE_undertext")).unwrap().len();
    vec![Row::new(
        "the program",
        "22 MiB",
        "",
        mib(size),
        size <= 22 << 20,
    )]
}

/// The most memory that a process and those below it have held, each at its own worst moment.
fn peak(pid: u32) -> u64 {
    family(pid)
        .into_iter()
        .filter_map(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        })
        .sum::<u64>()
        * 1024
}

/// The bytes that a process has handed over to be written, wherever they went.
fn handed_over(pid: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|count| count.parse().ok())
        .unwrap_or_default()
}

/// A process and those below it.
fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut place = 0;
    while let Some(pid) = all.get(place) {
        let path = format!("/proc/{pid}/task/{pid}/children");
        let children = fs::read_to_string(path).unwrap_or_default();
        all.extend(
            children
                .split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
        place += 1;
    }
    all
}

/// The processor time of the children that were waited for, in steps of ten milliseconds.
fn children_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may hold anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}
