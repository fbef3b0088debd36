//! Runs that a refusal ends, and counts that are not believed.

use std::collections::BTreeSet;
use std::sync::Arc;

use undertext::agent::{Agent, Task};
use undertext::exchange::Usage;
use undertext::id::EntryId;
use undertext::model::{self, Reply, Script, Scripted};
use undertext::record::MemoryStorage;
use undertext::setup::Policy;
use undertext::tools::Toolbox;
use undertext::transcript::{Event, FaultClass, Note, Reason};

use super::server::Narrow;
use super::wordings::WORDINGS;
use super::{Played, client, go, manner, setup};
use crate::failing::TASK;
use crate::looped::show;
use crate::scene;

/// Two passes are made for a request; then the run ends with what the provider said first.
#[test]
fn a_run_ends_after_two_passes() {
    let refusal = |message: &str| Script::from(model::Fault::new(FaultClass::Overflow, message));
    let big = ("Show", r#"{"path":"a","chars":9000}"#);
    let mut script: Vec<Script> = (0..8).map(|_| Reply::calls([big]).into()).collect();
    script.extend(["first", "second", "third"].map(refusal));
    script.push(Reply::text("Never said.").into());
    let model = Scripted::new(script).with_summaries(|_| Ok(Reply::text("What was done.")));
    let agent = scene::agent(64_000, Policy::default(), model);
    let mut recorder = scene::create(&MemoryStorage::default());
    let finished = scene::go(&agent, &mut recorder, Some(Task::new(TASK))).unwrap();
    let seen = Vec::new();
    let view = recorder.view().clone();
    let played = Played {
        finished,
        view,
        seen,
    };
    assert_eq!(played.finished.reason, Reason::Provider);
    assert_eq!(
        played.finished.text,
        "the provider failed for good: first; resume to go on"
    );
    let passes: BTreeSet<EntryId> = played
        .recoveries()
        .iter()
        .map(|(_, laid)| laid.pass)
        .collect();
    assert_eq!(
        (passes.len(), played.faults(FaultClass::Overflow).len()),
        (2, 3)
    );
}

/// Instructions and tools alone are too much: nothing is sent.
#[test]
fn a_run_is_refused_at_the_start_with_the_numbers() {
    let server = Narrow::new(manner(WORDINGS[0], 1, 1));
    let mut setup = setup(Some(8_000));
    setup.wire.instructions = "Be careful. ".repeat(2_000);
    let agent = Agent::new(setup, client(&server), Toolbox::new());
    let played = go(&agent, &server);
    assert_eq!(played.finished.reason, Reason::Oversize);
    insta::assert_snapshot!(played.finished.text, @"instructions and tools alone take 6,030 tokens, more than half of the 6,000 from which the context is compacted; use a model with a larger window or fewer tools");
    assert!(played.seen.is_empty());
    let asked = played.entries(|_, event| matches!(event, Event::Request(_)).then_some(()));
    assert!(asked.is_empty());
}

/// The same once the window is learned: the run ends with the numbers, not with a compaction.
#[test]
fn a_run_is_refused_when_the_window_that_is_learned_is_too_small() {
    let mut manner = manner(WORDINGS[4], 1, 9);
    manner.window = 3_000;
    let mut setup = setup(Some(32_000));
    setup.wire.instructions = "Be careful. ".repeat(1_000);
    let server = Narrow::new(manner);
    let agent = Agent::new(setup, client(&server), Toolbox::new());
    let played = go(&agent, &server);
    insta::assert_snapshot!(played.finished.text, @"instructions and tools alone take 3,030 tokens, more than half of the 2,250 from which the context is compacted; use a model with a larger window or fewer tools");
}

/// Counts that cannot be are not believed, and the first of them is noted.
#[test]
fn a_count_above_the_window_or_far_below_the_estimate_is_flagged() {
    let reply = |input: u64| Reply {
        usage: Some(Usage {
            input: Some(input),
            ..Usage::default()
        }),
        ..Reply::calls([show("a")])
    };
    for (counts, expected) in [
        (
            [40_000, 3, 40_000],
            vec![
                "the provider counted 40,000 tokens in request 4, more than the window of 32,000; counts like that are not believed",
            ],
        ),
        (
            [3, 3, 40_000],
            vec![
                "the provider counted 3 tokens in request 4, far fewer than the 57 of the estimate; counts like that are not believed",
            ],
        ),
        ([0, 0, 0], vec![]),
    ] {
        let script = counts.map(|count| Script::from(reply(count)));
        let script = script.into_iter().chain([Reply::text("Done.").into()]);
        let model = Arc::new(Scripted::new(script));
        let agent = Agent::new(setup(Some(32_000)), model, Toolbox::new());
        let mut recorder = scene::create(&MemoryStorage::default());
        scene::go(&agent, &mut recorder, Some(Task::new(TASK))).unwrap();
        let view = recorder.view();
        let notes = view
            .transcript()
            .entries()
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Note(Note::Warning { text }) => Some(text.as_str()),
                _ => None,
            });
        assert_eq!(notes.collect::<Vec<_>>(), expected, "{counts:?}");
        assert_eq!(view.factor(), 1000);
    }
}
