//! The texts of a page: each stands once and is named by its number; long ones are cut to a bound.

use std::collections::HashMap;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeTuple as _, Serializer};

/// The most bytes of one text that a page holds, however much room there is.
const LONGEST: usize = 1 << 20;

/// The shortest that texts are cut to, in bytes: what is shorter is never cut.
const SHORTEST: usize = 256;

/// All texts so far. What was handed out is only remembered by its number.
#[derive(Debug, Default)]
pub(super) struct Texts {
    numbers: HashMap<Arc<str>, usize>,
    new: Vec<Text>,
}

impl Texts {
    /// The number of a text.
    pub(super) fn number(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.numbers.len();
        let whole: Arc<str> = Arc::from(text);
        self.numbers.insert(Arc::clone(&whole), number);
        self.new.push(Text {
            whole,
            bound: LONGEST,
        });
        number
    }

    /// The texts that were not handed out yet.
    pub(super) fn take(&mut self) -> Vec<Text> {
        std::mem::take(&mut self.new)
    }
}

/// A text, and how many bytes of it are written.
#[derive(Clone, Debug)]
pub(super) struct Text {
    whole: Arc<str>,
    bound: usize,
}

impl Text {
    /// Whether a part of it is left out.
    pub(super) fn is_cut(&self) -> bool {
        self.whole.len() > self.bound
    }

    fn bytes(&self) -> usize {
        self.whole.len().min(self.bound)
    }

    /// Its beginning and its end, and how many characters between them are left out.
    fn parts(&self) -> Option<(&str, &str, usize)> {
        if !self.is_cut() {
            return None;
        }
        let is_boundary = |at: &usize| self.whole.is_char_boundary(*at);
        let head = (0..=self.bound / 3 * 2).rev().find(is_boundary)?;
        let tail = self.whole.len() - self.bound / 3;
        let tail = (tail..=self.whole.len()).find(is_boundary)?;
        let (begin, end) = (self.whole.get(..head)?, self.whole.get(tail..)?);
        let between = self.whole.get(head..tail)?;
        Some((begin, end, between.chars().count()))
    }
}

/// A string, or where it is cut `[beginning, end, characters left out between them]`.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some((begin, end, left_out)) = self.parts() else {
            return serializer.serialize_str(&self.whole);
        };
        let mut parts = serializer.serialize_tuple(3)?;
        parts.serialize_element(begin)?;
        parts.serialize_element(end)?;
        parts.serialize_element(&left_out)?;
        parts.end()
    }
}

/// Cuts the longest texts until all together have at most so many bytes, or none is long.
pub(super) fn cut(texts: &mut [Text], most: usize) {
    let total = |bound: usize| -> usize {
        let bytes = texts.iter().map(|text| text.bytes().min(bound));
        bytes.fold(0, usize::saturating_add)
    };
    let (mut low, mut high) = (SHORTEST, LONGEST);
    if total(high) <= most {
        return;
    }
    while low + 1 < high {
        let middle = low.midpoint(high);
        if total(middle) <= most {
            low = middle;
        } else {
            high = middle;
        }
    }
    for text in texts {
        text.bound = low;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lengths: &[usize], most: usize, expected: &[usize]) {
        let mut texts = Texts::default();
        for (place, length) in lengths.iter().enumerate() {
            let mut text = place.to_string();
            text.push_str(&"é".repeat((length - text.len()) / 2));
            texts.number(&text);
        }
        let mut new = texts.take();
        cut(&mut new, most);
        let written = new.iter().map(|text| {
            let Some((begin, end, left_out)) = text.parts() else {
                return text.whole.len();
            };
            let kept = begin.chars().count() + end.chars().count();
            assert_eq!(kept + left_out, text.whole.chars().count());
            begin.len() + end.len()
        });
        assert_eq!(written.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_longest_are_cut_first_and_short_ones_never() {
        check(&[11, 2001, 9001], 20_000, &[11, 2001, 9001]);
        check(&[11, 2001, 9001], 6_000, &[11, 2001, 3985]);
        check(&[11, 2001, 9001], 0, &[11, 255, 255]);
    }

    #[test]
    fn a_text_has_one_number() {
        let mut texts = Texts::default();
        assert_eq!(["a", "b", "a"].map(|text| texts.number(text)), [0, 1, 0]);
        assert_eq!(texts.take().len(), 2);
        assert_eq!(["b", "c"].map(|text| texts.number(text)), [1, 2]);
        assert_eq!(texts.take().len(), 1);
    }
}
