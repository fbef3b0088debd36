//! What holds of whatever stands in a transcript's file: the body of a fuzz target below `fuzz/`,
//! which panics where a promise is broken.
//!
//! Only fuzz builds and tests have it; the tests replay the inputs that are kept. An input is one
//! line that says how to read it, then the file: as it is if the line is `raw`, else with a checksum
//! made for each line that is closed like an object, since no fuzzer guesses one.

#![expect(
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "it is there to panic"
)]

use std::io::BufReader;

use crate::id::EntryId;
use crate::record::{Clock, MemoryStorage, OnDamage, RecordError, Recorder};
use crate::transcript::jsonl::{Damage, DamageKind, Item, Reader};
use crate::transcript::{At, Entry, Event, Note, Purpose, Speaker, Torn, User};

/// What stands behind the JSON of each line.
const FRAME: &str = r#","crc":"00000000"}"#;

/// Every byte of a file is an entry or told of with its place; the report is the same each time; and
/// what can be gone on with is, without a byte being changed.
pub fn transcript(input: &[u8]) {
    let (line, text) = first_line(input);
    let bytes = if line == "raw" {
        text.to_vec()
    } else {
        framed(text)
    };
    let items = items(Reader::new(&bytes[..]));
    told(&bytes, &items);
    let small = BufReader::with_capacity(7, &bytes[..]);
    let said = format!("{items:?}");
    assert_eq!(said, format!("{:?}", self::items(Reader::new(small))));
    // Whoever follows a file that grows is told the same, but not what the end alone can say.
    let mut growing = Reader::growing(&bytes[..]);
    for item in &items {
        match growing.read() {
            Ok(Some(grown)) => assert_eq!(format!("{grown:?}"), format!("{item:?}")),
            Ok(None) => break,
            Err(error) => panic!("{error}"),
        }
    }
    taken_up(&bytes);
}

/// The lines with checksums.
fn framed(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() * 2);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let end: &[u8] = if line.ends_with(b"\n") { b"\n" } else { b"" };
        match line.strip_suffix(end).and_then(|it| it.strip_suffix(b"}")) {
            Some(json) => {
                bytes.extend_from_slice(json);
                let crc = crc32c::crc32c(json);
                bytes.extend_from_slice(format!(",\"crc\":\"{crc:08x}\"}}").as_bytes());
                bytes.extend_from_slice(end);
            }
            None => bytes.extend_from_slice(line),
        }
    }
    bytes
}

fn items(reader: Reader<impl std::io::BufRead>) -> Vec<Item> {
    let items: std::io::Result<Vec<Item>> = reader.collect();
    match items {
        Ok(items) => items,
        Err(error) => panic!("{error}"),
    }
}

/// Each line is an entry, or damage, or the remains of a torn one; and no id is passed over.
fn told(bytes: &[u8], items: &[Item]) {
    let damage: Vec<&Damage> = items
        .iter()
        .filter_map(|item| match item {
            Item::Damage(damage) => Some(damage),
            Item::Entry { .. } | Item::Torn(_) => None,
        })
        .collect();
    let mut entries = items.iter().filter_map(|item| match item {
        Item::Entry {
            offset,
            bytes,
            entry,
        } => Some((*offset, *bytes, &**entry)),
        Item::Damage(_) | Item::Torn(_) => None,
    });
    let torn = match items.last() {
        Some(Item::Torn(torn)) => Some(*torn),
        Some(Item::Entry { .. } | Item::Damage(_)) | None => None,
    };
    let mut next = entries.next();
    let (mut offset, mut expected) = (0, EntryId::FIRST);
    // Lines that are no entries, from where they begin, until an entry says what they are.
    let mut unsaid: Option<(u64, Vec<u64>)> = None;
    for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let is_told = damage.iter().any(|damage| damage.line == number);
        match next {
            Some((at, length, entry)) if at == offset => {
                assert_eq!(length, line.len() as u64);
                let read = the_long_way(line.strip_suffix(b"\n").unwrap_or(line));
                assert!(read.is_some_and(|read| format!("{read:?}") == format!("{entry:?}")));
                assert!(entry.id >= expected, "ids grow");
                let missing = entry.id > expected;
                assert_eq!(missing, says_missing(&damage, number, entry.id));
                expected = entry.id.next();
                if let Some((from, lines)) = unsaid.take() {
                    let described = describes(entry, from, offset - from);
                    assert!(described, "lines {lines:?} are told of");
                }
                next = entries.next();
            }
            Some(_) | None if is_told => {}
            Some(_) | None => match &mut unsaid {
                Some((_, lines)) => lines.push(number),
                None => unsaid = Some((offset, vec![number])),
            },
        }
        offset += line.len() as u64;
    }
    assert!(next.is_none(), "every entry is a line");
    match (unsaid, torn) {
        (Some((from, _)), Some(torn)) => assert!(covers(torn, from, offset - from)),
        (None, None) => {}
        other => panic!("{other:?}"),
    }
}

