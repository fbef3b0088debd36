//! Gathering the text of a summary: what to ask for next, until it is there.
//!
//! A span that fits one request is read in one. A longer one is read in parts, whose texts are then
//! combined. What was gathered is found in the transcript, so a run that is taken up again goes on
//! where it was, and a part that was read is not read again because another one failed. The ladder
//! when a text will not do: again with results clipped harder, then the fallback model.

use std::collections::BTreeMap;

use crate::compaction::verdict;
use crate::id::{EntryId, Span};
use crate::overlay::{Layer, Origin, Part};
use crate::setup::Role;
use crate::transcript::{Combine, Purpose, Source, Summarize};
use crate::view::{self, View};

/// The ladder: which model is asked, the longest result that it reads if all fits, in characters, and
/// the one before the span is parted.
const RUNGS: [Rung; 3] = [
    (Role::Summary, 4000, 1000),
    (Role::Summary, 1000, 250),
    (Role::Fallback, 1000, 250),
];

/// Results are clipped to these where a single round would not fit otherwise.
const HARDER: [u64; 3] = [250, 120, 60];

/// Failures in a row after which no model is asked until the view has grown.
const BREAKER: u32 = 3;

/// A summary that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Who wants it.
    pub origin: Origin,
    /// What it stands for.
    pub span: Span,
    /// What to preserve.
    pub focus: Option<String>,
    /// Texts that must be kept, word for word.
    pub keep: Vec<String>,
}

/// What comes next on the way to a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gathered {
    /// A model is asked.
    Ask(Purpose),
    /// A request is under way.
    Waits,
    /// The newest reply will not do.
    Failed {
        /// Its request.
        request: EntryId,
        /// Why.
        why: String,
    },
    /// The text is there.
    Text(Text),
    /// No model can be asked, or none any more.
    Unavailable,
}

/// The text of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The request whose reply it is.
    pub request: EntryId,
    /// The text.
    pub text: String,
    /// What it was combined from, if it was read in parts.
    pub parts: Vec<Part>,
}

/// The summary that the loop was asking for when it looked last; `None` if there is none.
pub fn active(view: &View) -> Option<Job> {
    let ledger = view.ledger();
    let asked = ledger.round_asked.map(|(round, _)| round);
    // A merge only makes room: the run may have been killed before the summary was laid.
    let laid = ledger.overlay.filter(|overlay| !is_merge(view, *overlay));
    let settled = asked.max(laid).unwrap_or_default();
    let texts = view.sought().texts().iter().rev();
    let mut jobs = texts
        .take_while(|text| text.request > settled)
        .filter_map(|text| job(&text.purpose));
    jobs.next().filter(|job| job.origin != Origin::User)
}

fn is_merge(view: &View, overlay: EntryId) -> bool {
    let layer = view.overlay(overlay).map(|overlay| &overlay.layer);
    matches!(layer, Some(Layer::Summary(summary)) if summary.is_merge())
}

/// The summary that a request is a step to; `None` if it is to replace other summaries.
fn job(purpose: &Purpose) -> Option<Job> {
    match purpose {
        Purpose::Summary(ask) => ask.replaces.is_empty().then(|| Job {
            origin: ask.origin,
            span: ask.whole.unwrap_or(ask.span),
            focus: ask.focus.clone(),
            keep: ask.keep.clone(),
        }),
        Purpose::Combine(ask) => {
            let parts = |source: &Source| matches!(source, Source::Response(_));
            ask.of.iter().all(parts).then(|| Job {
                origin: ask.origin,
                span: ask.whole.unwrap_or(ask.span),
                focus: ask.focus.clone(),
                keep: ask.keep.clone(),
            })
        }
        Purpose::Round | Purpose::Repair { .. } => None,
    }
}

/// What comes next on the way to the text of a summary.
pub fn gather(view: &View, job: &Job) -> Gathered {
    climb(view, job, (rungs(view), usize::MAX))
}

/// The same for a person, who asks again whatever failed before: only the failures since they asked
/// count.
pub(crate) fn gather_by_hand(view: &View, job: &Job, failures: usize) -> Gathered {
    climb(
        view,
        job,
        (RUNGS.get(failures..).unwrap_or_default(), failures),
    )
}

/// A rung of the ladder: see [`RUNGS`].
type Rung = (Role, u64, u64);

/// The rungs that are left, and how many of the newest failures count.
type Ladder<'a> = (&'a [Rung], usize);

