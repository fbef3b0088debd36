//! What a run was told and what its models answered: all that is needed to play it.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::Task;
use crate::exchange::{Response, ToolResult};
use crate::id::{CallId, EntryId};
use crate::overlay::{Layer, Origin};
use crate::setup::Setup;
use crate::transcript::{Event, Purpose, Reason, Speaker, Transcript};

/// A run as it can be played: turn by turn, with the recorded results to hold new ones against.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    parts: Vec<Part>,
    pub(super) results: BTreeMap<CallId, ToolResult>,
    pub(super) rounds: BTreeMap<EntryId, u32>,
}

/// A turn: what a person said, and what was answered.
#[derive(Clone, Debug)]
pub struct Part {
    /// The user entry.
    pub entry: EntryId,
    /// What it says.
    pub task: Task,
    /// The settings that it began with.
    pub setup: Setup,
    /// Why it ended at last; `None` if it never did.
    pub ended: Option<Reason>,
    /// The responses of rounds and of corrections, in order.
    pub(super) responses: Vec<(EntryId, Response)>,
    /// The responses of summaries that nobody asked for by hand.
    pub(super) summaries: Vec<Response>,
    /// The summaries that were laid.
    pub(super) overlays: Vec<EntryId>,
}

impl Recording {
    /// What there is to play of a transcript. There are no parts if it has no task with settings.
    pub fn of(transcript: &Transcript) -> Self {
        let mut recording = Self::default();
        let mut setup: Option<&Setup> = None;
        let mut purposes: BTreeMap<EntryId, &Purpose> = BTreeMap::new();
        for entry in transcript.entries() {
            match &entry.event {
                Event::Setup(given) => setup = Some(given),
                Event::User(user) if matches!(user.origin, Speaker::Task | Speaker::FollowUp) => {
                    if let Some(setup) = setup {
                        recording.parts.push(Part {
                            entry: entry.id,
                            task: Task {
                                text: user.text.clone(),
                                attachments: user.attachments.clone(),
                            },
                            setup: setup.clone(),
                            ended: None,
                            responses: Vec::new(),
                            summaries: Vec::new(),
                            overlays: Vec::new(),
                        });
                    }
                }
                Event::Request(request) => {
                    purposes.insert(entry.id, &request.purpose);
                    if let Some(round) = request.round {
                        recording.rounds.insert(entry.id, round);
                    }
                }
                Event::Response(response) => {
                    let purpose = purposes.get(&response.request);
                    recording.answer(entry.id, response, purpose.copied());
                }
                Event::Result(result) => {
                    let first = recording.results.entry(result.call);
                    first.or_insert_with(|| result.clone());
                }
                Event::Overlay(laid) if laid.origin != Origin::User => {
                    if let (Layer::Summary(_), Some(part)) =
                        (&laid.layer, recording.parts.last_mut())
                    {
                        part.overlays.push(entry.id);
                    }
                }
                Event::End(end) => {
                    if let Some(part) = recording.parts.last_mut() {
                        part.ended = Some(end.reason);
                    }
                }
                Event::Run(_)
                | Event::User(_)
                | Event::Started(_)
                | Event::Overlay(_)
                | Event::Retract(_)
                | Event::Pin(_)
                | Event::Unpin(_)
                | Event::Fault(_)
                | Event::Note(_)
                | Event::Unknown(_) => {}
            }
        }
        recording
    }

    fn answer(&mut self, entry: EntryId, response: &Response, purpose: Option<&Purpose>) {
        let Some(part) = self.parts.last_mut() else {
            return;
        };
        match purpose {
            Some(purpose @ (Purpose::Summary(_) | Purpose::Combine(_))) => {
                if purpose.origin() != Origin::User {
                    part.summaries.push(response.clone());
                }
            }
            Some(Purpose::Round | Purpose::Repair { .. }) | None => {
                if let Some(round) = self.rounds.get(&response.request).copied() {
                    self.rounds.insert(entry, round);
                }
                part.responses.push((entry, response.clone()));
            }
        }
    }

    /// The turns, oldest first.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The names of the tools that are called.
    pub fn called(&self) -> BTreeSet<&str> {
        let responses = self.parts.iter().flat_map(|part| &part.responses);
        let calls = responses.flat_map(|(_, response)| &response.calls);
        calls.map(|call| call.name.as_str()).collect()
    }
}
