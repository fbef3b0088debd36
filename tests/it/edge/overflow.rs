//! Requests that are too long for the server's window, refused in every known way (cases 68 to 80).

use undertext::overlay::Origin;
use undertext::setup::Setup;
use undertext::transcript::{Event, FaultClass, Reason};

use super::server::{Answer, CUTS};
use super::{Manner, Played, check_in, play};
use crate::overflow::wordings::{How, WORDINGS, Wording};

/// What the server's window holds.
const WINDOW: u64 = 18_000;

const DONE: &str =
    r#"{"choices":[{"index":0,"delta":{"content":"Done."},"finish_reason":"stop"}]}"#;

/// A reply that calls `Show` for so many characters.
fn shows(chars: u32) -> Answer {
    let call = format!(
        r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"c","function":{{"name":"Show","arguments":"{{\"path\":\"a\",\"chars\":{chars}}}"}}}}]}},"finish_reason":"tool_calls"}}]}}"#
    );
    Answer::events(&[&call, "[DONE]"])
}

fn done() -> Answer {
    Answer::events(&[DONE, "[DONE]"])
}

fn refuses(wording: &Wording, how: How) -> Answer {
    let says = wording.of(20_000, 1_000, WINDOW);
    match how {
        How::Status(status) => Answer::json(status, &says),
        How::Document => Answer::json(200, &says),
        How::Event => Answer::events(&[&says]),
        How::Finish => Answer::events(&[
            &format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{says}"}}]}}"#),
            r#"{"choices":[],"usage":{"prompt_tokens":20000,"completion_tokens":0}}"#,
            "[DONE]",
        ]),
    }
}

/// A model that is said to have this window; nothing is compacted before it is full.
fn manner(window: u64) -> Manner {
    let mut manner = Manner::default();
    let Setup { wire, policy } = &mut manner.setup;
    wire.models.main.window = Some(window);
    policy.compaction.auto.trigger_ratio = 1.0;
    manner
}

fn windows(played: &Played) -> Vec<u64> {
    let entries = played.entries();
    let windows = entries.iter().filter_map(|entry| match &entry.event {
        Event::Setup(setup) => setup.wire.models.main.window,
        _ => None,
    });
    windows.collect()
}

/// Plays a run that is refused so after these rounds, of so many characters each, in three cuts: the refusal is known for what it is,
/// the window is learned, one pass makes room, and the run goes on to its end.
fn recovers(wording: &Wording, how: How, window: u64, rounds: (usize, u32)) {
    let (rounds, chars) = rounds;
    let mut answers = vec![shows(chars); rounds];
    answers.extend([refuses(wording, how), done()]);
    let mut first = None;
    for cut in CUTS {
        let what = format!("case {}, {how:?}, {cut:?}: {}", wording.case, wording.says);
        let played = play(&answers, cut, &manner(window));
        let entries = played.entries();
        let faults: Vec<FaultClass> = entries
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Fault(fault) => Some(fault.class),
                _ => None,
            })
            .collect();
        assert_eq!(faults, [FaultClass::Overflow], "{what}");
        let [declared, learned] = windows(&played)[..] else {
            panic!("{what}: {:?}", windows(&played))
        };
        assert_eq!(declared, window, "{what}");
        if wording.names_window() {
            assert_eq!(learned, WINDOW, "{what}");
        } else {
            assert!((12_000..window).contains(&learned), "{what}: {learned}");
        }
        let laid = entries.iter().filter(|entry| match &entry.event {
            Event::Overlay(laid) => laid.origin == Origin::Recovery && laid.pass == entry.id,
            _ => false,
        });
        assert_eq!(laid.count(), 1, "{what}");
        let [.., refused, again] = &played.received[..] else {
            panic!("{what}")
        };
        assert!(again.body.len() < refused.body.len(), "{what}");
        let end = entries.last().map(|entry| &entry.event);
        assert!(
            matches!(end, Some(Event::End(end)) if end.reason == Reason::Finished),
            "{what}: {}",
            played.told()
        );
        let bytes = played.storage.bytes();
        assert_eq!(first.get_or_insert(bytes.clone()), &bytes, "{what}");
    }
}

