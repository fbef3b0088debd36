//! Bodies in, replies and faults out, without a network.

use crate::model::assemble::{Assembler, Bounds, End};
use crate::model::intake::Intake;
use crate::model::stream::Event;
use crate::model::{Delta, Fault, Reply};
use crate::setup::Api;
use crate::transcript::FaultClass;

/// What a body becomes that arrives in these pieces and ends like this.
fn read(pieces: &[&[u8]], end: End) -> (Result<Reply, Fault>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let mut intake = Intake::new(
        Api::Chat,
        Bounds {
            maximum: Some(1000),
            window: Some(8192),
        },
    );
    for piece in pieces {
        intake.take(piece, &mut deltas).unwrap();
    }
    (intake.end(end, &mut deltas), deltas)
}

/// `ending text | calls | finish | input/cached/output`, or `class message`.
fn show(result: Result<Reply, Fault>) -> String {
    let reply = match result {
        Ok(reply) => reply,
        Err(fault) => return format!("{} {}", fault.class.word(), fault.message),
    };
    let calls = reply.calls.iter();
    let calls: Vec<String> = calls
        .map(|c| format!("{}{}", c.name, c.arguments))
        .collect();
    let finish = reply.finish.unwrap_or_default();
    let count = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
    let usage = reply.usage.map_or(String::new(), |u| {
        format!("{}/{}/{}", count(u.input), count(u.cached), count(u.output))
    });
    let text = reply.text;
    format!(
        "{:?} {text}|{}|{finish}|{usage}",
        reply.ending,
        calls.join(",")
    )
}

/// Data lines to a stream.
fn stream(data: &[&str]) -> String {
    let events: Vec<String> = data
        .iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect();
    events.concat()
}

fn check(data: &[&str], shown: &str) {
    let body = stream(data);
    assert_eq!(
        show(read(&[body.as_bytes()], End::Closed).0),
        shown,
        "{body}"
    );
}

const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"Hé"}}]}"#;
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
const DONE: &str = "[DONE]";
const TORN: &str = "torn the connection was closed before the reply was whole";

