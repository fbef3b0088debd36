//! The ids of a recorded run in a simulation of it, where entries are left out and others laid.

use std::collections::BTreeMap;

use crate::exchange::{Facts, Grant};
use crate::id::{CallId, EntryId, Span};
use crate::overlay::{Carry, Hide, Layer, Overlay, Part, Show, Stub, Summary};

/// What each recorded id has become.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids(BTreeMap<EntryId, EntryId>);

impl Ids {
    /// Remembers what an id has become.
    pub(super) fn put(&mut self, recorded: EntryId, now: EntryId) {
        self.0.insert(recorded, now);
    }

    /// The id now; `None` if the entry was left out.
    pub(super) fn get(&self, recorded: EntryId) -> Option<EntryId> {
        self.0.get(&recorded).copied()
    }

    /// The call now; `None` if its response was left out.
    pub(super) fn call(&self, recorded: CallId) -> Option<CallId> {
        let place = recorded.index()?;
        Some(CallId::at(self.get(recorded.response)?, place))
    }

    /// The call as it was recorded; `None` if it was not.
    pub(super) fn recorded(&self, now: CallId) -> Option<CallId> {
        let mut pairs = self.0.iter();
        let (recorded, _) = pairs.find(|(_, id)| **id == now.response)?;
        Some(CallId::new(*recorded, now.place))
    }

    /// What is left of a span; `None` if nothing is.
    pub(super) fn span(&self, recorded: Span) -> Option<Span> {
        let (_, from) = self.0.range(recorded.from..).next()?;
        let (_, to) = self.0.range(..=recorded.to).next_back()?;
        (from <= to).then(|| Span::new(*from, *to))
    }

    fn entries(&self, recorded: &[EntryId]) -> Vec<EntryId> {
        recorded.iter().filter_map(|id| self.get(*id)).collect()
    }

    fn calls(&self, recorded: &[CallId]) -> Vec<CallId> {
        recorded.iter().filter_map(|id| self.call(*id)).collect()
    }

    fn why(&self, recorded: &BTreeMap<CallId, CallId>) -> BTreeMap<CallId, CallId> {
        let pairs = recorded.iter();
        pairs
            .filter_map(|(call, by)| Some((self.call(*call)?, self.call(*by)?)))
            .collect()
    }

    /// The facts of a result.
    pub(super) fn facts(&self, recorded: &Facts) -> Facts {
        Facts {
            recalled: self.entries(&recorded.recalled),
            compact: recorded.compact.as_ref().map(|grant| Grant {
                granted: grant.granted,
                span: grant.span.and_then(|span| self.span(span)),
                focus: grant.focus.clone(),
            }),
            ..recorded.clone()
        }
    }

    /// An overlay; `None` if what it covers was left out.
    pub(super) fn overlay(&self, recorded: &Overlay, now: EntryId) -> Option<Overlay> {
        let layer = match &recorded.layer {
            Layer::Stub(stub) => Layer::Stub(Stub {
                form: stub.form,
                results: self.calls(&stub.results),
                arguments: self.calls(&stub.arguments),
                by: self.why(&stub.by),
            }),
            Layer::Hide(hide) => Layer::Hide(self.hide(hide)),
            Layer::Summary(summary) => Layer::Summary(self.summary(summary)?),
            Layer::Show(show) => Layer::Show(Show {
                calls: self.calls(&show.calls),
            }),
        };
        Some(Overlay {
            pass: self.get(recorded.pass).unwrap_or(now),
            layer,
            ..recorded.clone()
        })
    }

    fn hide(&self, hide: &Hide) -> Hide {
        let attachments = hide.attachments.iter();
        let rounds = hide.rounds.iter();
        Hide {
            calls: self.calls(&hide.calls),
            reasoning: self.entries(&hide.reasoning),
            attachments: attachments
                .filter_map(|(entry, place)| Some((self.get(*entry)?, *place)))
                .collect(),
            rounds: rounds.filter_map(|span| self.span(*span)).collect(),
            why: self.why(&hide.why),
        }
    }

    fn summary(&self, summary: &Summary) -> Option<Summary> {
        let parts = summary.parts.iter().filter_map(|part| {
            Some(Part {
                span: self.span(part.span)?,
                response: part.response.and_then(|id| self.get(id)),
                overlay: part.overlay.and_then(|id| self.get(id)),
                text: part.text.clone(),
            })
        });
        Some(Summary {
            span: self.span(summary.span)?,
            parts: parts.collect(),
            carry: Carry {
                entries: self.entries(&summary.carry.entries),
                calls: self.calls(&summary.carry.calls),
                ..summary.carry.clone()
            },
            ..summary.clone()
        })
    }
}
