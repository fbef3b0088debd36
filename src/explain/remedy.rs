//! What a person can do so that something reads in full, now and the next time.

use schemars::JsonSchema;
use serde::Serialize;

use crate::compaction::edits::{self, Target, Which};
use crate::explain::Subject;
use crate::explain::look::{Holds, How, Look};
use crate::id::{CallId, EntryId};
use crate::view::{As, Content, View};

/// What makes something read in full again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// This overlay is taken back.
    Retract(EntryId),
    /// This call is shown again.
    Expand(CallId),
}

/// What would help against how a subject reads now, or against an overlay that is in force.
pub(super) fn remedies(view: &View, subject: Subject, look: &Look) -> Vec<Remedy> {
    let whole = match (look.reads, subject) {
        (Some(How::Reads(As::Stub(by) | As::Hidden(by))), Subject::Entry(entry)) => {
            let call = view.result(entry).map(|result| result.call);
            Some((call, by))
        }
        (Some(How::Reads(As::Stub(by) | As::Hidden(by))), Subject::Call(call)) => {
            Some((Some(call), by))
        }
        (Some(How::Reads(As::Summarised(by)) | How::Holds(Holds::Replaced(by))), _) => {
            Some((None, by))
        }
        (
            Some(
                How::Reads(As::Full | As::Corrected(_) | As::Open | As::Absent)
                | How::Holds(Holds::InForce | Holds::NoMore),
            )
            | None,
            _,
        ) => None,
    };
    let parts = look.parts.iter().map(|part| match part.content {
        Content::Arguments(call) | Content::Result(call) | Content::Call(call) => {
            (Some(call), part.by)
        }
        Content::Text(_) | Content::Reasoning(_) | Content::Attachment(..) => (None, part.by),
    });
    let mut remedies = Vec::new();
    if let (Some(How::Holds(Holds::InForce)), Subject::Entry(entry)) = (look.reads, subject)
        && view.overlay(entry).is_some()
    {
        remedies.push(Remedy::Retract(entry));
    }
    for (call, by) in whole.into_iter().chain(parts) {
        let shown = call.filter(|call| matches!(edits::expand(view, *call), Ok(Some(_))));
        let remedy = match shown {
            Some(call) => Remedy::Expand(call),
            None if edits::retract(view, Which::Overlay(by)).is_ok() => Remedy::Retract(by),
            None => continue,
        };
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    remedies
}

/// The entry that a pin would keep readable from now on; `None` if none is needed, or none can be.
pub(super) fn pin(view: &View, subject: Subject, look: &Look) -> Option<EntryId> {
    let target = match subject {
        Subject::Entry(entry) => Target::Entry(entry),
        Subject::Call(call) => Target::Call(call),
    };
    if matches!(
        look.reads,
        None | Some(How::Reads(As::Absent | As::Corrected(_)) | How::Holds(Holds::NoMore))
    ) {
        return None;
    }
    let pinning = edits::pin(view, target).ok()?;
    let kept = pinning.already && pinning.unread.is_none();
    let task = view.working().task == Some(pinning.entry);
    (!kept && !task).then_some(pinning.entry)
}
