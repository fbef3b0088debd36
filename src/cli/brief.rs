//! One line about one thing: an overlay, a fault, a note.

use std::fmt::Write as _;

use undertext::exchange::Clipped;
use undertext::export;
use undertext::id::EntryId;
use undertext::overlay::{Layer, Overlay};
use undertext::secret::Masks;
use undertext::setup::Setup;
use undertext::transcript::{Check, Fault, Hook, Note, Speaker, User};
use undertext::view::Sizes;
use undertext::words;

use crate::cli::amount;

/// `micro e210: 12,310 → 8,000 tokens, 7 results (12,310 of 10,000 tokens)`
pub(crate) fn overlay(id: EntryId, laid: &Overlay) -> String {
    let mut text = format!(
        "{} e{id}: {} → {} tokens, {}",
        laid.origin.word(),
        amount::count(laid.size.before),
        amount::count(laid.size.after),
        export::covers(&laid.layer)
    );
    if !laid.reason.is_empty() {
        let reason = laid.reason.replace('\n', " ");
        write!(text, " ({})", words::figures(&reason)).ok();
    }
    text
}

/// The kind of a layer, as it is recorded.
pub(crate) fn kind(layer: &Layer) -> &'static str {
    match layer {
        Layer::Stub(_) => "stub",
        Layer::Hide(_) => "hide",
        Layer::Summary(_) => "summary",
        Layer::Show(_) => "show",
    }
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

/// `e41 does not fit the schema; the model corrects it`
pub(crate) fn repair(response: EntryId) -> String {
    format!("e{response} does not fit the schema; the model corrects it")
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
        Note::SummaryFailed { request, why } => {
            format!("no summary from e{request}: {}", words::figures(why))
        }
        Note::Hook(said) => hook(said),
        Note::Check(check) => checked(check),
    }
}

/// `hook: no compaction now (the tests run)`, `hook: 2 texts must be kept`
fn hook(said: &Hook) -> String {
    if said.failed {
        return format!("warning: {}", said.text);
    }
    let keep = said.keep.len() as u64;
    let mut line = match (said.veto, keep) {
        (true, _) => "hook: no compaction now".to_owned(),
        (false, 0) => "hook: go on".to_owned(),
        (false, 1..) => format!("hook: {} must be kept", amount::of(keep, "text")),
    };
    if !said.text.trim().is_empty() {
        write!(line, " ({})", said.text.trim().replace('\n', " ")).ok();
    }
    line
}

/// `check of e41: passed, 2.1 s`, `check of e41: failed with exit 1, 2.1 s`
fn checked(check: &Check) -> String {
    let verdict = match (check.passed, check.exit) {
        (true, _) => "passed".to_owned(),
        (false, Some(exit)) => format!("failed with exit {exit}"),
        (false, None) => "did not come to an end".to_owned(),
    };
    let took = check
        .ms
        .map_or_else(String::new, |ms| format!(", {}", amount::time(ms)));
    format!("check of e{}: {verdict}{took}", check.response)
}

/// What was clipped of a message that had so many characters before.
pub(crate) fn clipped(said: &User, before: u64) -> Vec<String> {
    if !matches!(said.origin, Speaker::Task | Speaker::FollowUp) {
        return Vec::new();
    }
    let line = |name: &str, text: &str, whole: String, clipped: &Clipped| {
        let rest = match clipped.blob {
            Some(_) => "the model can read the rest by Recall",
            None => "the rest was too large to keep",
        };
        let chars = amount::count(text.chars().count() as u64);
        format!("the {name} was clipped to {chars}{whole}; {rest}")
    };
    let task = said.clipped.as_ref().map(|clipped| {
        let whole = format!(" of {}", amount::of(before, "character"));
        line("task", &said.text, whole, clipped)
    });
    let attachments = said.attachments.iter().filter_map(|attachment| {
        let clipped = attachment.clipped.as_ref()?;
        let whole = format!(" characters of {}", amount::of(clipped.bytes, "byte"));
        let name = format!("attachment {}", attachment.name);
        Some(line(&name, &attachment.text, whole, clipped))
    });
    task.into_iter().chain(attachments).collect()
}

