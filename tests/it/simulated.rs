//! Laws 4, 7, 8 and 9 on simulated runs: the real loop, compaction in all its ways, a model that does
//! whatever it likes and whose summaries fail in every way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::json;
use undertext::agent::Task;
use undertext::compaction::carry::carry;
use undertext::exchange::{Ending, Message, Usage};
use undertext::id::{CallId, Span};
use undertext::model::{Fault, Reply, Script, Scripted};
use undertext::overlay::{Author, Layer, Origin, Overlay, Show, Size, Summary};
use undertext::record::{MemoryStorage, Recorder};
use undertext::setup::Policy;
use undertext::transcript::{Entry, Event, FaultClass, Pin, Purpose, Reason, Retract, Speaker};
use undertext::view::View;

use crate::generate::cases;
use crate::oracle;
use crate::recalled::recall;
use crate::scene;

/// What the model does next.
#[derive(Clone, Debug)]
enum Move {
    /// It calls tools: which, about what, and how long each result is.
    Calls(Vec<(u8, u8, u16)>),
    /// It asks for a compaction.
    Compact(bool),
    /// It searches its own past.
    Recall(u8),
    /// It calls a tool with arguments that are none.
    Malformed,
    /// Its reply is cut.
    Cut,
    /// Its reply is empty.
    Empty,
    /// The provider fails, for a moment.
    Overloaded,
    /// The provider says that the request is too long.
    Overflow,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let call = (
        0..3_u8,
        0..12_u8,
        prop_oneof![3 => 0..400_u16, 2 => 400..9000_u16],
    );
    let one = prop_oneof![
        20 => proptest::collection::vec(call, 1..4).prop_map(Move::Calls),
        2 => any::<bool>().prop_map(Move::Compact),
        1 => (0..12_u8).prop_map(Move::Recall),
        1 => Just(Move::Malformed),
        1 => Just(Move::Cut),
        1 => Just(Move::Empty),
        1 => Just(Move::Overloaded),
        1 => Just(Move::Overflow),
    ];
    proptest::collection::vec(one, 1..60)
}