#[test]
fn a_reply_is_whole_only_if_the_server_says_so() {
    check(&[TEXT, TEXT, STOP, DONE], "Complete HéHé||stop|");
    check(&[TEXT, STOP], "Complete Hé||stop|");
    check(&[TEXT, DONE], "Complete Hé|||");
    check(&[TEXT], TORN);
    check(&[TEXT, DONE, TEXT, r#"{"error":"late"}"#], "Complete Hé|||");
    check(
        &[TEXT, r#"{"choices":[{"delta":{},"finish_reason":""}]}"#],
        TORN,
    );
    check(
        &[TEXT, r#"{"choices":[{"finish_reason":"weird"}]}"#],
        "Complete Hé||weird|",
    );
    let lost = |data: &[&str]| {
        let body = stream(data);
        show(read(&[body.as_bytes()], End::Lost("lost".to_owned())).0)
    };
    assert_eq!(lost(&[TEXT]), "torn lost");
    assert_eq!(lost(&[]), "transport lost");
    assert_eq!(lost(&[TEXT, STOP]), "Complete Hé||stop|");
    let stalled = read(&[], End::Stalled("late".to_owned())).0;
    assert_eq!(show(stalled), "stall late");
}

#[test]
fn odd_shapes_are_taken_and_noise_is_not() {
    for noise in [
        r#"{"choices":[],"prompt_filter_results":[{}]}"#,
        r#"{"choices":null}"#,
        r#"{"choices":[{"delta":null}]}"#,
        r#"{"choices":[{"index":0}],"id":null,"created":1.5,"object":7}"#,
        r#"{"type":"ping"}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"length"}]}"#,
        r#"{"choices":[{"delta":{"role":null}}]}"#,
        r#"{"choices":[{"delta":{},"message":{"content":"Hé"},"text":"Hé"}]}"#,
        r#"{"error":null,"choices":[]}"#,
        "broken",
        "{\"choices\":[{\"delta\":{\"content\":\"x\"",
        ": comment",
        "",
    ] {
        check(&[noise, TEXT, noise, STOP, noise], "Complete Hé||stop|");
    }
    check(
        &[
            r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"},"b"]}}]}"#,
            STOP,
        ],
        "Complete ab||stop|",
    );
    check(
        &[
            r#"{"choices":[{"delta":{"content":null,"refusal":"I won't"}}]}"#,
            STOP,
        ],
        "Refused I won't||stop|",
    );
    check(
        &[
            r#"{"choices":[{"delta":{"function_call":{"name":"Read","arguments":"{"}}}]}"#,
            r#"{"choices":[{"delta":{"function_call":{"arguments":"}"}},"finish_reason":"function_call"}]}"#,
        ],
        "Complete |Read{}|function_call|",
    );
    // A whole message after its pieces.
    let message = r#"{"choices":[{"message":{"content":"Hé"},"finish_reason":"stop"}]}"#;
    check(&[TEXT, message], "Complete Hé||stop|");
    let plain = r#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"Hé","tool_calls":[{"id":"a","function":{"name":"Read","arguments":"{}"}},{"id":"a","function":{"name":"Read","arguments":"[]"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}"#;
    assert_eq!(
        show(read(&[plain.as_bytes()], End::Closed).0),
        "Complete Hé|Read{},Read[]|stop|3/-/-"
    );
}

#[test]
fn counts_are_the_last_known_ones() {
    let counts = |usage: &str| format!(r#"{{"choices":[],"usage":{usage}}}"#);
    let first = counts(r#"{"prompt_tokens":9,"completion_tokens":1}"#);
    let last = counts(
        r#"{"prompt_tokens":"9","prompt_tokens_details":{"cached_tokens":8.0},"completion_tokens":5}"#,
    );
    let later = counts(r#"{"completion_tokens":6}"#);
    check(&[&first, TEXT, STOP, &later], "Complete Hé||stop|9/-/6");
    let (empty, null) = (counts("{}"), counts("null"));
    check(
        &[&first, TEXT, STOP, &last, &last, &null],
        "Complete Hé||stop|9/8/5",
    );
    check(&[&first, TEXT, STOP, &empty], "Complete Hé||stop|9/-/1");
    check(&[TEXT, STOP, &empty], "Complete Hé||stop|");
    let many = counts(r#"{"completion_tokens":1000}"#);
    check(&[TEXT, STOP, &many], "Cut Hé||stop|-/-/1000");
    let full = counts(r#"{"prompt_tokens":8192,"completion_tokens":0}"#);
    let length = r#"{"choices":[{"finish_reason":"length"}]}"#;
    check(
        &[length, &full],
        "overflow the provider ended the reply with `length`",
    );
    check(&[TEXT, length], "Cut Hé||length|");
}

#[test]
fn errors_within_a_reply_are_faults() {
    let error = r#"{"error":{"message":"busy","type":"overloaded_error"}}"#;
    check(&[error], "overload busy");
    check(&[TEXT, error, TEXT, STOP, DONE], "overload busy");
    check(
        &[r#"[{"error":{"code":429,"message":"slow"}}]"#],
        "rate slow",
    );
    check(
        &[r#"{"choices":[{"error":{"code":502,"message":"up"},"finish_reason":"error"}]}"#],
        "server up",
    );
    check(
        &[TEXT, r#"{"choices":[{"finish_reason":"error"}]}"#],
        "server the provider ended the reply with `error`",
    );
    let bodies = [
        (
            "event: error\ndata: {\"message\":\"busy\",\"type\":\"overloaded\"}\n\n",
            "overload busy",
        ),
        ("event: error\ndata: {\"detail\":\"no\"}\n\n", "server no"),
        ("error: {\"code\":500,\"message\":\"m\"}\n", "server m"),
        ("{\"detail\":\"Not Found\"}", "permanent Not Found"),
        ("", "torn the reply is empty"),
        (
            "<html><b>\u{1b}[31mHello</b></html>",
            "permanent the answer is no model's reply: `<html><b> [31mHello</b></html>`",
        ),
        ("hello\n", "torn the answer is no model's reply: `hello`"),
    ];
    for (body, shown) in bodies {
        assert_eq!(
            show(read(&[body.as_bytes()], End::Closed).0),
            shown,
            "{body}"
        );
    }
}

#[test]
fn a_filter_keeps_the_text_and_cut_calls_stay() {
    let filter = r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#;
    check(&[TEXT, filter], "Filtered Hé||content_filter|");
    check(
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"x"}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
        ],
        "Cut |Read{\"x|length|",
    );
}

#[test]
fn reads_cut_anywhere_give_the_same_reply_and_bodies_cut_anywhere_none() {
    let call = r#"{"choices":[{"delta":{"reasoning":"漢","tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"p\":\"😀\"}"}}]}}]}"#;
    let body = stream(&[TEXT, call, STOP, DONE]).replace('\n', "\r\n");
    let body = body.as_bytes();
    let (whole, told) = read(&[body], End::Closed);
    let (whole, finished) = (
        whole.unwrap(),
        body.windows(4).rposition(|w| w == b"stop").unwrap(),
    );
    assert_eq!(
        told,
        [
            Delta::Text("Hé".to_owned()),
            Delta::Reasoning("漢".to_owned()),
            Delta::Call {
                name: "Read".to_owned()
            },
        ]
    );
    for cut in 0..body.len() {
        let (head, tail) = body.split_at(cut);
        assert_eq!(
            read(&[head, tail], End::Closed).0.as_ref(),
            Ok(&whole),
            "{cut}"
        );
        match read(&[head], End::Closed).0 {
            Ok(reply) => assert!(cut > finished && reply == whole, "{cut}"),
            Err(fault) => assert_eq!(fault.class, FaultClass::Torn, "{cut}"),
        }
    }
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(read(&bytes, End::Closed).0, Ok(whole));
}

#[test]
fn an_endless_reply_is_stopped() {
    let text = "x".repeat(1 << 20);
    let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
    let event = Event {
        data: chunk,
        ..Event::default()
    };
    let (mut assembler, mut deltas) = (Assembler::default(), Vec::new());
    let taken = (0..100).take_while(|_| {
        deltas.clear();
        assembler.take(&event, &mut deltas);
        !assembler.is_over()
    });
    assert_eq!(taken.count(), 64);
    let fault = assembler
        .end(End::Closed, Bounds::default(), "")
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::Permanent);
}

#[test]
fn parts_within_parts_are_read_to_a_small_depth() {
    let nested = |depth: usize, open: &str, close: &str| {
        let (open, close) = (open.repeat(depth), close.repeat(depth));
        format!(r#"{{"choices":[{{"delta":{{"content":{open}"x"{close}}}}}]}}"#)
    };
    for (open, close) in [("[", "]"), (r#"[{"text":"#, "}]")] {
        check(&[&nested(1, open, close), STOP], "Complete x||stop|");
        check(&[&nested(50_000, open, close), STOP], "Complete ||stop|");
    }
}
