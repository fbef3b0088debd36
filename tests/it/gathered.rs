//! How the text of a summary is gathered: in parts where it must be, up the ladder, and never twice.

use std::sync::Arc;

use insta::assert_snapshot;
use proptest::prelude::*;
use undertext::agent::{Agent, Task};
use undertext::compaction::gather::{Job, Text};
use undertext::compaction::{gather, plan};
use undertext::exchange::{Ending, Message, Response};
use undertext::id::{Digest, Span};
use undertext::model::{Ask, Fault, Reply, Script, Scripted};
use undertext::overlay::{Layer, Origin};
use undertext::record::MemoryStorage;
use undertext::setup::{Policy, Setup};
use undertext::step::{self, Step};
use undertext::transcript::{
    Combine, Entry, Event, FaultClass, Purpose, Reason, Source, Summarize,
};
use undertext::view::View;
use undertext::words;

use crate::desk::{self, Desk};
use crate::draft::reply;
use crate::generate::cases;
use crate::scene;
use crate::simulated::keeps_the_laws;

/// What a person wants said in every request for a summary.
const INSTRUCTIONS: &str = "Name every file.";

fn setup(summariser: u64) -> Setup {
    let mut policy = Policy::default();
    policy.compaction.summary.instructions = Some(INSTRUCTIONS.to_owned());
    desk::setup(32_000, Some(summariser), policy)
}

/// A run of so many rounds, whose summariser has this window.
fn run(rounds: usize, chars: usize, summariser: u64) -> Desk {
    let mut desk = Desk::new(setup(summariser));
    (0..rounds).for_each(|_| desk.round(chars));
    desk
}

/// The summary of everything between the task and the newest round.
fn job(view: &View) -> Job {
    let from = view.next_begin(view.working().task.unwrap()).unwrap();
    let rounds = view.rounds().all();
    Job {
        origin: Origin::Auto,
        span: Span::new(from, rounds[rounds.len() - 2].span().unwrap().to),
        focus: Some("the parser".to_owned()),
        keep: vec!["src/1.rs".to_owned()],
    }
}

/// Replies of this length, each of its own.
fn replies(chars: usize) -> impl Fn(&Purpose, usize) -> Result<Reply, FaultClass> {
    move |_, number| {
        let text = format!("Text {number} of the files. ");
        Ok(Reply::text(
            text.chars().cycle().take(chars).collect::<String>(),
        ))
    }
}

/// Holds what was gathered against what was read: the parts cover the span without gap or overlap,
/// end where rounds are closed, and hold what was answered; nothing was read twice.
#[track_caller]
fn holds_together(view: &View, job: &Job, text: &Text) {
    let mut from = job.span.from;
    for part in &text.parts {
        assert_eq!(part.span.from, from);
        assert!(
            view.rounds()
                .all()
                .iter()
                .any(|round| round.is_closed() && round.span().unwrap().to == part.span.to)
        );
        let reply = view.response(part.response.unwrap()).unwrap();
        assert_eq!(part.text, reply.text.trim());
        assert_eq!(part.overlay, None);
        from = view.next_begin(part.span.to).unwrap();
    }
    assert!(text.parts.is_empty() || from > job.span.to);
    assert_ne!(text.parts.len(), 1);
    assert_eq!(view.sought().times_read(job.span), 1);
}

/// What is to be preserved stands in every request, and so does what a person always wants said.
#[track_caller]
fn say_what_matters(desk: &Desk) {
    for body in &desk.bodies {
        assert!(body.contains("special attention to: the parser"), "{body}");
        assert!(body.contains("word for word:\\n- src/1.rs"), "{body}");
        assert!(body.contains(INSTRUCTIONS), "{body}");
    }
}

#[track_caller]
fn check(desk: &mut Desk, chars: usize) {
    let job = job(&desk.view);
    let text = desk.gather(&job, &replies(chars)).unwrap();
    holds_together(&desk.view, &job, &text);
    say_what_matters(desk);
}

