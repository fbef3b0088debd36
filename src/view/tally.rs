//! A count that is kept while the view is only looked at.

use std::sync::atomic::{AtomicU64, Ordering};

/// What functions did that change nothing: bytes rendered, things looked at.
#[derive(Debug, Default)]
pub(super) struct Tally(AtomicU64);

impl Tally {
    pub(super) fn add(&self, count: usize) {
        self.0.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clone for Tally {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.get()))
    }
}
