//! A long list that grows at its end and is cheap to copy.
//!
//! Its items stand in blocks that copies share: copying costs a count a block, and changing an item
//! copies its block if another copy has it too. So a view of a million entries can be copied for
//! every plan that is tried. A list that was kept in a file comes back with its blocks packed, each of
//! which is unpacked when one of its items is looked at.

use std::borrow::Cow;
use std::ops::{Index, Range};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The number of items in a block.
const BLOCK: usize = 256;

/// The list.
#[derive(Clone, Debug)]
pub(crate) struct Sequence<T> {
    /// All but the last one are full.
    blocks: Vec<Block<T>>,
    len: usize,
}

/// Neighbouring items. No block is empty.
#[derive(Debug)]
enum Block<T> {
    Items(Arc<Vec<T>>),
    Packed(Arc<Packed<T>>),
}

/// Items as bytes, and once they were looked at as themselves.
#[derive(Debug)]
struct Packed<T> {
    bytes: Box<[u8]>,
    items: OnceLock<Arc<Vec<T>>>,
    unpack: fn(&[u8]) -> Option<Vec<T>>,
}

/// Bytes that are not items of a list.
#[derive(Debug, thiserror::Error)]
#[error("not a block of a list")]
pub(crate) struct NotABlock;

impl<T> Clone for Block<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Items(items) => Self::Items(Arc::clone(items)),
            Self::Packed(packed) => Self::Packed(Arc::clone(packed)),
        }
    }
}

impl<T> Block<T> {
    fn items(&self) -> &Arc<Vec<T>> {
        match self {
            Self::Items(items) => items,
            Self::Packed(packed) => packed.items.get_or_init(|| {
                // They were unpacked once when they came in, so they can be.
                Arc::new((packed.unpack)(&packed.bytes).unwrap_or_default())
            }),
        }
    }
}

impl<T: Clone> Block<T> {
    /// The items, to be changed.
    fn items_mut(&mut self) -> Option<&mut Vec<T>> {
        if let Self::Packed(_) = self {
            *self = Self::Items(Arc::clone(self.items()));
        }
        match self {
            Self::Items(items) => Some(Arc::make_mut(items)),
            Self::Packed(_) => None,
        }
    }
}

impl<T: Serialize> Block<T> {
    fn pack(&self) -> Result<Cow<'_, [u8]>, postcard::Error> {
        match self {
            Self::Items(items) => postcard::to_allocvec(&**items).map(Cow::Owned),
            Self::Packed(packed) => Ok(Cow::Borrowed(&packed.bytes)),
        }
    }
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
        self.blocks.get(place / BLOCK)?.items().get(place % BLOCK)
    }

    /// The last item.
    pub(crate) fn last(&self) -> Option<&T> {
        self.blocks.last()?.items().last()
    }

    /// The first place whose item does not fulfil `before`, which none behind it may do either.
    ///
    /// What is looked for is nearly always new, so that looking begins at the end: a search from the
    /// middle would touch blocks of a long list that nothing else has touched for long.
    pub(crate) fn partition_point(&self, mut before: impl FnMut(&T) -> bool) -> usize {
        let (mut from, mut to) = (0, self.len);
        let mut step = 1;
        while let Some(place) = self.len.checked_sub(step) {
            if before(&self[place]) {
                from = place + 1;
                break;
            }
            to = place;
            step *= 2;
        }
        while from < to {
            let middle = from + (to - from) / 2;
            if before(&self[middle]) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
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
        let room = self
            .blocks
            .last_mut()
            .filter(|_| !self.len.is_multiple_of(BLOCK));
        match room.and_then(Block::items_mut) {
            Some(items) => items.push(item),
            None => self.blocks.push(Block::Items(Arc::new(vec![item]))),
        }
        self.len += 1;
    }

    /// The item at a place, to be changed.
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let items = self.blocks.get_mut(place / BLOCK)?.items_mut()?;
        items.get_mut(place % BLOCK)
    }

    /// The last item, to be changed.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.blocks.last_mut()?.items_mut()?.last_mut()
    }
}

