//! Turns and rounds: how the entries of a run are counted.
//!
//! A turn begins with a user entry of origin task or follow-up. A round begins with a request for
//! a round and ends with the last result of its response; a request that follows one without a
//! response belongs to the same round.

use std::collections::HashMap;

use crate::exchange::Response;
use crate::id::{EntryId, Span};
use crate::transcript::{Entry, Event, Purpose, Speaker};

/// One round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Its number, from 1 through the whole run.
    pub number: u32,
    /// The turn it belongs to; 0 before any.
    pub turn: u32,
    /// Its first request.
    pub request: EntryId,
    /// The request that its response answers; until then, its newest.
    pub asked: EntryId,
    /// Its response.
    pub response: Option<EntryId>,
    /// For each call of the response, the first result.
    pub results: Vec<Option<EntryId>>,
}

impl Round {
    /// Whether it has a response and every call is answered.
    pub fn is_closed(&self) -> bool {
        self.response.is_some() && self.results.iter().all(Option::is_some)
    }

    /// From its first request to its last result, or to its response; `None` without a response.
    pub fn span(&self) -> Option<Span> {
        let response = self.response?;
        let last = self
            .results
            .iter()
            .flatten()
            .copied()
            .max()
            .unwrap_or(response);
        Some(Span::new(self.request, last.max(response)))
    }
}

/// The turns and rounds of a run, kept up to date one entry at a time.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    all: Vec<Round>,
    turns: Vec<EntryId>,
    by_request: HashMap<EntryId, u32>,
    by_response: HashMap<EntryId, u32>,
}

impl Rounds {
    /// Takes the next entry in.
    pub fn take(&mut self, entry: &Entry) {
        match &entry.event {
            Event::User(user) if matches!(user.origin, Speaker::Task | Speaker::FollowUp) => {
                self.turns.push(entry.id);
            }
            Event::Request(request) if request.purpose == Purpose::Round => self.request(entry.id),
            Event::Response(response) => self.response(entry.id, response),
            Event::Result(result) => {
                let place = usize::try_from(result.call.place).unwrap_or(usize::MAX);
                let round = self.of_response_mut(result.call.response);
                let slot = round.and_then(|round| round.results.get_mut(place.checked_sub(1)?));
                if let Some(slot @ None) = slot {
                    *slot = Some(entry.id);
                }
            }
            Event::User(_)
            | Event::Request(_)
            | Event::Run(_)
            | Event::Setup(_)
            | Event::Started(_)
            | Event::Overlay(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => {}
        }
    }

    fn request(&mut self, id: EntryId) {
        match self.all.last_mut() {
            Some(round) if round.response.is_none() => round.asked = id,
            _ => self.all.push(Round {
                number: u32::try_from(self.all.len())
                    .unwrap_or(u32::MAX)
                    .saturating_add(1),
                turn: u32::try_from(self.turns.len()).unwrap_or(u32::MAX),
                request: id,
                asked: id,
                response: None,
                results: Vec::new(),
            }),
        }
        self.by_request
            .insert(id, u32::try_from(self.all.len()).unwrap_or(u32::MAX));
    }

    fn response(&mut self, id: EntryId, response: &Response) {
        let number = self.by_request.get(&response.request).copied();
        let Some(round) = number.and_then(|number| self.number_mut(number)) else {
            return;
        };
        // Of two responses to one round, the first counts.
        if round.response.is_none() {
            round.response = Some(id);
            round.asked = response.request;
            round.results = vec![None; response.calls.len()];
            let number = round.number;
            self.by_response.insert(id, number);
        }
    }

    fn number_mut(&mut self, number: u32) -> Option<&mut Round> {
        self.all
            .get_mut(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    fn of_response_mut(&mut self, response: EntryId) -> Option<&mut Round> {
        let number = *self.by_response.get(&response)?;
        self.number_mut(number)
    }

    /// All rounds, oldest first.
    pub fn all(&self) -> &[Round] {
        &self.all
    }

    /// The round with this number.
    pub fn number(&self, number: u32) -> Option<&Round> {
        self.all.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// The newest round.
    pub fn last(&self) -> Option<&Round> {
        self.all.last()
    }

    /// The round that a request belongs to.
    pub fn of_request(&self, request: EntryId) -> Option<&Round> {
        self.number(*self.by_request.get(&request)?)
    }

    /// The round that a response belongs to; `None` for a response that is not part of the
    /// conversation, such as a summary.
    pub fn of_response(&self, response: EntryId) -> Option<&Round> {
        self.number(*self.by_response.get(&response)?)
    }

    /// The rounds whose first request lies in a span.
    pub fn within(&self, span: Span) -> &[Round] {
        let from = self.all.partition_point(|round| round.request < span.from);
        let to = self.all.partition_point(|round| round.request <= span.to);
        self.all.get(from..to).unwrap_or_default()
    }

    /// The user entries that begin turns, oldest first.
    pub fn turns(&self) -> &[EntryId] {
        &self.turns
    }
}
