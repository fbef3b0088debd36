//! The loop against whole transcripts, a line an entry: reminders, limits, faults, cancellation.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Progress, Task};
use undertext::exchange::{Effect, Ending, ToolMeta};
use undertext::model::{Delta, Fault, Reply, Script, Scripted};
use undertext::record::MemoryStorage;
use undertext::setup::Policy;
use undertext::tools::{Outcome, Toolbox, typed};
use undertext::transcript::{Entry, Event, FaultClass, Note, Purpose};

use crate::scene::{self, Amount};

/// Entries as a reader tells them, a line each.
pub(crate) fn story(entries: &[Arc<Entry>]) -> String {
    entries
        .iter()
        .map(|entry| format!("{} {}\n", entry.id, line(&entry.event)))
        .collect()
}

fn line(event: &Event) -> String {
    match event {
        Event::Run(_) => "run".to_owned(),
        Event::Setup(_) => "setup".to_owned(),
        Event::User(user) => format!("user, {:?}: {}", user.origin, user.text),
        Event::Request(request) => match (&request.purpose, request.round) {
            (Purpose::Round, Some(round)) => format!("request, round {round}"),
            (purpose, _) => format!("request, {purpose:?}"),
        },
        Event::Response(response) => {
            let calls = response
                .calls
                .iter()
                .map(|c| format!(" {}{}", c.name, c.arguments));
            let calls: String = calls.collect();
            format!(
                "response to {}, {:?}: {}{calls}",
                response.request, response.ending, response.text
            )
        }
        Event::Started(started) => format!("started {}", started.call),
        Event::Result(result) => {
            format!(
                "result of {}, {}: {}",
                result.call,
                result.status.word(),
                result.content
            )
        }
        Event::Overlay(overlay) => format!("overlay, {}, {}", overlay.origin.word(), overlay.rule),
        Event::Fault(fault) => format!(
            "fault of {}, {}: {}, attempt {}, wait {:?}",
            fault.request,
            fault.class.word(),
            fault.message,
            fault.attempt,
            fault.wait_ms
        ),
        Event::Note(Note::SummaryFailed { request, why }) => {
            format!("note, {request} failed: {why}")
        }
        Event::Note(Note::Warning { text }) => format!("warning: {text}"),
        Event::Note(Note::Hook(hook)) => {
            let said = if hook.failed { "failed" } else { "said" };
            let (veto, keep, text) = (hook.veto, &hook.keep, &hook.text);
            format!("hook {said}, veto {veto}, keep {keep:?}: {text}")
        }
        Event::Note(Note::Check(check)) => {
            let verdict = if check.passed { "passed" } else { "failed" };
            format!(
                "check of {} {verdict}, exit {:?}",
                check.response, check.exit
            )
        }
        Event::End(end) => format!("end, {}: {}", end.reason.word(), end.text),
        other => format!("{other:?}"),
    }
}

/// Runs a script to its end and returns what was recorded behind the task.
fn play(script: Vec<Script>, policy: Policy) -> String {
    let storage = MemoryStorage::default();
    let agent = scene::agent(100_000, policy, Scripted::new(script));
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
    story(&scene::entries(&storage)[3..])
}

