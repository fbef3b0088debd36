//! What the readers of Claude Code, Codex and pi make of small recordings, a trap each.

use serde_json::{Value, json};

use crate::import::told::told;

#[test]
fn claude_code_reads_the_branch_that_ends_last() {
    let recording = [
        r#"{"type":"summary","summary":"A title","leafUuid":"z"}"#,
        r#"{"type":"user","uuid":"u1","parentUuid":null,"cwd":"/w","version":"2.0.1","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"Fix it."}}"#,
        // Two calls side by side fork the tree; the first result hangs beside the branch.
        r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","model":"c","role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"xx"}],"usage":{"input_tokens":5,"cache_read_input_tokens":20,"cache_creation_input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"assistant","uuid":"a2","parentUuid":"a1","message":{"id":"m1","model":"c","content":[{"type":"text","text":"Look."}],"usage":{"input_tokens":5,"output_tokens":1}}}"#,
        r#"{"type":"assistant","uuid":"a3","parentUuid":"a2","message":{"id":"m1","model":"c","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"a"}}]}}"#,
        r#"{"type":"user","uuid":"r1","parentUuid":"a3","toolUseResult":{"file":"much more"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"A"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAABBBB"}}]}]}}"#,
        r#"{"type":"assistant","uuid":"a4","parentUuid":"a3","message":{"id":"m1","model":"c","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":5,"cache_read_input_tokens":20,"cache_creation_input_tokens":3,"output_tokens":9}}}"#,
        r#"{"type":"user","uuid":"s1","parentUuid":"a4","isSidechain":true,"message":{"role":"user","content":"a sub-agent's"}}"#,
        r#"{"type":"user","uuid":"r2","parentUuid":"a4","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":"The user doesn't want to proceed"},{"type":"text","text":"[Request interrupted by user for tool use]"}]}}"#,
        // Given up: what was said first is said again, in other words.
        r#"{"type":"user","uuid":"u2","parentUuid":"r2","message":{"role":"user","content":"Go on."}}"#,
        r#"{"type":"assistant","uuid":"a5","parentUuid":"u2","message":{"id":"m2","model":"c","content":[{"type":"text","text":"Never read."}]}}"#,
        "{\"torn",
        r#"{"type":"attachment","uuid":"x1","parentUuid":"r2","attachment":{"type":"skill_listing","content":"- one"}}"#,
        r#"{"type":"attachment","uuid":"x2","parentUuid":"x1","attachment":{"type":"hook_success","hookEvent":"PostToolUse","content":"for the screen"}}"#,
        r#"{"type":"user","uuid":"u3","parentUuid":"x2","message":{"role":"user","content":[{"type":"text","text":"<system-reminder>Mind.</system-reminder>"},{"type":"text","text":"Go"},{"type":"text","text":"on!"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}}"#,
        r#"{"type":"assistant","uuid":"a6","parentUuid":"u3","message":{"id":"m3","model":"c","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn"}}"#,
        r#"{"type":"assistant","uuid":"a7","parentUuid":"a6","isApiErrorMessage":true,"message":{"id":"m4","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}}"#,
    ];
    insta::assert_snapshot!(told("s.jsonl", &recording.join("\n")), @r#"
    run claude-code 2.0.1 in "/w" session "s" skipped "1"
    setup c ""
    Task "Fix it."
    Complete "Look." thought "Hm." t1:Read{"file_path":"a"} t2:Bash{"command":"ls"} (28 20 3 9 -)
      result 5.1 ok "A\n[image/png, 6 bytes]"
      result 5.2 denied "The user doesn't want to proceed"
    Runtime "[Request interrupted by user for tool use]"
    Runtime "[skill_listing]\n- one"
    Runtime "<system-reminder>Mind.</system-reminder>"
    FollowUp "Go\n\non!" [image: [image/png, 3 bytes]]
    Complete "Done."
    note "Claude Code said, not the model: API Error"
    note "records of branches that were given up, left out: 2"
    note "records of sub-agents, left out: 1"
    "#);
}

