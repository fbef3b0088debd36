//! JSON as agents write it: half of a surrogate pair, where a text was cut in the middle of a
//! character, or bytes that are no UTF-8, cost that character and not the whole value.

use serde_json::Value;

/// What stands for a character that is none, as an escape.
const REPLACED: &[u8] = br"\ufffd";

/// The value that this text is. What is no character in it reads as U+FFFD.
pub(super) fn parse(json: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(json).or_else(|error| match mended(json) {
        Some(mended) => serde_json::from_slice(&mended),
        None => Err(error),
    })
}

/// The text with U+FFFD for everything that is no character; `None` if there is nothing of the kind.
fn mended(json: &[u8]) -> Option<Vec<u8>> {
    let mut mended = String::from_utf8_lossy(json).into_owned().into_bytes();
    let mut at = 0;
    while let Some(found) = mended[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        let taken = match (half(&mended, at), half(&mended, at + REPLACED.len())) {
            (Some(Half::Leading), Some(Half::Trailing)) => 2 * REPLACED.len(),
            (Some(Half::Leading | Half::Trailing), _) => {
                mended[at..at + REPLACED.len()].copy_from_slice(REPLACED);
                REPLACED.len()
            }
            // The next byte is what this one escapes.
            (None, _) => 2,
        };
        at = mended.len().min(at + taken);
    }
    (mended != json).then_some(mended)
}

/// One of the two escapes that are a character together.
#[derive(Clone, Copy)]
enum Half {
    Leading,
    Trailing,
}

/// The half that is escaped here; `None` if something else stands here.
fn half(json: &[u8], at: usize) -> Option<Half> {
    let digits = json.get(at..at + REPLACED.len())?.strip_prefix(br"\u")?;
    let code = u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
    match code {
        0xd800..=0xdbff => Some(Half::Leading),
        0xdc00..=0xdfff => Some(Half::Trailing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_costs_that_character() {
        for (json, reads) in [
            (&br#""a\ud83db""#[..], "a\u{fffd}b"),
            (br#""a\udc4db""#, "a\u{fffd}b"),
            (br#""\ud83d\ud83d\udc4d""#, "\u{fffd}\u{1f44d}"),
            (br#""\udc4d\ud83d""#, "\u{fffd}\u{fffd}"),
            (br#""\ud83d\n\\ud83d""#, "\u{fffd}\n\\ud83d"),
            (b"\"a\xff\xf0\x9f\"", "a\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(parse(json).unwrap(), reads, "{}", json.escape_ascii());
        }
        for broken in [
            &br#""\ud83d"#[..],
            br#""\ud83"#,
            br#"{"a":"\ud83d",}"#,
            b"\\",
            b"\xff",
        ] {
            assert!(parse(broken).is_err(), "{}", broken.escape_ascii());
        }
    }
}
