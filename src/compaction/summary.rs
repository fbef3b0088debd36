//! Summaries: which span the next one covers, and what it becomes.
//!
//! Automatic summaries stand side by side as bands, each covering what came since the last one. What
//! stands raw before the last one, because a person summed up later rounds or took a summary back, is
//! covered when nothing newer can be.

use crate::compaction::carry::carry;
use crate::compaction::gather::{Job, Text};
use crate::id::{EntryId, Span};
use crate::overlay::{Author, Layer, Summary};
use crate::transcript::turn::Round;
use crate::view::{Sizes, View};

/// The span of the next automatic summary.
pub fn span(view: &View, sizes: &Sizes) -> Option<Span> {
    newest(view, sizes).or_else(|| gap(view, sizes))
}

/// What stands raw before a summary and is worth one of its own: the oldest of it.
fn gap(view: &View, sizes: &Sizes) -> Option<Span> {
    let mut covered = view.working().task.unwrap_or_default();
    for band in view.summaries() {
        let next = band.summary.span;
        if let Some(raw) = raw(view, covered, next.from)
            && view.tokens_between(raw) > sizes.summary
        {
            return Some(raw);
        }
        covered = covered.max(next.to);
    }
    None
}

/// The closed rounds between two entries, with what was said among them.
pub(super) fn raw(view: &View, after: EntryId, before: EntryId) -> Option<Span> {
    let from = view.next_begin(after).filter(|from| *from < before)?;
    let rounds = view.rounds().within(Span::new(from, before));
    let ends = rounds.iter().rev().filter_map(Round::span);
    let last = ends.map(|span| span.to).find(|last| *last < before)?;
    Some(Span::new(from, last))
}

/// What came since the last summary, up to the tail.
fn newest(view: &View, sizes: &Sizes) -> Option<Span> {
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

/// The summary of a text, with what is shown again after it.
pub(super) fn layer(view: &View, sizes: &Sizes, job: &Job, text: &Text) -> Layer {
    Layer::Summary(Summary {
        span: job.span,
        text: text.text.clone(),
        by: Author::Model,
        focus: job.focus.clone(),
        parts: text.parts.clone(),
        depth: 1,
        carry: carry(view, sizes, job.span, &text.text, &job.keep),
    })
}
