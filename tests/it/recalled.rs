//! Law 12, its other half: whatever was hidden or clipped can be had again, by handle or by search.

use std::sync::Arc;

use futures::executor::block_on;
use serde_json::json;
use undertext::agent::{Agent, Task};
use undertext::exchange::Status;
use undertext::id::CallId;
use undertext::model::{Reply, Script, Scripted};
use undertext::overlay::layers::Reads;
use undertext::record::{MemoryStorage, Recorder};
use undertext::setup::Policy;
use undertext::tools::{Call, Outcome, Recall, Tool as _, Toolbox, typed};
use undertext::transcript::Event;

use crate::scene::{self, Amount};

pub(crate) fn recall(recorder: &Recorder, arguments: &serde_json::Value) -> Outcome {
    let arguments = arguments.to_string();
    let blobs = |digest| recorder.storage().read_blob(digest).unwrap();
    let id = CallId::new(recorder.view().transcript().next_id(), 1);
    block_on(Recall.call(Call {
        id,
        arguments: &arguments,
        view: recorder.view(),
        blobs: &blobs,
    }))
}

/// A long run with small room, in which results are stubbed and summarised.
fn compacted() -> Recorder {
    let read = |n: usize| {
        let arguments = json!({ "path": format!("src/file{n}.rs"), "chars": 3000 });
        Reply::calls([("Show", arguments.to_string())]).into()
    };
    let mut script: Vec<Script> = (0..60).map(read).collect();
    script.push(Reply::text("Done.").into());
    let model = Scripted::new(script).with_summaries(|_| Ok(Reply::text("Files were read.")));
    let mut policy = Policy::default();
    policy.compaction.micro.min_gain_tokens = 0;
    let mut recorder = scene::create(&MemoryStorage::default());
    let agent = scene::agent(12_000, policy, model);
    scene::go(&agent, &mut recorder, Some(Task::new("Read."))).unwrap();
    recorder
}

#[test]
fn what_is_hidden_is_had_by_its_handle() {
    let recorder = compacted();
    let view = recorder.view();
    let mut stubbed = 0;
    for entry in view.transcript().entries() {
        let Event::Result(result) = &entry.event else {
            continue;
        };
        stubbed += u32::from(matches!(view.reads(result.call), Some(Reads::Stubbed(_))));
        let handle = result.call.to_string();
        let shown = recall(&recorder, &json!({ "handle": handle, "lines": 1_000_000 }));
        assert_eq!(shown.status, Status::Ok);
        let (heading, rest) = shown.content.split_once('\n').unwrap();
        assert!(
            heading.starts_with(&format!("[{handle}] Show ")),
            "{heading}"
        );
        assert_eq!(rest, result.content);
    }
    assert!(stubbed > 0, "something was stubbed");
    let summaries = view.summaries();
    assert!(!summaries.is_empty(), "something was summarised");
    for standing in summaries {
        let handle = standing.overlay.to_string();
        let shown = recall(&recorder, &json!({ "handle": handle, "lines": 1_000_000 }));
        for entry in view.transcript().span(standing.summary.span) {
            if let Event::Result(result) = &entry.event {
                assert!(
                    shown.content.contains(&result.content),
                    "{} in {handle}",
                    result.call
                );
            }
        }
    }
}

#[test]
fn what_is_hidden_is_found_by_search() {
    let recorder = compacted();
    let found = recall(&recorder, &json!({ "pattern": r"file7\.rs says" }));
    assert!(
        found.content.starts_with("26.1:2: src/file7.rs says"),
        "{}",
        found.content
    );
    let none = recall(&recorder, &json!({ "pattern": "file77" }));
    assert_eq!(none.content, "No line matches.");
}

/// A part of what a handle names, by lines.
#[test]
fn a_range_of_lines_is_shown_with_what_follows() {
    let lines: String = (1..=500).map(|n| format!("line {n}\n")).collect();
    let recorder = clipped(&lines);
    let shown = |arguments| recall(&recorder, &arguments).content;
    // The heading is the first line.
    assert_eq!(
        shown(json!({ "handle": "5.1", "from_line": 101, "lines": 2 })),
        "line 100\nline 101\n[lines 101–102 of 501; go on with from_line 103]"
    );
    assert_eq!(
        shown(json!({ "handle": "5.1", "from_line": 501 })),
        "line 500\n[lines 501–501 of 501]"
    );
    assert_eq!(
        shown(json!({ "handle": "5.1", "from_line": 502 })),
        "It has 501 lines; line 502 is past the end."
    );
}

/// What was clipped away is kept as a blob, and found in it.
#[test]
fn what_was_clipped_is_had_by_handle_and_by_search() {
    let text: String = (0..20_000)
        .map(|n| format!("{n}: nothing to see\n"))
        .collect();
    let text = text.replace("10000: nothing", "10000: treasure");
    let recorder = clipped(&text);
    let (_, result) = recorder.view().result_of("5.1".parse().unwrap()).unwrap();
    let kept = result.clipped.unwrap();
    assert_eq!(kept.bytes, text.len() as u64);
    assert!(!result.content.contains("treasure"));
    assert!(
        result.content.contains("Recall 5.1 shows all"),
        "{}",
        result.content
    );
    let shown = recall(&recorder, &json!({ "handle": "5.1", "lines": 1_000_000 })).content;
    assert_eq!(shown.split_once('\n').unwrap().1, text.trim_end());
    let found = recall(&recorder, &json!({ "pattern": "treasure" })).content;
    assert_eq!(found, "5.1:10002: 10000: treasure to see");
}

/// A run whose one result is this text, clipped to what a round has room for.
fn clipped(text: &str) -> Recorder {
    let text = text.to_owned();
    let print = typed("Print", "Prints.", move |_: Amount| {
        let text = text.clone();
        async move { Outcome::ok(text) }
    });
    let script = [
        Reply::calls([("Print", r#"{"path":"x"}"#)]).into(),
        Reply::text("Done.").into(),
    ];
    let setup = scene::setup(32_000, Policy::default());
    let toolbox = Toolbox::new().with(print);
    let agent = Agent::new(setup, Arc::new(Scripted::new(script)), toolbox);
    let mut recorder = scene::create(&MemoryStorage::default());
    scene::go(&agent, &mut recorder, Some(Task::new("Print."))).unwrap();
    recorder
}
