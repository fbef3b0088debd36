//! A digest that goes on from the saved state of an unchanged prefix.

use sha2::{Digest as _, Sha256};

use crate::id::Digest;

/// The state of a digest after a prefix of a growing body.
#[derive(Clone, Debug, Default)]
pub struct PrefixDigest {
    state: Sha256,
    bytes: usize,
}

impl PrefixDigest {
    /// The number of bytes taken in.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes in what came after the prefix and returns how many bytes that were. A body shorter
    /// than the prefix must be begun anew.
    pub fn extend(&mut self, body: &[u8]) -> usize {
        let new = body.get(self.bytes..).unwrap_or_default();
        self.state.update(new);
        self.bytes += new.len();
        new.len()
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
}