#[test]
fn claude_code_compacts_and_begins_anew() {
    let recording = [
        r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"Fix it."}}"#,
        r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","model":"c","content":[{"type":"text","text":"Fixed."}]}}"#,
        r#"{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"a1","compactMetadata":{"trigger":"manual","preTokens":90}}"#,
        r#"{"type":"user","uuid":"c","parentUuid":"b","isCompactSummary":true,"message":{"role":"user","content":"It was fixed."}}"#,
        r#"{"type":"user","uuid":"u2","parentUuid":"c","message":{"role":"user","content":"<command-name>/check</command-name>"}}"#,
        r#"{"type":"user","uuid":"u3","parentUuid":"u2","isMeta":true,"message":{"role":"user","content":"Check it."}}"#,
        r#"{"type":"assistant","uuid":"a2","parentUuid":"u3","message":{"id":"m2","model":"c","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}"#,
        // Another conversation in the same file.
        r#"{"type":"user","uuid":"v1","parentUuid":null,"sessionId":"s2","message":{"role":"user","content":"Another."}}"#,
        r#"{"type":"assistant","uuid":"w1","parentUuid":"lost","message":{"id":"n1","model":"d","content":[{"type":"text","text":"Yes."}]}}"#,
    ];
    insta::assert_snapshot!(told("s.jsonl", &recording.join("\n")), @r#"
    run claude-code session "s"
    setup c ""
    Task "Fix it."
    Complete "Fixed."
    User e3–e5 "It was fixed."
    FollowUp "<command-name>/check</command-name>"
    Runtime "Check it."
    Complete "" t:Bash{}
      result 10.1 interrupted "interrupted, effect unknown"
    run claude-code session "s2"
    setup d ""
    Task "Another."
    Complete "Yes."
    "#);
}

