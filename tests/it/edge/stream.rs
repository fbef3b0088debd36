//! The event stream and how it ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::server::{Answer, CUTS, Last, Part};
use super::{Manner, check, play_until};

const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"Hé 漢😀"}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const DONE: &str = "[DONE]";

/// What is told of a run whose first reply was this text, whole.
const WHOLE: &str = "
    Complete stop: Hé 漢😀
    end, finished: Hé 漢😀
    requests 1";

#[test]
fn case_1_a_finish_reason_is_an_end_though_the_connection_stays_open() {
    let stays = || Answer::events(&[TEXT, STOP]);
    check(1, "silence", &[stays().ends(Last::Stay)], WHOLE);
    let marker = Part::Bytes(b"data: [DONE]\n\n".to_vec());
    let late = stays()
        .then(Part::Silence(Duration::from_secs(1)))
        .then(marker);
    check(1, "a late marker", &[late.ends(Last::Stay)], WHOLE);
}

#[test]
fn case_2_an_end_in_the_middle_of_the_text_is_torn_and_asked_again() {
    let begun = || Answer::events(&[TEXT]);
    let whole = Answer::events(&[TEXT, STOP, DONE]);
    check(
        2,
        "closed, then reset",
        &[begun(), begun().ends(Last::Reset), whole],
        "
        retried, torn: the connection was closed before the reply was whole
        retried, torn: the connection was lost: error decoding response body: error reading a body from connection: Connection reset by peer (os error 104)
        Complete stop: Hé 漢😀
        end, finished: Hé 漢😀
        requests 3",
    );
}

/// Nothing of a reply that was under way is recorded when the run is stopped.
#[test]
fn a_run_is_stopped_in_the_middle_of_a_reply() {
    for cut in CUTS {
        let (came, never) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let begun = Answer::events(&[TEXT]).then(Part::Tell(Arc::clone(&came)));
        let played = play_until(
            &[begun.then(Part::Wait(never))],
            cut,
            &Manner::default(),
            |cancel| {
                tokio::spawn(async move {
                    came.notified().await;
                    cancel.cancel();
                });
            },
        );
        assert_eq!(
            played.told(),
            "end, interrupted: interrupted; resume to go on\nrequests 1\n"
        );
    }
}
