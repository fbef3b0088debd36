//! Text without its blanks and line ends, in which is found what was broken on the way.
//!
//! Programs that encode break what they write: `base64` after 76 signs, `xxd -p` after 60, `od`
//! after every byte. Neither alphabet has a blank or a backslash, so nothing else is lost. Many also
//! number their lines, and show beside the bytes what they mean as text: where that may be, a text is
//! read once more without either.

use std::ops::Range;

use aho_corasick::AhoCorasick;

/// The fewest digits of a number before a blank that is taken for a line's own: shorter ones are bytes.
const NUMBER: usize = 6;

/// How the bytes of a text are read.
#[derive(Clone, Copy)]
enum Reading {
    /// All of them.
    Whole,
    /// Each line without its number, and without what stands beside its bytes.
    Dumped,
}

/// Whether any of these stands in a text, broken or not.
pub(super) fn is_match(finder: &AhoCorasick, bytes: &[u8]) -> bool {
    finder.is_match(&unbroken(bytes, Reading::Whole))
        || (is_numbered(bytes) && finder.is_match(&unbroken(bytes, Reading::Dumped)))
}

/// The text with this in place of each of these, broken or not; `None` if there is none.
pub(super) fn replaced(finder: &AhoCorasick, bytes: &[u8], instead: &[u8]) -> Option<Vec<u8>> {
    let whole = read(finder, bytes, instead, Reading::Whole);
    let bytes = whole.as_deref().unwrap_or(bytes);
    let dumped = is_numbered(bytes).then(|| read(finder, bytes, instead, Reading::Dumped));
    dumped.flatten().or(whole)
}

fn read(finder: &AhoCorasick, bytes: &[u8], instead: &[u8], reading: Reading) -> Option<Vec<u8>> {
    let text = unbroken(bytes, reading);
    let mut new = Vec::new();
    let (mut end, mut passed) = (0, 0);
    // What is found comes in order, so that its places are found in one pass.
    let mut places = kept(bytes, reading).map(|(place, _)| place);
    for found in finder.find_iter(&text) {
        let from = places.nth(found.start() - passed)?;
        let last = match found.len() {
            0 | 1 => from,
            len => places.nth(len - 2)?,
        };
        passed = found.end();
        let to = match reading {
            Reading::Whole => last + 1,
            Reading::Dumped => shown_end(bytes, last),
        };
        if from >= end {
            new.extend_from_slice(&bytes[end..from]);
            new.extend_from_slice(instead);
        }
        end = end.max(to);
    }
    (end > 0).then(|| {
        new.extend_from_slice(&bytes[end..]);
        new
    })
}

fn unbroken(bytes: &[u8], reading: Reading) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    text.extend(kept(bytes, reading).map(|(_, byte)| byte));
    text
}

/// Each byte that stays, and where it stands. Line ends as JSON writes them go as well.
fn kept(bytes: &[u8], reading: Reading) -> impl Iterator<Item = (usize, u8)> {
    let all = match reading {
        Reading::Whole => Lines::none(bytes),
        Reading::Dumped => Lines::of(bytes),
    };
    all.flat_map(move |line| {
        let mut before = 0;
        let range = match reading {
            Reading::Whole => line,
            Reading::Dumped => {
                let held = payload(&bytes[line.clone()]);
                line.start + held.start..line.start + held.end
            }
        };
        range.filter_map(move |place| {
            let byte = bytes[place];
            let is_break = match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b'\\' => true,
                b'n' | b'r' | b't' => before == b'\\',
                _ => false,
            };
            before = byte;
            (!is_break).then_some((place, byte))
        })
    })
}

/// Whether any line begins with a number of its own.
fn is_numbered(bytes: &[u8]) -> bool {
    Lines::of(bytes).any(|line| payload(&bytes[line]).start > 0)
}

