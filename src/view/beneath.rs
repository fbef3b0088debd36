//! What reads under other layers than those that stand: the texts that overlays put in the place of
//! contents, and the replies that others correct.

use std::borrow::Cow;

use crate::exchange::Message;
use crate::id::{CallId, EntryId};
use crate::overlay::Form;
use crate::overlay::layers::Stubbed;
use crate::transcript::Purpose;
use crate::view::View;
use crate::view::readings::{Reading, Source};

impl View {
    /// What the result of a call reads as under a stub of this overlay; `None` if it is open.
    pub(crate) fn stub_of(
        &self,
        call: CallId,
        overlay: EntryId,
        form: Form,
        by: Option<CallId>,
    ) -> Option<String> {
        let (_, result) = self.result_of(call)?;
        let stub = Stubbed { overlay, form, by };
        Some(self.stub_text(call, self.tool_call(call)?, result, stub))
    }

    /// The reply in whose place this one reads now.
    pub(crate) fn corrects(&self, response: EntryId) -> Option<EntryId> {
        let mut corrections = self.corrections.iter();
        let found = corrections.find(|(_, by)| **by == response);
        found.map(|(corrected, _)| *corrected)
    }

    /// The reply that a repair corrects, if it is not among the messages that read now.
    fn unread(&self, response: EntryId) -> Option<Message<'_>> {
        let newest = self.rounds.last().and_then(|round| round.response);
        let reads = newest.is_some_and(|newest| self.corrected(newest) == response);
        let known = reads || self.rounds.of_response(response).is_some();
        let reply = self.response(response).filter(|_| !known)?;
        Some(Message::Assistant {
            text: Cow::Borrowed(&reply.text),
            reasoning: Cow::Borrowed(&[]),
            calls: Vec::new(),
            extra: None,
        })
    }

    /// The messages of a request made now for this purpose, each with what it comes from as far as it
    /// comes from an entry.
    pub(crate) fn readings_for<'a>(&'a self, purpose: &'a Purpose) -> Vec<Reading<'a>> {
        let asked = |message| Reading {
            message,
            source: Source::Asked,
            changed: Vec::new(),
        };
        let (messages, span) = match purpose {
            Purpose::Round => return self.readings(),
            Purpose::Summary(ask) => (self.summary_messages(ask), Some(ask.span)),
            Purpose::Combine(ask) => (self.combine_messages(ask), None),
            Purpose::Repair { response, error } => {
                let mut readings = self.readings();
                readings.extend(self.unread(*response).map(asked));
                let text = Cow::Borrowed(error.as_str());
                readings.push(asked(Message::User { text }));
                return readings;
            }
        };
        // What was said: the task, unless it is within the span, then what is.
        let outside = |task: &EntryId| span.is_some_and(|span| !span.contains(*task));
        let task = self.working.task.filter(outside).into_iter();
        let within = span.map(|span| self.items.within(span)).into_iter();
        let within = within.flatten().filter_map(|item| self.items.get(item));
        let said = task.chain(within.map(|item| item.entry));
        let mut said = said
            .filter_map(|entry| Some((entry, self.raw_user(entry)?)))
            .peekable();
        let readings = messages.into_iter().map(|message| Reading {
            source: match &message {
                Message::Tool { call, .. } => Source::Result(*call),
                Message::Assistant { calls, .. } => {
                    let call = calls.first();
                    call.map_or(Source::Asked, |call| Source::Entry(call.id.response))
                }
                Message::User { .. } => {
                    let entry = said.next_if(|(_, said)| *said == message);
                    entry.map_or(Source::Asked, |(entry, _)| Source::Entry(entry))
                }
            },
            ..asked(message)
        });
        readings.collect()
    }
}
