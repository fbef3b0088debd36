//! Who listens to what happens in an agent's runs.

use std::sync::{Mutex, PoisonError};

use futures::Stream;
use futures::channel::mpsc;

use crate::agent::{Progress, UNREAD};

/// The listeners of an agent. A clone of it has none.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Vec<mpsc::UnboundedSender<Progress>>>);

impl Clone for Listeners {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Listeners {
    /// One more, from now on.
    pub(super) fn add(&self) -> impl Stream<Item = Progress> + Send + use<> {
        let (sender, receiver) = mpsc::unbounded();
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sender);
        receiver
    }

    /// Tells them, and forgets those that are gone.
    pub(super) fn tell(&self, progress: impl Fn() -> Progress) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| {
            let progress = progress();
            // Entries are kept anyway; pieces would grow without bound.
            let is_missed = matches!(progress, Progress::Delta { .. }) && listener.len() >= UNREAD;
            if is_missed {
                !listener.is_closed()
            } else {
                listener.unbounded_send(progress).is_ok()
            }
        });
    }
}
