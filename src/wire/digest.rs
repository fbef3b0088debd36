//! A digest that goes on from the saved state of an unchanged prefix.

use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use crate::id::Digest;

/// After so many bytes, each time, the state is kept to go back to.
const STRIDE: usize = 16 << 10;

/// The state of a digest after a prefix of a growing body.
#[derive(Clone, Debug, Default)]
pub struct PrefixDigest {
    taken: Taken,
    /// The same farther on, where a digest was asked for before the prefix was brought there.
    ahead: OnceLock<Box<Taken>>,
}

#[derive(Clone, Debug, Default)]
struct Taken {
    state: Sha256,
    bytes: usize,
    /// The states after one stride, after two, and so on. Of what was taken ahead, those since then.
    marks: Vec<Sha256>,
}

impl Taken {
    fn extend(&mut self, body: &[u8]) {
        let mut rest = body.get(self.bytes..).unwrap_or_default();
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
    }
}

impl PrefixDigest {
    /// The number of bytes taken in.
    pub fn bytes(&self) -> usize {
        self.taken.bytes
    }

    /// Takes in what came after the prefix and returns how many bytes that were. A body shorter
    /// than the prefix must be [cut](Self::cut) first.
    pub fn extend(&mut self, body: &[u8]) -> usize {
        let before = self.taken.bytes;
        if let Some(ahead) = self.ahead.take() {
            let Taken {
                state,
                bytes,
                marks,
            } = *ahead;
            self.taken.marks.extend(marks);
            (self.taken.state, self.taken.bytes) = (state, bytes);
        }
        self.taken.extend(body);
        self.taken.bytes - before
    }

    /// Goes back to a prefix of at most so many bytes, since those behind are others now.
    pub fn cut(&mut self, bytes: usize) {
        if self.ahead.get().is_some_and(|ahead| bytes < ahead.bytes) {
            self.ahead.take();
        }
        let taken = &mut self.taken;
        if bytes < taken.bytes {
            taken.marks.truncate(bytes / STRIDE);
            taken.state = taken.marks.last().cloned().unwrap_or_default();
            taken.bytes = taken.marks.len() * STRIDE;
        }
    }

    /// The digest of a body that begins with the prefix, followed by these bytes. If much of it is not
    /// taken in yet, it is hashed here, and [`extend`](Self::extend) does not hash it again.
    pub fn finish(&self, body: &[u8], behind: &[u8]) -> Digest {
        let mut from = &self.taken;
        if body.len() >= from.bytes + STRIDE {
            from = self.ahead.get_or_init(|| {
                let mut ahead = Taken {
                    state: from.state.clone(),
                    bytes: from.bytes,
                    marks: Vec::new(),
                };
                ahead.extend(body);
                Box::new(ahead)
            });
        }
        let mut state = from.state.clone();
        state.update(body.get(from.bytes..).unwrap_or_default());
        state.update(behind);
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
        assert_eq!(digest.finish(b"abc", b"]}"), Digest::of(b"abc]}"));
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
            assert_eq!(digest.finish(&body, &[]), Digest::of(&body));
        }
    }

    #[test]
    fn what_was_hashed_for_a_digest_is_not_hashed_again() {
        let mut body = vec![b'a'; 3 * STRIDE + 7];
        let mut digest = PrefixDigest::default();
        digest.extend(&body[..5]);
        let check = |digest: &PrefixDigest, body: &[u8]| {
            let expected = Digest::of(&[body, b"]}"].concat());
            assert_eq!(digest.finish(body, b"]}"), expected);
            assert_eq!(digest.bytes(), 5);
            digest.ahead.get().map(|ahead| ahead.bytes)
        };
        assert_eq!(check(&digest, &body), Some(body.len()));
        // What comes behind is hashed from there on, and what changes takes it back.
        body.extend_from_slice(b"more");
        assert_eq!(check(&digest, &body), Some(body.len() - 4));
        body[2 * STRIDE..].fill(b'b');
        digest.cut(2 * STRIDE);
        assert!(digest.ahead.get().is_none());
        assert_eq!(check(&digest, &body), Some(body.len()));

        assert_eq!(digest.extend(&body), body.len() - 5);
        assert!(digest.ahead.get().is_none());
        digest.cut(2 * STRIDE + 1);
        assert_eq!(digest.bytes(), 2 * STRIDE);
        assert_eq!(digest.finish(&body, &[]), Digest::of(&body));
    }
}
