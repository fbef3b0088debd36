//! What is sent: every body is one that the provider takes, and what it refuses is left out or told.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Task};
use undertext::compaction::by_hand::{Order, Strategy, Work};
use undertext::id::{CallId, EntryId};
use undertext::model::{Client, Endpoint, Timeouts};
use undertext::record::MemoryStorage;
use undertext::setup::{CallIds, EmptyContent, MessageOrder, Setup};
use undertext::transcript::{Entry, Event, Started, jsonl};

use super::server::{Answer, CUTS, Cut, Server};
use super::{Manner, Played, check, check_in, play, toolbox};
use crate::oracle;
use crate::scene;

/// A reply of this text.
pub(super) fn said(text: &str) -> Answer {
    let text = json!({"choices":[{"index":0,"delta":{"content":text}}]}).to_string();
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    Answer::events(&[&text, stop, "[DONE]"])
}

/// A reply of these calls.
pub(super) fn calls(calls: &[(&str, &str)]) -> Answer {
    let call = |(place, (name, arguments)): (usize, &(&str, &str))| json!({"index":place,"id":format!("id {place}"),"type":"function","function":{"name":name,"arguments":arguments}});
    let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
    let calls = json!({"choices":[{"index":0,"delta":{"tool_calls":calls}}]}).to_string();
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
    Answer::events(&[&calls, stop, "[DONE]"])
}

fn show(path: &str) -> Answer {
    let arguments = json!({"path": path, "chars": 3}).to_string();
    calls(&[("Show", &arguments)])
}

/// A manner with these settings changed.
fn manner(change: impl FnOnce(&mut Setup)) -> Manner {
    let mut manner = Manner::default();
    change(&mut manner.setup);
    manner
}

fn body(played: &Played, request: usize) -> Value {
    serde_json::from_slice(&played.received[request].body).unwrap()
}

/// The messages of a body, a line each: the role, then what it says or calls.
pub(super) fn messages(body: &Value) -> Vec<String> {
    let line = |message: &Value| {
        let content = match message.get("content") {
            None => String::new(),
            Some(content) => format!(" {content}"),
        };
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls: String = calls
            .map(|call| {
                format!(
                    " <{} {}>",
                    call["id"].as_str().unwrap(),
                    call["function"]["name"].as_str().unwrap()
                )
            })
            .collect();
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        let role = message["role"].as_str().unwrap();
        format!(
            "{role}{}{id}{content}{calls}",
            if id.is_empty() { "" } else { " " }
        )
    };
    body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(line)
        .collect()
}

/// Settings without anything particular.
fn plain() -> Setup {
    Manner::default().setup
}

/// Goes on with a run in this storage, with or without another task; the bodies that were sent.
fn go_on(
    storage: &MemoryStorage,
    answers: &[Answer],
    cut: Cut,
    setup: Setup,
    task: Option<&str>,
    order: Option<&Order>,
) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut recorder = scene::open(storage);
    runtime.block_on(async {
        let server = Server::start(answers, cut).await;
        let endpoint = Endpoint {
            base_url: server.url.clone(),
            api_key: None,
            headers: Vec::new(),
        };
        let client = Client::new(endpoint, Timeouts::default()).unwrap();
        let ledger = Arc::default();
        let agent = Agent::new(setup, Arc::new(client), toolbox(&ledger));
        let cancel = CancellationToken::new();
        if let Some(order) = order {
            agent
                .compact_by_hand(&mut recorder, order, &cancel)
                .await
                .unwrap();
        }
        agent
            .run(&mut recorder, task.map(Task::new), &cancel)
            .await
            .unwrap();
        let bodies = server.received().into_iter().map(|received| {
            assert_eq!(oracle::pairing(&received.body), Ok(()));
            serde_json::from_slice(&received.body).unwrap()
        });
        bodies.collect()
    })
}

