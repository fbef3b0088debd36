//! Summaries: which span, which request, whether a reply will do, and what is shown again after it.
//!
//! A summariser reads raw entries. Automatic summaries stand side by side as bands, each covering
//! what came since the last one; when they exceed their share, the oldest ones become one.

use std::fmt::Write as _;

use crate::id::{CallId, EntryId, Span};
use crate::meter::{self, Chars};
use crate::overlay::{Author, Carry, Layer, Part, Summary};
use crate::setup::Role;
use crate::transcript::{Purpose, Summarize};
use crate::view::{Sizes, View};

/// The longest result that a summariser reads, in characters: first, and when asked again.
const CLIPS: [u64; 2] = [4000, 1000];

/// Shorter clips, tried when a span does not fit the summariser.
const SHORTER: [u64; 4] = [500, 250, 120, 60];

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
    if ledger.summary_failures >= BREAKER && !grown && ledger.pass_failures == 0 {
        return None;
    }
    let (role, first) = match ledger.pass_failures {
        0 => (Role::Summary, CLIPS[0]),
        1 => (Role::Summary, CLIPS[1]),
        2 => (Role::Fallback, CLIPS[1]),
        _ => return None,
    };
    let setup = view.setup()?;
    let model = setup.wire.models.role(role)?;
    let fits = Sizes::new(model, &setup.policy, 0, view.factor()).fits;
    let as_of = view.transcript().last()?.id;
    let clips = CLIPS
        .into_iter()
        .chain(SHORTER)
        .filter(|clip| *clip <= first);
    clips
        .map(|clip| {
            let (part, focus, keep) = (None, focus.map(str::to_owned), Vec::new());
            Purpose::Summary(Summarize {
                as_of,
                model: role,
                span,
                part,
                clip,
                focus,
                keep,
            })
        })
        .find(|purpose| view.estimate_of(purpose).tokens <= fits)
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
        .map_or(0, |task| tokens(view, view.chars_of(task)));
    let tail = sizes.tail.min(kept.saturating_sub(task));
    // The newest round stays whatever its size.
    let fits = |begin: EntryId| tokens(view, view.chars_from(begin)) <= tail;
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
    (tokens(view, covered) > sizes.summary).then_some(span)
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

fn tokens(view: &View, chars: Chars) -> u64 {
    let rule = view
        .policy()
        .map(|policy| policy.compaction.estimate)
        .unwrap_or_default();
    meter::tokens(chars.base(rule), view.factor())
}

pub(super) fn text_tokens(view: &View, text: &str) -> u64 {
    tokens(view, crate::view::json_chars(text))
}

fn standing_tokens(view: &View) -> u64 {
    view.summaries()
        .iter()
        .map(|standing| text_tokens(view, &standing.summary.text))
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
        carry: carry(view, sizes, ask.span.to),
    })
}

/// What is shown again after a summary up to this entry.
pub fn carry(view: &View, sizes: &Sizes, to: EntryId) -> Carry {
    let working = view.working();
    let mut entries = Vec::new();
    let mut room = sizes.share(0.05);
    for entry in working
        .follow_ups
        .iter()
        .rev()
        .filter(|entry| **entry <= to)
    {
        let text = view.carried(*entry).unwrap_or_default();
        let takes = text_tokens(view, &text);
        if takes <= room {
            room -= takes;
            entries.push(*entry);
        }
    }
    entries.reverse();
    let place = |entry: EntryId| {
        view.result(entry)
            .map_or(entry, |result| result.call.response)
    };
    let pinned = view
        .pins()
        .iter()
        .filter(|(entry, reads)| **reads && place(**entry) <= to);
    entries.extend(pinned.map(|(entry, _)| *entry));
    entries.dedup();

    let mut room = sizes.share(0.1);
    let mut calls: Vec<CallId> = Vec::new();
    let mut by_name: Vec<&str> = Vec::new();
    let mut skills: Vec<(&String, &CallId)> = working.skills.iter().collect();
    skills.sort_unstable_by_key(|(_, call)| std::cmp::Reverse(**call));
    let covered = |call: &CallId| call.response <= to;
    for call in working.todo.iter().filter(|call| covered(call)) {
        room = room.saturating_sub(call_tokens(view, *call));
        calls.push(*call);
    }
    for (name, call) in skills.into_iter().filter(|(_, call)| covered(call)) {
        let takes = call_tokens(view, *call);
        if takes <= room {
            room -= takes;
            calls.push(*call);
        } else {
            by_name.push(name);
        }
    }
    let state = working_state(view, &by_name, sizes.as_chars(sizes.share(0.03)));
    Carry {
        entries,
        calls,
        state,
        survival: String::new(),
    }
}

