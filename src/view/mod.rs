//! The view: everything derived from the entries, kept up to date one entry at a time.
//!
//! [`View::take`] folds the next entry in; everything else looks. [`View::messages`] is what the model
//! reads next, [`View::readings`] why, [`View::body`] its bytes; [`View::working`] is what the run is in the middle of,
//! [`View::ledger`] what it has used, [`View::aging`] what micro-compaction may put away. A view depends on
//! nothing but the entries, is total over anything that parses, and is cheap to copy: a plan is tried on
//! a copy.

mod aging;
mod anatomy;
mod bands;
mod beneath;
mod corrected;
mod estimates;
mod held;
mod item;
mod ledger;
mod messages;
mod newest;
mod open;
mod pieces;
mod reach;
mod readings;
mod reads;
mod regret;
mod request;
pub(crate) mod saved;
mod settled;
mod sizes;
mod sought;
mod tally;
mod taught;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) use aging::json_chars;
pub use aging::{Aging, Candidate, Parts, Ripe};
pub use anatomy::{Anatomy, Placed};
pub use estimates::Estimates;
pub use held::Hold;
pub use ledger::{Asked, Ledger, Streak};
pub use open::{Failure, FileState, Working};
pub use readings::{As, Change, Content, Reading, Source};
pub use reads::Standing;
pub use regret::Regret;
pub(crate) use settled::Defers;
pub(crate) use sizes::SHORT_TEXT;
pub use sizes::Sizes;
pub use sought::{Sought, Text};
pub use taught::Taught;

use crate::exchange::{Message, Response, ToolResult};
use crate::id::{CallId, EntryId, Span};
use crate::overlay::layers::Cover;
use crate::overlay::{Layer, Overlay};
use crate::setup::{Policy, Setup, Wire};
use crate::transcript::shelf::Line;
use crate::transcript::turn::Rounds;
use crate::transcript::{Entry, Event, Note, Transcript, User};
use crate::wire::Head;
use bands::Bands;
use held::Stirred;
use item::{CallState, Items, Kind};
use pieces::{Part, Piece, Pieces};
use tally::Tally;

/// The fold of the entries.
#[derive(Clone, Debug, Default)]
pub struct View {
    transcript: Transcript,
    rounds: Rounds,
    setups: Vec<EntryId>,
    items: Items,
    /// The newest correction of each reply that was corrected.
    corrections: BTreeMap<EntryId, EntryId>,
    /// Items with a call that is not answered.
    open: BTreeSet<usize>,
    /// Summaries that are not retracted.
    bands: Bands,
    /// Other overlays that are not retracted.
    laid: BTreeSet<EntryId>,
    pieces: Pieces,
    pins: BTreeMap<EntryId, bool>,
    working: Working,
    ledger: Ledger,
    sought: Sought,
    aging: Aging,
    regret: Regret,
    hold: Hold,
    stirred: Stirred,
    defers: Defers,
    work: Work,
    measured: Tally,
    looked: Tally,
}

/// What the view has done, for tests and benchmarks: counts that must not grow with the transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Entries, items, calls and messages looked at.
    pub visited: u64,
    /// Bytes of messages rendered.
    pub rendered: u64,
    /// Bytes hashed.
    pub hashed: u64,
    /// Bytes rendered to measure or to make requests other than rounds.
    pub measured: u64,
    /// Candidates and messages looked at by what only asks how large they are.
    pub looked: u64,
    /// Entries that were let go and read again, by this view and its copies.
    pub fetched: u64,
}

impl View {
    /// The view of these entries.
    pub fn of(entries: impl IntoIterator<Item = Arc<Entry>>) -> Self {
        let mut view = Self::default();
        entries.into_iter().for_each(|entry| view.take(entry));
        view
    }

    /// Takes the next entry in. An id that is not above the last one is left out.
    pub fn take(&mut self, entry: Arc<Entry>) {
        self.take_line(entry, Line::default());
    }

