//! Regret: what was hidden and then fetched again, against a naive count.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use undertext::exchange::{Facts, Message, Status, ToolCall, ToolResult};
use undertext::id::{CallId, EntryId, Span};
use undertext::overlay::{Author, Carry, Form, Hide, Layer, Stub, Summary};
use undertext::transcript::{Entry, Event, Purpose, Speaker};
use undertext::view::View;

use crate::draft::Draft;
use crate::generate::{Written, cases, lifelike};
use crate::oracle;

/// A call of a transcript, if it is part of the conversation.
fn made(entries: &[Arc<Entry>], call: CallId) -> Option<&ToolCall> {
    let view_of = |id: EntryId| entries.iter().find(|entry| entry.id == id);
    let Event::Response(response) = &view_of(call.response)?.event else {
        return None;
    };
    response
        .calls
        .get(usize::try_from(call.place).ok()?.checked_sub(1)?)
}

/// The first result of a call, if the call is part of the conversation.
fn answer(entries: &[Arc<Entry>], call: CallId) -> Option<(EntryId, &ToolResult)> {
    entries.iter().find_map(|entry| {
        let Event::Result(result) = &entry.event else {
            return None;
        };
        (result.call == call && entry.id > call.response).then_some((entry.id, result))
    })
}

/// Whether a call reads in full; its arguments too if they count.
fn reads(past: &[Arc<Entry>], call: CallId, arguments: bool) -> bool {
    let whole = answer(past, call).map(|(_, result)| result.content.as_str());
    let messages = oracle::messages(past);
    let result = messages.iter().any(|message| match message {
        Message::Tool { call: id, text } => *id == call && Some(&**text) == whole,
        Message::User { .. } | Message::Assistant { .. } => false,
    });
    let sent = messages.iter().any(|message| match message {
        Message::Assistant { calls, .. } => calls.iter().any(|sent| {
            sent.id == call
                && made(past, call).is_some_and(|made| made.arguments == *sent.arguments)
        }),
        Message::User { .. } | Message::Tool { .. } => false,
    });
    result && (sent || !arguments)
}

/// Whether a text is left out or summarised, or an attachment of it is left out.
fn is_covered(past: &[Arc<Entry>], id: EntryId) -> bool {
    past.iter().any(|entry| {
        let Event::Overlay(overlay) = &entry.event else {
            return false;
        };
        let retracted = past.iter().any(|later| {
            matches!(&later.event, Event::Retract(retract)
                if later.id > entry.id && retract.overlays.contains(&entry.id))
        });
        let response = past
            .iter()
            .any(|entry| entry.id == id && matches!(entry.event, Event::Response(_)));
        let attachments = past.iter().find_map(|entry| match &entry.event {
            Event::User(user) if entry.id == id => u32::try_from(user.attachments.len()).ok(),
            _ => None,
        });
        !retracted
            && id < entry.id
            && match &overlay.layer {
                Layer::Summary(summary) => summary.span.contains(id),
                Layer::Hide(hide) => {
                    let rounds = response && hide.rounds.iter().any(|span| span.contains(id));
                    let has = |place: &u32| (1..=attachments.unwrap_or(0)).contains(place);
                    rounds || hide.attachments.iter().any(|(of, n)| *of == id && has(n))
                }
                Layer::Stub(_) | Layer::Show(_) => false,
            }
    })
}

/// Whether an entry is one of the conversation with a text of its own.
fn is_text(entries: &[Arc<Entry>], id: EntryId) -> bool {
    let view = View::of(entries.iter().cloned());
    view.user(id).is_some() || view.rounds().of_response(id).is_some()
}

