//! Whole bodies of requests in which layers lie side by side and over one another.
//!
//! They are judged as those of [`crate::wire`] are, which has one body for each kind of layer.

use insta::assert_snapshot;

use undertext::id::{EntryId, Span};
use undertext::overlay::{Author, Form, Hide, Layer, Part, Show, Stub, Summary};
use undertext::transcript::{Event, Pin, Purpose, Speaker, Summarize};

use crate::draft::Draft;
use crate::wire::{asked_again, at_work, body, call, round, span, summarised};

/// Lays a summary that says this.
fn band(draft: &mut Draft, span: Span, by: Author, text: &str) -> EntryId {
    let Layer::Summary(summary) = summarised(draft, span) else {
        unreachable!("it is a summary")
    };
    draft.overlay(Layer::Summary(Summary {
        text: text.to_owned(),
        by,
        ..summary
    }))
}

/// The first round, the second and the third, each in a summary of its own.
fn three_bands() -> (Draft, [EntryId; 3]) {
    let mut draft = asked_again();
    let bands = [
        (span(4, 7), "The tests of the parser fail."),
        (span(8, 10), "src/parse.rs was changed."),
        (span(11, 13), "The test of escapes passes."),
    ];
    let bands = bands.map(|(span, text)| band(&mut draft, span, Author::Model, text));
    (draft, bands)
}

