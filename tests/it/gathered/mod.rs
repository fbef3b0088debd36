//! How the text of a summary is gathered: in parts where it must be, up the ladder, and never twice.

mod again;

use std::sync::Arc;

use insta::assert_snapshot;
use proptest::prelude::*;
use undertext::compaction::gather::{Job, Text};
use undertext::exchange::{Ending, Message};
use undertext::id::Span;
use undertext::model::Reply;
use undertext::overlay::Origin;
use undertext::setup::{Policy, Setup};
use undertext::transcript::{Entry, Event, FaultClass, Purpose};
use undertext::view::View;
use undertext::words;

use crate::desk::{self, Desk};
use crate::generate::cases;

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
        let entries = whole.view.transcript().entries().to_vec();
        let cut = first + cut.index(entries.len() - first + 1);
        let mut again = Desk::of(&entries[..cut]);
        prop_assert_eq!(again.gather(&job, &answers), text);
        prop_assert_eq!(format!("{:?}", again.view.transcript().entries().to_vec()), format!("{entries:?}"));
    }
}
