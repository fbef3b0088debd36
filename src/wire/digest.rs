//! A digest that goes on from the saved state of an unchanged prefix.

use sha2::{Digest as _, Sha256};

use crate::id::Digest;

/// After so many bytes, each time, the state is kept to go back to.
const STRIDE: usize = 16 << 10;

/// The state of a digest after a prefix of a growing body.
#[derive(Clone, Debug, Default)]
pub struct PrefixDigest {
    state: Sha256,
    bytes: usize,
    /// The states after one stride, after two, and so on.
    marks: Vec<Sha256>,
}

impl PrefixDigest {
    /// The number of bytes taken in.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes in what came after the prefix and returns how many bytes that were. A body shorter
    /// than the prefix must be [cut](Self::cut) first.
    pub fn extend(&mut self, body: &[u8]) -> usize {
        let new = body.get(self.bytes..).unwrap_or_default();
        let mut rest = new;
        while !rest.is_empty() {
            let room = STRIDE - self.bytes % STRIDE;
            let (part, behind) = rest.split_at(room.min(rest.len()));
            self.state.update(part);
            self.bytes += part.len();
            if part.len() == room {
                self.marks.push(self.state.clone());
            }
            rest = behind;
        }
        new.len()
    }

    /// Goes back to a prefix of at most so many bytes, since those behind are others now.
    pub fn cut(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.marks.truncate(bytes / STRIDE);
            self.state = self.marks.last().cloned().unwrap_or_default();
            self.bytes = self.marks.len() * STRIDE;
        }
    }

    /// The digest of the prefix followed by these bytes.
    pub fn finish<'a>(&self, behind: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut state = self.state.clone();
        behind.into_iter().for_each(|bytes| state.update(bytes));
        Digest(state.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_of_a_growing_body_is_the_digest_of_the_whole() {
        let mut digest = PrefixDigest::default();
        assert_eq!(digest.extend(b"ab"), 2);
        assert_eq!(digest.extend(b"abc"), 1);
        assert_eq!(digest.finish([&b"]"[..], b"}"]), Digest::of(b"abc]}"));
        assert_eq!(digest.bytes(), 3);
    }

    #[test]
    fn a_body_that_changes_behind_a_prefix_is_not_hashed_from_its_beginning() {
        let mut body = vec![b'a'; 5 * STRIDE + 7];
        let mut digest = PrefixDigest::default();
        assert_eq!(digest.extend(&body), body.len());
        // From where on it changes, and where hashing goes on.
        for (from, left) in [
            (body.len(), body.len()),
            (5 * STRIDE + 6, 5 * STRIDE),
            (5 * STRIDE, 5 * STRIDE),
            (5 * STRIDE - 1, 4 * STRIDE),
            (2 * STRIDE + 1, 2 * STRIDE),
            (STRIDE - 1, 0),
            (0, 0),
        ] {
            body[from..].fill(b'b');
            digest.cut(from);
            assert_eq!(digest.bytes(), left);
            assert_eq!(digest.extend(&body), body.len() - left);
            assert_eq!(digest.finish([]), Digest::of(&body));
        }
    }
}
