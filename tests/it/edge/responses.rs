//! The Responses API: what is sent, and what becomes of what is answered.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use undertext::agent::{Agent, Task};
use undertext::model::{ApiKey, Client, End, Endpoint, Scripted, read_reply};
use undertext::record::MemoryStorage;
use undertext::replay::Replay;
use undertext::setup::{Api, Policy, Setup};
use undertext::transcript::{Event, Purpose};

use super::judged::judge;
use super::server::{Answer, CUTS, Cut, Last, Server};
use super::{Manner, check_in, play, toolbox};
use crate::scene;

/// Settings for a model that is asked in Responses.
fn setup(window: u64, policy: Policy) -> Setup {
    let mut setup = scene::setup(window, policy);
    setup.wire.models.main.api = Api::Responses;
    setup
}

fn manner() -> Manner {
    Manner {
        setup: setup(100_000, Policy::default()),
        ..Manner::default()
    }
}

fn check(case: u32, name: &str, answers: &[Answer], expected: &str) {
    check_in(case, name, &manner(), answers, expected);
}

/// A stream as the API sends it: each item begun, in two pieces where it has some, and finished.
fn stream(items: &[Value], last: &Value) -> String {
    let mut events = vec![json!({"type": "response.created", "response":
        {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}})];
    for (index, item) in items.iter().enumerate() {
        let id = &item["id"];
        let mut begun = item.clone();
        let piece = |kind: &str, text: &str| {
            json!({"type": kind, "item_id": id, "output_index": index, "content_index": 0,
                "delta": text})
        };
        let pieces = |kind: &str, text: &str| {
            let (one, other) = text.split_at(text.char_indices().nth(1).map_or(0, |(at, _)| at));
            vec![piece(kind, one), piece(kind, other)]
        };
        let between = match item["type"].as_str().unwrap() {
            "message" => {
                begun["content"] = json!([]);
                let part = &item["content"][0];
                match part["text"].as_str() {
                    Some(text) => pieces("response.output_text.delta", text),
                    None => pieces("response.refusal.delta", part["refusal"].as_str().unwrap()),
                }
            }
            "function_call" => {
                begun["arguments"] = json!("");
                let arguments = item["arguments"].as_str().unwrap();
                pieces("response.function_call_arguments.delta", arguments)
            }
            _ => Vec::new(),
        };
        begun["status"] = json!("in_progress");
        let whole =
            |kind: &str, item: &Value| json!({"type": kind, "output_index": index, "item": item});
        events.push(whole("response.output_item.added", &begun));
        events.extend(between);
        events.push(whole("response.output_item.done", item));
    }
    if !last.is_null() {
        events.push(last.clone());
    }
    let line = |event: &Value| {
        let name = event["type"].as_str().unwrap();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(line).collect()
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"id": "resp_1", "object": "response",
        "status": "completed", "model": "m-1", "output": [],
        "usage": {"input_tokens": 90, "input_tokens_details": {"cached_tokens": 80},
            "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 3}}}})
}

fn ended(event: &str, more: &Value) -> Value {
    let mut last = json!({"type": format!("response.{event}"), "response": {"status": event}});
    for (name, value) in more.as_object().unwrap() {
        last["response"][name] = value.clone();
    }
    last
}

fn whole(items: &[Value]) -> Answer {
    Answer::stream(stream(items, &completed()))
}

fn said(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
        "phase": "final_answer"})
}

fn call(n: u32, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("c_{n}"),
        "name": name, "arguments": arguments, "status": "completed"})
}

