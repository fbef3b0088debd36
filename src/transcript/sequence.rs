//! A long list that grows at its end and is cheap to copy.
//!
//! Its items stand in blocks that copies share: copying costs a count a block, and changing an item
//! copies its block if another copy has it too. So a view of a million entries can be copied for
//! every plan that is tried.

use std::ops::{Index, Range};
use std::sync::Arc;

/// The number of items in a block.
const BLOCK: usize = 256;

/// The list.
#[derive(Clone, Debug)]
pub(crate) struct Sequence<T> {
    /// All but the last one are full.
    blocks: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for Sequence<T> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Sequence<T> {
    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The item at a place.
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        self.blocks.get(place / BLOCK)?.get(place % BLOCK)
    }

    /// The last item.
    pub(crate) fn last(&self) -> Option<&T> {
        self.blocks.last()?.last()
    }

    /// The first place whose item does not fulfil `before`, which none behind it may do either.
    pub(crate) fn partition_point(&self, mut before: impl FnMut(&T) -> bool) -> usize {
        // No block is empty.
        let block = self
            .blocks
            .partition_point(|block| block.last().is_some_and(&mut before));
        match self.blocks.get(block) {
            Some(within) => block * BLOCK + within.partition_point(before),
            None => self.len,
        }
    }

    /// The items at these places, as far as there are any.
    pub(crate) fn stretch(&self, places: Range<usize>) -> Stretch<'_, T> {
        let to = places.end.min(self.len);
        let from = places.start.min(to);
        let sequence = self;
        Stretch { sequence, from, to }
    }
}

impl<T: Clone> Sequence<T> {
    /// Appends an item.
    pub(crate) fn push(&mut self, item: T) {
        match self.blocks.last_mut() {
            Some(block) if block.len() < BLOCK => Arc::make_mut(block).push(item),
            _ => self.blocks.push(Arc::new(vec![item])),
        }
        self.len += 1;
    }

    /// The item at a place, to be changed.
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        Arc::make_mut(self.blocks.get_mut(place / BLOCK)?).get_mut(place % BLOCK)
    }

    /// The last item, to be changed.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        Arc::make_mut(self.blocks.last_mut()?).last_mut()
    }
}

/// Neighbouring items of a long list.
#[derive(Debug)]
pub struct Stretch<'a, T> {
    sequence: &'a Sequence<T>,
    from: usize,
    to: usize,
}

impl<T> Clone for Stretch<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Stretch<'_, T> {}

impl<'a, T> Stretch<'a, T> {
    /// The number of items.
    pub fn len(self) -> usize {
        self.to - self.from
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.from == self.to
    }

    /// The item at a place, from 0.
    pub fn get(self, place: usize) -> Option<&'a T> {
        let place = self.from.checked_add(place)?;
        self.sequence.get(place).filter(|_| place < self.to)
    }

    /// The first one.
    pub fn first(self) -> Option<&'a T> {
        self.get(0)
    }

    /// The last one.
    pub fn last(self) -> Option<&'a T> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The items in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = &'a T> + ExactSizeIterator + Clone {
        // There is one at each place, so none is made up.
        let sequence = self.sequence;
        (self.from..self.to).map(move |place| &sequence[place])
    }

    /// Copies of the items.
    pub fn to_vec(self) -> Vec<T>
    where
        T: Clone,
    {
        self.iter().cloned().collect()
    }
}

impl<T> Index<usize> for Sequence<T> {
    type Output = T;

    fn index(&self, place: usize) -> &T {
        &self.blocks[place / BLOCK][place % BLOCK]
    }
}

impl<T> Index<usize> for Stretch<'_, T> {
    type Output = T;

    fn index(&self, place: usize) -> &T {
        &self.sequence[self.from + place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shares_what_it_does_not_change() {
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
            let mut sequence = Sequence::default();
            (0..len).for_each(|item| sequence.push(item));
            let mut copy = sequence.clone();
            if let Some(item) = copy.get_mut(len / 2) {
                *item += 1000;
            }
            copy.push(len);
            let expected: Vec<usize> = (0..len).collect();
            assert_eq!(sequence.stretch(0..len).to_vec(), expected);
            assert_eq!(
                (sequence.len(), copy.len(), copy.last()),
                (len, len + 1, Some(&len))
            );
            let shared = |(one, other): (&Arc<_>, &Arc<_>)| Arc::ptr_eq(one, other);
            let kept = sequence.blocks.iter().zip(&copy.blocks);
            // The block that was changed, and the one that was appended to.
            assert!(kept.filter(|pair| !shared(*pair)).count() <= 2);
        }
    }

    #[test]
    fn places_are_found_and_stretches_end_where_the_list_does() {
        let mut sequence = Sequence::default();
        (0..=2 * BLOCK).for_each(|item| sequence.push(2 * item));
        for (bound, place) in [
            (0, 0),
            (1, 1),
            (2 * BLOCK - 1, BLOCK),
            (2 * BLOCK, BLOCK),
            (2 * BLOCK + 1, BLOCK + 1),
            (9 * BLOCK, 2 * BLOCK + 1),
        ] {
            assert_eq!(
                sequence.partition_point(|item| *item < bound),
                place,
                "{bound}"
            );
        }
        let all = sequence.stretch(3..9 * BLOCK);
        assert_eq!((all.first(), all.last()), (Some(&6), Some(&(4 * BLOCK))));
        assert_eq!((all.len(), all.get(all.len())), (2 * BLOCK - 2, None));
        assert!(all.iter().rev().is_sorted_by(|one, other| one > other));
        assert_eq!(all[1], 8);
    }
}
