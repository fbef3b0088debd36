//! Pieces of calls in, calls out.

use crate::model::calls::{Arrival, CALLS_MAX, Calls};
use crate::model::loose::{Object, Value};

/// Takes one `tool_calls` array after the other and shows `id name arguments extra`.
fn check(arrival: Arrival, arrays: &[&str], expected: &[&str]) {
    let (mut calls, mut begun) = (Calls::default(), Vec::new());
    for array in arrays {
        let (values, rest) = Value::sequence(array);
        assert_eq!(rest, "", "{array}");
        calls.take(&values[0].array().unwrap(), arrival, false, &mut begun);
    }
    let shown: Vec<String> = calls
        .finish()
        .into_iter()
        .map(|call| {
            let id = call.provider_id.unwrap_or_else(|| "-".to_owned());
            let extra = call.extra.map(|extra| format!(" {extra}"));
            let extra = extra.unwrap_or_default();
            format!("{id} {} {}{extra}", call.name, call.arguments)
        })
        .collect();
    assert_eq!(shown, expected, "{arrays:?}");
    assert!(begun.len() <= shown.len(), "{begun:?}");
}

/// As many pieces as a long reply has: to read all of it again at each would take hours.
#[test]
fn a_call_of_many_pieces_is_one_call() {
    let mut arrays = vec![r#"[{"function":{"name":"Read","arguments":"{\"x\":\""}}]"#];
    arrays.extend(vec![
        r#"[{"function":{"name":"Read","arguments":"word "}}]"#;
        50_000
    ]);
    arrays.push(r#"[{"function":{"name":"Read","arguments":"\"}"}}]"#);
    let whole = format!(r#"- Read {{"x":"{}"}}"#, "word ".repeat(50_000));
    check(Arrival::Pieces, &arrays, &[&whole]);
}

#[test]
fn no_more_calls_are_told_apart_than_there_may_be() {
    let many = vec!["{\"id\":\"\"}"; 3 * CALLS_MAX].join(",");
    for arrival in [Arrival::Pieces, Arrival::Whole] {
        let mut calls = Calls::default();
        let array = match arrival {
            Arrival::Whole => format!("[{many}]"),
            Arrival::Pieces => {
                let item = |id: usize| format!("{{\"id\":\"{id}\"}}");
                let items: Vec<String> = (0..3 * CALLS_MAX).map(item).collect();
                format!("[{}]", items.join(","))
            }
        };
        let (values, _) = Value::sequence(&array);
        calls.take(&values[0].array().unwrap(), arrival, false, &mut Vec::new());
        assert_eq!(calls.count(), CALLS_MAX + 1, "{arrival:?}");
    }
}

#[test]
fn pieces_find_their_call() {
    let pieces = Arrival::Pieces;
    // As OpenAI does it, two calls interleaved.
    check(
        pieces,
        &[
            r#"[{"index":0,"id":"a","type":"function","function":{"name":"Read","arguments":""}}]"#,
            r#"[{"index":1,"id":"b","function":{"name":"Grep","arguments":"{"}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"x\""}}]"#,
            r#"[{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":":1}"}}]"#,
        ],
        &[r#"a Read {"x":1}"#, "b Grep {}"],
    );
    // The id and the name with every piece; no index.
    check(
        pieces,
        &[
            r#"[{"id":"a","function":{"name":"Read","arguments":"{"}}]"#,
            r#"[{"id":"b","function":{"name":"Read","arguments":"{"}}]"#,
            r#"[{"id":"a","function":{"name":"Read","arguments":"}"}}]"#,
            r#"[{"id":"b","index":null,"function":{"name":"Read","arguments":"}"}}]"#,
        ],
        &["a Read {}", "b Read {}"],
    );
    // The same index for every call, but another id.
    check(
        pieces,
        &[
            r#"[{"index":0,"id":"a","function":{"name":"Read","arguments":"{}"}}]"#,
            r#"[{"index":0,"id":"b","function":{"name":"Read","arguments":"{"}}]"#,
            r#"[{"index":0,"function":{"arguments":"}"}}]"#,
        ],
        &["a Read {}", "b Read {}"],
    );
    // An index alone; an index as a key; the id late or empty.
    check(
        pieces,
        &[
            r#"[{"index":7,"function":{"name":"Read","arguments":"{"}},{"index":3,"id":"","function":{"name":"Grep"}}]"#,
            r#"[{"index":7,"id":"a","function":{"arguments":"}"}}]"#,
        ],
        &["a Read {}", "- Grep "],
    );
    // Neither id nor index: a name begins a call, unless the last is open.
    check(
        pieces,
        &[
            r#"[{"function":{"name":"Read","arguments":"{"}}]"#,
            r#"[{"function":{"name":"Read","arguments":"}"}}]"#,
            r#"[{"function":{"name":"Read","arguments":"{}"}},{"function":{"name":"Grep","arguments":""}}]"#,
            r#"[{"function":{"arguments":"{}"}}]"#,
        ],
        &["- Read {}", "- Read {}", "- Grep {}"],
    );
}

#[test]
fn what_belongs_to_whom_is_never_guessed() {
    let pieces = Arrival::Pieces;
    // Another name is another call, even where the first has no arguments.
    check(
        pieces,
        &[
            r#"[{"index":0,"function":{"name":"List","arguments":""}}]"#,
            r#"[{"index":0,"function":{"name":"Look","arguments":"{\"path\":1}"}}]"#,
        ],
        &["- List ", r#"- Look {"path":1}"#],
    );
    // The same name again is the same call as long as its arguments are not whole.
    check(
        pieces,
        &[
            r#"[{"function":{"name":"List","arguments":""}}]"#,
            r#"[{"function":{"name":"List","arguments":"{\"path\":1}"}}]"#,
            r#"[{"function":{"name":"List","arguments":"{}"}}]"#,
        ],
        &[r#"- List {"path":1}"#, "- List {}"],
    );
    // Two names under one id; arguments that come under another id and no name.
    check(
        pieces,
        &[
            r#"[{"id":"a","function":{"name":"List","arguments":""}}]"#,
            r#"[{"id":"a","function":{"name":"Look","arguments":"{}"}}]"#,
        ],
        &["a List {}\u{fffd}"],
    );
    check(
        pieces,
        &[
            r#"[{"index":0,"id":"a","function":{"name":"List","arguments":""}}]"#,
            r#"[{"index":0,"id":"b","function":{"arguments":"{}"}}]"#,
        ],
        &["a List \u{fffd}", "b  {}"],
    );
}

#[test]
fn an_old_style_call_beside_others_only_repeats() {
    let function = Object::read(r#"{"name":"List","arguments":"{}"}"#).unwrap();
    let (values, _) = Value::sequence(r#"[{"id":"a","function":{"name":"List"}}]"#);
    for others in [0, 1] {
        let (mut calls, mut begun) = (Calls::default(), Vec::new());
        calls.take_function(&function, false, &mut begun);
        for _ in 0..others {
            let items = values[0].array().unwrap();
            calls.take(&items, Arrival::Pieces, false, &mut begun);
        }
        let calls = calls.finish();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].provider_id.is_some(), others > 0);
    }
}

#[test]
fn odd_calls_are_taken_as_they_are() {
    let whole = Arrival::Whole;
    check(
        whole,
        &[
            r#"[{"id":"a","function":{"name":"Read","arguments":{"x": 1.0}}},{"id":"a","function":{"name":"Read","arguments":null}}]"#,
        ],
        &[r#"a Read {"x": 1.0}"#, "a Read "],
    );
    check(
        whole,
        &[
            r#"[{"id":"a","type":"custom","custom":{"name":"Patch","input":"x"}},{"id":1,"type":"retrieval","function":{"name":"Bash","arguments":"{}"}},"x"]"#,
        ],
        &[
            r#"a custom:Patch  {"custom":{"name":"Patch","input":"x"}}"#,
            "- retrieval:Bash {}",
        ],
    );
    check(
        whole,
        &[
            r#"[{"id":"a","extra_content":{"google": {"thought_signature":"Zm/="}},"n":1e0,"z":null,"function":{"name":" ","arguments":"{}"}}]"#,
        ],
        &[r#"a  {} {"extra_content":{"google": {"thought_signature":"Zm/="}},"n":1e0}"#],
    );
}

#[test]
fn arguments_that_are_no_text_are_malformed() {
    let (mut calls, mut begun) = (Calls::default(), Vec::new());
    let array = r#"[{"function":{"name":"Read","arguments":"{\"a\":\"\ud800\"}"}}]"#;
    let (values, _) = Value::sequence(array);
    let items = values[0].array().unwrap();
    calls.take(&items, Arrival::Whole, false, &mut begun);
    let call = &calls.finish()[0];
    assert_eq!(call.arguments, "{\"a\":\"\u{fffd}\"}\u{fffd}");
    assert!(serde_json::from_str::<serde_json::Value>(&call.arguments).is_err());
    assert_eq!(begun, ["Read"]);
}