/// The first line of a text that says something, masked and then cut to so many characters: what is
/// left of a secret that is cut looks like none any more.
pub(crate) fn first_line(masks: &Masks, text: &str, chars: usize) -> String {
    let text = masks.text(text);
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default().trim_end();
    if line.len() == text.len() {
        return shortened(line, chars);
    }
    let head: String = line.chars().take(chars.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

/// The text masked, or as much of its beginning as fits so many characters.
pub(crate) fn cut(masks: &Masks, text: &str, chars: usize) -> String {
    shortened(&masks.text(text), chars)
}

fn shortened(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    let head: String = text.chars().take(chars.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

/// The first line, masked and cut between words where that leaves more than half of the room.
pub(crate) fn cut_between(masks: &Masks, text: &str, chars: usize) -> String {
    let text = first_line(masks, text, chars);
    match text.strip_suffix('…').and_then(|cut| cut.rsplit_once(' ')) {
        Some((whole, _)) if text.chars().count() == chars && whole.len() > chars / 2 => {
            format!("{}…", whole.trim_end_matches([',', ' ']))
        }
        Some(_) | None => text,
    }
}

/// The text masked, or as much of its end as fits so many characters.
pub(crate) fn tail(masks: &Masks, text: &str, chars: usize) -> String {
    let text = masks.text(text);
    let all = text.chars().count();
    if all <= chars {
        return text.into_owned();
    }
    let end = text.chars().skip(all - chars.saturating_sub(1));
    std::iter::once('…').chain(end).take(chars).collect()
}

/// The number of tokens above which the context is compacted.
pub(crate) fn trigger(setup: &Setup) -> u64 {
    // What instructions take and what was learned have no part in it.
    Sizes::new(&setup.wire.models.main, &setup.policy, 0, 1_000).trigger
}

/// `12,310 tokens, 8 % of 150,000`
pub(crate) fn fill(tokens: u64, trigger: Option<u64>) -> String {
    let text = amount::of(tokens, "token");
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
    fn a_long_text_is_cut_to_its_first_line() {
        for (text, chars, shown) in [
            ("\n short \n", 5, "short"),
            ("one\ntwo", 10, "one…"),
            ("one\ntwo", 3, "on…"),
            ("a longer line", 9, "a longer…"),
            ("a longer line", 13, "a longer line"),
        ] {
            assert_eq!(first_line(&Masks::default(), text, chars), shown);
        }
        for (text, chars, shown) in [
            ("one two three", 13, "one two three"),
            ("one two three", 12, "one two…"),
            ("one, twothreefour", 9, "one, two…"),
            ("one two\nthree", 20, "one two…"),
        ] {
            assert_eq!(cut_between(&Masks::default(), text, chars), shown);
        }
    }

    /// The samples of the tests of the program: a secret stands in `«»`, what is drawn in it as `<24>`.
    const SHAPES: &str = include_str!("../../tests/it/cli/shapes.txt");

    /// A sample as a line, and the secret in it.
    fn drawn(sample: &str) -> (String, String) {
        let mut line = String::new();
        for (place, part) in sample.split(['<', '>']).enumerate() {
            let (alphabet, count) = match part.chars().next() {
                _ if place % 2 == 0 => {
                    line.push_str(part);
                    continue;
                }
                Some('x') => ("7f3a9c0e5b1d8264", &part[1..]),
                Some('A') => ("K7QZM2XRB4NVT6WJ", &part[1..]),
                _ => ("q7Zk2Xw9Rb4Nv6Tj", part),
            };
            let count = count.parse().unwrap();
            // No neighbours repeat, as they do not in what is drawn.
            let signs = (0..count).map(|at: usize| alphabet.as_bytes()[(at * 7 + at / 16) % 16]);
            line.extend(signs.map(char::from));
        }
        let (_, secret) = line.split_once('«').unwrap();
        let secret = secret.split_once('»').unwrap().0.to_owned();
        (line.replace(['«', '»'], ""), secret)
    }

    #[test]
    fn of_a_secret_nothing_is_left_wherever_it_is_cut() {
        let masks = Masks::default();
        let samples = SHAPES.lines().filter(|line| line.contains('«'));
        // Lines of keys are none without those around them.
        let samples: Vec<&str> = samples.filter(|line| !line.starts_with("«<")).collect();
        assert!(samples.len() >= 45);
        for sample in samples {
            let (line, secret) = drawn(sample);
            let begins = &secret[..secret.len().min(6)];
            let ends = &secret[secret.len() - 6..];
            for column in 1..line.len() + 8 {
                for cut in [
                    cut(&masks, &format!("do: {line}"), column),
                    first_line(&masks, &format!("do: {line}\nthen"), column),
                    cut_between(&masks, &format!("do: {line}\nthen"), column),
                    tail(&masks, &line, column),
                ] {
                    assert!(
                        !cut.contains(begins) && !cut.contains(ends),
                        "{sample}: {cut}"
                    );
                }
            }
        }
        let key =
            "-----BEGIN PRIVATE KEY-----\nq7Zk2Xw9Rb4Nv6Tjq7Zk2Xw9\n-----END PRIVATE KEY-----";
        for column in 1..80 {
            assert!(!first_line(&masks, key, column).contains("BEGIN P"));
        }
    }

    #[test]
    fn an_overlay_is_one_line() {
        for (json, text) in [
            (
                r#"{"origin":"micro","rule":"micro","pass":8,"layer":{"kind":"stub","form":"previous","results":["5.1","5.2"]},"size":{"before":12310,"after":8000},"reason":"12310 of 10000 tokens"}"#,
                "micro e8: 12,310 → 8,000 tokens, 2 results (12,310 of 10,000 tokens)",
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
