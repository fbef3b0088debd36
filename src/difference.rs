//! What differs between two lists, and which words are most like another.
//!
//! Whatever is compared becomes numbers first, so that what finds the difference is compiled once,
//! and not for every kind of text and every algorithm there is.

use std::collections::HashMap;
use std::hash::Hash;

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};

/// What makes the one list of the other.
pub fn operations<T: Eq + Hash>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    let mut numbers = HashMap::new();
    let mut numbered = Vec::with_capacity(old.len() + new.len());
    for item in old.iter().chain(new) {
        let next = numbers.len();
        numbered.push(*numbers.entry(item).or_insert(next));
    }
    let (old, new) = numbered.split_at(old.len());
    between(old, new)
}

fn between(old: &[usize], new: &[usize]) -> Vec<DiffOp> {
    let mut found = Compact::new(Replace::new(Capture::new()), old, new);
    let (all_old, all_new) = (0..old.len(), 0..new.len());
    let Ok(()) = myers::diff(&mut found, old, all_old, new, all_new);
    found.into_inner().into_inner().into_ops()
}

/// The words most like this one, the likest first, at most so many: each has at least this part of
/// its letters in common with it.
pub fn close<'a>(word: &str, words: &[&'a str], most: usize, least: f32) -> Vec<&'a str> {
    let letters: Vec<usize> = word.chars().map(|letter| letter as usize).collect();
    let sorted = in_order(&letters);
    let mut close = Vec::new();
    for &other in words {
        let others: Vec<usize> = other.chars().map(|letter| letter as usize).collect();
        let all = letters.len() + others.len();
        // No more can be in common than letters that both have, wherever they stand.
        if part(letters.len().min(others.len()), all) < least
            || part(common(&sorted, &in_order(&others)), all) < least
        {
            continue;
        }
        let same = between(&letters, &others)
            .iter()
            .map(|operation| match operation {
                DiffOp::Equal { len, .. } => *len,
                DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => 0,
            })
            .sum();
        let likeness = part(same, all);
        if likeness >= least {
            close.push((likeness, other));
        }
    }
    close.sort_unstable_by(|(one, word), (other, than)| {
        other.total_cmp(one).then_with(|| word.cmp(than))
    });
    close.into_iter().map(|(_, word)| word).take(most).collect()
}

/// How much of two words is the same, if so many of all their letters are in both.
#[expect(clippy::cast_precision_loss, reason = "words are short")]
fn part(same: usize, all: usize) -> f32 {
    if all == 0 {
        1.0
    } else {
        2.0 * same as f32 / all as f32
    }
}

fn in_order(letters: &[usize]) -> Vec<usize> {
    let mut sorted = letters.to_vec();
    sorted.sort_unstable();
    sorted
}

/// How many letters are in both, which are in order.
fn common(one: &[usize], other: &[usize]) -> usize {
    let mut rest = other.iter().peekable();
    let mut common = 0;
    for letter in one {
        while rest.next_if(|other| *other < letter).is_some() {}
        common += usize::from(rest.next_if_eq(&letter).is_some());
    }
    common
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use similar::{Algorithm, capture_diff_slices, get_close_matches};

    use super::*;

    proptest! {
        #[test]
        fn numbers_differ_as_what_they_stand_for(
            old in prop::collection::vec("[a-d]{1,2}", 0..150),
            new in prop::collection::vec("[a-d]{1,2}", 0..150),
        ) {
            let expected = capture_diff_slices(Algorithm::Myers, &old, &new);
            prop_assert_eq!(operations(&old, &new), expected);
        }

        #[test]
        fn close_words_are_those_that_were(
            word in "[a-eä]{0,8}",
            words in prop::collection::vec("[a-eä]{0,8}", 0..12),
            most in 0_usize..4,
            least in prop::sample::select(vec![0.0_f32, 0.5, 0.6, 0.7, 1.0]),
        ) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let expected = get_close_matches(word.as_str(), &words, most, least);
            prop_assert_eq!(close(&word, &words, most, least), expected);
        }
    }
}
