//! Events in, replies and faults out.

mod calls;

use std::fmt::Write as _;

use crate::exchange::Reasoning;
use crate::model::assemble::{Bounds, End};
use crate::model::intake::Intake;
use crate::model::{Delta, Fault, Reply};
use crate::setup::Api;

/// What a body becomes that is taken at once, or byte by byte.
fn read(body: &[u8], piece: usize) -> (Result<Reply, Fault>, String) {
    let mut deltas = Vec::new();
    let bounds = Bounds {
        maximum: Some(1000),
        window: Some(8192),
    };
    let mut intake = Intake::new(Api::Responses, bounds);
    for piece in body.chunks(piece) {
        intake.take(piece, &mut deltas).unwrap();
    }
    let reply = intake.end(End::Closed, &mut deltas);
    let mut heard = String::new();
    for delta in deltas {
        match delta {
            Delta::Text(text) => heard.push_str(&text),
            Delta::Reasoning(text) => write!(heard, "({text})").unwrap(),
            Delta::Call { name } => write!(heard, "<{name}>").unwrap(),
            Delta::Reply(_) | Delta::Fault(_) => panic!("{delta:?}"),
        }
    }
    (reply, heard)
}

/// `ending text (raw after) | calls | finish | input/cached/output/reasoning | heard`, or the fault.
fn show(result: Result<Reply, Fault>, heard: &str) -> String {
    let reply = match result {
        Ok(reply) => reply,
        Err(fault) => return format!("{} {}", fault.class.word(), fault.message),
    };
    let mut shown = format!("{:?} {}", reply.ending, reply.text);
    for block in &reply.reasoning {
        let Reasoning::Raw { raw, field, after } = block else {
            panic!("{block:?}")
        };
        assert_eq!(*field, None);
        let after = after.map_or(String::new(), |after| format!(" {after}"));
        write!(shown, " ({raw}{after})").unwrap();
    }
    shown.push('|');
    for call in reply.calls {
        let id = call.provider_id.unwrap_or_default();
        let extra = call.extra.unwrap_or_default();
        write!(shown, " {id} {}{}{extra}", call.name, call.arguments).unwrap();
    }
    write!(shown, "|{}|", reply.finish.unwrap_or_default()).unwrap();
    if let Some(usage) = reply.usage {
        let counts = [usage.input, usage.cached, usage.output, usage.reasoning];
        let counts = counts.map(|n| n.map_or("-".to_owned(), |n| n.to_string()));
        shown.push_str(&counts.join("/"));
    }
    if let Some(extra) = reply.extra {
        write!(shown, "|{extra}").unwrap();
    }
    format!("{shown}|{heard}")
}

/// Checks a stream of these events, whole and byte by byte.
fn check(events: &[&str], shown: &str) {
    let events: Vec<String> = events
        .iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect();
    let body = events.concat();
    for piece in [body.len(), 1] {
        let (reply, heard) = read(body.as_bytes(), piece);
        let heard = heard.replace(")(", "");
        assert_eq!(show(reply, &heard), shown, "{body}");
    }
}

const CREATED: &str = r#"{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","model":"m-1","output":[],"usage":null,"error":null}}"#;
const COMPLETED: &str = r#"{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","output":[],"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":80},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3}}}}"#;
const SAID: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi you","annotations":[]}],"phase":"final_answer"}}"#;
const PIECE: &str = r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi"}"#;

/// The event of a call that is finished.
fn called(index: u64, id: &str, call: &str, name: &str, arguments: &str) -> String {
    let arguments = serde_json::Value::from(arguments);
    format!(
        r#"{{"type":"response.output_item.done","output_index":{index},"item":{{"type":"function_call","id":"{id}","call_id":"{call}","name":"{name}","arguments":{arguments},"status":"completed"}}}}"#
    )
}

/// The event that closes a reply with these items.
fn completed(output: &str) -> String {
    format!(
        r#"{{"type":"response.completed","response":{{"status":"completed","output":[{output}]}}}}"#
    )
}

