//! Which summary each item reads in.
//!
//! Summaries cover ranges of items, and of those that cover an item the newest wins it. What is
//! kept is not a mark on each item but the ranges that are won, a few of them however long the run:
//! laying a summary costs the ranges it replaces, and looking costs a search among them.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::id::EntryId;

/// The summaries that are not retracted, and the ranges of items that each wins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Bands {
    /// Every summary: the items it covers, and whether there is anything to show again.
    laid: BTreeMap<EntryId, Laid>,
    /// Ranges that do not meet, by their first item: their end, and the summary that wins them.
    won: BTreeMap<usize, (usize, EntryId)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Laid {
    items: Range<usize>,
    carries: bool,
}

impl Bands {
    /// Lays a summary, newer than all before, over these items.
    pub(super) fn lay(&mut self, summary: EntryId, items: Range<usize>, carries: bool) {
        self.win(summary, items.clone());
        self.laid.insert(summary, Laid { items, carries });
    }

    /// Takes a summary away and returns the items it covered; `None` if it does not stand.
    pub(super) fn retract(&mut self, summary: EntryId) -> Option<Range<usize>> {
        let Laid { items, .. } = self.laid.remove(&summary)?;
        self.clear(&items);
        // Those that remain win in the order they were laid, each over what it covers here.
        let meeting = self.laid.iter().map(|(id, laid)| {
            let from = laid.items.start.max(items.start);
            (*id, from..laid.items.end.min(items.end).max(from))
        });
        for (id, range) in meeting.collect::<Vec<_>>() {
            self.win(id, range);
        }
        Some(items)
    }

    fn win(&mut self, summary: EntryId, items: Range<usize>) {
        self.clear(&items);
        if !items.is_empty() {
            self.won.insert(items.start, (items.end, summary));
        }
    }

    /// Takes these items from whoever won them.
    fn clear(&mut self, items: &Range<usize>) {
        if items.is_empty() {
            return;
        }
        let meeting = self.won.range(..items.end).rev();
        let meeting = meeting.take_while(|(_, (end, _))| *end > items.start);
        let meeting: Vec<_> = meeting
            .map(|(start, (end, id))| (*start, *end, *id))
            .collect();
        for (start, end, id) in meeting {
            self.won.remove(&start);
            if start < items.start {
                self.won.insert(start, (items.start, id));
            }
            if end > items.end {
                self.won.insert(items.end, (end, id));
            }
        }
    }

    /// The summary that wins an item, if any covers it.
    pub(super) fn winner(&self, item: usize) -> Option<EntryId> {
        let (_, (end, summary)) = self.won.range(..=item).next_back()?;
        (item < *end).then_some(*summary)
    }

    /// Where each summary stands: the first item it wins. One that wins none stands nowhere.
    pub(super) fn places(&self) -> BTreeMap<EntryId, usize> {
        let mut places = BTreeMap::new();
        for (start, (_, summary)) in &self.won {
            places.entry(*summary).or_insert(*start);
        }
        places
    }

    /// Where a summary stands.
    pub(super) fn place(&self, summary: EntryId) -> Option<usize> {
        let won = self.won.iter().find(|(_, (_, id))| *id == summary);
        won.map(|(start, _)| *start)
    }

    /// Whether a summary stands at an item.
    pub(super) fn stands_at(&self, summary: EntryId, item: usize) -> bool {
        // Nearly all items are within a range, where none begins.
        let begins = self.won.get(&item).is_some_and(|(_, id)| *id == summary);
        begins && self.place(summary) == Some(item)
    }

    /// The first item that a summary covers, whoever wins it.
    pub(super) fn first(&self, summary: EntryId) -> Option<usize> {
        self.laid.get(&summary).map(|laid| laid.items.start)
    }

    /// Whether a summary has anything to show again.
    pub(super) fn carries(&self, summary: EntryId) -> bool {
        self.laid.get(&summary).is_some_and(|laid| laid.carries)
    }

    /// Every summary that is not retracted, oldest first.
    pub(super) fn all(&self) -> impl Iterator<Item = EntryId> {
        self.laid.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bands: &Bands, items: usize, expected: &str) {
        let mark = |item| {
            bands
                .winner(item)
                .map_or_else(|| "-".to_owned(), |id| id.to_string())
        };
        assert_eq!((0..items).map(mark).collect::<String>(), expected);
    }

    #[test]
    fn the_newest_summary_wins_and_a_retract_uncovers() {
        let mut bands = Bands::default();
        bands.lay(EntryId(1), 1..4, false);
        bands.lay(EntryId(2), 4..6, true);
        check(&bands, 7, "-11122-");
        bands.lay(EntryId(3), 2..5, false);
        check(&bands, 7, "-13332-");
        bands.lay(EntryId(4), 3..4, false);
        check(&bands, 7, "-13432-");
        assert_eq!(bands.place(EntryId(3)), Some(2));
        // It wins two ranges, and stands where the first begins.
        let stands = (0..7).filter(|item| bands.stands_at(EntryId(3), *item));
        assert_eq!(stands.collect::<Vec<_>>(), [2]);
        assert_eq!(bands.retract(EntryId(3)), Some(2..5));
        check(&bands, 7, "-11422-");
        assert_eq!(bands.retract(EntryId(3)), None);
        bands.lay(EntryId(5), 0..7, false);
        check(&bands, 7, "5555555");
        assert_eq!(bands.places(), BTreeMap::from([(EntryId(5), 0)]));
        assert_eq!(bands.place(EntryId(1)), None);
        bands.lay(EntryId(6), 3..3, false);
        assert_eq!(bands.retract(EntryId(5)), Some(0..7));
        check(&bands, 7, "-11422-");
    }
}
