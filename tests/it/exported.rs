//! Runs in other forms, from recordings of other agents: a trajectory that is imported again is the
//! same run, and a document holds every text in a block that it cannot leave.

use std::fmt::Write as _;
use std::mem;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use regex::Regex;
use serde_json::Value;
use undertext::exchange::{Reasoning, ToolResult};
use undertext::export::atif::Trajectory;
use undertext::export::{Shown, markdown};
use undertext::id::{CallId, EntryId, Span};
use undertext::import::{self, Format};
use undertext::overlay::{Author, Carry, Form, Hide, Layer, Part, Show, Stub, Summary};
use undertext::record::runs;
use undertext::replay::Replay;
use undertext::setup::{Policy, Prices};
use undertext::transcript::{Entry, Event, Pin, Purpose, Run, Speaker, Summarize};
use undertext::view::View;

use crate::corpus::corpus;
use crate::draft::{Draft, note};
use crate::imported::{imported, recordings};
use crate::scene;

/// How many requests of a run are looked at: each costs the whole run.
const LOOKS: usize = 8;

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

/// What was said, by which model, called, answered and laid over it, one a line; arguments by what they
/// mean, and ids as `#`.
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
            Event::Result(result) => {
                let ToolResult {
                    call,
                    status,
                    content,
                    facts,
                    ..
                } = result;
                let (place, facts) = (call.place, without_ids(&format!("{facts:?}")));
                write!(told, "{place} {} {content:?} {facts}", status.word())
            }
            // What is pointed at, it was and is the same number of times.
            Event::Overlay(_) | Event::Retract(_) | Event::Pin(_) | Event::Unpin(_) => {
                write!(told, "{}", without_ids(&format!("{:?}", entry.event)))
            }
            _ => continue,
        }
        .unwrap();
        told.push('\n');
    }
    told
}

/// The text with `#` for each number: ids differ, and what is told of them.
fn without_ids(text: &str) -> String {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d+").unwrap());
    NUMBER.replace_all(text, "#").into_owned()
}

/// What the model was sent by some of the requests, and by the next one.
fn sent(entries: &[Arc<Entry>]) -> Vec<String> {
    let is_request = |entry: &&Arc<Entry>| matches!(entry.event, Event::Request(_));
    let all = entries.iter().filter(is_request).count();
    let mut view = View::default();
    let (mut sent, mut asked) = (Vec::new(), 0);
    let look = |view: &View| without_ids(&format!("{:#?}", view.messages()));
    for entry in entries {
        if is_request(&entry) {
            asked += 1;
            if asked % (all / LOOKS).max(1) == 0 {
                sent.push(look(&view));
            }
        }
        view.take(Arc::clone(entry));
    }
    sent.push(look(&view));
    sent
}

/// Finds the first line in which two texts differ.
fn same(name: &str, one: &str, other: &str) {
    let lines = one.lines().zip(other.lines());
    let differ = lines.enumerate().find(|(_, (one, other))| one != other);
    assert_eq!(differ, None, "{name}");
    assert_eq!(one.lines().count(), other.lines().count(), "{name}");
}