fn thought(n: u32) -> Value {
    json!({"type": "reasoning", "id": format!("rs_{n}"),
        "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "Zm/="})
}

const DONE: &str = "
    Complete completed 90/80/7: Hé 漢😀
    end, finished: Hé 漢😀";

#[test]
fn case_2_a_reply_is_whole_when_the_response_is_completed() {
    let text = || whole(&[said("Hé 漢😀")]);
    check(
        1,
        "open",
        &[text().ends(Last::Stay)],
        &format!("{DONE}\nrequests 1"),
    );
    let torn = stream(&[said("Hé 漢😀")], &Value::Null);
    check(
        2,
        "closed before it was completed",
        &[
            Answer::stream(&torn),
            Answer::stream(torn.clone() + "data: {\"ty"),
            text(),
        ],
        &format!(
            "retried, torn: the connection was closed before the reply was whole
             retried, torn: the connection was closed before the reply was whole
             {DONE}
             requests 3"
        ),
    );
    let document = json!({"object": "response", "status": "completed", "output": [said("Hé")]});
    check(
        9,
        "a document",
        &[Answer::json(200, &document.to_string())],
        "Complete completed: Hé
         end, finished: Hé
         requests 1",
    );
    let chat = r#"{"choices":[{"index":0,"delta":{"content":"Hé"}}]}"#;
    check(
        9,
        "another protocol",
        &[Answer::events(&[chat])],
        "failed, permanent: the server answers in Chat Completions: set model.api to chat
         end, provider: the provider failed for good: the server answers in Chat Completions: set model.api to chat; resume to go on
         requests 1",
    );
}

#[test]
fn case_22_calls_run_when_they_and_the_response_are_finished() {
    let items = [
        thought(1),
        call(1, "Show", r#"{"path":"a"}"#),
        call(2, "Change", r#"{"path":"b"}"#),
    ];
    let told = format!(
        r#"Complete completed 90/80/7: ({}) Show{{"path":"a"}} Change{{"path":"b"}}"#,
        thought(1)
    );
    let torn = || Answer::stream(stream(&items, &Value::Null));
    check(
        20,
        "parallel calls, after a torn reply of which nothing ran",
        &[torn(), torn().ends(Last::Reset), whole(&items), whole(&[said("Hé 漢😀")])],
        &format!(
            "retried, torn: the connection was closed before the reply was whole
             retried, torn: the connection was lost: error decoding response body: error reading a body from connection: Connection reset by peer (os error 104)
             {told}
             result, ok: a s
             result, ok: b s
             {DONE}
             ran Show a, Change b
             requests 4"
        ),
    );
    let mut half = call(1, "Show", r#"{"path":"#);
    half["status"] = json!("incomplete");
    let cut = ended(
        "incomplete",
        &json!({"incomplete_details": {"reason": "max_output_tokens"}}),
    );
    check(
        22,
        "a cut call",
        &[
            Answer::stream(stream(&[half], &cut)),
            whole(&[said("Hé 漢😀")]),
        ],
        &format!(
            r#"Cut max_output_tokens: Show{{"path":
             result, error: [undertext] Your reply was cut off at the limit of output tokens, so this call did not run. Make it again with shorter arguments, or split the work into smaller steps.
             {DONE}
             requests 2"#
        ),
    );
}

#[test]
fn case_23_a_reply_may_be_filtered_or_refused() {
    let filtered = ended(
        "incomplete",
        &json!({"incomplete_details": {"reason": "content_filter"}}),
    );
    check(
        23,
        "filtered",
        &[Answer::stream(stream(&[said("Hé")], &filtered))],
        "Filtered content_filter: Hé
         end, refused: the model or a content filter refused; resume and ask in other words
         requests 1",
    );
    let mut no = said("");
    no["content"] = json!([{"type": "refusal", "refusal": "I can't."}]);
    check(
        27,
        "refused",
        &[whole(&[no])],
        "Refused completed 90/80/7: I can't.
         end, refused: the model or a content filter refused; resume and ask in other words
         requests 1",
    );
}

#[test]
fn case_61_failures_within_a_response_have_their_class() {
    let failed = |code: &str, message: &str| {
        let error = json!({"error": {"code": code, "message": message}});
        Answer::stream(stream(&[said("Hé")], &ended("failed", &error)))
    };
    let error = json!({"type": "error", "code": "server_error", "message": "oops", "param": null});
    check(
        61,
        "rate, overload, an event of its own",
        &[
            failed("rate_limit_exceeded", "slow down"),
            failed("server_is_overloaded", "busy"),
            Answer::stream(stream(&[said("Hé")], &error)).ends(Last::Stay),
            whole(&[said("Hé 漢😀")]),
        ],
        &format!(
            "retried, rate: slow down
             retried, overload: busy
             retried, server: oops
             {DONE}
             requests 4"
        ),
    );
    check(
        24,
        "for good",
        &[failed("insufficient_quota", "pay first")],
        "failed, permanent: pay first
         end, provider: the provider failed for good: pay first; resume to go on
         requests 1",
    );
}

#[test]
fn case_39_a_call_of_another_type_is_answered_with_an_error() {
    let custom = json!({"type": "custom_tool_call", "id": "ct_1", "call_id": "c_1",
        "name": "Change", "input": "x"});
    check(
        39,
        "a custom tool",
        &[whole(&[custom]), whole(&[said("Hé 漢😀")])],
        &format!(
            "Complete completed 90/80/7: custom:Change
             result, error: No tool is named `custom:Change`; close names are Change. Nothing ran.
             {DONE}
             requests 2"
        ),
    );
}

/// Reasoning goes back byte for byte, after a resume as well; the whole body is shown.
#[test]
fn case_42_reasoning_goes_back_as_it_came() {
    let raw = r#"{"id":"rs_1", "type":"reasoning","summary":[],"encrypted_content":"Zm/=\u00e4"}"#;
    let done = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{raw}}}"#);
    let rest = stream(
        &[said("Look."), call(1, "Show", r#"{"path": "a"}"#)],
        &completed(),
    );
    let first = Answer::stream(format!("data: {done}\n\n{rest}"));
    for cut in CUTS {
        let storage = MemoryStorage::default();
        let mut recorder = scene::create(&storage);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let received = runtime.block_on(async {
            let bad = Answer::json(401, "{}");
            let server = Server::start(&[first.clone(), bad, whole(&[said("So.")])], cut).await;
            let endpoint = Endpoint {
                base_url: server.url.clone(),
                api_key: Some(ApiKey::new("key-1")),
                headers: Vec::new(),
            };
            let client = Client::new(endpoint, Manner::default().timeouts).unwrap();
            let ledger = Arc::default();
            let agent = Agent::new(manner().setup, Arc::new(client), toolbox(&ledger));
            let cancel = tokio_util::sync::CancellationToken::new();
            agent
                .run(&mut recorder, Some(Task::new("Go.")), &cancel)
                .await
                .unwrap();
            drop(recorder);
            let mut recorder = scene::open(&storage);
            agent.run(&mut recorder, None, &cancel).await.unwrap();
            server.received()
        });
        assert_eq!(received[0].line, "POST /v1/responses HTTP/1.1");
        assert_eq!(received[0].header("authorization"), Some("Bearer key-1"));
        let input = concat!(
            r#""input":[{"type":"message","role":"user","content":"Go."},"#,
            r#"{"id":"rs_1", "type":"reasoning","summary":[],"encrypted_content":"Zm/=\u00e4"},"#,
            r#"{"type":"message","id":"msg_1","status":"completed","role":"assistant","#,
            r#""content":[{"type":"output_text","text":"Look.","annotations":[]}],"phase":"final_answer"},"#,
            r#"{"type":"function_call","call_id":"call_5_1","name":"Show","arguments":"{\"path\": \"a\"}"},"#,
            r#"{"type":"function_call_output","call_id":"call_5_1","output":"a s"}"#,
        );
        for received in &received {
            judge(&received.body).unwrap();
        }
        let bodies = received[1..].iter().map(|received| received.body.clone());
        for body in bodies {
            let body = String::from_utf8(body).unwrap();
            assert!(body.contains(input), "{body}");
        }
    }
}

#[test]
fn the_head_of_a_request_says_what_is_wanted() {
    let mut setup = setup(100_000, Policy::default());
    let main = &mut setup.wire.models.main;
    main.parameters.max_output_tokens = Some(900);
    main.parameters.temperature = Some(0.5);
    main.parameters.reasoning_effort = Some("low".to_owned());
    main.parameters.cache_key = Some("run".to_owned());
    main.profile.cache.key = true;
    main.profile.parameters.leave_out = vec!["temperature".to_owned()];
    let added = json!({"truncation": "disabled"});
    main.profile.parameters.add = added.as_object().unwrap().clone();
    let manner = Manner {
        setup,
        ..Manner::default()
    };
    let played = play(&[whole(&[said("So.")])], Cut::Whole, &manner);
    let body = String::from_utf8(played.received[0].body.clone()).unwrap();
    let (head, rest) = body.split_once(r#","tools":["#).unwrap();
    assert_eq!(
        head,
        concat!(
            r#"{"model":"scripted","stream":true,"store":false,"#,
            r#""include":["reasoning.encrypted_content"],"max_output_tokens":900,"#,
            r#""reasoning":{"effort":"low"},"prompt_cache_key":"run","truncation":"disabled""#
        )
    );
    assert!(
        rest.starts_with(r#"{"type":"function","name":"Show","description":"#),
        "{rest}"
    );
    let (tools, rest) = rest.split_once(r#"],"instructions":"#).unwrap();
    assert_eq!(tools.matches(r#","strict":false}"#).count(), 3, "{tools}");
    assert_eq!(
        rest,
        concat!(
            r#""You are a careful worker.","#,
            r#""input":[{"type":"message","role":"user","content":"Go."}]}"#
        )
    );
}

/// A run that is compacted, its summaries asked for in Responses as well: every request can be built
/// again, and what was sent is what was recorded.
#[test]
fn a_compacted_run_is_rebuilt_byte_for_byte() {
    let mut setup = setup(8_000, Policy::default());
    setup.policy.compaction.auto.min_rounds = 2;
    let manner = Manner {
        setup: setup.clone(),
        ..Manner::default()
    };
    let rounds = (1..=12).map(|n| {
        let path = json!({"path": format!("src/{n}.rs"), "chars": 2500}).to_string();
        let text = said(&"thinking ".repeat(60));
        let mut items = vec![thought(n), text, call(n, "Change", &path)];
        items[1]["id"] = json!(format!("msg_{n}"));
        stream(&items, &ended("completed", &json!({})))
    });
    let last = stream(&[said("Done.")], &ended("completed", &json!({})));
    let rounds: Vec<String> = rounds.chain([last]).collect();
    let summary = stream(&[said("What was done.")], &ended("completed", &json!({})));
    // Which requests are for summaries is known from the same run with the same replies.
    let main = &setup.wire.models.main;
    let reply = |body: &String| read_reply(main, [body.as_bytes()], End::Closed).unwrap();
    let script: Vec<_> = rounds.iter().map(|body| reply(body).into()).collect();
    let read = reply(&summary);
    let model = Scripted::new(script).with_summaries(move |_| Ok(read.clone()));
    let ledger: Arc<Mutex<Vec<String>>> = Arc::default();
    let agent = Agent::new(setup.clone(), Arc::new(model.clone()), toolbox(&ledger));
    let storage = MemoryStorage::default();
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
    let mut rest = rounds.iter();
    let asked = model.asked();
    let answers: Vec<Answer> = asked
        .iter()
        .map(|ask| {
            Answer::stream(if ask.summary {
                &summary
            } else {
                rest.next().unwrap()
            })
        })
        .collect();
    for cut in CUTS {
        let played = play(&answers, cut, &manner);
        let (mut requests, mut summaries) = (0, 0);
        for rebuilt in Replay::new(played.entries()) {
            assert!(rebuilt.is_equal(), "{:?}", rebuilt.purpose);
            requests += 1;
            summaries += usize::from(matches!(rebuilt.purpose, Purpose::Summary(_)));
        }
        assert_eq!(requests, answers.len());
        assert!(summaries > 0 && played.ran.len() == 12, "{}", played.told());
        for entry in played.entries() {
            if let Event::Request(request) = &entry.event {
                assert!(request.estimate.tokens < 8_000, "{:?}", request.estimate);
            }
        }
    }
}
