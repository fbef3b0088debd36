//! The file format: one entry a line, each with a checksum of its own.
//!
//! A line is compact JSON that ends with `,"crc":"9a3f01c2"}`: CRC-32C, in hexadecimal, of the
//! line's bytes before `,"crc"`. It is framing, not part of the entry. [`encode`] makes a line to be
//! written at once; [`Reader`] reads a file and goes on after damage, which it reports by place.

use std::io::{self, BufRead};
use std::sync::Arc;

use serde_jsonlines::{JsonLinesReader, JsonLinesWriter};

use crate::id::{Digest, EntryId};
use crate::transcript::{Entry, Event, Note, Torn, plain};

/// The longest line that is read, in bytes; a longer one is damage. No line we write exceeds
/// [`LINE_WRITTEN`].
pub const LINE_READ: usize = 64 << 20;

/// The longest line that is written, in bytes.
pub const LINE_WRITTEN: usize = 4 << 20;

/// The length of `,"crc":"9a3f01c2"}`.
const CRC: usize = 18;

/// A line is not an entry.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is longer than any line may be.
    #[error("line of more than {LINE_READ} bytes")]
    TooLong,
    /// It does not end with a checksum.
    #[error("no checksum")]
    NoChecksum,
    /// Its bytes are not the ones the checksum was made of.
    #[error("checksum does not match")]
    Checksum,
    /// It is no entry.
    #[error("no entry")]
    Json(#[source] io::Error),
}

/// The entry cannot be written as a line.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// It cannot be serialized.
    #[error("cannot encode entry")]
    Json(#[source] io::Error),
    /// It is longer than any line may be.
    #[error("entry of {0} bytes is longer than {LINE_WRITTEN}")]
    TooLong(usize),
}

/// The line of an entry, checksum and line end included, to be written at once.
pub fn encode(entry: &Entry) -> Result<Vec<u8>, EncodeError> {
    let mut writer = JsonLinesWriter::new(Vec::with_capacity(512));
    writer.write(entry).map_err(EncodeError::Json)?;
    let mut line = writer.into_inner();
    // The closing brace and the line end make room for the checksum.
    line.truncate(line.len().saturating_sub(2));
    let crc = crc32c::crc32c(&line);
    line.extend_from_slice(format!(",\"crc\":\"{crc:08x}\"}}\n").as_bytes());
    if line.len() > LINE_WRITTEN {
        Err(EncodeError::TooLong(line.len()))
    } else {
        Ok(line)
    }
}

/// The entry of a line, given without its line end.
pub fn decode(line: &[u8]) -> Result<Entry, LineError> {
    let (json, crc) = split(line).ok_or(LineError::NoChecksum)?;
    if crc32c::crc32c(json) != crc {
        return Err(LineError::Checksum);
    }
    if let Some(entry) = std::str::from_utf8(line).ok().and_then(plain::read) {
        return Ok(entry);
    }
    let closed: &[u8] = b"}\n";
    let entry = JsonLinesReader::new(io::Read::chain(json, closed)).read::<Entry>();
    match entry.map_err(LineError::Json)? {
        Some(entry) => Ok(entry),
        None => Err(LineError::NoChecksum),
    }
}

/// A line's JSON without its closing brace, and its checksum.
fn split(line: &[u8]) -> Option<(&[u8], u32)> {
    let (json, frame) = line.split_at_checked(line.len().checked_sub(CRC)?)?;
    let digits = frame.strip_prefix(b",\"crc\":\"")?.strip_suffix(b"\"}")?;
    let lower = digits
        .iter()
        .all(|d| d.is_ascii_digit() || (b'a'..=b'f').contains(d));
    let digits = std::str::from_utf8(digits).ok().filter(|_| lower)?;
    Some((json, u32::from_str_radix(digits, 16).ok()?))
}

/// One thing that a file holds.
#[derive(Debug)]
pub enum Item {
    /// An entry.
    Entry {
        /// Where its line begins, in bytes.
        offset: u64,
        /// The bytes of its line, the line end included if there is one.
        bytes: u64,
        /// The entry.
        entry: Arc<Entry>,
    },
    /// Something that is no entry, or not the one expected here.
    Damage(Damage),
    /// The remains of a last line that was never finished.
    Torn(Torn),
}

/// A place in a file that does not hold what it should.
#[derive(Debug)]
pub struct Damage {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong there.
    pub kind: DamageKind,
}

