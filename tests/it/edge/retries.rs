//! What is asked again, how often, and after which wait.

use std::net::TcpListener;
use std::time::Duration;

use undertext::agent::Task;
use undertext::model::{Fault, Reply, Script, Scripted};
use undertext::record::{Clock, MemoryStorage, Recorder};
use undertext::setup::Policy;
use undertext::transcript::{Event, FaultClass};

use super::server::{Answer, CUTS, Cut, Last};
use super::{Manner, Played, check, play};
use crate::scene;

const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"Done."}}]}"#;
const CALL: &str = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"Change","arguments":"{\"path\":\"a\"}"}}]}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const OVERLOADED: &str = r#"{"error":{"message":"Overloaded","type":"overloaded_error"}}"#;

/// The bodies in which one error may come.
fn bodies(status: u16) -> [String; 9] {
    let object = r#"{"error":{"message":"m","type":null,"param":null,"code":"x"}}"#;
    [
        object.to_owned(),
        format!(r#"[{{"error":{{"code":{status},"message":"m","status":"UNKNOWN"}}}}]"#),
        format!(r#"{{"error":{{"message":"m","code":{status}}}}}"#),
        r#"{"error":"m"}"#.to_owned(),
        r#"{"object":"error","message":"m","type":"Error","code":null}"#.to_owned(),
        serde_json::to_string(object).unwrap(),
        format!("<html><head><title>{status} m</title></head><body>m</body></html>"),
        "m".to_owned(),
        String::new(),
    ]
}

fn faults(played: &Played) -> Vec<(&'static str, Option<u64>)> {
    let entries = played.entries();
    let faults = entries.iter().filter_map(|entry| match &entry.event {
        Event::Fault(fault) => Some((fault.class.word(), fault.wait_ms)),
        _ => None,
    });
    faults.collect()
}

/// Cases 60 and 64. What is asked again is the same to the byte: every play is judged by that.
#[test]
fn case_60_case_64_the_status_decides_what_is_asked_again_whatever_the_body() {
    for (statuses, class, attempts) in [
        (
            &[400, 402, 404, 405, 406, 410, 413, 415, 422][..],
            "permanent",
            1,
        ),
        (&[401, 403], "auth", 1),
        (&[429], "rate", 6),
        (&[408, 409, 425, 499, 500, 502, 504], "server", 6),
        (&[520, 521, 522, 523, 524, 525, 526, 527, 528], "server", 6),
        (&[503, 529], "overload", 6),
    ] {
        for (status, body) in statuses
            .iter()
            .flat_map(|s| bodies(*s).map(|body| (*s, body)))
        {
            let answer = Answer::json(status, &body);
            for cut in CUTS {
                let played = play(&vec![answer.clone(); 7], cut, &Manner::default());
                let what = format!("{status} {body} {cut:?} {}", played.told());
                assert_eq!(played.received.len(), attempts, "{what}");
                let classes: Vec<&str> = faults(&played).iter().map(|fault| fault.0).collect();
                assert_eq!(classes, vec![class; attempts], "{what}");
                assert!(what.contains("end, provider: "), "{what}");
            }
        }
    }
}

/// Case 64: what was refused for good is taken up again, as a request of its own.
#[test]
fn case_64_a_run_that_was_refused_stays_resumable() {
    for status in [401, 403, 404, 400, 422] {
        let refused = Answer::json(status, r#"{"error":{"message":"no","code":"x"}}"#);
        for cut in CUTS {
            let played = play(std::slice::from_ref(&refused), cut, &Manner::default());
            let again = super::resume(&played.storage, &[Answer::events(&[TEXT, STOP])], cut);
            let told = again.told();
            assert!(
                told.ends_with("end, finished: Done.\nrequests 1\n"),
                "{told}"
            );
        }
    }
}

/// Case 58: how long it waits, at least and at most, when a server asks for it. `None`: not at all.
#[test]
fn case_58_the_wait_that_is_asked_for_is_kept_and_only_prolonged() {
    let date = "date: Sat, 21 Nov 2026 20:00:00 GMT\r\n";
    let words = |words: &str| format!(r#"{{"error":{{"message":"{words}","code":"x"}}}}"#);
    let at_once = Some((500, 625));
    for (headers, body, wait) in [
        ("retry-after: 7\r\n", "", Some((7_000, 8_750))),
        ("retry-after: 0\r\n", "", at_once),
        ("retry-after: 0.25\r\n", "", Some((250, 313))),
        ("retry-after: 1.0004\r\n", "", Some((1_001, 1_251))),
        (
            "retry-after: Sat, 21 Nov 2026 20:01:00 GMT\r\n",
            "",
            Some((60_000, 75_000)),
        ),
        (
            "retry-after: Sat, 21 Nov 2026 19:01:00 GMT\r\n",
            "",
            at_once,
        ),
        ("retry-after-ms: 1500.2\r\n", "", Some((1_501, 1_876))),
        (
            "retry-after-ms: 1000\r\nretry-after: 3\r\n",
            "",
            Some((3_000, 3_750)),
        ),
        (
            "retry-after: 3\r\n",
            "try again in 20s",
            Some((20_000, 25_000)),
        ),
        ("", "try again in 1m2.5s", Some((62_500, 78_125))),
        ("retry-after: soon\r\n", "", at_once),
        ("retry-after: -5\r\n", "", at_once),
        ("retry-after: NaN\r\n", "", at_once),
        ("retry-after: 1e400\r\n", "", at_once),
        ("retry-after: 99999999999\r\n", "", at_once),
        (
            "x-ratelimit-remaining-tokens: 0\r\nx-ratelimit-reset-tokens: 7.66s\r\n",
            "",
            Some((7_660, 9_575)),
        ),
        (
            "x-ratelimit-remaining-tokens: 9\r\nx-ratelimit-reset-tokens: 7.66s\r\n",
            "",
            at_once,
        ),
        ("retry-after: 599\r\n", "", Some((599_000, 600_000))),
        ("retry-after: 600\r\n", "", Some((600_000, 600_000))),
        ("retry-after: 601\r\n", "", None),
        ("retry-after: 86400\r\n", "", None),
    ] {
        for (status, cut) in [429, 503]
            .into_iter()
            .flat_map(|s| CUTS.map(|cut| (s, cut)))
        {
            let refused = Answer::new(status, &[date, headers].concat(), words(body));
            let answers = [refused, Answer::events(&[TEXT, STOP])];
            let played = play(&answers, cut, &Manner::default());
            let what = format!("{status} {headers} {body} {cut:?} {}", played.told());
            let waited = faults(&played)[0].1;
            match wait {
                None => assert_eq!((waited, played.received.len()), (None, 1), "{what}"),
                Some((least, most)) => {
                    let waited = waited.unwrap();
                    assert!((least..=most).contains(&waited), "{waited}: {what}");
                }
            }
        }
    }
}

/// Case 58: above the cap it does not sleep, and says when to come back.
#[test]
fn case_58_a_wait_above_the_cap_ends_the_run_and_says_until_when() {
    let answer = |body: &str| Answer::new(429, "retry-after: 7200\r\n", body);
    check(
        58,
        "above the cap",
        &[answer("")],
        "
        failed, rate: status 429 without a message (it asks to come back in 7200 s, at 2026-11-21T22:00:00.000Z)
        end, provider: the provider failed for good: status 429 without a message (it asks to come back in 7200 s, at 2026-11-21T22:00:00.000Z); resume to go on
        requests 1",
    );
    check(
        58,
        "a limit of the day",
        &[answer("Rate limit reached on requests per day (RPD)")],
        "
        failed, permanent: Rate limit reached on requests per day (RPD) (it asks to come back in 7200 s, at 2026-11-21T22:00:00.000Z)
        end, provider: the provider failed for good: Rate limit reached on requests per day (RPD) (it asks to come back in 7200 s, at 2026-11-21T22:00:00.000Z); resume to go on
        requests 1",
    );
}

/// Case 59: a limit that passes, an empty purse, and what may be either.
#[test]
fn case_59_a_limit_is_waited_out_and_an_empty_purse_is_not() {
    let quota = "You exceeded your current quota, please check your plan and billing details.";
    let body = |message: &str, kind: &str, code: &str| {
        format!(
            r#"{{"error":{{"message":"{message}","type":"{kind}","param":null,"code":{code}}}}}"#
        )
    };
    for (status, body, class, attempts) in [
        (
            429,
            body(
                "Rate limit reached for m",
                "requests",
                "\"rate_limit_exceeded\"",
            ),
            "rate",
            6,
        ),
        (
            429,
            body("Rate limit reached for m", "tokens", "null"),
            "rate",
            6,
        ),
        (
            400,
            body("Slow down", "ThrottlingException", "null"),
            "rate",
            6,
        ),
        (
            429,
            body(quota, "insufficient_quota", "\"insufficient_quota\""),
            "permanent",
            1,
        ),
        (
            429,
            body(quota, "insufficient_quota", "null"),
            "permanent",
            1,
        ),
        (429, body("m", "billing_error", "429"), "permanent", 1),
        (
            402,
            body("Insufficient Balance", "unknown_error", "null"),
            "permanent",
            1,
        ),
        (
            429,
            body("Limit of tokens per day (TPD) reached", "tokens", "null"),
            "permanent",
            1,
        ),
        (429, body(quota, "", "429"), "rate", 4),
        (429, body("Usage limit reached", "", "\"1308\""), "rate", 4),
    ] {
        for cut in CUTS {
            let answer = Answer::json(status, &body);
            let played = play(&vec![answer; 7], cut, &Manner::default());
            let classes: Vec<&str> = faults(&played).iter().map(|fault| fault.0).collect();
            assert_eq!(classes, vec![class; attempts], "{body} {}", played.told());
            assert_eq!(played.received.len(), attempts, "{body}");
        }
    }
}

/// Case 61: within a reply of status 200 an error has the class that it has outside.
#[test]
fn case_61_overload_within_a_reply_is_asked_again() {
    let named = format!("event: error\ndata: {OVERLOADED}\n\n");
    let stays = Answer::stream(named).ends(Last::Stay);
    check(
        61,
        "at once, and after some text",
        &[
            stays,
            Answer::events(&[TEXT, OVERLOADED]),
            Answer::events(&[TEXT, STOP]),
        ],
        "
        retried, overload: Overloaded
        retried, overload: Overloaded
        Complete stop: Done.
        end, finished: Done.
        requests 3",
    );
}

/// One budget for all classes: six attempts, ten minutes from the first failure.
#[test]
fn one_budget_serves_all_classes_together() {
    let whole = Answer::events(&[TEXT, STOP]);
    for cut in CUTS {
        let mixed = [
            Answer::json(429, ""),
            Answer::json(500, ""),
            Answer::events(&[TEXT]),
            Answer::raw("").ends(Last::Reset),
            Answer::events(&[OVERLOADED]),
            Answer::raw("").ends(Last::Stay),
            whole.clone(),
        ];
        let played = play(&mixed, cut, &Manner::default());
        let classes: Vec<&str> = faults(&played).iter().map(|fault| fault.0).collect();
        assert_eq!(
            classes,
            ["rate", "server", "torn", "transport", "overload", "stall"]
        );
        let played = play(&mixed[1..], cut, &Manner::default());
        assert_eq!(faults(&played).len(), 5);
        assert!(played.told().contains("end, finished: Done."));

        let slow = Answer::new(429, "retry-after: 250\r\n", "");
        let played = play(&vec![slow; 7], cut, &Manner::default());
        let waits: Vec<Option<u64>> = faults(&played).iter().map(|fault| fault.1).collect();
        assert_eq!(
            waits.iter().map(Option::is_some).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert!(waits.iter().flatten().sum::<u64>() <= 600_000, "{waits:?}");

        let mut policy = Policy::default();
        policy.retries.attempts = 2;
        let manner = Manner {
            setup: scene::setup(100_000, policy),
            ..Manner::default()
        };
        let played = play(&vec![Answer::json(503, ""); 7], cut, &manner);
        assert_eq!(played.received.len(), 2);
    }
}

/// The time for asking again begins with the first failure: a long reply may be torn at its end.
#[test]
fn a_reply_that_was_torn_after_forty_minutes_is_asked_for_once_more() {
    let clock = Clock::fixed(scene::BEGIN);
    let torn = |minutes: u64| {
        let clock = clock.clone();
        Script::with(move |_| {
            clock.advance(minutes * 60_000);
            Err(Fault::new(FaultClass::Torn, "torn"))
        })
    };
    for (attempts, reason) in [
        (vec![torn(40), Reply::text("Done.").into()], "finished"),
        (
            vec![torn(40), torn(9), Reply::text("Done.").into()],
            "finished",
        ),
        (vec![torn(40), torn(5), torn(6)], "provider"),
    ] {
        let count = attempts.len();
        let model = Scripted::new(attempts);
        let agent = scene::agent(100_000, Policy::default(), model.clone());
        let (storage, run) = (MemoryStorage::default(), scene::run(&clock));
        let mut recorder = Recorder::create(Box::new(storage), clock.clone(), run).unwrap();
        let finished = scene::go(&agent, &mut recorder, Some(Task::new("Go."))).unwrap();
        assert_eq!(finished.reason.word(), reason);
        assert_eq!(model.asked().len(), count);
    }
}

/// The unit of asking again is one request: what ran is not run again.
#[test]
fn an_effect_is_never_repeated() {
    check(
        60,
        "after a call",
        &[
            Answer::events(&[CALL, STOP]),
            Answer::json(500, ""),
            Answer::events(&[CALL]),
            Answer::events(&[TEXT, STOP]),
        ],
        "
        Complete stop: Change{\"path\":\"a\"}
        result, ok: a s
        retried, server: status 500 without a message
        retried, torn: the connection was closed before the reply was whole
        Complete stop: Done.
        end, finished: Done.
        ran Change a
        requests 4",
    );
}

/// Redirects are not followed, and the key goes where it was named for.
#[test]
fn a_redirect_is_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let to = elsewhere.local_addr().unwrap();
    for status in [301, 302, 303, 307, 308] {
        let answer = Answer::new(status, &format!("location: http://{to}/v1\r\n"), "");
        let mut manner = Manner {
            key: Some("sk-very-secret"),
            ..Manner::default()
        };
        // Nobody answers there, and nobody need wait for that.
        manner.timeouts.bytes = Duration::from_secs(1);
        let played = play(&vec![answer; 2], Cut::Whole, &manner);
        let told = played.told();
        assert!(
            told.contains("failed, permanent: redirects are not followed (status 3"),
            "{told}"
        );
        let [received] = &played.received[..] else {
            panic!("{told}")
        };
        assert_eq!(
            received.header("authorization"),
            Some("Bearer sk-very-secret")
        );
        assert!(elsewhere.accept().is_err());
    }
}
