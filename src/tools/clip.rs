//! Text as a model may read it: valid, and not longer than it may be.
//!
//! What is too long keeps its head and its tail; a line in the middle says how much is missing
//! and how to get it. Nothing is ever cut inside a character.

use std::fmt::Display;

use crate::id::{CallId, EntryId};
use crate::words::grouped;

/// The text in these bytes: what is not UTF-8 becomes U+FFFD, and NUL the two characters `\0`.
pub fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') {
        text.replace('\0', "\\0")
    } else {
        text.into_owned()
    }
}

/// The text clipped to about `chars` characters, or `None` if it is not longer.
///
/// `call` is the handle by which the whole can be had.
pub fn clip(text: &str, chars: u64, call: CallId) -> Option<String> {
    clip_at(text, chars, call)
}

/// The same for the text of an entry.
pub fn clip_entry(text: &str, chars: u64, entry: EntryId) -> Option<String> {
    clip_at(text, chars, format_args!("e{entry}"))
}

fn clip_at(text: &str, chars: u64, handle: impl Display) -> Option<String> {
    let chars = usize::try_from(chars).unwrap_or(usize::MAX);
    // Bytes are never fewer than characters, so most texts need not be counted.
    if text.len() <= chars {
        return None;
    }
    let all = text.chars().count();
    if all <= chars {
        return None;
    }
    let marker = |left_out: usize| {
        let left_out = grouped(left_out as u64);
        format!("[… {left_out} characters left out; Recall {handle} shows all …]")
    };
    let room = chars.saturating_sub(marker(all).chars().count() + 2);
    let head = first(text, room - room / 2);
    let tail = last(text, room / 2);
    let kept = head.chars().count() + tail.chars().count();
    Some(joined(head, &marker(all - kept), tail))
}

/// The first and the last part of an output of which `lost` bytes in between were not kept,
/// clipped to about `chars` characters.
pub fn around(head: &str, lost: u64, tail: &str, chars: u64) -> String {
    let chars = usize::try_from(chars).unwrap_or(usize::MAX);
    let marker = |lost: u64| format!("[… {} bytes left out; they were not kept …]", grouped(lost));
    let room = chars.saturating_sub(marker(u64::MAX).chars().count() + 2);
    let (front, back) = (first(head, room - room / 2), last(tail, room / 2));
    let clipped = (head.len() - front.len()) + (tail.len() - back.len());
    joined(front, &marker(lost + clipped as u64), back)
}

/// The two parts with the marker on a line of its own between them.
fn joined(head: &str, marker: &str, tail: &str) -> String {
    let before = if head.is_empty() || head.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let after = if tail.is_empty() || tail.starts_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{head}{before}{marker}{after}{tail}")
}

/// The first `chars` characters.
pub fn first(text: &str, chars: usize) -> &str {
    match text.char_indices().nth(chars) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The last `chars` characters.
fn last(text: &str, chars: usize) -> &str {
    if chars == 0 {
        return "";
    }
    match text.char_indices().nth_back(chars - 1) {
        Some((start, _)) => &text[start..],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::EntryId;

    const CALL: CallId = CallId {
        response: EntryId(41),
        place: 2,
    };

    #[test]
    fn a_long_text_keeps_head_and_tail() {
        let long = format!("{}\n{}", "ä".repeat(50_000), "z".repeat(50_000));
        let clipped = clip(&long, 80, CALL).unwrap();
        insta::assert_snapshot!(clipped, @"
        äääääääääää
        [… 99,979 characters left out; Recall 41.2 shows all …]
        zzzzzzzzzzz
        ");
        assert!(clipped.chars().count() <= 80);
        // Short enough: 4 characters, though 8 bytes.
        assert_eq!(clip("ääää", 4, CALL), None);
        // Too little room for anything but the marker.
        insta::assert_snapshot!(clip("ääääää", 2, CALL).unwrap(), @"[… 6 characters left out; Recall 41.2 shows all …]");
    }

    #[test]
    fn what_was_not_kept_is_counted_in_bytes() {
        insta::assert_snapshot!(
            around("one\ntwo\n", 42_000_000, "three\nfour\n", 1000),
            @"
            one
            two
            [… 42,000,000 bytes left out; they were not kept …]
            three
            four
            "
        );
        let (head, tail) = ("ä".repeat(100), "ö".repeat(100));
        insta::assert_snapshot!(around(&head, 7, &tail, 80), @"
        ääääää
        [… 385 bytes left out; they were not kept …]
        ööööö
        ");
    }

    #[test]
    fn any_bytes_become_valid_text() {
        for (bytes, expected) in [
            (&b"plain"[..], "plain"),
            (b"a\0b", "a\\0b"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(text(bytes), expected);
        }
    }
}
