//! Summaries: which span, and which request at which rung of the ladder.
//!
//! A summariser reads raw entries. Automatic summaries stand side by side as bands, each covering
//! what came since the last one; when they exceed their share, the oldest ones become one.

use crate::compaction::carry::carry;
use crate::id::{EntryId, Span};
use crate::overlay::{Author, Layer, Summary};
use crate::setup::Role;
use crate::transcript::{Purpose, Summarize};
use crate::view::{Sizes, View};

/// The ladder: which model is asked, and the longest result that it reads at first, in characters.
const RUNGS: [(Role, u64); 3] = [
    (Role::Summary, 4000),
    (Role::Summary, 1000),
    (Role::Fallback, 1000),
];

/// Lengths that results are clipped to, in characters: the first with which a span fits the
/// summariser.
const CLIPS: [u64; 6] = [4000, 1000, 500, 250, 120, 60];

/// Failures in a row after which the model is not asked until the view has grown.
const BREAKER: u32 = 3;

/// A reply that is sound, and what it was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply<'a> {
    pub(super) ask: &'a Summarize,
    pub(super) text: &'a str,
}

/// The request for a summary of a span at the rung of the ladder that is due; `None` if no model
/// is to be asked any more, or none can read the span.
pub fn ask(view: &View, span: Span, focus: Option<&str>) -> Option<Purpose> {
    let ledger = view.ledger();
    let grown = view.chars().all * 10 >= ledger.failed_at.all * 11;
    if ledger.summary_failures >= BREAKER && !grown {
        return None;
    }
    let setup = view.setup()?;
    let as_of = view.transcript().last()?.id;
    let due = usize::try_from(ledger.pass_failures).unwrap_or(usize::MAX);
    // A rung whose model cannot read the span is passed over.
    RUNGS.iter().skip(due).find_map(|(role, first)| {
        let model = setup.wire.models.role(*role)?;
        let fits = Sizes::new(model, &setup.policy, 0, view.factor()).fits;
        let clips = CLIPS.into_iter().filter(|clip| clip <= first);
        let mut asks = clips.map(|clip| {
            let (part, focus, keep) = (None, focus.map(str::to_owned), Vec::new());
            let model = *role;
            Purpose::Summary(Summarize {
                as_of,
                model,
                span,
                part,
                clip,
                focus,
                keep,
            })
        });
        asks.find(|purpose| view.estimate_of(purpose).tokens <= fits)
    })
}

/// The span of the next automatic summary: what came since the last one, up to the tail.
pub fn span(view: &View, sizes: &Sizes) -> Option<Span> {
    let from = view.next_begin(boundary(view))?;
    let newest = view.rounds().answered()?;
    // Whatever the model has not seen yet stays, and so does the round before it.
    let rounds = view.rounds().within(Span::new(from, newest.begins()));
    let kept = sizes
        .target
        .saturating_sub(sizes.fixed + sizes.summary + standing_tokens(view));
    let task = view
        .working()
        .task
        .map_or(0, |task| view.tokens(view.chars_of(task)));
    let tail = sizes.tail.min(kept.saturating_sub(task));
    // The newest round stays whatever its size.
    let fits = |begin: EntryId| view.tokens(view.chars_from(begin)) <= tail;
    let stays = rounds
        .iter()
        .rev()
        .skip(1)
        .take_while(|round| fits(round.begins()))
        .count()
        + 1;
    let last = rounds.len().checked_sub(stays)?.checked_sub(1)?;
    let span = Span::new(from, rounds.get(last)?.span()?.to);
    // A summary that could hardly be shorter than what it covers is not asked for.
    let covered = view.chars_from(from) - view.chars_from(span.to.next());
    (view.tokens(covered) > sizes.summary).then_some(span)
}

/// The span of everything before the newest round that follows the task: what `Compact` offers.
pub fn span_before_newest(view: &View) -> Option<Span> {
    let from = view.next_begin(boundary(view))?;
    let newest = view.rounds().last()?;
    let last = view
        .rounds()
        .number(newest.number.checked_sub(1)?)?
        .span()?
        .to;
    (from <= last).then(|| Span::new(from, last))
}

/// The last entry that is not to be summarised again: the end of the last band, or the task.
fn boundary(view: &View) -> EntryId {
    let bands = view
        .summaries()
        .into_iter()
        .map(|standing| standing.summary.span.to);
    bands.chain(view.working().task).max().unwrap_or_default()
}

fn standing_tokens(view: &View) -> u64 {
    view.summaries()
        .iter()
        .map(|standing| view.text_tokens(&standing.summary.text))
        .sum()
}

/// The summary of a reply, with what is shown again after it.
pub(super) fn layer(view: &View, sizes: &Sizes, reply: Reply<'_>) -> Layer {
    let ask = reply.ask;
    Layer::Summary(Summary {
        span: ask.span,
        text: reply.text.to_owned(),
        by: Author::Model,
        focus: ask.focus.clone(),
        parts: Vec::new(),
        depth: 1,
        carry: carry(view, sizes, ask.span),
    })
}
