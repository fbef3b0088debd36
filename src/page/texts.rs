//! The texts of a page: each stands once and is named by its number; long ones are cut to a bound.

use std::collections::HashMap;

use serde::ser::{Serialize, SerializeTuple as _, Serializer};

use crate::id::Digest;
use crate::secret::Masks;

/// The most bytes of one text that a page holds, however much room there is.
const LONGEST: usize = 1 << 20;

/// The shortest that texts are cut to, in bytes: what is shorter is never cut.
const SHORTEST: usize = 256;

/// All texts so far. What was handed out is only remembered by its digest.
#[derive(Debug, Default)]
pub(super) struct Texts {
    numbers: HashMap<Digest, usize>,
    new: Vec<Text>,
    /// What is hidden in them.
    masks: Masks,
}

impl Texts {
    /// Texts behind these masks.
    pub(super) fn behind(masks: Masks) -> Self {
        Self {
            masks,
            ..Self::default()
        }
    }

    /// What is hidden in them.
    pub(super) fn masks(&self) -> &Masks {
        &self.masks
    }

    /// The number of a text, as it may be shown.
    pub(super) fn number(&mut self, text: &str) -> usize {
        let text = &*self.masks.document(text);
        let next = self.numbers.len();
        let new = &mut self.new;
        let digest = Digest::of(text.as_bytes());
        *self.numbers.entry(digest).or_insert_with(|| {
            new.push(Text::of(text));
            next
        })
    }

    /// The texts that were not handed out yet.
    pub(super) fn take(&mut self) -> Vec<Text> {
        std::mem::take(&mut self.new)
    }
}

/// A text, or its beginning and its end.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    begin: String,
    end: String,
    /// The characters between them.
    left_out: usize,
}

impl Text {
    fn of(text: &str) -> Self {
        let (begin, between, end) = parts(text, LONGEST);
        Self {
            begin: begin.to_owned(),
            end: end.to_owned(),
            left_out: between.chars().count(),
        }
    }

    /// Whether a part of it is left out.
    pub(super) fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    fn bytes(&self) -> usize {
        self.begin.len() + self.end.len()
    }

    /// Leaves out more, down to so many bytes.
    fn cut(&mut self, bound: usize) {
        if self.bytes() <= bound {
            return;
        }
        let both = std::mem::take(&mut self.begin) + &self.end;
        let (begin, between, end) = parts(&both, bound);
        self.left_out += between.chars().count();
        (self.begin, self.end) = (begin.to_owned(), end.to_owned());
    }
}

/// A text as its beginning, what is left out, and its end.
fn parts(text: &str, bound: usize) -> (&str, &str, &str) {
    if text.len() <= bound {
        return (text, "", "");
    }
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    let head = (0..=bound / 3 * 2).rev().find(is_boundary).unwrap_or(0);
    let tail = (text.len() - bound / 3..text.len()).find(is_boundary);
    let (begin, rest) = text.split_at(head);
    let (between, end) = rest.split_at(tail.unwrap_or(text.len()) - head);
    (begin, between, end)
}

/// A string, or where it is cut `[beginning, end, characters left out between them]`.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.is_cut() {
            return serializer.serialize_str(&self.begin);
        }
        let mut parts = serializer.serialize_tuple(3)?;
        parts.serialize_element(&self.begin)?;
        parts.serialize_element(&self.end)?;
        parts.serialize_element(&self.left_out)?;
        parts.end()
    }
}

/// Cuts the longest texts until all together have at most so many bytes, or none is long.
pub(super) fn cut(texts: &mut [Text], most: usize) {
    let total = |bound: usize| -> usize {
        let bytes = texts.iter().map(|text| text.bytes().min(bound));
        bytes.fold(0, usize::saturating_add)
    };
    if total(LONGEST) <= most {
        return;
    }
    let (mut low, mut high) = (SHORTEST, LONGEST);
    while low + 1 < high {
        let middle = low.midpoint(high);
        if total(middle) <= most {
            low = middle;
        } else {
            high = middle;
        }
    }
    for text in texts {
        text.cut(low);
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
        let written = new.iter().zip(lengths).map(|(text, length)| {
            let chars = |text: &str| text.chars().count();
            let kept = chars(&text.begin) + chars(&text.end);
            assert_eq!(kept + text.left_out, length / 2 + 1);
            text.bytes()
        });
        assert_eq!(written.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_longest_are_cut_first_and_short_ones_never() {
        check(&[11, 2001, 9001], 20_000, &[11, 2001, 9001]);
        check(&[11, 2001, 9001], 6_000, &[11, 2001, 3985]);
        check(&[11, 2001, 9001], 0, &[11, 253, 253]);
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
