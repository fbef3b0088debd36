//! Law 12, its other half: whatever was hidden or clipped can be had again, by handle or by search.

use std::sync::Arc;

use futures::executor::block_on;
use serde_json::json;
use undertext::agent::{Agent, Task};
use undertext::exchange::Status;
use undertext::id::{CallId, EntryId, Span};
use undertext::model::{Reply, Script, Scripted};
use undertext::overlay::layers::Reads;
use undertext::overlay::{Author, Carry, Layer, Stub, Summary};
use undertext::record::{Clock, MemoryStorage, Recorder};
use undertext::setup::Policy;
use undertext::tools::{Call, Outcome, Recall, Tool as _, Toolbox, typed};
use undertext::transcript::{Event, Purpose, Speaker, Summarize};
use undertext::view::View;

use crate::draft::Draft;
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

/// Law 12 for searches: whatever a result said is found by a search for it, and the place that the
/// search names shows it again.
#[test]
fn what_a_search_names_is_shown_there() {
    let recorder = compacted();
    let view = recorder.view();
    let mut hidden = 0;
    for entry in view.transcript().entries() {
        let Event::Result(result) = &entry.event else {
            continue;
        };
        hidden += u32::from(view.reads(result.call) != Some(Reads::Full));
        let words = result.content.split('"').next().unwrap();
        let found = recall(&recorder, &json!({ "pattern": format!("^{words}") }));
        let mut place = found.content.splitn(3, ':');
        let (handle, line) = (place.next().unwrap(), place.next().unwrap());
        assert_eq!(handle, result.call.to_string(), "{}", found.content);
        assert_eq!(found.facts.recalled, [entry.id]);
        let line: u64 = line.parse().unwrap();
        let shown = recall(
            &recorder,
            &json!({ "handle": handle, "from_line": line, "lines": 1 }),
        );
        assert!(shown.content.starts_with(words), "{}", shown.content);
        assert_eq!(shown.facts.recalled, [entry.id]);
    }
    assert!(hidden > 30, "most was hidden: {hidden}");
}

