//! The messages that read now, and the bytes of those that will not change.
//!
//! A [`Piece`] is one message: which part of which item it is. The bytes of pieces stand one behind
//! the other in a buffer, up to the first call that is still open; a piece is rendered once. When a
//! piece in the middle changes, the bytes of those behind it are copied, not rendered again.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::id::EntryId;
use crate::meter::Chars;
use crate::wire::TAIL;
use crate::wire::digest::PrefixDigest;

/// Which message a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Part {
    /// A user's message.
    User,
    /// An assistant's message.
    Assistant,
    /// The result of the call at this index.
    Result(usize),
    /// The summary that this overlay laid.
    Summary(EntryId),
    /// What this summary carries, after the last summary.
    Carry(EntryId),
    /// The assistant's word after a summary.
    Understood,
}

impl Part {
    /// Whether it depends on what stands beside it rather than on its item.
    pub(super) fn is_between(self) -> bool {
        matches!(self, Self::Carry(_) | Self::Understood)
    }
}

/// One message.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The index of its item.
    pub(super) item: usize,
    /// Which message it is.
    pub(super) part: Part,
    /// Where its bytes stand: in the buffer if it is among the settled ones, else in the spare.
    at: Option<(usize, usize)>,
    chars: Chars,
    /// The characters of the settled pieces before it, if it is one.
    before: Chars,
}

impl Piece {
    /// A piece that is not rendered yet.
    pub(super) fn new(item: usize, part: Part) -> Self {
        Self {
            item,
            part,
            at: None,
            chars: Chars::default(),
            before: Chars::default(),
        }
    }
}

/// All pieces, and the bytes of the settled ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    list: Vec<Piece>,
    /// The head of the body, then the settled pieces, with commas between, then the tail: a body is one
    /// copy of it. Empty before there is a head.
    buffer: Vec<u8>,
    /// The buffer as it was before a piece in its middle changed.
    spare: Vec<u8>,
    /// The length of the head, and whether a comma stands before the first piece.
    head: usize,
    comma: bool,
    head_chars: Chars,
    /// The number of settled pieces, whose bytes stand in the buffer.
    settled: usize,
    /// The characters of the settled pieces.
    chars: Chars,
    digest: PrefixDigest,
}

impl Pieces {
    /// All pieces in order.
    pub(super) fn list(&self) -> &[Piece] {
        &self.list
    }

    /// The number of settled pieces.
    pub(super) fn settled(&self) -> usize {
        self.settled
    }

