//! A run that was compacted in every way, written down; and what commands say of it.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use undertext::id::{CallId, EntryId, Span};
use undertext::overlay::{Author, Carry, Form, Hide, Layer, Origin, Overlay, Size, Stub, Summary};
use undertext::setup::Policy;
use undertext::transcript::{
    End, Event, FORMAT, Purpose, Reason, Run, Speaker, Summarize, Totals, jsonl,
};

use crate::cli::{Place, Ran};
use crate::draft::Draft;
use crate::scene;

/// Its id.
pub(super) const RUN: &str = "0199d6a2-7b1c-7000-8000-00007c31d0f2";

/// The directory of the transcripts.
pub(super) const KEPT: &str = "home/.local/state/undertext/transcripts";

fn call(text: &str) -> CallId {
    text.parse().unwrap()
}

/// An overlay that the program laid.
fn laid(draft: &mut Draft, origin: Origin, pass: EntryId, layer: Layer) {
    draft.push(Event::Overlay(Overlay {
        origin,
        rule: origin.word().to_owned(),
        pass,
        layer,
        size: Size::default(),
        reason: String::new(),
    }));
}

/// A run that was compacted three times: results put away, a call and arguments, a summary.
pub(super) fn compacted() -> Draft {
    let mut draft = Draft::default();
    let run = RUN.parse().unwrap();
    draft.push(Event::Run(Run {
        format: FORMAT,
        ..Run::new(run, "/w")
    }));
    let setup = scene::setup(8_000, Policy::default());
    draft.push(Event::Setup(Box::new(setup)));
    draft.user(Speaker::Task, "Mend it.");
    let (some, much) = ("half a line\n".repeat(150), "half a line\n".repeat(300));
    draft.round(
        "I read.",
        &[
            ("Read", r#"{"path":"a"}"#, &some),
            ("Bash", r#"{"command":"ls"}"#, "a b c"),
        ],
    );
    draft.round("And on.", &[("Read", r#"{"path":"b"}"#, &some)]);
    draft.round("And on.", &[("Read", r#"{"path":"c"}"#, &much)]);
    let stub = |results: &[&str], arguments: &[&str]| {
        Layer::Stub(Stub {
            form: Form::Previous,
            results: results.iter().map(|text| call(text)).collect(),
            arguments: arguments.iter().map(|text| call(text)).collect(),
            ..Stub::default()
        })
    };
    let pass = draft.next();
    laid(
        &mut draft,
        Origin::Micro,
        pass,
        stub(&["5.1", "9.1", "12.1"], &[]),
    );
    draft.round("I look.", &[("Bash", r#"{"command":"make"}"#, "it fails")]);
    let pass = draft.next();
    let hide = Layer::Hide(Hide {
        calls: vec![call("5.2")],
        reasoning: vec![EntryId(5), EntryId(12)],
        ..Hide::default()
    });
    laid(&mut draft, Origin::Auto, pass, hide);
    laid(&mut draft, Origin::Auto, pass, stub(&[], &["12.1"]));
    let span = Span::new(EntryId(4), EntryId(10));
    let asked = draft.request(Purpose::Summary(Summarize::new(EntryId(19), span)));
    draft.response(asked, "Two files were read.", &[], &[]);
    let pass = draft.next();
    let summary = Layer::Summary(Summary {
        span,
        text: "Two files were read.".to_owned(),
        by: Author::Model,
        focus: None,
        parts: Vec::new(),
        depth: 1,
        carry: Carry::default(),
    });
    laid(&mut draft, Origin::Auto, pass, summary);
    draft.user(Speaker::FollowUp, "Go on.");
    draft.round("Done.", &[]);
    draft.push(Event::End(End {
        reason: Reason::Finished,
        text: String::new(),
        totals: Totals::default(),
    }));
    draft
}

/// Writes a run where runs are kept.
pub(super) fn write(place: &Place, draft: &Draft) -> PathBuf {
    let dir = place.path(KEPT);
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(format!("{RUN}.jsonl"));
    let lines = draft.entries().iter();
    let lines: Vec<u8> = lines.flat_map(|it| jsonl::encode(it).unwrap()).collect();
    fs::write(&path, lines).unwrap();
    path
}

/// What each command says, and its exit code where it is not 0.
pub(super) fn told(place: &Place, lines: &[&str]) -> String {
    let mut told = String::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let Ran { code, out, err } = place.run(&words);
        let err = err.replace("; see --help\n", "\n");
        writeln!(told, "$ {line}\n{out}{err}").unwrap();
        if code != 0 {
            writeln!(told, "exit {code}\n").unwrap();
        }
    }
    place.plain(&told)
}
