//! How one thing reads at one moment.

use schemars::JsonSchema;
use serde::Serialize;

use crate::explain::Subject;
use crate::id::EntryId;
use crate::overlay::Layer;
use crate::transcript::{Event, Purpose};
use crate::view::{As, Change, Content, Source, View};

/// How the whole of a subject reads, or whether it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum How {
    /// What a model reads.
    Reads(As),
    /// What changes how other things read, or are sent: an overlay, settings.
    Holds(Holds),
}

/// Whether an overlay or settings hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "as", content = "by", rename_all = "snake_case")]
pub enum Holds {
    /// They do.
    InForce,
    /// The summary stands in the one that this overlay laid.
    Replaced(EntryId),
    /// Not any more.
    NoMore,
}

impl How {
    /// The overlay by which it does not read in full, or does not hold.
    pub fn overlay(self) -> Option<EntryId> {
        match self {
            Self::Reads(reads) => reads.overlay(),
            Self::Holds(Holds::Replaced(by)) => Some(by),
            Self::Holds(Holds::InForce | Holds::NoMore) => None,
        }
    }
}

/// How a subject reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// The whole of it; nothing if it is of a kind that is not read.
    pub(super) reads: Option<How>,
    /// Parts that do not read in full while the whole does.
    pub(super) parts: Vec<Change>,
    /// The summary behind which it is shown again.
    pub(super) again: Option<EntryId>,
}

impl Look {
    /// The overlays by which it, or a part of it, does not read in full.
    pub(super) fn overlays(&self) -> impl Iterator<Item = EntryId> {
        let whole = self.reads.and_then(How::overlay);
        whole.into_iter().chain(self.parts.iter().map(|it| it.by))
    }
}

/// How a subject reads now.
pub(super) fn look(view: &View, subject: Subject) -> Look {
    let reads = match subject {
        Subject::Call(call) => Some(How::Reads(view.reads_as(Content::Call(call)))),
        Subject::Entry(entry) => whole(view, entry),
    };
    let parts = match subject {
        _ if reads != Some(How::Reads(As::Full)) => Vec::new(),
        Subject::Call(call) => {
            let halves = [Content::Arguments(call), Content::Result(call)].into_iter();
            let changed = halves.filter_map(|content| {
                let by = view.reads_as(content).overlay()?;
                Some(Change { content, by })
            });
            changed.collect()
        }
        Subject::Entry(entry) => view.changes(entry),
    };
    let covered = reads.is_some_and(|reads| reads.overlay().is_some());
    let again = view
        .carrying()
        .filter(|summary| covered && carries(view, *summary, subject));
    Look {
        reads,
        parts,
        again,
    }
}

/// How an entry reads as a whole. Of overlays and settings: whether they hold.
fn whole(view: &View, id: EntryId) -> Option<How> {
    let holds = |holds| How::Holds(if holds { Holds::InForce } else { Holds::NoMore });
    let stands = |source| How::Reads(view.stands_as(source));
    match &view.transcript().get(id)?.event {
        Event::User(_) => Some(stands(Source::Entry(id))),
        Event::Response(response) => {
            let aside = view.rounds().of_response(id).is_none();
            let asked = view.transcript().get(response.request);
            let corrects = asked.is_some_and(|asked| {
                matches!(&asked.event, Event::Request(request)
                    if matches!(request.purpose, Purpose::Repair { .. }))
            });
            (!aside || corrects).then(|| stands(Source::Entry(id)))
        }
        Event::Result(result) => {
            let first = view.result_of(result.call).map(|(first, _)| first);
            Some(if first == Some(id) {
                stands(Source::Result(result.call))
            } else {
                How::Reads(As::Absent)
            })
        }
        Event::Overlay(overlay) => Some(match &overlay.layer {
            Layer::Summary(_) => match view.stands_as(Source::Summary(id)) {
                As::Full => holds(true),
                As::Summarised(by) => How::Holds(Holds::Replaced(by)),
                As::Stub(_) | As::Hidden(_) | As::Corrected(_) | As::Open | As::Absent => {
                    holds(false)
                }
            },
            Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_) => {
                holds(view.overlays().contains(&id))
            }
        }),
        Event::Setup(_) => Some(holds(view.setup_entry() == Some(id))),
        Event::Run(_)
        | Event::Request(_)
        | Event::Started(_)
        | Event::Retract(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Fault(_)
        | Event::Note(_)
        | Event::End(_)
        | Event::Unknown(_) => None,
    }
}

/// Whether a summary shows the subject again.
fn carries(view: &View, summary: EntryId, subject: Subject) -> bool {
    let Some(Layer::Summary(summary)) = view.overlay(summary).map(|laid| &laid.layer) else {
        return false;
    };
    let carry = &summary.carry;
    match subject {
        Subject::Call(call) => carry.calls.contains(&call),
        Subject::Entry(entry) => {
            let call = view.result(entry).map(|result| result.call);
            carry.entries.contains(&entry) || call.is_some_and(|call| carry.calls.contains(&call))
        }
    }
}
