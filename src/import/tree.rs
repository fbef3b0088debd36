//! Recordings whose entries name the one before them: a person who goes back and says something else
//! makes another branch, and what is sent is the one that ends last.

use std::collections::HashMap;

/// Entries, each behind another or at a root.
#[derive(Debug, Default)]
pub(super) struct Tree {
    ids: HashMap<String, usize>,
    /// The entry before each, and the root each stands on.
    before: Vec<(Option<usize>, usize)>,
}

impl Tree {
    /// Adds an entry behind the one with this id. What is behind nothing is a root; what is behind
    /// something that is not there, such as a line that was broken, is behind the entry added last.
    pub(super) fn add(&mut self, id: &str, before: Option<&str>) {
        let place = self.before.len();
        let before = before.and_then(|before| {
            let known = self.ids.get(before).copied();
            known.or(place.checked_sub(1))
        });
        let root = before.map_or(place, |before| self.before[before].1);
        self.before.push((before, root));
        if !id.is_empty() {
            self.ids.entry(id.to_owned()).or_insert(place);
        }
    }

    /// The id of nothing: an entry without one is behind the entry added last.
    pub(super) fn add_next(&mut self) {
        let before = self.before.len().checked_sub(1);
        let root = before.map_or(0, |before| self.before[before].1);
        self.before.push((before, root));
    }

    /// The root that an entry stands on.
    pub(super) fn root(&self, place: usize) -> usize {
        self.before[place].1
    }

    /// Marks an entry and all that stand before it.
    pub(super) fn mark(&self, leaf: usize, live: &mut [bool]) {
        let mut at = Some(leaf);
        while let Some(place) = at.filter(|place| !live[*place]) {
            live[place] = true;
            at = self.before[place].0;
        }
    }
}
