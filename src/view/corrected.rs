//! Answers that were corrected: the reply to a repair reads in the place of the one that did not fit.
//!
//! Whether an answer fits is not known here. What counts is that there is one: a reply that is whole,
//! says something and calls nothing, asked for to correct the newest reply, with nothing said since.

use std::collections::BTreeSet;

use crate::exchange::{Ending, Response};
use crate::id::EntryId;
use crate::transcript::{Event, Purpose};
use crate::view::View;

impl View {
    /// The reply that reads in the place of a round's: the newest correction of it, or itself.
    pub fn corrected(&self, response: EntryId) -> EntryId {
        *self.corrections.get(&response).unwrap_or(&response)
    }

    /// Takes in a reply that is not a round's: it may be a correction.
    pub(super) fn take_correction(&mut self, id: EntryId, reply: &Response) {
        let says = reply.ending == Ending::Complete
            && reply.calls.is_empty()
            && !reply.text.trim().is_empty();
        let asked = self.transcript.get(reply.request).map(|asked| &asked.event);
        let Some(Event::Request(request)) = asked.filter(|_| says) else {
            return;
        };
        let Purpose::Repair {
            response: corrects, ..
        } = request.purpose
        else {
            return;
        };
        let Some((index, newest)) = self.items.newest() else {
            return;
        };
        let (entry, calls) = (newest.entry, newest.calls().len());
        if self.rounds.of_response(entry).is_some()
            && calls == 0
            && self.corrected(entry) == corrects
        {
            self.corrections.insert(entry, id);
            self.rebuild(&BTreeSet::from([index]));
        }
    }
}
