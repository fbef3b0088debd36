//! Neighbouring entries, to be looked at one by one.

use std::sync::Arc;

use crate::transcript::{Entry, Transcript};

/// Neighbouring entries of a transcript, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    transcript: &'a Transcript,
    from: usize,
    to: usize,
}

impl<'a> Entries<'a> {
    pub(super) fn new(transcript: &'a Transcript, from: usize, to: usize) -> Self {
        Self {
            transcript,
            from,
            to: to.max(from),
        }
    }

    /// The number of entries.
    pub fn len(self) -> usize {
        self.to - self.from
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.from == self.to
    }

    /// The first one.
    pub fn first(self) -> Option<&'a Arc<Entry>> {
        self.iter().next()
    }

    /// The last one.
    pub fn last(self) -> Option<&'a Arc<Entry>> {
        self.iter().next_back()
    }

    /// The entries in order.
    pub fn iter(self) -> Iter<'a> {
        Iter(self)
    }

    /// The entries in order, of which those that were let go are not held for having been asked for: a
    /// walk through a long run takes little memory.
    pub fn passing(self) -> impl DoubleEndedIterator<Item = Arc<Entry>> {
        let places = self.from..self.to;
        places.filter_map(move |place| self.transcript.pass(place))
    }

    /// All of them.
    pub fn to_vec(self) -> Vec<Arc<Entry>> {
        self.iter().cloned().collect()
    }
}

impl<'a> IntoIterator for Entries<'a> {
    type Item = &'a Arc<Entry>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The entries of a transcript, one by one.
#[derive(Clone, Debug)]
pub struct Iter<'a>(Entries<'a>);

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Arc<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = &mut self.0;
        while left.from < left.to {
            let place = left.from;
            left.from += 1;
            if let Some(entry) = left.transcript.at(place) {
                return Some(entry);
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.0.len()))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let left = &mut self.0;
        while left.from < left.to {
            left.to -= 1;
            if let Some(entry) = left.transcript.at(left.to) {
                return Some(entry);
            }
        }
        None
    }
}