#[test]
fn what_fits_is_read_in_one() {
    let mut desk = run(20, 4000, 32_000);
    check(&mut desk, 100);
    assert_snapshot!(desk.said, @"Summary reads e4–e60, clip 4000");
}

#[test]
fn what_does_not_fit_is_read_in_parts() {
    let mut desk = run(20, 4000, 4000);
    check(&mut desk, 100);
    assert_snapshot!(desk.said, @"
    Summary reads e4–e33, part 1 of 2, clip 1000
    Summary reads e34–e60, part 2 of 2, clip 1000
    Summary combines reply 65, reply 67 of e4–e60
    ");
}

/// Not even two rounds fit the summariser unless their results are clipped hard.
#[test]
fn a_round_that_does_not_fit_is_clipped_harder() {
    let mut desk = run(6, 8000, 1050);
    check(&mut desk, 100);
    assert_snapshot!(desk.said, @"
    Summary reads e4–e6, part 1 of 5, clip 1000
    Summary reads e7–e9, part 2 of 5, clip 1000
    Summary reads e10–e12, part 3 of 5, clip 1000
    Summary reads e13–e15, part 4 of 5, clip 1000
    Summary reads e16–e18, part 5 of 5, clip 1000
    Summary combines reply 23, reply 25, reply 27, reply 29, reply 31 of e4–e18
    ");
}

#[test]
fn texts_that_do_not_fit_one_request_are_combined_step_by_step() {
    let mut desk = run(60, 4000, 4000);
    check(&mut desk, 4000);
    assert_snapshot!(desk.said, @"
    Summary reads e4–e33, part 1 of 6, clip 1000
    Summary reads e34–e63, part 2 of 6, clip 1000
    Summary reads e64–e93, part 3 of 6, clip 1000
    Summary reads e94–e123, part 4 of 6, clip 1000
    Summary reads e124–e153, part 5 of 6, clip 1000
    Summary reads e154–e180, part 6 of 6, clip 1000
    Summary combines reply 185, reply 187 of e4–e63
    Summary combines reply 189, reply 191 of e64–e123
    Summary combines reply 193, reply 195 of e124–e180
    Summary combines reply 197, reply 199 of e4–e123
    Summary combines reply 203, reply 201 of e4–e180
    ");
}

/// Whatever is wrong with a part, it alone is read again, with results clipped harder.
#[test]
fn a_part_that_fails_is_read_again() {
    let sound = Reply::text("What was done.");
    let ended = |ending| Reply {
        ending,
        ..sound.clone()
    };
    let bad = [
        (Ok(Reply::text(" \n")), "empty"),
        (Ok(ended(Ending::Cut)), "cut"),
        (Ok(ended(Ending::Refused)), "refused"),
        (Ok(ended(Ending::Filtered)), "filtered"),
        (Ok(Reply::calls([("Show", "{}")])), "it calls tools"),
        (Err(FaultClass::Permanent), "permanent: no"),
        (Ok(Reply::text("x".repeat(40_000))), "too long"),
        (
            Ok(Reply::text(words::summarize(
                None,
                None,
                9,
                None,
                &[],
                None,
            ))),
            "it repeats the request",
        ),
    ];
    let mut said: Vec<String> = Vec::new();
    for (answer, why) in bad {
        let mut desk = run(20, 4000, 4000);
        let job = job(&desk.view);
        let text = desk.gather(&job, &|purpose, number| match number {
            1 => answer.clone(),
            _ => replies(100)(purpose, number),
        });
        holds_together(&desk.view, &job, &text.unwrap());
        say_what_matters(&desk);
        let failed = desk.said.lines().find(|line| line.starts_with("failed"));
        let failed = failed.unwrap().to_owned();
        assert!(failed.contains(why), "{failed}");
        said.push(desk.said.replace(&failed, "failed"));
    }
    said.dedup();
    assert_eq!(said.len(), 1, "{said:#?}");
    assert_snapshot!(said[0], @"
    Summary reads e4–e33, part 1 of 2, clip 1000
    Summary reads e34–e60, part 2 of 2, clip 1000
    failed
    Summary reads e34–e60, part 2 of 2, clip 250
    Summary combines reply 65, reply 70 of e4–e60
    ");
}

/// What a summariser reads of a long result: its head, the lines of its middle that tell of errors, its
/// tail, and how much is left out.
#[test]
fn what_is_clipped_keeps_its_ends_and_its_errors() {
    let mut desk = run(1, 10, 32_000);
    let line = |n: usize| match n {
        300 => "error: no such field\n".to_owned(),
        n => format!("line {n}\n"),
    };
    let long: String = (0..600).map(line).collect();
    let response = desk.view.rounds().all()[0].response.unwrap();
    let entries = desk.view.transcript().entries().iter().map(|entry| {
        let mut entry = Entry::clone(entry);
        if let Event::Result(result) = &mut entry.event {
            result.content.clone_from(&long);
        }
        Arc::new(entry)
    });
    desk.view = View::of(entries.collect::<Vec<_>>());
    let whole = Span::new(response, desk.view.transcript().last().unwrap().id);
    let messages = desk.view.raw_messages(whole, 120);
    let Some(Message::Tool { text, .. }) = messages.last() else {
        panic!("{messages:?}")
    };
    assert_snapshot!(text, @"
    line 0
    line 1
    line 2
    line 3
    line 4
    line 5
    line 6
    line 7
    line
    error: no such field
    [… 5,191 characters left out …]
    96
    line 597
    line 598
    line 599
    ");
}

/// A combining request climbs the ladder as well, and no part is read again for it.
#[test]
fn a_combination_that_fails_is_asked_for_again() {
    let mut desk = run(20, 4000, 4000);
    let job = job(&desk.view);
    let text = desk.gather(&job, &|purpose, number| match purpose {
        Purpose::Combine(_) => Ok(Reply::text("")),
        _ => replies(100)(purpose, number),
    });
    assert_eq!(text, None);
    assert_snapshot!(desk.said, @"
    Summary reads e4–e33, part 1 of 2, clip 1000
    Summary reads e34–e60, part 2 of 2, clip 1000
    Summary combines reply 65, reply 67 of e4–e60
    failed: empty
    Summary combines reply 65, reply 67 of e4–e60
    failed: empty
    ");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases() / 8,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Law 10 for what is gathered: stopped after any entry, it goes on as if nothing had been, and
    /// nothing is asked for twice.
    #[test]
    fn a_text_is_gathered_from_wherever_it_stopped(
        (rounds, chars) in (3..40_usize, 100..6000_usize),
        // Two texts of this length fit one request of it.
        summariser in 4_000..10_000_u64,
        length in 10..3000_usize,
        kinds in proptest::collection::vec(prop_oneof![9 => Just(9_u8), 1 => 0..4_u8], 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let answers = |purpose: &Purpose, number: usize| match kinds[number % kinds.len()] {
            0 => Ok(Reply::text("")),
            1 => Ok(Reply { ending: Ending::Cut, ..Reply::text("What") }),
            2 => Err(FaultClass::Permanent),
            3 => Ok(Reply::text("x".repeat(60_000))),
            _ => replies(length)(purpose, number),
        };
        let mut whole = run(rounds, chars, summariser);
        let job = job(&whole.view);
        let first = whole.view.transcript().entries().len();
        let text = whole.gather(&job, &answers);
        if let Some(text) = &text {
            holds_together(&whole.view, &job, text);
        } else {
            prop_assert_eq!(whole.said.matches("failed").count(), 2);
        }
        say_what_matters(&whole);
        let entries = whole.view.transcript().entries();
        let cut = first + cut.index(entries.len() - first + 1);
        let mut again = Desk::of(&entries[..cut]);
        prop_assert_eq!(again.gather(&job, &answers), text);
        prop_assert_eq!(format!("{:?}", again.view.transcript().entries()), format!("{entries:?}"));
    }
}

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
