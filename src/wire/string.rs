//! Text as a JSON string.
//!
//! Most of a body is text, and few characters of it are escaped: what stands between them is found eight
//! bytes at a time and copied as it is. The bytes are those that `serde_json` writes.

/// Appends a text as a JSON string.
pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    // Text of programs has an escape in each sixteenth byte or so.
    out.reserve(rest.len() + rest.len() / 16 + 2);
    out.push(b'"');
    loop {
        let (run, behind) = rest.split_at(plain(rest));
        out.extend_from_slice(run);
        let Some((byte, behind)) = behind.split_first() else {
            break;
        };
        escape(out, *byte);
        rest = behind;
    }
    out.push(b'"');
}

/// Whether a byte is escaped within a string.
const fn is_escaped(byte: u8) -> bool {
    matches!(byte, 0..0x20 | b'"' | b'\\')
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let digit = |half: u8| DIGITS[usize::from(half & 0xf)];
            return out.extend_from_slice(&[
                b'\\',
                b'u',
                b'0',
                b'0',
                digit(byte >> 4),
                digit(byte),
            ]);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// A byte of one in each place of a word.
const ONES: u64 = u64::MAX / 0xff;

/// How many bytes stand before the first that is escaped.
fn plain(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        let found = escaped(u64::from_le_bytes(*word));
        if found != 0 {
            return place * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let from = words.len() * 8;
    let left = bytes[from..].iter().position(|byte| is_escaped(*byte));
    left.map_or(bytes.len(), |left| from + left)
}

/// Has the highest bit of the first byte set that is escaped, and of none before it; what it says of those
/// behind means nothing, since a subtraction may borrow from them.
fn escaped(word: u64) -> u64 {
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | is(b'"') | is(b'\\')) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) {
        let mut out = b"[".to_vec();
        string(&mut out, text);
        let expected = format!("[{}", serde_json::to_string(text).unwrap());
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn every_character_is_written_as_serde_json_writes_it_wherever_it_stands() {
        let ascii = (0..=0x7f).map(char::from);
        for char in ascii.chain(['\u{80}', 'é', '\u{7ff}', '漢', '\u{2028}', '🙂']) {
            for before in 0..18 {
                for behind in [0, 1, 7, 8, 9] {
                    // What is next to a byte must not be taken for it.
                    for filler in ["x", "!", "#", "]", " ", "\u{ff}", "\n"] {
                        check(&format!(
                            "{}{char}{}",
                            filler.repeat(before),
                            filler.repeat(behind)
                        ));
                    }
                }
            }
        }
    }

    #[test]
    fn texts_of_any_length_are_written_whole() {
        let text = "fn main() {\n\tprintln!(\"a\\u{1f642} \u{1} ä漢🙂\");\r\n}\n".repeat(9);
        for (end, _) in text.char_indices() {
            check(&text[..end]);
            check(&text[end..]);
        }
    }
}
