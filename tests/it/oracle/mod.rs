//! The oracle: a second, naive projection, which the program never uses.
//!
//! It is written from the meaning of entries alone, quadratic and without caches, and shares no
//! code with the view: only the ground types. [`messages`], [`may_ask`] and [`body`] say what the
//! view must say; what they say on small transcripts is written out in `readings.rs`. [`pairing`]
//! judges a body by itself.

mod body;
mod pairing;
mod texts;

use std::sync::Arc;

use undertext::exchange::{Ending, Message, Reasoning, Response, SentCall, ToolCall, ToolResult};
use undertext::id::{CallId, EntryId};
use undertext::overlay::{Hide, Layer, Show, Stub, Summary};
use undertext::setup::{Model, Setup};
use undertext::transcript::{Entry, Event, Purpose, User};

pub(crate) use body::body;
pub(crate) use pairing::pairing;

const OPEN: &str = "interrupted, effect unknown";
const UNDERSTOOD: &str = "Understood. I have the context from the summary. Continuing.";

/// The entries as they read to a model, instructions left out.
pub(crate) fn messages(entries: &[Arc<Entry>]) -> Vec<Message<'static>> {
    Past::new(entries).messages()
}

/// Whether a round may begin.
pub(crate) fn may_ask(entries: &[Arc<Entry>]) -> bool {
    let past = Past::new(entries);
    let closed = past.rounds.last().is_none_or(|round| {
        let Some(id) = round.response else {
            return false;
        };
        let calls = past.item(id).map_or(0, |response| response.calls.len());
        (1..)
            .zip(0..calls)
            .all(|(place, _)| past.result(CallId::new(id, place)).is_some())
    });
    let asks = match past.messages().last() {
        Some(Message::User { .. } | Message::Tool { .. }) => true,
        Some(Message::Assistant { .. }) | None => false,
    };
    past.setup_before(EntryId(u64::MAX)).is_some() && closed && asks
}
/// One round, as far as items need it.
struct Round {
    requests: Vec<EntryId>,
    response: Option<EntryId>,
}

/// Entries, and their rounds.
struct Past<'a> {
    entries: &'a [Arc<Entry>],
    rounds: Vec<Round>,
}

impl<'a> Past<'a> {
    fn new(entries: &'a [Arc<Entry>]) -> Self {
        let mut rounds: Vec<Round> = Vec::new();
        for entry in entries {
            if let Event::Request(request) = &entry.event
                && request.purpose == Purpose::Round
            {
                match rounds.last_mut() {
                    Some(round) if round.response.is_none() => round.requests.push(entry.id),
                    _ => rounds.push(Round {
                        requests: vec![entry.id],
                        response: None,
                    }),
                }
            }
            if let Event::Response(response) = &entry.event
                && let Some(round) = rounds
                    .iter_mut()
                    .find(|round| round.requests.contains(&response.request))
                && round.response.is_none()
            {
                round.response = Some(entry.id);
            }
        }
        Self { entries, rounds }
    }

