//! `--output-schema`: the answer is JSON that fits. `--max-cost`: a run ends before it costs more.

use std::fs;

use serde_json::Value;

use crate::cli::{Place, says};
use crate::provider::{Answer, Provider};

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {"sum": {"type": "integer"}},
  "required": ["sum"]
}
"#;

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("home/w/sum.json"), SCHEMA).unwrap();
    place
}

const LINE: [&str; 5] = [
    "--output-schema",
    "sum.json",
    "--output-last-message",
    "last.json",
    "add",
];

#[test]
fn an_answer_is_corrected_until_it_fits() {
    let place = place();
    let provider = Provider::new([
        says("The sum is 42."),
        says(r#"{"sum": "42"}"#),
        says(r#"{"sum": 42}"#),
        says("43"),
        says(r#"{"sum": 43}"#),
    ]);
    let ran = place.ask(&provider, &LINE);
    assert_eq!((ran.code, ran.out.as_str()), (0, "{\"sum\": 42}\n"));
    let last = fs::read_to_string(place.path("home/w/last.json")).unwrap();
    assert_eq!(last, r#"{"sum": 42}"#);
    insta::assert_snapshot!(place.plain(&ran.err), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    e5 does not fit the schema; the model corrects it
    e7 does not fit the schema; the model corrects it
    finished: 1 round, 0 calls, 3,000 tokens in (0 cached), 30 out, cost unknown, TIME
    ");
    let body: Value = serde_json::from_slice(&provider.body()).unwrap();
    insta::assert_snapshot!(body["response_format"].to_string(), @r#"{"type":"json_schema","json_schema":{"name":"sum","schema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}}}"#);
    let shown = [
        place.run(&["print", "--at", "e6"]).out,
        place.run(&["show"]).out,
        place.run(&["replay"]).out,
    ]
    .concat();
    let kept = ["correction of", "[undertext", "tokens  ", "rebuilt"];
    let shown = shown
        .lines()
        .filter(|line| kept.iter().any(|kept| line.contains(kept)));
    // What the instructions take is not looked at here.
    let shown: Vec<&str> = shown
        .filter_map(|line| line.split(", about").next())
        .collect();
    insta::assert_snapshot!(place.plain(&shown.join("\n")), @"
    e6    request: correction of e5
          [undertext, not the user] Your answer does not fit the JSON Schema that it must fit: it is not one JSON value: expected value at line 1 column 1. Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now.
      tokens      3,000 in (0 cached), 30 out, cost unknown
    r1    e4         N tokens  text
          e6         N tokens  correction of e5, text
          e8         N tokens  correction of e7, text
    3 of 3 requests rebuilt, all digests equal
    ");
    assert_eq!(place.run(&["replay", "--verify"]).code, 0);
    // Taken up again, the answer has the same form.
    let ran = place.ask(&provider, &["--continue", "--json", "and one more"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ends = ran.out.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["type"] == "end").then(|| line["text"].clone())
    });
    assert_eq!(ends.collect::<Vec<_>>(), [r#"{"sum": 43}"#]);
}

#[test]
fn an_answer_that_never_fits_ends_the_run() {
    let place = place();
    let provider = Provider::new([
        says("a"),
        says(r#"{"sum": "b"}"#),
        says("```json\n{\"sum\": 42}\n```"),
        says(r#"{"sum": 42}"#),
    ]);
    let ran = place.ask(&provider, &LINE);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    insta::assert_snapshot!(place.plain(&ran.err), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    e5 does not fit the schema; the model corrects it
    e7 does not fit the schema; the model corrects it
    the answer does not fit the schema after 2 corrections: it stands in a code fence and must be the JSON value alone
    ended (schema): 1 round, 0 calls, 3,000 tokens in (0 cached), 30 out, cost unknown, TIME
    to go on: undertext run --resume RUN --base-url http://HOST/v1
    ");
    let last = fs::read_to_string(place.path("home/w/last.json")).unwrap();
    assert_eq!(last, "```json\n{\"sum\": 42}\n```");
    let ran = place.ask(&provider, &["--continue"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "{\"sum\": 42}\n"));
}

/// The form first, then the check: it runs on what fits alone, and what it sends back to work is
/// judged anew.
#[test]
fn a_check_runs_on_an_answer_that_fits() {
    let place = place();
    let provider = Provider::new([
        says("41"),
        says(r#"{"sum": 41}"#),
        Answer::Calls(vec![("Bash", r#"{"command":"touch done"}"#)]),
        says("42"),
        says(r#"{"sum": 42}"#),
    ]);
    let line = [
        "--output-schema",
        "sum.json",
        "--check",
        "test -e done",
        "add",
    ];
    let ran = place.ask(&provider, &line);
    assert_eq!((ran.code, ran.out.as_str()), (0, "{\"sum\": 42}\n"));
    insta::assert_snapshot!(place.plain(&ran.err), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    e5 does not fit the schema; the model corrects it
    check of e7: failed with exit 1, TIME
    e15 does not fit the schema; the model corrects it
    check of e17: passed, TIME
    finished: 3 rounds, 1 call, 5,000 tokens in (0 cached), 50 out, cost unknown, TIME
    ");
}

#[test]
fn a_file_that_is_no_schema_is_refused() {
    let place = place();
    let files = [
        ("torn.json", "{\n  \"type\": \"object\"\n"),
        ("list.json", "[]"),
        ("odd.json", r#"{"properties": {"a": {"type": "strin"}}}"#),
        ("away.json", r#"{"$ref": "https://example.org/s.json"}"#),
    ];
    let mut told = String::new();
    for (name, text) in files {
        fs::write(place.path("home/w").join(name), text).unwrap();
    }
    let names = files.iter().map(|(name, _)| *name);
    for name in names.chain(["missing.json", "."]) {
        let line = ["run", "-m", "m", "--base-url", "http://127.0.0.1:1/v1"];
        let ran = place.run(&[&line[..], &["--output-schema", name, "add"]].concat());
        assert_eq!(ran.code, 2, "{ran:?}");
        told += &ran.err;
    }
    insta::assert_snapshot!(place.plain(&told), @r#"
    undertext: --output-schema torn.json cannot be used: not JSON: EOF while parsing an object at line 3 column 0
    undertext: --output-schema list.json cannot be used: a JSON Schema is an object
    undertext: --output-schema odd.json cannot be used: /properties/a/type: "strin" is not valid under any of the schemas listed in the 'anyOf' keyword
    undertext: --output-schema away.json cannot be used: the schema: Resource 'https://example.org/s.json' is not present in a registry and retrieving it failed: `resolve-http` feature or a custom resolver is required to resolve external schemas via HTTP
    undertext: --output-schema missing.json cannot be used: No such file or directory (os error 2); check the path
    undertext: --output-schema . cannot be used: Is a directory (os error 21); name a file
    "#);
    assert!(place.transcripts().is_empty());
}

#[test]
fn a_run_ends_before_it_costs_more() {
    let place = place();
    let provider = Provider::new([crate::cli::looks(), crate::cli::looks()]);
    // A thousand tokens in and ten out are a cent and a tenth.
    let line = [
        "--set",
        "model.prices={input: 10, output: 100}",
        "--max-cost",
        "0.02",
        "look",
    ];
    let ran = place.ask(&provider, &line);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{ran:?}");
    insta::assert_snapshot!(place.plain(&ran.err), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    prices: $10 in, $100 out per million tokens, as your settings say
    the limit of cost is reached
    ended (cost): 2 rounds, 4 calls, 2,000 tokens in (0 cached), 20 out, $0.0220, TIME
    to go on: undertext run --resume RUN --base-url http://HOST/v1 --set 'model.prices={input: 10, output: 100}'
    ");
    let shown = place.run(&["show"]).out;
    let tokens = shown.lines().find(|line| line.contains("tokens ")).unwrap();
    insta::assert_snapshot!(tokens.trim(), @"tokens      2,000 in (0 cached), 20 out, $0.0220");
    // What cannot be counted cannot be limited.
    let ran = place.ask(&provider, &["--max-cost", "1", "look"]);
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.err.trim(), @"undertext: prices unknown: cost is not counted for m, so that limits.cost cannot hold; give model.prices.input and model.prices.output");
    let ran = place.ask(&provider, &["--max-cost", "0", "look"]);
    assert_eq!(ran.code, 2);
}
