//! What the script answers: to requests that the loop would not send, and as a server.

use futures::StreamExt as _;
use insta::assert_snapshot;
use serde_json::{Value, json};
use undertext::model::offline::{self, NAME, Offline, Request, WINDOW};
use undertext::model::{Ask, Delta, Model as _};
use undertext::setup::{self, Role};
use undertext::transcript::FaultClass;
use undertext::words;

use super::{block_on, client};

/// The reply to these messages, with these tools offered, as text.
fn reply(tools: &[(&str, &str)], messages: &Value) -> String {
    let tools = tools.iter().map(|(name, argument)| {
        let parameters = json!({"type": "object", "properties": {*argument: {}}});
        json!({"type": "function", "function": {"name": name, "parameters": parameters}})
    });
    let body = json!({"tools": tools.collect::<Vec<_>>(), "messages": messages}).to_string();
    let reply = offline::reply(&Request::read(body.as_bytes()).unwrap());
    let calls = reply
        .calls
        .iter()
        .map(|call| format!("\n{} {}", call.name, call.arguments));
    reply.text + &calls.collect::<String>()
}

#[test]
fn missing_tools_are_gone_without() {
    let task = json!([{"role": "user", "content": "`sh t.sh` fails."}]);
    assert_snapshot!(reply(&[], &task), @"I have no tool to run a test with (Bash is not offered). I am a script and no LLM: I can only look for a failing test and try plain repairs.");
    assert_snapshot!(reply(&[("Bash", "command")], &task), @r#"
    I am Undertext's offline model: a script in the program and no LLM. I run the test, read what fails, and try plain repairs one at a time.
    Bash {"command":"find . -type f -not -path '*/.git/*' | LC_ALL=C sort | head -n 500"}
    "#);
    assert_snapshot!(
        reply(&[("Bash", "command"), ("Glob", "pattern"), ("TodoWrite", "todos")], &task),
        @r#"
    I am Undertext's offline model: a script in the program and no LLM. I run the test, read what fails, and try plain repairs one at a time.
    TodoWrite {"todos":[{"content":"List the files and read the notes","status":"in_progress"},{"content":"Run the test: `sh t.sh`","status":"pending"},{"content":"Read the failure and find the suspects","status":"pending"},{"content":"Repair: one plain change at a time","status":"pending"},{"content":"Say what was done","status":"pending"}]}
    Glob {"pattern":"**/*"}
    "#
    );
    let call = |id: &str, name: &str, arguments: &Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let call = json!({"id": id, "type": "function", "function": function});
        json!({"role": "assistant", "content": "Test: `sh t.sh`", "tool_calls": [call]})
    };
    let failed = json!([
        {"role": "user", "content": "`sh t.sh` fails."},
        call("a", "Bash", &json!({"command": "sh t.sh"})),
        {"role": "tool", "tool_call_id": "a", "content": "FAIL\n[exit 1]"},
    ]);
    assert_snapshot!(reply(&[("Bash", "command")], &failed), @"`sh t.sh` fails, and I have no tool to change files with (Edit is not offered). I am a script and no LLM: I can only look for a failing test and try plain repairs.");
}

