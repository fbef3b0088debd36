//! Zip archives, as far as recordings are kept in them: members stored or deflated.

/// The members of an archive, by name; those that cannot be read are left out.
pub(super) fn members(zip: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut members = Vec::new();
    let Some(end) = zip.windows(4).rposition(|four| four == b"PK\x05\x06") else {
        return members;
    };
    let mut at = number(zip, end + 16, 4);
    for _ in 0..number(zip, end + 10, 2) {
        let lengths = [28, 30, 32].map(|place| number(zip, at + place, 2));
        let header = number(zip, at + 42, 4);
        let begins = header + 30 + number(zip, header + 26, 2) + number(zip, header + 28, 2);
        let packed = zip.get(begins..begins + number(zip, at + 20, 4));
        let data = packed.and_then(|packed| match number(zip, at + 10, 2) {
            0 => Some(packed.to_vec()),
            8 => inflate(packed),
            _ => None,
        });
        let name = zip.get(at + 46..at + 46 + lengths[0]);
        if let (Some(data), Some(name)) = (data, name) {
            members.push((String::from_utf8_lossy(name).into_owned(), data));
        }
        at += 46 + lengths.iter().sum::<usize>();
    }
    members
}

/// A number of so many bytes, little end first; 0 past the end.
fn number(bytes: &[u8], at: usize, count: usize) -> usize {
    let bytes = bytes.get(at..at + count).unwrap_or_default();
    bytes
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

/// What was packed as RFC 1951 says.
fn inflate(packed: &[u8]) -> Option<Vec<u8>> {
    let mut bits = Bits { packed, at: 0 };
    let mut out = Vec::new();
    loop {
        let last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => {
                bits.at = bits.at.next_multiple_of(8);
                let count = bits.take(16)?;
                bits.take(16)?;
                let begins = bits.at / 8;
                out.extend_from_slice(packed.get(begins..begins + count)?);
                bits.at += count * 8;
            }
            1 => {
                let mut lengths = [8; 288];
                lengths[144..256].fill(9);
                lengths[256..280].fill(7);
                block(
                    &mut bits,
                    &mut out,
                    &Code::of(&lengths),
                    &Code::of(&[5; 30]),
                )?;
            }
            2 => {
                let (literals, distances) = codes(&mut bits)?;
                block(&mut bits, &mut out, &literals, &distances)?;
            }
            _ => return None,
        }
        if last {
            return Some(out);
        }
    }
}

struct Bits<'a> {
    packed: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: usize) -> Option<usize> {
        let mut value = 0;
        for place in 0..count {
            let byte = *self.packed.get(self.at / 8)?;
            value |= usize::from(byte >> (self.at % 8) & 1) << place;
            self.at += 1;
        }
        Some(value)
    }
}

/// A prefix code: how many words of each length there are, and what they stand for in order.
struct Code {
    counts: [usize; 16],
    symbols: Vec<usize>,
}

impl Code {
    fn of(lengths: &[usize]) -> Self {
        let mut counts = [0; 16];
        let mut symbols: Vec<usize> = (0..lengths.len()).filter(|at| lengths[*at] > 0).collect();
        symbols.sort_by_key(|symbol| lengths[*symbol]);
        for symbol in &symbols {
            counts[lengths[*symbol]] += 1;
        }
        Self { counts, symbols }
    }

    fn read(&self, bits: &mut Bits<'_>) -> Option<usize> {
        let (mut code, mut first, mut index) = (0, 0, 0);
        for count in &self.counts[1..] {
            code |= bits.take(1)?;
            if code < first + count {
                return self.symbols.get(index + code - first).copied();
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }
}

/// The two codes of a block that brings its own.
fn codes(bits: &mut Bits<'_>) -> Option<(Code, Code)> {
    const ORDER: [usize; 19] = [
        16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
    ];
    let (literals, distances) = (bits.take(5)? + 257, bits.take(5)? + 1);
    let count = bits.take(4)? + 4;
    let mut lengths = [0; 19];
    for place in &ORDER[..count] {
        lengths[*place] = bits.take(3)?;
    }
    let code = Code::of(&lengths);
    let mut lengths = Vec::new();
    while lengths.len() < literals + distances {
        let (length, times) = match code.read(bits)? {
            16 => (*lengths.last()?, 3 + bits.take(2)?),
            17 => (0, 3 + bits.take(3)?),
            18 => (0, 11 + bits.take(7)?),
            length => (length, 1),
        };
        lengths.extend(vec![length; times]);
    }
    let (first, rest) = lengths.split_at(literals);
    Some((Code::of(first), Code::of(rest)))
}

fn block(bits: &mut Bits<'_>, out: &mut Vec<u8>, literals: &Code, distances: &Code) -> Option<()> {
    loop {
        let symbol = literals.read(bits)?;
        match symbol {
            0..256 => out.push(u8::try_from(symbol).ok()?),
            256 => return Some(()),
            285 => copy(out, 258, distance(bits, distances)?)?,
            _ => {
                let place = symbol - 257;
                let extra = (place / 4).saturating_sub(1);
                let length = grown(place, 4, extra) + 3 + bits.take(extra)?;
                copy(out, length, distance(bits, distances)?)?;
            }
        }
    }
}

fn distance(bits: &mut Bits<'_>, distances: &Code) -> Option<usize> {
    let place = distances.read(bits)?;
    let extra = (place / 2).saturating_sub(1);
    Some(grown(place, 2, extra) + 1 + bits.take(extra)?)
}

/// The base of a length or distance, of which `step` share a number of extra bits.
fn grown(place: usize, step: usize, extra: usize) -> usize {
    if extra == 0 {
        place
    } else {
        (step + place % step) << extra
    }
}

fn copy(out: &mut Vec<u8>, length: usize, distance: usize) -> Option<()> {
    let from = out.len().checked_sub(distance)?;
    (from..from + length).for_each(|at| out.push(out[at]));
    Some(())
}
