//! What servers count of a request, and what a run makes of it.

use undertext::exchange::Usage;
use undertext::transcript::{Event, Totals};

use super::server::{Answer, CUTS};
use super::{Manner, Played, play};

const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"Done."}}],"usage":{"prompt_tokens":50,"completion_tokens":1}}"#;
const TEXT_ONLY: &str = r#"{"choices":[{"index":0,"delta":{"content":"Done."}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

fn totals(played: &Played) -> Totals {
    let entries = played.entries();
    match entries.last().map(|entry| &entry.event) {
        Some(Event::End(end)) => end.totals,
        end => panic!("{end:?}"),
    }
}

/// What was counted of an attempt that failed is counted, once.
#[test]
fn an_attempt_that_failed_is_paid_for_as_well() {
    for cut in CUTS {
        let answers = [
            Answer::events(&[TEXT, TEXT]),
            Answer::events(&[TEXT, STOP, "[DONE]"]),
        ];
        let played = play(&answers, cut, &Manner::default());
        let counted: Vec<Usage> = played
            .entries()
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Fault(fault) => fault.usage,
                _ => None,
            })
            .collect();
        let once = Usage {
            input: Some(50),
            output: Some(1),
            ..Usage::default()
        };
        assert_eq!(counted, [once]);
        let totals = totals(&played);
        assert_eq!((totals.input, totals.output), (100, 2));
    }
}

/// No attempt begins once what the ones before used reaches the limit.
#[test]
fn a_limit_that_a_failed_attempt_reaches_ends_the_run() {
    let mut manner = Manner::default();
    manner.setup.policy.limits.tokens = Some(51);
    for cut in CUTS {
        let played = play(&[Answer::events(&[TEXT])], cut, &manner);
        assert_eq!(
            played.told(),
            "retried, torn: the connection was closed before the reply was whole\n\
             end, tokens: the limit of tokens is reached; resume to go on\n\
             requests 1\n"
        );
    }
}

/// Where tokens from a cache are left out of those read, they are added.
#[test]
fn tokens_that_are_counted_apart_are_added() {
    let usage = r#"{"choices":[],"usage":{"input_tokens":5,"cache_read_input_tokens":40,"cache_creation_input_tokens":7,"output_tokens":1}}"#;
    for (apart, input) in [(false, 5), (true, 52)] {
        let mut manner = Manner::default();
        let model = &mut manner.setup.wire.models.main;
        model.profile.usage.cached_apart = apart;
        for cut in CUTS {
            let played = play(
                &[Answer::events(&[TEXT_ONLY, usage, STOP, "[DONE]"])],
                cut,
                &manner,
            );
            let counted = played
                .entries()
                .iter()
                .find_map(|entry| match &entry.event {
                    Event::Response(response) => response.usage,
                    _ => None,
                });
            let expected = Usage {
                input: Some(input),
                cached: Some(40),
                cache_write: Some(7),
                output: Some(1),
                reasoning: None,
            };
            assert_eq!(counted, Some(expected), "{apart}");
        }
    }
}
