//! Turns and rounds: how the entries of a run are counted.
//!
//! A turn begins with a user entry of origin task or follow-up. A round begins with a request for
//! a round and ends with the last result of its response; a request that follows one without a
//! response belongs to the same round.

use serde::{Deserialize, Serialize};

use crate::exchange::Response;
use crate::id::{CallId, EntryId, Span};
use crate::transcript::sequence::{Sequence, Stretch};
use crate::transcript::{Entry, Event, Purpose, Speaker};

/// One round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Its number, from 1 through the whole run.
    pub number: u32,
    /// The turn it belongs to; 0 before any.
    pub turn: u32,
    /// Its requests, oldest first: more than one only if the first could not be sent again.
    pub requests: Vec<EntryId>,
    /// Its response.
    pub response: Option<EntryId>,
    /// For each call of the response, the first result.
    pub results: Vec<Option<EntryId>>,
}

impl Round {
    /// Its first request, where it begins.
    pub fn begins(&self) -> EntryId {
        self.requests.first().copied().unwrap_or_default()
    }

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
        Some(Span::new(self.begins(), last.max(response)))
    }
}

/// The turns and rounds of a run, kept up to date one entry at a time.
///
/// Only the newest round can lack a response, so requests, rounds and responses ascend together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rounds {
    /// Kept apart, as it grows with the run.
    #[serde(skip)]
    all: Sequence<Round>,
    turns: Vec<EntryId>,
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
            Event::Result(result) => self.result(entry.id, result.call),
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
            Some(round) if round.response.is_none() => round.requests.push(id),
            _ => self.all.push(Round {
                number: count(self.all.len()).saturating_add(1),
                turn: count(self.turns.len()),
                requests: vec![id],
                response: None,
                results: Vec::new(),
            }),
        }
    }

    fn response(&mut self, id: EntryId, response: &Response) {
        let Some(round) = self.all.last_mut() else {
            return;
        };
        // Of two responses to one round, the first counts.
        if round.response.is_none() && round.requests.contains(&response.request) {
            round.response = Some(id);
            round.results = vec![None; response.calls.len()];
        }
    }

    fn result(&mut self, id: EntryId, call: CallId) {
        let Some(place) = self.place_of_response(call.response) else {
            return;
        };
        let results = self.all.get_mut(place).map(|round| &mut round.results);
        let slot = results.and_then(|results| results.get_mut(call.index()?));
        if let Some(slot) = slot {
            slot.get_or_insert(id);
        }
    }

    fn place_of_response(&self, response: EntryId) -> Option<usize> {
        let place = self
            .all
            .partition_point(|round| round.response.is_some_and(|r| r < response));
        self.all
            .get(place)
            .filter(|round| round.response == Some(response))
            .map(|_| place)
    }

    /// All rounds, as they are kept apart.
    pub(crate) fn sequence(&self) -> &Sequence<Round> {
        &self.all
    }

    /// These rounds in the place of none.
    #[must_use]
    pub(crate) fn with(self, all: Sequence<Round>) -> Self {
        Self { all, ..self }
    }

    /// All rounds, oldest first.
    pub fn all(&self) -> Stretch<'_, Round> {
        self.all.stretch(0..self.all.len())
    }

    /// The round with this number.
    pub fn number(&self, number: u32) -> Option<&Round> {
        self.all.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// The newest round.
    pub fn last(&self) -> Option<&Round> {
        self.all.last()
    }

    /// The newest round that has a response: the model has seen what was there before it.
    pub fn answered(&self) -> Option<&Round> {
        let newest = self.all().iter().rev().take(2);
        newest.into_iter().find(|round| round.response.is_some())
    }

    /// The round that a request belongs to.
    pub fn of_request(&self, request: EntryId) -> Option<&Round> {
        let place = self
            .all
            .partition_point(|round| round.begins() <= request)
            .checked_sub(1)?;
        self.all
            .get(place)
            .filter(|round| round.requests.contains(&request))
    }

    /// The round that a response belongs to; `None` for a response that is not part of the
    /// conversation, such as a summary.
    pub fn of_response(&self, response: EntryId) -> Option<&Round> {
        self.place_of_response(response)
            .and_then(|place| self.all.get(place))
    }

    /// The rounds whose first request lies in a span.
    pub fn within(&self, span: Span) -> Stretch<'_, Round> {
        let from = self.all.partition_point(|round| round.begins() < span.from);
        let to = self.all.partition_point(|round| round.begins() <= span.to);
        self.all.stretch(from..to)
    }

    /// The last entry, up to this one, at which at least one round was there and every one was
    /// closed: where a run can be cut off. `None` if none is.
    pub fn closed_at(&self, entry: EntryId) -> Option<EntryId> {
        let mut at = entry;
        loop {
            let begun = self.all.partition_point(|round| round.begins() <= at);
            let newest = self.all.get(begun.checked_sub(1)?)?;
            let closed = newest.span().filter(|_| newest.is_closed());
            if closed.is_some_and(|span| span.to <= at) {
                return Some(at);
            }
            at = EntryId(newest.begins().0.checked_sub(1)?);
        }
    }

    /// The user entries that begin turns, oldest first.
    pub fn turns(&self) -> &[EntryId] {
        &self.turns
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
