//! Every request of a run, built again from its entries and held against what was recorded.
//!
//! A request's bytes are never stored, only their digest. [`rebuilt`] takes the digest of the body from
//! the view of what stood before the request: what one request has in common with the one before is hashed
//! once. The body itself is built only where it is another. [`Replay`] does so for all requests of
//! entries that are at hand; whoever reads a transcript anyway asks on the way.

use std::sync::Arc;

use crate::id::EntryId;
use crate::transcript::{BodyDigest, Entry, Event, Purpose};
use crate::view::View;
use crate::wire::{Body, RENDERER};

/// A request, built again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// Its entry.
    pub request: EntryId,
    /// The round, if it is for one.
    pub round: Option<u32>,
    /// What it is for.
    pub purpose: Purpose,
    /// What was recorded of its body.
    pub recorded: BodyDigest,
    /// The body, as it is built now.
    pub outcome: Outcome,
}

/// What became of building a request again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The bytes are the ones that were sent.
    Equal,
    /// They are not; these are the ones that are built now.
    Differs(Body),
    /// The entries before it do not make a request.
    Missing,
    /// Another version of the renderer made it.
    Renderer(u32),
}

impl Rebuilt {
    /// Whether the bytes are the ones that were sent.
    pub fn is_equal(&self) -> bool {
        matches!(self.outcome, Outcome::Equal)
    }
}

/// The requests of a run, one after the other.
#[derive(Debug)]
pub struct Replay<I> {
    entries: I,
    view: View,
}

impl<I: Iterator<Item = Arc<Entry>>> Replay<I> {
    /// Replays these entries from the first.
    pub fn new(entries: impl IntoIterator<IntoIter = I, Item = Arc<Entry>>) -> Self {
        Self {
            entries: entries.into_iter(),
            view: View::default(),
        }
    }

    /// The view after the newest request that was given, or at the end.
    pub fn view(&self) -> &View {
        &self.view
    }
}

impl<I: Iterator<Item = Arc<Entry>>> Iterator for Replay<I> {
    type Item = Rebuilt;

    fn next(&mut self) -> Option<Rebuilt> {
        for entry in self.entries.by_ref() {
            let rebuilt = rebuilt(&self.view, &entry);
            self.view.take(entry);
            if rebuilt.is_some() {
                return rebuilt;
            }
        }
        None
    }
}

/// The request that an entry records, built again from the view of what stands before it; `None` if the
/// entry is none.
pub fn rebuilt(view: &View, entry: &Entry) -> Option<Rebuilt> {
    let Event::Request(request) = &entry.event else {
        return None;
    };
    let outcome = if request.renderer == RENDERER {
        let built = view.body_digest(&request.purpose);
        if built == Some(request.body) {
            Outcome::Equal
        } else {
            let body = view.body(&request.purpose);
            body.map_or(Outcome::Missing, Outcome::Differs)
        }
    } else {
        Outcome::Renderer(request.renderer)
    };
    Some(Rebuilt {
        request: entry.id,
        round: request.round,
        purpose: request.purpose.clone(),
        recorded: request.body,
        outcome,
    })
}
