//! A call is shown in full again, whatever older stubs and hides say.

use crate::compaction::edits::{Nowhere, call_tokens, calls, event, kind, room, size, tried};
use crate::id::{CallId, EntryId};
use crate::overlay::layers::Reads;
use crate::overlay::{Layer, Origin, Overlay, Show, Size};
use crate::transcript::Event;
use crate::view::View;
use crate::words::grouped;

/// A call cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// There is no such entry.
    #[error(transparent)]
    Nowhere(#[from] Nowhere),
    /// The entry makes no calls.
    #[error("{call} is no call: e{} is {what}{}", call.response, instead(*meant))]
    NoCalls {
        /// What was named.
        call: CallId,
        /// What its entry is.
        what: &'static str,
        /// The call that the entry is about, if it is about one.
        meant: Option<CallId>,
    },
    /// The response makes fewer calls.
    #[error("{call} is no call: e{} makes {}", call.response, number(*calls))]
    Fewer {
        /// What was named.
        call: CallId,
        /// How many calls the response makes.
        calls: usize,
    },
    /// The model was never sent it.
    #[error("{0} is no call of a round: its response was never sent back to the model")]
    Aside(CallId),
    /// It is left out with everything around it.
    #[error("{call} lies in {what} e{overlay}; take that back first")]
    Covered {
        /// The call.
        call: CallId,
        /// What covers it.
        what: &'static str,
        /// The overlay.
        overlay: EntryId,
    },
    /// It would take too much.
    #[error(
        "{call} takes about {} tokens, and what is shown may take {} together; {} of them are taken",
        grouped(*takes), grouped(*room), grouped(*shown)
    )]
    Room {
        /// The call.
        call: CallId,
        /// What it takes.
        takes: u64,
        /// What shown calls take already.
        shown: u64,
        /// What they may take.
        room: u64,
    },
}

fn number(calls: usize) -> String {
    match calls {
        0 => "no calls".to_owned(),
        1 => "only one call".to_owned(),
        calls => format!("{calls} calls"),
    }
}

fn instead(meant: Option<CallId>) -> String {
    meant.map_or_else(String::new, |call| format!(" of {call}"))
}

/// A call that is shown, and what comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// The overlay to record.
    pub overlay: Overlay,
    /// The overlays that are lifted from the call.
    pub lifts: Vec<EntryId>,
    /// What shown calls take with it, in tokens.
    pub shown: u64,
    /// What they may take.
    pub room: u64,
}

/// The overlay that shows a call; `None` if it reads in full already.
pub fn expand(view: &View, call: CallId) -> Result<Option<Expansion>, ExpandError> {
    check(view, call)?;
    if let Some(overlay) = view.covered_by(call.response) {
        let is_summary = view
            .overlay(overlay)
            .is_some_and(|laid| matches!(laid.layer, Layer::Summary(_)));
        return Err(ExpandError::Covered {
            call,
            what: if is_summary {
                "the summary"
            } else {
                "a round hidden by"
            },
            overlay,
        });
    }
    let reads = [view.reads(call), view.reads_arguments(call)];
    let mut lifts: Vec<EntryId> = reads
        .into_iter()
        .flatten()
        .filter_map(|reads| match reads {
            Reads::Full => None,
            Reads::Stubbed(stub) => Some(stub.overlay),
            Reads::Hidden(overlay) => Some(overlay),
        })
        .collect();
    lifts.sort_unstable();
    lifts.dedup();
    if lifts.is_empty() {
        return Ok(None);
    }
    let (takes, shown, room) = (call_tokens(view, call), shown(view, call), room(view));
    if shown + takes > room {
        return Err(ExpandError::Room {
            call,
            takes,
            shown,
            room,
        });
    }
    let mut overlay = Overlay {
        origin: Origin::User,
        rule: "expand".to_owned(),
        pass: view.transcript().next_id(),
        layer: Layer::Show(Show { calls: vec![call] }),
        size: Size::default(),
        reason: String::new(),
    };
    let after = tried(view, Event::Overlay(overlay.clone()));
    overlay.size = size(view, &after);
    Ok(Some(Expansion {
        overlay,
        lifts,
        shown: shown + takes,
        room,
    }))
}

/// Whether it is a call of the conversation.
pub(super) fn check(view: &View, call: CallId) -> Result<(), ExpandError> {
    let found = event(view, call.response)?;
    let Event::Response(response) = found else {
        let meant = match found {
            Event::Result(result) => Some(result.call),
            Event::Started(started) => Some(started.call),
            Event::Run(_)
            | Event::Setup(_)
            | Event::User(_)
            | Event::Request(_)
            | Event::Response(_)
            | Event::Overlay(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => None,
        };
        let what = kind(found);
        return Err(ExpandError::NoCalls { call, what, meant });
    };
    if view.tool_call(call).is_none() {
        let calls = response.calls.len();
        return Err(ExpandError::Fewer { call, calls });
    }
    if view.rounds().of_response(call.response).is_none() {
        return Err(ExpandError::Aside(call));
    }
    Ok(())
}

/// What the other calls that are shown take now, in tokens. What a summary covers takes nothing.
fn shown(view: &View, but: CallId) -> u64 {
    let responses = view.live().into_iter();
    let calls = responses.flat_map(|response| calls(view, response));
    calls
        .filter(|call| *call != but && view.is_shown(*call))
        .filter(|call| view.reads(*call) == Some(Reads::Full))
        .map(|call| call_tokens(view, call))
        .sum()
}
