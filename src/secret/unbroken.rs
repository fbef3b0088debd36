//! Text without its blanks and line ends, in which is found what was broken on the way.
//!
//! Programs that encode break what they write: `base64` after 76 signs, `xxd -p` after 60, `od`
//! after every byte. Neither alphabet has a blank or a backslash, so nothing else is lost.

use aho_corasick::AhoCorasick;

/// Whether any of these stands in a text, broken or not.
pub(super) fn is_match(finder: &AhoCorasick, bytes: &[u8]) -> bool {
    finder.is_match(&unbroken(bytes))
}

/// The text with this in place of each of these, broken or not; `None` if there is none.
pub(super) fn replaced(finder: &AhoCorasick, bytes: &[u8], instead: &[u8]) -> Option<Vec<u8>> {
    let text = unbroken(bytes);
    let mut new = Vec::new();
    let (mut end, mut passed) = (0, 0);
    // What is found comes in order, so that its places are found in one pass.
    let mut places = kept(bytes).map(|(place, _)| place);
    for found in finder.find_iter(&text) {
        let from = places.nth(found.start() - passed)?;
        let last = match found.len() {
            0 | 1 => from,
            len => places.nth(len - 2)?,
        };
        passed = found.end();
        new.extend_from_slice(&bytes[end..from]);
        new.extend_from_slice(instead);
        end = last + 1;
    }
    (end > 0).then(|| {
        new.extend_from_slice(&bytes[end..]);
        new
    })
}

fn unbroken(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    text.extend(kept(bytes).map(|(_, byte)| byte));
    text
}

/// Each byte that stays, and where it stands. Line ends as JSON writes them go as well.
fn kept(bytes: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let mut before = 0;
    bytes.iter().enumerate().filter_map(move |(place, byte)| {
        let is_break = match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b'\\' => true,
            b'n' | b'r' | b't' => before == b'\\',
            _ => false,
        };
        before = *byte;
        (!is_break).then_some((place, *byte))
    })
}
