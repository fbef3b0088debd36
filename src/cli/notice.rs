//! What people are told of a compaction: one line.

use std::fmt::Write as _;

use undertext::compaction::notice::{Failed, Laid, Next, Notice, Planned, Shape};
use undertext::overlay::{Author, Origin};

use crate::cli::amount;

/// The line of a notice.
pub(crate) fn line(notice: &Notice) -> String {
    match notice {
        Notice::Planned(planned) => format!("compacting: {}", asks(planned)),
        Notice::Laid(pass) => laid(pass),
        Notice::Failed(failure) => failed(failure),
    }
}

/// `asking m for a summary of rounds 3 to 84 (about 118,000 tokens)`
pub(crate) fn asks(planned: &Planned) -> String {
    let what = match planned.rounds {
        Some([first, last]) if first == last => format!("round {first}"),
        Some([first, last]) => format!("rounds {first} to {last}"),
        None => planned.span.to_string(),
    };
    let tokens = amount::count(planned.tokens);
    let what = match (planned.replaces, planned.texts, planned.part) {
        (Some(summaries), ..) => format!("one summary of {what} in place of {summaries}"),
        (None, Some(texts), _) => format!("one summary of {texts} texts on {what}"),
        (None, None, Some([part, of])) => format!("part {part} of {of} of a summary of {what}"),
        (None, None, None) => format!("a summary of {what}"),
    };
    format!(
        "asking {} for {what} (about {tokens} tokens)",
        planned.model
    )
}

/// `compacted (auto): [412 entries] → [summary + 38 entries], 151,200 → 74,300 tokens, 2 overlays`
fn laid(laid: &Laid) -> String {
    let (before, after) = (laid.before, laid.after);
    let tokens = format!(
        "{} → {} tokens",
        amount::count(before.tokens),
        amount::count(after.tokens)
    );
    if laid.origin == Origin::Micro {
        let results = amount::of(laid.results, "result");
        return format!("put away {results}, {tokens}");
    }
    let how = match laid.by {
        Some(Author::Rules) => ", without a model",
        Some(Author::Model | Author::User) | None => "",
    };
    let origin = laid.origin.word();
    let overlays = amount::of(laid.overlays.len() as u64, "overlay");
    format!(
        "compacted ({origin}{how}): {} → {}, {tokens}, {overlays}",
        shape(before),
        shape(after)
    )
}

/// `[412 entries]`, `[summary + 38 entries]`, `[2 summaries + 38 entries]`
fn shape(shape: Shape) -> String {
    let mut text = match shape.summaries {
        0 => "[".to_owned(),
        1 => "[summary + ".to_owned(),
        several => format!("[{several} summaries + "),
    };
    let entries = if shape.entries == 1 {
        "entry"
    } else {
        "entries"
    };
    write!(text, "{} {entries}]", amount::count(shape.entries)).ok();
    text
}

/// `no summary (cut); trying again with results clipped harder`
fn failed(failed: &Failed) -> String {
    let model = failed.model.as_deref().unwrap_or("a model");
    let next = match failed.next {
        Next::Harder => "trying again with results clipped harder".to_owned(),
        Next::Ask => format!("asking {model}"),
        Next::Rules => "making one without a model".to_owned(),
        Next::Strip => "going on without one, old calls are put away".to_owned(),
        Next::Stop => "the run ends".to_owned(),
        Next::GoOn => "going on without one".to_owned(),
    };
    format!("no summary ({}); {next}", failed.why.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use undertext::id::{EntryId, Span};

    use super::*;

    fn planned(
        rounds: Option<[u32; 2]>,
        part: Option<[u32; 2]>,
        [texts, replaces]: [Option<usize>; 2],
    ) -> Notice {
        Notice::Planned(Planned {
            origin: Origin::Auto,
            model: "m".to_owned(),
            span: Span::new(EntryId(12), EntryId(371)),
            rounds,
            part,
            texts,
            replaces,
            tokens: 118_000,
        })
    }

    fn passed(origin: Origin, by: Option<Author>, [summaries, more, entries]: [u64; 3]) -> Notice {
        let shape = |summaries, entries, tokens| Shape {
            summaries,
            entries,
            tokens,
        };
        Notice::Laid(Laid {
            origin,
            pass: EntryId(380),
            overlays: vec![EntryId(380), EntryId(381)],
            by,
            results: 12,
            before: shape(summaries, 1_412, 151_200),
            after: shape(more, entries, 74_300),
            percent: 49,
        })
    }

    fn refused(next: Next) -> Notice {
        Notice::Failed(Failed {
            request: EntryId(380),
            why: "cut".to_owned(),
            next,
            model: (next == Next::Ask).then(|| "small".to_owned()),
        })
    }

    #[test]
    fn a_notice_is_a_line() {
        let notices = [
            planned(Some([3, 84]), None, [None; 2]),
            planned(Some([3, 3]), Some([1, 2]), [None; 2]),
            planned(None, None, [Some(2), None]),
            planned(Some([3, 84]), None, [Some(4), Some(4)]),
            passed(Origin::Micro, None, [0, 0, 1_412]),
            passed(Origin::Auto, None, [0, 0, 1_400]),
            passed(Origin::Auto, Some(Author::Model), [0, 1, 38]),
            passed(Origin::Tool, Some(Author::Model), [1, 2, 1]),
            passed(Origin::Recovery, Some(Author::Rules), [2, 1, 38]),
            refused(Next::Harder),
            refused(Next::Ask),
            refused(Next::Rules),
            refused(Next::Strip),
            refused(Next::Stop),
            refused(Next::GoOn),
        ];
        let lines: Vec<String> = notices.iter().map(line).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        compacting: asking m for a summary of rounds 3 to 84 (about 118,000 tokens)
        compacting: asking m for part 1 of 2 of a summary of round 3 (about 118,000 tokens)
        compacting: asking m for one summary of 2 texts on e12–e371 (about 118,000 tokens)
        compacting: asking m for one summary of rounds 3 to 84 in place of 4 (about 118,000 tokens)
        put away 12 results, 151,200 → 74,300 tokens
        compacted (auto): [1,412 entries] → [1,400 entries], 151,200 → 74,300 tokens, 2 overlays
        compacted (auto): [1,412 entries] → [summary + 38 entries], 151,200 → 74,300 tokens, 2 overlays
        compacted (tool): [summary + 1,412 entries] → [2 summaries + 1 entry], 151,200 → 74,300 tokens, 2 overlays
        compacted (recovery, without a model): [2 summaries + 1,412 entries] → [summary + 38 entries], 151,200 → 74,300 tokens, 2 overlays
        no summary (cut); trying again with results clipped harder
        no summary (cut); asking small
        no summary (cut); making one without a model
        no summary (cut); going on without one, old calls are put away
        no summary (cut); the run ends
        no summary (cut); going on without one
        ");
    }
}
