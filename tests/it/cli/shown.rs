//! What `show` tells of a run: how far estimates were off, and what was hidden too early.

use std::fs;

use serde_json::Value;
use undertext::exchange::{Facts, Response, Status, ToolResult, Usage};
use undertext::id::{CallId, Digest, EntryId};
use undertext::overlay::{Layer, Stub};
use undertext::record::Clock;
use undertext::setup::Policy;
use undertext::transcript::{BodyDigest, Estimate, Event, Purpose, Request, Run, Speaker, jsonl};

use crate::cli::Place;
use crate::corpus::excerpts;
use crate::draft::{Draft, reply};
use crate::scene;

/// A run whose requests were estimated and counted as these pairs say, each with a call of `Bash`
/// that says the same.
fn run(counts: &[(u64, u64)]) -> Draft {
    let mut draft = Draft::default();
    draft.push(Event::Run(Run::new(
        Clock::fixed(scene::BEGIN).new_run(),
        "/w",
    )));
    let setup = scene::setup(32_000, Policy::default());
    draft.push(Event::Setup(Box::new(setup)));
    draft.user(Speaker::Task, "Look.");
    for (round, (estimate, counted)) in (1..).zip(counts) {
        let request = draft.push(Event::Request(Request {
            purpose: Purpose::Round,
            round: Some(round),
            setup: EntryId(2),
            renderer: 1,
            body: BodyDigest {
                sha256: Digest::of(b"a body"),
                bytes: 6,
            },
            estimate: Estimate {
                chars: estimate * 4,
                base: *estimate,
                factor: 1000,
                tokens: *estimate,
            },
        }));
        let call = undertext::exchange::ToolCall {
            name: "Bash".to_owned(),
            arguments: r#"{"command":"make"}"#.to_owned(),
            ..undertext::exchange::ToolCall::default()
        };
        let response = draft.push(Event::Response(Response {
            calls: vec![call],
            usage: Some(Usage {
                input: Some(*counted),
                ..Usage::default()
            }),
            ..reply(request)
        }));
        draft.push(Event::Result(ToolResult {
            call: CallId::new(response, 1),
            status: Status::Ok,
            content: "made".to_owned(),
            clipped: None,
            facts: Facts {
                // The last one shows the task again.
                recalled: vec![EntryId(3)],
                ..Facts::default()
            },
            ms: None,
        }));
        if round == 1 {
            draft.overlay(Layer::Stub(Stub {
                results: vec![CallId::new(response, 1)],
                ..Stub::default()
            }));
        }
    }
    draft
}

/// The lines of `show` about estimates and regret, and the same as JSON.
fn shown(counts: &[(u64, u64)]) -> String {
    let place = Place::new();
    let path = place.path("run.jsonl");
    let entries = run(counts).into_entries();
    let lines = entries.iter().map(|entry| jsonl::encode(entry).unwrap());
    fs::write(&path, lines.collect::<Vec<_>>().concat()).unwrap();
    let path = path.to_str().unwrap();
    let text = place.run(&["show", path]);
    assert_eq!(text.code, 0, "{text:?}");
    let told = |line: &&str| line.starts_with("  estimate") || line.starts_with("  regret");
    let lines: Vec<&str> = text.out.lines().filter(told).collect();
    let json: Value = serde_json::from_str(&place.run(&["show", path, "--json"]).out).unwrap();
    let json = [&json["estimates"], &json["regret"]].map(Value::to_string);
    format!("{}\n{}\n", lines.join("\n"), json.join("\n"))
}

#[test]
fn errors_of_estimates_and_regrets_are_shown() {
    let runs: [&[(u64, u64)]; 4] = [
        &[],
        &[(1000, 1000)],
        // Far below the estimate, and above the window.
        &[(1000, 20), (1000, 40_000)],
        &[
            (1000, 1100),
            (1000, 1040),
            (2000, 1900),
            (1000, 4),
            (1300, 1000),
        ],
    ];
    insta::assert_snapshot!(runs.map(shown).join("\n"), @r#"
    null
    null

      estimate    within 0 % of what the provider counted (worst 0 %, 1 round; chars/4)
      regret      none (of 1 call hidden)
    {"rounds":1,"median_permille":0,"worst_permille":0,"not_believed":0,"factor":1000}
    {"hidden":1,"by_tool":{},"texts":0,"by_rule":{}}

      estimate    chars/4; 2 counts not believed
      regret      Bash 1 (of 1 call hidden; by rule: by hand 1)
    {"rounds":0,"median_permille":0,"worst_permille":0,"not_believed":2,"factor":1000}
    {"hidden":1,"by_tool":{"Bash":1},"texts":0,"by_rule":{"by hand":1}}

      estimate    within 9 % of what the provider counted (worst 30 %, 4 rounds; chars/4 × 1.04), 1 count not believed
      regret      Bash 1 (of 1 call hidden; by rule: by hand 1)
    {"rounds":4,"median_permille":90,"worst_permille":300,"not_believed":1,"factor":1040}
    {"hidden":1,"by_tool":{"Bash":1},"texts":0,"by_rule":{"by hand":1}}
    "#);
}

#[test]
fn what_a_recording_does_not_say_is_not_made_up() {
    let place = Place::new();
    let chat = excerpts().join("aider/chat.md");
    fs::copy(chat, place.path("home/w/chat.md")).unwrap();
    assert_eq!(place.run(&["import", "chat.md"]).code, 0);
    let path = place.transcripts().remove(0);
    let path = path.to_str().unwrap();
    let rows = ["  workspace", "  began", "  work", "  estimate", "  notes"];
    let shown = place.run(&["show", path]).out;
    let shown = shown
        .lines()
        .filter(|line| rows.iter().any(|row| line.starts_with(row)));
    let printed = place.run(&["print", path]).out;
    let lines: Vec<&str> = shown.chain(printed.lines().take(1)).collect();
    let text = place.plain(&lines.join("\n"));
    let text = regex::Regex::new(r"[0-9,]+d ago")
        .unwrap()
        .replace(&text, "AGO");
    insta::assert_snapshot!(text, @"
      began       2024-05-21T15:09:52.000Z, AGO, by aider 0.35.1-dev; entries have no times of their own; a recording without any is dated by its file
      work        1 turn, 2 rounds, 2 requests, 0 calls
      estimate    off by 100 % of what the provider counted (worst 100 %, 2 rounds; chars/4 × 4.00); the recording may not hold all that was sent
      notes       e2: Aider v0.35.1-dev
    e1    run UUID, aider 0.35.1-dev, imported from chat.md (aider)
    ");
}
