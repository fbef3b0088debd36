//! A run in other forms: a document for people, and a trajectory for other programs.
//!
//! [`markdown`] is read by people, [`atif`] by whatever knows the Agent Trajectory Interchange Format.
//! Lines of the transcript itself need no form of their own: they are copied. Nothing is left out of
//! what was said; what a form has no place for is not made up.

pub mod markdown;
pub mod atif;

use crate::exchange::Reasoning;
use crate::id::EntryId;
use crate::overlay::{Author, Layer, Overlay};
use crate::words::grouped;

/// What of a run is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// Entries as they are.
    #[default]
    Raw,
    /// What the model reads at the end.
    Compacted,
    /// Entries as they are, each with how it reads at the end.
    Both,
}

/// An overlay in one line: `micro e48, 7 results: 12,310 → 8,000 tokens`.
fn laid(id: EntryId, overlay: &Overlay) -> String {
    let size = overlay.size;
    let text = format!(
        "{} e{id}, {}",
        overlay.origin.word(),
        covers(&overlay.layer)
    );
    if size.before == 0 {
        return text;
    }
    format!(
        "{text}: {} → {} tokens",
        grouped(size.before),
        grouped(size.after)
    )
}

/// What a layer covers: `7 results`, `summary of e12–e371`.
pub fn covers(layer: &Layer) -> String {
    let part = |number: usize, noun: &str| {
        let plural = if number == 1 { "" } else { "s" };
        (number > 0).then(|| format!("{} {noun}{plural}", grouped(number as u64)))
    };
    let parts = match layer {
        Layer::Stub(stub) => vec![
            part(stub.results.len(), "result"),
            part(stub.arguments.len(), "argument"),
        ],
        Layer::Hide(hide) => vec![
            part(hide.calls.len(), "call"),
            part(hide.reasoning.len(), "block").map(|blocks| blocks + " of reasoning"),
            part(hide.attachments.len(), "attachment"),
            part(hide.rounds.len(), "span of rounds"),
        ],
        Layer::Summary(summary) => {
            let by = match summary.by {
                Author::Model => "",
                Author::User => " by a person",
                Author::Rules => " by rules",
            };
            vec![Some(format!("summary of {}{by}", summary.span))]
        }
        Layer::Show(show) => vec![part(show.calls.len(), "call").map(|calls| calls + " shown")],
    };
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// The reasoning that can be read; `None` if there is none.
fn reasoning(blocks: &[Reasoning]) -> Option<String> {
    let texts = blocks.iter().filter_map(|block| match block {
        Reasoning::Text { text, .. } => Some(text.as_str()),
        Reasoning::Raw { .. } => None,
    });
    let texts: Vec<&str> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
