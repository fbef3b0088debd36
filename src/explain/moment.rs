//! A request of a run, with the view that it was made from.

use schemars::JsonSchema;
use serde::Serialize;

use crate::id::EntryId;
use crate::transcript::{Event, Request, Transcript};
use crate::view::{Anatomy, View};

/// A request, and everything as it stood when it was made.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The view of the entries before it.
    pub view: View,
    /// Which request it is.
    pub sent: Sent,
    /// What was recorded of it.
    pub request: Request,
}

/// A request by its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sent {
    /// Its entry.
    pub request: EntryId,
    /// The round; absent if it belongs to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
}

impl Moment {
    /// The request with this id; `None` if there is none.
    pub fn of(transcript: &Transcript, id: EntryId) -> Option<Self> {
        let Event::Request(request) = &transcript.get(id)?.event else {
            return None;
        };
        let before = transcript.entries().iter();
        let before = before.take_while(|entry| entry.id < id);
        Some(Self {
            view: View::of(before.cloned()),
            sent: Sent {
                request: id,
                round: request.round,
            },
            request: request.clone(),
        })
    }

    /// The request taken apart; `None` if the entries before it do not make one.
    pub fn anatomy(&self) -> Option<Anatomy<'_>> {
        self.view.anatomy(&self.request.purpose)
    }
}
