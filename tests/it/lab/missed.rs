//! What counts as missed: fetched again, or quoted by a model that could no longer read it.

use undertext::exchange::Status;
use undertext::id::{CallId, EntryId, Span};
use undertext::lab::{Half, Source, Terms, simulate};
use undertext::overlay::{Author, Carry, Layer, Summary};
use undertext::record::Clock;
use undertext::setup::{Compaction, Policy};
use undertext::transcript::{Event, Purpose, Speaker};

use crate::draft::Draft;
use crate::scene;

const LINE: &str = "let port = settings.port().unwrap_or(8443);";

/// A round: what it says, and its calls, each arguments and a result.
type Round<'a> = (&'a str, &'a [(&'a str, &'a str)]);

/// A run of calls of `Show`, after what a person asked.
fn run(rounds: &[Round<'_>]) -> Draft {
    let mut draft = Draft::default();
    let run = scene::run(&Clock::fixed(scene::BEGIN));
    draft.push(Event::Run(run));
    let setup = scene::setup(100_000, Policy::default());
    draft.push(Event::Setup(Box::new(setup)));
    draft.user(Speaker::Task, "Look.");
    for (text, calls) in rounds {
        let calls = calls.iter().map(|(asks, says)| ("Show", *asks, *says));
        draft.round(text, &calls.collect::<Vec<_>>());
    }
    draft
}

/// What is missed if all results but the newest are put away at each chance.
fn missed(draft: Draft) -> Vec<String> {
    let mut policy = Compaction::default();
    policy.auto.enabled = false;
    policy.micro.keep_recent = 1;
    policy.micro.min_chars = 100;
    policy.micro.min_gain_tokens = 0;
    let source = Source::new("a run", draft.into_entries());
    let outcome = simulate(&source, &policy, &Terms::default()).outcome;
    let told = outcome.misses.iter().map(|miss| {
        assert_eq!(miss.half, Half::Result);
        let line = miss.quotes.as_deref().unwrap_or("fetched again");
        format!("{} by {}: {line}", miss.call, miss.by)
    });
    let told: Vec<String> = told.collect();
    assert_eq!(outcome.results.regretted, told.len() as u64);
    told
}

/// A result that holds a line among others.
fn with(line: &str) -> String {
    format!("{}\n{line}\n", "other words ".repeat(20))
}

#[test]
fn a_line_that_could_not_be_read_any_more_is_quoted() {
    let quoted = format!("5.1 by 11: {LINE}");
    let numbered = with(&format!("   12→  {LINE}"));
    let path = "/home/w/projects/one/src/settings/port/default.rs";
    let listing = with(path);
    let argument = format!(r#"{{"old":"{LINE}\n"}}"#);
    let update = format!("*** Update File: a\n-{LINE}\n+let port = 80;");
    let within = with(&format!("{{ {LINE} }}"));
    for (found, says, asks, between, expected) in [
        ("in what is said", LINE, "{}", "", Some(&quoted)),
        ("in arguments", "", &*argument, "", Some(&quoted)),
        ("in a patch", "", &*update, "", Some(&quoted)),
        ("elsewhere, still read", LINE, "{}", LINE, None),
        ("within a line still read", LINE, "{}", &*within, None),
        ("nowhere", "let port = 80;", "{}", "", None),
    ] {
        let rounds: &[Round<'_>] = &[
            ("", &[(r#"{"path":"a"}"#, &numbered)]),
            (between, &[(r#"{"path":"b"}"#, "short")]),
            (says, &[(asks, "done")]),
        ];
        let expected: Vec<String> = expected.into_iter().cloned().collect();
        assert_eq!(missed(run(rounds)), expected, "{found}");
    }
    // A single word is no line.
    let rounds: &[Round<'_>] = &[
        ("", &[(r#"{"path":"a"}"#, &listing)]),
        ("", &[(r#"{"path":"b"}"#, "short")]),
        (path, &[]),
    ];
    assert_eq!(missed(run(rounds)), [] as [String; 0]);
}

/// What a summary says is read, whatever it covers.
#[test]
fn what_a_summary_says_is_read() {
    let content = with(LINE);
    let rounds: &[Round<'_>] = &[
        ("Ready?", &[]),
        ("", &[(r#"{"path":"a"}"#, &content)]),
        ("", &[(r#"{"path":"b"}"#, "short")]),
    ];
    for (text, expected) in [(format!("It holds `{LINE}`"), 0), ("It ran.".to_owned(), 1)] {
        let mut draft = run(rounds);
        draft.overlay(Layer::Summary(Summary {
            span: Span::new(EntryId(4), EntryId(5)),
            text,
            by: Author::User,
            focus: None,
            parts: Vec::new(),
            depth: 1,
            carry: Carry::default(),
        }));
        draft.round(LINE, &[]);
        assert_eq!(missed(draft).len(), expected);
    }
}

/// The same call misses what it gets again; what has changed since, nobody could have read before.
#[test]
fn what_is_fetched_again_is_the_same() {
    let (old, new) = (with("old"), with("new"));
    // Each answer is seen, and put away, before the next.
    let asked = |answers: &[&String]| {
        let mut draft = run(&[]);
        for content in answers {
            draft.round("", &[("Show", r#"{"path":"a"}"#, content)]);
            for path in [r#"{"path":"b"}"#, r#"{"path":"c"}"#] {
                draft.round("", &[("Show", path, "short")]);
            }
        }
        draft
    };
    for (answers, expected) in [
        (&[&old, &old][..], Some("5.1 by 15: fetched again")),
        (&[&old, &new], None),
        (&[&old, &new, &new], Some("14.1 by 24: fetched again")),
    ] {
        let missed = missed(asked(answers));
        assert_eq!(missed.first().map(String::as_str), expected);
        assert!(missed.len() < 2, "{missed:?}");
    }
    // It is answered, but nothing ran.
    let mut draft = asked(&[&old]);
    let request = draft.request(Purpose::Round);
    let response = draft.response(request, "", &[], &[("Show", r#"{"path":"a"}"#)]);
    draft.result(CallId::new(response, 1), Status::Denied, &old);
    assert_eq!(missed(draft), [] as [String; 0]);
}
