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
    let [memory, written, pages] = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
    let seen = [&memory, &written, &pages].map(Arc::clone);
    let of_run = Arc::clone(&pid);
    let server = Server::new(Script {
        rounds: ROUNDS,
        tool: "Bash",
        arguments: |_| json!({ "command": COMMAND }),
        before_last: Arc::new(move || {
            let [memory, written, pages] = &seen;
            let pid = of_run.load(Ordering::SeqCst).to_string();
            let all = family(&pid);
            let share = all.iter().map(|pid| limits::share(pid)).sum();
            memory.store(share, Ordering::SeqCst);
            written.store(limits::written(&pid).0, Ordering::SeqCst);
            let dirtied = all.iter().map(|pid| limits::written(pid).1).sum();
            pages.store(dirtied, Ordering::SeqCst);
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
    let ratio = |bytes: u64| bytes as f64 / recorded as f64;
    let times = ratio(written);
    let pages = pages.load(Ordering::SeqCst);
    let appended = usize::try_from(recorded).unwrap() / ROUNDS / 2;
    let least = limits::pages(place.0.path(), 2 * ROUNDS, appended);
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
            "memory of 200 rounds with 4 kB results, all processes",
            "32 MiB",
            "what they share is counted once",
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
        Row::new(
            "the pages of the disk that are written",
            "1.2 × the transcript",
            format!(
                "two synced appends a round: {} ({:.2} ×)",
                mib(least),
                ratio(least)
            ),
            format!("{} ({:.2} ×)", mib(pages), ratio(pages)),
            ratio(pages) <= 1.2,
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

/// A process and those below it.
fn family(pid: &str) -> Vec<String> {
    let mut all = vec![pid.to_owned()];
    let mut place = 0;
    while let Some(pid) = all.get(place) {
        // Any of its threads may have begun one.
        let threads = fs::read_dir(format!("/proc/{pid}/task"));
        let begun = threads.into_iter().flatten().flatten().map(|thread| {
            let children = fs::read_to_string(thread.path().join("children"));
            children.unwrap_or_default()
        });
        let begun: Vec<String> = begun.collect();
        let words = begun.iter().flat_map(|begun| begun.split_whitespace());
        all.extend(words.map(str::to_owned));
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