    fn event(&self, id: EntryId) -> Option<&'a Event> {
        self.entries
            .iter()
            .find(|entry| entry.id == id)
            .map(|entry| &entry.event)
    }

    fn user(&self, id: EntryId) -> Option<&'a User> {
        let Event::User(user) = self.event(id)? else {
            return None;
        };
        Some(user)
    }

    fn response(&self, id: EntryId) -> Option<&'a Response> {
        let Event::Response(response) = self.event(id)? else {
            return None;
        };
        Some(response)
    }

    /// The response with this id, if it is part of the conversation.
    fn item(&self, id: EntryId) -> Option<&'a Response> {
        self.rounds
            .iter()
            .find(|round| round.response == Some(id))?;
        self.response(id)
    }

    /// The reply that reads in the place of one without calls: the newest answer to a request to
    /// correct it, or the one before, while nothing else was said.
    fn corrected(&self, id: EntryId, response: &'a Response) -> &'a Response {
        let (mut newest, mut reads) = (id, response);
        let later = self.entries.iter().filter(|entry| entry.id > id);
        for entry in later {
            if self.user(entry.id).is_some() || self.item(entry.id).is_some() {
                break;
            }
            let Event::Response(reply) = &entry.event else {
                continue;
            };
            let asked = reply.request < entry.id && response.calls.is_empty();
            let Some(Event::Request(request)) = self.event(reply.request).filter(|_| asked) else {
                continue;
            };
            let corrects =
                matches!(request.purpose, Purpose::Repair { response, .. } if response == newest);
            let is_answer = reply.ending == Ending::Complete
                && reply.calls.is_empty()
                && !reply.text.trim().is_empty();
            if corrects && is_answer {
                (newest, reads) = (entry.id, reply);
            }
        }
        reads
    }

    /// The first result of a call, whether or not its response is part of the conversation.
    fn result(&self, call: CallId) -> Option<(EntryId, &'a ToolResult)> {
        self.entries.iter().find_map(|entry| {
            let Event::Result(result) = &entry.event else {
                return None;
            };
            (result.call == call && entry.id > call.response).then_some((entry.id, result))
        })
    }

    fn setup_before(&self, id: EntryId) -> Option<&'a Setup> {
        let before = self.entries.iter().rev().filter(|entry| entry.id < id);
        before.into_iter().find_map(|entry| {
            let Event::Setup(setup) = &entry.event else {
                return None;
            };
            Some(&**setup)
        })
    }

    /// Whether a response is of the model that is asked now.
    fn is_own(&self, response: &Response) -> bool {
        let maker = self.setup_before(response.request);
        let now = self.setup_before(EntryId(u64::MAX));
        let who = |setup: &'a Setup| {
            let model = &setup.wire.models.main;
            let Model {
                name,
                server,
                api,
                profile,
                ..
            } = model;
            (name, server, api, &profile.name)
        };
        maker.is_none() || maker.map(who) == now.map(who)
    }

    /// The layers of the overlays that are not retracted, newest first.
    fn standing(&self) -> impl Iterator<Item = (EntryId, &'a Layer)> {
        self.entries.iter().rev().filter_map(|entry| {
            let Event::Overlay(overlay) = &entry.event else {
                return None;
            };
            let retracted = self.entries.iter().any(|later| {
                let Event::Retract(retract) = &later.event else {
                    return false;
                };
                later.id > entry.id && retract.overlays.contains(&entry.id)
            });
            (!retracted).then_some((entry.id, &overlay.layer))
        })
    }

    fn stubs(&self) -> impl Iterator<Item = (EntryId, &'a Stub)> {
        self.standing().filter_map(|(id, layer)| {
            let Layer::Stub(stub) = layer else {
                return None;
            };
            Some((id, stub))
        })
    }

    fn hides(&self) -> impl Iterator<Item = (EntryId, &'a Hide)> {
        self.standing().filter_map(|(id, layer)| {
            let Layer::Hide(hide) = layer else {
                return None;
            };
            Some((id, hide))
        })
    }

    fn summaries(&self) -> impl Iterator<Item = (EntryId, &'a Summary)> {
        self.standing().filter_map(|(id, layer)| {
            let Layer::Summary(summary) = layer else {
                return None;
            };
            Some((id, summary))
        })
    }

    /// Whether an overlay of this id no longer speaks about a call, because a newer one shows it.
    fn silenced(&self, overlay: EntryId, call: CallId) -> bool {
        self.standing().any(|(id, layer)| {
            let Layer::Show(Show { calls }) = layer else {
                return false;
            };
            overlay < id && call.response < id && calls.contains(&call)
        })
    }

    fn stubbed_result(&self, call: CallId) -> Option<(EntryId, &'a Stub)> {
        let (result, _) = self.result(call)?;
        self.stubs().find(|(id, stub)| {
            stub.results.contains(&call)
                && call.response < *id
                && result < *id
                && !self.silenced(*id, call)
        })
    }

    fn stubbed_arguments(&self, call: CallId) -> bool {
        self.stubs().any(|(id, stub)| {
            stub.arguments.contains(&call) && call.response < id && !self.silenced(id, call)
        })
    }

    fn hidden_call(&self, call: CallId) -> bool {
        self.hides().any(|(id, hide)| {
            hide.calls.contains(&call) && call.response < id && !self.silenced(id, call)
        })
    }

    fn hidden_reasoning(&self, response: EntryId) -> bool {
        self.hides()
            .any(|(id, hide)| response < id && hide.reasoning.contains(&response))
    }

    fn hidden_round(&self, response: EntryId) -> bool {
        self.hides().any(|(id, hide)| {
            let mut spans = hide.rounds.iter();
            response < id && spans.any(|span| span.from <= response && response <= span.to)
        })
    }

    fn hidden_attachment(&self, user: EntryId, place: u32) -> bool {
        self.hides()
            .any(|(id, hide)| user < id && hide.attachments.contains(&(user, place)))
    }

    /// The summary that an item reads in.
    fn won_by(&self, item: EntryId) -> Option<(EntryId, &'a Summary)> {
        self.summaries().find(|(id, summary)| {
            item < *id && summary.span.from <= item && item <= summary.span.to
        })
    }

    fn messages(&self) -> Vec<Message<'static>> {
        let mut read = Vec::new();
        let mut in_place: Vec<(EntryId, &Summary)> = Vec::new();
        let mut after_last = 0;
        for entry in self.entries {
            let id = entry.id;
            if self.user(id).is_none() && self.item(id).is_none() {
                continue;
            }
            if let Some((overlay, summary)) = self.won_by(id) {
                if !in_place.iter().any(|(other, _)| *other == overlay) {
                    in_place.push((overlay, summary));
                    read.push(said(self.summary(overlay, summary)));
                    after_last = read.len();
                }
            } else if let Some(user) = self.user(id) {
                let text = texts::user(user, |place| self.hidden_attachment(id, place));
                if !text.is_empty() {
                    read.push(said(text));
                }
            } else if let Some(response) = self.item(id)
                && !self.hidden_round(id)
            {
                read.extend(self.group(id, self.corrected(id, response)));
            }
        }
        if let Some((newest, summary)) = in_place.iter().max_by_key(|(id, _)| *id) {
            let follows = read.split_off(after_last);
            read.extend(self.carried(*newest, summary).map(said));
            if let Some(Message::User { .. }) = follows.first() {
                read.push(Message::Assistant {
                    text: UNDERSTOOD.into(),
                    reasoning: Vec::new().into(),
                    calls: Vec::new(),
                    extra: None,
                });
            }
            read.extend(follows);
        }
        read
    }

    /// A response and the results of its calls.
    fn group(&self, id: EntryId, response: &Response) -> Vec<Message<'static>> {
        let mut calls = Vec::new();
        let mut results = Vec::new();
        let own = self.is_own(response);
        for (place, call) in (1..).zip(&response.calls) {
            let handle = CallId::new(id, place);
            if self.hidden_call(handle) {
                continue;
            }
            let stubbed = self.stubbed_arguments(handle);
            calls.push(SentCall {
                id: handle,
                name: call.name.clone().into(),
                arguments: if stubbed {
                    "{}".into()
                } else {
                    call.arguments.clone().into()
                },
                extra: call
                    .extra
                    .clone()
                    .filter(|_| own && !stubbed)
                    .map(Into::into),
            });
            let text = match (self.result(handle), self.stubbed_result(handle)) {
                (None, _) => OPEN.to_owned(),
                (Some((_, result)), None) => result.content.clone(),
                (Some((_, result)), Some((overlay, stub))) => {
                    self.stub(overlay, stub, call, result)
                }
            };
            results.push(Message::Tool {
                call: handle,
                text: text.into(),
            });
        }
        if response.text.is_empty() && calls.is_empty() {
            return Vec::new();
        }
        let hidden = self.hidden_reasoning(id);
        let mut reasoning = response.reasoning.clone();
        reasoning.retain(|block| !hidden && (own || matches!(block, Reasoning::Text { .. })));
        let text = response.text.clone().into();
        let mut group = vec![Message::Assistant {
            text,
            reasoning: reasoning.into(),
            calls,
            extra: response.extra.clone().filter(|_| own).map(Into::into),
        }];
        group.extend(results);
        group
    }
}

/// The call at its place in a response.
fn placed(response: &Response, call: CallId) -> Option<&ToolCall> {
    let place = usize::try_from(call.place).ok()?;
    response.calls.get(place.checked_sub(1)?)
}

fn said(text: String) -> Message<'static> {
    Message::User { text: text.into() }
}
