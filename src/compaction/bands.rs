//! Summaries side by side: when they exceed their share, the oldest ones become one.
//!
//! A model is asked for the one text, once: it reads the raw entries if they fit one request and none
//! of them was read twice yet, else the texts that stand. If it cannot be had, the heads of the texts
//! take their place.

use std::fmt::Write as _;

use crate::compaction::carry::carry;
use crate::compaction::gather::Job;
use crate::compaction::verdict;
use crate::id::{EntryId, Span};
use crate::overlay::{Author, Layer, Part, Summary};
use crate::transcript::{Combine, Purpose, Source, Summarize};
use crate::view::{Sizes, Standing, View};
use crate::words;

/// Words of a text, in thousandths of its tokens.
const WORDS: u64 = 750;

/// Summaries that are to become one.
#[derive(Clone, Debug)]
pub(super) struct Merge<'a> {
    bands: Vec<Standing<'a>>,
    span: Span,
    /// The most tokens of the one text.
    most: u64,
    /// Tokens of the texts together.
    length: u64,
}

/// What stands in the place of merged summaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Merged {
    /// A model is asked first.
    Ask(Purpose),
    /// This is laid; a second one, should it not make the next request shorter.
    Layers(Box<[Option<Layer>; 2]>),
}

/// The merge that makes room for a new text; `None` if the bands keep within their share with it.
///
/// The fewest oldest ones become one text of at most half of the share.
pub(super) fn due<'a>(view: &'a View, sizes: &Sizes, new: &str) -> Option<Merge<'a>> {
    let bands = view.summaries();
    let length = |text: &str| view.text_tokens(text);
    let own = bands.iter().filter(|band| band.summary.by != Author::User);
    let all = own.map(|band| length(&band.summary.text)).sum::<u64>() + length(new);
    if all <= sizes.bands {
        return None;
    }
    // Neighbours only: what a person wrote or uncovered between two of them is not swallowed.
    let mut runs = bands.chunk_by(|one, next| are_neighbours(view, one, next));
    let run = runs.find(|run| run.len() > 1)?;
    let most = sizes.bands / 2;
    let mut freed = 0;
    let enough = run.iter().position(|band| {
        freed += length(&band.summary.text);
        all - freed + most <= sizes.bands
    });
    let count = enough.map_or(run.len(), |place| place + 1).max(2);
    let merged = run.get(..count)?;
    let spans = merged.iter().map(|band| band.summary.span);
    Some(Merge {
        span: spans.reduce(Span::union)?,
        most,
        length: merged.iter().map(|band| length(&band.summary.text)).sum(),
        bands: merged.to_vec(),
    })
}

/// Whether nothing stands between two summaries, and a person wrote neither.
fn are_neighbours(view: &View, one: &Standing<'_>, next: &Standing<'_>) -> bool {
    let by_hand = [one, next].map(|band| band.summary.by == Author::User);
    let begin = view.next_begin(one.summary.span.to);
    by_hand == [false; 2] && Some(next.summary.span.from) <= begin
}

/// What stands in the place of the summaries, as far as a model was asked for it.
pub(super) fn merged(view: &View, sizes: &Sizes, merge: &Merge<'_>, job: &Job) -> Merged {
    let rules = by_rules(view, sizes, merge);
    let texts = view.sought().texts().iter().rev();
    let mut texts = texts.filter(|text| {
        text.span == merge.span && replaces(&text.purpose).as_deref() == Some(&merge.overlays())
    });
    let Some(text) = texts.next() else {
        return match ask(view, merge, job) {
            Some(purpose) => Merged::Ask(purpose),
            None => Merged::Layers(Box::new([rules, None])),
        };
    };
    let reply = text.response.filter(|_| verdict::is_sound(view, text));
    let model = reply.and_then(|reply| view.response(reply)).map(|reply| {
        let raw = matches!(text.purpose, Purpose::Summary(_));
        let depth = if raw { 1 } else { merge.depth() + 1 };
        let focus = job.focus.clone();
        merge.layer(view, sizes, reply.text.trim(), Author::Model, depth, focus)
    });
    Merged::Layers(Box::new([model, rules]))
}

/// The summaries that a text is to replace.
fn replaces(purpose: &Purpose) -> Option<Vec<EntryId>> {
    match purpose {
        Purpose::Summary(ask) => Some(ask.replaces.clone()),
        Purpose::Combine(ask) => {
            let overlay = |source: &Source| match source {
                Source::Overlay(overlay) => Some(*overlay),
                Source::Response(_) => None,
            };
            ask.of.iter().map(overlay).collect()
        }
        Purpose::Round | Purpose::Repair { .. } => None,
    }
}

/// The request for the one text; `None` if no model can read what it is made from.
fn ask(view: &View, merge: &Merge<'_>, job: &Job) -> Option<Purpose> {
    let as_of = view.transcript().last()?.id;
    let most = merge.most.min(merge.length * 3 / 4);
    let words = Some((most * WORDS / 1000).max(50));
    let (focus, keep, origin) = (job.focus.clone(), job.keep.clone(), job.origin);
    let raw = Summarize {
        focus: focus.clone(),
        keep: keep.clone(),
        origin,
        replaces: merge.overlays(),
        words,
        ..Summarize::new(as_of, merge.span)
    };
    let once = view.sought().times_read(merge.span) < 2;
    if once && view.reach(&raw) >= Some(merge.span.to) {
        return Some(Purpose::Summary(raw));
    }
    let of = merge.overlays().into_iter().map(Source::Overlay).collect();
    let stored = Purpose::Combine(Combine {
        focus,
        keep,
        origin,
        words,
        ..Combine::new(as_of, merge.span, of)
    });
    let setup = view.setup()?;
    let model = setup.wire.models.role(crate::setup::Role::Summary)?;
    let fits = Sizes::new(model, &setup.policy, 0, view.factor()).fits;
    (view.estimate_of(&stored).tokens <= fits).then_some(stored)
}

/// The heads of the texts, with handles.
fn by_rules(view: &View, sizes: &Sizes, merge: &Merge<'_>) -> Option<Layer> {
    let each = usize::try_from(sizes.as_chars(merge.most)).ok()? / merge.bands.len();
    let mut text = String::new();
    for band in &merge.bands {
        let heading = words::merged_from(band.overlay, band.summary.span);
        let room = each.saturating_sub(heading.chars().count() + 2);
        let head: String = band.summary.text.chars().take(room).collect();
        let gap = if text.is_empty() { "" } else { "\n\n" };
        write!(text, "{gap}{heading}{head}").ok();
    }
    let depth = merge.depth() + 1;
    Some(merge.layer(view, sizes, &text, Author::Rules, depth, None))
}

impl Merge<'_> {
    fn overlays(&self) -> Vec<EntryId> {
        self.bands.iter().map(|band| band.overlay).collect()
    }

    fn depth(&self) -> u32 {
        let depths = self.bands.iter().map(|band| band.summary.depth);
        depths.max().unwrap_or(1)
    }

    fn layer(
        &self,
        view: &View,
        sizes: &Sizes,
        text: &str,
        by: Author,
        depth: u32,
        focus: Option<String>,
    ) -> Layer {
        let parts = self.bands.iter().map(|band| Part {
            span: band.summary.span,
            response: None,
            overlay: Some(band.overlay),
            text: String::new(),
        });
        Layer::Summary(Summary {
            span: self.span,
            text: text.to_owned(),
            by,
            focus,
            parts: parts.collect(),
            depth,
            carry: carry(view, sizes, self.span, text, &[]),
        })
    }
}