/// The calls and texts that were fetched again, counted entry by entry over everything before it.
fn naive(entries: &[Arc<Entry>]) -> (BTreeSet<CallId>, BTreeSet<EntryId>) {
    let (mut calls, mut texts) = (BTreeSet::new(), BTreeSet::new());
    let same = |one: &ToolCall, other: &ToolCall| {
        let value = |text: &str| {
            let text = if text.trim().is_empty() { "{}" } else { text };
            let value = serde_json::from_str::<serde_json::Value>(text).ok()?;
            // Some models wrap their arguments in a string.
            let inner = value
                .as_str()
                .and_then(|inner| serde_json::from_str(inner).ok());
            Some(inner.unwrap_or(value))
        };
        one.name == other.name
            && (one.arguments.trim() == other.arguments.trim()
                || value(&one.arguments).is_some_and(|it| Some(it) == value(&other.arguments)))
    };
    let in_rounds = View::of(entries.iter().cloned());
    let ran: Vec<(EntryId, &ToolResult)> = entries
        .iter()
        .filter_map(|entry| {
            let Event::Result(result) = &entry.event else {
                return None;
            };
            let (first, _) = answer(entries, result.call)?;
            in_rounds.rounds().of_response(result.call.response)?;
            made(entries, result.call)?;
            (first == entry.id).then_some((entry.id, result))
        })
        .collect();
    for (place, (id, result)) in ran.iter().enumerate() {
        let past: Vec<_> = entries.iter().filter(|e| e.id < *id).cloned().collect();
        let counts = |status| matches!(status, Status::Ok | Status::Error | Status::Timeout);
        let call = made(entries, result.call).unwrap();
        let before = ran[..place].iter().rev().find(|(_, before)| {
            counts(before.status) && same(call, made(entries, before.call).unwrap())
        });
        if let Some((_, before)) = before
            && counts(result.status)
            && !reads(&past, before.call, false)
        {
            calls.insert(before.call);
        }
        for recalled in &result.facts.recalled {
            let of = ran.iter().find(|(id, _)| id == recalled);
            if let Some((_, of)) = of {
                if !reads(&past, of.call, true) {
                    calls.insert(of.call);
                }
            } else if is_text(entries, *recalled) && is_covered(&past, *recalled) {
                texts.insert(*recalled);
            }
        }
    }
    (calls, texts)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn regret_is_what_a_naive_count_finds(
        Written(mut entries) in lifelike(),
        recalled in proptest::collection::vec((1_u64..40, 0_u64..4), 8),
    ) {
        // Some results showed entries before them.
        for entry in &mut entries {
            let id = entry.id.0;
            if let Event::Result(result) = &mut Arc::make_mut(entry).event
                && id.is_multiple_of(2)
            {
                let back = recalled.iter().filter(|(_, remainder)| id % 4 == *remainder);
                let back = back.filter_map(|(back, _)| id.checked_sub(*back));
                result.facts.recalled = back.filter(|id| *id > 0).map(EntryId).collect();
            }
        }
        let view = View::of(entries.iter().cloned());
        let (calls, texts) = naive(&entries);
        prop_assert_eq!(view.regret().calls(), &calls);
        prop_assert_eq!(view.regret().texts(), &texts);
        let mut by_tool = BTreeMap::new();
        for call in &calls {
            *by_tool.entry(made(&entries, *call).unwrap().name.clone()).or_default() += 1;
        }
        prop_assert_eq!(view.regret().by_tool(), &by_tool);
        let by_rule: u64 = view.regret().by_rule().values().sum();
        prop_assert_eq!(by_rule, (calls.len() + texts.len()) as u64);
    }
}

/// A run in which calls are made again and recalled after each of these layers was laid.
fn check(layer: impl Fn(EntryId, EntryId) -> Layer, expected: &str) {
    let read = ("Read", r#"{"path":"a","limit":9}"#, "text of a");
    let mut draft = Draft::default();
    let task = draft.user(Speaker::Task, "Look.");
    let first = draft.round(
        "I look.",
        &[read, ("Bash", r#"{"command":"make"}"#, "made")],
    );
    let response = draft.round("Now another.", &[("Read", r#"{"path":"b"}"#, "text of b")]);
    draft.overlay(layer(first, response));
    // The same, spelled otherwise; then once more, when it reads in full.
    for _ in 0..2 {
        draft.round(
            "",
            &[("Read", r#"{ "limit": 9, "path": "a" }"#, "text of a")],
        );
    }
    let request = draft.request(Purpose::Round);
    let recall = draft.response(
        request,
        "",
        &[],
        &[("Recall", r#"{"pattern":"made|look"}"#)],
    );
    let bash = EntryId(first.0 + 2);
    draft.push(Event::Result(ToolResult {
        call: CallId::new(recall, 1),
        status: Status::Ok,
        content: "found".to_owned(),
        clipped: None,
        facts: Facts {
            recalled: vec![task, first, bash, bash],
            ..Facts::default()
        },
        ms: None,
    }));
    let view = View::of(draft.into_entries());
    let mut said = String::new();
    for (tool, count) in view.regret().by_tool() {
        write!(said, "{tool} {count}, ").unwrap();
    }
    write!(said, "texts {}", view.regret().texts().len()).unwrap();
    write!(said, " of {}", view.ever_hidden().len()).unwrap();
    assert_eq!(said, expected);
}

#[test]
fn what_is_fetched_again_counts_once_and_only_if_it_was_hidden() {
    let all = |first: EntryId| vec![CallId::new(first, 1), CallId::new(first, 2)];
    check(
        |first, _| {
            Layer::Stub(Stub {
                form: Form::Previous,
                results: all(first),
                ..Stub::default()
            })
        },
        "Bash 1, Read 1, texts 0 of 2",
    );
    // Arguments alone are missed by Recall, not by a call that is made again.
    check(
        |first, _| {
            Layer::Stub(Stub {
                arguments: all(first),
                ..Stub::default()
            })
        },
        "Bash 1, texts 0 of 2",
    );
    check(
        |first, _| {
            Layer::Hide(Hide {
                calls: all(first)[..1].to_vec(),
                ..Hide::default()
            })
        },
        "Read 1, texts 0 of 1",
    );
    check(
        |first, response| {
            Layer::Summary(Summary {
                span: Span::new(EntryId(first.0 - 1), response.next()),
                text: "Looked.".to_owned(),
                by: Author::Model,
                focus: None,
                parts: Vec::new(),
                depth: 1,
                carry: Carry::default(),
            })
        },
        "Bash 1, Read 1, texts 1 of 3",
    );
    check(
        |_, response| {
            Layer::Stub(Stub {
                results: vec![CallId::new(response, 1)],
                ..Stub::default()
            })
        },
        "texts 0 of 1",
    );
}
