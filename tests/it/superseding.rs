//! Which calls later ones make superfluous, and what it costs to find them.

use serde_json::json;
use serde_json::value::RawValue;
use undertext::compaction::superseded::{self, Superseded};
use undertext::exchange::{
    Clipped, Effect, Facts, FileRead, FileWritten, Status, Supersession, ToolMeta, ToolResult,
    ToolSpec,
};
use undertext::id::{CallId, Digest, Span};
use undertext::overlay::Layer;
use undertext::setup::Policy;
use undertext::transcript::{Event, Purpose, Run, Speaker};
use undertext::view::View;

use crate::draft::Draft;
use crate::scene;

/// The tools that the tests call: two that read ranges, one that reads whatever it is told, and
/// those that write.
fn tools() -> Vec<ToolSpec> {
    let reads = |key: Option<&str>| ToolMeta {
        effect: Effect::Reads,
        supersession: Some(Supersession {
            key: key.map(str::to_owned),
            range: key.map(|_| ["offset".to_owned(), "limit".to_owned()]),
            stale_after: key.map(|_| "Write".to_owned()).into_iter().collect(),
        }),
        ..ToolMeta::default()
    };
    let bash = ToolMeta {
        supersession: reads(None).supersession,
        ..ToolMeta::default()
    };
    let metas = [
        ("Read", reads(Some("path"))),
        ("Outline", reads(Some("path"))),
        ("Grep", reads(None)),
        // Without `dedup` a tool has no rule.
        (
            "List",
            ToolMeta {
                supersession: None,
                ..reads(None)
            },
        ),
        // What writes is never superfluous, whatever its rule.
        ("Bash", bash),
        ("Write", ToolMeta::default()),
    ];
    let spec = |(name, meta): (&str, ToolMeta)| ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        schema: RawValue::from_string("{}".to_owned()).unwrap(),
        meta,
    };
    metas.map(spec).into()
}

/// A run that has just begun.
fn begin() -> Draft {
    let mut draft = Draft::default();
    let clock = undertext::record::Clock::fixed(scene::BEGIN);
    draft.push(Event::Run(Run::new(clock.new_run(), "/w")));
    let mut setup = scene::setup(1_000_000, Policy::default());
    setup.wire.tools = tools();
    draft.push(Event::Setup(Box::new(setup)));
    draft.user(Speaker::Task, "Look.");
    draft
}

/// A call in a round of its own, and how it ended.
#[derive(Clone)]
struct Made {
    name: &'static str,
    arguments: String,
    status: Status,
    clipped: bool,
    facts: Facts,
}

fn call(name: &'static str, arguments: &str) -> Made {
    Made {
        name,
        arguments: arguments.to_owned(),
        status: Status::Ok,
        clipped: false,
        facts: Facts::default(),
    }
}

fn read(path: &str) -> Made {
    call("Read", &json!({ "path": path }).to_string())
}

impl Made {
    /// These lines of this file were shown.
    fn shown(mut self, path: &str, lines: [u64; 2]) -> Self {
        self.facts.read.push(FileRead {
            path: path.to_owned(),
            sha256: Digest::of(b"old"),
            lines: Some(lines),
        });
        self
    }

    /// This file was written.
    fn wrote(mut self, path: &str) -> Self {
        self.facts.wrote.push(FileWritten {
            path: path.to_owned(),
            sha256: Digest::of(b"new"),
        });
        self
    }

    fn failed(mut self) -> Self {
        self.status = Status::Error;
        self
    }

    fn clipped(mut self) -> Self {
        self.clipped = true;
        self
    }
}

/// A run of these calls, and of one more that has nothing to do with them.
fn view(calls: &[Made]) -> View {
    let mut draft = begin();
    let last = call("Bash", "{}");
    for made in calls.iter().chain([&last]) {
        let request = draft.request(Purpose::Round);
        let response = draft.response(request, "", &[], &[(made.name, &made.arguments)]);
        draft.push(Event::Result(ToolResult {
            call: CallId::new(response, 1),
            status: made.status,
            content: "x".repeat(500),
            clipped: made.clipped.then_some(Clipped {
                bytes: 9_000,
                blob: None,
            }),
            facts: made.facts.clone(),
            ms: None,
        }));
    }
    View::of(draft.into_entries())
}

fn number(view: &View, call: CallId) -> u32 {
    view.rounds().of_response(call.response).unwrap().number
}

/// What is superseded among these calls, by their numbers from 1.
fn check(calls: &[Made], expected: &str) {
    let view = view(calls);
    let found = Superseded::of(&view, None);
    let mut said = Vec::new();
    for (old, new) in &found.hidden {
        said.push(format!(
            "{} by {}",
            number(&view, *old),
            number(&view, *new)
        ));
    }
    for (old, by) in &found.stale {
        said.push(format!(
            "{} since {}",
            number(&view, *old),
            number(&view, *by)
        ));
    }
    let names: Vec<&str> = calls.iter().map(|made| made.arguments.as_str()).collect();
    assert_eq!(said.join(", "), expected, "{names:?}");
}

