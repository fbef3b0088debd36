//! A run in other forms.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use undertext::setup::Policy;
use undertext::transcript::{Event, Run, Speaker};

use crate::cli::sample::{KEPT, RUN, compacted, told, write};
use crate::cli::{Place, Ran};
use crate::draft::{Draft, note};
use crate::scene;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

/// A run whose texts try to be more than texts.
pub(super) fn hostile() -> Draft {
    let mut draft = Draft::default();
    draft.push(Event::Run(Run {
        name: Some("a `name`\n# no heading".to_owned()),
        ..Run::new(RUN.parse().unwrap(), "/w </details>")
    }));
    draft.push(Event::Setup(Box::new(scene::setup(
        8_000,
        Policy::default(),
    ))));
    draft.user_with(
        Speaker::Task,
        "Read this:\n```\n# no heading\n</details>",
        &[("</summary>\n.txt", "~~~\n````js\n")],
    );
    draft.round(
        "<script>no()</script>",
        &[
            ("</summary><b>", "```", "out\n`````\n# no heading"),
            (
                "Read",
                r#"{"path":"a","n":1.0,"n":12345678901234567890}"#,
                "",
            ),
            ("Read", r#"{"n":1e400}"#, "too large"),
            ("Read", "[1]", "no object"),
        ],
    );
    draft.push(note("a `tick\n# no heading"));
    draft
}

pub(super) fn ok(place: &Place, line: &[&str]) -> String {
    let ran = place.run(line);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.out
}

#[test]
fn lines_are_the_transcripts_own() {
    let place = Place::new();
    let golden = fs::read_to_string(GOLDEN).unwrap();
    assert_eq!(ok(&place, &["export", GOLDEN]), golden);
    for view in ["compacted", "both"] {
        assert_eq!(
            ok(&place, &["export", GOLDEN, "--view", view]),
            ok(&place, &["print", GOLDEN, "--json", "--view", view])
        );
    }
    // A torn and damaged file as well, to its last byte.
    let damaged = golden.replace("mend", "bend");
    let damaged = &damaged[..damaged.len() - 10];
    fs::write(place.path("home/w/torn.jsonl"), damaged).unwrap();
    let Ran { code, out, .. } = place.run(&["export", "torn.jsonl"]);
    assert_eq!((code, out.as_str()), (6, damaged));
}

/// What the format asks for, as far as it can be said here; `tests/conformance/atif.sh` holds it
/// against types that others wrote.
fn is_a_trajectory(text: &str) -> Value {
    let whole: Value = serde_json::from_str(text).unwrap();
    assert_eq!(whole["schema_version"], "ATIF-v1.7");
    for name in ["name", "version"] {
        assert!(whole["agent"][name].is_string(), "{name}");
    }
    let steps = whole["steps"].as_array().unwrap();
    assert_eq!(whole["final_metrics"]["total_steps"], steps.len());
    for (number, step) in (1..).zip(steps) {
        assert_eq!(step["step_id"], number);
        assert!(step["message"].is_string(), "{step}");
        let source = step["source"].as_str().unwrap();
        assert!(["system", "user", "agent"].contains(&source), "{step}");
        let of_the_agent = ["model_name", "reasoning_content", "tool_calls", "metrics"];
        let has = of_the_agent.iter().any(|field| step.get(field).is_some());
        assert!(source == "agent" || !has, "{step}");
        let calls = step["tool_calls"].as_array().cloned().unwrap_or_default();
        assert!(
            calls.iter().all(|call| call["arguments"].is_object()),
            "{step}"
        );
        let results = step["observation"]["results"].as_array();
        for result in results.cloned().unwrap_or_default() {
            let answered = |call: &Value| call["tool_call_id"] == result["source_call_id"];
            assert!(calls.iter().any(answered), "{result}");
        }
    }
    whole
}

#[test]
fn a_trajectory_holds_every_step() {
    let place = Place::new();
    let whole = ok(&place, &["export", GOLDEN, "--format", "atif"]);
    let whole = is_a_trajectory(&whole);
    let steps = whole["steps"].as_array().unwrap();
    let sum = |name: &str| -> u64 {
        let of = |step: &Value| step["metrics"][name].as_u64();
        steps.iter().filter_map(of).sum()
    };
    assert_eq!(
        whole["final_metrics"]["total_prompt_tokens"],
        sum("prompt_tokens")
    );
    let agent = steps.iter().filter(|step| step["source"] == "agent");
    assert_eq!(agent.count(), 15);
    let summary = steps
        .iter()
        .find(|step| step["extra"]["context_management"].is_object());
    let mut extra = summary.unwrap()["extra"].clone();
    // The layer as it was laid, and the reply that it is of.
    let layer = extra["undertext"]["layer"].take();
    assert_eq!(
        (&layer["span"], &layer["text"]),
        (&json!([4, 51]), &Value::Null)
    );
    let reply = extra["undertext"]["replies"].take();
    assert_eq!(reply[0]["purpose"]["kind"], "summary");
    assert!(reply[0]["response"]["usage"]["input"].is_u64(), "{reply}");
    insta::assert_snapshot!(extra, @r#"
    {"context_management":{"type":"compaction","boundary":"replace","tokens_before":10556,"tokens_after":5175},"undertext":{"origin":"tool","rule":"summary","pass":57,"layer":null,"size":{"before":10556,"after":5175},"reason":"the model asked, focus: the failing test `sh tests/run.sh`, the suspects `lib/voucher.awk`, `lib/main.awk`, `bin/find-article`, `bin/till` and the repairs to try next","entry":57,"span":[4,51],"replies":null}}
    "#);
    let read = ok(
        &place,
        &["export", GOLDEN, "--format", "atif", "--view", "compacted"],
    );
    is_a_trajectory(&read);

    let path = write(&place, &hostile());
    let text = ok(
        &place,
        &["export", path.to_str().unwrap(), "--format", "atif"],
    );
    let whole = is_a_trajectory(&text);
    let calls = &whole["steps"][2]["tool_calls"];
    assert_eq!(calls[0]["extra"]["undertext"]["arguments"], "```");
    assert_eq!(
        calls[2]["extra"]["undertext"]["arguments"],
        r#"{"n":1e400}"#
    );
    assert_eq!(calls[3]["extra"]["undertext"]["arguments"], "[1]");
    // As the model wrote them, to the last digit.
    assert!(text.contains(r#""arguments":{"path":"a","n":1.0,"n":12345678901234567890}"#));
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let place = Place::new();
    let path = write(&place, &compacted());
    let kept = fs::read(&path).unwrap();
    symlink(&path, place.path("home/w/link.jsonl")).unwrap();
    let itself = format!("export 7c31d0f2 --out ../../{KEPT}/{RUN}.jsonl");
    let told = told(
        &place,
        &[
            "export 7c31d0f2 --out run.jsonl",
            "export 7c31d0f2 --format atif --view both",
            "export 7c31d0f2 --out nowhere/run.jsonl",
            "export 7c31d0f2 --out .",
            "export 7c31d0f2 --out link.jsonl",
            &itself,
            "export 7c31d0f2 --out run.jsonl",
            "page 7c31d0f2 --out run.jsonl",
            "lab 7c31d0f2 --plot run.jsonl",
            "run -m m --base-url http://127.0.0.1:9/v1 --output-last-message run.jsonl task",
            "run -m m --base-url http://127.0.0.1:9/v1 --diff run.jsonl task",
            "export 7c31d0f2 --format html",
        ],
    );
    insta::assert_snapshot!(told, @"
    $ export 7c31d0f2 --out run.jsonl
    written to /home/w/run.jsonl

    $ export 7c31d0f2 --format atif --view both
    undertext: a trajectory has one view; --view raw names every overlay in its place, --view compacted is what the model reads

    exit 2

    $ export 7c31d0f2 --out nowhere/run.jsonl
    undertext: nowhere/run.jsonl cannot be written: No such file or directory (os error 2); make its directory first, or name another place

    exit 2

    $ export 7c31d0f2 --out .
    undertext: . is a directory; name a file to write

    exit 2

    $ export 7c31d0f2 --out link.jsonl
    undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is the transcript itself; name another file

    exit 2

    $ export 7c31d0f2 --out ../../home/.local/state/undertext/transcripts/UUID.jsonl
    undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is the transcript itself; name another file

    exit 2

    $ export 7c31d0f2 --out run.jsonl
    written to /home/w/run.jsonl

    $ page 7c31d0f2 --out run.jsonl
    undertext: /home/w/run.jsonl holds a run, which nothing else may replace; name another file

    exit 2

    $ lab 7c31d0f2 --plot run.jsonl
    undertext: /home/w/run.jsonl holds a run, which nothing else may replace; name another file

    exit 2

    $ run -m m --base-url http://HOST/v1 --output-last-message run.jsonl task
    undertext: /home/w/run.jsonl holds a run, which nothing else may replace; name another file

    exit 2

    $ run -m m --base-url http://HOST/v1 --diff run.jsonl task
    undertext: /home/w/run.jsonl holds a run, which nothing else may replace; name another file

    exit 2

    $ export 7c31d0f2 --format html
    undertext: invalid value 'html' for '--format <FORMAT>' [possible values: jsonl, markdown, atif]

    exit 2
    ");
    assert_eq!(fs::read(&path).unwrap(), kept);
    assert_eq!(fs::read(place.path("home/w/run.jsonl")).unwrap(), kept);
    assert_eq!(
        json!(fs::read_dir(place.path("home/w")).unwrap().count()),
        3
    );
}
