//! Runs of other agents as transcripts of ours: every recording imports, holds what its agent
//! recorded, and keeps the laws that apply.
//!
//! `UNDERTEXT_CORPUS` names a folder of recordings, one folder a format, whose `README.md` has a table
//! of what another reader counted; without it the excerpts in `corpus/` are imported.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use undertext::import::{self, Format};
use undertext::replay::Replay;
use undertext::transcript::{Entry, Event, Purpose, jsonl};
use undertext::view::View;

use crate::corpus::{corpus, excerpts};
use crate::oracle;

/// How often in a run the oracle and the judge of bodies are asked: each time costs the whole run.
const LOOKS: usize = 8;

/// What stands in a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    messages: u64,
    calls: u64,
    tokens: u64,
}

/// The recordings of a folder, by format and name.
fn recordings(folder: &Path) -> Vec<(Format, PathBuf)> {
    let mut found = Vec::new();
    for format in Format::ALL {
        let Ok(files) = fs::read_dir(folder.join(format.word())) else {
            continue;
        };
        let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        paths.sort();
        found.extend(paths.into_iter().map(|path| (format, path)));
    }
    found
}

/// The entries of every run of a recording.
fn imported(format: Format, path: &Path) -> Vec<Vec<Arc<Entry>>> {
    let runs = import::read(path, None);
    let runs = runs.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let entries = runs.into_iter().map(|run| {
        assert_eq!(run.format(), format, "{}", path.display());
        run.entries().unwrap()
    });
    entries.collect()
}

/// What stands in the entries, counted as the table of the corpus is: a message of the user, a
/// response, a result is a message; a quarter of the characters of all of them but reasoning are
/// tokens.
fn counts(runs: &[Vec<Arc<Entry>>]) -> Counts {
    let mut counts = Counts::default();
    let mut chars = 0;
    let mut add = |text: &str| chars += text.chars().count() as u64;
    for entry in runs.iter().flatten() {
        match &entry.event {
            Event::Setup(setup) if entry.id.0 == 2 => add(&setup.wire.instructions),
            Event::User(user) => {
                add(&user.text);
                user.attachments.iter().for_each(|part| add(&part.text));
            }
            Event::Response(response) => {
                add(&response.text);
                for call in &response.calls {
                    add(&call.name);
                    add(&call.arguments);
                    counts.calls += 1;
                }
            }
            Event::Result(result) => add(&result.content),
            _ => continue,
        }
        if !matches!(entry.event, Event::Setup(_)) {
            counts.messages += 1;
        }
    }
    counts.tokens = chars / 4;
    counts
}

/// Every request can be built again; some of them, and the end, are held against the oracle and the
/// judge of bodies; the lines are the same when they are read and written again.
fn keeps_the_laws(name: &str, entries: &[Arc<Entry>]) {
    let mut rebuilt = 0;
    for request in Replay::new(entries.to_vec()) {
        assert!(request.is_equal(), "{name}: request {}", request.request);
        rebuilt += 1;
    }
    let mut asked = 0;
    let mut view = View::default();
    for (place, entry) in entries.iter().enumerate() {
        if let Event::Request(_) = &entry.event {
            asked += 1;
            if asked % (rebuilt / LOOKS).max(1) == 0 {
                assert!(view.awaits_model(), "{name}: request {}", entry.id);
                let body = view.body(&Purpose::Round).unwrap();
                let judged = oracle::pairing(&body.bytes);
                assert_eq!(judged, Ok(()), "{name}: request {}", entry.id);
                let expected = oracle::body(&entries[..place]).unwrap();
                assert!(*body.bytes == *expected, "{name}: request {}", entry.id);
            }
        }
        view.take(Arc::clone(entry));
        let line = jsonl::encode(entry).unwrap();
        let read = jsonl::decode(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(jsonl::encode(&read).unwrap(), line, "{name}: {}", entry.id);
    }
    assert_eq!(view.messages(), oracle::messages(entries), "{name}");
    let closed = view.rounds().all().iter().all(|round| round.is_closed());
    assert!(closed, "{name}: a round is open");
}

#[test]
fn every_recording_imports_and_keeps_the_laws() {
    let (folder, _) = corpus();
    for (format, path) in recordings(&folder) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !matches!(format, Format::ClaudeCode | Format::Codex | Format::Pi) {
            continue;
        }
        let runs = imported(format, &path);
        runs.iter().for_each(|run| keeps_the_laws(&name, run));
        println!("{format}/{name} {} {:?}", runs.len(), counts(&runs));
    }
}
