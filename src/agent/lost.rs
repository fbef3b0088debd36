//! What becomes of the process in which tools run, and of what they leave behind.

use crate::agent::{Agent, AgentError};
use crate::id::EntryId;
use crate::record::Recorder;
use crate::transcript::{Event, Note};
use crate::view::View;

impl Agent {
    /// Records what became of that process since it was last looked at; whether there is none any
    /// more.
    pub(super) fn without_hands(&self, recorder: &mut Recorder) -> Result<bool, AgentError> {
        let Some(hands) = &self.hands else {
            return Ok(false);
        };
        for text in hands.remarks() {
            tracing::warn!("{text}");
            self.record(recorder, Event::Note(Note::Warning { text }))?;
        }
        Ok(hands.are_lost())
    }

    /// What the run leaves behind that acts later, outside the sandbox: a person is to know of it.
    pub(super) async fn left_behind(&self) -> Vec<String> {
        let Some(hands) = self.hands.as_ref().filter(|hands| !hands.are_lost()) else {
            return Vec::new();
        };
        let lines = hands.left().await;
        for text in &lines {
            tracing::warn!("{text}");
        }
        lines
    }
}

/// What became of it, for whoever wants to know why the run ended.
pub(super) fn what(view: &View) -> String {
    let entries = view.transcript().from(EntryId(1)).iter().rev();
    let mut warnings = entries.filter_map(|entry| {
        if let Event::Note(Note::Warning { text }) = &entry.event {
            Some(text.as_str())
        } else {
            None
        }
    });
    let newest = warnings.next().unwrap_or("the process for tools died");
    format!("{newest}; resume to go on")
}
