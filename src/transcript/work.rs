//! Which entries are the run's own work, and so whether it stays ended.

use serde::{Deserialize, Serialize};

use crate::id::EntryId;
use crate::overlay::Origin;
use crate::transcript::{Entry, Event, Reason};

/// Tells the work of a run from what a person does to it: a run that ended stays ended while a
/// person changes how it reads, also if a model writes a summary for that.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Work {
    /// The newest request, if it is for a summary that a person ordered.
    by_hand: Option<EntryId>,
    /// Why the run ended, unless it went on since.
    ended: Option<Reason>,
}

impl Work {
    /// Takes the next entry, and returns whether it is work.
    pub fn take(&mut self, entry: &Entry) -> bool {
        let of_hand = |request: EntryId| self.by_hand == Some(request);
        let works = match &entry.event {
            // They come before a model is asked or after it was, whatever for.
            Event::Setup(_) | Event::Note(_) => false,
            Event::Request(request) => {
                let by_hand = request.purpose.origin() == Origin::User;
                self.by_hand = by_hand.then_some(entry.id);
                !by_hand
            }
            Event::Response(response) => !of_hand(response.request),
            Event::Fault(fault) => !of_hand(fault.request),
            Event::Run(_)
            | Event::User(_)
            | Event::Started(_)
            | Event::Result(_)
            | Event::Overlay(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::End(_)
            | Event::Unknown(_) => !entry.event.is_by_hand(),
        };
        if let Event::End(end) = &entry.event {
            self.ended = Some(end.reason);
        } else if works {
            self.ended = None;
        }
        works
    }

    /// Why the run ended; `None` if it goes on.
    pub fn ended(&self) -> Option<Reason> {
        self.ended
    }
}