/// What is wrong in a place of a file.
#[derive(Debug)]
pub enum DamageKind {
    /// The line is no entry.
    Line(LineError),
    /// Entries are missing before it.
    Missing {
        /// The first one.
        from: EntryId,
        /// The last one.
        to: EntryId,
    },
    /// The id was there before.
    Repeated(EntryId),
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            DamageKind::Line(LineError::Json(error)) => write!(f, "no entry: {error}"),
            DamageKind::Line(error) => write!(f, "{error}"),
            DamageKind::Missing { from, to } if from == to => write!(f, "entry {from} is missing"),
            DamageKind::Missing { from, to } => write!(f, "entries {from} to {to} are missing"),
            DamageKind::Repeated(id) => write!(f, "entry {id} is there twice"),
        }
    }
}

/// Reads a file from its beginning: entries, and what is no entry, in their order.
///
/// A line that a `torn` note behind it describes is not reported. A last line that was never
/// finished is [`Item::Torn`]: at most one, and the last item.
#[derive(Debug)]
pub struct Reader<R> {
    inner: R,
    line: u64,
    offset: u64,
    expected: EntryId,
    /// Lines that are no entries, until the next entry says whether it describes them.
    held: Option<Held>,
    ready: std::collections::VecDeque<Item>,
    done: bool,
    /// The file may still grow, so that a line waits for its end.
    grows: bool,
    begun: Begun,
    /// The last line that was read has no end.
    line_open: bool,
}

/// What was read of a line. All lines share its buffer.
#[derive(Debug, Default)]
struct Begun {
    offset: u64,
    bytes: Vec<u8>,
    /// Something of it was too long to keep.
    is_cut: bool,
}

impl Begun {
    /// The largest buffer that is kept for the next line.
    const KEPT: usize = 1 << 20;

    /// The beginning of the line at this offset, in the buffer of another one.
    fn at(offset: u64, mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        bytes.shrink_to(Self::KEPT);
        Self {
            offset,
            bytes,
            is_cut: false,
        }
    }
}

/// Neighbouring lines that are no entries.
#[derive(Debug)]
struct Held {
    offset: u64,
    bytes: Vec<u8>,
    lines: Vec<(u64, LineError)>,
}

