//! Runs in other forms, from recordings of other agents: a trajectory that is imported again is the
//! same run, and a document holds every text in a block that it cannot leave.

use std::fmt::Write as _;
use std::mem;
use std::sync::Arc;

use serde_json::Value;
use undertext::exchange::{Reasoning, ToolResult};
use undertext::export::atif::Trajectory;
use undertext::export::{Shown, markdown};
use undertext::import::{self, Format};
use undertext::overlay::Layer;
use undertext::transcript::{Entry, Event};
use undertext::view::View;

use crate::corpus::corpus;
use crate::imported::{imported, recordings};

fn view(entries: &[Arc<Entry>]) -> View {
    let mut view = View::default();
    for entry in entries {
        view.take(Arc::clone(entry));
    }
    view
}

/// Every run of every recording.
fn each(mut check: impl FnMut(&str, &[Arc<Entry>])) {
    let (folder, _) = corpus();
    for (format, path) in recordings(&folder) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for run in imported(format, &path) {
            check(&name, &run);
        }
    }
}

/// What was said, by which model, called, answered and summarised, one a line; arguments by what they
/// mean.
fn told(entries: &[Arc<Entry>]) -> String {
    let mut told = String::new();
    let (mut asked, mut instructions) = ("", "");
    for entry in entries {
        match &entry.event {
            Event::Setup(setup) => {
                asked = &setup.wire.models.main.name;
                let text = setup.wire.instructions.as_str();
                if mem::replace(&mut instructions, text) == text {
                    continue;
                }
                write!(told, "{text:?}")
            }
            Event::User(user) => {
                write!(told, "{:?} {:?}", user.origin, user.text).unwrap();
                for part in &user.attachments {
                    write!(told, " {} {} {:?}", part.name, part.media, part.text).unwrap();
                }
                Ok(())
            }
            Event::Response(response) => {
                write!(told, "{asked} {:?} {:?}", response.ending, response.text).unwrap();
                let thoughts = response.reasoning.iter().filter_map(|block| match block {
                    Reasoning::Text { text, .. } => Some(text.as_str()),
                    Reasoning::Raw { .. } => None,
                });
                let thoughts: Vec<&str> = thoughts.collect();
                write!(told, " {:?}", thoughts.join("\n\n")).unwrap();
                for call in &response.calls {
                    let arguments = serde_json::from_str::<Value>(&call.arguments);
                    let arguments = arguments.unwrap_or_else(|_| call.arguments.as_str().into());
                    write!(told, " {}{arguments}", call.name).unwrap();
                }
                write!(told, " {:?}", response.usage)
            }
            Event::Result(ToolResult {
                call,
                status,
                content,
                ..
            }) => write!(told, "{} {} {content:?}", call.place, status.word()),
            Event::Overlay(overlay) => {
                let Layer::Summary(summary) = &overlay.layer else {
                    panic!("{overlay:?}")
                };
                write!(told, "{:?} {:?}", overlay.origin, summary.text)
            }
            _ => continue,
        }
        .unwrap();
        told.push('\n');
    }
    told
}

#[test]
fn a_trajectory_is_imported_as_the_same_run() {
    each(|name, entries| {
        let before = view(entries);
        let trajectory = serde_json::to_vec(&Trajectory::raw(&before)).unwrap();
        let runs = import::read_bytes("a.json", trajectory, None).unwrap();
        let [run] = <[_; 1]>::try_from(runs).unwrap();
        assert_eq!(run.format(), Format::Atif);
        let again = run.entries().unwrap();
        let (one, other) = (told(entries), told(&again));
        let differ = one
            .lines()
            .zip(other.lines())
            .find(|(one, other)| one != other);
        assert_eq!(differ, None, "{name}");
        assert_eq!(one.lines().count(), other.lines().count(), "{name}");
        assert!(before.may_ask() == view(&again).may_ask(), "{name}");
        let tools = |view: &View| {
            let tools = view.wire().unwrap().tools.iter();
            tools.map(|tool| tool.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(tools(&before), tools(&view(&again)), "{name}");
    });
}

/// The lines of a document that stand in no block, and the texts in blocks.
fn split(document: &str) -> (Vec<&str>, Vec<String>) {
    let (mut own, mut blocks) = (Vec::new(), Vec::new());
    let mut lines = document.split('\n');
    while let Some(line) = lines.next() {
        let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
        if ticks < 3 {
            own.push(line);
            continue;
        }
        // CommonMark: a fence of at least as many ticks and nothing else ends a block.
        let is_end = |line: &&str| {
            let line = line.trim();
            line.len() >= ticks && line.bytes().all(|byte| byte == b'`')
        };
        let text: Vec<&str> = lines.by_ref().take_while(|line| !is_end(line)).collect();
        blocks.push(text.join("\n"));
    }
    (own, blocks)
}

#[test]
fn a_document_holds_every_text_in_a_block() {
    let known = [
        "# Run ",
        "- ",
        "## Turn ",
        "## Ended: ",
        "### Task (",
        "### Follow-up (",
        "### Hook (",
        "### Runtime (",
        "### Round ",
        "About ",
        "**e",
        "**auto e",
        "**user e",
        "<details>",
        "<summary>",
        "</details>",
    ];
    each(|name, entries| {
        let view = view(entries);
        let mut document = Vec::new();
        markdown::write(&view, Shown::Raw, &mut document).unwrap();
        let document = String::from_utf8(document).unwrap();
        let (own, blocks) = split(&document);
        for line in own {
            let is_ours = line.is_empty() || known.iter().any(|known| line.starts_with(known));
            assert!(is_ours, "{name}: {line:?}");
        }
        let mut blocks = blocks.iter();
        let mut finds = |text: &str| {
            let text = text.strip_suffix('\n').unwrap_or(text);
            let found = text.is_empty() || blocks.any(|block| block == text);
            assert!(found, "{name}: {text:?}");
        };
        for entry in entries {
            match &entry.event {
                Event::User(user) => {
                    finds(&user.text);
                    user.attachments.iter().for_each(|part| finds(&part.text));
                }
                Event::Response(response) => {
                    finds(&response.text);
                    for call in &response.calls {
                        finds(&call.arguments);
                    }
                }
                Event::Overlay(overlay) => {
                    if let Layer::Summary(summary) = &overlay.layer {
                        finds(&summary.text);
                    }
                }
                _ => {}
            }
        }
    });
}