#[test]
fn case_47_a_call_without_a_result_is_answered_before_anything_is_sent() {
    let change = json!({"path": "a", "chars": 3}).to_string();
    for cut in CUTS {
        let script = [
            calls(&[("Change", &change), ("Change", &change)]),
            said("Done."),
        ];
        let played = play(&script, cut, &Manner::default());
        // The run was killed while the first of the two was at work.
        let mut entries = played.entries();
        entries.truncate(5);
        entries.push(Arc::new(Entry {
            id: EntryId(6),
            at: scene::BEGIN,
            event: Event::Started(Started {
                call: CallId::new(EntryId(5), 1),
            }),
        }));
        let lines = entries
            .iter()
            .flat_map(|entry| jsonl::encode(entry).unwrap());
        let storage = MemoryStorage::with(lines.collect());
        let bodies = go_on(&storage, &[said("So be it.")], cut, plain(), None, None);
        let read = messages(&bodies[0]);
        assert_eq!(
            read[2..],
            [
                "assistant <call_5_1 Change> <call_5_2 Change>",
                "tool call_5_1 \"interrupted, effect unknown\"",
                "tool call_5_2 \"a s\""
            ]
        );
        let strip = Order::new(Work::Strategies(vec![Strategy::StripTools]));
        let bodies = go_on(
            &storage,
            &[said("Yes.")],
            cut,
            plain(),
            Some("And now?"),
            Some(&strip),
        );
        assert_eq!(
            messages(&bodies[0])[2..],
            [
                "assistant <call_5_1 Change> <call_5_2 Change>",
                "tool call_5_1 \"interrupted, effect unknown\"",
                "tool call_5_2 \"a s\"",
                "assistant \"So be it.\"",
                "user \"And now?\""
            ]
        );
    }
}

