//! Text that leaves in pieces, cut anywhere.

use crate::secret::{Masks, masked};

/// The most that is held back, in bytes.
const HELD: usize = 16 << 10;

/// Masks a text that comes in pieces. The end of what came is held back as long as it may be the
/// beginning of a secret: a word that goes on, a key that is not at its end.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    /// What came of the line that goes on.
    line: String,
    /// How much of it was given out, as it was shown.
    given: String,
}

impl Pieces {
    /// Takes the next piece, and gives out what may be shown so far.
    pub fn take(&mut self, masks: &Masks, piece: &str) -> String {
        if masks.is_none() {
            return piece.to_owned();
        }
        self.line.push_str(piece);
        if self.line.len() > HELD {
            return self.finish(masks);
        }
        // Without the end of a word there is nothing new to give out.
        if !piece.contains(char::is_whitespace) || masked::ends_in_key(&self.line) {
            return String::new();
        }
        let behind = |(at, space): (usize, &str)| at + space.len();
        let word = self.line.rmatch_indices(char::is_whitespace).next();
        let safe = word.map_or(0, behind);
        let out = self.give(masks, safe);
        if let Some((at, _)) = self.line.rmatch_indices('\n').next() {
            // What follows stands in another line.
            self.line.drain(..=at);
            self.given = masks.text(&self.line[..safe - at - 1]).into_owned();
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
        let shown = masks.text(&self.line[..end]).into_owned();
        let same = shown
            .char_indices()
            .zip(self.given.chars())
            .take_while(|((_, a), b)| a == b)
            .last()
            .map_or(0, |((at, c), _)| at + c.len_utf8());
        let new = shown[same..].to_owned();
        self.given = shown;
        new
    }
}