fn climb(view: &View, job: &Job, ladder: Ladder<'_>) -> Gathered {
    match verdict::newest(view, job.origin == Origin::User) {
        verdict::Newest::Waits => return Gathered::Waits,
        verdict::Newest::Failed { request, why } => return Gathered::Failed { request, why },
        verdict::Newest::Settled => {}
    }
    let (texts, left) = at_hand(view, job);
    let asked = match (texts.as_slice(), left) {
        ([only], None) => {
            return text(view, only).map_or(Gathered::Unavailable, Gathered::Text);
        }
        (texts, None) => combine(view, job, ladder.0, texts),
        (texts, Some(span)) => summarize(view, job, ladder, (span, texts.len())),
    };
    asked.map_or(Gathered::Unavailable, Gathered::Ask)
}

/// The texts that are there, one behind the other from the start of the span, and what is left to
/// read.
fn at_hand<'a>(view: &'a View, job: &Job) -> (Vec<&'a view::Text>, Option<Span>) {
    let within = |span: Span| job.span.contains(span.from) && span.to <= job.span.to;
    let mut longest: BTreeMap<EntryId, &view::Text> = BTreeMap::new();
    for text in view.sought().texts() {
        // One that will not do may stand there without a note: the run was killed before it.
        if !within(text.span) || !serves(&text.purpose, job) || !verdict::is_sound(view, text) {
            continue;
        }
        let best = longest.entry(text.span.from).or_insert(text);
        if best.span.to <= text.span.to {
            *best = text;
        }
    }
    let mut found = Vec::new();
    let mut from = job.span.from;
    loop {
        let Some(text) = longest.get(&from) else {
            return (found, Some(Span::new(from, job.span.to)));
        };
        found.push(*text);
        match view.next_begin(text.span.to) {
            Some(next) if next <= job.span.to => from = next,
            Some(_) | None => return (found, None),
        }
    }
}

/// Whether what was asked for is what is wanted now.
fn serves(purpose: &Purpose, wanted: &Job) -> bool {
    job(purpose).is_some_and(|job| (job.focus, &job.keep) == (wanted.focus.clone(), &wanted.keep))
}

/// The text of a reply, with what it was combined from.
fn text(view: &View, found: &view::Text) -> Option<Text> {
    let reply = view.response(found.response?)?;
    let mut parts = Vec::new();
    leaves(view, found, &mut parts);
    Some(Text {
        request: found.request,
        text: reply.text.trim().to_owned(),
        parts,
    })
}

/// The texts that were made from raw entries, and that a combined one was made of.
fn leaves(view: &View, combined: &view::Text, parts: &mut Vec<Part>) {
    for (response, text) in sources(view, combined) {
        match &text.purpose {
            Purpose::Combine(_) => leaves(view, text, parts),
            Purpose::Summary(_) | Purpose::Round | Purpose::Repair { .. } => parts.push(Part {
                span: text.span,
                response: Some(response),
                overlay: None,
                text: view
                    .source_text(Source::Response(response))
                    .map(|text| text.trim().to_owned())
                    .unwrap_or_default(),
            }),
        }
    }
}

/// The texts that a combined one was made of, each by its reply; none of one that is not combined.
/// What claims to be made of what came later, as no line of ours does, is not followed.
fn sources<'a>(
    view: &'a View,
    combined: &'a view::Text,
) -> impl Iterator<Item = (EntryId, &'a view::Text)> {
    let of = match &combined.purpose {
        Purpose::Combine(combine) => combine.of.as_slice(),
        Purpose::Summary(_) | Purpose::Round | Purpose::Repair { .. } => &[],
    };
    of.iter().filter_map(move |source| {
        let Source::Response(response) = source else {
            return None;
        };
        let older = |text: &&view::Text| text.request < combined.request;
        let mut texts = view.sought().texts().iter().take_while(older);
        let text = texts.find(|text| text.response == Some(*response))?;
        Some((*response, text))
    })
}

/// Whether models failed so often that they are left alone until the view has grown.
fn is_broken(view: &View) -> bool {
    let ledger = view.ledger();
    let grown = view.chars().all * 10 >= ledger.failed_at.all * 11;
    ledger.summary_failures >= BREAKER && !grown
}

/// The rungs of the ladder that are left.
fn rungs(view: &View) -> &'static [Rung] {
    if is_broken(view) {
        return &[];
    }
    let due = usize::try_from(view.ledger().pass_failures).unwrap_or(usize::MAX);
    RUNGS.get(due..).unwrap_or_default()
}

