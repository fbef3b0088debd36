//! Recorded runs of other agents, played through the real loop: real text in real order, compacted
//! as a run of ours would be.
//!
//! `UNDERTEXT_CORPUS` names a folder of recordings, one folder a format; without it the short
//! excerpts beside this file are played, in a smaller window. Recordings are imported as a person would
//! import them, and give turns, rounds, calls and results; `play` runs them, `facts` plants what must not be lost, `judge` holds the laws against what was
//! recorded. With `--nocapture` the figures of each run are printed.

mod facts;
mod judge;
mod play;
mod recording;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use undertext::import::{self, Imported};
use undertext::setup::Policy;
use undertext::view::Sizes;

use self::recording::Recording;
use crate::exported::comes_back;
use crate::{scene, simulated};

/// The window in which recordings are played, and the smaller one for excerpts.
const WINDOW: u64 = 32_000;
const SMALL_WINDOW: u64 = 3_000;

/// How often in a run the oracle is asked: each time costs it the square of the run.
const LOOKS: usize = 10;

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

/// The runs in the recordings of a format, by the name of their file.
fn recordings(folder: &Path, format: &str) -> Vec<Recording> {
    let Ok(entries) = fs::read_dir(folder.join(format)) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let of = |path: PathBuf| {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let runs = import::read(&path, None).unwrap();
        let runs = imported(&format!("{format}/{file}"), runs);
        assert!(!runs.is_empty(), "{format}/{file} holds no run");
        runs
    };
    paths.into_iter().flat_map(of).collect()
}

/// What imported runs recorded; those in which nothing was answered are left out.
fn imported(name: &str, runs: Vec<Imported>) -> Vec<Recording> {
    let recordings = runs.into_iter().filter_map(|run| {
        let name = match run.import().part {
            Some(part) => format!("{name} {part}"),
            None => name.to_owned(),
        };
        Recording::of(&name, &run.entries().unwrap())
    });
    recordings.collect()
}

/// Plays every run of a format and holds everything against it.
fn check(format: &str) {
    let (folder, window) = corpus();
    for recording in recordings(&folder, format) {
        check_run(&recording, window);
    }
}

fn check_run(recording: &Recording, window: u64) {
    let (recording, facts) = facts::planted(&play::within(recording, window));
    let name = &recording.name;
    let (storage, recorder) = play::play(&recording, window);
    let entries = scene::entries(&storage);
    comes_back(name, &entries);
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
    ($($test:ident: $folder:literal;)*) => {
        /// The folder of each format.
        const FORMATS: &[&str] = &[$($folder),*];

        $(
            #[test]
            fn $test() {
                check($folder);
            }
        )*
    };
}

formats! {
    aider: "aider";
    atif: "atif";
    claude_code: "claude-code";
    codex: "codex";
    copilot_cli: "copilot-cli";
    gemini_cli: "gemini-cli";
    inspect: "inspect";
    mini_swe_agent: "mini-swe-agent";
    openhands: "openhands";
    openhands_sdk: "openhands-sdk";
    pi: "pi";
    swe_agent: "swe-agent";
}

/// What is found in the excerpts, which stay as they are.
#[test]
fn recordings_hold_rounds_calls_and_results() {
    let mut found = String::new();
    for format in FORMATS {
        for recording in recordings(&excerpts(), format) {
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
    insta::assert_snapshot!(found, @"
    aider: turns 1, rounds 1, with reasoning 0, calls 0 (), failed 0
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
    for (format, file) in [("codex", "rollout.jsonl"), ("pi", "session.jsonl")] {
        let whole = fs::read_to_string(excerpts().join(format).join(file)).unwrap();
        let lines = whole
            .lines()
            .map(|line| format!("{line}\n{{\"type\":\"mess\n\n"));
        let broken: String = lines.collect();
        let read = |text: &str| {
            let runs = import::read_bytes(file, text.as_bytes().to_vec(), None).unwrap();
            let skipped = runs[0].import().skipped;
            (format!("{:?}", imported(file, runs)), skipped)
        };
        let lines = whole.lines().count() as u64;
        let (whole, broken) = (read(&whole), read(&broken));
        assert_eq!((whole.0, lines), broken, "{format}");
        assert_eq!(whole.1, 0, "{format}");
    }
}