/// What `Recall` says of a run that holds every kind of text, all of it summarised or stubbed.
fn said(arguments: &serde_json::Value) -> String {
    let mut draft = Draft::default();
    let clock = Clock::fixed(scene::BEGIN);
    draft.push(Event::Run(scene::run(&clock)));
    draft.push(Event::Setup(Box::new(scene::setup(
        32_000,
        Policy::default(),
    ))));
    draft.user_with(
        Speaker::Task,
        "Mend the Parser.\nThe port is 8080.",
        &[("notes.txt", "colour: blue\nshape:\n  round")],
    );
    let make = (
        "Bash",
        r#"{"command":"make (all)"}"#,
        "gcc -c a.c\ndone (all)",
    );
    let read = ("Read", r#"{"path":"a.c"}"#, "int main() {}");
    let first = draft.round("I make it.", &[make, read]);
    draft.user(Speaker::Runtime, "The limit is near.");
    let recall = ("Recall", r#"{"pattern":"gcc"}"#, "5.1:2: gcc -c a.c");
    draft.round("", &[recall]);
    let stub = Layer::Stub(Stub {
        results: vec![CallId::new(first, 1)],
        ..Stub::default()
    });
    draft.overlay(stub);
    let asked = Span::new(EntryId(3), EntryId(7));
    let request = draft.request(Purpose::Summary(Summarize::new(draft.next(), asked)));
    draft.response(request, "The gcc was called.", &["gcc, I think"], &[]);
    let summary = Summary {
        span: Span::new(EntryId(3), EntryId(8)),
        text: "The gcc was called.".to_owned(),
        by: Author::Model,
        focus: None,
        parts: Vec::new(),
        depth: 1,
        carry: Carry::default(),
    };
    draft.overlay(Layer::Summary(summary));
    let id = CallId::new(draft.next(), 1);
    let view = View::of(draft.into_entries());
    let arguments = arguments.to_string();
    block_on(Recall.call(Call {
        id,
        arguments: &arguments,
        view: &view,
        blobs: &|_| None,
    }))
    .content
}

#[test]
fn every_kind_of_handle_shows_its_texts() {
    let shown = |handle: &str| format!("> {handle}\n{}\n", said(&json!({ "handle": handle })));
    let handles = [
        "5.1",
        "e5",
        "2",
        "3",
        "e8",
        "overlay 12",
        "overlay 15",
        "r1",
        "round 9",
        "5.3",
    ];
    let text: String = handles.iter().map(|handle| shown(handle)).collect();
    insta::assert_snapshot!(text, @r#"
    > 5.1
    [5.1] Bash {"command":"make (all)"}
    gcc -c a.c
    done (all)
    > e5
    [entry 5, assistant]
    I make it.
    [5.1] Bash {"command":"make (all)"}
    [5.2] Read {"path":"a.c"}
    > 2
    Entry 2 is a change of settings and holds no text. Near it are e3, e5, 5.1.
    > 3
    [entry 3, user]
    Mend the Parser.
    The port is 8080.
    [attachment notes.txt]
    colour: blue
    shape:
      round
    > e8
    [entry 8, runtime]
    The limit is near.
    > overlay 12
    [overlay 12, by hand: stubs these]
    5.1 Bash {"command":"make (all)"}
    > overlay 15
    [entry 3, user]
    Mend the Parser.
    The port is 8080.
    [attachment notes.txt]
    colour: blue
    shape:
      round

    [entry 5, assistant]
    I make it.

    [5.1] Bash {"command":"make (all)"}
    gcc -c a.c
    done (all)

    [5.2] Read {"path":"a.c"}
    int main() {}

    [entry 8, runtime]
    The limit is near.
    > r1
    [entry 5, assistant]
    I make it.

    [5.1] Bash {"command":"make (all)"}
    gcc -c a.c
    done (all)

    [5.2] Read {"path":"a.c"}
    int main() {}
    > round 9
    There is no round 9 with a reply: the run has 1 to 2.
    > 5.3
    There is no call 5.3: entry 5 made 5.1 to 5.2.
    "#);
}

#[test]
fn a_search_finds_what_was_said_and_nothing_else() {
    let find = |arguments: serde_json::Value| format!("> {arguments}\n{}\n", said(&arguments));
    let text = [
        // Neither reasoning nor what a summariser wrote nor what Recall showed.
        json!({ "pattern": "gcc" }),
        json!({ "pattern": "port|colour" }),
        json!({ "pattern": "shape" }),
        json!({ "pattern": "a\\.c|limit" }),
        // In other words than it was said.
        json!({ "pattern": "mend the parser" }),
        json!({ "pattern": "make (all)" }),
        json!({ "pattern": "main() {" }),
        // Only there, and only in these lines.
        json!({ "handle": "3", "pattern": "o" }),
        json!({ "handle": "3", "pattern": "o", "from_line": 5, "lines": 1 }),
        json!({ "handle": "15", "pattern": "done" }),
        json!({ "handle": "15", "pattern": "done", "lines": 5 }),
        json!({ "handle": "e99", "pattern": "o" }),
    ];
    let text: String = text.into_iter().map(find).collect();
    insta::assert_snapshot!(text, @r#"
    > {"pattern":"gcc"}
    5.1:2: gcc -c a.c
    > {"pattern":"port|colour"}
    e3:3: The port is 8080.
    e3:5: colour: blue
    > {"pattern":"shape"}
    e3:6: shape:
    e3-7:   round
    > {"pattern":"a\\.c|limit"}
    5.1:2: gcc -c a.c
    5.2:1: [5.2] Read {"path":"a.c"}
    e8:2: The limit is near.
    > {"pattern":"mend the parser"}
    [no line matches exactly; ignoring case these do]
    e3:2: Mend the Parser.
    > {"pattern":"make (all)"}
    [the pattern was searched for as plain text, ignoring case]
    5.1:1: [5.1] Bash {"command":"make (all)"}
    > {"pattern":"main() {"}
    [the pattern was searched for as plain text, ignoring case]
    5.2:2: int main() {}
    > {"handle":"3","pattern":"o"}
    e3:3: The port is 8080.
    e3:4: [attachment notes.txt]
    e3:5: colour: blue
    e3:7:   round
    > {"handle":"3","pattern":"o","from_line":5,"lines":1}
    e3:5: colour: blue
    > {"handle":"15","pattern":"done"}
    5.1:3: done (all)
    > {"handle":"15","pattern":"done","lines":5}
    No line matches.
    > {"handle":"e99","pattern":"o"}
    There is no entry 99: the run has 1 to 15. Near it are 5.1, 5.2, e8.
    "#);
}

/// What is shown without being asked for a number of lines fits one result.
#[test]
fn a_page_is_what_a_result_has_room_for() {
    let recorder = clipped(&format!("{}\nend", "0123456789".repeat(10_000)));
    let view = recorder.view();
    let room = view
        .sizes()
        .unwrap()
        .result_chars(view.policy().unwrap(), 1);
    let (mut whole, mut from, mut pages) = (String::new(), 1, 0);
    loop {
        let page = recall(&recorder, &json!({ "handle": "5.1", "from_line": from })).content;
        let (text, rest) = page.rsplit_once('\n').unwrap();
        assert!(page.chars().count() as u64 <= room, "{room}");
        whole.push_str(text);
        pages += 1;
        let Some((_, next)) = rest.split_once("go on with from_line ") else {
            break;
        };
        from = next.trim_end_matches(']').parse::<u64>().unwrap();
    }
    let expected = format!(
        "[5.1] Print {{\"path\":\"x\"}}\n{}\nend",
        "0123456789".repeat(10_000)
    );
    assert_eq!(whole, expected);
    assert!(pages > 5, "{pages}");
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
