//! Cases 41 to 46: what a model thinks before it speaks, and blocks that must come back.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Task};
use undertext::model::{Client, Endpoint, Timeouts};
use undertext::record::MemoryStorage;
use undertext::setup::{Policy, SendBack};

use super::server::{Answer, CUTS, Cut, Last, Part, Server, events};
use super::{Manner, check, play, toolbox};
use crate::{oracle, scene};

const DONE: &str = "[DONE]";
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const CALLS: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
const CALL: &str = r#""tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"Show","arguments":"{\"path\":\"a\"}"}}]"#;

/// An event with these members in its delta.
fn delta(members: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{{members}}}}}]}}"#)
}

/// A reply of these deltas, with this finish reason.
fn reply(deltas: &[&str], finish: &str) -> Answer {
    let mut data: Vec<String> = deltas.iter().map(|members| delta(members)).collect();
    data.extend([finish.to_owned(), DONE.to_owned()]);
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    Answer::events(&data)
}

fn done() -> Answer {
    reply(&[r#""content":"Done.""#], STOP)
}

/// The assistant's message in the second request, after a first reply of these deltas, the same in
/// every cut.
fn sent_back(deltas: &[&str], manner: &Manner) -> String {
    let mut bodies: Vec<Vec<u8>> = CUTS
        .iter()
        .map(|cut| {
            let played = play(&[reply(deltas, CALLS), done()], *cut, manner);
            played.received[1].body.clone()
        })
        .collect();
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
    message(&bodies[0])
}

/// The first message of the assistant in a body.
fn message(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    let messages = body["messages"].as_array().unwrap().iter();
    let mut messages = messages.filter(|message| message["role"] == "assistant");
    messages.next().unwrap().to_string()
}

/// How the call reads that stands in every first reply.
const READS: &str = r#""tool_calls":[{"id":"call_5_1","type":"function","function":{"name":"Show","arguments":"{\"path\":\"a\"}"}}]}"#;

#[test]
fn case_41_reasoning_goes_back_where_the_profile_says_so() {
    let deltas = [
        r#""reasoning_content":"I l""#,
        r#""reasoning_content":"ook.""#,
        CALL,
    ];
    let manner = Manner::default();
    assert_eq!(
        sent_back(&deltas, &manner),
        format!(r#"{{"role":"assistant","reasoning_content":"I look.",{READS}"#)
    );
    let mut never = Manner::default();
    never.setup.wire.models.main.profile.reasoning.send_back = SendBack::Never;
    assert_eq!(
        sent_back(&deltas, &never),
        format!(r#"{{"role":"assistant",{READS}"#)
    );
}

#[test]
fn case_42_reasoning_goes_back_under_the_name_it_came_in() {
    for field in ["reasoning_content", "reasoning", "thinking"] {
        let (first, second) = (
            format!(r#""{field}":"I ""#),
            format!(r#""{field}":"look.""#),
        );
        assert_eq!(
            sent_back(&[&first, &second, CALL], &Manner::default()),
            format!(r#"{{"role":"assistant","{field}":"I look.",{READS}"#)
        );
    }
    for (deltas, members) in [
        // OpenRouter: pieces of a text, its signature, and what nobody can read.
        (
            vec![
                r#""reasoning":"I ","reasoning_details":[{"type":"reasoning.text","text":"I ","format":"x","index":0}]"#,
                r#""reasoning":"look.","reasoning_details":[{"type":"reasoning.text","text":"look.","format":"x","index":0}]"#,
                r#""reasoning_details":[{"type":"reasoning.text","signature":"s/=","index":0},{"type":"reasoning.encrypted","data":"Zm/=","index":1}]"#,
            ],
            r#""reasoning":"I look.","reasoning_details":[{"type":"reasoning.text","text":"I look.","format":"x","index":0,"signature":"s/="},{"type":"reasoning.encrypted","data":"Zm/=","index":1}]"#,
        ),
        // LiteLLM: blocks of Anthropic's, beside their text.
        (
            vec![
                r#""reasoning_content":"I ","thinking_blocks":[{"type":"thinking","thinking":"I ","signature":null}]"#,
                r#""reasoning_content":"look.","thinking_blocks":[{"type":"thinking","thinking":"look.","signature":null}]"#,
                r#""thinking_blocks":[{"type":"thinking","thinking":"","signature":"s/="}]"#,
                r#""thinking_blocks":[{"type":"redacted_thinking","data":"Zm/="}]"#,
            ],
            r#""reasoning_content":"I look.","thinking_blocks":[{"type":"thinking","thinking":"I look.","signature":"s/="},{"type":"redacted_thinking","data":"Zm/="}]"#,
        ),
    ] {
        let mut deltas = deltas;
        deltas.push(CALL);
        assert_eq!(
            sent_back(&deltas, &Manner::default()),
            format!(r#"{{"role":"assistant",{members},{READS}"#)
        );
    }
    check(
        42,
        "all at once, in parts, and told once",
        &[reply(
            &[
                r#""reasoning":"hm","reasoning_content":"hm""#,
                r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"so"}]},{"type":"text","text":"Done."}]"#,
            ],
            STOP,
        )],
        "
        Complete stop: Done. (reasoning_content: hm) (thinking: so)
        end, finished: Done.
        requests 1",
    );
}

#[test]
fn case_43_no_call_is_taken_from_think_tags() {
    let call = r#"<tool_call>{\"name\":\"Change\",\"arguments\":{\"path\":\"a\"}}</tool_call>"#;
    let shown = call.replace('\\', "");
    let told = format!(
        "Complete stop: <think>I call {shown}</think>Done.
        end, finished: <think>I call {shown}</think>Done.
        requests 1"
    );
    let thinks = format!(r#""content":"<think>I call {call}</th""#);
    check(
        43,
        "closed",
        &[reply(&[&thinks, r#""content":"ink>Done.""#], STOP)],
        &told,
    );
    // Thoughts alone are no answer.
    let told = format!(
        "Complete stop: <think>I call {shown}
        told: {}
        Complete stop: Done.
        end, finished: Done.
        requests 2",
        undertext::words::EMPTY
    );
    let thinks = format!(r#""content":"<think>I call {call}""#);
    check(43, "unclosed", &[reply(&[&thinks], STOP), done()], &told);
    let told = told.replace(&shown, "nobody.\n</think>");
    check(
        43,
        "unopened",
        &[
            reply(&[r#""content":"<think>I call nobody.\n</think>""#], STOP),
            done(),
        ],
        &told,
    );
}

#[test]
fn case_44_the_signature_of_a_call_comes_back_also_after_a_resume() {
    let signed = CALL.replace(
        r#""id":"c","#,
        r#""id":"c","extra_content":{"google": {"thought_signature": "Zm/="}},"#,
    );
    let reads = READS.replace(
        "}}]}",
        r#"},"extra_content":{"google": {"thought_signature": "Zm/="}}}]}"#,
    );
    let expected = format!(r#"{{"role":"assistant",{reads}"#);
    for cut in CUTS {
        let storage = MemoryStorage::default();
        let turn = |answers: &[Answer], begins: bool| {
            let mut recorder = if begins {
                scene::create(&storage)
            } else {
                scene::open(&storage)
            };
            run(&mut recorder, answers, cut)
        };
        let first = turn(&[reply(&[&signed], CALLS), done()], true);
        let second = turn(&[done()], false);
        for body in [&first[1], &second[0]] {
            let body = String::from_utf8_lossy(body);
            assert!(body.contains(&expected), "{cut:?}: {expected} in {body}");
            assert_eq!(oracle::pairing(body.as_bytes()), Ok(()));
        }
    }
}

/// The bodies that one turn of a run sends to a server which gives these answers.
fn run(recorder: &mut undertext::record::Recorder, answers: &[Answer], cut: Cut) -> Vec<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = Server::start(answers, cut).await;
        let endpoint = Endpoint {
            base_url: server.url.clone(),
            api_key: None,
            headers: Vec::new(),
        };
        let client = Client::new(endpoint, Timeouts::default()).unwrap();
        let setup = scene::setup(100_000, Policy::default());
        let agent = Agent::new(setup, Arc::new(client), toolbox(&Arc::default()));
        let cancel = CancellationToken::new();
        agent
            .run(recorder, Some(Task::new("Go.")), &cancel)
            .await
            .unwrap();
        server
            .received()
            .into_iter()
            .map(|received| received.body)
            .collect()
    })
}

#[test]
fn case_45_thoughts_alone_are_no_answer_and_leave_no_empty_message() {
    let thinks = || reply(&[r#""reasoning_content":"hm""#], STOP);
    let one = format!(
        "Complete stop: (reasoning_content: hm)
        told: {}",
        undertext::words::EMPTY
    );
    check(
        45,
        "once",
        &[thinks(), done()],
        &format!("{one}\nComplete stop: Done.\nend, finished: Done.\nrequests 2"),
    );
    check(
        45,
        "again and again",
        &vec![thinks(); 5],
        &format!(
            "{one}\n{one}\nComplete stop: (reasoning_content: hm)\nend, empty: the model answered with nothing, again and again; resume to go on, or with another model\nrequests 3"
        ),
    );
    for cut in CUTS {
        let played = play(&[thinks(), done()], cut, &Manner::default());
        let body: Value = serde_json::from_slice(&played.received[1].body).unwrap();
        let roles: Vec<&str> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|message| message["role"].as_str())
            .collect();
        assert_eq!(roles, ["system", "user", "user"]);
    }
}

#[test]
fn case_46_a_stall_in_the_middle_of_reasoning_is_noticed() {
    let begins = || Answer::stream(events(&[&delta(r#""reasoning_content":"hm""#)]));
    check(
        46,
        "silence",
        &[begins().ends(Last::Stay), done()],
        "
        retried, stall: nothing came for 300 s
        Complete stop: Done.
        end, finished: Done.
        requests 2",
    );
    // Comments are bytes, but no progress.
    let mut keeps = begins();
    for _ in 0..10 {
        keeps = keeps
            .then(Part::Silence(Duration::from_secs(100)))
            .then(Part::Bytes(b": keep-alive\n\n".to_vec()));
    }
    check(
        46,
        "comments",
        &[keeps.ends(Last::Stay), done()],
        "
        retried, stall: neither text nor reasoning nor a call came for 600 s
        Complete stop: Done.
        end, finished: Done.
        requests 2",
    );
}
