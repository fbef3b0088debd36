//! Whole bodies, and what makes one unsound.

use super::*;

#[test]
fn a_body_is_compact_and_in_order() {
    let mut draft = Draft::default();
    draft.user(Speaker::Task, "„Hi“\n");
    assert_eq!(oracle::body(draft.entries()), None);
    assert!(!oracle::may_ask(draft.entries()));
    let head = concat!(
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"#,
        r#""max_completion_tokens":100,"temperature":0.5,"reasoning_effort":"low","#,
        r#""tools":[{"type":"function","function":{"name":"Read","description":"It is Read.","#,
        r#""parameters":{"type": "object","minProperties":1.0}}}],"#,
        r#""messages":[{"role":"system","content":"Be good."},{"role":"user","content":"„Hi“\n"}"#,
    );
    draft.push(setup(Profile::default()));
    check_body(&draft, &format!("{head}]}}"));

    let request = draft.request(Purpose::Round);
    let reasoned = |field: &str, text: &str| Reasoning::Text {
        field: field.to_owned(),
        text: text.to_owned(),
    };
    let called = |arguments: &str, extra: Option<&str>| ToolCall {
        name: "Read".to_owned(),
        arguments: arguments.to_owned(),
        extra: extra.map(str::to_owned),
        ..ToolCall::default()
    };
    let response = draft.push(Event::Response(Response {
        reasoning: vec![
            reasoned("b", "1"),
            Reasoning::raw("{}"),
            reasoned("a", "2"),
            reasoned("content", "no"),
            reasoned("b", "3"),
        ],
        calls: vec![
            called(
                " {\"path\":\"a\"}",
                Some(r#"{"id":1, "sig": [1, 2.0],"index":0}"#),
            ),
            called("[]", Some("[]")),
        ],
        ..reply(request)
    }));
    for (place, content) in [(2, "zwei"), (1, "")] {
        assert!(!oracle::may_ask(draft.entries()));
        draft.result(CallId::new(response, place), Status::Ok, content);
    }
    let calls = concat!(
        r#""tool_calls":[{"id":"call_4_1","type":"function","#,
        r#""function":{"name":"Read","arguments":" {\"path\":\"a\"}"},"sig":[1, 2.0]},"#,
        r#"{"id":"call_4_2","type":"function","function":{"name":"Read","arguments":"{}"}}]},"#,
        r#"{"role":"tool","tool_call_id":"call_4_1","content":""},"#,
        r#"{"role":"tool","tool_call_id":"call_4_2","content":"zwei"}]}"#,
    );
    let body = format!(r#"{head},{{"role":"assistant","b":"13","a":"2",{calls}"#);
    check_body(&draft, &body);

    let mut bare = Profile::default();
    bare.reasoning.send_back = undertext::setup::SendBack::Never;
    bare.messages.empty_content = undertext::setup::EmptyContent::Null;
    bare.parameters.stream_usage = false;
    bare.parameters.max_output_tokens = "max_tokens".to_owned();
    draft.push(setup(bare));
    let body = body
        .replace(r#""stream_options":{"include_usage":true},"#, "")
        .replace("max_completion_tokens", "max_tokens")
        .replace(
            r#""role":"assistant","b":"13","a":"2","#,
            r#""role":"assistant","content":null,"#,
        );
    check_body(&draft, &body);

    draft.overlay(Layer::Stub(Stub {
        arguments: vec![call(4, 1)],
        ..Stub::default()
    }));
    let body = body.replace(r#"" {\"path\":\"a\"}"},"sig":[1, 2.0]"#, r#""{}"}"#);
    check_body(&draft, &body);
}

#[test]
fn signed_blocks_are_for_the_model_that_made_them() {
    let with = |change: fn(&mut undertext::setup::Model)| {
        let mut event = setup(Profile::default());
        if let Event::Setup(setup) = &mut event {
            change(&mut setup.wire.models.main);
            setup.wire.tools.clear();
            setup.wire.instructions.clear();
        }
        event
    };
    let listed = |raw: &str| Reasoning::Raw {
        raw: raw.to_owned(),
        field: Some("reasoning_details".to_owned()),
        after: None,
    };
    let mut draft = Draft::default();
    draft.push(with(|_| {}));
    draft.user(Speaker::Task, "Go.");
    let request = draft.request(Purpose::Round);
    let response = draft.push(Event::Response(Response {
        reasoning: vec![
            listed(r#"{"signature": "s/="}"#),
            Reasoning::Text {
                field: "reasoning".to_owned(),
                text: "Hm.".to_owned(),
            },
            listed("{}"),
        ],
        calls: vec![ToolCall {
            name: "Read".to_owned(),
            arguments: "{}".to_owned(),
            extra: Some(r#"{"thought_signature":"t"}"#.to_owned()),
            ..ToolCall::default()
        }],
        ..reply(request)
    }));
    draft.result(CallId::new(response, 1), Status::Ok, "x");
    let body = |list: &str, signature: &str| {
        [
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"#,
            r#""max_completion_tokens":100,"temperature":0.5,"reasoning_effort":"low","#,
            r#""messages":[{"role":"user","content":"Go."},{"role":"assistant","#,
            list,
            r#""reasoning":"Hm.","tool_calls":[{"id":"call_4_1","type":"function","#,
            r#""function":{"name":"Read","arguments":"{}"}"#,
            signature,
            r#"}]},{"role":"tool","tool_call_id":"call_4_1","content":"x"}]}"#,
        ]
        .concat()
    };
    let whole = body(
        r#""reasoning_details":[{"signature": "s/="},{}],"#,
        r#","thought_signature":"t""#,
    );
    let bare = body("", "");
    check_body(&draft, &whole);
    // A window that was learned changes nothing; another server, another model do.
    draft.push(with(|model| model.window = Some(9000)));
    check_body(&draft, &whole);
    draft.push(with(|model| model.server = Some("https://b".to_owned())));
    check_body(&draft, &bare);
    draft.push(with(|_| {}));
    check_body(&draft, &whole);
    draft.push(with(|model| model.name = "n".to_owned()));
    check_body(&draft, &bare.replace(r#""model":"m""#, r#""model":"n""#));
    draft.push(with(|model| model.profile.name = "other".to_owned()));
    check_body(&draft, &bare);
}

#[test]
fn an_unsound_body_is_refused() {
    let asked = r#"{"role":"assistant","tool_calls":[{"id":"call_4_1","type":"function","function":{"name":"Read","arguments":"{}"}}]}"#;
    let answer = r#"{"role":"tool","tool_call_id":"call_4_1","content":"x"}"#;
    let user = r#"{"role":"user","content":"x"}"#;
    let says = r#"{"role":"assistant","content":"x"}"#;
    let judged = |messages: &[&str]| {
        oracle::pairing(
            format!(r#"{{"model":"m","messages":[{}]}}"#, messages.join(",")).as_bytes(),
        )
    };
    for sound in [&[user][..], &[user, asked, answer], &[user, says, user]] {
        assert_eq!(judged(sound), Ok(()), "{sound:?}");
    }
    let other = answer.replace("4_1", "4_2");
    let empty = r#"{"role":"assistant","content":""}"#;
    let broken = asked.replace("{}", "[]");
    let unsound = [
        &[][..],
        &[user, says],
        &[user, asked],
        &[user, answer],
        &[user, asked, user],
        &[user, asked, user, answer],
        &[user, asked, answer, answer],
        &[user, asked, &other],
        &[user, asked, answer, asked, answer],
        &[user, empty, user],
        &[user, &broken, answer],
        &[user, r#"{"role":"system","content":"x"}"#, user],
        &[user, r#"{"role":"nobody","content":"x"}"#],
    ];
    for messages in unsound {
        assert!(judged(messages).is_err(), "{messages:?}");
    }
    for body in [r#"{"messages":[],"model":"m"}"#, "{}", "\u{fffd}"] {
        assert!(oracle::pairing(body.as_bytes()).is_err(), "{body}");
    }
    assert!(oracle::pairing(b"{\"model\":\"\xff\"}").is_err());
}
