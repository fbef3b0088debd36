//! What is told of compaction while a run goes on.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use serde_json::json;
use undertext::agent::{Progress, Task};
use undertext::compaction::notice::{Failed, Laid, Notice, Planned, Shape};
use undertext::exchange::Ending;
use undertext::id::EntryId;
use undertext::model::{Reply, Script, Scripted};
use undertext::record::MemoryStorage;
use undertext::setup::{OnFailure, Policy};
use undertext::transcript::{Entry, Event, Purpose};
use undertext::view::View;

use crate::scene;

/// Every notice of a run whose results are all long, and its entries.
fn heard(
    rounds: usize,
    policy: Policy,
    summary: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> (Vec<Notice>, Vec<Arc<Entry>>) {
    let call = |n: usize| {
        let arguments = json!({ "path": format!("src/{n}.rs"), "chars": 2500 }).to_string();
        let text = "thinking ".repeat(150);
        Reply {
            text,
            ..Reply::calls([("Change", arguments)])
        }
        .into()
    };
    let mut script: Vec<Script> = (0..rounds).map(call).collect();
    script.push(Reply::text("Done.").into());
    let asked = AtomicUsize::new(0);
    let model = Scripted::new(script)
        .with_summaries(move |_| Ok(summary(asked.fetch_add(1, Ordering::Relaxed))));
    let agent = scene::agent(8_000, policy, model);
    let events = agent.events();
    let storage = MemoryStorage::default();
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
    drop(agent);
    let progress: Vec<Progress> = futures::executor::block_on(events.collect());
    let notices = progress.into_iter().filter_map(|progress| match progress {
        Progress::Compaction(notice) => Some(notice),
        Progress::Entry(_) | Progress::Delta { .. } => None,
    });
    (notices.collect(), scene::entries(&storage))
}

/// What is told, in words. Whatever is told of a request or a pass is what its entries say alone.
fn check(rounds: usize, policy: Policy, summary: fn(usize) -> Reply) -> String {
    let (notices, entries) = heard(rounds, policy, summary);
    let view = |kept: EntryId| {
        let kept = entries.iter().take_while(|entry| entry.id <= kept);
        View::of(kept.cloned())
    };
    let requests = entries.iter().filter_map(|entry| match &entry.event {
        Event::Request(request) if request.purpose != Purpose::Round => Some((entry.id, request)),
        _ => None,
    });
    let mut planned = requests.map(|(id, request)| Planned::of(&view(id), &request.purpose));
    let mut overlays = 0;
    let mut said = String::new();
    for notice in &notices {
        match notice {
            Notice::Planned(told) => {
                assert_eq!(planned.next().unwrap().as_ref(), Some(told));
                let [first, last] = told.rounds.unwrap();
                writeln!(said, "planned, {:?}, rounds {first} to {last}", told.origin).unwrap();
            }
            Notice::Laid(told) => {
                overlays += told.overlays.len();
                let (first, last) = (told.pass, *told.overlays.last().unwrap());
                let before = Shape::of(&view(EntryId(first.0 - 1)));
                assert_eq!(Laid::of(&view(last), first, before).as_ref(), Some(told));
                assert!(told.after.tokens < told.before.tokens && told.percent < 100);
                let shape = |shape: &Shape| format!("{} + {}", shape.summaries, shape.entries);
                let (origin, by, results) = (told.origin, told.by, told.results);
                let (before, after) = (shape(&told.before), shape(&told.after));
                writeln!(
                    said,
                    "laid, {origin:?}, {by:?}, {results} results, {before} → {after}"
                )
                .unwrap();
            }
            Notice::Failed(told) => {
                let Failed {
                    why, next, model, ..
                } = told;
                writeln!(said, "failed, {why}, {next:?} {model:?}").unwrap();
            }
        }
    }
    assert_eq!(planned.next(), None);
    let laid = entries
        .iter()
        .filter(|entry| matches!(entry.event, Event::Overlay(_)));
    assert_eq!(laid.count(), overlays);
    said
}

fn without_micro() -> Policy {
    let mut policy = Policy::default();
    policy.compaction.micro.enabled = false;
    policy
}

#[test]
fn a_summary_is_planned_and_laid() {
    let told = check(9, without_micro(), |_| Reply::text("They were changed."));
    insta::assert_snapshot!(told, @"
    planned, Auto, rounds 1 to 4
    laid, Auto, Some(Model), 0 results, 0 + 11 → 1 + 3
    laid, Auto, None, 4 results, 1 + 11 → 1 + 11
    ");
}

#[test]
fn what_micro_compaction_puts_away_is_told() {
    let mut policy = Policy::default();
    policy.compaction.micro.keep_recent = 2;
    policy.compaction.micro.min_gain_tokens = 1_000;
    policy.compaction.micro.min_gain_ratio = 0.0;
    policy.compaction.auto.enabled = false;
    let told = check(5, policy, |_| Reply::text("Not asked."));
    insta::assert_snapshot!(told, @"
    laid, Micro, None, 1 results, 0 + 7 → 0 + 7
    laid, Micro, None, 1 results, 0 + 9 → 0 + 9
    laid, Micro, None, 1 results, 0 + 11 → 0 + 11
    ");
}

#[test]
fn a_summary_that_fails_is_told_with_what_is_done_then() {
    let cut = |_| Reply {
        ending: Ending::Cut,
        ..Reply::text("They were")
    };
    insta::assert_snapshot!(check(14, without_micro(), cut), @r#"
    planned, Auto, rounds 1 to 4
    failed, cut, Harder Some("scripted")
    planned, Auto, rounds 1 to 4
    failed, cut, Strip None
    laid, Auto, None, 4 results, 0 + 11 → 0 + 11
    planned, Auto, rounds 1 to 7
    failed, cut, Strip None
    laid, Auto, None, 3 results, 0 + 17 → 0 + 17
    laid, Auto, None, 2 results, 0 + 21 → 0 + 21
    laid, Auto, None, 1 results, 0 + 23 → 0 + 23
    laid, Auto, None, 1 results, 0 + 25 → 0 + 25
    laid, Auto, None, 1 results, 0 + 27 → 0 + 27
    planned, Auto, rounds 1 to 9
    failed, cut, Rules None
    laid, Auto, Some(Rules), 0 results, 0 + 29 → 1 + 3
    "#);
}

#[test]
fn a_summary_that_fails_may_end_the_run() {
    let mut stops = without_micro();
    stops.compaction.auto.on_failure = OnFailure::Stop;
    insta::assert_snapshot!(check(14, stops, |_| Reply::text("")), @r#"
    planned, Auto, rounds 1 to 4
    failed, empty, Harder Some("scripted")
    planned, Auto, rounds 1 to 4
    failed, empty, Stop None
    "#);
}