/// The request that reads what is left, or its first part; `None` if no model can.
fn summarize(
    view: &View,
    job: &Job,
    (rungs, failures): Ladder<'_>,
    (left, parts): (Span, usize),
) -> Option<Purpose> {
    let as_of = view.transcript().last()?.id;
    let models = &view.wire()?.models;
    let mut asks = rungs.iter().filter_map(|(role, clip, least)| {
        models.role(*role)?;
        // The same request again would get the same reply.
        let tried = failed_clip(view, *role, left.from, failures);
        let harder = |clip: &u64| tried.is_none_or(|tried| *clip < tried);
        let ask = |clip| Summarize {
            model: *role,
            clip,
            focus: job.focus.clone(),
            keep: job.keep.clone(),
            origin: job.origin,
            whole: (left != job.span).then_some(job.span),
            ..Summarize::new(as_of, left)
        };
        for clip in [*clip, *least].into_iter().filter(harder) {
            let whole = ask(clip);
            if view.reach(&whole) >= Some(left.to) {
                let part = (parts > 0).then(|| numbered(view, &whole, parts));
                return Some(Summarize { part, ..whole });
            }
        }
        let clips = HARDER.into_iter().filter(|clip| clip < least);
        let clips = std::iter::once(*least).chain(clips).filter(harder);
        let mut parted = clips.filter_map(|clip| {
            let whole = ask(clip);
            let to = view.reach(&whole)?;
            let span = Span::new(left.from, to);
            // A round that fits with its results clipped harder may be the last one.
            let part = (to < left.to || parts > 0).then(|| numbered(view, &whole, parts));
            let whole = (span != job.span).then_some(job.span);
            Some(Summarize {
                span,
                part,
                whole,
                ..ask(clip)
            })
        });
        parted.next()
    });
    asks.next().map(Purpose::Summary)
}

/// How results were clipped when a model last failed on what begins here, in this pass.
fn failed_clip(view: &View, role: Role, from: EntryId, failures: usize) -> Option<u64> {
    let texts = view.sought().texts().iter().rev();
    let failed = texts.filter(|text| text.failed).take(failures);
    let mut failed = failed.filter(|text| text.span.from == from);
    failed.find_map(|text| match &text.purpose {
        Purpose::Summary(ask) => (ask.model == role).then_some(ask.clip),
        Purpose::Combine(_) | Purpose::Round | Purpose::Repair { .. } => None,
    })
}

/// Which part comes next, and of how many as far as can be told.
fn numbered(view: &View, left: &Summarize, before: usize) -> [u32; 2] {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let this = number(before + 1);
    let whole = left.whole.unwrap_or(left.span);
    let told = view.sought().texts().iter().rev();
    let told = told
        .filter_map(|text| match &text.purpose {
            Purpose::Summary(ask) if ask.whole == Some(whole) => ask.part,
            Purpose::Summary(_) | Purpose::Combine(_) | Purpose::Round | Purpose::Repair { .. } => {
                None
            }
        })
        .map(|[_, of]| of);
    // They are counted once, so that a long run is not measured again for each of its parts.
    let of = told.max().unwrap_or_else(|| {
        let parts = view.parts_needed(left);
        number(before + parts)
    });
    [this, of.max(this)]
}

/// The request that makes one text of several: of as many neighbours as its model can read, those
/// first that were combined least often.
fn combine(view: &View, job: &Job, rungs: &[Rung], texts: &[&view::Text]) -> Option<Purpose> {
    let as_of = view.transcript().last()?.id;
    let setup = view.setup()?;
    let depths: Vec<u32> = texts.iter().map(|text| depth(view, text)).collect();
    let least = depths.iter().copied().min()?;
    let first = depths.iter().position(|depth| *depth == least)?;
    let alike = depths.iter().skip(first).take_while(|it| **it == least);
    let alike = alike.count().max(2);
    // The last one takes the one before it along.
    let first = first.min(texts.len().checked_sub(2)?);
    let texts = texts.get(first..)?;
    let texts = texts.get(..alike).unwrap_or(texts);
    let mut asks = rungs.iter().filter_map(|(role, _, _)| {
        let model = setup.wire.models.role(*role)?;
        let fits = view::Sizes::new(model, &setup.policy, 0, view.factor()).fits;
        let ask = |count: usize| {
            let these = texts.get(..count)?;
            let of = these.iter().filter_map(|text| text.response);
            let span = Span::new(these.first()?.span.from, these.last()?.span.to);
            Some(Purpose::Combine(Combine {
                model: *role,
                focus: job.focus.clone(),
                keep: job.keep.clone(),
                origin: job.origin,
                whole: (span != job.span).then_some(job.span),
                ..Combine::new(as_of, span, of.map(Source::Response).collect())
            }))
        };
        let can_read = |purpose: &Purpose| view.estimate_of(purpose).tokens <= fits;
        let counts = 2..=texts.len();
        counts.map_while(|count| ask(count).filter(can_read)).last()
    });
    asks.next()
}

/// How often the oldest words of a text were combined.
fn depth(view: &View, text: &view::Text) -> u32 {
    let Purpose::Combine(_) = &text.purpose else {
        return 0;
    };
    let depths = sources(view, text).map(|(_, text)| depth(view, text));
    depths.max().unwrap_or(0) + 1
}