/// A test that ended in this, and what was said and done before and after.
fn after_test(result: &str, more: &Value) -> String {
    let call =
        json!({"id": "a", "function": {"name": "Bash", "arguments": r#"{"command":"sh t.sh"}"#}});
    let mut messages = json!([
        {"role": "user", "content": "`sh t.sh` fails."},
        {"role": "assistant", "content": "Test: `sh t.sh`", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": result},
    ]);
    let more = more.as_array().unwrap().clone();
    messages.as_array_mut().unwrap().extend(more);
    reply(
        &[("Bash", "command"), ("Edit", "edits"), ("Read", "path")],
        &messages,
    )
}

#[test]
fn it_claims_nothing_that_it_did_not_see() {
    assert_snapshot!(
        after_test("[ended after 120,000 ms, the limit of this call; what it did until then may have taken effect]", &json!([])),
        @"`sh t.sh` did not end in time, so I cannot tell what is wrong, and I changed nothing. I am a script and no LLM: I can only look for a failing test and try plain repairs. Name a test in the task that takes less time."
    );
    // The last try was to be taken back, and the edit was refused.
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "function": {"name": name, "arguments": arguments.to_string()}});
    let edit = |id: &str, old: &str, new: &str| {
        call(
            id,
            "Edit",
            json!({"path": "a.sh", "edits": [{"old": old, "new": new}]}),
        )
    };
    let test = |id: &str| call(id, "Bash", json!({"command": "sh t.sh"}));
    let own = |text: &str, calls: &[Value]| json!({"role": "assistant", "content": text, "tool_calls": calls});
    let result =
        |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    let more = json!([
        own(
            "Suspects: `a.sh`\nTry 1 in `a.sh`: line 1, `-` for `+`.",
            &[edit("b", "+", "-"), test("c")]
        ),
        result("b", "Edited `a.sh`."),
        result("c", "FAIL\n[exit 1]"),
        own(
            "I take the last try back.",
            &[edit("d", "-", "+"), test("e")]
        ),
        result(
            "d",
            "`a.sh`: read-only; if it is to change, make it writable first: chmod u+w in Bash"
        ),
        result("e", "FAIL\n[exit 1]"),
    ]);
    assert_snapshot!(after_test("FAIL\n[exit 1]", &more), @"I could not mend it: `sh t.sh` still fails. I tried 1 plain repair, one at a time, in `a.sh`. One of them I could not take back: `a.sh` still has line 1, `-` for `+`. I am a script and no LLM: I can only look for a failing test and try plain repairs.");
}

#[test]
fn a_summary_is_an_extract_that_the_script_can_read_again() {
    let ask = words::summarize(Some((1, 9)), None, 300, Some("the failing test"), &[], None);
    let call = |id: &str, name: &str, arguments: Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"id": id, "type": "function", "function": function})
    };
    let edit = json!({"path": "a.awk", "edits": [{"old": "<", "new": "<="}]});
    let todos = json!({"todos": [{"content": "Repair", "status": "in_progress"}]});
    let messages = json!([
        {"role": "user", "content": "`sh t.sh` fails.\nMend it."},
        {"role": "assistant", "content": "Look.", "tool_calls": [
            call("a", "Glob", json!({"pattern": "**/*"})),
            call("b", "TodoWrite", todos),
            call("c", "Read", json!({"path": "a.awk"})),
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "a.awk\nt.sh"},
        {"role": "tool", "tool_call_id": "b", "content": "ok"},
        {"role": "tool", "tool_call_id": "c", "content": "     1\tif (x < 2) y = 3\n"},
        {
            "role": "assistant",
            "content": "Suspects: `a.awk`\nWords of the failure: edge\n- Next in `a.awk`: line 1, `<=` for \
                        `<`\n- Next in `a.awk`: line 1, `3` for `2`\nTry 1 in `a.awk`: line 1, `<=` for `<`.",
            "tool_calls": [call("d", "Edit", edit), call("e", "Bash", json!({"command": "sh t.sh"}))],
        },
        {"role": "tool", "tool_call_id": "d", "content": "Edited `a.awk`."},
        {"role": "tool", "tool_call_id": "e", "content": "ok tiny\nFAIL edge\n  expected 2\n[exit 1]"},
        {"role": "user", "content": ask},
    ]);
    let extract = reply(&[], &messages);
    assert_snapshot!(extract, @"
    An extract by rules; no LLM wrote it.
    Tries so far: 1, the last one:
    Try 1 in `a.awk`: line 1, `<=` for `<`.
    Tried in `a.awk`: line 1, `<=` for `<`

    Task:
    > `sh t.sh` fails.
    > Mend it.

    Focus:
    the failing test

    Test: `sh t.sh`
    It failed when it last ran:
        FAIL edge
          expected 2
        [exit 1]
    Suspects: `a.awk`
    Words of the failure: edge

    To try:
    - Next in `a.awk`: line 1, `3` for `2`

    Todo list:
    - Repair (in progress)

    Done:
    - read: `a.awk`
    - edited: `a.awk`

    Files of the project:
    a.awk, t.sh
    ");
    // What comes next needs the file, which is no longer in sight.
    let summary = format!(
        "[CONVERSATION HISTORY SUMMARY - 12 entries, rounds 1 to 9, overlay 30]\n\n{extract}\n[END SUMMARY \
         - Recent conversation continues below]"
    );
    let messages = json!([
        {"role": "user", "content": "`sh t.sh` fails.\nMend it."},
        {"role": "user", "content": summary},
    ]);
    let tools = [("Bash", "command"), ("Edit", "edits"), ("Read", "path")];
    assert_snapshot!(reply(&tools, &messages), @r#"
    I need to see `a.awk` again.
    Read {"path":"a.awk"}
    "#);
    let mut messages = messages;
    let again = json!([
        {"role": "assistant", "content": "Again.", "tool_calls": [call("a", "Read", json!({"path": "a.awk"}))]},
        {"role": "tool", "tool_call_id": "a", "content": "     1\tif (x <= 2) y = 3\n"},
    ]);
    messages
        .as_array_mut()
        .unwrap()
        .extend(again.as_array().unwrap().clone());
    assert_snapshot!(reply(&tools, &messages), @r#"
    Try 2 in `a.awk`: line 1, `3` for `2`.
    Edit {"path":"a.awk","edits":[{"old":"if (x <= 2) y = 3","new":"if (x < 3) y = 3"}]}
    Bash {"command":"sh t.sh"}
    "#);
}

#[test]
fn the_server_answers_like_others() {
    block_on(async {
        let offline = Offline::serve().await.unwrap();
        let client = client(&offline);
        let ask = |messages: &Value, more: &str| {
            let body = format!(r#"{{"stream":true,{more}"messages":{messages}}}"#);
            let ask = Ask {
                body: body.into_bytes().into(),
                model: setup::Model::named(NAME),
                role: Role::Main,
                summary: false,
            };
            client.ask(ask).collect::<Vec<Delta>>()
        };
        let task = json!([{"role": "user", "content": "`make check` fails"}]);
        let tools =
            r#""tools":[{"function":{"name":"Bash","parameters":{"properties":{"command":{}}}}}],"#;
        let deltas = ask(&task, tools).await;
        let Some(Delta::Reply(reply)) = deltas.last() else {
            panic!("{deltas:?}");
        };
        assert_eq!(reply.finish.as_deref(), Some("tool_calls"));
        assert_eq!(reply.calls.len(), 1);
        assert_eq!(reply.model.as_deref(), Some(NAME));
        assert!(reply.usage.unwrap().input > Some(20));
        // The text comes in pieces, then the call.
        assert!(deltas.len() > 3, "{deltas:?}");

        let long = json!([{"role": "user", "content": "x".repeat(4 * 40_000)}]);
        let deltas = ask(&long, "").await;
        let Some(Delta::Fault(fault)) = deltas.last() else {
            panic!("{deltas:?}");
        };
        assert_eq!(
            (fault.class, fault.window),
            (FaultClass::Overflow, Some(WINDOW))
        );
        let deltas = ask(&json!(7), "").await;
        assert!(matches!(deltas.last(), Some(Delta::Fault(fault)) if fault.status == Some(400)));

        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let models = http
            .get(format!("{}/models", offline.base_url))
            .send()
            .await
            .unwrap();
        let models: Value = serde_json::from_slice(&models.bytes().await.unwrap()).unwrap();
        assert_eq!(models["data"][0]["id"], NAME);
        let url = format!("{}/chat/completions", offline.base_url);
        let body = json!({"messages": task}).to_string();
        let whole = http.post(url).body(body).send().await.unwrap();
        let whole: Value = serde_json::from_slice(&whole.bytes().await.unwrap()).unwrap();
        assert_eq!(whole["choices"][0]["finish_reason"], "stop");
        assert_eq!(whole["object"], "chat.completion");

        let address = offline.base_url.clone();
        drop(offline);
        tokio::task::yield_now().await;
        assert!(http.get(address).send().await.is_err());
    });
}