/// The lines of a text, each with its end, be it one as JSON writes it.
struct Lines<'a> {
    bytes: &'a [u8],
    from: usize,
    /// Whether there is one line, whatever stands in it.
    one: bool,
}

impl<'a> Lines<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let (from, one) = (0, false);
        Self { bytes, from, one }
    }

    fn none(bytes: &'a [u8]) -> Self {
        let (from, one) = (0, true);
        Self { bytes, from, one }
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let (all, from) = (self.bytes.len(), self.from);
        if from >= all {
            return None;
        }
        self.from = if self.one {
            all
        } else {
            line_end(self.bytes, from)
        };
        Some(from..self.from)
    }
}

/// Where the line that this place is in ends, its end included.
fn line_end(bytes: &[u8], from: usize) -> usize {
    let mut before = 0;
    let end = bytes[from..].iter().position(|byte| {
        let ends = *byte == b'\n' || (*byte == b'n' && before == b'\\');
        before = *byte;
        ends
    });
    end.map_or(bytes.len(), |end| from + end + 1)
}

/// What of a line is read: what stands behind its number, up to what is shown beside it. A line without a
/// number is read whole.
fn payload(line: &[u8]) -> Range<usize> {
    let quoted = quote(line);
    let Some((first, sign)) = number(&line[quoted..]) else {
        return quoted..line.len();
    };
    let first = quoted + first;
    // Numbered lines may have been numbers and bytes before.
    let (start, sign) = match number(&line[first..]) {
        Some((again, b':')) => (first + again, b':'),
        Some((again, other)) if sign == b'\t' => (first + again, other),
        Some(_) | None => (first, sign),
    };
    let text = &line[start..];
    let beside = |ends: &[u8]| text.windows(ends.len()).position(|at| at == ends);
    // `xxd` sets no more than two blanks before its text, and one before its bytes.
    let plain = (sign == b':').then(|| beside(b"  ")).flatten();
    let beside = beside(b"  |").or_else(|| beside(b"  >")).or(plain);
    start..beside.map_or(line.len(), |at| start + at)
}

/// Where the sign ends by which a line is quoted, or told to be new or old.
fn quote(line: &[u8]) -> usize {
    let blanks = line.iter().take_while(|byte| **byte == b' ').count();
    match line.get(blanks) {
        Some(b'>' | b'+' | b'-' | b'|' | b'#') => blanks + 1,
        _ => 0,
    }
}

/// Where the number ends with which a line begins, and with which sign.
fn number(line: &[u8]) -> Option<(usize, u8)> {
    let count =
        |from: usize, is: fn(&u8) -> bool| line[from..].iter().take_while(|at| is(at)).count();
    let blanks = count(0, |byte| matches!(byte, b' ' | b'\t'));
    let digits = count(blanks, u8::is_ascii_hexdigit);
    let end = blanks + digits;
    match &line[end..] {
        _ if digits == 0 => None,
        [sign @ (b':' | b'\t'), ..] => Some((end + 1, *sign)),
        [b'\\', b't', ..] => Some((end + 2, b'\t')),
        [b' ', ..] if digits >= NUMBER => Some((end + 1, b' ')),
        _ => None,
    }
}

/// Where what is shown at this place of a line ends: with the line if its bytes are shown as text beside them.
fn shown_end(bytes: &[u8], last: usize) -> usize {
    // The line's beginning is only looked for where something was found.
    let before = bytes[..last]
        .windows(2)
        .rposition(|two| two[1] == b'\n' || two == br"\n");
    let from = match before {
        Some(at) => at + 2,
        None if bytes.first() == Some(&b'\n') && last > 0 => 1,
        None => 0,
    };
    let end = line_end(bytes, from);
    if payload(&bytes[from..end]).end == end - from {
        return last + 1;
    }
    match &bytes[from..end] {
        [.., b'\n'] => end - 1,
        [.., b'\\', b'n'] => end - 2,
        _ => end,
    }
}
