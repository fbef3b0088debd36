//! Runs of other agents as transcripts of ours: every recording imports, holds what its agent
//! recorded, and keeps the laws that apply.
//!
//! `UNDERTEXT_CORPUS` names a folder of recordings, one folder a format, whose `README.md` has a table
//! of what another reader counted; without it the excerpts in `corpus/` are imported.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use undertext::exchange::Status;
use undertext::id::EntryId;
use undertext::import::{self, Format};
use undertext::overlay::{Layer, Origin};
use undertext::replay::Replay;
use undertext::transcript::turn::Round;
use undertext::transcript::{Entry, Event, Purpose, Retract, jsonl};
use undertext::view::View;

use crate::corpus::{corpus, excerpts};
use crate::laws::{begins_as_before, can_be_recalled, reads_as_notes};
use crate::oracle;

/// How often in a run the oracle and the judge of bodies are asked: each time costs the whole run.
const LOOKS: usize = 8;

/// Where the counts of the table are others, and why.
const EXPLAINED: &[(&str, &str)] = &[
    (
        "agent-sessions-small.jsonl",
        "so short that the system message alone is more",
    ),
    (
        "cli447_hi_followup_iterative_case_a",
        "results are counted there as JSON, here as they read",
    ),
    (
        "ctf-web-i-got-id.traj",
        "the last result stands in the trajectory alone",
    ),
    (
        "django__django-16820.md",
        "what aider only shows is not counted here: it is in notes",
    ),
    (
        "marshmallow-1867-xml-cursors.traj",
        "the last result stands in the trajectory alone",
    ),
    (
        "multi_swe_bench-output.jsonl",
        "knowledge that was looked up for the model is not counted there",
    ),
];

/// How texts begin that Claude Code attaches for the model, which the table leaves out.
const ATTACHED: [&str; 14] = [
    "[skill_listing]",
    "[hook_success]",
    "[hook_additional_context]",
    "[deferred_tools_delta]",
    "[agent_listing_delta]",
    "[mcp_instructions_delta]",
    "[edited_text_file]",
    "[queued_command]",
    "[directory]",
    "[task_reminder]",
    "[plan_mode]",
    "[plan_mode_exit]",
    "[plan_mode_reentry]",
    "[date_change]",
];

/// What stands in a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    messages: u64,
    calls: u64,
    tokens: u64,
}

/// The recordings of a folder, by format and name.
pub(crate) fn recordings(folder: &Path) -> Vec<(Format, PathBuf)> {
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
pub(crate) fn imported(format: Format, path: &Path) -> Vec<Vec<Arc<Entry>>> {
    let runs = import::read(path, None);
    let runs = runs.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let entries = runs.into_iter().map(|run| {
        assert_eq!(run.format(), format, "{}", path.display());
        run.entries().unwrap()
    });
    entries.collect()
}

/// What stands in the entries, counted as the table of the corpus is: the system text, a message of the
/// user, a response, a result, a summary is a message; a quarter of the characters of all of them but
/// reasoning are tokens. A result that was not recorded does not count.
fn counts(runs: &[Vec<Arc<Entry>>]) -> Counts {
    let mut counts = Counts::default();
    let mut chars = 0;
    for entry in runs.iter().flatten() {
        let mut add = |text: &str| chars += text.chars().count() as u64;
        match &entry.event {
            Event::Setup(setup) if entry.id.0 == 2 && !setup.wire.instructions.is_empty() => {
                add(&setup.wire.instructions);
            }
            Event::User(user) if !ATTACHED.iter().any(|known| user.text.starts_with(known)) => {
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
            Event::Result(result) if result.status != Status::Interrupted => add(&result.content),
            Event::Overlay(overlay) => {
                assert_eq!(overlay.rule, import::RECORDED);
                let Layer::Summary(summary) = &overlay.layer else {
                    panic!("{overlay:?}")
                };
                add(&summary.text);
            }
            _ => continue,
        }
        counts.messages += 1;
    }
    counts.tokens = chars / 4;
    counts
}

/// Every request can be built again and begins as the one before it; some of them, and the end, are
/// held against the oracle and the judge of bodies; each compaction makes the next request smaller, and
/// can be taken back; what it covers can be had; the lines are the same when they are read and written
/// again.
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
        if let Event::Overlay(overlay) = &entry.event {
            let before = view.chars().all;
            let mut after = view.clone();
            after.take(Arc::clone(entry));
            assert!(after.chars().all < before, "{name}: law 7 at {}", entry.id);
            assert!(overlay.size.after < overlay.size.before, "{name}");
            reads_as_notes(&retracted(entries, entry.id)).unwrap();
        }
        view.take(Arc::clone(entry));
        let line = jsonl::encode(entry).unwrap();
        let read = jsonl::decode(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(jsonl::encode(&read).unwrap(), line, "{name}: {}", entry.id);
    }
    assert_eq!(view.messages(), oracle::messages(entries), "{name}");
    begins_as_before(entries).unwrap();
    can_be_recalled(&view).unwrap();
    // A view that nobody looked at, and that is handed entries again, is the same.
    let mut other = View::default();
    for entry in entries {
        other.take(Arc::clone(entry));
        other.take(Arc::clone(&entries[0]));
    }
    assert_eq!(view.body(&Purpose::Round), other.body(&Purpose::Round));
    assert_eq!(view.messages(), other.messages(), "{name}");
    let closed = view.rounds().all().iter().all(Round::is_closed);
    assert!(closed, "{name}: a round is open");
}

/// The entries, and a last one that takes an overlay back.
fn retracted(entries: &[Arc<Entry>], overlay: EntryId) -> Vec<Arc<Entry>> {
    let last = entries.last().unwrap();
    let retract = Entry {
        id: last.id.next(),
        at: last.at,
        event: Event::Retract(Retract {
            overlays: vec![overlay],
            origin: Origin::User,
        }),
    };
    let mut entries = entries.to_vec();
    entries.push(Arc::new(retract));
    entries
}

/// What the table of the corpus says of each recording, by the name of its file.
fn table(folder: &Path) -> BTreeMap<String, Counts> {
    let text = fs::read_to_string(folder.join("README.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let row: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, file, _, _, _, _, _, messages, calls, tokens, ..] = row[..] else {
            return None;
        };
        let counts = Counts {
            messages: messages.parse().ok()?,
            calls: calls.parse().ok()?,
            tokens: tokens.parse().ok()?,
        };
        let name = file.trim_end_matches('/').rsplit('/').next()?;
        Some((name.to_owned(), counts))
    });
    rows.collect()
}

