//! Calls, as far as they were finished.

use super::{called, check, completed};

const ADDED: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"Read","arguments":"","status":"in_progress"}}"#;

#[test]
fn calls_run_only_as_they_were_finished() {
    let piece = |index: u64, id: &str, piece: &str| {
        let piece = serde_json::Value::from(piece);
        format!(
            r#"{{"type":"response.function_call_arguments.delta","item_id":"{id}","output_index":{index},"delta":{piece}}}"#
        )
    };
    let whole = |arguments: &str| {
        let arguments = serde_json::Value::from(arguments);
        format!(
            r#"{{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":0,"arguments":{arguments}}}"#
        )
    };
    let item = |arguments: &str| {
        format!(r#"{{"type":"function_call","call_id":"a","name":"Read","arguments":{arguments}}}"#)
    };
    let one = "| a Read{\"x\":1}|completed||<Read>";
    let broken = "| a Read{\"x\":1}\u{fffd}|completed||<Read>";
    let (begin, end) = (piece(0, "fc_1", "{\"x\""), piece(0, "fc_1", ":1}"));
    let done = called(0, "fc_1", "a", "Read", "{\"x\":1}");
    let other = called(0, "fc_1", "a", "Read", "{\"x\":2}");
    let renamed = called(0, "fc_1", "a", "Grep", "{\"x\":1}");
    let (empty, nothing) = (called(0, "fc_1", "a", "Read", ""), completed(""));
    let closed = completed(&item("\"{\\\"x\\\":1}\""));
    let differs = completed(&item("\"{\\\"x\\\":2}\""));
    for (events, shown) in [
        (
            vec![ADDED, &begin, &end, &whole("{\"x\":1}"), &done, &closed],
            one,
        ),
        (vec![&done, &nothing], one),
        (vec![&closed], one),
        (vec![ADDED, &begin, &end, &closed], one),
        // Pieces are not what counts.
        (vec![ADDED, &begin, &done, &nothing], one),
        (vec![ADDED, &begin, &begin, &done, &nothing], one),
        (vec![ADDED, &whole("{\"x\":1}"), &empty, &nothing], one),
        // A call that nobody finished, or of which two versions differ, is none.
        (vec![ADDED, &begin, &end, &nothing], broken),
        (vec![ADDED, &begin, &end, &empty, &nothing], broken),
        (vec![ADDED, &whole("{\"x\":1}"), &nothing], broken),
        (vec![&done, &differs], broken),
        (vec![&done, &other, &nothing], broken),
        (vec![&done, &renamed, &nothing], broken),
        (
            vec![&whole("{\"x\":1}"), &other, &nothing],
            "| a Read{\"x\":1}\u{fffd}|completed||<Read>",
        ),
    ] {
        check(&events, &format!("Complete {shown}"));
    }
    // What could not be read may have been a part of a call.
    check(
        &[
            &done,
            r#"{"type":"response.function_call_arguments.delta","#,
            &closed,
        ],
        "torn an event of a reply with calls could not be read",
    );
    // Ids that change from event to event, and none at all.
    let turned = called(0, "fc_9", "a", "Read", "{\"x\":1}");
    check(
        &[ADDED, &piece(0, "fc_5", "{"), &turned, &closed],
        &format!("Complete {one}"),
    );
    let bare = completed(r#"{"type":"function_call","name":"Read","arguments":{"x": 1}}"#);
    check(&[&bare], "Complete |  Read{\"x\": 1}|completed||<Read>");
}

#[test]
fn parallel_calls_are_kept_apart() {
    let second = ADDED
        .replace(r#""output_index":0"#, r#""output_index":1"#)
        .replace("fc_1", "fc_2")
        .replace(r#""a""#, r#""b""#);
    let piece = r#"{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"fc_2","delta":"{"}"#;
    let (a, b) = (
        called(0, "fc_1", "a", "Read", "{\"x\":1}"),
        called(1, "fc_2", "b", "Read", "{\"x\":2}"),
    );
    let both = "Complete | a Read{\"x\":1} b Read{\"x\":2}|completed||<Read><Read>";
    check(&[ADDED, &second, piece, &b, &a, &completed("")], both);
    // All under one index.
    check(
        &[
            &a,
            &b.replace(r#""output_index":1"#, r#""output_index":0"#),
            &completed(""),
        ],
        both,
    );
    // The list that closes the reply names one of them.
    let item = r#"{"type":"function_call","id":"fc_2","call_id":"b","name":"Read","arguments":"{\"x\":2}"}"#;
    check(
        &[&a, &b, &completed(item)],
        "Complete | a Read{\"x\":1}\u{fffd} b Read{\"x\":2}|completed||<Read><Read>",
    );
    // Other ids in that list do not make other calls.
    let list = item.replace("fc_2", "fc_7").replace(r#""b""#, r#""z""#);
    check(
        &[&b, &completed(&list)],
        "Complete | b Read{\"x\":2}|completed||<Read>",
    );
}

#[test]
fn calls_of_other_types_are_told_and_never_run() {
    let custom =
        r#"{"type":"custom_tool_call","id":"ct_1","call_id":"a","name":"Patch","input":"x"}"#;
    check(
        &[&completed(custom)],
        r#"Complete | a custom:Patch{"type":"custom_tool_call","name":"Patch","input":"x"}|completed||<Patch>"#,
    );
    let shell = r#"{"type":"local_shell_call","id":"l_1","call_id":"a","action":{"command":["ls"]},"status":"completed"}"#;
    check(
        &[&completed(shell)],
        r#"Complete | a local_shell:{"type":"local_shell_call","action":{"command":["ls"]}}|completed||"#,
    );
    let search = r#"{"type":"web_search_call", "id":"ws_1","status":"completed"}"#;
    check(
        &[&completed(search)],
        &format!("Complete  ({search})||completed||"),
    );
}