    /// The head and the settled pieces, as bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.strip_suffix(TAIL).unwrap_or_default()
    }

    /// The same with the tail behind them.
    pub(super) fn with_tail(&self) -> &[u8] {
        &self.buffer
    }

    /// The characters of the head and the settled pieces, commas and tail included.
    pub(super) fn chars(&self) -> Chars {
        let commas = self.settled.saturating_sub(usize::from(!self.comma)) as u64;
        let rest = Chars {
            all: commas + TAIL.len() as u64,
            wide: 0,
        };
        self.head_chars + self.chars + rest
    }

    /// The characters of the head with its tail: what a request without messages takes.
    pub(super) fn head_chars(&self) -> Chars {
        self.head_chars
            + Chars {
                all: TAIL.len() as u64,
                wide: 0,
            }
    }

    /// The characters of the pieces of an item, as far as they are settled.
    pub(super) fn item_chars(&self, item: usize) -> Chars {
        let from = self.place(item);
        let pieces = self.list[from..]
            .iter()
            .take_while(|piece| piece.item == item);
        pieces
            .filter(|piece| !piece.part.is_between())
            .fold(Chars::default(), |sum, piece| sum + piece.chars)
    }

    /// The characters of the settled pieces from an item on.
    pub(super) fn chars_from(&self, item: usize) -> Chars {
        match self.list[..self.settled].get(self.place(item)) {
            Some(first) => self.chars - first.before,
            None => Chars::default(),
        }
    }

    /// The items of a range that have messages.
    pub(super) fn items_within(&self, items: &Range<usize>) -> BTreeSet<usize> {
        let pieces = &self.list[self.place(items.start)..self.place(items.end)];
        pieces.iter().map(|piece| piece.item).collect()
    }

    /// The index of the first piece of an item, or of the first behind it.
    pub(super) fn place(&self, item: usize) -> usize {
        self.list.partition_point(|piece| piece.item < item)
    }

    /// The digest, brought up to the end of the settled pieces; returns the bytes that took.
    pub(super) fn hash(&mut self) -> usize {
        let settled = self.buffer.strip_suffix(TAIL).unwrap_or_default();
        self.digest.extend(settled)
    }

    /// The digest as far as it was brought.
    pub(super) fn digest(&self) -> &PrefixDigest {
        &self.digest
    }

    /// Begins anew with another head. The pieces keep their bytes unless they would be rendered
    /// differently.
    pub(super) fn set_head(&mut self, head: Vec<u8>, comma: bool, render_again: bool) {
        self.cut(0);
        if render_again {
            self.list.iter_mut().for_each(|piece| piece.at = None);
        }
        self.head = head.len();
        self.head_chars = Chars::of(&head);
        self.comma = comma;
        self.buffer = head;
        self.buffer.extend_from_slice(TAIL);
        self.digest = PrefixDigest::default();
    }

    /// Appends pieces.
    pub(super) fn append(&mut self, pieces: impl IntoIterator<Item = Piece>) {
        self.list.extend(pieces);
    }

    /// Puts new pieces in the place of those of some items.
    pub(super) fn replace(
        &mut self,
        items: &BTreeSet<usize>,
        mut parts: impl FnMut(usize) -> Vec<Part>,
    ) {
        let Some(first) = items.first() else { return };
        self.cut(self.place(*first));
        let mut old = self
            .list
            .split_off(self.place(*first))
            .into_iter()
            .peekable();
        for item in items {
            while let Some(piece) = old.next_if(|piece| piece.item < *item) {
                self.list.push(piece);
            }
            while old
                .next_if(|piece| piece.item == *item && !piece.part.is_between())
                .is_some()
            {}
            self.list
                .extend(parts(*item).into_iter().map(|part| Piece::new(*item, part)));
        }
        self.list.extend(old);
    }

    /// The part of the first message behind an item that depends on its item alone.
    pub(super) fn next_part(&self, item: usize) -> Option<Part> {
        let behind = self.list[self.place(item + 1)..].iter();
        behind
            .map(|piece| piece.part)
            .find(|part| !part.is_between())
    }

    /// Puts these parts behind an item, and takes all others that stand between items away.
    pub(super) fn set_between(&mut self, item: usize, parts: &[Part]) {
        let stands = |piece: &&Piece| piece.part.is_between();
        let now = self
            .list
            .iter()
            .filter(stands)
            .map(|piece| (piece.item, piece.part));
        if now.eq(parts.iter().map(|part| (item, *part))) {
            return;
        }
        let first = self.list.iter().position(|piece| piece.part.is_between());
        self.cut(self.place(item + 1).min(first.unwrap_or(usize::MAX)));
        let removed: Vec<Piece> = self
            .list
            .extract_if(.., |piece| piece.part.is_between())
            .collect();
        let new: Vec<Piece> = parts
            .iter()
            .map(|part| {
                // Its text is fixed by its overlay, so its bytes can be kept.
                let kept = removed.iter().find(|piece| piece.part == *part).cloned();
                Piece {
                    item,
                    ..kept.unwrap_or_else(|| Piece::new(item, *part))
                }
            })
            .collect();
        let index = self.place(item + 1);
        self.list.splice(index..index, new);
    }

    /// Makes the pieces from an index on unsettled.
    fn cut(&mut self, index: usize) {
        if index >= self.settled {
            return;
        }
        let start = match index.checked_sub(1).and_then(|last| self.list[last].at) {
            Some((_, end)) => end,
            None => self.head,
        };
        self.chars = self.list[index].before;
        if self.spare.is_empty() {
            // The bytes up to here are copied once, and those behind once more when they settle.
            let mut kept = Vec::with_capacity(self.buffer.len());
            kept.extend_from_slice(&self.buffer[..start]);
            kept.extend_from_slice(TAIL);
            self.spare = std::mem::replace(&mut self.buffer, kept);
        } else {
            // Settled since the last cut: the spare has other bytes in their places.
            self.list[index..self.settled]
                .iter_mut()
                .for_each(|piece| piece.at = None);
            self.buffer.truncate(start);
            self.buffer.extend_from_slice(TAIL);
        }
        self.settled = index;
        self.digest.cut(start);
    }

    /// Settles pieces as long as `render` gives their bytes; returns the bytes rendered.
    pub(super) fn settle(&mut self, render: impl FnMut(&Piece, &mut Vec<u8>) -> bool) -> usize {
        self.buffer.truncate(self.bytes().len());
        let rendered = self.settle_behind(render);
        self.buffer.extend_from_slice(TAIL);
        rendered
    }

    /// The same behind the settled pieces, without the tail.
    fn settle_behind(&mut self, mut render: impl FnMut(&Piece, &mut Vec<u8>) -> bool) -> usize {
        let mut rendered = 0;
        while let Some(piece) = self.list.get_mut(self.settled) {
            let before = self.buffer.len();
            if self.settled > 0 || self.comma {
                self.buffer.push(b',');
            }
            let start = self.buffer.len();
            match piece.at {
                Some((from, to)) => self.buffer.extend_from_slice(&self.spare[from..to]),
                None if render(piece, &mut self.buffer) => {
                    piece.chars = Chars::of(&self.buffer[start..]);
                    rendered += self.buffer.len() - start;
                }
                None => {
                    self.buffer.truncate(before);
                    return rendered;
                }
            }
            piece.at = Some((start, self.buffer.len()));
            piece.before = self.chars;
            self.chars += piece.chars;
            self.settled += 1;
        }
        self.spare = Vec::new();
        rendered
    }
}
