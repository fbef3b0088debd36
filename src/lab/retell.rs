//! What was recorded, as it is told again: with ids that fit, the settings that are tried, and without
//! what belongs to the recorded policy alone.

use crate::exchange::{Response, Usage};
use crate::id::{Digest, EntryId};
use crate::import::RECORDED;
use crate::lab::ids::Ids;
use crate::lab::{Source, Terms};
use crate::overlay::{Origin, Overlay};
use crate::setup::{self, Hooks, MessageProfile, Role, Setup};
use crate::transcript::{
    BodyDigest, Check, Entry, Event, Fault, FaultClass, Note, Pin, Purpose, Request, Retract,
    Started,
};
use crate::view::View;
use crate::wire::RENDERER;

/// A recorded run that is told again.
pub(super) struct Retelling<'a> {
    pub(super) source: &'a Source,
    pub(super) terms: &'a Terms,
    pub(super) policy: &'a setup::Compaction,
    pub(super) ids: Ids,
}

impl Retelling<'_> {
    /// A recorded event as it is taken here; `None` if it is left out.
    pub(super) fn event(&self, recorded: &Entry, view: &View) -> Option<Event> {
        let now = view.transcript().next_id();
        let ids = &self.ids;
        Some(match &recorded.event {
            Event::Run(run) => Event::Run(run.clone()),
            Event::Setup(setup) => Event::Setup(Box::new(self.setup(setup))),
            Event::User(user) => Event::User(user.clone()),
            Event::Request(request) => Event::Request(self.request(request, view)?),
            Event::Response(response) => Event::Response(Response {
                request: ids.get(response.request)?,
                usage: self.usage(response, view),
                ..response.clone()
            }),
            Event::Started(started) => Event::Started(Started {
                call: ids.call(started.call)?,
            }),
            Event::Result(result) => {
                let mut result = result.clone();
                result.call = ids.call(result.call)?;
                result.facts = ids.facts(&result.facts);
                if !self.policy.tool.enabled {
                    result.facts.compact = None;
                }
                Event::Result(result)
            }
            Event::Overlay(overlay) => {
                let overlay = stays(overlay).then_some(overlay)?;
                Event::Overlay(ids.overlay(overlay, now)?)
            }
            Event::Retract(retract) => {
                let overlays = retract.overlays.iter().filter_map(|id| ids.get(*id));
                let overlays: Vec<EntryId> = overlays.collect();
                let origin = retract.origin;
                (!overlays.is_empty()).then_some(Event::Retract(Retract { overlays, origin }))?
            }
            Event::Pin(pin) => Event::Pin(Pin {
                entry: ids.get(pin.entry)?,
            }),
            Event::Unpin(pin) => Event::Unpin(Pin {
                entry: ids.get(pin.entry)?,
            }),
            Event::Fault(fault) if fault.class != FaultClass::Overflow => Event::Fault(Fault {
                request: ids.get(fault.request)?,
                ..fault.clone()
            }),
            Event::Note(note) => Event::Note(self.note(note)?),
            Event::End(end) => Event::End(end.clone()),
            // Whether a request is too long is another question here.
            Event::Fault(_) | Event::Unknown(_) => return None,
        })
    }

    fn setup(&self, recorded: &Setup) -> Setup {
        let mut setup = recorded.clone();
        setup.policy.compaction = setup::Compaction {
            hooks: Hooks::default(),
            ..self.policy.clone()
        };
        let overhead = usize::try_from(self.terms.overhead_tokens).unwrap_or(usize::MAX / 4);
        setup.wire.instructions.push_str(&"x".repeat(overhead * 4));
        for role in [Role::Main, Role::Summary, Role::Fallback] {
            if let Some(model) = setup.wire.models.role_mut(role) {
                model.window = Some(self.terms.window_of(model));
                model.profile.messages = MessageProfile {
                    empty_content: model.profile.messages.empty_content,
                    ..MessageProfile::default()
                };
            }
        }
        setup
    }

    fn request(&self, recorded: &Request, view: &View) -> Option<Request> {
        let purpose = match &recorded.purpose {
            Purpose::Round => Purpose::Round,
            Purpose::Repair { response, error } => Purpose::Repair {
                response: self.ids.get(*response)?,
                error: error.clone(),
            },
            Purpose::Summary(_) | Purpose::Combine(_) => return None,
        };
        Some(Request {
            round: recorded.round,
            setup: self.ids.get(recorded.setup).unwrap_or_default(),
            renderer: RENDERER,
            body: not_built(),
            estimate: view.estimate_of(&purpose),
            purpose,
        })
    }

    /// What the provider would have counted: as much more or less than the estimate as it did. What
    /// another agent sent is not known, so its counts teach nothing.
    fn usage(&self, recorded: &Response, view: &View) -> Option<Usage> {
        if self.source.is_imported {
            return None;
        }
        let base = |entry: &Entry| {
            if let Event::Request(request) = &entry.event {
                Some(request.estimate.base)
            } else {
                None
            }
        };
        let was = base(self.source.entry(recorded.request)?)?;
        let is = base(view.transcript().get(self.ids.get(recorded.request)?)?)?;
        let usage = recorded.usage?;
        let scaled = |input: u64| {
            let scaled = u128::from(input) * u128::from(is) / u128::from(was.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        Some(Usage {
            input: usage.input.map(scaled),
            ..usage
        })
    }

    fn note(&self, recorded: &Note) -> Option<Note> {
        match recorded {
            Note::Warning { .. } | Note::Torn(_) | Note::Damage { .. } => Some(recorded.clone()),
            Note::Check(check) => Some(Note::Check(Check {
                response: self.ids.get(check.response)?,
                ..*check
            })),
            // They belong to what was laid then.
            Note::SummaryFailed { .. } | Note::Hook(_) => None,
        }
    }
}

/// Whether a recorded overlay stays whatever policy is tried.
fn stays(overlay: &Overlay) -> bool {
    overlay.rule == RECORDED || overlay.origin == Origin::User
}

/// No body is built, and nobody asks for it again.
pub(super) fn not_built() -> BodyDigest {
    BodyDigest {
        sha256: Digest([0; 32]),
        bytes: 0,
    }
}
