//! Cases 1 to 3, 14 and 15: whether a reply is whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::reply::{CALLS, COUNTS, DONE, STOP, TEXT, WHOLE, whole};
use super::server::{Answer, CUTS, Last, Part, events};
use super::{Manner, check, play_until};

const CALL: &str = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"Change","arguments":"{\"path\":\"漢😀\"}"}}]}}]}"#;

/// What is told of a run whose first reply was torn and whose second was whole.
const AGAIN: &str = "
    retried, torn: the connection was closed before the reply was whole
    Complete stop: Hé 漢😀
    end, finished: Hé 漢😀
    requests 2";

#[test]
fn case_1_a_finish_reason_is_an_end_though_the_connection_stays_open() {
    let stays = || Answer::events(&[TEXT, STOP]);
    check(1, "silence", &[stays().ends(Last::Stay)], WHOLE);
    let later = |bytes: &str| {
        stays()
            .then(Part::Silence(Duration::from_secs(1)))
            .then(Part::Bytes(bytes.into()))
    };
    check(
        1,
        "a late marker",
        &[later("data: [DONE]\n\n").ends(Last::Stay)],
        WHOLE,
    );
    check(
        1,
        "a marker without line end",
        &[later("data: [DONE]").ends(Last::Stay)],
        WHOLE,
    );
    check(1, "a reset", &[stays().ends(Last::Reset)], WHOLE);
    check(
        1,
        "late counts",
        &[later(&events(&[COUNTS])).ends(Last::Stay)],
        "
        Complete stop 240/-/3: Hé 漢😀
        end, finished: Hé 漢😀
        requests 1",
    );
    // Who gives a finish reason and goes on has not finished.
    let piece = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    let mut slow = Answer::events(&[piece]);
    for _ in 0..3 {
        let silence = Part::Silence(Duration::from_millis(1500));
        slow = slow
            .then(silence)
            .then(Part::Bytes(events(&[piece]).into()));
    }
    check(
        1,
        "a finish reason with each piece",
        &[slow.ends(Last::Stay)],
        "
        Complete stop: aaaa
        end, finished: aaaa
        requests 1",
    );
}

/// What is still awaited of a connection that stays open: counts or an end marker for two seconds,
/// after an end marker or an error nothing. Timers of minutes would end the reply as well.
#[test]
fn case_1_an_open_connection_is_not_waited_for() {
    let error = r#"{"error":{"message":"no such model","code":"model_not_found"}}"#;
    for (name, data, most_ms) in [
        ("a finish reason", &[TEXT, STOP][..], 2_100),
        ("a finish reason and counts", &[TEXT, STOP, COUNTS], 2_100),
        ("an end marker", &[TEXT, STOP, DONE], 200),
        ("an end marker alone", &[TEXT, DONE], 200),
        ("an error", &[TEXT, error], 200),
    ] {
        for cut in CUTS {
            let came = Arc::new(Notify::new());
            let mut answer = Answer::events(data)
                .then(Part::Tell(Arc::clone(&came)))
                .ends(Last::Stay);
            // Comments prolong nothing.
            for _ in 0..5 {
                answer = answer
                    .then(Part::Silence(Duration::from_secs(1)))
                    .then(Part::Bytes(b": keep-alive\n\n".to_vec()));
            }
            let late = Arc::new(AtomicBool::new(false));
            let passed = Arc::clone(&late);
            let played = play_until(&[answer], cut, &Manner::default(), |_| {
                tokio::spawn(async move {
                    came.notified().await;
                    tokio::time::sleep(Duration::from_millis(most_ms)).await;
                    passed.store(true, Ordering::SeqCst);
                });
            });
            let is_late = late.load(Ordering::SeqCst);
            assert!(!is_late, "{name}, {cut:?}: {}", played.told());
            assert_eq!(played.received.len(), 1, "{name}, {cut:?}");
        }
    }
}