    /// The same of an entry that lies in this line of the view's shelf: once it is not needed any more, it
    /// is let go.
    pub fn take_line(&mut self, entry: Arc<Entry>, line: Line) {
        if !self.transcript.append_line(entry, line) {
            return;
        }
        let Some(entry) = self.transcript.last().map(Arc::clone) else {
            return;
        };
        self.work.visited += 1;
        self.rounds.take(&entry);
        match &entry.event {
            Event::Setup(setup) => self.take_setup(entry.id, setup),
            Event::User(user) => {
                let kind = Kind::User(vec![Cover::default(); user.attachments.len()]);
                self.push(entry.id, kind);
            }
            Event::Response(response) if self.rounds.of_response(entry.id).is_some() => {
                let calls = vec![CallState::default(); response.calls.len()];
                let (hidden, reasoning) = (Cover::default(), Cover::default());
                self.push(
                    entry.id,
                    Kind::Response {
                        hidden,
                        reasoning,
                        calls,
                    },
                );
            }
            Event::Response(response) => self.take_correction(entry.id, response),
            Event::Result(result) => self.take_answer(entry.id, result),
            Event::Overlay(overlay) => self.lay(entry.id, overlay),
            Event::Retract(retract) => {
                self.take_uncovered(&entry.event);
                retract
                    .overlays
                    .iter()
                    .for_each(|overlay| self.retract(*overlay));
            }
            Event::Pin(pin) => {
                let reads = self.reads_in_full(pin.entry);
                *self.pins.entry(pin.entry).or_default() |= reads;
                self.reconsider();
            }
            Event::Unpin(pin) => {
                self.pins.remove(&pin.entry);
                self.reconsider();
            }
            Event::Run(_)
            | Event::Request(_)
            | Event::Started(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => {}
        }
        // How large the view was when a summary could not be had is remembered.
        let is_measured = matches!(entry.event, Event::Note(Note::SummaryFailed { .. }));
        if self.defers != Defers::All || is_measured {
            self.settle(!matches!(
                entry.event,
                Event::Overlay(_) | Event::Retract(_)
            ));
        }
        self.working.take(&entry, &self.transcript, &self.rounds);
        let chars = self.pieces.chars();
        self.ledger
            .take(&entry, &self.transcript, &self.rounds, chars);
        self.sought.take(&entry);
        self.let_go();
    }

    fn take_setup(&mut self, id: EntryId, setup: &Setup) {
        let head = Head::of(setup);
        let before = self.setup().map(Head::of);
        let same = before.is_some_and(|before| before.bytes() == head.bytes());
        // Signed blocks read only to the model that made them.
        let reads_alike = before.is_some_and(|before| {
            before.model.made_by(head.model) && before.model.profile == head.model.profile
        });
        let (bytes, comma) = (head.bytes(), head.has_message());
        if !same || !reads_alike {
            self.pieces.set_head(bytes, comma, !reads_alike);
        }
        let before = self.setups.last().copied();
        self.stir_entries(before);
        self.setups.push(id);
        self.reconsider();
    }

    fn push(&mut self, entry: EntryId, kind: Kind) {
        let is_open = matches!(&kind, Kind::Response { calls, .. } if !calls.is_empty());
        let index = self.items.push(entry, kind);
        if is_open {
            self.open.insert(index);
        }
        let behind_summary =
            self.pieces.list().last().is_some_and(|piece| {
                piece.part.is_between() || matches!(piece.part, Part::Summary(_))
            });
        let parts = self.parts(index);
        self.pieces
            .append(parts.into_iter().map(|part| Piece::new(index, part)));
        if behind_summary {
            self.set_between();
        }
    }

    fn take_answer(&mut self, entry: EntryId, result: &ToolResult) {
        let Some((index, call)) = self.items.answer(result.call, entry) else {
            return;
        };
        let Some(item) = self.items.get(index) else {
            return;
        };
        if item.calls().iter().all(|call| call.result.is_some()) {
            self.open.remove(&index);
        }
        if self.covered(index).is_none() && !item.hides_call(call) {
            self.age(result.call);
        }
        self.take_fetched(result);
    }

    fn lay(&mut self, id: EntryId, overlay: &Overlay) {
        if let Layer::Summary(summary) = &overlay.layer {
            let items = self.items.within(summary.span);
            let before = self.bands.places();
            let carries = self.carry_text(id, &summary.carry).is_some();
            self.bands.lay(id, items.clone(), carries);
            // What read there reads no more; all else within was covered already.
            let mut affected = self.pieces.items_within(&items);
            self.moved(&before, &mut affected);
            self.stir_entries(before.into_keys());
            self.rebuild(&affected);
            return;
        }
        self.laid.insert(id);
        let mut affected = BTreeSet::new();
        for (index, change) in self.items.resolve(&overlay.layer) {
            self.items.lay(index, id, change);
            affected.insert(index);
        }
        self.rebuild(&affected);
    }

    fn retract(&mut self, id: EntryId) {
        let before = self.bands.places();
        if let Some(items) = self.bands.retract(id) {
            let mut affected = items.collect();
            self.moved(&before, &mut affected);
            self.stir_entries(before.into_keys().chain(self.bands.places().into_keys()));
            self.rebuild(&affected);
        } else if self.laid.remove(&id) {
            let layer = self.overlay(id).map(|overlay| overlay.layer.clone());
            let changes = layer
                .map(|layer| self.items.resolve(&layer))
                .unwrap_or_default();
            let affected: BTreeSet<usize> = changes.into_iter().map(|(index, _)| index).collect();
            for index in &affected {
                self.items.retract(*index, id);
            }
            self.rebuild(&affected);
        }
    }

    /// Adds the places that summaries left and took to the items that read differently.
    fn moved(&self, before: &BTreeMap<EntryId, usize>, affected: &mut BTreeSet<usize>) {
        let after = self.bands.places();
        for (one, other) in [(before, &after), (&after, before)] {
            let moved = one
                .iter()
                .filter(|(id, place)| other.get(id) != Some(place));
            affected.extend(moved.map(|(_, place)| *place));
        }
    }

    fn rebuild(&mut self, affected: &BTreeSet<usize>) {
        self.work.visited += affected.len() as u64;
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.replace(affected, |index| self.parts(index));
        self.pieces = pieces;
        self.set_between();
        self.reconsider_items(affected);
        self.stir(affected.iter().copied());
    }

    /// Puts what is carried, and the assistant's word, behind the last summary.
    fn set_between(&mut self) {
        self.work.visited += self.pieces.list().len() as u64;
        let places = self.bands.places();
        let Some(place) = places.values().max().copied() else {
            return self.pieces.set_between(0, &[]);
        };
        let newest = places.keys().max().copied();
        let carry = newest.filter(|id| self.bands.carries(*id)).map(Part::Carry);
        // After the last summary no other follows, so the user speaks there or nobody.
        let ends = self.pieces.next_part(place) == Some(Part::User);
        let parts: Vec<Part> = carry
            .into_iter()
            .chain(ends.then_some(Part::Understood))
            .collect();
        self.pieces.set_between(place, &parts);
    }

    /// The entries themselves.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Turns and rounds.
    pub fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    /// What the run is in the middle of.
    pub fn working(&self) -> &Working {
        &self.working
    }

    /// What the run has used and how its requests went.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The texts that models were asked for and that no summary holds yet.
    pub fn sought(&self) -> &Sought {
        &self.sought
    }

    /// What micro-compaction may put away.
    pub fn aging(&self) -> &Aging {
        &self.aging
    }

    /// What the view has done so far.
    pub fn work(&self) -> Work {
        Work {
            measured: self.measured.get(),
            looked: self.looked.get(),
            fetched: self.transcript.fetched(),
            ..self.work
        }
    }

    /// The settings in force.
    pub fn setup(&self) -> Option<&Setup> {
        let entry = self.transcript.get(*self.setups.last()?)?;
        if let Event::Setup(setup) = &entry.event {
            Some(setup)
        } else {
            None
        }
    }

    /// The entry of the settings in force.
    pub fn setup_entry(&self) -> Option<EntryId> {
        self.setups.last().copied()
    }

    /// What is sent besides messages.
    pub fn wire(&self) -> Option<&Wire> {
        self.setup().map(|setup| &setup.wire)
    }

    /// What decides.
    pub fn policy(&self) -> Option<&Policy> {
        self.setup().map(|setup| &setup.policy)
    }

    /// The `user` entry with this id.
    pub fn user(&self, id: EntryId) -> Option<&User> {
        if let Event::User(user) = &self.transcript.get(id)?.event {
            Some(user)
        } else {
            None
        }
    }

    /// The `response` entry with this id, a summary's too.
    pub fn response(&self, id: EntryId) -> Option<&Response> {
        let entry = self.transcript.get(id)?;
        if let Event::Response(response) = &entry.event {
            Some(response)
        } else {
            None
        }
    }

    /// The `result` entry with this id.
    pub fn result(&self, id: EntryId) -> Option<&ToolResult> {
        if let Event::Result(result) = &self.transcript.get(id)?.event {
            Some(result)
        } else {
            None
        }
    }

    /// Whether a round may begin: there are settings, the newest round is closed, and the last
    /// message is not the assistant's.
    pub fn may_ask(&self) -> bool {
        let closed = self
            .rounds
            .last()
            .is_none_or(crate::transcript::turn::Round::is_closed);
        closed && self.setup().is_some() && self.awaits_model()
    }

    /// Whether the last message is there and not the assistant's.
    pub fn awaits_model(&self) -> bool {
        let last = self
            .pieces
            .list()
            .last()
            .and_then(|piece| self.message(piece));
        matches!(last, Some(Message::User { .. } | Message::Tool { .. }))
    }

    /// Where the conversation goes on after an entry: the next user entry, or the request that
    /// begins the round of the next response.
    pub fn next_begin(&self, after: EntryId) -> Option<EntryId> {
        let next = self
            .items
            .within(Span::new(after.next(), EntryId(u64::MAX)))
            .start;
        let entry = self.items.get(next)?.entry;
        Some(
            self.rounds
                .of_response(entry)
                .map_or(entry, crate::transcript::turn::Round::begins),
        )
    }

    /// The calls that have no result, in order.
    pub fn open_calls(&self) -> Vec<CallId> {
        let items = self.open.iter().filter_map(|index| self.items.get(*index));
        items
            .flat_map(|item| {
                let open = item
                    .calls()
                    .iter()
                    .enumerate()
                    .filter(|(_, call)| call.result.is_none());
                open.map(|(index, _)| CallId::at(item.entry, index))
            })
            .collect()
    }
}