#[test]
fn a_file_is_the_same_however_it_is_spelled() {
    let a = |spelled: &str| read(spelled).shown("src/a", [1, 9]);
    check(&[a("src/a"), a("./src/a"), a("/w/src/a")], "1 by 3, 2 by 3");
    // From another directory the same spelling is another file.
    check(
        &[
            read("a").shown("src/a", [1, 9]),
            read("a").shown("lib/a", [1, 9]),
        ],
        "",
    );
    // The lines that were shown count, not those that were asked for.
    let most = call("Read", r#"{"path":"src/a","limit":2000}"#).shown("src/a", [1, 40]);
    check(&[read("src/a").shown("src/a", [1, 80]), most], "");
    // What was written counts in the same way.
    let write = call("Write", r#"{"path":"../w/src/a"}"#).wrote("src/a");
    check(&[a("src/a"), write.clone()], "1 since 2");
    check(&[a("src/a"), write.clone().failed()], "");
    check(&[a("src/a"), write, a("src/a")], "1 by 3");
    let other = call("Write", r#"{"path":"src/a"}"#).wrote("lib/src/a");
    check(&[a("src/a"), other], "");
}

#[test]
fn keys_and_values_count_not_how_they_are_written() {
    let grep = |arguments: &str| call("Grep", arguments);
    let one = grep(r#"{"pattern":"x","path":"a"}"#);
    check(
        &[one.clone(), grep(r#"{ "path":"a", "pattern":"\u0078" }"#)],
        "1 by 2",
    );
    check(
        &[one.clone(), grep(r#""{\"path\":\"a\",\"pattern\":\"x\"}""#)],
        "1 by 2",
    );
    check(&[one, grep(r#"{"pattern":"x"}"#)], "");
    // Beside key and range every argument counts.
    let outline = |arguments: &str| call("Outline", arguments);
    let deep = outline(r#"{"path":"a","depth":5}"#);
    check(&[deep.clone(), outline(r#"{"path":"a","depth":1}"#)], "");
    check(
        &[deep, outline(r#"{"depth":5,"path":"a","offset":1}"#)],
        "1 by 2",
    );
    check(&[outline(r#"{"depth":5}"#), outline(r#"{"depth":1}"#)], "");
}

#[test]
fn only_what_succeeded_supersedes_and_only_what_reads_is_superseded() {
    let ranged = |range: [u64; 2]| read("a").shown("a", range);
    check(&[ranged([1, 9]), read("a").failed()], "");
    check(&[read("a").failed(), read("a")], "1 by 2");
    // What was clipped shows less than it read.
    check(&[ranged([2, 4]), ranged([1, 9]).clipped()], "");
    check(
        &[ranged([1, 9]).clipped(), ranged([1, 9]).clipped()],
        "1 by 2",
    );
    let bash = call("Bash", r#"{"command":"make"}"#);
    let write = call("Write", r#"{"path":"b"}"#);
    let list = call("List", r#"{"path":"c"}"#);
    check(
        &[bash.clone(), bash, write.clone(), write, list.clone(), list],
        "",
    );
}

#[test]
fn a_span_names_what_may_go_and_not_what_stands_for_it() {
    let view = view(&[
        read("a"),
        read("a"),
        read("b"),
        call("Write", r#"{"path":"b"}"#),
        read("a"),
    ]);
    let within = |from: u32, to: u32| {
        let round = |number| view.rounds().number(number).unwrap().span().unwrap();
        let span = Span::new(round(from).from, round(to).to);
        let layers = superseded::layers_within(&view, span);
        let calls = layers.into_iter().flatten().map(|layer| match layer {
            Layer::Hide(hide) => hide.calls,
            Layer::Stub(stub) => stub.results,
            other => panic!("{other:?}"),
        });
        calls
            .map(|calls| calls.iter().map(|call| number(&view, *call)).collect())
            .collect()
    };
    let whole: [Vec<Vec<u32>>; 4] = [within(1, 6), within(2, 3), within(1, 1), within(4, 6)];
    assert_eq!(
        whole,
        [
            vec![vec![1, 2], vec![3]],
            vec![vec![2], vec![3]],
            vec![vec![1]],
            vec![]
        ]
    );
    let all = superseded::layers(&view);
    let Some(Layer::Hide(hide)) = &all[0] else {
        panic!("{all:?}")
    };
    assert_eq!(
        hide.why
            .values()
            .map(|call| number(&view, *call))
            .collect::<Vec<_>>(),
        [5, 5]
    );
}

/// Ranges of one file, none within another: each is looked at a few times, however many there are.
#[test]
fn thousands_of_ranges_cost_little_more_than_a_few() {
    const RANGES: u64 = 3_000;
    let ranged = |first: u64| {
        let arguments = json!({ "path": "a", "offset": first * 10, "limit": 10 });
        call("Read", &arguments.to_string())
    };
    let orders: [Box<dyn Fn(u64) -> u64>; 3] = [
        Box::new(|n| n),
        Box::new(|n| RANGES - n),
        Box::new(|n| n * 1_237 % RANGES),
    ];
    for order in orders {
        let mut calls: Vec<Made> = (0..RANGES).map(|n| ranged(order(n))).collect();
        let found = Superseded::of(&view(&calls), None);
        assert_eq!((found.hidden.len(), found.looked <= 2 * RANGES), (0, true));
        calls.push(read("a"));
        let found = Superseded::of(&view(&calls), None);
        assert_eq!(found.hidden.len() as u64, RANGES);
        assert!(found.looked <= 2 * RANGES, "{}", found.looked);
    }
}