fn script(one: &Move) -> Script {
    let usage = Some(Usage {
        input: Some(900),
        output: Some(10),
        ..Usage::default()
    });
    let reply = match one {
        Move::Calls(calls) => Reply::calls(calls.iter().map(|(tool, about, chars)| {
            let name = ["Show", "Change", "TodoWrite"][usize::from(*tool)];
            let arguments = json!({ "path": format!("src/{about}.rs"), "chars": chars });
            (name, arguments.to_string())
        })),
        Move::Compact(true) => Reply::calls([("Compact", r#"{"focus":"the parser"}"#)]),
        Move::Compact(false) => Reply::calls([("Compact", "{}")]),
        Move::Recall(about) => Reply::calls([(
            "Recall",
            json!({ "pattern": format!("{about}.rs") }).to_string(),
        )]),
        Move::Malformed => Reply::calls([("Show", "{\"path\":"), ("Show", "{\"path\":\"a\"}")]),
        Move::Cut => {
            let calls = Reply::calls([("Show", "{\"path\":\"a\"}")]);
            Reply {
                ending: Ending::Cut,
                finish: Some("length".to_owned()),
                ..calls
            }
        }
        Move::Empty => Reply::default(),
        Move::Overloaded => return Fault::new(FaultClass::Overload, "busy").into(),
        Move::Overflow => return Fault::new(FaultClass::Overflow, "too long").into(),
    };
    Reply { usage, ..reply }.into()
}

/// Summaries that are sound, or fail in the way that the number says.
fn summaries(
    kinds: Vec<u8>,
) -> impl Fn(&undertext::model::Ask) -> Result<Reply, Fault> + Send + Sync {
    let asked = AtomicUsize::new(0);
    move |_| {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        let sound = Reply::text(format!(
            "Summary {number}: the parser was read and changed."
        ));
        match kinds[number % kinds.len()] {
            0 => Ok(Reply::text("")),
            1 => Ok(Reply {
                ending: Ending::Cut,
                ..sound
            }),
            2 => Ok(Reply {
                ending: Ending::Refused,
                ..sound
            }),
            3 => Ok(Reply::calls([("Show", "{}")])),
            4 => Err(Fault::new(FaultClass::Permanent, "no")),
            5 => Ok(Reply::text("x".repeat(60_000))),
            6 => Err(Fault::new(FaultClass::Overload, "busy")),
            _ => Ok(sound),
        }
    }
}

fn policy(min_gain: u64, min_rounds: u32, cooldown: u32) -> Policy {
    let mut policy = Policy::default();
    policy.compaction.micro.min_gain_tokens = min_gain;
    policy.compaction.auto.min_rounds = min_rounds;
    policy.compaction.tool.cooldown_rounds = cooldown;
    policy.compaction.tool.min_ratio = 0.05;
    policy
}

const TASK: &str = "Mend the parser in \"src\".\nKeep the tests as they are.";

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Laws 4, 7, 8 and 9, and that every run ends.
    #[test]
    fn a_run_keeps_the_laws_whatever_its_model_does(
        moves in moves(),
        kinds in proptest::collection::vec(prop_oneof![4 => Just(9_u8), 3 => 0..9_u8], 1..9),
        window in 8_000..40_000_u64,
        (min_gain, min_rounds, cooldown) in (prop_oneof![Just(0), Just(10_000)], 0..6_u32, 0..4_u32),
    ) {
        let mut answers: Vec<Script> = moves.iter().map(script).collect();
        answers.extend((0..4).map(|_| Reply::text("Done.").into()));
        let model = Scripted::new(answers).with_summaries(summaries(kinds));
        let agent = scene::agent(window, policy(min_gain, min_rounds, cooldown), model);
        let storage = MemoryStorage::default();
        let mut recorder = scene::create(&storage);
        let finished = scene::go(&agent, &mut recorder, Some(Task::new(TASK)));
        let reason = finished.unwrap().reason;
        let provider = moves.iter().any(|one| matches!(one, Move::Overflow));
        prop_assert!(
            matches!(reason, Reason::Finished | Reason::Stuck | Reason::Empty)
                || provider && matches!(reason, Reason::Provider | Reason::Oversize),
            "{reason:?}"
        );
        keeps_the_laws(&scene::entries(&storage), window)?;
        is_recoverable(&recorder)?;
    }
}

/// What a person does between two turns.
#[derive(Clone, Debug)]
enum ByHand {
    /// Pins the entry at this place among all.
    Pin(usize),
    /// Takes back the overlay at this place among those that stand.
    Retract(usize),
    /// Lifts stubs and hides from the calls of a round.
    Show(usize),
    /// Writes a summary of rounds before the newest one.
    Summarise(usize, usize),
}

fn by_hand() -> impl Strategy<Value = Vec<ByHand>> {
    let one = prop_oneof![
        2 => any::<usize>().prop_map(ByHand::Pin),
        2 => any::<usize>().prop_map(ByHand::Retract),
        1 => any::<usize>().prop_map(ByHand::Show),
        1 => any::<(usize, usize)>().prop_map(|(from, to)| ByHand::Summarise(from, to)),
    ];
    proptest::collection::vec(one, 0..5)
}

/// The entry that a person's deed becomes; `None` if there is nothing to do it to.
fn deed(view: &View, deed: &ByHand) -> Option<Event> {
    let pick = |place: usize, of: usize| (of > 0).then(|| place % of);
    let rounds: Vec<_> = view
        .rounds()
        .all()
        .iter()
        .filter(|r| r.is_closed())
        .collect();
    let laid = |layer| {
        let (rule, reason, size) = ("by hand".to_owned(), String::new(), Size::default());
        let pass = view.transcript().next_id();
        Event::Overlay(Overlay {
            origin: Origin::User,
            rule,
            pass,
            layer,
            size,
            reason,
        })
    };
    match deed {
        ByHand::Pin(place) => {
            let entries = view.transcript().entries().to_vec();
            let entry = entries[pick(*place, entries.len())?].id;
            // A pin of something huge is refused where pins are made.
            let small = view
                .result(entry)
                .is_none_or(|result| result.content.len() < 600);
            small.then_some(Event::Pin(Pin { entry }))
        }
        ByHand::Retract(place) => {
            let overlays = view.overlays();
            let overlay = overlays[pick(*place, overlays.len())?];
            Some(Event::Retract(Retract {
                overlays: vec![overlay],
                origin: Origin::User,
            }))
        }
        ByHand::Show(place) => {
            let round = rounds[pick(*place, rounds.len())?];
            let calls = (1..).take(round.results.len());
            let calls = calls
                .map(|place| CallId::new(round.response.unwrap(), place))
                .collect();
            Some(laid(Layer::Show(Show { calls })))
        }
        ByHand::Summarise(from, to) => {
            let old = &rounds[..rounds.len().saturating_sub(1)];
            let (from, to) = (pick(*from, old.len())?, pick(*to, old.len())?);
            let span = Span::new(old[from.min(to)].begins(), old[from.max(to)].span()?.to);
            let carry = carry(view, &view.sizes()?, span, "Written by a person.", &[]);
            Some(laid(Layer::Summary(Summary {
                span,
                text: "Written by a person.".to_owned(),
                by: Author::User,
                focus: None,
                parts: Vec::new(),
                depth: 1,
                carry,
            })))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases() / 2,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The same laws when a person pins, takes back, shows and writes between two turns.
    #[test]
    fn a_run_keeps_the_laws_whatever_a_person_does(
        (first, second) in (moves(), moves()),
        deeds in by_hand(),
        window in 12_000..40_000_u64,
        (min_gain, min_rounds) in (prop_oneof![Just(0), Just(10_000)], 0..6_u32),
    ) {
        let storage = MemoryStorage::default();
        let play = |moves: &[Move]| {
            let mut answers: Vec<Script> = moves.iter().map(script).collect();
            answers.extend((0..4).map(|_| Reply::text("Done.").into()));
            let model = Scripted::new(answers).with_summaries(summaries(vec![9, 9, 0]));
            scene::agent(window, policy(min_gain, min_rounds, 0), model)
        };
        let task = Some(Task::new(TASK));
        scene::go(&play(&first), &mut scene::create(&storage), task).unwrap();
        let mut recorder = scene::open(&storage);
        for one in &deeds {
            if let Some(event) = deed(recorder.view(), one) {
                recorder.record(event).unwrap();
            }
        }
        scene::go(&play(&second), &mut recorder, Some(Task::new("And now the rest."))).unwrap();
        keeps_the_laws(&scene::entries(&storage), window)?;
        is_recoverable(&recorder)?;
    }
}

/// Law 12: every result can be had in full by its handle, whatever it reads as and however it was
/// clipped.
fn is_recoverable(recorder: &Recorder) -> Result<(), TestCaseError> {
    let view = recorder.view();
    for entry in view.transcript().entries() {
        let Event::Result(result) = &entry.event else {
            continue;
        };
        let blob = result.clipped.and_then(|clipped| clipped.blob);
        let blob = blob.and_then(|blob| recorder.storage().read_blob(blob).unwrap());
        let whole = match &blob {
            Some(bytes) => str::from_utf8(bytes).unwrap(),
            None => &result.content,
        };
        let handle = result.call.to_string();
        let shown = recall(recorder, &json!({ "handle": handle, "lines": 1_000_000 })).content;
        prop_assert!(
            shown.contains(whole.trim_end()),
            "{handle} cannot be had in full"
        );
    }
    Ok(())
}

/// Holds every request and overlay of a run against the laws.
pub(crate) fn keeps_the_laws(entries: &[Arc<Entry>], window: u64) -> Result<(), TestCaseError> {
    let task = entries.iter().find_map(|entry| match &entry.event {
        Event::User(user) if user.origin == Speaker::Task => Some(user.text.as_str()),
        _ => None,
    });
    let task = task.unwrap_or_default();
    let mut view = View::default();
    for entry in entries {
        match &entry.event {
            Event::Request(request) => {
                let body = view.body(&request.purpose).unwrap();
                prop_assert_eq!(body.digest(), request.body, "law 9 at entry {}", entry.id);
                let paired = oracle::pairing(&body.bytes);
                prop_assert!(paired.is_ok(), "law 4 at entry {}: {:?}", entry.id, paired);
                prop_assert!(
                    request.estimate.tokens <= window,
                    "over the window at {}",
                    entry.id
                );
                if request.purpose == Purpose::Round {
                    keeps_what_matters(&view, task)?;
                }
            }
            Event::Overlay(overlay) if overlay.origin != Origin::User => {
                let before = view.chars().all;
                let mut after = view.clone();
                after.take(Arc::clone(entry));
                prop_assert!(
                    after.chars().all < before,
                    "law 7 at entry {}: {} is not below {}",
                    entry.id,
                    after.chars().all,
                    before
                );
                prop_assert!(overlay.size.after <= overlay.size.before);
            }
            _ => {}
        }
        view.take(Arc::clone(entry));
    }
    Ok(())
}

/// Law 8: the task, unseen results and the newest todo list are in the request.
fn keeps_what_matters(view: &View, task: &str) -> Result<(), TestCaseError> {
    let messages = view.messages();
    let says = |whole: &str| {
        messages
            .iter()
            .any(|message| matches!(message, Message::User { text } if *text == whole))
    };
    prop_assert!(says(task), "the task is gone");
    let round = view.rounds().answered();
    // What the model has not seen may go once the provider has refused it.
    let refused = view.ledger().overflowed > round.and_then(|round| round.response);
    for result in round
        .iter()
        .flat_map(|round| round.results.iter().flatten())
    {
        let result = view.result(*result).unwrap();
        let reads = messages.iter().any(|message| match message {
            Message::Tool { call, text } => *call == result.call && *text == result.content,
            _ => false,
        });
        prop_assert!(
            reads || refused,
            "an unseen result does not read in full: {}",
            result.call
        );
    }
    for (entry, reads) in view.pins() {
        let text = match &view.transcript().get(*entry).unwrap().event {
            Event::User(user) => user.text.clone(),
            Event::Response(response) => response.text.clone(),
            Event::Result(result) => result.content.clone(),
            _ => continue,
        };
        if !reads {
            continue;
        }
        let reads = messages.iter().any(|message| match message {
            Message::User { text: said }
            | Message::Tool { text: said, .. }
            | Message::Assistant { text: said, .. } => said.contains(&text),
        });
        prop_assert!(reads, "a pin is gone: {entry}");
    }
    if let Some(todo) = view.working().todo {
        let (_, result) = view.result_of(todo).unwrap();
        let carried = format!("[call {todo}, TodoWrite ");
        let reads = messages.iter().any(|message| match message {
            Message::Tool { call, text } => *call == todo && *text == result.content,
            Message::User { text } => text.contains(&carried) && text.contains(&result.content),
            Message::Assistant { .. } => false,
        });
        prop_assert!(reads, "the newest todo list is gone: {todo}");
    }
    Ok(())
}

/// A run in which every way of compacting occurs, so that the property above is not an empty one.
#[test]
fn every_origin_occurs() {
    let about = |n: usize| Move::Calls(vec![(0, u8::try_from(n % 12).unwrap(), 3000)]);
    let mut moves: Vec<Move> = (0..50).map(about).collect();
    moves[20] = Move::Compact(true);
    moves[35] = Move::Overflow;
    let mut answers: Vec<Script> = moves.iter().map(script).collect();
    answers.push(Reply::text("Done.").into());
    let model = Scripted::new(answers).with_summaries(summaries(vec![9]));
    let mut policy = policy(500, 0, 0);
    policy.compaction.micro.min_gain_ratio = 0.0;
    let agent = scene::agent(12_000, policy, model);
    let storage = MemoryStorage::default();
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new(TASK))).unwrap();
    let entries = scene::entries(&storage);
    keeps_the_laws(&entries, 12_000).unwrap();
    let laid = entries.iter().filter_map(|entry| match &entry.event {
        Event::Overlay(overlay) => Some(overlay),
        _ => None,
    });
    let laid: Vec<_> = laid.collect();
    for origin in [Origin::Micro, Origin::Auto, Origin::Tool, Origin::Recovery] {
        assert!(
            laid.iter().any(|overlay| overlay.origin == origin),
            "{origin:?}"
        );
    }
    assert!(
        laid.iter()
            .any(|overlay| matches!(overlay.layer, Layer::Summary(_)))
    );
}
