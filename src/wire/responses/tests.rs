//! Messages as items.

use std::borrow::Cow;

use super::*;
use crate::exchange::{Reasoning, SentCall};
use crate::id::{CallId, EntryId};

const THOUGHT: &str =
    r#"{"type":"reasoning", "id":"rs_1","summary":[],"encrypted_content":"Zm/="}"#;

fn assistant(
    text: &'static str,
    reasoning: &[(&str, Option<u32>)],
    calls: &[(u32, &'static str, &'static str, Option<&'static str>)],
    extra: Option<&'static str>,
) -> Message<'static> {
    let raw = |(raw, after): &(&str, Option<u32>)| Reasoning::Raw {
        raw: (*raw).to_owned(),
        field: None,
        after: *after,
    };
    let call = |(place, name, arguments, extra): &(u32, &'static str, _, Option<_>)| SentCall {
        id: CallId::new(EntryId(17), *place),
        name: Cow::Borrowed(*name),
        arguments: Cow::Borrowed(*arguments),
        extra: extra.map(Cow::Borrowed),
    };
    Message::Assistant {
        text: Cow::Borrowed(text),
        reasoning: Cow::Owned(reasoning.iter().map(raw).collect()),
        calls: calls.iter().map(call).collect(),
        extra: extra.map(Cow::Borrowed),
    }
}

/// The items of a message, a line each.
fn check(message: &Message<'_>, items: &[&str]) {
    let mut out = b"[".to_vec();
    super::message(&mut out, message, &Profile::default());
    out.push(b']');
    let written: Vec<Box<serde_json::value::RawValue>> = serde_json::from_slice(&out).unwrap();
    let written: Vec<&str> = written.iter().map(|item| item.get()).collect();
    assert_eq!(written, items);
}

#[test]
fn messages_are_items() {
    let text = "a \"b\"\n".into();
    check(
        &Message::User { text },
        &[r#"{"type":"message","role":"user","content":"a \"b\"\n"}"#],
    );
    let call = CallId::new(EntryId(5), 1);
    let text = "ok".into();
    check(
        &Message::Tool { call, text },
        &[r#"{"type":"function_call_output","call_id":"call_5_1","output":"ok"}"#],
    );
    check(
        &assistant("Hi", &[], &[], None),
        &[r#"{"type":"message","role":"assistant","content":"Hi"}"#],
    );
}

const CALL: &str =
    r#"{"type":"function_call","call_id":"call_17_1","name":"Read","arguments":"{\"path\": 1}"}"#;
const EXTRA: Option<&str> = Some(r#"{"id":"msg_1","phase":"commentary"}"#);

#[test]
fn reasoning_goes_back_as_it_came_with_what_followed_it() {
    let read = (1, "Read", "{\"path\": 1}", None);
    let whole = concat!(
        r#"{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":"#,
        r#"[{"type":"output_text","text":"So","annotations":[]}],"phase":"commentary"}"#
    );
    let plain = r#"{"type":"message","role":"assistant","content":"So","phase":"commentary"}"#;
    check(
        &assistant("So", &[(THOUGHT, None)], &[read], EXTRA),
        &[THOUGHT, whole, CALL],
    );
    // Without its reasoning a message has no id, and the provider misses nothing.
    check(&assistant("So", &[], &[read], EXTRA), &[plain, CALL]);
    // What nobody could know goes back no more: stored reasoning, and such as nothing follows.
    let stored =
        r#"{"type":"reasoning","id":"rs_1","summary":[{"text":"x"}],"encrypted_content":null}"#;
    check(
        &assistant(
            "So",
            &[(stored, None), ("{}", None), ("x", None)],
            &[read],
            EXTRA,
        ),
        &[plain, CALL],
    );
    check(
        &assistant("So", &[(THOUGHT, Some(1))], &[], None),
        &[r#"{"type":"message","role":"assistant","content":"So"}"#],
    );
    // An open model's reasoning is known by its text; a search of the provider's is an item as well.
    let open = r#"{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"t"}]}"#;
    let search = r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#;
    let second = (2, "Read", "{}", None);
    check(
        &assistant(
            "",
            &[(open, None), (search, Some(1))],
            &[read, second],
            None,
        ),
        &[
            open,
            CALL,
            search,
            r#"{"type":"function_call","call_id":"call_17_2","name":"Read","arguments":"{}"}"#,
        ],
    );
}

#[test]
fn several_messages_stand_where_they_stood() {
    let several = concat!(
        r#"{"messages":[{"bytes":2,"reasoning":1,"calls":0,"item":{"id":"msg_1","phase":"commentary"}},"#,
        r#"{"bytes":4,"reasoning":2,"calls":1,"item":{"id":"msg_2"}}]}"#
    );
    let second = r#"{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"b"}"#;
    let said = |id: &str, text: &str, more: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","status":"completed","role":"assistant","content":[{{"type":"output_text","text":"{text}","annotations":[]}}]{more}}}"#
        )
    };
    let read = (1, "Read", "{\"path\": 1}", None);
    check(
        &assistant(
            "So\n\nthen",
            &[(THOUGHT, None), (second, None)],
            &[read],
            Some(several),
        ),
        &[
            THOUGHT,
            &said("msg_1", "So", r#","phase":"commentary""#),
            second,
            CALL,
            &said("msg_2", "then", ""),
        ],
    );
    // A text that is not theirs stands as one.
    check(
        &assistant("Sothen", &[], &[read], Some(several)),
        &[
            r#"{"type":"message","role":"assistant","content":"Sothen"}"#,
            CALL,
        ],
    );
}

#[test]
fn calls_go_back_in_a_form_that_is_taken() {
    let call = |name: &'static str, arguments: &'static str, extra| {
        assistant("", &[], &[(1, name, arguments, extra)], None)
    };
    let sent = |name: &str, more: &str| {
        format!(
            r#"{{"type":"function_call","call_id":"call_17_1","name":"{name}","arguments":"{{}}"{more}}}"#
        )
    };
    for (arguments, extra, more) in [
        ("", None, ""),
        ("[1]", None, ""),
        ("{\"a\":", None, ""),
        (
            "{}",
            Some(r#"{"id":"fc_1","namespace":"n", "x":[1, 2.50]}"#),
            r#","namespace":"n","x":[1, 2.50]"#,
        ),
        ("{}", Some(r#"{"type":"custom_tool_call","input":"x"}"#), ""),
    ] {
        check(&call("Read", arguments, extra), &[&sent("Read", more)]);
    }
    check(
        &call("custom:Pätch", "", None),
        &[&sent("custom_P_tch", "")],
    );
    check(&call("", "", None), &[&sent("unnamed", "")]);
}