fn each(case: u32) {
    let wordings = WORDINGS.iter().filter(|wording| wording.case == case);
    for wording in wordings {
        recovers(wording, wording.how, 32_000, (4, 16_000));
        // The same inside a reply of status 200.
        if let How::Status(_) = wording.how {
            recovers(wording, How::Event, 32_000, (4, 16_000));
        }
    }
}

#[test]
fn case_68_a_code_and_the_usual_wordings() {
    each(68);
}

#[test]
fn case_69_a_sum_that_exceeds() {
    each(69);
}

#[test]
fn case_70_a_count_that_exceeds() {
    each(70);
}

#[test]
fn case_71_a_maximum_length_of_the_prompt() {
    each(71);
}

#[test]
fn case_72_an_advice_to_say_less() {
    each(72);
}

#[test]
fn case_73_an_input_longer_than_the_context() {
    each(73);
}

#[test]
fn case_74_output_and_prompt_together() {
    each(74);
}

#[test]
fn case_75_a_type_with_numbers_beside_it() {
    each(75);
}

#[test]
fn case_76_an_excess_and_no_window() {
    each(76);
}

#[test]
fn case_77_other_wordings() {
    each(77);
}

/// What explains nothing, near the limit.
#[test]
fn case_78_a_refusal_without_a_word_near_the_limit() {
    for wording in WORDINGS.iter().filter(|wording| wording.case == 78) {
        recovers(wording, wording.how, 19_000, (6, 8_500));
    }
}

/// A count above the window with a normal answer is flagged, and the run goes on.
#[test]
fn case_78_a_count_above_the_window() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":40000,"completion_tokens":1}}"#;
    check_in(
        78,
        "a count above the window",
        &manner(32_000),
        &[Answer::events(&[DONE, usage, "[DONE]"])],
        "
        Complete stop 40000/-/1: Done.
        warning: the provider counted 40,000 tokens in request 4, more than the window of 32,000; counts like that are not believed
        end, finished: Done.
        requests 1",
    );
}

/// A profile's own words are known as well, and the number behind them.
#[test]
fn a_profile_says_how_else_a_request_is_too_long() {
    let refusal = r#"{"error":{"message":"Trop de mots, au plus 18000.","type":"invalide"}}"#;
    for answer in [
        Answer::json(400, refusal),
        Answer::json(500, refusal),
        Answer::events(&[refusal]),
    ] {
        for cut in CUTS {
            let mut manner = manner(32_000);
            let profile = &mut manner.setup.wire.models.main.profile;
            profile.overflow = vec!["trop de mots, au plus".to_owned()];
            let mut answers = vec![shows(16_000); 4];
            answers.extend([answer.clone(), done()]);
            let played = play(&answers, cut, &manner);
            assert_eq!(windows(&played), [32_000, WINDOW], "{}", played.told());
            assert_eq!(played.received.len(), 6);
        }
    }
}

#[test]
fn case_79_instructions_and_tools_alone_are_too_large() {
    let mut manner = manner(8_000);
    manner.setup.wire.instructions = "Be careful. ".repeat(2_000);
    for cut in CUTS {
        let played = play(&[], cut, &manner);
        let told = played.told();
        let numbers = "end, oversize: instructions and tools alone take ";
        assert!(
            told.starts_with(numbers) && told.ends_with("requests 0\n"),
            "{told}"
        );
    }
}

/// Room is made twice; refused a third time, the run ends with what the server said first.
#[test]
fn case_80_passes_that_do_not_help() {
    let refusal = |word: &str| {
        Answer::json(
            400,
            &format!(r#"{{"error":{{"message":"{word}","code":"context_length_exceeded"}}}}"#),
        )
    };
    let mut answers = vec![shows(16_000); 4];
    answers.extend(["first", "second", "third", "fourth"].map(refusal));
    for cut in CUTS {
        let played = play(&answers, cut, &manner(32_000));
        let told = played.told();
        let faults: Vec<&str> = told.lines().skip(8).collect();
        let expected = [
            "failed, overflow: first",
            "failed, overflow: second",
            "failed, overflow: third",
            "end, provider: the provider failed for good: first; resume to go on",
            "ran Show a, Show a, Show a, Show a",
            "requests 7",
        ];
        assert_eq!(faults, expected, "{cut:?}");
    }
}