#[test]
fn case_48_neighbours_are_merged_where_the_provider_wants_turns() {
    let strict = manner(|setup| {
        let profile = &mut setup.wire.models.main.profile.messages;
        profile.order = MessageOrder::Alternate;
        profile.user_after_tool = false;
        setup.policy.limits.rounds = Some(5);
    });
    // Rounds are nearly used up when the fourth begins, so the runtime speaks after a result.
    let script = [show("a"), show("b"), show("c"), show("d"), said("Done.")];
    for cut in CUTS {
        let played = play(&script, cut, &strict);
        let read = messages(&body(&played, 4));
        insta::allow_duplicates!(insta::assert_snapshot!(read.join("\n"), @r#"
        system "You are a careful worker."
        user "Go."
        assistant <call_5_1 Show>
        tool call_5_1 "a s"
        assistant <call_8_1 Show>
        tool call_8_1 "b s"
        assistant <call_11_1 Show>
        tool call_11_1 "c s"
        assistant <call_14_1 Show>
        tool call_14_1 "d s\n\n[undertext: this is no part of the result, it was said after it]\n[undertext, not the user] 4 of 5 rounds are used. Bring the work to a good end before the limit ends the run."
        "#));
    }
}

/// A reply of thoughts alone is no message, so what the runtime says to it meets the task.
#[test]
fn case_48_what_two_speakers_say_in_a_row_is_one_message_where_roles_take_turns() {
    let thought = r#"{"choices":[{"index":0,"delta":{"reasoning":"Hm."},"finish_reason":"stop"}]}"#;
    let script = [Answer::events(&[thought, "[DONE]"]), said("Done.")];
    for (order, roles) in [
        (MessageOrder::Any, &["system", "user", "user"][..]),
        (MessageOrder::Alternate, &["system", "user"]),
    ] {
        let manner = manner(|setup| setup.wire.models.main.profile.messages.order = order);
        for cut in CUTS {
            let played = play(&script, cut, &manner);
            let body = body(&played, 1);
            let sent = body["messages"].as_array().unwrap().iter();
            let sent: Vec<&str> = sent
                .filter_map(|message| message["role"].as_str())
                .collect();
            assert_eq!(sent, roles, "{cut:?}");
            let last = messages(&body).pop().unwrap();
            assert!(last.contains(undertext::words::EMPTY), "{last}");
        }
    }
}

#[test]
fn case_49_an_assistant_without_text_has_the_content_that_the_provider_takes() {
    for (empty, expected) in [
        (EmptyContent::Omit, "assistant <call_5_1 Show>"),
        (EmptyContent::Null, "assistant null <call_5_1 Show>"),
        (EmptyContent::Empty, "assistant \"\" <call_5_1 Show>"),
    ] {
        let manner = manner(|setup| setup.wire.models.main.profile.messages.empty_content = empty);
        for cut in CUTS {
            let played = play(&[show("a"), said("Done.")], cut, &manner);
            assert_eq!(messages(&body(&played, 1))[2], expected);
        }
    }
}

#[test]
fn case_50_ids_are_of_the_form_that_the_provider_takes_also_when_the_run_goes_on() {
    for (ids, [one, other]) in [
        (CallIds::Plain, ["call_5_1", "call_8_1"]),
        (CallIds::Nine, ["000005001", "000008001"]),
    ] {
        let manner = manner(|setup| setup.wire.models.main.profile.calls.ids = ids);
        for cut in CUTS {
            // Both replies call their calls `id 0`.
            let played = play(&[show("a"), show("b"), said("Done.")], cut, &manner);
            let read = messages(&body(&played, 2));
            assert_eq!(
                read[2..],
                [
                    format!("assistant <{one} Show>"),
                    format!("tool {one} \"a s\""),
                    format!("assistant <{other} Show>"),
                    format!("tool {other} \"b s\"")
                ]
            );
            let begun = messages(&body(&played, 1));
            assert_eq!(begun[..], read[..begun.len()]);
            let setup = manner.setup.clone();
            let bodies = go_on(
                &played.storage,
                &[said("Yes.")],
                cut,
                setup,
                Some("And now?"),
                None,
            );
            assert_eq!(messages(&bodies[0])[..read.len()], read);
        }
    }
}

const UNSUPPORTED: &str = r#"{"error":{"message":"Unsupported parameter: 'max_completion_tokens' is not supported with this model.","type":"invalid_request_error","param":"max_completion_tokens","code":"unsupported_parameter"}}"#;
const VALUE: &str = r#"{"error":{"message":"temperature does not support 0.2 with this model. Only the default (1) value is supported."}}"#;
const UNKNOWN: &str = r#"{"error":{"message":"Unrecognized request argument supplied: top_k"}}"#;

#[test]
fn case_53_a_parameter_that_is_not_taken_is_left_out_and_the_round_asked_once_more() {
    let warm = manner(|setup| {
        let model = &mut setup.wire.models.main;
        model.parameters.temperature = Some(0.2);
        model.parameters.max_output_tokens = Some(500);
    });
    let answers = [
        Answer::json(400, UNSUPPORTED),
        Answer::json(400, VALUE),
        said("Done."),
    ];
    check_in(
        53,
        "two, one after the other",
        &warm,
        &answers,
        "
        failed, permanent: Unsupported parameter: 'max_completion_tokens' is not supported with this model.
        warning: the provider does not take `max_completion_tokens`; it is left out from here on
        failed, permanent: temperature does not support 0.2 with this model. Only the default (1) value is supported.
        warning: the provider does not take `temperature`; it is left out from here on
        Complete stop: Done.
        end, finished: Done.
        requests 3",
    );
    for cut in CUTS {
        let played = play(&answers, cut, &warm);
        let sent = |request: usize| {
            let body = body(&played, request);
            ["max_completion_tokens", "max_tokens", "temperature"]
                .map(|name| body[name].to_string())
        };
        assert_eq!(sent(0), ["500", "null", "0.2"]);
        assert_eq!(sent(1), ["null", "500", "0.2"]);
        assert_eq!(sent(2), ["null", "500", "null"]);
        // What was learned holds when the run goes on.
        let bodies = go_on(
            &played.storage,
            &[said("Yes.")],
            cut,
            plain(),
            Some("And now?"),
            None,
        );
        assert_eq!((&bodies[0]["temperature"], bodies.len()), (&Value::Null, 1));
    }

    check_in(
        53,
        "refused again though it is left out, or never sent",
        &warm,
        &[Answer::json(400, VALUE), Answer::json(400, VALUE)],
        "
        failed, permanent: temperature does not support 0.2 with this model. Only the default (1) value is supported.
        warning: the provider does not take `temperature`; it is left out from here on
        failed, permanent: temperature does not support 0.2 with this model. Only the default (1) value is supported.
        end, provider: the provider failed for good: temperature does not support 0.2 with this model. Only the default (1) value is supported.; resume to go on
        requests 2",
    );
    check(
        53,
        "not sent at all",
        &[Answer::json(400, UNKNOWN)],
        "
        failed, permanent: Unrecognized request argument supplied: top_k
        end, provider: the provider failed for good: Unrecognized request argument supplied: top_k; resume to go on
        requests 1",
    );
}

#[test]
fn case_54_a_server_without_tools_ends_the_run_at_once_and_says_what_to_do() {
    let advice = "this model or server takes no tools, and all work here is done by tools: choose \
                  another model, or start the server with tools on (vLLM: --enable-auto-tool-choice \
                  --tool-call-parser NAME; llama-server: --jinja)";
    for (status, message) in [
        (400, "gemma:2b does not support tools"),
        (404, "No endpoints found that support tool use."),
        (500, "tools param requires --jinja flag"),
    ] {
        let answer = json!({"error": {"message": message}}).to_string();
        check(
            54,
            message,
            &[Answer::json(status, &answer)],
            &format!(
                "failed, permanent: {message}; {advice}
                 end, provider: the provider failed for good: {message}; {advice}; resume to go on
                 requests 1"
            ),
        );
    }
}

const REFUSED: &str = r#"{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=Show>{\"path\": }</function>"}}"#;

#[test]
fn case_55_a_call_that_the_server_refuses_is_told_to_the_model_twice_at_most() {
    let refused = || Answer::json(400, REFUSED);
    let told = "told: [undertext, not the user] The server did not take the call in your last reply, \
                so nothing ran. It says: Failed to call a function. You wrote:";
    for cut in CUTS {
        let played = play(
            &[refused(), refused(), show("a"), refused(), said("Done.")],
            cut,
            &Manner::default(),
        );
        let lines: Vec<String> = played.told().lines().map(str::to_owned).collect();
        assert_eq!(
            lines.iter().filter(|line| *line == told).count(),
            3,
            "{lines:?}"
        );
        let wrote = "<function=Show>{\"path\": }</function>";
        assert_eq!(lines.iter().filter(|line| *line == wrote).count(), 3);
        assert!(
            lines.contains(&"end, finished: Done.".to_owned()),
            "{lines:?}"
        );
        assert_eq!(played.ran, ["Show a"]);
        let played = play(&[refused(), refused(), refused()], cut, &Manner::default());
        let told = played.told();
        assert!(
            told.ends_with("end, provider: the provider failed for good: Failed to call a function.; resume to go on\nrequests 3\n"),
            "{told}"
        );
    }
    let malformed = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"function_call_filter: MALFORMED_FUNCTION_CALL"}]}"#;
    check(
        55,
        "a finish reason",
        &[Answer::events(&[malformed, "[DONE]"]), said("Done.")],
        "
        failed, permanent: the provider ended the reply with `function_call_filter: MALFORMED_FUNCTION_CALL`
        told: [undertext, not the user] The server did not take the call in your last reply, so nothing ran. It says: the provider ended the reply with `function_call_filter: MALFORMED_FUNCTION_CALL` Make the call again, as a tool call with one JSON object that fits the tool's schema.
        Complete stop: Done.
        end, finished: Done.
        requests 2",
    );
}

