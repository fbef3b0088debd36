//! Summaries by hand: which span, and the layer that a text becomes.

use crate::compaction::by_hand::range::Reach;
use crate::compaction::by_hand::{Order, Place, Refused};
use crate::compaction::carry::carry;
use crate::id::Span;
use crate::overlay::{Author, Part, Summary};
use crate::view::{Sizes, Standing, View};

/// A summary that a model must write before the plan can be laid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What it covers.
    pub span: Span,
    /// What it must preserve.
    pub focus: Option<String>,
}

/// The text of a summary, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// The texts it was combined from.
    pub parts: Vec<Part>,
    /// How often the oldest of it was summarised.
    pub depth: u32,
    /// What it had to keep, word for word.
    pub keep: Vec<String>,
}

/// What a summary stage comes to.
pub(super) struct Draft {
    pub(super) summary: Summary,
    /// Whether it lies over another summary, and may be longer than it.
    pub(super) over_another: bool,
    /// Whether a model has yet to write it.
    pub(super) is_expected: bool,
}

/// The summary of an order; why there is none, in words, if nothing is there to summarise.
pub(super) fn summary(
    view: &View,
    sizes: &Sizes,
    order: &Order,
    reach: &Reach,
    written: Option<&Written>,
) -> Result<Result<Draft, String>, Refused> {
    let span = match begin(view, order, reach) {
        Ok(span) => span,
        Err(nothing) => return Ok(Err(nothing)),
    };
    let bands = view.summaries();
    let span = if let Some(text) = &order.text {
        holds_whole(view, span, &bands)?;
        within_share(view, sizes, text, &bands)?;
        span
    } else {
        union(view, span, &bands)?
    };
    let by = if order.text.is_some() {
        Author::User
    } else {
        Author::Model
    };
    let is_expected = order.text.is_none() && written.is_none();
    let (text, parts, depth) = match (&order.text, written) {
        (Some(text), _) => (text.trim().to_owned(), Vec::new(), 1),
        (None, Some(written)) => (written.text.clone(), written.parts.clone(), written.depth),
        (None, None) => (expected(view, sizes, span), Vec::new(), 1),
    };
    let keep = written.map(|written| written.keep.as_slice());
    let keep = keep.unwrap_or_default();
    let mut carry = carry(view, sizes, span, &text, keep);
    if is_expected {
        // What a text leaves out is not known before it is there.
        carry.survival.clear();
    }
    let summary = Summary {
        span,
        text,
        by,
        focus: order.focus(),
        parts,
        depth,
        carry,
    };
    Ok(Ok(Draft {
        summary,
        over_another: bands.iter().any(|band| band.summary.span.meets(span)),
        is_expected,
    }))
}

/// Where the summary begins: behind the last one, unless a person says otherwise.
fn begin(view: &View, order: &Order, reach: &Reach) -> Result<Span, String> {
    let span = reach.span;
    if reach.begins || order.fresh {
        return Ok(span);
    }
    let bands = view.summaries();
    let last = bands.iter().max_by_key(|band| band.summary.span.to);
    let Some(last) = last.filter(|last| last.summary.span.to >= span.from) else {
        return Ok(span);
    };
    match view.next_begin(last.summary.span.to) {
        Some(from) if from <= span.to => Ok(Span::new(from, span.to)),
        Some(_) | None => Err(format!(
            "nothing there came after e{}, the last summary; --fresh makes it anew, --from names \
             where to begin",
            last.overlay
        )),
    }
}

/// The union with the summaries that the span meets.
fn union(view: &View, mut span: Span, bands: &[Standing<'_>]) -> Result<Span, Refused> {
    loop {
        let before = span;
        for band in bands.iter().filter(|band| band.summary.span.meets(before)) {
            refuse_written(view, span, band)?;
            span = span.union(band.summary.span);
        }
        if span == before {
            return Ok(span);
        }
    }
}

/// Refuses a span that a person's text would have to be widened from.
fn holds_whole(view: &View, span: Span, bands: &[Standing<'_>]) -> Result<(), Refused> {
    for band in bands.iter().filter(|band| band.summary.span.meets(span)) {
        refuse_written(view, span, band)?;
        let other = band.summary.span;
        if span.union(other) != span {
            return Err(Refused::Partly {
                what: Place::of(view, span),
                overlay: band.overlay,
                other: Place::of(view, other),
            });
        }
    }
    Ok(())
}

fn refuse_written(view: &View, span: Span, band: &Standing<'_>) -> Result<(), Refused> {
    if band.summary.by != Author::User {
        return Ok(());
    }
    Err(Refused::Written {
        what: Place::of(view, span),
        overlay: band.overlay,
        written: Place::of(view, band.summary.span),
    })
}

/// Refuses to lay a layer anew over what a person wrote.
pub(super) fn over_written(view: &View, span: Span) -> Result<(), Refused> {
    let bands = view.summaries();
    let mut met = bands.iter().filter(|band| band.summary.span.meets(span));
    met.try_for_each(|band| refuse_written(view, span, band))
}

fn within_share(
    view: &View,
    sizes: &Sizes,
    text: &str,
    bands: &[Standing<'_>],
) -> Result<(), Refused> {
    let written = bands.iter().filter(|band| band.summary.by == Author::User);
    let standing: u64 = written
        .map(|band| view.text_tokens(&band.summary.text))
        .sum();
    let tokens = standing + view.text_tokens(text.trim());
    let most = sizes.share(0.1);
    if tokens > most {
        return Err(Refused::Share { tokens, most });
    }
    Ok(())
}

/// A text as long as a summary of this span is expected to be: its share, but not more than a quarter of
/// what it covers.
fn expected(view: &View, sizes: &Sizes, span: Span) -> String {
    let covers = view.tokens_between(span);
    let tokens = sizes.summary.min(covers / 4);
    "x".repeat(usize::try_from(sizes.as_chars(tokens)).unwrap_or_default())
}
