//! Summaries by hand, written by a model: asked for, asked for again, given up, and never laid by
//! the loop.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, ByHandError, Task};
use undertext::compaction::by_hand::{Order, Report, Strategy, Work};
use undertext::exchange::Ending;
use undertext::hands::{Hands, Workspace};
use undertext::model::{Ask, Fault, Reply, Script, Scripted};
use undertext::overlay::Layer;
use undertext::record::{MemoryStorage, Recorder};
use undertext::setup::Policy;
use undertext::transcript::{Entry, Event, FaultClass, Note, Purpose};

use crate::scene;

/// A run of so many rounds that nothing compacts, and an agent whose model writes these summaries.
fn after(
    rounds: usize,
    window: u64,
    summaries: impl Fn(usize, &Ask) -> Result<Reply, Fault> + Send + Sync + 'static,
) -> (Agent, Recorder) {
    let show = |n: usize| {
        let arguments = json!({ "path": format!("src/{n}.rs"), "chars": 1200 });
        Reply::calls([("Show", arguments.to_string())]).into()
    };
    let mut script: Vec<Script> = (0..rounds).map(show).collect();
    script.extend((0..3).map(|_| Reply::text("Done.").into()));
    let asked = AtomicUsize::new(0);
    let model = Scripted::new(script)
        .with_summaries(move |ask| summaries(asked.fetch_add(1, Ordering::Relaxed), ask));
    let mut policy = Policy::default();
    policy.compaction.enabled = false;
    let mut recorder = scene::create(&MemoryStorage::default());
    let long = scene::agent(400_000, policy.clone(), model.clone());
    scene::go(&long, &mut recorder, Some(Task::new("Read."))).unwrap();
    (scene::agent(window, policy, model), recorder)
}

/// Gives an order, and tells what was recorded because of it.
fn give(
    agent: &Agent,
    recorder: &mut Recorder,
    order: &Order,
    cancel: &CancellationToken,
) -> (Result<Report, ByHandError>, String) {
    let first = recorder.view().transcript().next_id();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let done = runtime.block_on(agent.compact_by_hand(recorder, order, cancel));
    let entries = recorder.view().transcript().from(first);
    let told = entries.iter().map(|entry| line(recorder, entry)).collect();
    (done, told)
}

