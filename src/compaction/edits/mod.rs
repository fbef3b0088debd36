//! What a person changes of how a run reads: overlays taken back, calls shown, entries pinned.
//!
//! Everything here judges and records nothing: of a view it says what a change would do, or why it
//! cannot be, and the caller records the one event that comes of it. A change is tried on a copy of
//! the view, so that what is said of it is so.

mod expand;
mod pin;
mod retract;

use std::sync::Arc;

pub use expand::{ExpandError, Expansion, expand};
pub use pin::{ParseTargetError, PinError, Pinning, Target, Unread, pin, unpin};
pub use retract::{
    ParseWhichError, RetractError, Retraction, Uncovered, Which, retract, retract_each,
};

use crate::id::{CallId, EntryId};
use crate::overlay::Size;
use crate::transcript::{At, Entry, Event};
use crate::view::View;

/// The part of R that pins may take, and as much again what is shown.
const SHARE: f64 = 0.1;

/// The view as it would be with one more entry.
fn tried(view: &View, event: Event) -> View {
    let mut tried = view.clone();
    tried.take(Arc::new(Entry {
        id: view.transcript().next_id(),
        at: At::default(),
        event,
    }));
    tried
}

/// What a change does to the next request.
fn size(before: &View, after: &View) -> Size {
    Size {
        before: before.estimate().tokens,
        after: after.estimate().tokens,
    }
}

/// Whether the next request would be over the trigger though the one before the change was not, so
/// that the settings have it compacted before it is sent: the trigger then.
pub fn compacted_again(view: &View, size: Size) -> Option<u64> {
    let policy = &view.policy()?.compaction;
    let trigger = view.sizes()?.trigger;
    let looks = policy.enabled && policy.auto.enabled;
    (looks && size.after > trigger && size.after > size.before).then_some(trigger)
}

/// What pins may take, and as much again what is shown, in tokens; no limit before there are
/// settings.
fn room(view: &View) -> u64 {
    view.sizes().map_or(u64::MAX, |sizes| sizes.share(SHARE))
}

/// What a call takes in full, in tokens.
fn call_tokens(view: &View, call: CallId) -> u64 {
    let arguments = view
        .tool_call(call)
        .map_or(0, |made| view.text_tokens(&made.arguments));
    let result = view
        .result_of(call)
        .map_or(0, |(_, result)| view.text_tokens(&result.content));
    arguments + result
}

/// The calls of a response, by id.
fn calls(view: &View, response: EntryId) -> impl Iterator<Item = CallId> {
    let calls = view
        .response(response)
        .map_or(0, |response| response.calls.len());
    (0..calls).map(move |index| CallId::at(response, index))
}

/// An entry that was named and is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("e{entry} points at nothing: the last entry is e{last}")]
pub struct Nowhere {
    /// What was named.
    pub entry: EntryId,
    /// The last entry of the run.
    pub last: EntryId,
}

/// What an entry says, or that there is none.
fn event(view: &View, entry: EntryId) -> Result<&Event, Nowhere> {
    let transcript = view.transcript();
    let last = transcript.last().map(|last| last.id).unwrap_or_default();
    let found = transcript.get(entry);
    found
        .map(|found| &found.event)
        .ok_or(Nowhere { entry, last })
}

/// What an entry is, for people: `a request`.
fn kind(event: &Event) -> &'static str {
    match event {
        Event::Run(_) => "the run's beginning",
        Event::Setup(_) => "a setup",
        Event::User(_) => "a message",
        Event::Request(_) => "a request",
        Event::Response(_) => "a response",
        Event::Started(_) => "the start of a call",
        Event::Result(_) => "a result",
        Event::Overlay(_) => "an overlay",
        Event::Retract(_) => "a retract",
        Event::Pin(_) => "a pin",
        Event::Unpin(_) => "an unpin",
        Event::Fault(_) => "a fault",
        Event::Note(_) => "a note",
        Event::End(_) => "an end",
        Event::Unknown(_) => "of a type this version does not know",
    }
}
