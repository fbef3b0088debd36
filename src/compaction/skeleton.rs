//! A summary without a model: a list, from the record, of what was done.
//!
//! It always can be had and always fits, and every line of it names a handle. It stands for
//! everything up to the newest round, older summaries included.

use std::fmt::Write as _;

use crate::compaction::carry::carry;
use crate::compaction::{gather, hooks, strategies, summary};
use crate::id::{CallId, EntryId, Span};
use crate::overlay::{Author, Layer, Summary};
use crate::transcript::turn::Round;
use crate::view::{Sizes, View};
use crate::words;

/// The spans that skeletons can stand for, newest first: everything between the task and the newest
/// round but what a person wrote, which is not swallowed.
pub fn spans(view: &View) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut after = view.working().task.unwrap_or_default();
    let written = view.summaries().into_iter();
    for written in written.filter(|band| band.summary.by == Author::User) {
        spans.extend(summary::raw(view, after, written.summary.span.from));
        after = after.max(written.summary.span.to);
    }
    let newest = view.rounds().answered().map(Round::begins);
    spans.extend(newest.and_then(|newest| summary::raw(view, after, newest)));
    spans.reverse();
    spans
}

/// The skeleton over a span.
pub fn layer(view: &View, sizes: &Sizes, span: Span) -> Layer {
    let chars = sizes.as_chars(sizes.share(0.05)).max(400);
    let half = usize::try_from(chars / 2).unwrap_or(usize::MAX);
    let text = text(view, span, half);
    // What a hook wants kept is kept by whatever stands for the summary that it was asked of.
    let keep = gather::active(view).map_or_else(|| hooks::keep(view), |job| job.keep);
    let carry = carry(view, sizes, span, &text, &keep);
    Layer::Summary(Summary {
        span,
        text,
        by: Author::Rules,
        focus: None,
        parts: Vec::new(),
        depth: 1,
        carry,
    })
}

/// The list, newest calls first chosen, oldest first shown, at most so many characters.
fn text(view: &View, span: Span, chars: usize) -> String {
    let mut text = words::skeleton_intro(span);
    let mut left = chars.saturating_sub(text.chars().count());
    let mut lines: Vec<String> = Vec::new();
    for line in newest_first(view, span) {
        let takes = line.chars().count() + 1;
        if takes > left {
            break;
        }
        left -= takes;
        lines.push(line);
    }
    for line in lines.iter().rev() {
        write!(text, "\n{line}").ok();
    }
    text
}

fn newest_first(view: &View, span: Span) -> impl Iterator<Item = String> {
    let rounds = view.rounds().within(span).iter().rev();
    rounds
        .filter_map(|round| round.response)
        .flat_map(move |response| {
            let said = said(view, response);
            let calls = strategies::calls(view, response).into_iter().rev();
            calls.filter_map(move |call| line(view, call)).chain(said)
        })
}

/// A line of a call: `- 17.1 Read src/main.rs: ok`.
fn line(view: &View, id: CallId) -> Option<String> {
    let call = view.tool_call(id)?;
    let (_, result) = view.result_of(id)?;
    let arguments: String = call
        .arguments
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let arguments: String = arguments.chars().take(100).collect();
    Some(words::skeleton_call(
        id,
        &call.name,
        &arguments,
        result.status,
    ))
}

/// The first line of what the assistant said.
fn said(view: &View, response: EntryId) -> Option<String> {
    let text = &view.response(response)?.text;
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let line: String = line.chars().take(160).collect();
    Some(words::skeleton_said(response, &line))
}