#[test]
fn case_56_whatever_text_there_is_the_body_is_json() {
    let texts = [
        "quotes \" and \\ and / and \u{8}\u{c}\n\r\t",
        "nul \u{0} bell \u{7} escape \u{1b}[31m delete \u{7f}",
        "lines \u{2028}\u{2029}\u{85} mark \u{feff} bidi \u{202e}\u{2066}",
        "not a character \u{fffe}\u{10ffff} 👩\u{200d}💻 e\u{301}",
        "</script><!-- ]]> ${x} {{y}} %s",
        "\"}]}",
    ];
    for cut in CUTS {
        let mut answers: Vec<Answer> = Vec::new();
        for text in texts {
            let good = json!({"path": text, "chars": 200, }).to_string();
            answers.push(calls(&[("Show", &good)]));
            answers.push(calls(&[("Show", text), (text, "{}")]));
        }
        let surrogates = r#"{"choices":[{"index":0,"delta":{"content":"a\ud83d b\udc00","tool_calls":[{"index":0,"id":"x","function":{"name":"Show","arguments":"{\"path\":\"\ud800\"}"}}]},"finish_reason":"tool_calls"}]}"#;
        answers.push(Answer::events(&[surrogates, "[DONE]"]));
        answers.push(said("Done."));
        let mut manner = manner(|setup| setup.policy.limits.failing_calls_stop = 50);
        manner.task = "\u{0}\u{1b}\u{2028}\u{feff}\"\\";
        let played = play(&answers, cut, &manner);
        assert_eq!(played.received.len(), 14, "{}", played.told());
        for received in &played.received {
            let body: Value = serde_json::from_slice(&received.body).unwrap();
            assert_eq!(body["messages"][1]["content"], manner.task);
        }
    }
}