#[test]
fn text_is_what_its_item_holds() {
    let extra = r#"|{"id":"msg_1","phase":"final_answer"}"#;
    let begun = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}}"#;
    let part = r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}"#;
    let rest = r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":" you","logprobs":[]}"#;
    let whole = r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"Hi you"}"#;
    let all = format!("Complete Hi you||completed|90/80/7/3{extra}|Hi you");
    check(
        &[CREATED, begun, part, PIECE, rest, whole, SAID, COMPLETED],
        &all,
    );
    // Pieces that never came are told at the end; those that go nowhere are not told twice.
    check(&[PIECE, SAID, COMPLETED], &all);
    check(&[SAID, COMPLETED, "[DONE]"], &all);
    let lost = r#"{"type":"response.output_text.delta","item_id":"msg_9","delta":"Hi you"}"#;
    check(&[begun, lost, SAID, COMPLETED], &format!("{all}Hi you"));
    // The list that closes a reply is enough, and so are pieces.
    let item = r#"{"type":"message","content":[{"type":"output_text","text":"Hi"}]}"#;
    check(&[&completed(item)], "Complete Hi||completed||Hi");
    check(&[PIECE, &completed("")], "Complete Hi||completed||Hi");
    let bare = r#"{"type":"response.output_text.delta","delta":"Hi"}"#;
    let done = r#"{"type":"response.output_text.done","text":"Hi!"}"#;
    check(
        &[bare, done, &completed("")],
        "Complete Hi!||completed||Hi!",
    );
    // The type may stand beside the data alone, and the content may be plain.
    let body = "event: response.output_text.delta\ndata: {\"delta\":\"Hi\"}\n\nevent: response.completed\ndata: {\"response\":{\"output\":[{\"role\":\"assistant\",\"content\":\"Hi\"}]}}\n\n";
    let (reply, heard) = read(body.as_bytes(), body.len());
    assert_eq!(show(reply, &heard), "Complete Hi||completed||Hi");
}

#[test]
fn several_messages_are_one_text_that_can_be_parted() {
    let second = r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"message","id":"msg_2","content":[{"type":"output_text","text":"So","annotations":[]}]}}"#;
    check(
        &[
            SAID,
            &called(1, "fc_1", "a", "Read", "{}"),
            second,
            COMPLETED,
        ],
        concat!(
            "Complete Hi you\n\nSo| a Read{}|completed|90/80/7/3",
            r#"|{"messages":[{"bytes":6,"reasoning":0,"calls":0,"item":{"id":"msg_1","phase":"final_answer"}},"#,
            r#"{"bytes":2,"reasoning":0,"calls":1,"item":{"id":"msg_2"}}]}"#,
            "|Hi you<Read>\n\nSo"
        ),
    );
}