#[test]
fn case_2_an_end_that_nobody_announced_is_torn_and_asked_again() {
    check(
        2,
        "closed in the text",
        &[Answer::events(&[TEXT]), whole()],
        AGAIN,
    );
    check(
        2,
        "closed in an event",
        &[Answer::stream(&events(&[TEXT, STOP])[..90]), whole()],
        AGAIN,
    );
    check(
        2,
        "counts are no end",
        &[Answer::events(&[TEXT, COUNTS]), whole()],
        AGAIN,
    );
    check(
        2,
        "text after the finish reason",
        &[Answer::events(&[STOP, TEXT]), whole()],
        AGAIN,
    );
    check(
        2,
        "a call that looks whole",
        &[Answer::events(&[CALL]), whole()],
        AGAIN,
    );
    check(
        2,
        "reset",
        &[Answer::events(&[TEXT]).ends(Last::Reset), whole()],
        "
        retried, torn: the connection was lost: error decoding response body: error reading a body from connection: Connection reset by peer (os error 104)
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        requests 2",
    );
    check(
        2,
        "again and again",
        &vec![Answer::events(&[CALL]); 6],
        "
        retried, torn: the connection was closed before the reply was whole
        retried, torn: the connection was closed before the reply was whole
        retried, torn: the connection was closed before the reply was whole
        retried, torn: the connection was closed before the reply was whole
        retried, torn: the connection was closed before the reply was whole
        failed, torn: the connection was closed before the reply was whole
        end, provider: the provider failed for good: the connection was closed before the reply was whole; resume to go on
        requests 6",
    );
}

#[test]
fn case_3_an_end_marker_is_an_end_without_a_reason() {
    let told = "
        Complete: Hé 漢😀
        end, finished: Hé 漢😀
        requests 1";
    check(3, "text", &[Answer::events(&[TEXT, DONE])], told);
    check(
        3,
        "no space, no line end",
        &[Answer::stream(format!("data: {TEXT}\n\ndata:[DONE]"))],
        told,
    );
    check(
        3,
        "on the event before",
        &[Answer::stream(format!("data: {TEXT}\ndata: [DONE]\n\n"))],
        told,
    );
    check(
        3,
        "before the finish reason",
        &[Answer::events(&[TEXT, DONE, STOP])],
        told,
    );
    let nothing = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
    check(
        3,
        "behind nothing",
        &[
            Answer::events(&[DONE]),
            Answer::events(&[nothing, DONE]),
            whole(),
        ],
        "
        retried, torn: the answer is no model's reply: `data: [DONE]`
        retried, torn: the reply ended with nothing in it and without a reason
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        requests 3",
    );
}

#[test]
fn case_14_nothing_counts_after_the_end_marker() {
    let error = r#"{"error":{"message":"late","code":500}}"#;
    check(
        14,
        "more of everything",
        &[Answer::events(&[
            TEXT, STOP, DONE, TEXT, CALL, CALLS, error, COUNTS,
        ])],
        WHOLE,
    );
    check(14, "an open connection", &[whole().ends(Last::Stay)], WHOLE);
}

#[test]
fn case_15_a_compressed_body_is_decoded_and_a_short_one_is_torn() {
    let gzip = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
    let packed = packed(events(&[TEXT, STOP, DONE]).as_bytes());
    check(15, "compressed", &[Answer::new(200, gzip, &packed)], WHOLE);
    let text = events(&[TEXT]);
    let lost = "retried, torn: the connection was lost: error decoding response body";
    let chunk = format!(
        "transfer-encoding: chunked\r\n\r\n{:x}\r\n{text}\r\n",
        text.len()
    );
    check(
        15,
        "short",
        &[
            Answer::new(200, gzip, &packed[..120]),
            Answer::new(200, "content-length: 1000\r\n", &text),
            Answer::raw(format!("HTTP/1.1 200 OK\r\n{chunk}")),
            Answer::raw(format!("HTTP/1.1 200 OK\r\n{chunk}2\r\n\n")),
            whole(),
        ],
        &format!(
            "
            {lost}: unexpected end of file
            {lost}: error reading a body from connection: end of file before message length reached
            {lost}: error reading a body from connection: unexpected EOF during chunk size line
            {lost}: error reading a body from connection: end of file before message length reached
            Complete stop: Hé 漢😀
            end, finished: Hé 漢😀
            requests 5"
        ),
    );
    let all = events(&[TEXT, STOP]);
    check(
        15,
        "short, but finished",
        &[Answer::new(200, "content-length: 1000\r\n", all)],
        WHOLE,
    );
}

/// The bytes as gzip, stored in one block.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1));
        }
    }
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(bytes);
    packed.extend((!crc).to_le_bytes());
    packed.extend(u32::from(length).to_le_bytes());
    packed
}

/// Nothing of a reply that was under way is recorded when the run is stopped.
#[test]
fn a_run_is_stopped_in_the_middle_of_a_reply() {
    for cut in CUTS {
        let (came, never) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let begun = Answer::events(&[TEXT]).then(Part::Tell(Arc::clone(&came)));
        let answers = [begun.then(Part::Wait(never))];
        let played = play_until(&answers, cut, &Manner::default(), |cancel| {
            tokio::spawn(async move {
                came.notified().await;
                cancel.cancel();
            });
        });
        assert_eq!(
            played.told(),
            "end, interrupted: interrupted; resume to go on\nrequests 1\n"
        );
    }
}
