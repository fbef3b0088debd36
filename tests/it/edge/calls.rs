//! Cases 28 to 32: calls, however they are cut.

use std::fmt::Write as _;

use serde_json::Value;

use super::check;
use super::server::Answer;
use crate::scene;

const DONE: &str = "[DONE]";
const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;

/// A streamed reply of these items of `tool_calls`, an event each.
pub(super) fn calls(items: &[&str]) -> Answer {
    let mut data: Vec<String> = items
        .iter()
        .map(|item| format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{item}]}}}}]}}"#))
        .collect();
    data.extend([FINISH.to_owned(), DONE.to_owned()]);
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    Answer::events(&data)
}

/// A reply that ends the run.
pub(super) fn done() -> Answer {
    text("Done.")
}

/// A reply of this text.
pub(super) fn text(text: &str) -> Answer {
    let text = Value::from(text);
    let choice =
        format!(r#"{{"choices":[{{"delta":{{"content":{text}}},"finish_reason":"stop"}}]}}"#);
    Answer::events(&[&choice, DONE])
}

/// A whole call of a tool as one item, with these arguments as they are.
pub(super) fn call(name: &str, arguments: &str) -> String {
    let (name, arguments) = (Value::from(name), Value::from(arguments));
    format!(
        r#"{{"index":0,"id":"a","type":"function","function":{{"name":{name},"arguments":{arguments}}}}}"#
    )
}

/// Plays a reply of these items, then one that ends the run; `told` is what becomes of the first.
pub(super) fn odd(case: u32, name: &str, items: &[&str], told: &str, ran: &str) {
    let ran = if ran.is_empty() {
        String::new()
    } else {
        format!("ran {ran}\n")
    };
    let told = format!("{told}\nComplete stop: Done.\nend, finished: Done.\n{ran}requests 2");
    check(case, name, &[calls(items), done()], &told);
}

/// The same where exactly these calls of tools with these paths are made, and run.
fn fine(case: u32, name: &str, items: &[&str], made: &[(&str, &str)]) {
    let mut told = "Complete tool_calls:".to_owned();
    let mut ran = Vec::new();
    for (tool, path) in made {
        write!(told, " {tool}{{\"path\":\"{path}\"}}").unwrap();
        ran.push(format!("{tool} {path}"));
    }
    for (_, path) in made {
        write!(told, "\nresult, ok: {}", scene::text(path, 3)).unwrap();
    }
    odd(case, name, items, &told, &ran.join(", "));
}

#[test]
fn case_28_an_index_may_be_missing_or_nothing() {
    for (name, index) in [
        ("missing", ""),
        ("null", r#""index":null,"#),
        ("blank", r#""index":"","#),
    ] {
        let first = format!(
            r#"{{{index}"id":"a","type":"function","function":{{"name":"Show","arguments":"{{\"pa"}}}}"#
        );
        let second = format!(r#"{{{index}"function":{{"arguments":"th\":\"a\"}}"}}}}"#);
        let third = format!(
            r#"{{{index}"id":"b","function":{{"name":"Change","arguments":"{{\"path\":\"b\"}}"}}}}"#
        );
        fine(28, name, &[&first, &second], &[("Show", "a")]);
        fine(
            28,
            name,
            &[&first, &second, &third],
            &[("Show", "a"), ("Change", "b")],
        );
    }
    fine(
        28,
        "from one, with holes, as a float and as text",
        &[
            r#"{"index":1,"id":"a","function":{"name":"Show","arguments":"{\"path\""}}"#,
            r#"{"index":7.0,"id":"b","function":{"name":"Show","arguments":""}}"#,
            r#"{"index":"4","id":"c","function":{"name":"Change","arguments":"{"}}"#,
            r#"{"index":"7","function":{"arguments":"{\"path\":\"b\"}"}}"#,
            r#"{"index":4,"function":{"arguments":"\"path\":\"c\"}"}}"#,
            r#"{"index":1.0,"function":{"arguments":":\"a\"}"}}"#,
        ],
        &[("Show", "a"), ("Show", "b"), ("Change", "c")],
    );
}

#[test]
fn case_29_an_id_may_be_missing_nothing_once_or_everywhere() {
    for (name, id) in [
        ("missing", ""),
        ("empty", r#""id":"","#),
        ("null", r#""id":null,"#),
        ("a number", r#""id":7,"#),
    ] {
        let first =
            format!(r#"{{"index":0,{id}"function":{{"name":"Show","arguments":"{{\"pa"}}}}"#);
        let other = format!(
            r#"{{"index":1,{id}"function":{{"name":"Show","arguments":"{{\"path\":\"b\"}}"}}}}"#
        );
        let rest = format!(r#"{{"index":0,{id}"function":{{"arguments":"th\":\"a\"}}"}}}}"#);
        fine(
            29,
            name,
            &[&first, &other, &rest],
            &[("Show", "a"), ("Show", "b")],
        );
    }
    fine(
        29,
        "on the first piece, on every piece, and late",
        &[
            r#"{"index":0,"id":"a","function":{"name":"Show","arguments":"{"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"Show","arguments":"{"}}"#,
            r#"{"index":2,"function":{"name":"Show","arguments":"{"}}"#,
            r#"{"index":0,"function":{"arguments":"\"path\":\"a\"}"}}"#,
            r#"{"index":1,"id":"b","function":{"arguments":"\"path\":\"b\"}"}}"#,
            r#"{"index":2,"id":"c","function":{"arguments":"\"path\":\"c\"}"}}"#,
        ],
        &[("Show", "a"), ("Show", "b"), ("Show", "c")],
    );
    fine(
        29,
        "the same index for all",
        &[
            r#"{"index":0,"id":"a","function":{"name":"Show","arguments":"{\"path\":\"a\"}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"Show","arguments":"{\"path\":"}}"#,
            r#"{"index":0,"function":{"arguments":"\"b\"}"}}"#,
        ],
        &[("Show", "a"), ("Show", "b")],
    );
    // What belongs to whom cannot be known, so nothing runs.
    odd(
        29,
        "the same id for all",
        &[
            r#"{"index":0,"id":"a","function":{"name":"Beat","arguments":""}}"#,
            r#"{"index":1,"id":"a","function":{"name":"Change","arguments":"{\"path\":\"b\"}"}}"#,
        ],
        "
        Complete tool_calls: Beat{\"path\":\"b\"}\u{fffd}
        result, error: The call of Beat did not run: the arguments are not valid JSON: trailing characters at line 1 column 13.",
        "",
    );
    odd(
        29,
        "another id for the second piece",
        &[
            r#"{"index":0,"id":"a","function":{"name":"Beat","arguments":""}}"#,
            r#"{"index":0,"id":"b","function":{"arguments":"{\"path\":\"b\"}"}}"#,
        ],
        "
        Complete tool_calls: Beat\u{fffd} {\"path\":\"b\"}
        result, error: The call of Beat did not run: the arguments are not valid JSON: expected value at line 1 column 1.
        result, error: The call names no tool. Nothing ran.",
        "",
    );
}

#[test]
fn case_30_a_name_may_be_repeated_and_must_be_there() {
    for (what, index) in [("index", r#""index":0,"#), ("no index", "")] {
        let piece = |arguments: &str| {
            format!(
                r#"{{{index}"id":"a","function":{{"name":"Change","arguments":"{arguments}"}}}}"#
            )
        };
        let pieces = [piece(""), piece(r#"{\"path\""#), piece(r#":\"a\"}"#)];
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        fine(30, what, &pieces, &[("Change", "a")]);
    }
    let piece = |arguments: &str| {
        format!(r#"{{"function":{{"name":"Change","arguments":"{arguments}"}}}}"#)
    };
    let pieces = [
        piece(""),
        piece(r#"{\"path\""#),
        piece(r#":\"a\"}"#),
        piece(r#"{\"path\":\"b\"}"#),
    ];
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    fine(
        30,
        "neither id nor index",
        &pieces,
        &[("Change", "a"), ("Change", "b")],
    );
    let late = [
        r#"{"index":0,"id":"a","function":{"name":"","arguments":""}}"#,
        r#"{"index":0,"function":{"name":"Change","arguments":"{\"path\":\"a\"}"}}"#,
    ];
    fine(30, "late", &late, &[("Change", "a")]);
    for name in ["", " ", "\\n"] {
        let blank =
            format!(r#"{{"index":0,"id":"a","function":{{"name":"{name}","arguments":"{{}}"}}}}"#);
        let other =
            r#"{"index":1,"id":"b","function":{"name":"Show","arguments":"{\"path\":\"b\"}"}}"#;
        odd(
            30,
            "blank",
            &[&blank, other],
            "
            Complete tool_calls: {} Show{\"path\":\"b\"}
            result, error: The call names no tool. Nothing ran.
            result, ok: b s",
            "Show b",
        );
    }
}

#[test]
fn case_31_arguments_may_be_an_object_or_nothing() {
    for (name, arguments, made) in [
        (
            "an object",
            r#","arguments":{"path":"a"}"#,
            r#"Show{"path":"a"}"#,
        ),
        (
            "text",
            r#","arguments":"{\"path\":\"a\"}""#,
            r#"Show{"path":"a"}"#,
        ),
        (
            "an object in a text",
            r#","arguments":"\"{\\\"path\\\":\\\"a\\\"}\"""#,
            r#"Show"{\"path\":\"a\"}""#,
        ),
    ] {
        let item = format!(r#"{{"index":0,"id":"a","function":{{"name":"Show"{arguments}}}}}"#);
        let told = format!("Complete tool_calls: {made}\nresult, ok: a s");
        odd(31, name, &[&item], &told, "Show a");
    }
    for (name, arguments, made) in [
        ("empty", r#","arguments":"""#, "Beat"),
        ("null", r#","arguments":null"#, "Beat"),
        ("missing", "", "Beat"),
        ("{}", r#","arguments":"{}""#, "Beat{}"),
    ] {
        let item = format!(r#"{{"index":0,"id":"a","function":{{"name":"Beat"{arguments}}}}}"#);
        let told = format!("Complete tool_calls: {made}\nresult, ok: beat");
        odd(31, name, &[&item], &told, "Beat");
        let item = item.replace("Beat", "Show");
        let told = match made {
            "Beat" => {
                "Complete tool_calls: Show\nresult, error: The call of Show has no arguments; it requires path. Nothing ran."
            }
            _ => {
                "Complete tool_calls: Show{}\nresult, error: The call of Show did not run: the arguments: \"path\" is a required property."
            }
        };
        odd(31, name, &[&item], told, "");
    }
}

#[test]
fn case_32_calls_that_come_side_by_side_are_kept_apart() {
    fine(
        32,
        "interleaved, also within an event",
        &[
            r#"{"index":0,"id":"a","function":{"name":"Show","arguments":""}},{"index":1,"id":"b","function":{"name":"Show","arguments":"{\"pa"}}"#,
            r#"{"index":0,"function":{"arguments":"{\"path\":"}}"#,
            r#"{"index":1,"function":{"arguments":"th\":"}},{"index":0,"function":{"arguments":"\"a"}}"#,
            r#"{"index":1,"function":{"arguments":"\"b\"}"}}"#,
            r#"{"index":0,"function":{"arguments":"\"}"}}"#,
        ],
        &[("Show", "a"), ("Show", "b")],
    );
}
