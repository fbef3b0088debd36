//! Micro-compaction against the literal rule of its forerunner, overlay by overlay, and the worked
//! examples that its documents give.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use undertext::agent::Task;
use undertext::compaction::strategies;
use undertext::exchange::Message;
use undertext::id::{CallId, EntryId, Span};
use undertext::model::{Reply, Script, Scripted};
use undertext::overlay::{
    Author, Carry, Form, Hide, Layer, Origin, Overlay, Show, Size, Stub, Summary,
};
use undertext::record::MemoryStorage;
use undertext::setup::Policy;
use undertext::transcript::{Entry, Event, Pin, Purpose, Retract};
use undertext::view::View;

use crate::generate::cases;
use crate::oracle;
use crate::scene;
use crate::simulated::keeps_the_laws;

/// A window that nothing here fills.
const WINDOW: u64 = 1_000_000;

/// The exempt list of the forerunner.
const EXEMPT: [&str; 5] = ["LoadSkill", "Task", "TodoWrite", "TodoRead", "Ask"];

/// The rule, literally: map ids to names from the assistant's messages, list the tool messages in
/// order, keep the newest ones, and put away what is longer than 800 characters and not exempt.
fn literal(messages: &[Message<'_>], keep_recent: usize) -> Vec<CallId> {
    let mut names = HashMap::new();
    let mut results = Vec::new();
    for message in messages {
        match message {
            Message::User { .. } => {}
            Message::Assistant { calls, .. } => {
                names.extend(calls.iter().map(|call| (call.id, call.name.clone())));
            }
            Message::Tool { call, text } => results.push((*call, text.chars().count())),
        }
    }
    if results.len() <= keep_recent {
        return Vec::new();
    }
    results.truncate(results.len() - keep_recent);
    let goes =
        |(call, chars): &(CallId, usize)| *chars > 800 && !EXEMPT.contains(&names[call].as_ref());
    results
        .iter()
        .filter(|result| goes(result))
        .map(|(call, _)| *call)
        .collect()
}

/// A policy with micro-compaction alone, by the literal rule.
fn policy(keep_recent: u32) -> Policy {
    let mut policy = Policy::default();
    policy.compaction.micro.min_gain_tokens = 0;
    policy.compaction.micro.keep_recent = keep_recent;
    policy.compaction.micro.exempt = EXEMPT.map(str::to_owned).into();
    policy.compaction.micro.arguments = false;
    policy.compaction.auto.enabled = false;
    policy
}

/// Runs these rounds of calls and returns what was recorded, which keeps the laws.
fn record(keep_recent: u32, rounds: Vec<Vec<(&str, String)>>) -> MemoryStorage {
    record_under(policy(keep_recent), rounds)
}

fn record_under(policy: Policy, rounds: Vec<Vec<(&str, String)>>) -> MemoryStorage {
    let mut answers: Vec<Script> = rounds.into_iter().map(|r| Reply::calls(r).into()).collect();
    answers.push(Reply::text("Done.").into());
    let agent = scene::agent(WINDOW, policy, Scripted::new(answers));
    let storage = MemoryStorage::default();
    scene::go(
        &agent,
        &mut scene::create(&storage),
        Some(Task::new("Look.")),
    )
    .unwrap();
    keeps_the_laws(&scene::entries(&storage), WINDOW).unwrap();
    storage
}

/// Holds the overlays before each request against the literal rule; returns how many were laid.
fn equals_the_literal_rule(storage: &MemoryStorage, keep_recent: usize) -> usize {
    let entries = scene::entries(storage);
    let mut laid: Option<Vec<CallId>> = None;
    let mut count = 0;
    for (place, entry) in entries.iter().enumerate() {
        match &entry.event {
            Event::Overlay(overlay) => {
                assert_eq!(overlay.origin, Origin::Micro);
                let Layer::Stub(stub) = &overlay.layer else {
                    panic!("{overlay:?}")
                };
                assert_eq!(stub.form, Form::Previous);
                let expected = literal(&oracle::messages(&entries[..place]), keep_recent);
                assert_eq!(stub.results, expected, "overlay {}", entry.id);
                assert!(laid.replace(expected).is_none(), "one overlay for one look");
                count += 1;
            }
            Event::Request(request)
                if request.purpose == Purpose::Round && laid.take().is_none() =>
            {
                let expected = literal(&oracle::messages(&entries[..place]), keep_recent);
                assert!(
                    expected.is_empty(),
                    "before request {}: {expected:?}",
                    entry.id
                );
            }
            _ => {}
        }
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn micro_equals_the_literal_rule(
        keep_recent in 3..12_u32,
        rounds in proptest::collection::vec(
            proptest::collection::vec(
                (0..3_usize, 0..9_u8, prop_oneof![Just(800_u16), Just(801), 0..3000_u16]),
                1..4,
            ),
            0..14,
        ),
    ) {
        let call = |(tool, about, chars): (usize, u8, u16)| {
            let arguments = json!({ "path": format!("ä{about}"), "chars": chars });
            (["Show", "Change", "TodoWrite"][tool], arguments.to_string())
        };
        let rounds = rounds.into_iter().map(|round| round.into_iter().map(call).collect());
        let storage = record(keep_recent, rounds.collect());
        equals_the_literal_rule(&storage, usize::try_from(keep_recent).unwrap());
    }
}

fn show(chars: usize) -> (&'static str, String) {
    ("Show", json!({ "path": "a", "chars": chars }).to_string())
}

/// Example C16 of the forerunner: of three results with `keep_recent` 3 its text puts two away, its
/// algorithm none. The algorithm holds.
#[test]
fn as_many_results_as_are_kept_all_stay() {
    let rounds = |count: usize| (0..count).map(|_| vec![show(2000)]).collect::<Vec<_>>();
    assert_eq!(equals_the_literal_rule(&record(3, rounds(3)), 3), 0);
    assert_eq!(equals_the_literal_rule(&record(3, rounds(4)), 3), 1);
    assert_eq!(equals_the_literal_rule(&record(3, rounds(6)), 3), 3);
}

/// A pass waits until what it frees is so many times what is read afresh for it.
#[test]
fn what_a_pass_frees_is_large_beside_what_is_read_afresh() {
    let rounds = || (0..12).map(|_| vec![show(2000)]).collect::<Vec<_>>();
    let passes = |ratio: u32| {
        let mut policy = policy(2);
        policy.compaction.micro.min_gain_tokens = 1;
        policy.compaction.micro.min_gain_ratio = f64::from(ratio) / 10.0;
        let entries = scene::entries(&record_under(policy, rounds()));
        let mut view = View::default();
        let mut passes = 0_u32;
        for entry in entries {
            let before = view.settled().to_vec();
            let lays = matches!(entry.event, Event::Overlay(_));
            view.take(entry);
            if lays {
                let after = view.settled();
                let alike = before.iter().zip(after).take_while(|(a, b)| a == b);
                let afresh = u32::try_from(after.len() - alike.count()).unwrap();
                let freed = u32::try_from(before.len() - after.len()).unwrap();
                // The first change begins within its message.
                assert!(freed * 20 > ratio * 2 * afresh, "{freed} beside {afresh}");
                passes += 1;
            }
        }
        passes
    };
    assert_eq!([0, 5, 10, 20].map(passes), [10, 5, 3, 1]);
}

/// The other half of C16: a tool whose hint keeps its arguments keeps them, though the rule says to
/// strip both halves.
#[test]
fn a_hint_keeps_the_half_that_it_names() {
    let change = ("Change", json!({ "path": "b", "chars": 900 }).to_string());
    let rounds = vec![vec![show(900)], vec![change], vec![show(10)]];
    let view = View::of(scene::entries(&record(30, rounds)));
    let [stub, hide] = strategies::hints(&view);
    let Some(Layer::Stub(stub)) = stub else {
        panic!("{stub:?}")
    };
    let names = |calls: &[CallId]| {
        let name = |call: &CallId| view.tool_call(*call).unwrap().name.clone();
        calls.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(&stub.results), ["Show", "Change"]);
    assert_eq!(names(&stub.arguments), ["Change"]);
    assert_eq!(hide, None);
}

/// Arguments go with their call's result, or alone: where they are long and the tool lets its requests
/// be stripped, and unless the settings keep them.
#[test]
fn arguments_go_where_the_tool_lets_them() {
    let call = |tool, path: usize, chars: usize| {
        let path = "p".repeat(path);
        (tool, json!({ "path": path, "chars": chars }).to_string())
    };
    let rounds = || {
        let old = vec![
            call("Change", 900, 10),
            call("Change", 20, 900),
            call("Change", 900, 900),
            call("Show", 900, 10),
            call("TodoWrite", 900, 900),
            call("Show", 20, 900),
        ];
        vec![old, vec![call("Show", 1, 1), call("Show", 1, 1)]]
    };
    let stub = |arguments: bool| {
        let mut policy = policy(2);
        policy.compaction.micro.arguments = arguments;
        let view = View::of(scene::entries(&record_under(policy, rounds())));
        let [overlay] = view.overlays()[..] else {
            panic!("{:?}", view.overlays())
        };
        let laid = view.overlay(overlay).unwrap();
        let Layer::Stub(stub) = &laid.layer else {
            panic!("{laid:?}")
        };
        let said = |call: &CallId| view.tool_call(*call).unwrap().arguments.clone();
        let long = |call: &CallId| (*call, said(call).len() > 800);
        let read = view
            .messages()
            .into_iter()
            .filter_map(|message| match message {
                Message::Assistant { calls, .. } => Some(calls),
                Message::User { .. } | Message::Tool { .. } => None,
            });
        let none: Vec<CallId> = read
            .flatten()
            .filter(|call| call.arguments == "{}")
            .map(|call| call.id)
            .collect();
        assert_eq!(
            none, stub.arguments,
            "what is stubbed reads as no arguments"
        );
        let shown = |calls: &[CallId]| {
            let calls = calls.iter().map(|call| {
                let (call, long) = long(call);
                let name = &view.tool_call(call).unwrap().name;
                format!("{name}{}", if long { " long" } else { "" })
            });
            calls.collect::<Vec<_>>().join(", ")
        };
        (
            shown(&stub.results),
            shown(&stub.arguments),
            laid.reason.clone(),
        )
    };
    let (results, arguments, reason) = stub(true);
    assert_eq!(results, "Change, Change long, Show");
    assert_eq!(arguments, "Change long, Change long");
    insta::assert_snapshot!(reason, @"1128 of 0 tokens");
    let (results, arguments, reason) = stub(false);
    assert_eq!((&*results, &*arguments), ("Change, Change long, Show", ""));
    insta::assert_snapshot!(reason, @"665 of 0 tokens");
}

/// Adds entries to a run by hand.
fn by_hand(view: &mut View, event: Event) -> EntryId {
    let id = view.transcript().next_id();
    view.take(Arc::new(Entry {
        id,
        at: scene::BEGIN,
        event,
    }));
    id
}

/// What a person's retract uncovered is left alone, whatever covered it.
#[test]
fn what_a_person_uncovered_stays() {
    let rounds = (0..8).map(|_| vec![show(2000)]).collect();
    let mut policy = policy(2);
    policy.compaction.micro.enabled = false;
    let storage = record_under(policy, rounds);
    let mut view = View::of(scene::entries(&storage));
    assert_eq!(view.aging().candidates().len(), 6);
    let last = view.rounds().number(4).unwrap().span().unwrap().to;
    let summary = Summary {
        span: Span::new(view.rounds().number(1).unwrap().begins(), last),
        text: "By hand.".to_owned(),
        by: Author::User,
        focus: None,
        parts: Vec::new(),
        depth: 1,
        carry: Carry::default(),
    };
    let (rule, reason) = ("by hand".to_owned(), String::new());
    let (origin, pass, size) = (Origin::User, view.transcript().next_id(), Size::default());
    let layer = Layer::Summary(summary);
    let overlay = Overlay {
        origin,
        rule,
        pass,
        layer,
        size,
        reason,
    };
    let laid = by_hand(&mut view, Event::Overlay(overlay));
    assert_eq!(view.aging().candidates().len(), 2);
    by_hand(
        &mut view,
        Event::Retract(Retract {
            overlays: vec![laid],
            origin: Origin::User,
        }),
    );
    assert_eq!(view.aging().candidates().len(), 2);
}

/// What is old is the same, counted where an overlay lies or, as new settings do, all over.
#[test]
fn what_is_old_is_counted_alike_in_part_and_in_whole() {
    let rounds = (0..8).map(|_| vec![show(2000)]).collect();
    let mut policy = policy(2);
    policy.compaction.micro.enabled = false;
    let storage = record_under(policy, rounds);
    let mut view = View::of(scene::entries(&storage));
    let calls: Vec<CallId> = view.aging().candidates().keys().copied().collect();
    let span = |view: &View, from, to| {
        let round = |number| view.rounds().number(number).unwrap();
        Span::new(round(from).begins(), round(to).span().unwrap().to)
    };
    let summary = Summary {
        span: span(&view, 1, 4),
        text: "By hand.".to_owned(),
        by: Author::User,
        focus: None,
        parts: Vec::new(),
        depth: 1,
        carry: Carry::default(),
    };
    let layers = [
        Layer::Stub(Stub {
            results: calls[..2].to_vec(),
            ..Stub::default()
        }),
        Layer::Hide(Hide {
            calls: vec![calls[2]],
            rounds: vec![span(&view, 5, 6)],
            ..Hide::default()
        }),
        Layer::Show(Show {
            calls: vec![calls[0], calls[2]],
        }),
        Layer::Summary(summary),
    ];
    let count = |view: &View| {
        let mut whole = view.clone();
        let setup = Box::new(view.setup().unwrap().clone());
        by_hand(&mut whole, Event::Setup(setup));
        assert_eq!(view.aging().candidates(), whole.aging().candidates());
        view.aging().candidates().len()
    };
    let mut counts = vec![count(&view)];
    let mut laid = Vec::new();
    for layer in layers {
        let overlay = Overlay {
            origin: Origin::Auto,
            rule: String::new(),
            pass: view.transcript().next_id(),
            layer,
            size: Size::default(),
            reason: String::new(),
        };
        laid.push(by_hand(&mut view, Event::Overlay(overlay)));
        counts.push(count(&view));
    }
    for (place, overlay) in laid.into_iter().rev().enumerate() {
        let retract = Retract {
            overlays: vec![overlay],
            origin: if place == 3 {
                Origin::User
            } else {
                Origin::Auto
            },
        };
        by_hand(&mut view, Event::Retract(retract));
        counts.push(count(&view));
    }
    assert_eq!(counts, [6, 4, 1, 1, 0, 1, 1, 4, 4]);
}

/// A pin protects what reads in full when it is laid, and a second one what reads in full then.
#[test]
fn a_pin_protects_what_reads_in_full() {
    let rounds = (0..4).map(|_| vec![show(2000)]).collect();
    let mut view = View::of(scene::entries(&record(2, rounds)));
    let overlay = view.overlays()[0];
    let entry = view.rounds().number(1).unwrap().results[0].unwrap();
    by_hand(&mut view, Event::Pin(Pin { entry }));
    assert!(!view.is_protected(entry), "it read as a stub");
    by_hand(
        &mut view,
        Event::Retract(Retract {
            overlays: vec![overlay],
            origin: Origin::Auto,
        }),
    );
    by_hand(&mut view, Event::Pin(Pin { entry }));
    assert!(view.is_protected(entry));
    by_hand(&mut view, Event::Unpin(Pin { entry }));
    assert!(!view.is_protected(entry));
}