pub(crate) fn show(path: &str) -> (&'static str, String) {
    ("Show", format!(r#"{{"path":"{path}","chars":9}}"#))
}

#[test]
fn a_run_from_task_to_answer() {
    let script = vec![
        Reply {
            text: "I look.".into(),
            ..Reply::calls([show("a"), show("b")])
        }
        .into(),
        Reply::calls([("Change", r#"{"path":"a","chars":3}"#)]).into(),
        Reply::text("Done.").into(),
    ];
    insta::assert_snapshot!(play(script, Policy::default()), @r#"
    4 request, round 1
    5 response to 4, Complete: I look. Show{"path":"a","chars":9} Show{"path":"b","chars":9}
    6 result of 5.1, ok: a says "s
    7 result of 5.2, ok: b says "s
    8 request, round 2
    9 response to 8, Complete:  Change{"path":"a","chars":3}
    10 started 9.1
    11 result of 9.1, ok: a s
    12 request, round 3
    13 response to 12, Complete: Done.
    14 end, finished: Done.
    "#);
}

#[test]
fn a_call_that_cannot_run_is_answered_with_the_reason() {
    let script = vec![
        Reply::calls([("Shwo", "{}".to_owned()), show("a")]).into(),
        Reply::calls([("Show", "{\"path\":".to_owned()), show("a")]).into(),
        Reply::calls([("Show", r#"{"chars":1}"#)]).into(),
        Reply {
            ending: Ending::Cut,
            ..Reply::calls([show("a")])
        }
        .into(),
        Reply::text("Done.").into(),
    ];
    insta::assert_snapshot!(play(script, Policy::default()), @r#"
    4 request, round 1
    5 response to 4, Complete:  Shwo{} Show{"path":"a","chars":9}
    6 result of 5.1, error: No tool is named `Shwo`; close names are Show. Nothing ran.
    7 result of 5.2, ok: a says "s
    8 request, round 2
    9 response to 8, Complete:  Show{"path": Show{"path":"a","chars":9}
    10 result of 9.1, error: The call of Show did not run: the arguments are not valid JSON: EOF while parsing a value at line 1 column 8.
    11 result of 9.2, error: not run: another call of this reply was malformed
    12 request, round 3
    13 response to 12, Complete:  Show{"chars":1}
    14 result of 13.1, error: The call of Show did not run: the arguments: "path" is a required property.
    15 request, round 4
    16 response to 15, Cut:  Show{"path":"a","chars":9}
    17 result of 16.1, error: [undertext] Your reply was cut off at the limit of output tokens, so this call did not run. Make it again with shorter arguments, or split the work into smaller steps.
    18 request, round 5
    19 response to 18, Complete: Done.
    20 end, finished: Done.
    "#);
}

#[test]
fn the_model_is_reminded_twice_and_then_the_run_ends() {
    let script = vec![
        Reply::default().into(),
        Reply {
            ending: Ending::Cut,
            ..Reply::text("I was about to")
        }
        .into(),
        Reply::default().into(),
        Reply::default().into(),
        Reply::default().into(),
    ];
    insta::assert_snapshot!(play(script, Policy::default()), @r#"
    4 request, round 1
    5 response to 4, Complete: 
    6 user, Runtime: [undertext, not the user] Your last reply was empty. Go on with the task: call a tool, or say in words that the task is done or what keeps you from it.
    7 request, round 2
    8 response to 7, Cut: I was about to
    9 user, Runtime: [undertext, not the user] Your last reply was cut off at the limit of output tokens. Go on from where it ends.
    10 request, round 3
    11 response to 10, Complete: 
    12 user, Runtime: [undertext, not the user] Your last reply was empty. Go on with the task: call a tool, or say in words that the task is done or what keeps you from it.
    13 request, round 4
    14 response to 13, Complete: 
    15 user, Runtime: [undertext, not the user] Your last reply was empty. Go on with the task: call a tool, or say in words that the task is done or what keeps you from it.
    16 request, round 5
    17 response to 16, Complete: 
    18 end, empty: the model answered with nothing, again and again; resume to go on, or with another model
    "#);
}

/// A model that says what it will do and calls nothing is told twice that this ends the run, of a call
/// in its text once; if it says so again, it is believed.
#[test]
fn a_model_that_announces_work_is_reminded_to_do_it() {
    let says = |text: &str| Reply::text(text).into();
    let script = || {
        vec![
            says("Let me run the tests:"),
            Reply::calls([show("a")]).into(),
            says("I'll mend it now."),
            says("Next, I will look at the caller."),
            says("I'm going to begin."),
        ]
    };
    insta::assert_snapshot!(play(script(), Policy::default()), @r#"
    4 request, round 1
    5 response to 4, Complete: Let me run the tests:
    6 user, Runtime: [undertext, not the user] Your last reply announces work but calls no tool, and nobody answers here: a reply without a call ends the run. Make the call now. If the task is done, say what you did; if something keeps you from it, say what.
    7 request, round 2
    8 response to 7, Complete:  Show{"path":"a","chars":9}
    9 result of 8.1, ok: a says "s
    10 request, round 3
    11 response to 10, Complete: I'll mend it now.
    12 user, Runtime: [undertext, not the user] Your last reply announces work but calls no tool, and nobody answers here: a reply without a call ends the run. Make the call now. If the task is done, say what you did; if something keeps you from it, say what.
    13 request, round 4
    14 response to 13, Complete: Next, I will look at the caller.
    15 user, Runtime: [undertext, not the user] Your last reply announces work but calls no tool, and nobody answers here: a reply without a call ends the run. Make the call now. If the task is done, say what you did; if something keeps you from it, say what.
    16 request, round 5
    17 response to 16, Complete: I'm going to begin.
    18 end, finished: I'm going to begin.
    "#);
    let written = "<Show>\n<path>a</path>\n</Show>";
    insta::assert_snapshot!(play(vec![says(written), says(written)], Policy::default()), @"
    4 request, round 1
    5 response to 4, Complete: <Show>
    <path>a</path>
    </Show>
    6 user, Runtime: [undertext, not the user] Your last reply holds a call written as text, and such a call never runs. If you mean it, make it as a tool call. If the task is done, say so without it.
    7 request, round 2
    8 response to 7, Complete: <Show>
    <path>a</path>
    </Show>
    9 end, finished: <Show>
    <path>a</path>
    </Show>
    ");
    let mut policy = Policy::default();
    policy.limits.nudges = 0;
    insta::assert_snapshot!(play(script(), policy), @"
    4 request, round 1
    5 response to 4, Complete: Let me run the tests:
    6 end, finished: Let me run the tests:
    ");
}

#[test]
fn the_same_failing_call_is_warned_of_and_then_ends_the_run() {
    let mut policy = Policy::default();
    policy.limits.failing_calls_warn = 2;
    policy.limits.failing_calls_stop = 3;
    let script = (0..3)
        .map(|_| Reply::calls([("Show", "{}")]).into())
        .collect();
    insta::assert_snapshot!(play(script, policy), @r#"
    4 request, round 1
    5 response to 4, Complete:  Show{}
    6 result of 5.1, error: The call of Show did not run: the arguments: "path" is a required property.
    7 request, round 2
    8 response to 7, Complete:  Show{}
    9 result of 8.1, error: The call of Show did not run: the arguments: "path" is a required property.
    10 user, Runtime: [undertext, not the user] The same call of Show has failed 2 times in a row. Do not make it again: read the error, and try another way.
    11 request, round 3
    12 response to 11, Complete:  Show{}
    13 result of 12.1, error: The call of Show did not run: the arguments: "path" is a required property.
    14 end, stuck: the same call of Show failed 3 times in a row; resume and say how else to do it
    "#);
}

#[test]
fn a_fault_is_waited_out_or_ends_the_run() {
    let script = vec![
        Fault::new(FaultClass::Overload, "busy").into(),
        Fault {
            wait_ms: Some(1500),
            ..Fault::new(FaultClass::Rate, "slow down")
        }
        .into(),
        Reply::calls([show("a")]).into(),
        Fault::new(FaultClass::Auth, "no such key").into(),
    ];
    insta::assert_snapshot!(play(script, Policy::default()), @r#"
    4 request, round 1
    5 fault of 4, overload: busy, attempt 1, wait Some(508)
    6 fault of 4, rate: slow down, attempt 2, wait Some(1815)
    7 response to 4, Complete:  Show{"path":"a","chars":9}
    8 result of 7.1, ok: a says "s
    9 request, round 2
    10 fault of 9, auth: no such key, attempt 1, wait None
    11 end, provider: the provider failed for good: no such key; resume to go on
    "#);
}

#[test]
fn a_wait_above_the_cap_ends_the_run_at_once() {
    let script = vec![
        Fault {
            wait_ms: Some(3_600_000),
            ..Fault::new(FaultClass::Rate, "slow down")
        }
        .into(),
    ];
    insta::assert_snapshot!(play(script, Policy::default()), @r#"
    4 request, round 1
    5 fault of 4, rate: slow down (it asks to come back in 3600 s, at 2026-11-21T21:00:00.000Z), attempt 1, wait None
    6 end, provider: the provider failed for good: slow down (it asks to come back in 3600 s, at 2026-11-21T21:00:00.000Z); resume to go on
    "#);
}

/// The cap is a person's to set.
#[test]
fn a_wait_above_the_cap_of_the_settings_ends_the_run_at_once() {
    let asked = Fault {
        wait_ms: Some(7_000),
        ..Fault::new(FaultClass::Rate, "slow down")
    };
    let mut policy = Policy::default();
    policy.retries.wait_ms = 5_000;
    insta::assert_snapshot!(play(vec![asked.into()], policy), @"
    4 request, round 1
    5 fault of 4, rate: slow down (it asks to come back in 7 s, at 2026-11-21T20:00:07.000Z), attempt 1, wait None
    6 end, provider: the provider failed for good: slow down (it asks to come back in 7 s, at 2026-11-21T20:00:07.000Z); resume to go on
    ");
}

/// A request that was asked again is the same request, byte for byte.
#[test]
fn a_retried_request_differs_by_no_byte() {
    let script: Vec<Script> = vec![
        Reply::calls([show("a")]).into(),
        Fault::new(FaultClass::Torn, "torn").into(),
        Reply::text("Done.").into(),
    ];
    let model = Scripted::new(script);
    let agent = scene::agent(100_000, Policy::default(), model.clone());
    let mut recorder = scene::create(&MemoryStorage::default());
    scene::go(&agent, &mut recorder, Some(Task::new("Go."))).unwrap();
    let asked = model.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[1].body, asked[2].body);
}

/// Neighbouring calls that only read run at the same time: each of these waits for the other.
#[test]
fn reading_calls_run_side_by_side_and_are_recorded_in_order() {
    let both = Arc::new(Barrier::new(2));
    let meet = typed("Meet", "Waits for another.", move |amount: Amount| {
        let both = Arc::clone(&both);
        async move {
            match tokio::time::timeout(Duration::from_secs(1), both.wait()).await {
                Ok(_) => Outcome::ok(amount.path),
                Err(_) => Outcome::error("alone"),
            }
        }
    });
    let reads = ToolMeta {
        effect: Effect::Reads,
        ..ToolMeta::default()
    };
    let call = |path: &str| ("Meet", format!(r#"{{"path":"{path}"}}"#));
    let model = Scripted::new([
        Reply::calls([call("a"), call("b")]).into(),
        Reply::text("Done.").into(),
    ]);
    let toolbox = Toolbox::new().with(meet.with_meta(reads));
    let agent = Agent::new(
        scene::setup(100_000, Policy::default()),
        Arc::new(model),
        toolbox,
    );
    let storage = MemoryStorage::default();
    let mut recorder = scene::create(&storage);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let cancel = CancellationToken::new();
    runtime
        .unwrap()
        .block_on(agent.run(&mut recorder, Some(Task::new("Go.")), &cancel))
        .unwrap();
    assert_eq!(
        story(&scene::entries(&storage)[5..7]),
        "6 result of 5.1, ok: a\n7 result of 5.2, ok: b\n"
    );
}

/// Whoever listens hears every entry, and the pieces of replies before them.
#[test]
fn the_events_of_an_agent_are_its_entries_and_deltas() {
    let model = Scripted::new([Reply::text("Done.").into()]);
    let agent = scene::agent(100_000, Policy::default(), model);
    let events = agent.events();
    let storage = MemoryStorage::default();
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
    drop(agent);
    let heard: Vec<Progress> = futures::executor::block_on(events.collect());
    let entries: Vec<_> = heard
        .iter()
        .filter_map(|progress| match progress {
            Progress::Entry(entry) => Some(entry.id),
            Progress::Delta { .. } | Progress::Compaction(_) => None,
        })
        .collect();
    let recorded: Vec<_> = scene::entries(&storage)[1..]
        .iter()
        .map(|entry| entry.id)
        .collect();
    assert_eq!(entries, recorded);
    let text: String = heard
        .iter()
        .filter_map(|progress| match progress {
            Progress::Delta {
                delta: Delta::Text(text),
                ..
            } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, "Done.");
}