impl<R: BufRead> Reader<R> {
    /// Reads from here; `inner` stands at the beginning of the file.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            line: 0,
            offset: 0,
            expected: EntryId::FIRST,
            held: None,
            ready: std::collections::VecDeque::new(),
            done: false,
            grows: false,
            begun: Begun::default(),
            line_open: false,
        }
    }

    /// Reads the rest of a file: `inner` stands at the beginning of a line, at this offset, behind all
    /// entries before `expected`. Lines are counted from there.
    pub(crate) fn behind(inner: R, offset: u64, expected: EntryId) -> Self {
        Self {
            offset,
            expected,
            begun: Begun::at(offset, Vec::new()),
            ..Self::new(inner)
        }
    }

    /// Reads a file that may still grow: at its end there is no item, and later perhaps one again. A
    /// last line that is not finished waits, and so does the judgement of lines before it that are no
    /// entries.
    pub fn growing(inner: R) -> Self {
        Self {
            grows: true,
            ..Self::new(inner)
        }
    }

    /// How many bytes were read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the last line that was read has no end.
    pub fn line_open(&self) -> bool {
        self.line_open
    }

    /// The next item, or `None` at the end of the file.
    pub fn read(&mut self) -> io::Result<Option<Item>> {
        let mut waits = false;
        while self.ready.is_empty() && !self.done && !waits {
            waits = self.read_line()?;
        }
        Ok(self.ready.pop_front())
    }

    /// Whether the line is not finished and waits for its end.
    fn read_line(&mut self) -> io::Result<bool> {
        self.take_line()?;
        let finished = self.begun.bytes.last() == Some(&b'\n');
        if self.grows && !finished {
            return Ok(true);
        }
        let Begun {
            offset,
            bytes,
            is_cut,
        } = std::mem::take(&mut self.begun);
        self.judge(offset, &bytes, is_cut);
        self.begun = Begun::at(self.offset, bytes);
        Ok(false)
    }

    /// Takes a line that is read, with its end, if it has one.
    fn judge(&mut self, offset: u64, bytes: &[u8], is_cut: bool) {
        if bytes.is_empty() {
            self.done = true;
            return self.end(None);
        }
        self.line += 1;
        let line = bytes.strip_suffix(b"\n");
        self.line_open = line.is_none();
        let decoded = if is_cut {
            Err(LineError::TooLong)
        } else {
            decode(line.unwrap_or(bytes))
        };
        match (decoded, line) {
            (Ok(entry), _) => self.entry(offset, self.offset - offset, entry),
            (Err(error), Some(line)) => self.hold(offset, line, error),
            (Err(error), None) => {
                self.hold(offset, bytes, error);
                self.done = true;
                self.end(Some(()));
            }
        }
    }

    /// Reads up to and including the next line end, or to the end of what there is.
    fn take_line(&mut self) -> io::Result<()> {
        let Begun { bytes, is_cut, .. } = &mut self.begun;
        loop {
            let buffer = match self.inner.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            // The standard library finds a byte faster than an iterator does.
            let taken = { buffer }.skip_until(b'\n')?;
            let part = &buffer[..taken];
            let is_end = part.last() == Some(&b'\n');
            if bytes.len() + taken <= LINE_READ {
                bytes.extend_from_slice(part);
            } else {
                *is_cut = true;
                if is_end {
                    bytes.push(b'\n');
                }
            }
            self.inner.consume(taken);
            self.offset += taken as u64;
            if is_end || taken == 0 {
                return Ok(());
            }
        }
    }

    fn hold(&mut self, offset: u64, bytes: &[u8], error: LineError) {
        let line = self.line;
        match &mut self.held {
            Some(held) => {
                held.bytes.push(b'\n');
                held.bytes.extend_from_slice(bytes);
                held.lines.push((line, error));
            }
            None => {
                self.held = Some(Held {
                    offset,
                    bytes: bytes.to_vec(),
                    lines: vec![(line, error)],
                });
            }
        }
    }

    fn entry(&mut self, offset: u64, bytes: u64, entry: Entry) {
        if let Some(held) = self.held.take() {
            let described = matches!(&entry.event, Event::Note(Note::Torn(torn)) if held.is(*torn));
            if !described {
                self.report(held);
            }
        }
        let id = entry.id;
        if id < self.expected {
            let damage = Damage {
                line: self.line,
                kind: DamageKind::Repeated(id),
            };
            self.ready.push_back(Item::Damage(damage));
            return;
        }
        if id > self.expected {
            let to = EntryId(id.0 - 1);
            let kind = DamageKind::Missing {
                from: self.expected,
                to,
            };
            self.ready.push_back(Item::Damage(Damage {
                line: self.line,
                kind,
            }));
        }
        self.expected = id.next();
        self.ready.push_back(Item::Entry {
            offset,
            bytes,
            entry: Arc::new(entry),
        });
    }

    fn report(&mut self, held: Held) {
        for (line, error) in held.lines {
            let kind = DamageKind::Line(error);
            self.ready.push_back(Item::Damage(Damage { line, kind }));
        }
    }

    /// Judges what is held at the end of the file. A line without its end is torn, together with
    /// the lines before it that are no entries either; so is a last line that was closed but not
    /// yet described, which can be told from damage by its missing checksum.
    fn end(&mut self, unfinished: Option<()>) {
        let Some(held) = self.held.take() else { return };
        let cut = matches!(held.lines.last(), Some((_, LineError::NoChecksum)));
        if unfinished.is_some() || cut {
            self.ready.push_back(Item::Torn(held.torn()));
        } else {
            self.report(held);
        }
    }
}

impl Held {
    fn torn(&self) -> Torn {
        let digest = Digest::of(&self.bytes);
        Torn {
            offset: self.offset,
            bytes: self.bytes.len() as u64,
            digest,
        }
    }

    fn is(&self, torn: Torn) -> bool {
        self.torn() == torn
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::At;

    /// Counts the bytes that are read of it.
    struct Counted<R> {
        inner: R,
        bytes: usize,
    }

    impl<R: io::Read> io::Read for Counted<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.inner.read(buffer)?;
            self.bytes += read;
            Ok(read)
        }
    }

    #[test]
    fn a_file_is_read_once_and_one_line_of_it_is_held() {
        let line = |id: u64| {
            // A long line among short ones.
            let text = "x".repeat(if id == 50 { 3 << 20 } else { 1000 });
            let event = Event::Note(Note::Warning { text });
            let (id, at) = (EntryId(id), At(0));
            encode(&Entry { id, at, event }).unwrap()
        };
        let bytes: Vec<u8> = (1..=100).flat_map(line).collect();
        let counted = Counted {
            inner: &bytes[..],
            bytes: 0,
        };
        let mut reader = Reader::new(io::BufReader::with_capacity(64 << 10, counted));
        let mut ends = 0;
        while let Some(item) = reader.read().unwrap() {
            let Item::Entry { offset, bytes, .. } = item else {
                panic!("{item:?}")
            };
            ends = offset + bytes;
            // What was read ahead is the buffer's.
            assert_eq!(ends, reader.offset());
            assert_eq!((reader.ready.len(), reader.begun.bytes.len()), (0, 0));
            assert!(reader.begun.bytes.capacity() <= Begun::KEPT);
        }
        assert_eq!(ends, bytes.len() as u64);
        assert_eq!(reader.inner.get_ref().bytes, bytes.len());
        assert!(!reader.line_open());
    }
}
