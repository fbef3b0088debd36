//! Summaries side by side: when they exceed their share, the oldest ones become one.

use std::fmt::Write as _;

use crate::compaction::carry::carry;
use crate::id::Span;
use crate::overlay::{Author, Layer, Part, Summary};
use crate::view::{Sizes, View};
use crate::words;

/// The merge that makes room for a new band; `None` if the bands keep within their share with it.
///
/// The fewest oldest ones become one text of at most half of the share.
pub fn merge(view: &View, sizes: &Sizes, new: &str) -> Option<Layer> {
    let bands = view.summaries();
    let length = |text: &str| view.text_tokens(text);
    let own = bands.iter().filter(|band| band.summary.by != Author::User);
    let all = own.map(|band| length(&band.summary.text)).sum::<u64>() + length(new);
    if all <= sizes.bands {
        return None;
    }
    // Neighbours only: what a person wrote between two of them is not swallowed.
    let mut runs = bands.split(|band| band.summary.by == Author::User);
    let run = runs.find(|run| run.len() > 1)?;
    let most = sizes.bands / 2;
    let mut freed = 0;
    let enough = run.iter().position(|band| {
        freed += length(&band.summary.text);
        all - freed + most <= sizes.bands
    });
    let count = enough.map_or(run.len(), |place| place + 1).max(2);
    let merged = run.get(..count)?;
    let each = usize::try_from(sizes.as_chars(most)).ok()? / count;
    let mut text = String::new();
    for band in merged {
        let heading = words::merged_from(band.overlay, band.summary.span);
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
        carry: carry(view, sizes, span),
    }))
}
