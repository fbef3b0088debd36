//! One line about one thing: an overlay, a fault, a note.

use std::fmt::Write as _;

use undertext::id::EntryId;
use undertext::overlay::{Author, Layer, Overlay};
use undertext::setup::Setup;
use undertext::transcript::{Fault, Note};
use undertext::view::Sizes;

use crate::cli::amount;

/// `micro e210: 12,310 → 8,000 tokens, 7 results (12310 of 10000 tokens)`
pub(crate) fn overlay(id: EntryId, laid: &Overlay) -> String {
    let mut text = format!(
        "{} e{id}: {} → {} tokens, {}",
        laid.origin.word(),
        amount::count(laid.size.before),
        amount::count(laid.size.after),
        covers(&laid.layer)
    );
    if !laid.reason.is_empty() {
        write!(text, " ({})", laid.reason.replace('\n', " ")).ok();
    }
    text
}

/// What a layer covers: `7 results`, `summary of e12–e371`.
pub(crate) fn covers(layer: &Layer) -> String {
    let parts = match layer {
        Layer::Stub(stub) => vec![
            part(stub.results.len(), "result"),
            part(stub.arguments.len(), "argument"),
        ],
        Layer::Hide(hide) => vec![
            part(hide.calls.len(), "call"),
            part(hide.reasoning.len(), "block").map(|blocks| blocks + " of reasoning"),
            part(hide.attachments.len(), "attachment"),
            part(hide.rounds.len(), "span of rounds"),
        ],
        Layer::Summary(summary) => {
            let by = match summary.by {
                Author::Model => "",
                Author::User => " by a person",
                Author::Rules => " by rules",
            };
            vec![Some(format!("summary of {}{by}", summary.span))]
        }
        Layer::Show(show) => vec![part(show.calls.len(), "call").map(|calls| calls + " shown")],
    };
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

fn part(number: usize, noun: &str) -> Option<String> {
    (number > 0).then(|| amount::of(number as u64, noun))
}

/// `fault e11: rate 429, asked again in 2.0 s: slow down`
pub(crate) fn fault(id: EntryId, fault: &Fault) -> String {
    let status = fault
        .status
        .map_or_else(String::new, |status| format!(" {status}"));
    let next = fault.wait_ms.map_or_else(
        || "not asked again".to_owned(),
        |ms| format!("asked again in {}", amount::time(ms)),
    );
    let message = fault.message.replace('\n', " ");
    format!(
        "fault e{id}: {}{status}, {next}: {message}",
        fault.class.word()
    )
}

/// What a person should know of a note.
pub(crate) fn note(note: &Note) -> String {
    match note {
        Note::Warning { text } => format!("warning: {text}"),
        Note::Torn(torn) => format!(
            "the last line was never finished; its {} are left out",
            amount::of(torn.bytes, "byte")
        ),
        Note::Damage { text } => format!("damage accepted: {text}"),
        Note::SummaryFailed { request, why } => format!("no summary from e{request}: {why}"),
        Note::Hook { text } => format!("hook: {text}"),
    }
}

/// The number of tokens above which the context is compacted.
pub(crate) fn trigger(setup: &Setup) -> u64 {
    // What instructions take and what was learned have no part in it.
    Sizes::new(&setup.wire.models.main, &setup.policy, 0, 1_000).trigger
}

/// `12,310 tokens, 8 % of 150,000`
pub(crate) fn fill(tokens: u64, trigger: Option<u64>) -> String {
    let text = format!("{} tokens", amount::count(tokens));
    match trigger.filter(|trigger| *trigger > 0) {
        Some(trigger) => {
            let percent = tokens.saturating_mul(100) / trigger;
            format!("{text}, {percent} % of {}", amount::count(trigger))
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_is_one_line() {
        for (json, text) in [
            (
                r#"{"origin":"micro","rule":"micro","pass":8,"layer":{"kind":"stub","form":"previous","results":["5.1","5.2"]},"size":{"before":12310,"after":8000},"reason":"12310 of 10000 tokens"}"#,
                "micro e8: 12,310 → 8,000 tokens, 2 results (12310 of 10000 tokens)",
            ),
            (
                r#"{"origin":"auto","rule":"r","pass":8,"layer":{"kind":"hide","calls":["5.1"],"reasoning":[5,7]},"size":{"before":2,"after":1}}"#,
                "auto e8: 2 → 1 tokens, 1 call, 2 blocks of reasoning",
            ),
            (
                r#"{"origin":"auto","rule":"r","pass":8,"layer":{"kind":"summary","span":[4,7],"text":"t","by":"rules"},"size":{"before":2,"after":1}}"#,
                "auto e8: 2 → 1 tokens, summary of e4–e7 by rules",
            ),
        ] {
            assert_eq!(
                overlay(EntryId(8), &serde_json::from_str(json).unwrap()),
                text
            );
        }
        assert_eq!(fill(12_310, Some(150_000)), "12,310 tokens, 8 % of 150,000");
        assert_eq!(fill(7, None), "7 tokens");
    }
}