fn line(recorder: &Recorder, entry: &Arc<Entry>) -> String {
    let place = |span| format!("{:?}", recorder.view().round_numbers(span).unwrap());
    let mut line = match &entry.event {
        Event::Request(request) => match &request.purpose {
            Purpose::Summary(ask) => {
                let whole = ask
                    .whole
                    .map_or_else(String::new, |whole| " of ".to_owned() + &place(whole));
                let origin = ask.origin.word();
                format!(
                    "ask for {}{whole}, clip {}, {origin}",
                    place(ask.span),
                    ask.clip
                )
            }
            Purpose::Combine(ask) => format!("combine {} texts", ask.of.len()),
            other => format!("{other:?}"),
        },
        Event::Response(response) => format!("reply: {:?}", response.text),
        Event::Fault(fault) => format!(
            "fault: {} {:?}",
            fault.class.word(),
            fault.wait_ms.is_some()
        ),
        Event::Note(Note::SummaryFailed { why, .. }) => format!("failed: {why}"),
        Event::Setup(setup) => format!("setup: {:?}", setup.policy.compaction.summary.instructions),
        Event::Overlay(laid) => match &laid.layer {
            Layer::Summary(summary) => format!(
                "summary of {}, {} parts, by {:?}: {:?}",
                place(summary.span),
                summary.parts.len(),
                summary.by,
                summary.text
            ),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    };
    line.push('\n');
    line
}

fn summarize() -> Order {
    Order {
        focus: Some("the parser".to_owned()),
        ..Order::new(Work::Strategies(vec![Strategy::Summarize]))
    }
}

#[test]
fn what_fails_is_asked_again_and_what_passes_is_waited_for() {
    let (agent, mut recorder) = after(6, 400_000, |number, _| match number {
        0 => Err(Fault::new(FaultClass::Overload, "busy")),
        1 => Ok(Reply {
            ending: Ending::Cut,
            ..Reply::text("Half")
        }),
        _ => Ok(Reply::text("What was read.")),
    });
    let (done, told) = give(
        &agent,
        &mut recorder,
        &summarize(),
        &CancellationToken::new(),
    );
    insta::assert_snapshot!(told, @r#"
    ask for (1, 4), clip 4000, user
    fault: overload true
    reply: "Half"
    failed: cut
    ask for (1, 4), clip 1000, user
    reply: "What was read."
    summary of (1, 4), 0 parts, by Model: "What was read."
    "#);
    assert_eq!(done.unwrap().laid, 1);
    crate::simulated::keeps_the_laws(&recorder.view().transcript().entries().to_vec(), 400_000)
        .unwrap();
}

#[test]
fn what_one_request_cannot_hold_is_read_in_parts() {
    let (agent, mut recorder) = after(30, 8_000, |number, _| {
        Ok(Reply::text(format!("Text {number}.")))
    });
    let (done, told) = give(
        &agent,
        &mut recorder,
        &summarize(),
        &CancellationToken::new(),
    );
    insta::assert_snapshot!(told, @r#"
    setup: None
    ask for (1, 21) of (1, 28), clip 1000, user
    reply: "Text 0."
    ask for (22, 28) of (1, 28), clip 4000, user
    reply: "Text 1."
    combine 2 texts
    reply: "Text 2."
    summary of (1, 28), 2 parts, by Model: "Text 2."
    "#);
    done.unwrap();
}

#[test]
fn a_summary_that_no_model_writes_changes_nothing_and_may_be_ordered_again() {
    let (agent, mut recorder) = after(6, 400_000, |number, _| {
        Ok(Reply::text(if number < 5 { "" } else { "At last." }))
    });
    let mut all = String::new();
    for _ in 0..3 {
        let (done, told) = give(
            &agent,
            &mut recorder,
            &summarize(),
            &CancellationToken::new(),
        );
        let done = done.map_or_else(
            |error| error.to_string(),
            |report| format!("{} laid", report.laid),
        );
        writeln!(all, "{told}{done}").unwrap();
    }
    insta::assert_snapshot!(all, @r#"
    ask for (1, 4), clip 4000, user
    reply: ""
    failed: empty
    ask for (1, 4), clip 1000, user
    reply: ""
    failed: empty
    no summary could be had, so nothing was changed: empty
    ask for (1, 4), clip 4000, user
    reply: ""
    failed: empty
    ask for (1, 4), clip 1000, user
    reply: ""
    failed: empty
    no summary could be had, so nothing was changed: empty
    ask for (1, 4), clip 4000, user
    reply: ""
    failed: empty
    ask for (1, 4), clip 1000, user
    reply: "At last."
    summary of (1, 4), 0 parts, by Model: "At last."
    1 laid
    "#);
}

/// Stopped while it waited for a summary, a run goes on as if nothing had been ordered; ordered again,
/// the summary is asked for anew.
#[test]
fn what_was_stopped_is_not_the_loops_to_wait_for() {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let (agent, mut recorder) = after(6, 400_000, move |number, _| {
        if number == 0 {
            stop.cancel();
            return Err(Fault::new(FaultClass::Overload, "busy"));
        }
        Ok(Reply::text("What was read."))
    });
    let (done, mut all) = give(&agent, &mut recorder, &summarize(), &cancel);
    assert!(matches!(done, Err(ByHandError::Cancelled)), "{done:?}");
    let first = recorder.view().transcript().next_id();
    scene::go(&agent, &mut recorder, Some(Task::new("Go on."))).unwrap();
    let entries = recorder.view().transcript().from(first);
    assert!(
        !entries
            .iter()
            .any(|entry| matches!(entry.event, Event::Overlay(_)))
    );
    let order = Order {
        to: Some("r3".parse().unwrap()),
        ..summarize()
    };
    let (done, told) = give(&agent, &mut recorder, &order, &CancellationToken::new());
    all += &told;
    insta::assert_snapshot!(all, @r#"
    ask for (1, 4), clip 4000, user
    fault: overload true
    ask for (1, 3), clip 4000, user
    reply: "What was read."
    summary of (1, 3), 0 parts, by Model: "What was read."
    "#);
    assert_eq!(done.unwrap().laid, 1);
}

/// The hook of today's settings is asked before a model is, and what it wants kept is asked for and listed.
#[test]
fn the_hook_is_asked_before_a_summary_by_hand() {
    let place = tempfile::tempdir().unwrap();
    let told = |answer: &str| {
        let (_, mut recorder) = after(6, 400_000, |_, _| Ok(Reply::text("")));
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let workspace = Workspace::open(place.path(), None, environment).unwrap();
        let mut policy = Policy::default();
        policy.compaction.enabled = false;
        policy.compaction.hooks.before = Some(format!("cat > question; echo '{answer}'"));
        let model = Scripted::new(Vec::<Script>::new());
        let model = model.with_summaries(|_| Ok(Reply::text("What was read.")));
        let agent = scene::agent(400_000, policy, model);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let done = runtime.block_on(async {
            let agent = agent.with_hands(Hands::in_process(workspace));
            let (order, cancel) = (summarize(), CancellationToken::new());
            agent.compact_by_hand(&mut recorder, &order, &cancel).await
        });
        (done, recorder)
    };
    let (done, recorder) = told(r#"{"veto": true, "reason": "the tests run"}"#);
    insta::assert_snapshot!(
        done.unwrap_err(),
        @"the hook before compaction forbids it, so nothing was changed: the tests run"
    );
    assert!(recorder.view().overlays().is_empty());
    let question = std::fs::read_to_string(place.path().join("question")).unwrap();
    assert!(question.contains(r#""origin":"user""#), "{question}");

    let (done, recorder) = told(r#"{"keep": ["port 8042"]}"#);
    assert_eq!(done.unwrap().laid, 1);
    let laid = recorder.view().summaries()[0];
    assert!(laid.summary.carry.survival.contains("port 8042"));
    let asked = recorder.view().transcript().entries().iter();
    let asks = |entry: &&Arc<Entry>| match &entry.event {
        Event::Request(request) => match &request.purpose {
            Purpose::Summary(ask) => ask.keep == ["port 8042"],
            _ => false,
        },
        _ => false,
    };
    assert_eq!(asked.filter(asks).count(), 1);
}
