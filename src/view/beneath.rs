//! What reads under other layers than those that stand: the texts that overlays put in the place of
//! contents, and the replies that others correct.

use crate::id::{CallId, EntryId};
use crate::overlay::Form;
use crate::overlay::layers::Stubbed;
use crate::transcript::Purpose;
use crate::view::View;
use crate::view::readings::Reading;

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

    /// The messages of a request made now for this purpose, each with what it comes from.
    pub(crate) fn readings_for<'a>(&'a self, purpose: &'a Purpose) -> Vec<Reading<'a>> {
        match purpose {
            Purpose::Round => self.readings(),
            Purpose::Summary(_) | Purpose::Combine(_) | Purpose::Repair { .. } => {
                let asked = self.asked(purpose);
                asked.map(|(_, _, readings)| readings).unwrap_or_default()
            }
        }
    }
}
