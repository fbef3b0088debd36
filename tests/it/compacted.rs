//! Compaction stage by stage: what each one takes, and the ladder when a summary cannot be had.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use undertext::agent::{Agent, Task};
use undertext::compaction::{summary, superseded};
use undertext::exchange::{Effect, Hint, Supersession, ToolMeta};
use undertext::id::Span;
use undertext::model::{Fault, Reply, Script, Scripted};
use undertext::overlay::{Author, Carry, Layer, Summary};
use undertext::record::{Clock, MemoryStorage};
use undertext::setup::{OnFailure, Policy, Role};
use undertext::tools::{Outcome, Toolbox, typed};
use undertext::transcript::{Entry, Event, FaultClass, Note, Purpose, Reason, Speaker};
use undertext::view::View;

use crate::draft::Draft;
use crate::scene;

/// The arguments of a tool that reads a range of a file.
#[derive(Debug, Deserialize, JsonSchema)]
struct Range {
    /// The file.
    path: String,
    /// The first line.
    #[serde(default)]
    #[expect(dead_code, reason = "the runtime reads it, not the tool")]
    offset: Option<u64>,
    /// The number of lines.
    #[serde(default)]
    #[expect(dead_code, reason = "the runtime reads it, not the tool")]
    limit: Option<u64>,
}

/// Runs these calls, one a round, with nothing compacted, and returns the view.
fn after(calls: &[(&str, &str)]) -> View {
    let answer = |range: Range| async move {
        if range.path == "missing" {
            return Outcome::error("no such file");
        }
        Outcome::ok(scene::text(&range.path, 500))
    };
    let read = ToolMeta {
        effect: Effect::Reads,
        hint: Hint::default(),
        exempt: false,
        supersession: Some(Supersession {
            key: Some("path".to_owned()),
            range: Some(["offset".to_owned(), "limit".to_owned()]),
            stale_after: vec!["Edit".to_owned()],
        }),
        labels: Vec::new(),
        timeout_ms: None,
    };
    let list = ToolMeta {
        supersession: Some(Supersession {
            key: None,
            range: None,
            stale_after: Vec::new(),
        }),
        ..read.clone()
    };
    let toolbox = Toolbox::new()
        .with(typed("Read", "Reads.", answer).with_meta(read))
        .with(typed("List", "Lists.", answer).with_meta(list))
        .with(typed("Edit", "Edits.", answer));
    let mut policy = Policy::default();
    policy.compaction.enabled = false;
    let mut script: Vec<Script> = calls
        .iter()
        .map(|call| Reply::calls([*call]).into())
        .collect();
    script.push(Reply::text("Done.").into());
    let model = Arc::new(Scripted::new(script));
    let agent = Agent::new(scene::setup(100_000, policy), model, toolbox);
    let storage = MemoryStorage::default();
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
    View::of(scene::entries(&storage))
}

