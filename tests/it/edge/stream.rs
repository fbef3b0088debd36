//! Cases 4 to 13: the framing of a stream, and what is no stream at all.

use std::time::Duration;

use super::reply::{CALLS, COUNTS, DONE, STOP, TEXT, WHOLE, whole};
use super::server::{Answer, CUTS, Last, Part, events};
use super::{Manner, check, check_in};

const CALL: &str = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"Change","arguments":"{\"path\":\"漢😀\"}"}}]}}]}"#;

#[test]
fn cases_4_to_7_framing_makes_no_difference() {
    let body = events(&[TEXT, CALL, COUNTS, CALLS, DONE]);
    let told = "
        Complete tool_calls 240/-/3: Hé 漢😀 Change{\"path\":\"漢😀\"}
        result, ok: 漢😀
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        ran Change 漢😀
        requests 2";
    for (case, name, body) in [
        (
            4,
            "comments",
            body.replace("data", ": keep-alive\n\n:\ndata")
                .replace("\n\n", "\n: on\n\n"),
        ),
        (
            4,
            "comments in data lines",
            body.replace("data:", "data: : PROCESSING\n\ndata:"),
        ),
        (
            4,
            "comments in data lines of the same event",
            body.replace("data:", "data: : PROCESSING\ndata:"),
        ),
        (
            5,
            "empty data lines",
            body.replace("data:", "data:\n\ndata: \n\ndata\n\ndata:"),
        ),
        (
            5,
            "pings",
            body.replace("data:", "event: ping\ndata: {\"type\":\"ping\"}\n\ndata:"),
        ),
        (
            5,
            "objects that say nothing",
            body.replace(
                "data:",
                "data: {}\n\ndata: {\"id\":\"x\"}\n\ndata: null\n\ndata:",
            ),
        ),
        (
            5,
            "other fields",
            body.replace("data:", "id: 7\nretry: 10\nevent: message\ndata:"),
        ),
        (6, "a byte-order mark", format!("\u{feff}{body}")),
        (7, "CRLF", body.replace('\n', "\r\n")),
        (7, "CR", body.replace('\n', "\r")),
        (
            7,
            "CR, a mark and comments",
            format!("\u{feff}: on\r\r{}", body.replace('\n', "\r")),
        ),
        (
            8,
            "no space after the colon",
            body.replace("data: ", "data:"),
        ),
        (8, "doubled prefix", body.replace("data:", "data: data:")),
        (
            11,
            "data lines",
            body.replace(r#","delta""#, "\ndata: ,\"delta\""),
        ),
        (
            11,
            "data lines that end in CRLF",
            body.replace(r#","delta""#, "\ndata: ,\"delta\"")
                .replace('\n', "\r\n"),
        ),
        (11, "no empty lines", body.replace("\n\n", "\n")),
    ] {
        check(case, name, &[Answer::stream(body), whole()], told);
    }
}

/// The cuts are those of [`check`], and here also each place within the mark and the first event.
#[test]
fn case_8_reads_cut_anywhere_give_the_same() {
    let body = format!(
        "\u{feff}{}",
        events(&[TEXT, STOP, DONE]).replace('\n', "\r\n")
    );
    for at in 0..body.find("\r\n\r\n").unwrap() {
        let (head, tail) = body.as_bytes().split_at(at);
        let cut = Answer::stream(head)
            .then(Part::Silence(Duration::from_millis(1)))
            .then(Part::Bytes(tail.to_vec()));
        let played = super::play(&[cut], CUTS[0], &Manner::default());
        assert_eq!(
            played.told(),
            "Complete stop: Hé 漢😀\nend, finished: Hé 漢😀\nrequests 1\n",
            "case 8, cut at {at}"
        );
    }
}

/// What is no text becomes U+FFFD where it is read, and makes a call malformed.
#[test]
fn case_8_bytes_that_are_no_text_are_replaced_and_run_nothing() {
    let piece = r#"{"choices":[{"index":0,"delta":{"content":"a\ud83d b\u0000 c"}}]}"#;
    let broken = |data: &str| {
        let data = events(&[data]).into_bytes();
        let at = data.iter().position(|byte| *byte == 0xf0).unwrap();
        [&data[..at], b"\xff", &data[at + 4..]].concat()
    };
    let body = [
        events(&[piece]).into_bytes(),
        broken(TEXT),
        broken(CALL),
        events(&[CALLS, DONE]).into_bytes(),
    ];
    check(
        8,
        "text and arguments",
        &[Answer::stream(body.concat()), whole()],
        "
        Complete tool_calls: a\u{fffd} b\0 cHé 漢\u{fffd} Change{\"path\":\"漢\u{fffd}\"}\u{fffd}
        result, error: The call of Change did not run: the arguments are not valid JSON: trailing characters at line 1 column 18.
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        requests 2",
    );
}

#[test]
fn case_9_a_document_and_a_wrong_label_are_taken() {
    let text = r#"{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hé 漢😀"},"finish_reason":"stop"}]}"#;
    check(9, "a document", &[Answer::json(200, text)], WHOLE);
    check(9, "labelled as a stream", &[Answer::stream(text)], WHOLE);
    check(
        9,
        "kept alive by white space",
        &[Answer::json(200, &format!("\u{feff}\n \n\r\n{text}\n"))],
        WHOLE,
    );
    check(
        9,
        "an array",
        &[Answer::json(200, &format!("[{text}]"))],
        WHOLE,
    );
    let announced = format!("content-length: {}\r\n", text.len() + 9);
    check(
        9,
        "longer announced",
        &[Answer::new(200, &announced, text)],
        WHOLE,
    );
    check(
        9,
        "a stream labelled as JSON",
        &[Answer::json(200, &events(&[TEXT, STOP]))],
        WHOLE,
    );
    check(
        9,
        "a stream without a label",
        &[Answer::new(200, "", events(&[TEXT, STOP]))],
        WHOLE,
    );
    check(
        9,
        "lines of JSON",
        &[Answer::json(200, &format!("{TEXT}\n{STOP}\n"))],
        WHOLE,
    );
    check(
        9,
        "a document of calls",
        &[
            Answer::json(
                200,
                r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"Change","arguments":"{\"path\":\"a\"}"}},{"id":"b","type":"function","function":{"name":"Show","arguments":"{\"path\":\"b\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":240}}"#,
            ),
            Answer::json(200, &text[..text.len() - 9]),
            Answer::json(200, text),
        ],
        r#"
        Complete tool_calls 240/-/-: Change{"path":"a"} Show{"path":"b"}
        result, ok: a s
        result, ok: b s
        retried, torn: the connection was closed before the reply was whole
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        ran Change a, Show b
        requests 3"#,
    );
}

#[test]
fn cases_10_and_12_what_holds_no_event_is_an_error() {
    let spaced = format!(" data: {TEXT}\n\n data: [DONE]\n\n");
    check(
        10,
        "fields that start with a space",
        &[
            Answer::stream(spaced),
            Answer::stream("upstream connect error"),
            Answer::stream("data: {\"choices\":\n\ndata: soon\n\n"),
            Answer::stream(""),
            Answer::stream(format!(" data: {CALL}\n\n{}", events(&[TEXT, STOP]))),
        ],
        "
        retried, torn: the answer is no model's reply: `data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hé 漢😀\"}}]} data: [DONE]`
        retried, torn: the answer is no model's reply: `upstream connect error`
        retried, torn: the connection was closed before the reply was whole
        retried, torn: the reply is empty
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        requests 5",
    );
    let page = format!(
        "<!doctype html>\n<title>Sign\u{1b}[31m in</title>\u{202e}{}",
        "<p>x</p>\n".repeat(9000)
    );
    let shown = "<!doctype html> <title>Sign [31m in</title>";
    let shown = format!("{shown}\u{202e}{}", "<p>x</p> ".repeat(40));
    let shown: String = shown.chars().take(200).collect();
    check(
        12,
        "a page",
        &[Answer::new(200, "content-type: text/html\r\n", page)],
        &format!(
            "failed, permanent: the answer is no model's reply: `{shown}`
             end, provider: the provider failed for good: the answer is no model's reply: `{shown}`; resume to go on
             requests 1"
        ),
    );
}

/// A part of a call that cannot be read is not skipped over; noise and what follows the end are.
#[test]
fn case_10_no_call_runs_of_which_a_part_was_lost() {
    let piece = |arguments: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"c","function":{{"name":"Change","arguments":"{arguments}"}}}}]}}}}]}}"#
        )
    };
    let (first, second, third) = (
        piece(r#"{\"path\":\"a"#),
        piece("/important"),
        piece(r#"\"}"#),
    );
    let lost = &second[..second.len() - 6];
    check(
        10,
        "a broken event between the pieces of a call",
        &[
            Answer::events(&[&first, lost, &third, CALLS, DONE]),
            whole(),
        ],
        "
        retried, torn: an event of a reply with calls could not be read
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        requests 2",
    );
    check(
        10,
        "noise, and a broken event after the end",
        &[
            Answer::events(&["noise", &first, &third, CALLS, &COUNTS[..30]]),
            whole(),
        ],
        "
        Complete tool_calls: Change{\"path\":\"a\"}
        result, ok: a s
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        ran Change a
        requests 2",
    );
}

#[test]
fn case_13_a_reply_without_end_is_stopped() {
    let mut manner = Manner::default();
    manner.setup.wire.models.main.parameters.max_output_tokens = Some(5_000);
    let piece =
        |field: &str| format!(r#"{{"choices":[{{"delta":{{"{field}":"again and again "}}}}]}}"#);
    for field in ["content", "reasoning_content", "refusal"] {
        let body = events(&[&piece(field)]).repeat(6_000);
        check_in(
            13,
            field,
            &manner,
            &[Answer::stream(&body).ends(Last::Stay)],
            "
            failed, permanent: the reply has no end: it was stopped after 80000 bytes; a lower `max_output_tokens` ends such a reply earlier
            end, provider: the provider failed for good: the reply has no end: it was stopped after 80000 bytes; a lower `max_output_tokens` ends such a reply earlier; resume to go on
            requests 1",
        );
    }
    let line = "data: ".to_owned() + &"x".repeat(17 << 20);
    check(
        13,
        "a line without end",
        &[Answer::stream(line).ends(Last::Stay)],
        "
        failed, permanent: an event of the reply is larger than it may be
        end, provider: the provider failed for good: an event of the reply is larger than it may be; resume to go on
        requests 1",
    );
}
