//! The bytes of a transcript as they were read and written, by their digest.
//!
//! They are hashed as they pass, so that what is said of them holds of what was folded, whatever became
//! of the file since. Nothing is read twice for it, and a round costs what is new.

use std::io::{self, BufRead, Read};

use sha2::digest::Output;
use sha2::digest::common::hazmat::SerializableState as _;
use sha2::{Digest as _, Sha256};

/// The first bytes of a transcript.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    length: u64,
    hash: Sha256,
}

impl Seen {
    /// Takes in what follows.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
    }

    /// How many they are.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Their digest.
    pub(super) fn digest(&self) -> Output<Sha256> {
        self.hash.clone().finalize()
    }

    /// What goes on from here, as bytes.
    pub(super) fn state(&self) -> Vec<u8> {
        self.hash.serialize().to_vec()
    }

    /// So many bytes, by such a state; `None` if it is none.
    pub(super) fn restore(length: u64, state: &[u8]) -> Option<Self> {
        let hash = Sha256::deserialize(&state.try_into().ok()?).ok()?;
        Some(Self { length, hash })
    }

    /// The first bytes of what this reads. It is an error if there are fewer.
    pub(super) fn of(bytes: impl BufRead, length: u64) -> io::Result<Self> {
        let mut seen = Self::default();
        let mut bytes = Passing::new(bytes.take(length), Some(&mut seen));
        while let read @ 1.. = bytes.fill_buf()?.len() {
            bytes.consume(read);
        }
        if seen.length == length {
            Ok(seen)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

/// Bytes that are taken in as they are read.
pub(super) struct Passing<'a, R> {
    inner: R,
    seen: Option<&'a mut Seen>,
}

impl<'a, R: BufRead> Passing<'a, R> {
    /// What this reads; where nobody asks for the digest, it costs nothing.
    pub(super) fn new(inner: R, seen: Option<&'a mut Seen>) -> Self {
        Self { inner, seen }
    }
}

impl<R: BufRead> Read for Passing<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if let Some(seen) = &mut self.seen {
            seen.take(buffer.get(..read).unwrap_or_default());
        }
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Passing<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // What is consumed lies in the buffer, so that nothing is read here.
        if amount > 0
            && let Some(seen) = &mut self.seen
            && let Ok(bytes) = self.inner.fill_buf()
        {
            seen.take(bytes.get(..amount).unwrap_or_default());
        }
        self.inner.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Digest;

    #[test]
    fn what_is_read_is_taken_in_however_it_is_read() {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_be_bytes).collect();
        let right = Digest::of(&bytes).0;
        let mut seen = Seen::default();
        let inner = io::BufReader::with_capacity(1000, &bytes[..]);
        let mut passing = Passing::new(inner, Some(&mut seen));
        let mut begin = [0; 10];
        passing.read_exact(&mut begin).unwrap();
        let mut line = Vec::new();
        passing.read_until(b'\n', &mut line).unwrap();
        io::copy(&mut passing, &mut io::sink()).unwrap();
        assert_eq!(seen.length(), bytes.len() as u64);
        assert_eq!(*seen.digest(), right);

        let (begin, end) = bytes.split_at(12_345);
        let begin = Seen::of(begin, begin.len() as u64).unwrap();
        let mut seen = Seen::restore(begin.length(), &begin.state()).unwrap();
        seen.take(end);
        assert_eq!(*seen.digest(), right);
        assert!(Seen::restore(1, b"no state").is_none());
        Seen::of(end, end.len() as u64 + 1).unwrap_err();
    }
}