/// What is superseded among these calls, by their numbers from 1.
fn check(calls: &[(&str, &str)], expected: &str) {
    let view = after(calls);
    let number =
        |call: &undertext::id::CallId| view.rounds().of_response(call.response).unwrap().number;
    let mut said = Vec::new();
    for layer in superseded::layers(&view).into_iter().flatten() {
        match layer {
            Layer::Hide(hide) => said.extend(
                hide.why
                    .iter()
                    .map(|(old, new)| format!("{} by {}", number(old), number(new))),
            ),
            Layer::Stub(stub) => said.extend(
                stub.by
                    .iter()
                    .map(|(old, by)| format!("{} stale since {}", number(old), number(by))),
            ),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(said.join(", "), expected, "{calls:?}");
}

#[test]
fn a_later_call_makes_an_earlier_one_superfluous() {
    let read = |path: &'static str| ("Read", path);
    let a = read(r#"{"path":"a"}"#);
    let part = read(r#"{"path":"a","offset":2,"limit":4}"#);
    let whole = read(r#"{"path":"a","offset":1,"limit":10}"#);
    let edit = ("Edit", r#"{"path":"a"}"#);
    let other = read(r#"{"path":"b"}"#);
    check(&[a, a, other], "1 by 2");
    check(&[part, whole, other], "1 by 2");
    // The later one reads less.
    check(&[whole, part, other], "");
    check(&[a, a, a, other], "1 by 3, 2 by 3");
    // What was read before a change is stale; what is read after it stands for both.
    check(&[a, edit, other], "1 stale since 2");
    check(&[a, edit, a, other], "1 by 3");
    // Only calls that ended ok supersede, and only tools that read are superseded.
    let missing = read(r#"{"path":"missing"}"#);
    check(&[missing, missing, other], "");
    check(&[edit, edit, other], "");
    // Without a key all arguments count.
    check(
        &[
            ("List", r#"{"path":"a"}"#),
            ("List", r#"{"path":"a"}"#),
            other,
        ],
        "1 by 2",
    );
    check(
        &[
            ("List", r#"{"path":"a"}"#),
            ("List", r#"{"path":"b"}"#),
            other,
        ],
        "",
    );
    // The newest round is left alone, but counts.
    check(&[a, a], "1 by 2");
}

/// A run whose every result is long, with this script for summaries; what was asked for and laid.
fn ladder(
    rounds: usize,
    policy: Policy,
    fallback: Option<Scripted>,
    summaries: impl Fn(&undertext::model::Ask) -> Result<Reply, Fault> + Send + Sync + 'static,
) -> (String, Reason) {
    let call = |n: usize| {
        let text = "thinking ".repeat(150);
        let arguments = json!({ "path": format!("src/{n}.rs"), "chars": 2500 }).to_string();
        Reply {
            text,
            ..Reply::calls([("Change", arguments)])
        }
        .into()
    };
    let mut script: Vec<Script> = (0..rounds).map(call).collect();
    script.push(Reply::text("Done.").into());
    let model = Scripted::new(script).with_summaries(summaries);
    let mut setup = scene::setup(8_000, policy);
    setup.wire.models.fallback = fallback.as_ref().map(|_| scene::model(8_000));
    let mut agent = Agent::new(setup, Arc::new(model), scene::toolbox());
    if let Some(fallback) = fallback {
        agent = agent.with_model(Role::Fallback, Arc::new(fallback));
    }
    let storage = MemoryStorage::default();
    let finished = scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go.")));
    let entries = scene::entries(&storage);
    crate::simulated::keeps_the_laws(&entries, 8_000).unwrap();
    (rungs(&entries), finished.unwrap().reason)
}

/// Summaries asked for, why they failed, and overlays, until the first summary stands.
fn rungs(entries: &[Arc<Entry>]) -> String {
    let mut said = String::new();
    for entry in entries {
        match &entry.event {
            Event::Request(request) => {
                if let Purpose::Summary(ask) = &request.purpose {
                    let part = ask
                        .part
                        .map_or_else(String::new, |[part, of]| format!(", part {part} of {of}"));
                    writeln!(said, "ask {:?}, clip {}{part}", ask.model, ask.clip).unwrap();
                }
            }
            Event::Note(Note::SummaryFailed { why, .. }) => {
                writeln!(said, "failed: {why}").unwrap();
            }
            Event::Overlay(overlay) => {
                let by = match &overlay.layer {
                    Layer::Summary(summary) => match summary.by {
                        Author::Model => ", by model",
                        Author::Rules => ", by rules",
                        Author::User => ", by user",
                    },
                    _ => "",
                };
                writeln!(said, "{}: {}{by}", overlay.origin.word(), overlay.rule).unwrap();
                if !by.is_empty() {
                    return said;
                }
            }
            _ => {}
        }
    }
    said
}

#[test]
fn the_ladder_ends_with_a_summary_that_needs_no_model() {
    let (said, reason) = ladder(14, Policy::default(), None, |_| Ok(Reply::text("")));
    insta::assert_snapshot!(said, @r#"
    ask Summary, clip 4000
    failed: empty
    ask Summary, clip 1000
    failed: empty
    auto: hints
    ask Summary, clip 1000
    failed: empty
    auto: hints
    auto: hints
    auto: hints
    auto: hints
    auto: hints
    ask Summary, clip 1000, part 1 of 2
    failed: empty
    auto: skeleton, by rules
    "#);
    assert_eq!(reason, Reason::Finished);
}

#[test]
fn the_fallback_model_is_asked_before_that() {
    let fallback = Scripted::new([Reply::text("What was done.").into()]);
    let refused = |_: &undertext::model::Ask| Err(Fault::new(FaultClass::Permanent, "no"));
    let (said, reason) = ladder(14, Policy::default(), Some(fallback), refused);
    insta::assert_snapshot!(said, @r#"
    ask Summary, clip 4000
    failed: permanent: no
    ask Summary, clip 1000
    failed: permanent: no
    ask Fallback, clip 1000
    auto: summary, by model
    "#);
    assert_eq!(reason, Reason::Finished);
}

#[test]
fn a_run_may_be_told_to_stop_when_no_summary_can_be_had() {
    let mut policy = Policy::default();
    policy.compaction.auto.on_failure = OnFailure::Stop;
    let (said, reason) = ladder(14, policy, None, |_| Ok(Reply::text("")));
    insta::assert_snapshot!(said, @r#"
    ask Summary, clip 4000
    failed: empty
    ask Summary, clip 1000
    failed: empty
    "#);
    assert_eq!(reason, Reason::Compaction);
}

/// Instructions and tools alone take more than half of the trigger: refused before anything is sent.
#[test]
fn what_cannot_fit_is_refused_at_the_start() {
    let agent = scene::agent(1500, Policy::default(), Scripted::new([]));
    let storage = MemoryStorage::default();
    let finished = scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go.")));
    let finished = finished.unwrap();
    assert_eq!(finished.reason, Reason::Oversize);
    // The task is not clipped to nothing: a larger window can take the run up.
    assert_eq!(
        scene::entries(&storage)
            .iter()
            .find_map(|entry| match &entry.event {
                Event::User(user) => Some(user.text.clone()),
                _ => None,
            }),
        Some("Go.".to_owned())
    );
    assert!(
        !scene::entries(&storage)
            .iter()
            .any(|e| matches!(&e.event, Event::Request(_)))
    );
    insta::assert_snapshot!(finished.text, @r#"
    instructions and tools alone take 783 tokens, more than half of the 1,125 from which the context is compacted; use a model with a larger window or fewer tools
    "#);
}

/// What the model reads when it asks for a compaction: too early, granted, again at once.
#[test]
fn compact_is_granted_when_it_pays() {
    let show = |n: usize, chars: usize| {
        let arguments = json!({ "path": format!("s{n}"), "chars": chars }).to_string();
        Reply::calls([("Show", arguments)]).into()
    };
    let compact = |focus: &str| Reply::calls([("Compact", focus)]).into();
    let mut script: Vec<Script> = vec![compact("{}"), show(1, 3000), compact("{}")];
    script.extend((2..9).map(|n| show(n, 3000)));
    script.push(compact(r#"{"focus":"the parser"}"#));
    script.extend((9..12).map(|n| show(n, 5000)));
    script.push(compact("{}"));
    script.push(Reply::text("Done.").into());
    let model = Scripted::new(script).with_summaries(|_| Ok(Reply::text("What was done.")));
    let agent = scene::agent(16_000, Policy::default(), model);
    let storage = MemoryStorage::default();
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
    let view = View::of(scene::entries(&storage));
    let mut said = String::new();
    for entry in view.transcript().entries() {
        match &entry.event {
            Event::Result(result) if view.tool_call(result.call).unwrap().name == "Compact" => {
                writeln!(said, "{}: {}", result.call, result.content).unwrap();
            }
            Event::Overlay(overlay) => {
                writeln!(said, "{}: {}", overlay.origin.word(), overlay.reason).unwrap();
            }
            _ => {}
        }
    }
    insta::assert_snapshot!(said, @r#"
    5.1: Not now: there is no finished round before this one to summarize. Go on.
    11.1: Not now: 1,790 of 12,000 tokens are in use; compaction pays from 3,600. Go on.
    35.1: Compression requested: rounds 1 to 10 (about 7,382 tokens) will be summarized when this round's calls are done. Focus: the parser
    tool: the model asked, focus: the parser
    50.1: Not now: the last summary is 4 rounds old; compaction pays again after 5. Go on.
    "#);
}

/// A summary by hand in the middle leaves what is older standing raw: it is covered once nothing newer
/// can be.
#[test]
fn what_stands_raw_before_a_summary_is_covered_as_well() {
    let mut draft = Draft::default();
    draft.push(Event::Run(scene::run(&Clock::fixed(scene::BEGIN))));
    draft.push(Event::Setup(Box::new(scene::setup(
        8_000,
        Policy::default(),
    ))));
    draft.user(Speaker::Task, "Go.");
    let rounds: Vec<Span> = (0..6)
        .map(|_| {
            let request = draft.request(Purpose::Round);
            let last = draft.response(request, &"It goes on. ".repeat(200), &[], &[]);
            Span::new(request, last)
        })
        .collect();
    let due = |draft: &Draft| {
        let view = View::of(draft.entries().iter().cloned());
        summary::span(&view, &view.sizes().unwrap())
    };
    assert_eq!(due(&draft), Some(Span::new(rounds[0].from, rounds[3].to)));
    let middle = Span::new(rounds[2].from, rounds[4].to);
    draft.overlay(Layer::Summary(Summary {
        span: middle,
        text: "What was said.".to_owned(),
        by: Author::User,
        focus: None,
        parts: Vec::new(),
        depth: 1,
        carry: Carry::default(),
    }));
    assert_eq!(due(&draft), Some(Span::new(rounds[0].from, rounds[1].to)));
}
