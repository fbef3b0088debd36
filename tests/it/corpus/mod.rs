//! Recorded runs of other agents, played through the real loop: real text in real order, compacted
//! as a run of ours would be.
//!
//! `UNDERTEXT_CORPUS` names a folder of recordings, one folder a format; without it the short
//! excerpts beside this file are played, in a smaller window. A reader takes a file as its agent
//! wrote it, leaves out what it does not understand, and gives turns, rounds, calls and results;
//! `play` runs them, `facts` plants what must not be lost, `judge` holds the laws against what was
//! recorded. With `--nocapture` the figures of each run are printed.

mod archive;
mod claude_code;
mod codex;
mod facts;
mod judge;
mod lines;
mod logs;
mod openhands;
mod pi;
mod play;
mod recording;
mod swe_agent;
mod terminals;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use undertext::setup::Policy;
use undertext::view::Sizes;

use self::recording::Recording;
use crate::{scene, simulated};

/// The window in which recordings are played, and the smaller one for excerpts.
const WINDOW: u64 = 32_000;
const SMALL_WINDOW: u64 = 3_000;

/// How often in a run the oracle is asked: each time costs it the square of the run.
const LOOKS: usize = 10;

/// A reader: the file's name and its bytes, to the runs in it.
type Read = fn(&str, &[u8]) -> Vec<Recording>;

/// The folder of recordings, and the window to play them in.
#[expect(
    clippy::disallowed_methods,
    reason = "where recordings are is the caller's to say"
)]
pub(crate) fn corpus() -> (PathBuf, u64) {
    if let Some(folder) = std::env::var_os("UNDERTEXT_CORPUS") {
        return (folder.into(), WINDOW);
    }
    (excerpts(), SMALL_WINDOW)
}

pub(crate) fn excerpts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/excerpts")
}

/// The files of a format, by name; a folder counts as one, its files on a line each.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = paths.into_iter().map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = if path.is_dir() {
            let inner = files(&path).into_iter().map(|(_, bytes)| one_line(&bytes));
            inner.collect::<Vec<_>>().join(&b'\n')
        } else {
            fs::read(&path).unwrap()
        };
        (name, bytes)
    });
    files.collect()
}

/// JSON without its line breaks, which stand only between its tokens.
fn one_line(json: &[u8]) -> Vec<u8> {
    let breaks = |byte: &u8| !matches!(byte, b'\n' | b'\r');
    json.iter().copied().filter(breaks).collect()
}

/// Plays every run of a format and holds everything against it.
fn check(format: &str, read: Read) {
    let (folder, window) = corpus();
    for (file, bytes) in files(&folder.join(format)) {
        let runs = read(&format!("{format}/{file}"), &bytes);
        assert!(!runs.is_empty(), "{format}/{file} holds no run");
        for recording in &runs {
            check_run(recording, window);
        }
    }
}

fn check_run(recording: &Recording, window: u64) {
    let (recording, facts) = facts::planted(&play::within(recording, window));
    let name = &recording.name;
    let (storage, recorder) = play::play(&recording, window);
    let entries = scene::entries(&storage);
    let most = Sizes::new(&scene::model(window), &Policy::default(), 0, 1000).fits;
    if let Err(broken) = simulated::keeps_the_laws(&entries, most) {
        panic!("{name}: {broken}");
    }
    let mut figures = judge::follows_the_oracle(&entries, LOOKS);
    judge::gives_everything_back(&recorder, &recording);
    figures.visible = judge::keeps_the_facts(&recorder, &facts, name);
    assert!(
        figures.asked == 0 || figures.failed < figures.asked,
        "{name}: no summary could be had"
    );
    println!(
        "{}",
        row(name, recording.calls().count(), facts.len(), &figures)
    );
    let judge::Figures {
        looked_for,
        missing,
        list,
        ..
    } = figures;
    // In a window of excerpts' size an extract has room for next to nothing.
    assert!(
        window == SMALL_WINDOW || missing * 10 <= looked_for * 4,
        "{name}: {missing} of {looked_for} items were missing from summaries"
    );
    assert!(
        list <= 100,
        "{name}: a list takes {list} thousandths of the view"
    );
}

