//! Cases 16 to 19 and 25 to 27: the shapes in which a reply comes.

use super::check;
use super::reply::{DONE, STOP, TEXT, WHOLE, call, finish, whole};
use super::server::Answer;

/// A stream of this delta and the usual end.
fn delta(delta: &str) -> Answer {
    let delta = format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    Answer::events(&[&delta, STOP, DONE])
}

#[test]
fn cases_16_and_17_what_says_nothing_is_passed_over() {
    for (case, noise) in [
        (
            16,
            r#"{"choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false}}}]}"#,
        ),
        (16, r#"{"choices":null}"#),
        (16, r#"{"id":"x"}"#),
        (
            16,
            r#"{"choices":[{"index":0,"delta":null,"content_filter_offsets":{}}]}"#,
        ),
        (16, r#"{"choices":[{"index":0}]}"#),
        (16, r#"{"choices":[null]}"#),
        (16, r#"{"choices":"none"}"#),
        (
            17,
            r#"{"id":null,"created":null,"model":null,"object":null,"choices":[{"delta":{"content":null}}]}"#,
        ),
        (
            17,
            r#"{"id":7,"created":1.5,"model":3,"object":1,"choices":[{"delta":{}}],"system_fingerprint":[]}"#,
        ),
        (
            17,
            r#"{"created":"now","choices":[{"index":"0","delta":{"content":[]}}],"error":null}"#,
        ),
    ] {
        check(
            case,
            noise,
            &[Answer::events(&[noise, TEXT, noise, STOP, noise, DONE])],
            WHOLE,
        );
    }
    let first = r#"{"choices":[],"prompt_filter_results":[],"usage":{"prompt_tokens":240}}"#;
    check(
        16,
        "counts beside no choices",
        &[Answer::events(&[first, TEXT, STOP, DONE])],
        "
        Complete stop 240/-/-: Hé 漢😀
        end, finished: Hé 漢😀
        requests 1",
    );
}

#[test]
fn case_18_counts_are_the_last_known_ones() {
    let counts = |usage: &str| format!(r#"{{"choices":[],"usage":{usage}}}"#);
    let with = |usage: &str| TEXT.replace("}]}", &format!("}}],\"usage\":{usage}}}"));
    let full = r#"{"prompt_tokens":240,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":9}}"#;
    let zero = r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#;
    let stop = STOP.replace("}]}", &format!("}}],\"usage\":{full}}}"));
    for (name, data, told) in [
        ("none", vec![TEXT, STOP], ""),
        ("empty", vec![TEXT, STOP, &counts("{}")], ""),
        ("null", vec![TEXT, STOP, &counts("null")], ""),
        (
            "partial",
            vec![TEXT, STOP, &counts(r#"{"completion_tokens":5}"#)],
            " -/-/5",
        ),
        (
            "null at the end",
            vec![TEXT, STOP, &counts(full), &counts("null")],
            " 240/9/5",
        ),
        (
            "nought at the end",
            vec![TEXT, STOP, &counts(full), &counts(zero)],
            " 240/9/5",
        ),
        ("nought alone", vec![TEXT, STOP, &counts(zero)], " 0/-/0"),
        ("on the finish", vec![TEXT, &stop], " 240/9/5"),
        (
            "on the finish and twice after it",
            vec![TEXT, &stop, &counts(full), &counts(full)],
            " 240/9/5",
        ),
        (
            "in a choice",
            vec![
                TEXT,
                r#"{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":240}}]}"#,
            ],
            " 240/-/-",
        ),
        (
            "in a corner",
            vec![
                TEXT,
                r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":240}}}"#,
            ],
            " 240/-/-",
        ),
        (
            "as text",
            vec![
                TEXT,
                STOP,
                &counts(r#"{"prompt_tokens":"240","completion_tokens":5.0}"#),
            ],
            " 240/-/5",
        ),
        (
            "not counts",
            vec![
                TEXT,
                STOP,
                &counts(r#"{"prompt_tokens":-3,"completion_tokens":true}"#),
            ],
            "",
        ),
    ] {
        let told = format!("Complete stop{told}: Hé 漢😀\nend, finished: Hé 漢😀\nrequests 1");
        check(18, name, &[Answer::events(&data)], &told);
    }
    let (one, two) = (
        with(r#"{"prompt_tokens":240,"completion_tokens":1}"#),
        with(r#"{"prompt_tokens":240,"completion_tokens":2}"#),
    );
    check(
        18,
        "on each chunk",
        &[Answer::events(&[&one, &two, STOP])],
        "
        Complete stop 240/-/2: Hé 漢😀Hé 漢😀
        end, finished: Hé 漢😀Hé 漢😀
        requests 1",
    );
}

#[test]
fn case_19_the_finish_reason_is_a_word() {
    let with = |word: &str| {
        TEXT.replace("}]}", &format!(",\"finish_reason\":{word}}}]}}"))
            .replace("}},\"fin", "},\"fin")
    };
    let empty = with(r#""""#);
    check(
        19,
        "empty on every chunk",
        &[Answer::events(&[&empty, STOP, DONE])],
        WHOLE,
    );
    check(
        19,
        "nothing but empty ones",
        &[
            Answer::events(&[&empty]),
            Answer::events(&[&with(r#""null""#)]),
            Answer::events(&[&with("null")]),
            whole(),
        ],
        "
        retried, torn: the connection was closed before the reply was whole
        retried, torn: the connection was closed before the reply was whole
        retried, torn: the connection was closed before the reply was whole
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        requests 4",
    );
    for word in ["eos", "end_turn", "STOP", "stop_sequence", "Weird Word 7"] {
        let told = format!("Complete {word}: Hé 漢😀\nend, finished: Hé 漢😀\nrequests 1");
        check(
            19,
            word,
            &[Answer::events(&[&with(&format!("{word:?}"))])],
            &told,
        );
    }
    for (word, class) in [
        ("error", "server"),
        ("abort", "server"),
        ("insufficient_system_resource", "overload"),
    ] {
        let finish = finish(word);
        let told = format!(
            "retried, {class}: the provider ended the reply with `{word}`
            Complete stop: Hé 漢😀
            end, finished: Hé 漢😀
            requests 2"
        );
        check(
            19,
            word,
            &[
                Answer::events(&[&call(0, "Change", "{\"path\":\"a\"}"), &finish, DONE]),
                whole(),
            ],
            &told,
        );
    }
}

#[test]
fn case_25_only_the_first_choice_counts() {
    let other = r#"{"choices":[{"index":1,"delta":{"content":"other","tool_calls":[{"index":0,"id":"x","function":{"name":"Change","arguments":"{\"path\":\"x\"}"}}]},"finish_reason":"length"}]}"#;
    check(
        25,
        "in events of their own",
        &[Answer::events(&[other, TEXT, other, STOP, other, DONE])],
        WHOLE,
    );
    let both = r#"{"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"Hé 漢😀"}}]}"#;
    check(
        25,
        "in one event",
        &[Answer::events(&[both, STOP, DONE])],
        WHOLE,
    );
    let document = r#"{"choices":[{"index":0,"message":{"content":"Hé 漢😀"},"finish_reason":"stop"},{"index":1,"message":{"content":"other"},"finish_reason":"length"}]}"#;
    check(25, "in a document", &[Answer::json(200, document)], WHOLE);
}

#[test]
fn case_26_only_the_delta_counts() {
    for (name, piece) in [
        (
            "null role",
            r#"{"choices":[{"delta":{"role":null,"content":"Hé 漢😀"}}]}"#,
        ),
        (
            "a role with each piece",
            r#"{"choices":[{"delta":{"role":"assistant","content":"Hé 漢😀"}}]}"#,
        ),
        (
            "the text beside",
            r#"{"choices":[{"delta":{"content":"Hé 漢😀"},"text":"Hé 漢😀","message":{"content":"Hé 漢😀"}}],"content":"Hé 漢😀"}"#,
        ),
    ] {
        check(26, name, &[Answer::events(&[piece, STOP, DONE])], WHOLE);
    }
    let last = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hé 漢😀"},"finish_reason":"stop"}]}"#;
    check(
        26,
        "the message at the end",
        &[Answer::events(&[TEXT, last, DONE])],
        WHOLE,
    );
    let repeated = r#"{"choices":[{"index":0,"message":{"tool_calls":[{"id":"c0","function":{"name":"Change","arguments":"{\"path\":\"a\"}"}}]},"finish_reason":"tool_calls"}]}"#;
    check(
        26,
        "the calls at the end",
        &[
            Answer::events(&[&call(0, "Change", r#"{"path":"a"}"#), repeated]),
            whole(),
        ],
        r#"
        Complete tool_calls: Change{"path":"a"}
        result, ok: a s
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        ran Change a
        requests 2"#,
    );
}

#[test]
fn case_27_parts_refusals_and_old_calls_are_read() {
    for (name, content) in [
        (
            "parts",
            r#"[{"type":"text","text":"Hé "},{"type":"output_text","text":"漢😀"},{"type":"image_url","image_url":{}}]"#,
        ),
        ("strings", r#"["Hé ","漢😀"]"#),
    ] {
        check(
            27,
            name,
            &[delta(&format!("{{\"content\":{content}}}"))],
            WHOLE,
        );
    }
    check(
        27,
        "a refusal",
        &[delta(r#"{"content":null,"refusal":"I will not."}"#)],
        "
        Refused stop: I will not.
        end, refused: the model or a content filter refused; resume and ask in other words
        requests 1",
    );
    let open =
        r#"{"choices":[{"delta":{"function_call":{"name":"Change","arguments":"{\"path\":"}}}]}"#;
    let close = r#"{"choices":[{"delta":{"function_call":{"arguments":"\"a\"}"}},"finish_reason":"function_call"}]}"#;
    check(
        27,
        "an old call",
        &[Answer::events(&[open, close, DONE]), whole()],
        r#"
        Complete function_call: Change{"path":"a"}
        result, ok: a s
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        ran Change a
        requests 2"#,
    );
}
