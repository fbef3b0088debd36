//! Where the entries of a run stand that this program exported, once they are laid down again under
//! other ids: what points at them points at the same.

use std::collections::BTreeMap;

use crate::exchange::Facts;
use crate::id::{CallId, EntryId, Span};
use crate::overlay::{Carry, Hide, Layer, Overlay, Part, Show, Stub, Summary};
use crate::transcript::{Combine, Event, Pin, Purpose, Retract, Source, Summarize};

/// New ids, by the old ones.
#[derive(Debug, Default)]
pub(super) struct Moved {
    entries: BTreeMap<EntryId, EntryId>,
    /// What a span may begin and end with: users' messages, and rounds by their responses.
    places: BTreeMap<EntryId, Span>,
}

impl Moved {
    /// An entry is another one now.
    pub(super) fn entry(&mut self, was: EntryId, is: EntryId) {
        self.entries.insert(was, is);
    }

    /// A message of the user or a round, by its response, takes these entries now.
    pub(super) fn place(&mut self, was: EntryId, span: Span) {
        self.places.insert(was, span);
    }

    /// The event, which is recorded as this entry; `None` if what it changes is not there.
    pub(super) fn event(&self, event: Event, id: EntryId) -> Option<Event> {
        match event {
            Event::Overlay(overlay) => Some(Event::Overlay(Overlay {
                pass: self.at(overlay.pass).unwrap_or(id),
                layer: self.layer(overlay.layer)?,
                ..overlay
            })),
            Event::Retract(Retract { overlays, origin }) => {
                let overlays = self.all(overlays);
                let is_any = !overlays.is_empty();
                is_any.then_some(Event::Retract(Retract { overlays, origin }))
            }
            Event::Pin(pin) => Some(Event::Pin(self.pin(pin)?)),
            Event::Unpin(pin) => Some(Event::Unpin(self.pin(pin)?)),
            Event::Run(_)
            | Event::Setup(_)
            | Event::User(_)
            | Event::Request(_)
            | Event::Response(_)
            | Event::Started(_)
            | Event::Result(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => None,
        }
    }

    /// What a request is for; `None` if that is not there.
    pub(super) fn purpose(&self, purpose: Purpose) -> Option<Purpose> {
        Some(match purpose {
            Purpose::Round => Purpose::Round,
            Purpose::Summary(ask) => Purpose::Summary(Summarize {
                as_of: self.newest(ask.as_of),
                span: self.span(ask.span)?,
                whole: ask.whole.and_then(|span| self.span(span)),
                replaces: self.all(ask.replaces),
                ..ask
            }),
            Purpose::Combine(ask) => {
                let of = ask.of.into_iter().filter_map(|source| match source {
                    Source::Response(id) => self.at(id).map(Source::Response),
                    Source::Overlay(id) => self.at(id).map(Source::Overlay),
                });
                Purpose::Combine(Combine {
                    as_of: self.newest(ask.as_of),
                    of: of.collect(),
                    span: self.span(ask.span)?,
                    whole: ask.whole.and_then(|span| self.span(span)),
                    ..ask
                })
            }
            Purpose::Repair { response, error } => Purpose::Repair {
                response: self.at(response)?,
                error,
            },
        })
    }

    /// What programs know of a call.
    pub(super) fn facts(&self, mut facts: Facts) -> Facts {
        facts.recalled = self.all(facts.recalled);
        if let Some(compact) = &mut facts.compact {
            compact.span = compact.span.and_then(|span| self.span(span));
        }
        facts
    }

    fn layer(&self, layer: Layer) -> Option<Layer> {
        Some(match layer {
            Layer::Stub(stub) => Layer::Stub(Stub {
                form: stub.form,
                results: self.calls(stub.results),
                arguments: self.calls(stub.arguments),
                by: self.pairs(stub.by),
            }),
            Layer::Hide(hide) => {
                let attachments = hide.attachments.into_iter();
                let attachments = attachments.filter_map(|(id, place)| Some((self.at(id)?, place)));
                let rounds = hide.rounds.into_iter();
                Layer::Hide(Hide {
                    calls: self.calls(hide.calls),
                    reasoning: self.all(hide.reasoning),
                    attachments: attachments.collect(),
                    rounds: rounds.filter_map(|span| self.span(span)).collect(),
                    why: self.pairs(hide.why),
                })
            }
            Layer::Summary(summary) => {
                let parts = summary.parts.into_iter().filter_map(|part| {
                    Some(Part {
                        span: self.span(part.span)?,
                        response: part.response.and_then(|id| self.at(id)),
                        overlay: part.overlay.and_then(|id| self.at(id)),
                        text: part.text,
                    })
                });
                Layer::Summary(Summary {
                    span: self.span(summary.span)?,
                    parts: parts.collect(),
                    carry: Carry {
                        entries: self.all(summary.carry.entries),
                        calls: self.calls(summary.carry.calls),
                        ..summary.carry
                    },
                    ..summary
                })
            }
            Layer::Show(show) => Layer::Show(Show {
                calls: self.calls(show.calls),
            }),
        })
    }

    fn pin(&self, pin: Pin) -> Option<Pin> {
        let entry = self.at(pin.entry)?;
        Some(Pin { entry })
    }

    fn at(&self, was: EntryId) -> Option<EntryId> {
        self.entries.get(&was).copied()
    }

    fn all(&self, were: Vec<EntryId>) -> Vec<EntryId> {
        were.into_iter().filter_map(|was| self.at(was)).collect()
    }

    fn call(&self, was: CallId) -> Option<CallId> {
        let response = self.at(was.response)?;
        Some(CallId { response, ..was })
    }

    fn calls(&self, were: Vec<CallId>) -> Vec<CallId> {
        were.into_iter().filter_map(|was| self.call(was)).collect()
    }

    fn pairs(&self, were: BTreeMap<CallId, CallId>) -> BTreeMap<CallId, CallId> {
        let pairs = were.into_iter();
        pairs
            .filter_map(|(one, other)| Some((self.call(one)?, self.call(other)?)))
            .collect()
    }

    /// The messages and rounds that stood within a span, and nothing beside them.
    fn span(&self, was: Span) -> Option<Span> {
        let (_, first) = self.places.range(was.from..).next()?;
        let (_, last) = self.places.range(..=was.to).next_back()?;
        (first.from <= last.to).then(|| Span::new(first.from, last.to))
    }

    /// The newest entry that there was when this one was the newest.
    fn newest(&self, was: EntryId) -> EntryId {
        let entry = self.entries.range(..=was).next_back();
        let place = self.places.range(..=was).next_back();
        let entry = entry.map(|(_, is)| *is);
        let place = place.map(|(_, span)| span.to);
        entry.max(place).unwrap_or_default()
    }
}
