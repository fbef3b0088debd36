//! What a process prints, in bounded memory: the head, the tail, and the size of the whole.

use std::collections::VecDeque;

use crate::tools::clip;

/// How much of the beginning is kept, and how much of the end, in bytes.
const HALF: usize = 4 << 20;

/// An output as it grows.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    breaks: u64,
}

impl Default for Capture {
    fn default() -> Self {
        Self::with_half(HALF)
    }
}

/// An output as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    /// All of it.
    Whole(String),
    /// Its beginning and its end.
    Ends {
        /// The beginning.
        head: String,
        /// How many bytes between them were not kept.
        lost: u64,
        /// The end.
        tail: String,
    },
}

impl Capture {
    /// One that keeps this many bytes of the beginning, and as many of the end.
    pub(crate) fn with_half(half: usize) -> Self {
        Self {
            half,
            head: Vec::new(),
            tail: VecDeque::new(),
            bytes: 0,
            breaks: 0,
        }
    }

    /// Takes in what was printed next.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.breaks += bytes
            .iter()
            .map(|byte| u64::from(*byte == b'\n'))
            .sum::<u64>();
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..over);
        if self.tail.is_empty() && !rest.is_empty() {
            // It takes no memory before it is needed, and never twice as much.
            self.tail.reserve_exact(self.half);
        }
        self.tail.extend(rest);
    }

    /// The size of everything that was printed.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was printed, from its first byte on, as far as the beginning is kept.
    pub(crate) fn starts(&self) -> impl Iterator<Item = u8> + '_ {
        self.head.iter().copied()
    }

    /// The number of lines that were printed, the one that is being written included.
    pub(crate) fn lines(&self) -> u64 {
        let last = self.tail.back().or(self.head.last());
        self.breaks + u64::from(last.is_some_and(|byte| *byte != b'\n'))
    }

    /// The same, of which no more is kept than is shown in so many characters, unless it is whole.
    pub(crate) fn narrowed(mut self, chars: u64) -> Self {
        if self.is_whole() {
            return self;
        }
        // No character has more bytes.
        let bytes = usize::try_from(chars.saturating_mul(4)).unwrap_or(usize::MAX);
        self.head.truncate(bytes);
        self.head.shrink_to_fit();
        let over = self.tail.len().saturating_sub(bytes);
        self.tail.drain(..over);
        self.tail.shrink_to_fit();
        self
    }

    /// Whether all of it is kept.
    pub(crate) fn is_whole(&self) -> bool {
        self.bytes == (self.head.len() + self.tail.len()) as u64
    }

    /// The text of it.
    pub(crate) fn printed(mut self) -> Printed {
        let kept = (self.head.len() + self.tail.len()) as u64;
        let lost = self.bytes.saturating_sub(kept);
        let tail = self.tail.make_contiguous();
        if lost == 0 {
            self.head.extend_from_slice(tail);
            return Printed::Whole(clip::text(&self.head));
        }
        // The cut may have gone through a character: its parts go to what is lost.
        let head = &self.head[..self.head.len() - torn(&self.head)];
        let start = tail
            .iter()
            .take(3)
            .take_while(|byte| **byte & 0xC0 == 0x80)
            .count();
        let torn = (self.head.len() - head.len() + start) as u64;
        Printed::Ends {
            head: clip::text(head),
            lost: lost + torn,
            tail: clip::text(&tail[start..]),
        }
    }
}

/// How many bytes at the end are the beginning of a character that is cut off.
fn torn(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    let lead = last.iter().rev().position(|byte| byte & 0xC0 != 0x80);
    let Some(after) = lead else { return 0 };
    let needs = match last[last.len() - 1 - after] {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xFF => 4,
        _ => 1,
    };
    if after + 1 < needs { after + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_keeps_head_and_tail() {
        for step in [1000, 7 << 20] {
            let all: Vec<u8> = (0..20 << 20).map(|n: u32| b'a' + (n % 26) as u8).collect();
            let mut capture = Capture::default();
            for bytes in all.chunks(step) {
                capture.take(bytes);
                assert!(capture.head.len() + capture.tail.len() <= 2 * HALF);
            }
            assert_eq!(capture.bytes(), 20 << 20);
            let few = capture.clone().narrowed(100);
            assert_eq!((few.head.len(), few.tail.len()), (400, 400));
            let Printed::Ends { head, lost, tail } = few.printed() else {
                panic!("it is not whole")
            };
            assert_eq!((head.as_bytes(), lost), (&all[..400], (20 << 20) - 800));
            assert_eq!(tail.as_bytes(), &all[all.len() - 400..]);
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let expected = Printed::Ends {
                head: text(&all[..HALF]),
                lost: 12 << 20,
                tail: text(&all[all.len() - HALF..]),
            };
            assert!(capture.printed() == expected, "chunks of {step}");
        }
    }

    #[test]
    fn a_cut_does_not_go_through_a_character() {
        // Three bytes each, and neither half is a multiple of three.
        let mut capture = Capture::default();
        capture.take("€".repeat(4 << 20).as_bytes());
        let Printed::Ends { head, lost, tail } = capture.printed() else {
            panic!("too much to keep");
        };
        assert!(head.chars().chain(tail.chars()).all(|char| char == '€'));
        assert_eq!(head.len() as u64 + lost + tail.len() as u64, 12 << 20);

        let mut capture = Capture::default();
        capture.take(b"a\xffb");
        assert_eq!(
            capture.narrowed(0).printed(),
            Printed::Whole("a\u{fffd}b".into())
        );
    }
}
