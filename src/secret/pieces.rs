//! Text that leaves in pieces, cut anywhere.

use crate::secret::{Masks, masked};

/// The most that is held back, in bytes.
const HELD: usize = 16 << 10;

/// What stays of a line that is longer: what the next word is judged by.
const AHEAD: usize = 2 << 10;

/// What stays of a word without end, as a secret may begin in it: more than any has but for keys.
const TAIL: usize = 1 << 10;

/// Masks a text that comes in pieces. The end of what came is held back as long as it may be the
/// beginning of a secret: a word that goes on, a key that is not at its end.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    /// What came of the line that goes on; of a long one, its end.
    line: String,
    /// How much of it was given out, in bytes, and as it was shown.
    safe: usize,
    given: String,
}

impl Pieces {
    /// Takes the next piece, and gives out what may be shown so far.
    pub fn take(&mut self, masks: &Masks, piece: &str) -> String {
        if masks.is_none() {
            return piece.to_owned();
        }
        self.line.push_str(piece);
        let is_long = self.line.len() > HELD;
        // Without the end of a word there is nothing new to give out.
        if !is_long && !piece.contains(char::is_whitespace) {
            return String::new();
        }
        if masked::ends_in_key(&self.line) {
            return if is_long {
                self.pass_key(masks)
            } else {
                String::new()
            };
        }
        let behind = |(at, space): (usize, &str)| at + space.len();
        let word = self.line.rmatch_indices(char::is_whitespace).next();
        let mut safe = word.map_or(0, behind);
        if is_long && safe < self.line.len() - HELD / 2 {
            safe = self.within_word();
        }
        let out = self.give(masks, safe);
        if let Some((at, _)) = self.line.rmatch_indices('\n').next() {
            // What follows stands in another line.
            self.forget(masks, at + 1);
        }
        if self.line.len() > HELD / 2 && is_long {
            self.forget(masks, self.begins_before(self.safe.saturating_sub(AHEAD)));
        }
        out
    }

    /// The rest.
    pub fn finish(&mut self, masks: &Masks) -> String {
        let out = self.give(masks, self.line.len());
        *self = Self::default();
        out
    }

    /// Gives out the beginning of the line up to here, but for what was given out before.
    fn give(&mut self, masks: &Masks, end: usize) -> String {
        let end = end.max(self.safe);
        let shown = masks.text(&self.line[..end]).into_owned();
        let same = shown
            .char_indices()
            .zip(self.given.chars())
            .take_while(|((_, a), b)| a == b)
            .last()
            .map_or(0, |((at, c), _)| at + c.len_utf8());
        let new = shown[same..].to_owned();
        self.given = shown;
        self.safe = end;
        new
    }

    /// Lets the line begin here, as far as that was given out.
    fn forget(&mut self, masks: &Masks, begin: usize) {
        let begin = begin.min(self.safe);
        self.line.drain(..begin);
        self.safe -= begin;
        self.given = masks.text(&self.line[..self.safe]).into_owned();
    }

    /// The place up to which a word without end can be given out: behind a sign that no secret holds,
    /// if it holds one, and never so near to the end that a secret may go on there.
    fn within_word(&self) -> usize {
        let end = floor(&self.line, self.line.len() - TAIL);
        let from = floor(&self.line, self.line.len() - HELD / 2);
        let sign = self.line[from..end].rfind(['"', '\'', ',', ';', '{', '}', '(', ')', '<', '>']);
        sign.map_or(end, |at| from + at + 1)
    }

    /// The last place before this one where a word begins, or this one if none does near by.
    fn begins_before(&self, place: usize) -> usize {
        let place = floor(&self.line, place);
        let from = floor(&self.line, place.saturating_sub(TAIL));
        let blank = self.line[from..place].rfind([' ', '\t']);
        blank.map_or(place, |at| from + at + 1)
    }

    /// Gives out that a key stands here, and goes on with its first line and its last characters.
    fn pass_key(&mut self, masks: &Masks) -> String {
        let out = self.give(masks, self.line.len());
        let begin = self.line.rfind("-----BEGIN ").unwrap_or(0);
        let head = self.line[begin + 11.min(self.line.len() - begin)..].find("-----");
        let head = head.map_or(self.line.len(), |at| begin + 11 + at + 5);
        let tail = floor(&self.line, self.line.len() - 64).max(head);
        self.line = format!("{}{}", &self.line[begin..head], &self.line[tail..]);
        self.safe = self.line.len();
        self.given = masks.text(&self.line).into_owned();
        out
    }
}

/// The last place between characters that is not behind this one.
fn floor(text: &str, place: usize) -> usize {
    (0..=place)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}