/// The entry of a line as any JSON is read: no short way reads it as something else.
fn the_long_way(line: &[u8]) -> Option<Entry> {
    let json = line.get(..line.len().checked_sub(FRAME.len())?)?;
    serde_json::from_slice(&[json, b"}"].concat()).ok()
}

fn says_missing(damage: &[&Damage], line: u64, before: EntryId) -> bool {
    damage.iter().any(|damage| {
        let to = match damage.kind {
            DamageKind::Missing { to, .. } => Some(to.next()),
            DamageKind::Line(_) | DamageKind::Repeated(_) => None,
        };
        damage.line == line && to == Some(before)
    })
}

/// Whether an entry is the note of what was torn here.
fn describes(entry: &Entry, offset: u64, bytes: u64) -> bool {
    matches!(&entry.event, Event::Note(Note::Torn(torn)) if covers(*torn, offset, bytes))
}

/// The last line end is not torn.
fn covers(torn: Torn, offset: u64, bytes: u64) -> bool {
    torn.offset == offset && (torn.bytes == bytes || torn.bytes + 1 == bytes)
}

/// It is refused with nothing written, or goes on, and reads the same ever after.
fn taken_up(bytes: &[u8]) {
    let open = |storage: &MemoryStorage, damage| {
        Recorder::open(Box::new(storage.clone()), Clock::fixed(At(0)), damage)
    };
    let storage = MemoryStorage::with(bytes.to_vec());
    let refused = match open(&storage, OnDamage::Refuse) {
        Ok(recorder) => return gone_on(recorder, &storage, bytes, None),
        Err(error) => error,
    };
    assert_eq!(storage.bytes(), bytes, "{refused}");
    match (&refused, open(&storage, OnDamage::Accept)) {
        (RecordError::Damaged { damage, .. }, Ok(recorder)) => {
            assert!(!damage.is_empty());
            gone_on(recorder, &storage, bytes, Some(&refused.to_string()));
        }
        (_, Err(error @ (RecordError::NoRun { .. } | RecordError::Newer { .. }))) => {
            assert_eq!(storage.bytes(), bytes, "{error}");
        }
        (_, other) => panic!("{other:?}"),
    }
}

fn gone_on(mut recorder: Recorder, storage: &MemoryStorage, bytes: &[u8], refused: Option<&str>) {
    drop(recorder.view().messages());
    drop(recorder.view().body(&Purpose::Round));
    let said = Event::User(User {
        origin: Speaker::FollowUp,
        text: "goes on".to_owned(),
        attachments: Vec::new(),
        clipped: None,
    });
    // No id is left behind the largest one.
    if recorder.record(said).is_err() {
        return;
    }
    let entries = format!("{:?}", recorder.view().transcript().entries().to_vec());
    assert!(storage.bytes().starts_with(bytes));
    for damage in [OnDamage::Refuse, OnDamage::Accept] {
        let again = Recorder::open(Box::new(storage.clone()), Clock::fixed(At(0)), damage);
        match (again, refused) {
            (Ok(again), _) if damage == OnDamage::Accept || refused.is_none() => {
                assert_eq!(
                    format!("{:?}", again.view().transcript().entries().to_vec()),
                    entries
                );
            }
            (Err(error), Some(refused)) if damage == OnDamage::Refuse => {
                assert_eq!(error.to_string(), refused);
            }
            (other, _) => panic!("{other:?}"),
        }
    }
}

/// The line that says how to read an input, and what follows it.
pub(crate) fn first_line(input: &[u8]) -> (String, &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n');
    let (line, rest) = input.split_at(end.unwrap_or(input.len()));
    let line = String::from_utf8_lossy(line).into_owned();
    (line, rest.get(1..).unwrap_or_default())
}

/// Takes every input that is kept of a target.
#[cfg(test)]
pub(crate) fn replay(target: &str, holds: impl Fn(&[u8])) {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut replayed = 0;
    for input in std::fs::read_dir(corpus.join(target)).unwrap() {
        let path = input.unwrap().path();
        // Shown if it breaks a promise.
        println!("{}", path.display());
        holds(&std::fs::read(path).unwrap());
        replayed += 1;
    }
    assert!(replayed > 0, "{target}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_fuzzing_kept_holds() {
        super::replay("transcript", super::transcript);
    }
}
