//! The newest call of each tool with each arguments: a map that grows with the run, cheap to copy.
//!
//! What came from an index is a sorted list whose blocks stay packed until they are looked at; what
//! came since is a plain map above it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{CallId, Digest, EntryId};
use crate::transcript::sequence::Sequence;

/// Calls by what they do.
#[derive(Clone, Debug, Default)]
pub(super) struct Newest {
    indexed: Sequence<Known>,
    since: Arc<HashMap<u64, CallId, BuildHasherDefault<Spread>>>,
}

/// Hashes a key as itself: it is of a digest already, and spread as well as can be.
#[derive(Clone, Copy, Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let add = |sum: u64, byte: &u8| sum.rotate_left(8) ^ u64::from(*byte);
        self.0 = bytes.iter().fold(self.0, add);
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// The newest call that does one thing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Known {
    key: u64,
    response: EntryId,
    place: u32,
}

impl Known {
    fn call(self) -> CallId {
        CallId::new(self.response, self.place)
    }
}

impl Newest {
    /// Takes a call in and returns the one before it that did the same.
    pub(super) fn insert(&mut self, does: Digest, call: CallId) -> Option<CallId> {
        let key = key(does);
        let before = Arc::make_mut(&mut self.since).insert(key, call);
        before.or_else(|| {
            let place = self.indexed.partition_point(|known| known.key < key);
            let known = self.indexed.get(place).filter(|known| known.key == key);
            known.map(|known| known.call())
        })
    }

    /// The same as one sorted list.
    pub(super) fn sorted(&self) -> Sequence<Known> {
        if self.since.is_empty() {
            return self.indexed.clone();
        }
        let indexed = self.indexed.stretch(0..self.indexed.len());
        let old = indexed
            .iter()
            .filter(|it| !self.since.contains_key(&it.key));
        let new = self.since.iter().map(|(key, call)| Known {
            key: *key,
            response: call.response,
            place: call.place,
        });
        let mut all: Vec<Known> = old.copied().chain(new).collect();
        all.sort_unstable_by_key(|known| known.key);
        let mut sorted = Sequence::default();
        for known in all {
            sorted.push(known);
        }
        sorted
    }

    /// What such a list says.
    pub(super) fn of(indexed: Sequence<Known>) -> Self {
        let since = Arc::default();
        Self { indexed, since }
    }
}

/// The beginning of a digest, which no two of a run's calls are likely to share.
fn key(digest: Digest) -> u64 {
    let begins = digest.0.first_chunk();
    begins.map_or(0, |begins| u64::from_be_bytes(*begins))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_call_is_known_whether_it_was_indexed_or_not() {
        let does = |number: u32| Digest::of(&number.to_be_bytes());
        let call = |number: u64| CallId::new(EntryId(number), 1);
        let mut newest = Newest::default();
        for number in 0..1000 {
            assert_eq!(newest.insert(does(number), call(number.into())), None);
        }
        let mut newest = Newest::of(newest.sorted());
        for number in (0..1100).step_by(100) {
            let known = (number < 1000).then(|| call(number.into()));
            assert_eq!(newest.insert(does(number), call(2000)), known);
            assert_eq!(newest.insert(does(number), call(3000)), Some(call(2000)));
        }
        let mut again = Newest::of(newest.sorted());
        assert_eq!(again.indexed.len(), 1001);
        assert_eq!(again.insert(does(100), call(4000)), Some(call(3000)));
        assert_eq!(again.insert(does(101), call(4000)), Some(call(101)));
    }
}
