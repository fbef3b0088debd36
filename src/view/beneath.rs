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

    /// The messages of a request that is not for a round, each with what it comes from as far as it
    /// says so.
    pub(crate) fn readings_for(&self, purpose: &Purpose) -> Vec<Reading<'_>> {
        let messages = match purpose {
            Purpose::Round => return self.readings(),
            Purpose::Summary(ask) => self.summary_messages(ask),
            Purpose::Combine(ask) => self.combine_messages(ask),
            Purpose::Repair { error, .. } => {
                let mut readings = self.readings();
                readings.push(Reading {
                    message: Message::User {
                        text: Cow::Owned(error.clone()),
                    },
                    source: Source::Asked,
                    changed: Vec::new(),
                });
                return readings;
            }
        };
        let readings = messages.into_iter().map(|message| Reading {
            source: match &message {
                Message::Tool { call, .. } => Source::Result(*call),
                Message::Assistant { calls, .. } => calls
                    .first()
                    .map_or(Source::Asked, |call| Source::Entry(call.id.response)),
                Message::User { .. } => Source::Asked,
            },
            message,
            changed: Vec::new(),
        });
        readings.collect()
    }
}