#[test]
fn codex_reads_items_once() {
    let recording = [
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s","cwd":"/w","cli_version":"0.9","base_instructions":{"text":"You code."}}}"#,
        r#"{"type":"event_msg","payload":{"type":"task_started","model_context_window":1000}}"#,
        r#"{"type":"turn_context","payload":{"cwd":"/w","model":"g"}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]}}"#,
        r##"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"# AGENTS.md\nRules"}]}}"##,
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix it."},{"type":"input_image","image_url":"data:image/png;base64,AAAABBBB"}]}}"#,
        r#"{"type":"event_msg","payload":{"type":"user_message","message":"Fix it."}}"#,
        r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#,
        r#"{"type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"content":null,"encrypted_content":"gAAA"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\": [\"ls\"]}","call_id":"c1"}}"#,
        r#"{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"c2"}}"#,
        r#"{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"total_tokens":110},"last_token_usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":10,"reasoning_output_tokens":4}}}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"no\",\"metadata\":{\"exit_code\":2}}"}}"#,
        r#"{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"patched"}]}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c2","output":"twice"}}"#,
        r#"{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"total_tokens":110},"last_token_usage":{"input_tokens":100}}}}"#,
        r#"{"type":"response_item","payload":{"type":"web_search_call","action":{"type":"search","query":"q"}}}"#,
        r#"{"type":"response_item","payload":{"type":"agent_message","author":"/a","content":[{"type":"input_text","text":"From a."},{"type":"encrypted_content","encrypted_content":"x"}]}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}"#,
        r#"{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix it."}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"New."}]},{"type":"compaction","encrypted_content":"x"}]}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"More."}]}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{","call_id":"c1"}}"#,
        r#"{"type":"compacted","payload":{"message":"All is well."}}"#,
    ];
    insta::assert_snapshot!(told("rollout.jsonl", &recording.join("\n")), @r##"
    run codex 0.9 in "/w" session "s"
    setup g "You code."
    Runtime "Be brief."
    Runtime "# AGENTS.md\nRules"
    Task "Fix it." [input_image: [image/png, 6 bytes]]
    Complete "" thought "Hm." c1:shell{"command": ["ls"]} c2:apply_patch{"input":"*** Begin"} (100 60 - 10 4)
      result 7.1 error "{\"output\":\"no\",\"metadata\":{\"exit_code\":2}}"
      result 7.2 ok "patched"
    note "a second result of the call c2, 5 characters, was left out"
    Complete "" web_search_call 1:web_search{"type":"search","query":"q"}
      result 12.1 ok ""
    Runtime "From a.\n[encrypted]"
    Complete "Done."
    note "the summary of this compaction is encrypted: its text is not known"
    Auto e3–e16 "[The agent's summary of what came before is encrypted; its text was not recorded.]"
    Runtime "New."
    FollowUp "More."
    Complete "" c1:shell{
      result 22.1 interrupted "interrupted, effect unknown"
    Auto e3–e23 "All is well."
    "##);
}

#[test]
fn pi_keeps_what_its_compaction_keeps() {
    let message = |id: &str, before: &str, message: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{before},"timestamp":"2026-01-01T00:00:00Z","message":{message}}}"#
        )
    };
    let recording = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-02-01T00:00:00Z","cwd":"/w","modelId":"c"}"#.to_owned(),
        message("1", "null", r#"{"role":"user","content":"Fix it."}"#),
        message("2", r#""1""#, r#"{"role":"assistant","model":"c","stopReason":"toolUse","content":[{"type":"thinking","thinking":"Hm.","thinkingSignature":"x"},{"type":"toolCall","id":"t","name":"bash","arguments":{"command":"ls"}}],"usage":{"input":1,"cacheRead":5,"cacheWrite":2,"output":3}}"#),
        message("3", r#""2""#, r#"{"role":"toolResult","toolCallId":"t","toolName":"bash","isError":true,"content":[{"type":"text","text":"no"}]}"#),
        message("4", r#""3""#, r#"{"role":"assistant","model":"c","stopReason":"aborted","errorMessage":"stopped","content":[]}"#),
        message("5", r#""3""#, r#"{"role":"bashExecution","command":"ls","output":"a","exitCode":1}"#),
        message("6", r#""5""#, r#"{"role":"assistant","model":"d","stopReason":"stop","content":[{"type":"text","text":"Fixed."}]}"#),
        r#"{"type":"compaction","id":"7","parentId":"6","summary":"Was fixed.","firstKeptEntryId":"5","tokensBefore":70}"#.to_owned(),
        message("8", r#""7""#, r#"{"role":"user","content":[{"type":"text","text":"Thanks."},{"type":"image","data":"AAAA","mimeType":"image/png"}]}"#),
    ];
    insta::assert_snapshot!(told("session.jsonl", &recording.join("\n")), @r#"
    run pi in "/w" session "s"
    setup c ""
    Task "Fix it."
    Complete "" thought "Hm." t:bash{"command":"ls"} (8 5 2 3 -)
      result 5.1 error "no"
    Runtime "Ran `ls`\n```\na\n```\n\nCommand exited with code 1"
    setup d ""
    Complete "Fixed."
    Auto e3–e6 "Was fixed."
    FollowUp "Thanks." [image: [image/png, 3 bytes]]
    note "messages of branches that were given up, left out: 1"
    "#);
}

/// A line that cannot be read has its place all the same: what pi kept is counted by places.
#[test]
fn pi_counts_lines_that_cannot_be_read() {
    let line = |text: &str, role: &str| {
        format!(
            r#"{{"type":"message","timestamp":"2026-01-01T00:00:00Z","message":{{"role":"{role}","stopReason":"stop","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let recording = |second: &str| {
        [
            r#"{"type":"session","id":"s","cwd":"/w","modelId":"c"}"#.to_owned(),
            second.to_owned(),
            line("One.", "user"),
            line("First.", "assistant"),
            line("Two.", "user"),
            line("Second.", "assistant"),
            r#"{"type":"compaction","summary":"One was done.","firstKeptEntryIndex":4,"tokensBefore":70}"#.to_owned(),
            line("Three.", "user"),
        ]
    };
    let told = |second: &str| told("session.jsonl", &recording(second).join("\n"));
    let whole = told(r#"{"type":"custom"}"#);
    let broken = told("{\"torn");
    assert_eq!(
        whole.replace(r#"session "s""#, r#"session "s" skipped "1""#),
        broken
    );
    assert!(whole.contains("One was done."), "{whole}");
}

/// Nothing that a model was sent goes because it comes in an unusual shape.
#[test]
fn unusual_shapes_keep_their_text() {
    let claude = [
        r#"{"type":"user","uuid":"x","parentUuid":null,"message":{"role":"user","content":"nobody answers"}}"#,
        r#"{"type":"user","uuid":"u","parentUuid":null,"cwd":"/w","message":{"role":"user","content":[{"type":"document","title":"notes","source":{"type":"text","media_type":"text/plain","data":"plain words"}}]}}"#,
        r#"{"type":"assistant","uuid":"a","parentUuid":"u","message":{"id":"m","model":"c","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":18446744073709551615,"cache_read_input_tokens":1}}}"#,
    ];
    insta::assert_snapshot!(told("s.jsonl", &claude.join("\n")), @r#"
    run claude-code in "/w"
    setup c ""
    Task "" [document: [text/plain: notes]
    plain words]
    Complete "Done." (18446744073709551615 1 - - -)
    note "conversations without a reply, left out: 1"
    "#);
    let codex = [
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s","cwd":"/w","cli_version":"1"}}"#,
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix it."},{"type":"input_file","filename":"a.txt","file_data":"it is plain"}]}}"#,
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Fixed."}]}}"#,
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":"It was fixed."}]}}"#,
    ];
    insta::assert_snapshot!(told("rollout.jsonl", &codex.join("\n")), @r#"
    run codex 1 in "/w" session "s"
    setup unknown ""
    Task "Fix it.\n[input_file: a.txt]\nit is plain"
    Complete "Fixed."
    Auto e3–e5 "It was fixed."
    "#);
}

/// What no line holds is left out and told of, and the rest is there.
#[test]
fn what_is_longer_than_a_line_is_told_of() {
    let meta = json!({"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {
        "id": "s", "cwd": "/w", "base_instructions": {"text": "b".repeat(5 << 20)}
    }});
    let item = |payload: Value| json!({"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload});
    let mut lines = vec![
        meta,
        item(
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}),
        ),
    ];
    lines.extend((0..10_003).map(|n| {
        item(json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": format!("c{n}")}))
    }));
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let told = told("rollout.jsonl", &lines.join("\n"));
    let notes: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("left out"))
        .collect();
    insta::assert_snapshot!(notes.join("\n"), @r#"
    note "4554752 bytes of the system text were left out: no line is that long"
    note "3 calls of response 6 were left out: no line holds as many"
    "#);
}

/// A command that a message of the client follows is what the person typed, whatever stands between
/// the two of another conversation.
#[test]
fn claude_code_keeps_conversations_apart() {
    let recording = [
        r#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"<command-name>/check</command-name>"}}"#,
        r#"{"type":"user","uuid":"v1","parentUuid":null,"message":{"role":"user","content":"Another."}}"#,
        r#"{"type":"user","uuid":"u2","parentUuid":"u1","isMeta":true,"message":{"role":"user","content":"Check it."}}"#,
        r#"{"type":"assistant","uuid":"w1","parentUuid":"v1","message":{"id":"n","model":"d","content":[{"type":"text","text":"Yes."}]}}"#,
        r#"{"type":"assistant","uuid":"a1","parentUuid":"u2","message":{"id":"m","model":"c","content":[{"type":"text","text":"Checked."}]}}"#,
    ];
    insta::assert_snapshot!(told("s.jsonl", &recording.join("\n")), @r#"
    run claude-code
    setup c ""
    Task "<command-name>/check</command-name>"
    Runtime "Check it."
    Complete "Checked."
    run claude-code
    setup d ""
    Task "Another."
    Complete "Yes."
    "#);
}
