//! Entries are pinned: automatic compaction leaves them alone, and summaries show them again.

use std::str::FromStr;

use crate::address::Address;
use crate::compaction::edits::expand::{self, ExpandError};
use crate::compaction::edits::{Nowhere, event, kind, room, tried};
use crate::id::{CallId, EntryId};
use crate::overlay::layers::Reads;
use crate::transcript::{Event, Pin};
use crate::view::View;
use crate::words::grouped;

/// What is to be pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `e57`: an entry.
    Entry(EntryId),
    /// `41.2`: the result of a call.
    Call(CallId),
}

/// A text names no single entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names neither an entry nor a call; use e57 or 41.2")]
pub struct ParseTargetError(String);

impl FromStr for Target {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address = text.parse();
        if let Ok(Address::Entry(entry)) = address {
            return Ok(Self::Entry(entry));
        }
        if let Ok(Address::Call(call)) = address {
            return Ok(Self::Call(call));
        }
        Err(ParseTargetError(text.chars().take(40).collect()))
    }
}

/// An entry cannot be pinned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PinError {
    /// There is no such entry.
    #[error(transparent)]
    Nowhere(#[from] Nowhere),
    /// There is no such call.
    #[error(transparent)]
    NoCall(#[from] ExpandError),
    /// The call is not answered.
    #[error("{0} has no result yet")]
    Open(CallId),
    /// It is no part of what the model reads.
    #[error(
        "e{entry} is {what}: only messages, replies and results can be pinned{}",
        instead(*meant)
    )]
    Another {
        /// The entry.
        entry: EntryId,
        /// What it is.
        what: &'static str,
        /// The entry that was meant, perhaps.
        meant: Option<EntryId>,
    },
    /// It was never sent to the model.
    #[error("e{0} was never sent to the model, so there is nothing to pin")]
    Aside(EntryId),
    /// It would take too much.
    #[error(
        "e{entry} takes about {} tokens, and pins may take {} together; {} of them are taken",
        grouped(*takes), grouped(*room), grouped(*pinned)
    )]
    Room {
        /// The entry.
        entry: EntryId,
        /// What it takes.
        takes: u64,
        /// What pins take already.
        pinned: u64,
        /// What they may take.
        room: u64,
    },
}

fn instead(meant: Option<EntryId>) -> String {
    meant.map_or_else(String::new, |meant| format!("; did you mean e{meant}?"))
}

/// Why an entry does not read in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// A stub or a hide covers the call: it can be shown.
    Call(CallId, EntryId),
    /// An overlay leaves it out with everything around it.
    Covered(EntryId),
}

/// An entry that is pinned, and what comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinning {
    /// The entry.
    pub entry: EntryId,
    /// Nothing is to be recorded: it is pinned already, and pinning it anew changes nothing.
    pub already: bool,
    /// Why the pin protects nothing: it does not read in full.
    pub unread: Option<Unread>,
    /// What pins take with it, in tokens.
    pub pinned: u64,
    /// What they may take.
    pub room: u64,
}

/// What pinning an entry comes to.
pub fn pin(view: &View, target: Target) -> Result<Pinning, PinError> {
    let entry = entry(view, target)?;
    let after = tried(view, Event::Pin(Pin { entry }));
    let protects = after.is_protected(entry);
    let already = view.pins().get(&entry) == Some(&protects);
    let room = room(view);
    let mut pinned = pinned(view, entry);
    if protects {
        let takes = tokens(view, entry);
        if pinned + takes > room && !already {
            return Err(PinError::Room {
                entry,
                takes,
                pinned,
                room,
            });
        }
        pinned += takes;
    }
    Ok(Pinning {
        entry,
        already,
        unread: (!protects).then(|| unread(view, entry)).flatten(),
        pinned,
        room,
    })
}

/// The entry that is no longer to be pinned, and whether it is.
pub fn unpin(view: &View, target: Target) -> Result<(EntryId, bool), PinError> {
    let entry = match target {
        Target::Call(_) => entry(view, target)?,
        // Whatever was pinned once can be unpinned.
        Target::Entry(entry) => event(view, entry).map(|_| entry)?,
    };
    Ok((entry, view.pins().contains_key(&entry)))
}

/// The entry of the conversation that is meant.
fn entry(view: &View, target: Target) -> Result<EntryId, PinError> {
    let entry = match target {
        Target::Entry(entry) => entry,
        Target::Call(call) => {
            expand::check(view, call)?;
            let result = view.result_of(call).map(|(result, _)| result);
            return result.ok_or(PinError::Open(call));
        }
    };
    let found = event(view, entry)?;
    let another = |meant| PinError::Another {
        entry,
        what: kind(found),
        meant,
    };
    match found {
        Event::User(_) => Ok(entry),
        Event::Response(_) => match view.rounds().of_response(entry) {
            Some(_) => Ok(entry),
            None => Err(PinError::Aside(entry)),
        },
        Event::Result(result) => match view.result_of(result.call) {
            Some((first, _)) if first == entry => Ok(entry),
            Some(_) | None => Err(PinError::Aside(entry)),
        },
        Event::Started(started) => {
            let result = view.result_of(started.call).map(|(result, _)| result);
            Err(another(result))
        }
        Event::Request(_) => {
            let round = view.rounds().of_request(entry);
            Err(another(round.and_then(|round| round.response)))
        }
        Event::Pin(pin) | Event::Unpin(pin) => Err(another(Some(pin.entry))),
        Event::Run(_)
        | Event::Setup(_)
        | Event::Overlay(_)
        | Event::Retract(_)
        | Event::Fault(_)
        | Event::Note(_)
        | Event::End(_)
        | Event::Unknown(_) => Err(another(None)),
    }
}

/// What covers an entry of the conversation.
fn unread(view: &View, entry: EntryId) -> Option<Unread> {
    let call = view.result(entry).map(|result| result.call);
    let place = call.map_or(entry, |call| call.response);
    if let Some(overlay) = view.covered_by(place) {
        return Some(Unread::Covered(overlay));
    }
    let call = call?;
    match view.reads(call)? {
        Reads::Full => None,
        Reads::Stubbed(stub) => Some(Unread::Call(call, stub.overlay)),
        Reads::Hidden(overlay) => Some(Unread::Call(call, overlay)),
    }
}

/// What an entry takes where it is shown again, in tokens.
fn tokens(view: &View, entry: EntryId) -> u64 {
    view.text_tokens(&view.carried(entry).unwrap_or_default())
}

/// What the other pins that protect something take, in tokens.
fn pinned(view: &View, but: EntryId) -> u64 {
    let pins = view.pins().iter();
    pins.filter(|(entry, protects)| **protects && **entry != but)
        .map(|(entry, _)| tokens(view, *entry))
        .sum()
}
