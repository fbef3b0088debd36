//! Text as it is meant, where programs write signs by their numbers or names: addresses, JSON, source
//! code and pages all do, and each library chooses others.

use aho_corasick::AhoCorasick;

/// The signs that pages write by names.
const NAMES: [(&[u8], u8); 5] = [
    (b"&amp;", b'&'),
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
    (b"&quot;", b'"'),
    (b"&apos;", b'\''),
];

/// Whether any of these is meant by a text.
pub(super) fn is_match(finder: &AhoCorasick, bytes: &[u8]) -> bool {
    Meant::by(bytes).is_some_and(|meant| finder.is_match(&meant.bytes))
}

/// The text with this in place of each of these that it means; `None` if there is none.
pub(super) fn replaced(finder: &AhoCorasick, bytes: &[u8], instead: &[u8]) -> Option<Vec<u8>> {
    let meant = Meant::by(bytes)?;
    let mut new = Vec::new();
    let mut end = 0;
    for found in finder.find_iter(&meant.bytes) {
        let at = |place: usize| meant.places.get(place).copied().unwrap_or(bytes.len());
        new.extend_from_slice(&bytes[end..at(found.start())]);
        new.extend_from_slice(instead);
        end = at(found.end());
    }
    (end > 0).then(|| {
        new.extend_from_slice(&bytes[end..]);
        new
    })
}

/// What a text means.
struct Meant {
    bytes: Vec<u8>,
    /// Where in the text each of them stands.
    places: Vec<usize>,
}

impl Meant {
    /// What this text means; `None` if it means what it says.
    fn by(text: &[u8]) -> Option<Self> {
        let mut meant = Self {
            bytes: Vec::new(),
            places: Vec::new(),
        };
        let mut end = 0;
        for (at, byte) in text.iter().enumerate() {
            if matches!(byte, b'%' | b'&' | b'\\')
                && at >= end
                && let Some((sign, length)) = sign(&text[at..])
            {
                meant.take(text, end, at);
                let mut room = [0; 4];
                let said = match sign {
                    Sign::Byte(byte) => {
                        room[0] = byte;
                        &room[..1]
                    }
                    Sign::Char(char) => char.encode_utf8(&mut room).as_bytes(),
                };
                meant.bytes.extend_from_slice(said);
                meant.places.extend(said.iter().map(|_| at));
                end = at + length;
            }
        }
        (end > 0).then(|| {
            meant.take(text, end, text.len());
            meant
        })
    }

    /// Takes what means what it says.
    fn take(&mut self, text: &[u8], from: usize, to: usize) {
        self.bytes.extend_from_slice(&text[from..to]);
        self.places.extend(from..to);
    }
}

/// What is written by its number or name.
#[derive(Clone, Copy)]
enum Sign {
    Byte(u8),
    Char(char),
}

/// The sign with which a text begins, if it is written so, and how long that is.
fn sign(text: &[u8]) -> Option<(Sign, usize)> {
    match text.first()? {
        b'%' => Some((Sign::Byte(byte(text.get(1..)?)?), 3)),
        b'\\' => {
            // JSON within JSON has more of them.
            let slashes = text.iter().take_while(|byte| **byte == b'\\').count();
            let rest = &text[slashes..];
            let (sign, length) = match rest.first()? {
                b'/' => (Sign::Byte(b'/'), 1),
                b'x' => (Sign::Byte(byte(rest.get(1..)?)?), 3),
                b'u' => (char_of(number(rest.get(1..5)?, 16)?)?, 5),
                _ => return None,
            };
            Some((sign, slashes + length))
        }
        _ => named(text),
    }
}

/// A sign as pages write it: `&amp;`, `&#38;`, `&#x26;`.
fn named(text: &[u8]) -> Option<(Sign, usize)> {
    if let Some((name, byte)) = NAMES.iter().find(|(name, _)| text.starts_with(name)) {
        return Some((Sign::Byte(*byte), name.len()));
    }
    let rest = text.strip_prefix(b"&#")?;
    let end = rest.iter().take(8).position(|byte| *byte == b';')?;
    let char = match &rest[..end] {
        [b'x' | b'X', digits @ ..] => number(digits, 16)?,
        digits => number(digits, 10)?,
    };
    Some((char_of(char)?, end + 3))
}

/// The byte that the two hexadecimal digits say with which a text begins.
pub(super) fn byte(text: &[u8]) -> Option<u8> {
    u8::try_from(number(text.get(..2)?, 16)?).ok()
}

fn char_of(number: u32) -> Option<Sign> {
    char::from_u32(number).map(Sign::Char)
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    // A sign before the digits is none of them.
    let all = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| all)?;
    u32::from_str_radix(digits, radix).ok()
}