/// Whether two counts are within a fiftieth of the second.
fn agree(one: u64, other: u64) -> bool {
    one.abs_diff(other) * 50 <= other
}

#[test]
fn every_recording_imports_and_keeps_the_laws() {
    let (folder, _) = corpus();
    let mut table = (folder != excerpts()).then(|| table(&folder));
    let mut found = String::new();
    for (format, path) in recordings(&folder) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let runs = imported(format, &path);
        for run in &runs {
            keeps_the_laws(&name, run);
        }
        let counts = counts(&runs);
        let compacted = |entry: &&Arc<Entry>| matches!(entry.event, Event::Overlay(_));
        let compactions = runs.iter().flatten().filter(compacted).count();
        let Counts {
            messages,
            calls,
            tokens,
        } = counts;
        writeln!(
            found,
            "{format}: runs {}, messages {messages}, calls {calls}, tokens {tokens}, compactions \
             {compactions}",
            runs.len()
        )
        .unwrap();
        let Some(said) = table.as_mut().and_then(|table| table.remove(&name)) else {
            continue;
        };
        let same = agree(messages, said.messages)
            && agree(calls, said.calls)
            && agree(tokens, said.tokens);
        let explained = EXPLAINED.iter().find(|(file, _)| *file == name);
        assert!(
            same || explained.is_some(),
            "{name}: {counts:?}, not {said:?}"
        );
        // No call is ever lost.
        assert_eq!(calls, said.calls, "{name}");
        println!("{name}: {counts:?} of {said:?}: {explained:?}");
    }
    if let Some(table) = table {
        assert!(table.is_empty(), "not imported: {:?}", table.keys());
        return;
    }
    insta::assert_snapshot!(found, @"
    claude-code: runs 1, messages 14, calls 5, tokens 977, compactions 0
    codex: runs 1, messages 16, calls 7, tokens 1938, compactions 0
    pi: runs 1, messages 15, calls 4, tokens 1425, compactions 0
    mini-swe-agent: runs 1, messages 22, calls 10, tokens 1891, compactions 0
    swe-agent: runs 1, messages 24, calls 11, tokens 2866, compactions 0
    openhands: runs 1, messages 9, calls 4, tokens 1737, compactions 0
    gemini-cli: runs 1, messages 20, calls 8, tokens 1277, compactions 0
    copilot-cli: runs 1, messages 4, calls 1, tokens 17, compactions 0
    aider: runs 1, messages 4, calls 0, tokens 980, compactions 0
    ");
}
