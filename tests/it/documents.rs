//! The documents, held against what they tell of: links lead somewhere, and the page of the file
//! format shows lines as the code writes them, of every kind there is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;
use serde::Serialize;
use serde_json::Value;

use undertext::exchange::{Ending, Message, Status};
use undertext::overlay::{Author, Form, Layer, Origin};
use undertext::replay::Replay;
use undertext::setup::Role;
use undertext::transcript::{Entry, Event, FaultClass, Note, Purpose, Reason, Speaker, jsonl};
use undertext::view::View;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The page of the file format.
fn page() -> String {
    fs::read_to_string(root().join("docs/transcript.md")).unwrap()
}

/// The lines of the page that are entries.
fn lines(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter(|line| line.starts_with("{\"id\":"))
}

/// The line as the code writes it now after the entries of the view, whatever its checksum, size
/// and digest are: what to put on the page in its place.
fn as_written(view: &View, line: &str) -> String {
    let mut entry: Entry = serde_json::from_str(line).unwrap();
    if let Event::Request(request) = &mut entry.event {
        request.body = view.body(&request.purpose).unwrap().digest();
        request.estimate = view.estimate_of(&request.purpose);
    }
    let line = jsonl::encode(&entry).unwrap();
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

/// The lines of the page are one run: each is what the code writes, and every request is rebuilt.
#[test]
fn the_page_of_the_format_shows_lines_as_they_are_written() {
    let page = page();
    let mut view = View::default();
    for line in lines(&page) {
        assert_eq!(line, as_written(&view, line));
        let entry = jsonl::decode(line.as_bytes()).unwrap();
        assert!(!matches!(entry.event, Event::Unknown(_)), "{entry:?}");
        assert_eq!(entry.id, view.transcript().next_id());
        view.take(Arc::new(entry));
    }
    let entries = view.transcript().entries().iter().cloned();
    assert!(Replay::new(entries).all(|request| request.is_equal()));
}

/// What the page says of how its entries read is what the view says after one of them or another.
#[test]
fn the_page_of_the_format_shows_how_entries_read() {
    let page = page();
    let mut view = View::default();
    let mut stubs = BTreeSet::new();
    for line in lines(&page) {
        view.take(Arc::new(jsonl::decode(line.as_bytes()).unwrap()));
        stubs.extend(
            view.messages()
                .into_iter()
                .filter_map(|message| match message {
                    Message::Tool { text, .. }
                        if text.contains("Recall") && !text.contains('\n') =>
                    {
                        Some(text.into_owned())
                    }
                    _ => None,
                }),
        );
    }
    assert_eq!(stubs.len(), 3);
    for stub in stubs {
        assert!(page.contains(&format!("`{stub}`")), "{stub}");
    }
    let said = |start: &str| {
        let messages = view.messages();
        let mut texts = messages.iter().filter_map(|message| match message {
            Message::User { text } => text.find(start).map(|at| text[at..].to_owned()),
            _ => None,
        });
        texts.next().unwrap()
    };
    let summary = said("[CONVERSATION HISTORY SUMMARY").replace('\n', "\n   ");
    assert!(page.contains(&summary.replace("   \n", "\n")), "{summary}");
    let attachment = said("[attachment ");
    assert!(page.contains(&format!("`{attachment}`")), "{attachment}");
}

/// Names the variants of an enum, once and for all: what the function `$name` gives for a value,
/// and everything that it can give. A variant that is not listed does not compile.
macro_rules! kinds {
    ($name:ident, $type:ty, $($pattern:pat => $kind:literal),+ $(; never $never:pat)?) => {
        fn $name(value: &$type) -> (&'static str, &'static [&'static str]) {
            let kind = match value {
                $($pattern => $kind,)+
                $($never => panic!("{value:?}"),)?
            };
            (kind, &[$($kind),+])
        }
    };
}

kinds! { event, Event,
    Event::Run(_) => "run", Event::Setup(_) => "setup", Event::User(_) => "user",
    Event::Request(_) => "request", Event::Response(_) => "response",
    Event::Started(_) => "started", Event::Result(_) => "result",
    Event::Overlay(_) => "overlay", Event::Retract(_) => "retract",
    Event::Pin(_) => "pin", Event::Unpin(_) => "unpin", Event::Fault(_) => "fault",
    Event::Note(_) => "note", Event::End(_) => "end";
    never Event::Unknown(_)
}

kinds! { note, Note,
    Note::Warning { .. } => "warning", Note::Torn(_) => "torn", Note::Damage { .. } => "damage",
    Note::SummaryFailed { .. } => "summary_failed", Note::Hook { .. } => "hook",
    Note::Check(_) => "check"
}

kinds! { purpose, Purpose,
    Purpose::Round => "round", Purpose::Summary(_) => "summary",
    Purpose::Combine(_) => "combine", Purpose::Repair { .. } => "repair"
}

kinds! { layer, Layer,
    Layer::Stub(_) => "stub", Layer::Hide(_) => "hide",
    Layer::Summary(_) => "summary", Layer::Show(_) => "show"
}

kinds! { form, Form,
    Form::Previous => "previous", Form::Compacted => "compacted", Form::Stale => "stale"
}

/// Every kind of each enum is among those seen.
#[track_caller]
fn all_occur<'a, T: 'a>(
    values: impl Iterator<Item = &'a T>,
    kind: fn(&T) -> (&'static str, &'static [&'static str]),
) {
    let (seen, all): (BTreeSet<_>, Vec<_>) = values.map(kind).unzip();
    let all: BTreeSet<_> = all.into_iter().flatten().copied().collect();
    assert_eq!(seen, all);
}

#[test]
fn the_page_of_the_format_shows_every_kind() {
    let page = page();
    let entries = lines(&page).map(|line| jsonl::decode(line.as_bytes()).unwrap());
    let events: Vec<Event> = entries.map(|entry| entry.event).collect();
    let layers = || {
        events.iter().filter_map(|event| match event {
            Event::Overlay(overlay) => Some(&overlay.layer),
            _ => None,
        })
    };
    all_occur(events.iter(), event);
    all_occur(layers(), layer);
    let forms = layers().filter_map(|layer| match layer {
        Layer::Stub(stub) => Some(&stub.form),
        _ => None,
    });
    all_occur(forms, form);
    let notes = events.iter().filter_map(|event| match event {
        Event::Note(note) => Some(note),
        _ => None,
    });
    all_occur(notes, note);
    let purposes = events.iter().filter_map(|event| match event {
        Event::Request(request) => Some(&request.purpose),
        _ => None,
    });
    all_occur(purposes, purpose);
}

/// Every variant of an enum without fields. One that is not listed does not compile.
macro_rules! every {
    ($type:ident: $($variant:ident),+ $(,)?) => {{
        let _: fn(&$type) = |one| match one {
            $($type::$variant => {})+
        };
        words(&[$($type::$variant),+])
    }};
}

/// The words by which variants are written.
fn words(variants: &[impl Serialize]) -> Vec<String> {
    let word = |variant| match serde_json::to_value(variant).unwrap() {
        Value::String(word) => word,
        other => panic!("{other}"),
    };
    variants.iter().map(word).collect()
}

#[test]
fn the_page_of_the_format_names_every_word() {
    let page = page();
    for word in [
        every!(Speaker: Task, FollowUp, Hook, Runtime),
        every!(Ending: Complete, Cut, Filtered, Refused),
        every!(Status: Ok, Error, Denied, Timeout, Interrupted, Cancelled),
        every!(
            FaultClass: Rate, Overload, Server, Transport, Stall, Torn, Auth, Permanent,
            ContentFilter, Overflow, Local,
        ),
        every!(
            Reason: Finished, Check, Schema, Stuck, Empty, Refused, Compaction, Oversize, Rounds,
            Tokens, Cost, WallTime, Provider, Storage, Hands, Interrupted,
        ),
        every!(Origin: Micro, Auto, Tool, Recovery, User),
        every!(Author: Model, User, Rules),
        every!(Role: Main, Summary, Fallback),
    ]
    .concat()
    {
        assert!(page.contains(&format!("`{word}`")), "{word}");
    }
}

/// Every Markdown file of the repository.
fn documents(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            documents(&path, found);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

#[test]
fn every_link_leads_to_a_file() {
    let link = Regex::new(r"\]\(([^)#\s]+)(#[^)\s]*)?\)").unwrap();
    let mut found = Vec::new();
    documents(root(), &mut found);
    let mut links = 0;
    for document in &found {
        let text = fs::read_to_string(document).unwrap();
        for target in link.captures_iter(&text).map(|found| found[1].to_owned()) {
            if !target.contains("://") {
                let path = document.parent().unwrap().join(&target);
                assert!(path.exists(), "{}: {target}", document.display());
                links += 1;
            }
        }
    }
    assert!(found.contains(&root().join("README.md")) && links > 10);
}