#[test]
fn nothing_but_the_providers_word_completes_a_reply() {
    let closed = "torn the connection was closed before the reply was whole";
    let call = called(1, "fc_1", "a", "Read", "{}");
    let status = |status: &str| {
        format!(r#"{{"type":"response.completed","response":{{"status":"{status}"}}}}"#)
    };
    check(&[CREATED], closed);
    check(&[CREATED, SAID], closed);
    check(&[SAID, &call], closed);
    check(&[SAID, &call, "[DONE]"], closed);
    check(&[PIECE, "[DONE]"], closed);
    check(&[SAID, &status("in_progress")], closed);
    check(&[SAID, &COMPLETED.replace("completed", "created")], closed);
    check(
        &[
            SAID,
            &COMPLETED.replace("response.completed", "response.created"),
        ],
        closed,
    );
    check(
        &[SAID, "[DONE]"],
        r#"Complete Hi you||||{"id":"msg_1","phase":"final_answer"}|Hi you"#,
    );
    check(
        &[SAID, &status("failed")],
        "server the provider ended the reply with `failed`",
    );
    check(
        &[SAID, &status("cancelled")],
        "server the provider ended the reply with `cancelled`",
    );
    check(
        &["[DONE]"],
        "torn the answer is no model's reply: `data: [DONE]`",
    );
}

#[test]
fn what_is_incomplete_is_cut_or_filtered() {
    let incomplete = |details: &str, output: &str| {
        format!(
            r#"{{"type":"response.incomplete","response":{{"status":"incomplete","incomplete_details":{details},"output":[{output}]}}}}"#
        )
    };
    let call = r#"{"type":"function_call","id":"fc_1","call_id":"a","name":"Read","arguments":"{\"pa","status":"incomplete"}"#;
    for (details, output, shown) in [
        (
            r#"{"reason":"max_output_tokens"}"#,
            "",
            "Cut Hi||max_output_tokens||Hi",
        ),
        (
            r#"{"reason":"max_output_tokens"}"#,
            call,
            "Cut Hi| a Read{\"pa|max_output_tokens||Hi<Read>",
        ),
        (
            r#"{"reason":"content_filter"}"#,
            "",
            "Filtered Hi||content_filter||Hi",
        ),
        (r#"{"reason":"something"}"#, "", "Cut Hi||something||Hi"),
        ("null", "", "Cut Hi||incomplete||Hi"),
    ] {
        check(&[PIECE, &incomplete(details, output)], shown);
    }
    // As much as was asked for is cut, whatever the server says.
    let full = COMPLETED.replace(r#""output_tokens":7"#, r#""output_tokens":1000"#);
    check(&[PIECE, &full], "Cut Hi||completed|90/80/1000/3|Hi");
}

#[test]
fn failures_have_the_class_they_would_have_outside() {
    let failed = |error: &str| {
        format!(r#"{{"type":"response.failed","response":{{"status":"failed","error":{error}}}}}"#)
    };
    for (event, shown) in [
        (failed(r#"{"code":"rate_limit_exceeded","message":"slow down"}"#), "rate slow down"),
        (failed(r#"{"code":"server_error","message":"oops"}"#), "server oops"),
        (failed(r#"{"code":"context_length_exceeded","message":"too long"}"#), "overflow too long"),
        (failed(r#"{"code":"insufficient_quota","message":"pay"}"#), "permanent pay"),
        (failed(r#"{"code":"invalid_prompt","message":"no"}"#), "permanent no"),
        (failed(r#"{"code":"server_is_overloaded","message":"busy"}"#), "overload busy"),
        (failed("null"), "server the provider ended the reply with `failed`"),
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null,"sequence_number":3}"#.to_owned(),
            "rate slow down",
        ),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"too long"}}"#.to_owned(),
            "overflow too long",
        ),
        (r#"{"error":{"message":"The engine is currently overloaded"}}"#.to_owned(), "overload The engine is currently overloaded"),
        (r#"{"detail":"Not Found"}"#.to_owned(), "permanent Not Found"),
        (
            r#"{"id":"x","object":"chat.completion.chunk","choices":[{"delta":{"content":"Hi"}}]}"#.to_owned(),
            "permanent the server answers in Chat Completions: set model.api to chat",
        ),
    ] {
        check(&[&event], shown);
        if !event.contains("detail") {
            check(&[CREATED, SAID, &event, COMPLETED], shown);
        }
    }
}

#[test]
fn a_document_in_place_of_a_stream_is_read_the_same_way() {
    let document = |rest: &str| {
        format!(
            r#"{{"id":"resp_1","object":"response","model":"m","error":null,"output":[{{"type":"message","content":[{{"type":"output_text","text":"Hi"}}]}},{{"type":"function_call","call_id":"a","name":"Read","arguments":"{{}}"}}]{rest}}}"#
        )
    };
    for (rest, shown) in [
        (
            r#","status":"completed""#,
            "Complete Hi| a Read{}|completed||Hi<Read>",
        ),
        (
            r#","status":"incomplete""#,
            "Cut Hi| a Read{}|incomplete||Hi<Read>",
        ),
        (
            r#","status":"queued""#,
            "torn the connection was closed before the reply was whole",
        ),
        (
            "",
            "torn the connection was closed before the reply was whole",
        ),
    ] {
        let body = document(rest);
        let (reply, heard) = read(body.as_bytes(), body.len());
        assert_eq!(show(reply, &heard), shown, "{rest}");
    }
    let chat = r#"{"object":"chat.completion","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let (reply, heard) = read(chat.as_bytes(), chat.len());
    assert!(show(reply, &heard).starts_with("permanent the server answers in Chat"));
}

#[test]
fn reasoning_is_kept_as_it_came_and_told_once() {
    let raw = r#"{"id":"rs_1", "type":"reasoning","summary":[{"type":"summary_text","text":"Hm."},{"type":"summary_text","text":"So."}],"encrypted_content":"Zm/=\u00e4"}"#;
    let done = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{raw}}}"#);
    let part = r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#;
    let piece = |text: &str| {
        format!(
            r#"{{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"{text}"}}"#
        )
    };
    let shown = format!("Complete  ({raw})||completed||(Hm.\n\nSo.)");
    check(
        &[
            part,
            &piece("Hm."),
            part,
            &piece("So."),
            &done,
            &completed(raw),
        ],
        &shown,
    );
    check(&[&done, &completed("")], &shown);
    check(&[&completed(raw)], &shown);
    // What stands behind a call says so; what was not finished is not kept.
    let call = called(0, "fc_1", "a", "Read", "{}");
    let behind = done.replace(r#""output_index":0"#, r#""output_index":1"#);
    check(
        &[&call, &behind, &completed("")],
        &format!("Complete  ({raw} 1)| a Read{{}}|completed||<Read>(Hm.\n\nSo.)"),
    );
    check(
        &[&piece("Hm."), &completed("")],
        "Complete ||completed||(Hm.)",
    );
    let open = r#"{"type":"response.reasoning_text.delta","item_id":"rs_1","delta":"t"}"#;
    let item = r#"{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"t"}],"encrypted_content":""}"#;
    check(
        &[open, &completed(item)],
        &format!("Complete  ({item})||completed||(t)"),
    );
}

#[test]
fn a_refusal_is_no_answer() {
    let piece = r#"{"type":"response.refusal.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"I can"}"#;
    let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","content":[{"type":"refusal","refusal":"I can't."}]}}"#;
    check(
        &[piece, done, &completed("")],
        "Refused I can't.||completed||I can't.",
    );
}

#[test]
fn odd_shapes_are_passed_over() {
    let odd = [
        r#"{"type":"response.output_item.done","item":null}"#,
        r#"{"type":"response.output_item.added","item":[1]}"#,
        r#"{"type":"response.output_item.done"}"#,
        r#"{"type":"response.output_text.delta","output_index":"x","delta":null}"#,
        r#"{"type":"response.output_text.delta","delta":{"a":1}}"#,
        r#"{"type":"response.function_call_arguments.done"}"#,
        r#"{"type":"response.output_text.annotation.added","annotation":{}}"#,
        r#"{"type":"response.web_search_call.searching","item_id":"ws_1"}"#,
        r#"{"type":"response.something.new","delta":"x"}"#,
        r#"{"type":"keepalive","sequence_number":3}"#,
        r#"{"type":7}"#,
        "[[]]",
        "1",
    ];
    let shown =
        r#"Complete Hi you||completed|90/80/7/3|{"id":"msg_1","phase":"final_answer"}|Hi you"#;
    for event in odd {
        check(&[CREATED, event, SAID, event, COMPLETED, event], shown);
    }
    let strings = r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":"90","output_tokens":7.0,"output_tokens_details":null},"output":{}}}"#;
    check(&[PIECE, strings], "Complete Hi||completed|90/-/7/-|Hi");
}

#[test]
fn what_is_no_text_makes_a_call_malformed() {
    let lone = completed(
        r#"{"type":"function_call","call_id":"a","name":"Read","arguments":"{\"a\":\"\ud800\"}"}"#,
    );
    check(
        &[&lone],
        "Complete | a Read{\"a\":\"\u{fffd}\"}\u{fffd}|completed||<Read>",
    );
}

#[test]
fn items_without_end_are_stopped() {
    let item = format!("data: {SAID}\n\n").replace("msg_1", "");
    let item = item.replace(r#""output_index":0,"#, "");
    let body = item.repeat(5000);
    let (reply, _) = read(body.as_bytes(), body.len());
    assert_eq!(
        show(reply, ""),
        "permanent the reply is larger than 67108864 bytes or 4096 items"
    );
}

#[test]
fn what_was_counted_before_a_failure_is_known() {
    let failed = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"},"usage":{"input_tokens":90,"output_tokens":7}}}"#;
    let body = format!("data: {failed}\n\n");
    let fault = read(body.as_bytes(), 7).0.unwrap_err();
    let usage = fault.usage.unwrap();
    assert_eq!((usage.input, usage.output), (Some(90), Some(7)));
}