impl<T: Serialize> Sequence<T> {
    /// Its blocks as bytes, in order.
    pub(crate) fn pack(
        &self,
    ) -> impl ExactSizeIterator<Item = Result<Cow<'_, [u8]>, postcard::Error>> {
        self.blocks.iter().map(Block::pack)
    }
}

impl<T: DeserializeOwned> Sequence<T> {
    /// Appends a block that was packed. All before it must be full.
    pub(crate) fn push_packed(&mut self, bytes: Box<[u8]>) -> Result<(), NotABlock> {
        // Counted first, so that bytes that are no block take no memory.
        let counted = postcard::take_from_bytes::<usize>(&bytes).map_err(|_| NotABlock)?;
        if counted.0 > BLOCK {
            return Err(NotABlock);
        }
        let unpack = |bytes: &[u8]| postcard::from_bytes(bytes).ok();
        // Unpacked once now, so that it is known to be a block, and kept small until it is looked at.
        let items: Vec<T> = unpack(&bytes).ok_or(NotABlock)?;
        let count = items.len();
        if count == 0 || count > BLOCK || !self.len.is_multiple_of(BLOCK) {
            return Err(NotABlock);
        }
        let items = OnceLock::new();
        self.blocks.push(Block::Packed(Arc::new(Packed {
            bytes,
            items,
            unpack,
        })));
        self.len += count;
        Ok(())
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
        &self.blocks[place / BLOCK].items()[place % BLOCK]
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
            let shared =
                |(one, other): (&Block<_>, &Block<_>)| Arc::ptr_eq(one.items(), other.items());
            let kept = sequence.blocks.iter().zip(&copy.blocks);
            // The block that was changed, and the one that was appended to.
            assert!(kept.filter(|pair| !shared(*pair)).count() <= 2);
        }
    }

    #[test]
    fn a_place_near_the_end_is_found_with_few_looks() {
        for len in (0..70).chain([BLOCK, 5 * BLOCK - 1, 5 * BLOCK]) {
            let mut sequence = Sequence::default();
            (0..len).for_each(|item| sequence.push(item));
            for expected in 0..=len {
                let mut looks = 0;
                let found = sequence.partition_point(|item| {
                    looks += 1;
                    *item < expected
                });
                assert_eq!(found, expected);
                let away = (len - expected).max(1).ilog2();
                assert!(looks <= 2 * away + 2, "{looks} for {expected} of {len}");
            }
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

    #[test]
    fn a_packed_list_reads_and_changes_as_the_one_that_was_packed() {
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
            let mut sequence = Sequence::default();
            (0..len).for_each(|item| sequence.push(item));
            let mut packed: Sequence<usize> = Sequence::default();
            for block in sequence.pack() {
                packed.push_packed(block.unwrap().into()).unwrap();
            }
            let copy = packed.clone();
            for list in [&mut sequence, &mut packed] {
                if let Some(item) = list.get_mut(len / 2) {
                    *item += 1000;
                }
                list.push(len);
                if let Some(item) = list.last_mut() {
                    *item += 1;
                }
            }
            let all = |list: &Sequence<usize>| list.stretch(0..list.len()).to_vec();
            assert_eq!(all(&packed), all(&sequence));
            assert_eq!(all(&copy), (0..len).collect::<Vec<_>>());
            assert_eq!(packed.last(), sequence.last());
            // What was not changed is as it was.
            let unpacked = packed.blocks.iter();
            let unpacked = unpacked.filter(|block| matches!(block, Block::Items(_)));
            assert!(unpacked.count() <= 2);
        }
    }

    #[test]
    fn bytes_that_are_no_block_are_refused() {
        let mut list: Sequence<u8> = Sequence::default();
        let block = |items: &[u8]| Box::from(postcard::to_allocvec(items).unwrap());
        for wrong in [
            Box::default(),
            Box::from([5, 1, 2]),
            block(&[]),
            block(&[7; BLOCK + 1]),
        ] {
            assert!(list.push_packed(wrong).is_err());
        }
        list.push_packed(block(&[7; BLOCK])).unwrap();
        list.push_packed(block(&[7])).unwrap();
        assert!(list.push_packed(block(&[7])).is_err());
    }
}
