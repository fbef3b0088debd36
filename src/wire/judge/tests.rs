//! What the judge refuses, a case a line.

use super::*;
use crate::setup::{EmptyContent, MessageOrder};

fn model(api: Api) -> Model {
    Model {
        api,
        ..Model::named("m")
    }
}

fn check(model: &Model, members: &str, expected: &str) {
    let body = format!(r#"{{"model":"m",{members}}}"#);
    let judged = judge(body.as_bytes(), model)
        .map_or_else(|unsound| unsound.to_string(), |()| "sound".into());
    assert_eq!(judged, expected, "{members}");
}

const CALL: &str = r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{}"}}]}"#;
const RESULT: &str = r#"{"role":"tool","tool_call_id":"c1","content":""}"#;
const USER: &str = r#"{"role":"user","content":"a"}"#;
const SAID: &str = r#"{"role":"assistant","content":"b"}"#;

#[test]
fn messages_are_judged() {
    let model = model(Api::Chat);
    let changed = |from: &str, to: &str| CALL.replace(from, to);
    for (messages, expected) in [
        (&[USER, CALL, RESULT][..], "sound"),
        (
            &[r#"{"role":"system","content":"s"}"#, USER, USER, SAID, USER],
            "sound",
        ),
        (&[], "messages: are missing"),
        (&[r#"{"role":"user","content":""}"#], "messages 0: is empty"),
        (
            &[r#"{"role":"other","content":"a"}"#],
            "messages 0: is of no role that may stand here",
        ),
        (
            &[USER, r#"{"role":"system","content":"s"}"#],
            "messages 1: is of no role that may stand here",
        ),
        (
            &[USER, CALL],
            "messages: end with something that asks for no answer",
        ),
        (
            &[USER, SAID],
            "messages: end with something that asks for no answer",
        ),
        (
            &[USER, CALL, USER],
            "messages 2: stands where a result is awaited",
        ),
        (
            &[USER, CALL, RESULT, RESULT],
            "messages 3: is not the result that is awaited here",
        ),
        (
            &[USER, RESULT],
            "messages 1: is not the result that is awaited here",
        ),
        (
            &[USER, CALL, RESULT, CALL],
            "messages 3: is a call with the id of another",
        ),
        (&[USER, r#"{"role":"assistant"}"#], "messages 1: is empty"),
        (
            &[USER, r#"{"role":"assistant","content":""}"#],
            "messages 1: is empty",
        ),
        (
            &[
                USER,
                r#"{"role":"assistant","content":"a","tool_calls":[]}"#,
            ],
            "messages 1: has a list of calls without calls",
        ),
        (
            &[USER, &changed("\"c1\"", &format!("\"{}\"", "c".repeat(41)))],
            "messages 1: is a call whose id has another form than the provider takes",
        ),
        (
            &[USER, &changed("Read", "Re.ad")],
            "messages 1: is a call of a name that is refused",
        ),
        (
            &[USER, &changed("{}", "[]")],
            "messages 1: is a call whose arguments are not one object",
        ),
        (
            &[USER, &changed("\"function\",", "\"other\",")],
            "messages 1: holds a call that is no function's",
        ),
        (
            &[r#"{"role":"user","role":"user","content":"a"}"#],
            "the body is no JSON",
        ),
    ] {
        check(
            &model,
            &format!(r#""messages":[{}]"#, messages.join(",")),
            expected,
        );
    }
    check(
        &model,
        r#""messages":[],"stream":true"#,
        "messages: do not stand last",
    );
    assert!(judge(b"{\"model\":\"\xff\"}", &model).is_err());
}

#[test]
fn a_profile_says_what_else_is_refused() {
    let mut strict = model(Api::Chat);
    strict.profile.messages.order = MessageOrder::Alternate;
    strict.profile.messages.user_after_tool = false;
    strict.profile.messages.empty_content = EmptyContent::Null;
    strict.profile.parameters.leave_out = vec!["temperature".into()];
    let null = CALL.replace("\"tool_calls\"", "\"content\":null,\"tool_calls\"");
    for (messages, expected) in [
        (&[USER, SAID, USER][..], "sound"),
        (&[USER, &null, RESULT], "sound"),
        (&[USER, USER], "messages 1: does not take turns"),
        (&[SAID, USER], "messages 0: does not take turns"),
        (&[USER, SAID, SAID], "messages 2: does not take turns"),
        (
            &[USER, &null, RESULT, USER],
            "messages 3: is a user's after a result",
        ),
        (
            &[USER, CALL, RESULT],
            "messages 1: has another empty content than the provider takes",
        ),
    ] {
        check(
            &strict,
            &format!(r#""messages":[{}]"#, messages.join(",")),
            expected,
        );
    }
    check(
        &strict,
        r#""temperature":1,"messages":[]"#,
        "temperature: is a parameter that the provider does not take",
    );
    let mut nine = model(Api::Chat);
    nine.profile.calls.ids = CallIds::Nine;
    for (id, expected) in [
        ("abcDEF123", "sound"),
        (
            "abc_EF123",
            "messages 1: is a call whose id has another form than the provider takes",
        ),
        (
            "abc",
            "messages 1: is a call whose id has another form than the provider takes",
        ),
    ] {
        let messages = [USER, CALL, RESULT].join(",").replace("c1", id);
        check(&nine, &format!(r#""messages":[{messages}]"#), expected);
    }
}

#[test]
fn tools_are_judged() {
    let plain = model(Api::Chat);
    let mut picky = plain.clone();
    picky.profile.tools.schema = SchemaForm::Plain;
    picky.profile.tools.max = 1;
    let tool = |name: &str, schema: &str| {
        format!(
            r#"{{"type":"function","function":{{"name":"{name}","description":"","parameters":{schema}}}}}"#
        )
    };
    let (one, long) = (tool("a", "{}"), tool(&"a".repeat(65), "{}"));
    let of = |schema| tool("a", schema);
    for (model, tools, expected) in [
        (
            &plain,
            format!("{one},{}", tool("b", r#"{"$ref":"x"}"#)),
            "sound",
        ),
        (&plain, String::new(), "tools: are an empty list"),
        (
            &plain,
            format!("{one},{one}"),
            "tools 1: has the name of another",
        ),
        (&plain, long, "tools 0: has a name that is refused"),
        (
            &plain,
            tool("a.b", "{}"),
            "tools 0: has a name that is refused",
        ),
        (
            &plain,
            of("[]"),
            "tools 0: has parameters that are no object",
        ),
        (
            &picky,
            format!("{one},{}", tool("b", "{}")),
            "tools: are too many",
        ),
        (
            &picky,
            of(r#"{"properties":{"const":{"anyOf":[{"type":"string"}]}}}"#),
            "sound",
        ),
        (
            &picky,
            of(r#"{"properties":{"a":{"$ref":"x"}}}"#),
            "tools 0: has a schema with references",
        ),
        (
            &picky,
            of(r#"{"items":{"const":1}}"#),
            "tools 0: has a schema with a keyword that is refused",
        ),
        (
            &picky,
            of(r#"{"type":["string","null"]}"#),
            "tools 0: has a schema with several types",
        ),
        (
            &picky,
            of(r#"{"anyOf":[],"type":"string"}"#),
            "tools 0: has a schema with alternatives beside a type",
        ),
        (
            &picky,
            of(r#"{"anyOf":[{"type":"array"}]}"#),
            "tools 0: has a list without items",
        ),
    ] {
        check(
            model,
            &format!(r#""tools":[{tools}],"messages":[{USER}]"#),
            expected,
        );
    }
}

#[test]
fn items_are_judged() {
    let model = model(Api::Responses);
    let call = |id: &str| {
        format!(r#"{{"type":"function_call","call_id":"{id}","name":"Read","arguments":"{{}}"}}"#)
    };
    let output =
        |id: &str| format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"x"}}"#);
    let (one, two) = (call("1"), call("2"));
    let (first, second) = (output("1"), output("2"));
    let thought = r#"{"type":"reasoning","encrypted_content":"x"}"#;
    let parts =
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}"#;
    for (items, expected) in [
        (
            &[USER, thought, &one, thought, &two, &first, &second][..],
            "sound",
        ),
        (&[USER, parts, &one, &first], "sound"),
        (
            &[USER, &one, &two, &first],
            "input: ends with something that asks for no answer",
        ),
        (
            &[USER, &one, &two, &first, thought],
            "input 4: stands where a result is awaited",
        ),
        (
            &[USER, &one, USER],
            "input 2: stands where a result is awaited",
        ),
        (
            &[USER, &one, &two, &second],
            "input 3: is not the result that is awaited here",
        ),
        (
            &[USER, &one, &first, &one],
            "input 3: is a call with the id of another",
        ),
        (
            &[USER, thought],
            "input: ends with something that asks for no answer",
        ),
        (&[r#"{"role":"user","content":[]}"#], "input 0: is empty"),
        (&["1"], "input 0: is no object"),
    ] {
        check(
            &model,
            &format!(r#""input":[{}]"#, items.join(",")),
            expected,
        );
    }
}

#[test]
fn a_shape_is_that_of_all_bodies_that_differ_in_words_alone() {
    let body = |words: &str, more: &str| {
        let body = format!(r#"{{"model":"{words}","max":1,"messages":[{USER}{more}]}}"#);
        shape(body.as_bytes()).unwrap()
    };
    assert_eq!(
        body("m", ""),
        "{model:text,max:number,messages:[{role:user,content:text,}],}"
    );
    assert_eq!(body("m", ""), body("n", &format!(",{USER}")));
    assert_ne!(body("m", ""), body("m", &format!(",{SAID}")));
    assert_eq!(shape(b"{"), None);
}