#[test]
fn arguments_stubbed() {
    let mut draft = at_work();
    draft.overlay(Layer::Stub(Stub {
        form: Form::Compacted,
        arguments: vec![call(EntryId(5), 1), call(EntryId(9), 1)],
        ..Stub::default()
    }));
    assert_snapshot!(round(&draft), @r#"
    {"model":"scripted","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":900,"tools":[
    {"type":"function","function":{"name":"Bash","description":"It is Bash.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
    {"type":"function","function":{"name":"Edit","description":"It is Edit.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],"messages":[
    {"role":"system","content":"You are a careful worker."},
    {"role":"user","content":"Mend the parser.\n\n[attachment notes.txt, text/plain]\nIt fails on \"\\u\".\nSince May."},
    {"role":"assistant","content":"I look.","reasoning_content":"First the code.","tool_calls":[{"id":"call_5_1","type":"function","function":{"name":"Bash","arguments":"{}"}},{"id":"call_5_2","type":"function","function":{"name":"Bash","arguments":"{\"command\": \"cargo test\"}"}}]},
    {"role":"tool","tool_call_id":"call_5_1","content":"fn parse() {\n}"},
    {"role":"tool","tool_call_id":"call_5_2","content":"test escapes ... FAILED\n[exit status 101]"},
    {"role":"assistant","reasoning_content":"One line will do.","tool_calls":[{"id":"call_9_1","type":"function","function":{"name":"Edit","arguments":"{}"}}]},
    {"role":"tool","tool_call_id":"call_9_1","content":"1 edit made"},
    {"role":"assistant","content":"Does it hold?","reasoning_content":"why","tool_calls":[{"id":"call_12_1","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"cargo test escapes\"}"}}]},
    {"role":"tool","tool_call_id":"call_12_1","content":"test escapes ... ok"}]}
    "#);
}

/// What a later call read again is left out; what a later call changed is called stale.
#[test]
fn superseded_and_stale() {
    let mut draft = at_work();
    let read = |path: &'static str| ("Read", path, "mod parse;\nmod lines;\nmod errors;");
    let [lib, main] = [read(r#"{"path":"lib.rs"}"#), read(r#"{"path":"main.rs"}"#)];
    let old = draft.round("", &[lib, main]);
    let change = ("Edit", r#"{"path":"main.rs"}"#, "1 edit made");
    let new = draft.round("", &[lib, change]);
    let (lib, main) = (call(old, 1), call(old, 2));
    draft.overlay(Layer::Hide(Hide {
        calls: vec![lib],
        why: [(lib, call(new, 1))].into(),
        ..Hide::default()
    }));
    draft.overlay(Layer::Stub(Stub {
        form: Form::Stale,
        results: vec![main],
        by: [(main, call(new, 2))].into(),
        ..Stub::default()
    }));
    assert_snapshot!(round(&draft), @r#"
    {"model":"scripted","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":900,"tools":[
    {"type":"function","function":{"name":"Bash","description":"It is Bash.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
    {"type":"function","function":{"name":"Edit","description":"It is Edit.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],"messages":[
    {"role":"system","content":"You are a careful worker."},
    {"role":"user","content":"Mend the parser.\n\n[attachment notes.txt, text/plain]\nIt fails on \"\\u\".\nSince May."},
    {"role":"assistant","content":"I look.","reasoning_content":"First the code.","tool_calls":[{"id":"call_5_1","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"cat src/parse.rs\"}"}},{"id":"call_5_2","type":"function","function":{"name":"Bash","arguments":"{\"command\": \"cargo test\"}"}}]},
    {"role":"tool","tool_call_id":"call_5_1","content":"fn parse() {\n}"},
    {"role":"tool","tool_call_id":"call_5_2","content":"test escapes ... FAILED\n[exit status 101]"},
    {"role":"assistant","reasoning_content":"One line will do.","tool_calls":[{"id":"call_9_1","type":"function","function":{"name":"Edit","arguments":"{\"path\":\"src/parse.rs\",\"edits\":[{\"old\":\"{\\n}\",\"new\":\"{ é }\"}]}"}}]},
    {"role":"tool","tool_call_id":"call_9_1","content":"1 edit made"},
    {"role":"assistant","content":"Does it hold?","reasoning_content":"why","tool_calls":[{"id":"call_12_1","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"cargo test escapes\"}"}}]},
    {"role":"tool","tool_call_id":"call_12_1","content":"test escapes ... ok"},
    {"role":"assistant","reasoning_content":"why","tool_calls":[{"id":"call_15_2","type":"function","function":{"name":"Read","arguments":"{\"path\":\"main.rs\"}"}}]},
    {"role":"tool","tool_call_id":"call_15_2","content":"[Previous: used Read] stale since 19.2, Recall 15.2 shows it"},
    {"role":"assistant","reasoning_content":"why","tool_calls":[{"id":"call_19_1","type":"function","function":{"name":"Read","arguments":"{\"path\":\"lib.rs\"}"}},{"id":"call_19_2","type":"function","function":{"name":"Edit","arguments":"{\"path\":\"main.rs\"}"}}]},
    {"role":"tool","tool_call_id":"call_19_1","content":"mod parse;\nmod lines;\nmod errors;"},
    {"role":"tool","tool_call_id":"call_19_2","content":"1 edit made"}]}
    "#);
}

#[test]
fn three_summaries_side_by_side() {
    assert_snapshot!(round(&three_bands().0), @r#"
    {"model":"scripted","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":900,"tools":[
    {"type":"function","function":{"name":"Bash","description":"It is Bash.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
    {"type":"function","function":{"name":"Edit","description":"It is Edit.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],"messages":[
    {"role":"system","content":"You are a careful worker."},
    {"role":"user","content":"Mend the parser.\n\n[attachment notes.txt, text/plain]\nIt fails on \"\\u\".\nSince May."},
    {"role":"user","content":"[CONVERSATION HISTORY SUMMARY - 4 entries, round 1, overlay 20]\nThe runtime made this summary in place of older entries; it is not from the user. Recall 20 shows what it covers.\n\nThe tests of the parser fail.\n[END SUMMARY - Recent conversation continues below]"},
    {"role":"user","content":"[CONVERSATION HISTORY SUMMARY - 3 entries, round 2, overlay 21]\nThe runtime made this summary in place of older entries; it is not from the user. Recall 21 shows what it covers.\n\nsrc/parse.rs was changed.\n[END SUMMARY - Recent conversation continues below]"},
    {"role":"user","content":"[CONVERSATION HISTORY SUMMARY - 3 entries, round 3, overlay 22]\nThe runtime made this summary in place of older entries; it is not from the user. Recall 22 shows what it covers.\n\nThe test of escapes passes.\n[END SUMMARY - Recent conversation continues below]"},
    {"role":"user","content":"[CARRIED OVER - the runtime shows this again from what is summarized above]\n\nWorking state, from the record (Recall with a handle shows the call):\n- failed when it last ran: cargo test (exit 101, 5.2)\n- file changed: src/parse.rs (9.1)"},
    {"role":"assistant","reasoning_content":"why","tool_calls":[{"id":"call_15_1","type":"function","function":{"name":"TodoWrite","arguments":"{\"todos\":[{\"content\":\"test\",\"status\":\"pending\"}]}"}}]},
    {"role":"tool","tool_call_id":"call_15_1","content":"Noted: 1 todo, 1 pending."},
    {"role":"assistant","content":"It is mended.","reasoning_content":"why"},
    {"role":"user","content":"Now add a test."}]}
    "#);
}

/// Two of three bands become one text; what is shown again is the newest summary's.
#[test]
fn a_merged_summary() {
    let (mut draft, [first, second, _]) = three_bands();
    let Layer::Summary(summary) = summarised(&draft, span(4, 10)) else {
        unreachable!("it is a summary")
    };
    let part = |overlay, span| Part {
        span,
        response: None,
        overlay: Some(overlay),
        text: String::new(),
    };
    draft.overlay(Layer::Summary(Summary {
        text: "The tests failed; src/parse.rs was changed.".to_owned(),
        parts: vec![part(first, span(4, 7)), part(second, span(8, 10))],
        depth: 2,
        ..summary
    }));
    assert_snapshot!(round(&draft), @r#"
    {"model":"scripted","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":900,"tools":[
    {"type":"function","function":{"name":"Bash","description":"It is Bash.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
    {"type":"function","function":{"name":"Edit","description":"It is Edit.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],"messages":[
    {"role":"system","content":"You are a careful worker."},
    {"role":"user","content":"Mend the parser.\n\n[attachment notes.txt, text/plain]\nIt fails on \"\\u\".\nSince May."},
    {"role":"user","content":"[CONVERSATION HISTORY SUMMARY - 7 entries, rounds 1 to 2, overlay 23]\nThe runtime made this summary in place of older entries; it is not from the user. Recall 23 shows what it covers.\n\nThe tests failed; src/parse.rs was changed.\n[END SUMMARY - Recent conversation continues below]"},
    {"role":"user","content":"[CONVERSATION HISTORY SUMMARY - 3 entries, round 3, overlay 22]\nThe runtime made this summary in place of older entries; it is not from the user. Recall 22 shows what it covers.\n\nThe test of escapes passes.\n[END SUMMARY - Recent conversation continues below]"},
    {"role":"user","content":"[CARRIED OVER - the runtime shows this again from what is summarized above]\n\nWorking state, from the record (Recall with a handle shows the call):\n- failed when it last ran: cargo test (exit 101, 5.2)\n- file changed: src/parse.rs (9.1)"},
    {"role":"assistant","reasoning_content":"why","tool_calls":[{"id":"call_15_1","type":"function","function":{"name":"TodoWrite","arguments":"{\"todos\":[{\"content\":\"test\",\"status\":\"pending\"}]}"}}]},
    {"role":"tool","tool_call_id":"call_15_1","content":"Noted: 1 todo, 1 pending."},
    {"role":"assistant","content":"It is mended.","reasoning_content":"why"},
    {"role":"user","content":"Now add a test."}]}
    "#);
}

/// A person writes a summary that begins inside another one, which keeps the place of what is left
/// of it.
#[test]
fn a_summary_by_hand_over_a_part_of_another() {
    let mut draft = asked_again();
    let older = "The tests failed; src/parse.rs was changed.";
    band(&mut draft, span(4, 10), Author::Model, older);
    let by_hand = "I changed the parser, and it holds.";
    band(&mut draft, span(8, 16), Author::User, by_hand);
    assert_snapshot!(round(&draft), @r#"
    {"model":"scripted","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":900,"tools":[
    {"type":"function","function":{"name":"Bash","description":"It is Bash.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
    {"type":"function","function":{"name":"Edit","description":"It is Edit.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],"messages":[
    {"role":"system","content":"You are a careful worker."},
    {"role":"user","content":"Mend the parser.\n\n[attachment notes.txt, text/plain]\nIt fails on \"\\u\".\nSince May."},
    {"role":"user","content":"[CONVERSATION HISTORY SUMMARY - 7 entries, rounds 1 to 2, overlay 20]\nThe runtime made this summary in place of older entries; it is not from the user. Recall 20 shows what it covers.\n\nThe tests failed; src/parse.rs was changed.\n[END SUMMARY - Recent conversation continues below]"},
    {"role":"user","content":"[CONVERSATION HISTORY SUMMARY - 9 entries, rounds 2 to 4, overlay 21]\nThe user wrote this summary in place of older entries. Recall 21 shows what it covers.\n\nI changed the parser, and it holds.\n[END SUMMARY - Recent conversation continues below]"},
    {"role":"user","content":"[CARRIED OVER - the runtime shows this again from what is summarized above]\n\n[call 15.1, TodoWrite {\"todos\":[{\"content\":\"test\",\"status\":\"pending\"}]}]\nNoted: 1 todo, 1 pending.\n\nWorking state, from the record (Recall with a handle shows the call):\n- failed when it last ran: cargo test (exit 101, 5.2)\n- file changed: src/parse.rs (9.1)"},
    {"role":"assistant","content":"It is mended.","reasoning_content":"why"},
    {"role":"user","content":"Now add a test."}]}
    "#);
}

/// Taking back what a later summary covers changes nothing; taking back the later one uncovers what
/// still stands under it.
#[test]
fn a_summary_is_taken_back_under_a_later_one() {
    let mut draft = asked_again();
    let raw = round(&draft);
    let first = band(&mut draft, span(4, 7), Author::Model, "The tests fail.");
    let alone = round(&draft);
    let text = "The tests failed; src/parse.rs was changed.";
    let later = band(&mut draft, span(4, 10), Author::Model, text);
    let covered = round(&draft);

    let mut uncovered = draft.clone();
    uncovered.retract(&[later]);
    assert_eq!(round(&uncovered), alone);

    draft.retract(&[first]);
    assert_eq!(round(&draft), covered);
    assert_snapshot!(covered, @r#"
    {"model":"scripted","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":900,"tools":[
    {"type":"function","function":{"name":"Bash","description":"It is Bash.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
    {"type":"function","function":{"name":"Edit","description":"It is Edit.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],"messages":[
    {"role":"system","content":"You are a careful worker."},
    {"role":"user","content":"Mend the parser.\n\n[attachment notes.txt, text/plain]\nIt fails on \"\\u\".\nSince May."},
    {"role":"user","content":"[CONVERSATION HISTORY SUMMARY - 7 entries, rounds 1 to 2, overlay 21]\nThe runtime made this summary in place of older entries; it is not from the user. Recall 21 shows what it covers.\n\nThe tests failed; src/parse.rs was changed.\n[END SUMMARY - Recent conversation continues below]"},
    {"role":"user","content":"[CARRIED OVER - the runtime shows this again from what is summarized above]\n\nWorking state, from the record (Recall with a handle shows the call):\n- failed when it last ran: cargo test (exit 101, 5.2)\n- file changed: src/parse.rs (9.1)"},
    {"role":"assistant","content":"Does it hold?","reasoning_content":"why","tool_calls":[{"id":"call_12_1","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"cargo test escapes\"}"}}]},
    {"role":"tool","tool_call_id":"call_12_1","content":"test escapes ... ok"},
    {"role":"assistant","reasoning_content":"why","tool_calls":[{"id":"call_15_1","type":"function","function":{"name":"TodoWrite","arguments":"{\"todos\":[{\"content\":\"test\",\"status\":\"pending\"}]}"}}]},
    {"role":"tool","tool_call_id":"call_15_1","content":"Noted: 1 todo, 1 pending."},
    {"role":"assistant","content":"It is mended.","reasoning_content":"why"},
    {"role":"user","content":"Now add a test."}]}
    "#);
    draft.retract(&[later]);
    assert_eq!(round(&draft), raw);
}

/// A stub, a show of one of its calls, and a newer stub of the other.
#[test]
fn shown_after_stubbed() {
    let mut draft = at_work();
    let [code, test, edit] = [(5, 1), (5, 2), (9, 1)].map(|(of, place)| call(EntryId(of), place));
    draft.overlay(Layer::Stub(Stub {
        form: Form::Previous,
        results: vec![code, test],
        arguments: vec![edit],
        ..Stub::default()
    }));
    let calls = vec![test, edit];
    draft.overlay(Layer::Show(Show { calls }));
    draft.overlay(Layer::Stub(Stub {
        form: Form::Compacted,
        results: vec![edit],
        ..Stub::default()
    }));
    assert_snapshot!(round(&draft), @r#"
    {"model":"scripted","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":900,"tools":[
    {"type":"function","function":{"name":"Bash","description":"It is Bash.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
    {"type":"function","function":{"name":"Edit","description":"It is Edit.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],"messages":[
    {"role":"system","content":"You are a careful worker."},
    {"role":"user","content":"Mend the parser.\n\n[attachment notes.txt, text/plain]\nIt fails on \"\\u\".\nSince May."},
    {"role":"assistant","content":"I look.","reasoning_content":"First the code.","tool_calls":[{"id":"call_5_1","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"cat src/parse.rs\"}"}},{"id":"call_5_2","type":"function","function":{"name":"Bash","arguments":"{\"command\": \"cargo test\"}"}}]},
    {"role":"tool","tool_call_id":"call_5_1","content":"[Previous: used Bash] Recall 5.1 shows it (2 lines)"},
    {"role":"tool","tool_call_id":"call_5_2","content":"test escapes ... FAILED\n[exit status 101]"},
    {"role":"assistant","reasoning_content":"One line will do.","tool_calls":[{"id":"call_9_1","type":"function","function":{"name":"Edit","arguments":"{\"path\":\"src/parse.rs\",\"edits\":[{\"old\":\"{\\n}\",\"new\":\"{ é }\"}]}"}}]},
    {"role":"tool","tool_call_id":"call_9_1","content":"[compacted] Edit: success (src/parse.rs) Recall 9.1 shows it"},
    {"role":"assistant","content":"Does it hold?","reasoning_content":"why","tool_calls":[{"id":"call_12_1","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"cargo test escapes\"}"}}]},
    {"role":"tool","tool_call_id":"call_12_1","content":"test escapes ... ok"}]}
    "#);
}

/// A result and words of the assistant and of the runtime are pinned and then summarised: they are
/// shown again as text. What the user said after the task is shown again without a pin.
#[test]
fn pins_are_shown_again() {
    let mut draft = asked_again();
    for entry in [7, 12].map(EntryId) {
        draft.push(Event::Pin(Pin { entry }));
    }
    draft.round("", &[("Bash", r#"{"command":"ls tests"}"#, "parse.rs")]);
    let hint = draft.user(Speaker::Runtime, "A fifth of the rounds is left.");
    draft.push(Event::Pin(Pin { entry: hint }));
    draft.round("", &[("Bash", r#"{"command":"cat tests/parse.rs"}"#, "")]);
    let text = "A test is to be added.";
    band(&mut draft, Span::new(EntryId(4), hint), Author::Model, text);
    assert_snapshot!(round(&draft), @r#"
    {"model":"scripted","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":900,"tools":[
    {"type":"function","function":{"name":"Bash","description":"It is Bash.","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}},
    {"type":"function","function":{"name":"Edit","description":"It is Edit.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],"messages":[
    {"role":"system","content":"You are a careful worker."},
    {"role":"user","content":"Mend the parser.\n\n[attachment notes.txt, text/plain]\nIt fails on \"\\u\".\nSince May."},
    {"role":"user","content":"[CONVERSATION HISTORY SUMMARY - 22 entries, rounds 1 to 6, overlay 30]\nThe runtime made this summary in place of older entries; it is not from the user. Recall 30 shows what it covers.\n\nA test is to be added.\n[END SUMMARY - Recent conversation continues below]"},
    {"role":"user","content":"[CARRIED OVER - the runtime shows this again from what is summarized above]\n\n[entry 19, from the user]\nNow add a test.\n\n[entry 7, result of Bash]\ntest escapes ... FAILED\n[exit status 101]\n\n[entry 12, from the assistant]\nDoes it hold?\n\n[entry 25, from the runtime]\nA fifth of the rounds is left.\n\n[call 15.1, TodoWrite {\"todos\":[{\"content\":\"test\",\"status\":\"pending\"}]}]\nNoted: 1 todo, 1 pending.\n\nWorking state, from the record (Recall with a handle shows the call):\n- failed when it last ran: cargo test (exit 101, 5.2)\n- file changed: src/parse.rs (9.1)"},
    {"role":"assistant","reasoning_content":"why","tool_calls":[{"id":"call_28_1","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"cat tests/parse.rs\"}"}}]},
    {"role":"tool","tool_call_id":"call_28_1","content":""}]}
    "#);
}

/// Whatever lies over what a summariser is to read: it reads what was said.
#[test]
fn a_summariser_reads_what_was_said() {
    let mut draft = at_work();
    let purpose = Purpose::Summary(Summarize::new(EntryId(13), span(4, 13)));
    let raw = body(&draft, &purpose);
    draft.overlay(Layer::Stub(Stub {
        form: Form::Compacted,
        results: vec![call(EntryId(5), 2)],
        arguments: vec![call(EntryId(9), 1)],
        ..Stub::default()
    }));
    draft.overlay(Layer::Hide(Hide {
        calls: vec![call(EntryId(5), 1)],
        ..Hide::default()
    }));
    band(&mut draft, span(11, 13), Author::Model, "It was tested.");
    assert_ne!(round(&draft), round(&at_work()));
    assert_eq!(body(&draft, &purpose), raw);
}
