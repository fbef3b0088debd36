//! What became of a text before: a bad reply, a kill, an order by a person.

use std::sync::Arc;

use insta::assert_snapshot;
use undertext::agent::{Agent, Task};
use undertext::compaction::{gather, plan};
use undertext::exchange::{Ending, Response};
use undertext::id::{Digest, Span};
use undertext::model::{Ask, Fault, Reply, Script, Scripted};
use undertext::overlay::{Layer, Origin};
use undertext::record::MemoryStorage;
use undertext::setup::Policy;
use undertext::step::{self, Step};
use undertext::transcript::{Combine, Entry, Event, Purpose, Reason, Source, Summarize};
use undertext::view::View;

use super::{check, holds_together, job, replies, run, setup};
use crate::draft::reply;
use crate::scene;
use crate::simulated::keeps_the_laws;

/// A reply that will not do is not taken for a text because the run was killed before a note said
/// so and a person asked for something else since.
#[test]
fn a_bad_reply_without_a_note_is_no_text() {
    let mut desk = run(6, 1000, 32_000);
    let job = job(&desk.view);
    let asked = Summarize {
        focus: job.focus.clone(),
        keep: job.keep.clone(),
        ..Summarize::new(desk.view.transcript().last().unwrap().id, job.span)
    };
    desk.ask(&Purpose::Summary(asked.clone()));
    desk.answer(&|_, _| {
        Ok(Reply {
            ending: Ending::Cut,
            ..Reply::text("Half a")
        })
    });
    desk.ask(&Purpose::Summary(Summarize {
        focus: None,
        origin: Origin::User,
        ..asked
    }));
    desk.answer(&replies(50));
    let text = desk.gather(&job, &replies(100)).unwrap();
    assert_eq!(text.text.len(), replies_text(100));
    assert_snapshot!(desk.said, @"
    Summary reads e4–e18, clip 4000
    Summary reads e4–e18, clip 4000
    Summary reads e4–e18, clip 4000
    ");
}

/// The length of a reply without the blanks at its end.
fn replies_text(chars: usize) -> usize {
    let Ok(reply) = replies(chars)(&Purpose::Round, 2) else {
        unreachable!("it is a reply")
    };
    reply.text.trim().len()
}

/// A request that the run was killed beside cannot be sent again under other settings: another one
/// is made in its place.
#[test]
fn what_cannot_be_sent_again_is_asked_for_anew() {
    let mut desk = run(6, 1000, 32_000);
    let job = job(&desk.view);
    let gather::Gathered::Ask(purpose) = gather::gather(&desk.view, &job) else {
        panic!("a model is asked")
    };
    desk.ask(&purpose);
    assert_eq!(gather::gather(&desk.view, &job), gather::Gathered::Waits);
    let mut other = setup(32_000);
    other.wire.instructions = "You are careful.".to_owned();
    desk.record(Event::Setup(Box::new(other)));
    let text = desk.gather(&job, &replies(100));
    holds_together(&desk.view, &job, &text.unwrap());
    assert_snapshot!(desk.said, @"
    Summary reads e4–e18, clip 4000
    Summary reads e4–e18, clip 4000
    ");
}

/// What a person asked for by hand, and was killed beside, is neither sent again nor laid.
#[test]
fn what_a_person_asked_for_is_not_the_loops() {
    let mut desk = run(6, 1000, 32_000);
    let as_of = desk.view.transcript().last().unwrap().id;
    let span = job(&desk.view).span;
    let by_hand = Purpose::Summary(Summarize {
        origin: Origin::User,
        ..Summarize::new(as_of, span)
    });
    let next_round = |view: &View| match step::next(view, scene::BEGIN) {
        Step::Ask(ask) => ask.purpose == Purpose::Round && ask.again.is_none(),
        _ => false,
    };
    let request = desk.ask(&by_hand);
    assert!(next_round(&desk.view));
    assert_eq!(plan(&desk.view, scene::BEGIN), None);
    // Nor if it was answered.
    desk.record(Event::Response(Response {
        text: "What was done.".to_owned(),
        ..reply(request)
    }));
    assert!(next_round(&desk.view));
    assert_eq!(plan(&desk.view, scene::BEGIN), None);
    // And the next round is a round like any other.
    desk.request(Purpose::Round, Digest::of(b"a round"));
    assert_eq!(gather::active(&desk.view), None);
}

/// Twice the rounds cost about twice as much: to measure what fits, to read it, to combine it.
#[test]
fn the_cost_is_linear() {
    let cost = |rounds| {
        let mut desk = run(rounds, 1500, 4000);
        let before = desk.view.work().measured;
        check(&mut desk, 1200);
        desk.view.work().measured - before
    };
    let (once, twice) = (cost(100), cost(200));
    assert!(twice * 10 <= once * 23, "{once} {twice}");
}

/// The whole loop, stopped after each entry while a summary is read in parts, and taken up again:
/// no part is read twice, and the summary is laid with its parts.
#[test]
fn a_run_that_was_killed_among_the_parts_goes_on() {
    const ROUNDS: usize = 24;
    let script = |from: usize| -> Vec<Script> {
        let round = |n: usize| {
            let arguments = format!(r#"{{"path":"s{n}","chars":300}}"#);
            Reply {
                text: "thinking ".repeat(200),
                ..Reply::calls([("Show", arguments)])
            }
        };
        let rounds = (from..ROUNDS).map(|n| round(n).into());
        rounds.chain([Reply::text("Done.").into()]).collect()
    };
    let agent = |from: usize| {
        let summaries = |ask: &Ask| -> Result<Reply, Fault> {
            let body = str::from_utf8(&ask.body).unwrap();
            let about = body.split("The conversation above is ").nth(1);
            let about = about.and_then(|about| about.split('.').next());
            Ok(Reply::text(about.unwrap_or("All of it")))
        };
        let model = Scripted::new(script(from)).with_summaries(summaries);
        let mut setup = scene::setup(16_000, Policy::default());
        setup.wire.models.summary = Some(scene::model(5_000));
        Agent::new(setup, Arc::new(model), scene::toolbox())
    };
    let is_text = |entries: &[Arc<Entry>], entry: &Entry| match &entry.event {
        Event::Response(response) => entries.iter().any(|asked| match &asked.event {
            Event::Request(it) => asked.id == response.request && it.purpose != Purpose::Round,
            _ => false,
        }),
        _ => false,
    };
    let whole = MemoryStorage::default();
    let task = Some(Task::new("Go."));
    scene::go(&agent(0), &mut scene::create(&whole), task).unwrap();
    let (bytes, entries) = (whole.bytes(), scene::entries(&whole));
    let asked = entries.iter().position(
        |entry| matches!(&entry.event, Event::Request(it) if it.purpose != Purpose::Round),
    );
    let laid = entries.iter().position(|entry| in_parts(entry).is_some());
    let (asked, laid) = (asked.unwrap(), laid.unwrap());
    assert!(in_parts(&entries[laid]).unwrap() >= 2);

    for count in asked..=laid + 1 {
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let cut = ends.map(|(at, _)| at + 1).nth(count - 1).unwrap();
        let storage = MemoryStorage::with(bytes[..cut].to_vec());
        let past = &entries[..count];
        let rounds = past
            .iter()
            .filter(|entry| matches!(&entry.event, Event::Response(_)) && !is_text(past, entry));
        let agent = agent(rounds.count());
        let ended = scene::go(&agent, &mut scene::open(&storage), None).unwrap();
        assert_eq!(ended.reason, Reason::Finished, "after entry {count}");
        let resumed = scene::entries(&storage);
        keeps_the_laws(&resumed, 16_000).unwrap();
        let mut read: Vec<&str> = resumed
            .iter()
            .filter(|entry| is_text(&resumed, entry))
            .filter_map(|entry| match &entry.event {
                Event::Response(response) => Some(response.text.as_str()),
                _ => None,
            })
            .filter(|text| text.starts_with("rounds"))
            .collect();
        let all = read.len();
        read.sort_unstable();
        read.dedup();
        assert_eq!(read.len(), all, "after entry {count}: {read:?}");
        assert!(resumed.iter().any(|entry| in_parts(entry) >= Some(2)));
    }
}

/// Of how many parts a summary was combined, if an entry lays one that was.
fn in_parts(entry: &Entry) -> Option<usize> {
    match &entry.event {
        Event::Overlay(overlay) => match &overlay.layer {
            Layer::Summary(summary) if !summary.parts.is_empty() => Some(summary.parts.len()),
            _ => None,
        },
        _ => None,
    }
}

/// No line of ours says so, but a text may claim to be combined of itself.
#[test]
fn a_text_that_is_made_of_itself_is_followed_once() {
    let mut desk = run(20, 4000, 4000);
    let job = job(&desk.view);
    let at = desk.view.rounds().all()[9].span().unwrap().to;
    let halves = [
        Span::new(job.span.from, at),
        Span::new(desk.view.next_begin(at).unwrap(), job.span.to),
    ];
    for span in halves {
        let next = desk.view.transcript().next_id();
        let asked = Combine {
            focus: job.focus.clone(),
            keep: job.keep.clone(),
            whole: Some(job.span),
            ..Combine::new(at, span, vec![Source::Response(next.next())])
        };
        let request = desk.request(Purpose::Combine(asked), Digest::of(b"a body"));
        desk.record(Event::Response(Response {
            text: "What was done.".to_owned(),
            ..reply(request)
        }));
    }
    let text = desk.gather(&job, &replies(100)).unwrap();
    assert_eq!(text.parts, []);
}
