//! How a value may be written.

use crate::secret::{meant, quoted};

/// The alphabet of base64, whose last two signs differ in addresses.
const DIGITS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The digits of hexadecimal numbers, in capital letters and in small ones.
const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

/// A value as it is, and as JSON, shells and addresses write it; each form once.
pub(super) fn spelled(value: &str) -> Vec<Vec<u8>> {
    let mut forms = Forms(vec![value.as_bytes().to_vec()]);
    for text in std::iter::once(value.to_owned()).chain(quoted::forms(value)) {
        let once = json(&text);
        forms.add(json(&once).into_bytes());
        forms.add(once.into_bytes());
        forms.add(text.into_bytes());
    }
    for digits in [UPPER, LOWER] {
        for space in ["%20", "+"] {
            forms.add(percent(value.as_bytes(), digits, space));
        }
    }
    forms.0
}

/// A value as programs write it that break it, without its blanks: as it is if `tells` says that this is not
/// like other text, encoded, in hexadecimal by words, and in numbers one by one; each form once.
pub(super) fn coded(value: &str, tells: fn(&str) -> bool) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut forms = Forms(once(value));
    let plain: String = value.split([' ', '\t', '\r', '\n', '\\']).collect();
    if tells(&plain) && !plain.bytes().all(|byte| byte.is_ascii_digit()) {
        forms.add(plain.into_bytes());
    }
    // A word of two bytes has the later one first, and may begin before the value.
    for from in [0, 1] {
        let words = bytes.get(from..).unwrap_or_default().chunks_exact(2);
        let words = words.flat_map(|two| [hex(two[1], LOWER), hex(two[0], LOWER)]);
        forms.add(words.flatten().collect());
    }
    forms.add(listed(bytes, "", |byte| format!("{byte:03o}")));
    for between in ["", ","] {
        forms.add(listed(bytes, between, u8::to_string));
    }
    // As `xxd -i` writes bytes, programs, addresses and fingerprints.
    for (before, between) in [
        ("0x", ","),
        ("0x", ""),
        ("x", ""),
        ("%", ""),
        ("", ":"),
        ("", ","),
    ] {
        forms.add(listed(bytes, between, |byte| format!("{before}{byte:02x}")));
        forms.add(listed(bytes, between, |byte| format!("{before}{byte:02X}")));
    }
    forms.0
}

/// Bytes, each said so, with this between any two.
fn listed(bytes: &[u8], between: &str, say: impl Fn(&u8) -> String) -> Vec<u8> {
    let said: Vec<String> = bytes.iter().map(say).collect();
    said.join(between).into_bytes()
}

/// A value in base64 wherever it begins, and in hexadecimal by bytes; each form once.
pub(super) fn once(value: &str) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut forms = Forms(Vec::new());
    for digits in [UPPER, LOWER] {
        forms.add(bytes.iter().flat_map(|byte| hex(*byte, digits)).collect());
    }
    for ahead in 0..3 {
        forms.add(base64(bytes, ahead, *b"+/"));
        forms.add(base64(bytes, ahead, *b"-_"));
    }
    forms.0
}

/// Forms of one value.
struct Forms(Vec<Vec<u8>>);

impl Forms {
    /// One more, if it is new and not too short to be told from other text.
    fn add(&mut self, form: Vec<u8>) {
        if form.len() >= 8 && !self.0.contains(&form) {
            self.0.push(form);
        }
    }
}

/// A byte in two hexadecimal digits.
fn hex(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|digit| digits[usize::from(digit)])
}

/// The text inside of a JSON string.
fn json(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap_or_default();
    json.get(1..json.len().saturating_sub(1))
        .unwrap_or_default()
        .to_owned()
}

/// As an address writes it.
fn percent(bytes: &[u8], digits: &[u8; 16], space: &str) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(*byte),
            b' ' => text.extend_from_slice(space.as_bytes()),
            byte => {
                text.push(b'%');
                text.extend(hex(*byte, digits));
            }
        }
    }
    text
}

/// The signs of base64 that these bytes alone make, if so many bytes stand before them.
fn base64(bytes: &[u8], ahead: usize, last: [u8; 2]) -> Vec<u8> {
    let mut padded = vec![0; ahead];
    padded.extend_from_slice(bytes);
    let sign = |six: u32| match six {
        0..62 => DIGITS[six as usize],
        62 => last[0],
        _ => last[1],
    };
    let mut signs = Vec::new();
    for three in padded.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        signs.extend([18, 12, 6, 0].map(|shift| sign(bits >> shift & 63)));
    }
    let (from, to) = ((ahead * 8).div_ceil(6), padded.len() * 8 / 6);
    signs[from..to].to_vec()
}

/// The password in an address, if it holds one.
pub(super) fn password(address: &str) -> Option<&str> {
    let (_, password) = user(address)?.split_once(':')?;
    Some(password)
}

/// Who asks, as an address says before the host, if it does.
pub(super) fn user(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, _) = authority.rsplit_once('@')?;
    Some(user)
}

/// A part of an address as it stands there, and as it is meant.
pub(super) fn read(part: &str) -> Vec<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        let digits = (*byte == b'%').then(|| meant::byte(behind)).flatten();
        bytes.push(digits.unwrap_or(*byte));
        rest = if digits.is_some() {
            &behind[2..]
        } else {
            behind
        };
    }
    let mut all = vec![part.to_owned()];
    all.extend(String::from_utf8(bytes).ok().filter(|meant| meant != part));
    all
}
