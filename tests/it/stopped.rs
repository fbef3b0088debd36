//! Runs that are stopped and taken up again: cancelled, at a limit, after a wait, or finished.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, AgentError, Task};
use undertext::exchange::{Effect, ToolMeta};
use undertext::model::{Fault, Reply, Script, Scripted};
use undertext::record::{Clock, MemoryStorage, OnDamage, Recorder};
use undertext::setup::Policy;
use undertext::step::{self, Step};
use undertext::tools::{Outcome, Toolbox, typed};
use undertext::transcript::{At, Event, FaultClass, Note, Reason};
use undertext::view::View;

use crate::looped::{show, story};
use crate::scene::{self, Amount};

fn waiting(name: &str, effect: Effect, cancel: &CancellationToken) -> Toolbox {
    let cancel = cancel.clone();
    let tool = typed(name, "Waits.", move |_: Amount| {
        cancel.cancel();
        std::future::pending::<Outcome>()
    });
    Toolbox::new().with(tool.with_meta(ToolMeta {
        effect,
        ..ToolMeta::default()
    }))
}

/// Cancelled while a call runs: every open call is answered, and the run can be taken up again.
#[test]
fn a_cancelled_run_ends_with_entries() {
    for (effect, expected) in [
        (
            Effect::Writes,
            "\
6 started 5.1
7 result of 5.1, cancelled: cancelled: the run was stopped while this call was running; effects may have happened
8 result of 5.2, cancelled: cancelled: the run was stopped before this call ran
9 end, interrupted: interrupted; resume to go on
",
        ),
        (
            Effect::Reads,
            "\
6 result of 5.1, cancelled: cancelled: the run was stopped before this call ran
7 result of 5.2, cancelled: cancelled: the run was stopped before this call ran
8 end, interrupted: interrupted; resume to go on
",
        ),
    ] {
        let cancel = CancellationToken::new();
        let call = || ("Wait", r#"{"path":"a"}"#);
        let model = Scripted::new([Reply::calls([call(), call()]).into(), Reply::text("Ok.").into()]);
        let toolbox = waiting("Wait", effect, &cancel);
        let setup = scene::setup(100_000, Policy::default());
        let agent = Agent::new(setup, Arc::new(model), toolbox);
        let storage = MemoryStorage::default();
        let mut recorder = scene::create(&storage);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(agent.run(&mut recorder, Some(Task::new("Go.")), &cancel)).unwrap();
        drop(recorder);
        assert_eq!(story(&scene::entries(&storage)[5..]), expected);
        let resumed = scene::go(&agent, &mut scene::open(&storage), None).unwrap();
        assert_eq!(resumed.text, "Ok.");
    }
}

/// Cancelled while the model is silent: nothing is lost, and the same request is sent again.
#[test]
fn a_run_cancelled_while_it_waits_sends_the_same_request_again() {
    let model = Scripted::new([Script::Silence, Reply::text("Done.").into()]);
    let agent = scene::agent(100_000, Policy::default(), model.clone());
    let storage = MemoryStorage::default();
    let mut recorder = scene::create(&storage);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let cancel = CancellationToken::new();
    runtime.block_on(async {
        let run = agent.run(&mut recorder, Some(Task::new("Go.")), &cancel);
        let stop = async {
            while model.asked().is_empty() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        futures::join!(run, stop).0.unwrap();
    });
    drop(recorder);
    scene::go(&agent, &mut scene::open(&storage), None).unwrap();
    insta::assert_snapshot!(story(&scene::entries(&storage)[3..]), @r#"
    4 request, round 1
    5 end, interrupted: interrupted; resume to go on
    6 fault of 4, local: interrupted, attempt 1, wait Some(0)
    7 response to 4, Complete: Done.
    8 end, finished: Done.
    "#);
    let asked = model.asked();
    assert_eq!(asked[0].body, asked[1].body);
}

#[test]
fn a_limit_is_announced_and_the_run_goes_on_when_it_is_taken_up() {
    let mut policy = Policy::default();
    policy.limits.rounds = Some(3);
    let mut script: Vec<Script> = (0..4).map(|_| Reply::calls([show("a")]).into()).collect();
    script.push(Reply::text("Done.").into());
    let storage = MemoryStorage::default();
    let agent = scene::agent(100_000, policy, Scripted::new(script));
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
    scene::go(&agent, &mut scene::open(&storage), None).unwrap();
    insta::assert_snapshot!(story(&scene::entries(&storage)[3..]), @r#"
    4 request, round 1
    5 response to 4, Complete:  Show{"path":"a","chars":9}
    6 result of 5.1, ok: a says "s
    7 request, round 2
    8 response to 7, Complete:  Show{"path":"a","chars":9}
    9 result of 8.1, ok: a says "s
    10 user, Runtime: [undertext, not the user] 2 of 3 rounds are used. Bring the work to a good end before the limit ends the run.
    11 request, round 3
    12 response to 11, Complete:  Show{"path":"a","chars":9}
    13 result of 12.1, ok: a says "s
    14 end, rounds: the limit of rounds is reached; resume to go on
    15 request, round 4
    16 response to 15, Complete:  Show{"path":"a","chars":9}
    17 result of 16.1, ok: a says "s
    18 request, round 5
    19 response to 18, Complete: Done.
    20 end, finished: Done.
    "#);
}

/// When the time is up, a reply or a call under way is ended, and the run can be taken up again.
#[test]
fn what_is_under_way_ends_when_the_time_is_up() {
    let stopped = |script: Vec<Script>| {
        let mut policy = Policy::default();
        policy.limits.wall_time_ms = Some(3_600_000);
        let never = CancellationToken::new();
        let setup = scene::setup(100_000, policy);
        let toolbox = waiting("Wait", Effect::Writes, &never);
        let agent = Agent::new(setup, Arc::new(Scripted::new(script)), toolbox);
        let storage = MemoryStorage::default();
        let clock = Clock::System;
        let run = scene::run(&clock);
        let mut recorder = Recorder::create(Box::new(storage.clone()), clock, run).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let cancel = CancellationToken::new();
        let mut go = |task| {
            runtime
                .block_on(agent.run(&mut recorder, task, &cancel))
                .unwrap()
        };
        go(Some(Task::new("Go.")));
        go(None);
        story(&scene::entries(&storage)[3..])
    };
    insta::assert_snapshot!(stopped(vec![Script::Silence, Reply::text("Done.").into()]), @"
    4 request, round 1
    5 end, wall_time: the limit of time is reached; resume to go on
    6 fault of 4, local: interrupted, attempt 1, wait Some(0)
    7 response to 4, Complete: Done.
    8 end, finished: Done.
    ");
    let call = Reply::calls([("Wait", r#"{"path":"a"}"#)]);
    insta::assert_snapshot!(stopped(vec![call.into(), Reply::text("Done.").into()]), @r#"
    4 request, round 1
    5 response to 4, Complete:  Wait{"path":"a"}
    6 started 5.1
    7 result of 5.1, cancelled: cancelled: the run was stopped while this call was running; effects may have happened
    8 end, wall_time: the limit of time is reached; resume to go on
    9 request, round 2
    10 response to 9, Complete: Done.
    11 end, finished: Done.
    "#);
}

/// A wait that is over by the clock is over; one that no server can have asked for is a clock that was
/// set back.
#[test]
fn a_clock_that_was_set_back_does_not_hold_a_run() {
    let storage = MemoryStorage::default();
    let script = [
        Fault::new(FaultClass::Overload, "busy").into(),
        Reply::text("Done.").into(),
    ];
    let agent = scene::agent(100_000, Policy::default(), Scripted::new(script));
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
    let entries = scene::entries(&storage);
    let fault = entries
        .iter()
        .position(|entry| matches!(&entry.event, Event::Fault(_)))
        .unwrap();
    let view = View::of(entries[..=fault].iter().cloned());
    let at = entries[fault].at;
    let hour = 3_600_000;
    for (now, waits) in [
        (at, true),
        (at.plus_ms(508), false),
        (At(at.0 - hour), false),
    ] {
        let step = step::next(&view, now);
        assert_eq!(matches!(step, Step::Wait(_)), waits, "{step:?}");
        assert_eq!(
            matches!(step, Step::Ask(ask) if ask.again.is_some()),
            !waits
        );
    }
}

/// A finished run that nobody spoke to since has nothing to do, whatever else was recorded.
#[test]
fn a_finished_run_needs_a_task() {
    let storage = MemoryStorage::default();
    let script = || [Reply::text("Done.").into(), Reply::text("That too.").into()];
    let agent = scene::agent(100_000, Policy::default(), Scripted::new(script()));
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
    let mut recorder = scene::open(&storage);
    let text = "looked at".to_owned();
    recorder
        .record(Event::Note(Note::Warning { text }))
        .unwrap();
    assert!(matches!(
        scene::go(&agent, &mut recorder, None),
        Err(AgentError::NoTask)
    ));
    let empty = scene::go(&agent, &mut recorder, Some(Task::new(" \n")));
    assert!(matches!(empty, Err(AgentError::EmptyTask)));
    let again = scene::go(&agent, &mut recorder, Some(Task::new("More."))).unwrap();
    assert_eq!(again.text, "That too.");
}

/// A reminder is said in the next round's request, so it comes after limits and sizes are looked at.
#[test]
fn a_reminder_does_not_jump_a_limit() {
    let mut policy = Policy::default();
    policy.limits.rounds = Some(1);
    let script = [Reply::default().into(), Reply::text("Done.").into()];
    let agent = scene::agent(100_000, policy, Scripted::new(script));
    let mut recorder = scene::create(&MemoryStorage::default());
    let finished = scene::go(&agent, &mut recorder, Some(Task::new("Go."))).unwrap();
    assert_eq!(finished.reason, Reason::Rounds);
}

/// A run of one round, cut behind its first request.
fn cut_behind_the_request() -> MemoryStorage {
    let storage = MemoryStorage::default();
    let agent = scene::agent(100_000, Policy::default(), Scripted::new([Script::Silence]));
    let mut recorder = scene::create(&storage);
    let cancel = CancellationToken::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let run = agent.run(&mut recorder, Some(Task::new("Go.")), &cancel);
        futures::future::select(Box::pin(run), Box::pin(tokio::task::yield_now())).await;
    });
    drop(recorder);
    let entries = scene::entries(&storage);
    assert!(matches!(entries.last().unwrap().event, Event::Request(_)));
    storage
}

/// An open request whose body is another now is made anew, after everything else is looked at.
#[test]
fn a_request_that_changed_is_looked_at_like_any_other() {
    let storage = cut_behind_the_request();
    let script = Scripted::new([Reply::text("Done.").into()]);
    let small = scene::agent(1500, Policy::default(), script);
    let ended = scene::go(&small, &mut scene::open(&storage), Some(Task::new("More."))).unwrap();
    assert_eq!(ended.reason, Reason::Oversize);
}

/// However long a run lay still, its request is retried as if it were new.
#[test]
fn a_run_taken_up_late_is_retried() {
    let storage = cut_behind_the_request();
    let script = [
        Fault::new(FaultClass::Overload, "busy").into(),
        Reply::text("Done.").into(),
    ];
    let agent = scene::agent(100_000, Policy::default(), Scripted::new(script));
    let clock = Clock::fixed(scene::BEGIN.plus_ms(86_400_000));
    let opened = Recorder::open(Box::new(storage), clock, OnDamage::Refuse);
    let ended = scene::go(&agent, &mut opened.unwrap(), None).unwrap();
    assert_eq!(ended.reason, Reason::Finished);
}

/// What a refusal taught about the window outlives the run's end.
#[test]
fn a_learned_window_is_kept() {
    let storage = MemoryStorage::default();
    let refused = Fault {
        window: Some(20_000),
        ..Fault::new(FaultClass::Overflow, "too long")
    };
    let mut script: Vec<Script> = (0..3).map(|_| Reply::calls([big("a")]).into()).collect();
    script.push(refused.into());
    script.extend([Reply::text("Done.").into(), Reply::text("That too.").into()]);
    let model = Scripted::new(script).with_summaries(|_| Ok(Reply::text("What was done.")));
    let agent = scene::agent(100_000, Policy::default(), model);
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
    let mut recorder = scene::open(&storage);
    scene::go(&agent, &mut recorder, Some(Task::new("More."))).unwrap();
    assert_eq!(
        recorder.view().wire().unwrap().models.main.window,
        Some(20_000)
    );
}

fn big(path: &str) -> (&'static str, String) {
    ("Change", format!(r#"{{"path":"{path}","chars":3000}}"#))
}
