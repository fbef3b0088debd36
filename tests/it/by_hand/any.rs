//! The laws of compaction, whatever is ordered of whatever run.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use undertext::address::Address;
use undertext::compaction::by_hand::{Order, Strategy as Doing, Work};
use undertext::exchange::{Hint, Message, Treatment};
use undertext::id::{CallId, EntryId};
use undertext::overlay::Layer;
use undertext::setup::Rule;
use undertext::transcript::{Entry, Event, Purpose};
use undertext::view::View;

use super::stage::{give, view};
use crate::draft::Draft;
use crate::generate::{Written as Transcript, cases, lifelike};
use crate::{laws, oracle};

/// Anything that can be ordered of a run.
fn any_order() -> impl Strategy<Value = (Order, String)> {
    let address = || {
        proptest::option::weighted(
            0.6,
            prop_oneof![
                (1..80_u64).prop_map(|id| Address::Entry(EntryId(id))),
                (1..20_u32).prop_map(Address::Round),
                (0..20_u32).prop_map(Address::RoundsBack),
                (1..6_u32).prop_map(Address::Turn),
                (0..6_u32).prop_map(Address::TurnsBack),
                (1..80_u64, 1..3_u32)
                    .prop_map(|(id, n)| Address::Call(CallId::new(EntryId(id), n))),
                (0..7_200_000_u64).prop_map(Address::Ago),
                Just(Address::Last),
                Just(Address::LastCompaction),
                Just(Address::Start),
                Just(Address::End),
            ],
        )
    };
    let strategies = proptest::collection::vec(proptest::sample::select(&Doing::ALL[..]), 1..5);
    let work = prop_oneof![
        8 => strategies.prop_map(Work::Strategies),
        2 => any::<[bool; 5]>().prop_map(|[reasoning, tools, dedup, attachments, summary]| {
            let strip = Hint::new(Treatment::Strip, Treatment::Strip);
            let rule = Rule {
                strip_reasoning: reasoning,
                tools: tools.then_some(strip),
                dedup,
                strip_attachments: attachments,
                summary,
                keep_last: 2,
                ..Rule::default()
            };
            Work::Rule("any".to_owned(), rule)
        }),
        1 => (1..80_u64).prop_map(|id| Work::Again(EntryId(id))),
    ];
    let keep = || proptest::option::weighted(0.4, 0..6_u32);
    let text = proptest::option::weighted(0.2, Just("By a person.".to_owned()));
    (
        (work, address(), address(), any::<bool>()),
        (keep(), keep(), text, proptest::bool::weighted(0.2)),
        "[a-z ]{1,600}",
    )
        .prop_map(
            |((work, from, to, alone), (keep_first, keep_last, text, fresh), written)| {
                let order = Order {
                    from,
                    to: if alone && from.is_some() { from } else { to },
                    keep_first,
                    keep_last,
                    text,
                    fresh,
                    ..Order::new(work)
                };
                (order, written)
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Laws 3 to 8 and 12, whatever is ordered of whatever run, one order after the other.
    #[test]
    fn any_order_keeps_the_laws(
        Transcript(entries) in lifelike(),
        orders in proptest::collection::vec(any_order(), 1..4),
    ) {
        let mut draft = Draft::default();
        for entry in &entries {
            draft.push(entry.event.clone());
        }
        for (order, text) in &orders {
            let before = view(&draft);
            let first = draft.next();
            if give(&mut draft, order, text).is_ok() {
                shrinks(&before, &draft, first)?;
                // What is named alone may go, whatever it is.
                if order.from.is_none() || order.from != order.to {
                    keeps(&before, &view(&draft))?;
                }
            }
        }
        laws::equals_the_oracle(draft.entries())?;
        laws::begins_as_before(draft.entries())?;
        laws::can_be_recalled(&view(&draft))?;
        if let Some(body) = view(&draft).body(&Purpose::Round).filter(|_| view(&draft).may_ask()) {
            let judged = oracle::pairing(&body.bytes);
            prop_assert!(judged.is_ok(), "{judged:?}");
        }
        let overlays = view(&draft).overlays();
        if let Some(newest) = overlays.last() {
            draft.retract(&[*newest]);
        }
        laws::reads_as_notes(draft.entries())?;
    }
}

/// Law 7: each overlay makes the next request shorter, but `show` and a summary over a summary.
fn shrinks(before: &View, draft: &Draft, first: EntryId) -> Result<(), TestCaseError> {
    let mut view = before.clone();
    for entry in draft.entries().iter().filter(|entry| entry.id >= first) {
        let chars = view.chars().all;
        let may_grow = match &entry.event {
            Event::Overlay(laid) => match &laid.layer {
                Layer::Summary(summary) => {
                    let mut bands = view.summaries().into_iter();
                    bands.any(|band| band.summary.span.meets(summary.span))
                }
                Layer::Show(_) => true,
                Layer::Stub(_) | Layer::Hide(_) => false,
            },
            _ => false,
        };
        view.take(Arc::<Entry>::clone(entry));
        prop_assert!(
            may_grow || view.chars().all < chars,
            "law 7 at entry {}",
            entry.id
        );
    }
    Ok(())
}

/// Law 8: the task, results that were not seen and the newest todo list read as before.
fn keeps(before: &View, after: &View) -> Result<(), TestCaseError> {
    let newest = before.rounds().answered();
    let unseen: Vec<EntryId> = newest
        .into_iter()
        .flat_map(|r| r.results.iter().flatten().copied())
        .collect();
    let todo = before.working().todo;
    let reads = |view: &View, call: CallId, carried: bool| {
        let (_, result) = view.result_of(call).unwrap();
        view.messages().iter().any(|message| match message {
            Message::Tool {
                call: answered,
                text,
            } => *answered == call && *text == result.content,
            Message::User { text } => carried && text.contains(&format!("[call {call}, ")),
            Message::Assistant { .. } => false,
        })
    };
    let results = unseen.into_iter().filter_map(|entry| before.result(entry));
    for call in results.map(|result| result.call) {
        let gone = reads(before, call, false) && !reads(after, call, false);
        prop_assert!(!gone, "law 8: call {call}");
    }
    if let Some(call) = todo {
        let gone = reads(before, call, true) && !reads(after, call, true);
        prop_assert!(!gone, "law 8: the todo list {call}");
    }
    if let Some(task) = before.working().task {
        let covered = |view: &View| view.covered_by(task).is_some();
        prop_assert!(!covered(after) || covered(before), "law 8: the task");
    }
    Ok(())
}