/// A run that is exported as a trajectory and imported again is the same: what was said and laid over
/// it, what each request sent, what all of it used.
pub(crate) fn comes_back(name: &str, entries: &[Arc<Entry>]) {
    let before = view(entries);
    let trajectory = serde_json::to_vec(&Trajectory::raw(&before)).unwrap();
    let runs = import::read_bytes("a.json", trajectory, None).unwrap();
    let [run] = <[_; 1]>::try_from(runs).unwrap();
    assert_eq!(run.format(), Format::Atif);
    let again = run.entries().unwrap();
    same(name, &told(entries), &told(&again));
    let (one, other) = (sent(entries), sent(&again));
    assert_eq!(one.len(), other.len(), "{name}");
    for (one, other) in one.iter().zip(&other) {
        same(name, one, other);
    }
    let after = view(&again);
    assert!(before.may_ask() == after.may_ask(), "{name}");
    let tools = |view: &View| {
        let tools = view.wire().unwrap().tools.iter();
        tools.map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    // Those that were called without having been told of stand behind the others.
    assert!(tools(&after).starts_with(&tools(&before)), "{name}");
    let of = |view: &View| view.setup().unwrap().wire.models.clone();
    assert_eq!(of(&before), of(&after), "{name}");
    // What was not counted is estimated by bodies, in which ids are of other lengths. Attempts that failed
    // are not in a trajectory, and so what they used is not.
    let failed = |entry: &Arc<Entry>| matches!(&entry.event, Event::Fault(_));
    if before.ledger().whole.estimated == 0 && !entries.iter().any(failed) {
        let used = |view: &View| {
            let used = view.ledger().whole;
            (
                used.rounds,
                used.input,
                used.cached,
                used.output,
                used.calls,
                used.cost_usd_micro,
            )
        };
        assert_eq!(used(&before), used(&after), "{name}");
    }
    for request in Replay::new(again) {
        assert!(request.is_equal(), "{name}: request {}", request.request);
    }
}

#[test]
fn a_trajectory_is_imported_as_the_same_run() {
    each(comes_back);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts/demo.jsonl");
    let golden = runs::read(&golden).unwrap();
    comes_back("golden", &golden.view.transcript().entries().to_vec());
    comes_back("layered", layered().entries());
}

/// A run with every kind of layer, and what takes them back.
fn layered() -> Draft {
    let mut draft = Draft::default();
    let run = "0199d6a2-7b1c-7000-8000-00007c31d0f2".parse().unwrap();
    draft.push(Event::Run(Run::new(run, "/w")));
    let prices = Prices {
        input_usd_micro: 3_000_000,
        ..Prices::default()
    };
    let policy = Policy {
        prices: Some(prices),
        ..Policy::default()
    };
    draft.push(Event::Setup(Box::new(scene::setup(8_000, policy))));
    let task = draft.user_with(
        Speaker::Task,
        "Mend it.",
        &[("a.txt", "one\n\ntwo"), ("b.txt", "[attachment a.txt]")],
    );
    let much = "half a line\n".repeat(300);
    // What is not exported moves the ids of all that comes behind it.
    draft.push(note("a remark"));
    let calls: Vec<CallId> = (0..4)
        .map(|_| {
            let response = draft.round("I read.", &[("Read", r#"{"path":"a"}"#, &much)]);
            CallId::at(response, 0)
        })
        .collect();
    let stub = draft.overlay(Layer::Stub(Stub {
        form: Form::Stale,
        results: vec![calls[0], calls[1]],
        arguments: vec![calls[1]],
        by: [(calls[0], calls[2])].into(),
    }));
    draft.overlay(Layer::Hide(Hide {
        calls: vec![calls[2]],
        reasoning: vec![calls[1].response],
        attachments: vec![(task, 2)],
        why: [(calls[2], calls[3])].into(),
        ..Hide::default()
    }));
    draft.round("On.", &[]);
    draft.overlay(Layer::Show(Show {
        calls: vec![calls[0]],
    }));
    draft.user(Speaker::FollowUp, "Go on.");
    draft.round("On.", &[("Read", "{}", "short")]);
    draft.retract(&[stub]);
    let pin = Pin { entry: task };
    draft.push(Event::Pin(pin));
    let span = Span::new(
        EntryId(calls[1].response.0 - 1),
        EntryId(calls[2].response.0 + 1),
    );
    let ask = Purpose::Summary(Summarize::new(draft.next(), span));
    let asked = draft.request(ask);
    let summed = draft.response(asked, "It was read.", &[], &[]);
    draft.overlay(Layer::Summary(Summary {
        span,
        text: "It was read.".to_owned(),
        by: Author::User,
        focus: Some("the reading".to_owned()),
        parts: vec![Part {
            span,
            response: Some(summed),
            overlay: None,
            text: "It was read.".to_owned(),
        }],
        depth: 2,
        carry: Carry {
            entries: vec![task],
            calls: vec![calls[3]],
            state: "state".to_owned(),
            survival: "survival".to_owned(),
        },
    }));
    draft.user(Speaker::Hook, "Mind.");
    draft.round("Done.", &[("Read", "{}", "short")]);
    draft.push(Event::Unpin(pin));
    // A summary that failed: no overlay tells of it.
    let asked = draft.request(Purpose::Summary(Summarize::new(asked, span)));
    draft.response(asked, "Cut off", &[], &[]);
    draft
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
