//! The view: everything derived from the entries, kept up to date one entry at a time.

use std::sync::Arc;

use crate::transcript::{Entry, Transcript};

/// The fold of the entries.
#[derive(Clone, Debug, Default)]
pub struct View {
    transcript: Transcript,
}

impl View {
    /// Takes the next entry in.
    pub fn take(&mut self, entry: Arc<Entry>) {
        self.transcript.append(entry);
    }

    /// The entries themselves.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }
}
