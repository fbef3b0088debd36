//! Text that leaves line by line.

use std::borrow::Cow;

use crate::secret::{Masks, Shapes, masked};

/// The most lines that one private key is taken to have.
const LONGEST_KEY: u32 = 200;

/// Masks lines that come one by one: a private key that is written over several is masked whole.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// How many lines more may belong to a key that has begun.
    inside: u32,
}

impl Lines {
    /// The next line, or several, as it may be shown.
    pub fn next<'a>(&mut self, masks: &Masks, text: &'a str) -> Cow<'a, str> {
        if masks.shapes == Shapes::Shown {
            return masks.text(text);
        }
        if self.inside > 0 {
            self.inside -= 1;
            if let Some(at) = text.find("-----END ") {
                self.inside = 0;
                let rest = text[at + 9..]
                    .find("-----")
                    .map_or("", |end| &text[at + end + 14..]);
                return Cow::Owned(masks.text(rest).into_owned());
            }
            if masked::is_of_key(text) {
                return Cow::Borrowed("…");
            }
            self.inside = 0;
        }
        if masked::ends_in_key(text) {
            self.inside = LONGEST_KEY;
        }
        masks.text(text)
    }
}