fn call_tokens(view: &View, call: CallId) -> u64 {
    let arguments = view
        .tool_call(call)
        .map_or(0, |call| text_tokens(view, &call.arguments));
    let content = view
        .result_of(call)
        .map_or(0, |(_, result)| text_tokens(view, &result.content));
    arguments + content
}

/// The working state as text, at most so many characters.
pub(super) fn working_state(view: &View, skills: &[&str], chars: u64) -> String {
    let working = view.working();
    let mut lines = Vec::new();
    let mut files: Vec<_> = working.files.iter().collect();
    files.sort_unstable_by_key(|(_, file)| std::cmp::Reverse(file.call));
    for (changed, heading) in [(true, "file changed"), (false, "file read")] {
        let these = files.iter().filter(|(_, file)| file.changed == changed);
        lines.extend(these.map(|(path, file)| format!("- {heading}: {path} ({})", file.call)));
    }
    let mut failures: Vec<_> = working.failures.iter().collect();
    failures.sort_unstable_by_key(|(_, failure)| std::cmp::Reverse(failure.call));
    let failures = failures.into_iter().map(|(command, failure)| {
        let command: String = command.chars().take(200).collect();
        format!(
            "- failed when it last ran: {command} (exit {}, {})",
            failure.exit, failure.call
        )
    });
    // Failures first: they are few, and the next step often is to mend them.
    let skills = skills
        .iter()
        .map(|name| format!("- skill loaded before: {name}"));
    let lines: Vec<String> = failures.chain(skills).chain(lines).collect();
    if lines.is_empty() {
        return String::new();
    }
    let mut text =
        "Working state, from the record (Recall with a handle shows the call):".to_owned();
    let mut left = usize::try_from(chars)
        .unwrap_or(usize::MAX)
        .saturating_sub(text.len());
    for line in lines {
        let takes = line.chars().count() + 1;
        if takes > left {
            break;
        }
        left -= takes;
        write!(text, "\n{line}").ok();
    }
    text
}

/// The merge that makes room for a new band; `None` if the bands keep within their share with it.
///
/// The fewest oldest ones become one text of at most half of the share.
pub(super) fn merge(view: &View, sizes: &Sizes, new: &str) -> Option<Layer> {
    let bands = view.summaries();
    let own: Vec<_> = bands
        .iter()
        .filter(|band| band.summary.by != Author::User)
        .collect();
    let length = |text: &str| text_tokens(view, text);
    let all: u64 = own
        .iter()
        .map(|band| length(&band.summary.text))
        .sum::<u64>()
        + length(new);
    if all <= sizes.bands {
        return None;
    }
    let most = sizes.bands / 2;
    let mut freed = 0;
    let enough = own.iter().position(|band| {
        freed += length(&band.summary.text);
        all - freed + most <= sizes.bands
    });
    let count = enough.map_or(own.len(), |place| place + 1).max(2);
    let merged = own.get(..count)?;
    let each = usize::try_from(sizes.as_chars(most)).ok()? / count;
    let mut text = String::new();
    for band in merged {
        let heading = format!("From overlay {} ({}): ", band.overlay, band.summary.span);
        let room = each.saturating_sub(heading.chars().count() + 2);
        let head: String = band.summary.text.chars().take(room).collect();
        let gap = if text.is_empty() { "" } else { "\n\n" };
        write!(text, "{gap}{heading}{head}").ok();
    }
    let span = merged
        .iter()
        .map(|band| band.summary.span)
        .reduce(Span::union)?;
    let parts = merged.iter().map(|band| Part {
        span: band.summary.span,
        response: None,
        overlay: Some(band.overlay),
        text: String::new(),
    });
    Some(Layer::Summary(Summary {
        span,
        text,
        by: Author::Rules,
        focus: None,
        parts: parts.collect(),
        depth: merged
            .iter()
            .map(|band| band.summary.depth)
            .max()
            .unwrap_or(1)
            + 1,
        carry: Carry::default(),
    }))
}