/// A row of the table that is printed.
fn row(name: &str, calls: usize, facts: usize, figures: &judge::Figures) -> String {
    let judge::Figures {
        rounds,
        passes,
        overlays,
        summaries,
        asked,
        failed,
        looked_for,
        missing,
        listed,
        list,
        visible,
    } = figures;
    format!(
        "{name:80} {rounds:4} rounds {calls:4} calls {passes:3} passes {overlays:3} overlays, \
         {summaries:2} summaries standing, {failed} of {asked:2} failed, \
         {missing:3} of {looked_for:4} items missing, {listed:3} listed, list {list:3} ‰, \
         {visible:2} of {facts} facts in view"
    )
}

/// A test for each format, so that they run side by side.
macro_rules! formats {
    ($($test:ident: $folder:literal, $read:path;)*) => {
        /// The folder of each format, and its reader.
        const FORMATS: &[(&str, Read)] = &[$(($folder, $read)),*];

        $(
            #[test]
            fn $test() {
                check($folder, $read);
            }
        )*
    };
}

formats! {
    aider: "aider", terminals::read_aider;
    atif: "atif", logs::read_atif;
    claude_code: "claude-code", claude_code::read;
    codex: "codex", codex::read;
    copilot_cli: "copilot-cli", terminals::read_copilot;
    gemini_cli: "gemini-cli", terminals::read_gemini;
    inspect: "inspect", logs::read_inspect;
    mini_swe_agent: "mini-swe-agent", swe_agent::read_mini;
    openhands: "openhands", openhands::read;
    openhands_sdk: "openhands-sdk", openhands::read_events;
    pi: "pi", pi::read;
    swe_agent: "swe-agent", swe_agent::read;
}

/// What the readers find in the excerpts, which stay as they are.
#[test]
fn readers_find_rounds_calls_and_results() {
    let mut found = String::new();
    for (format, read) in FORMATS {
        for (file, bytes) in files(&excerpts().join(format)) {
            for recording in read(&file, &bytes) {
                let calls: Vec<_> = recording.calls().collect();
                let failed = |call: &&&recording::Call| !play::recorded(call).1;
                let tools: BTreeSet<&str> = calls.iter().map(|call| &*call.name).collect();
                let thoughts = recording
                    .rounds()
                    .filter(|round| !round.reasoning.is_empty());
                writeln!(
                    found,
                    "{format}: turns {}, rounds {}, with reasoning {}, calls {} ({}), failed {}",
                    recording.turns.len(),
                    recording.rounds().count(),
                    thoughts.count(),
                    calls.len(),
                    tools.into_iter().collect::<Vec<_>>().join(" "),
                    calls.iter().filter(failed).count(),
                )
                .unwrap();
            }
        }
    }
    insta::assert_snapshot!(found, @"
    aider: turns 1, rounds 2, with reasoning 0, calls 1 (apply_edits), failed 0
    claude-code: turns 1, rounds 6, with reasoning 0, calls 5 (Glob Grep Read), failed 0
    codex: turns 1, rounds 8, with reasoning 6, calls 7 (shell), failed 0
    copilot-cli: turns 1, rounds 2, with reasoning 0, calls 1 (shell), failed 0
    gemini-cli: turns 3, rounds 11, with reasoning 6, calls 8 (google_web_search list_directory read_file run_shell_command write_file), failed 2
    mini-swe-agent: turns 1, rounds 11, with reasoning 0, calls 10 (bash), failed 2
    openhands: turns 1, rounds 5, with reasoning 0, calls 4 (execute_bash), failed 0
    pi: turns 4, rounds 7, with reasoning 3, calls 4 (bash read), failed 0
    swe-agent: turns 1, rounds 12, with reasoning 0, calls 11 (bash create edit find_file open submit), failed 0
    ");
}

/// A line that is no JSON, such as one that was cut, costs that line and no more.
#[test]
fn a_broken_line_is_left_out() {
    for (format, file, read) in [
        ("codex", "rollout.jsonl", codex::read as Read),
        ("pi", "session.jsonl", pi::read),
    ] {
        let whole = fs::read_to_string(excerpts().join(format).join(file)).unwrap();
        let lines = whole
            .lines()
            .map(|line| format!("{line}\n{{\"type\":\"mess\n\n"));
        let broken: String = lines.collect();
        let read = |text: &str| format!("{:?}", read(file, text.as_bytes()));
        assert_eq!(read(&whole), read(&broken), "{format}");
    }
}
