//! Reading a long transcript ahead: one thread makes items of its bytes while another takes them in.
//!
//! What is read ahead is bounded, so that a transcript may be longer than memory. A short one, and one
//! that is read where no thread can be had, is read on the spot.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use crate::transcript::Entry;
use crate::transcript::jsonl::{Item, Reader};

/// So many bytes are read before another thread is worth its while.
const LONG: u64 = 4 << 20;

/// How many items, and about how many bytes of them, are handed over at once.
const PART: (usize, u64) = (256, 256 << 10);

/// How many parts may wait to be taken in.
const WAITING: usize = 2;

/// Reads everything that there is, and hands it to `take` in its order.
///
/// Entries that `take` is done with it gives back, and they are dropped by the thread that made them: one
/// that frees what another allocates has it wait.
pub(super) fn read<R: BufRead + Send>(
    reader: &mut Reader<R>,
    mut take: impl FnMut(Item) -> Vec<Arc<Entry>>,
) -> io::Result<()> {
    let long = reader.offset() + LONG;
    while reader.offset() < long {
        match reader.read()? {
            Some(item) => drop(take(item)),
            None => return Ok(()),
        }
    }
    let read = thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(WAITING);
        let (back, spent) = mpsc::channel();
        let reader = &mut *reader;
        let ahead = move || send(reader, &sender, &spent);
        let ahead = thread::Builder::new().spawn_scoped(scope, ahead).ok()?;
        for part in receiver {
            let spent: Vec<_> = part.into_iter().flat_map(&mut take).collect();
            // Where nothing more is read, nobody takes it back.
            back.send(spent).ok();
        }
        Some(ahead.join())
    });
    match read {
        Some(Ok(read)) => read,
        Some(Err(panic)) => std::panic::resume_unwind(panic),
        None => reader.try_for_each(|item| item.map(|item| drop(take(item)))),
    }
}

/// Sends what is read, until there is no more or nobody takes it.
fn send<R: BufRead>(
    reader: &mut Reader<R>,
    sender: &SyncSender<Vec<Item>>,
    spent: &Receiver<Vec<Arc<Entry>>>,
) -> io::Result<()> {
    let mut is_end = false;
    while !is_end {
        spent.try_iter().for_each(drop);
        let (mut part, begin) = (Vec::with_capacity(PART.0), reader.offset());
        while !is_end && part.len() < PART.0 && reader.offset() - begin < PART.1 {
            let item = reader.read()?;
            is_end = item.is_none();
            part.extend(item);
        }
        is_end |= sender.send(part).is_err();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::EntryId;
    use crate::transcript::{At, Event, Note, jsonl};

    /// Bytes that cannot be read to their end.
    struct Failing<'a>(&'a [u8]);

    impl io::Read for Failing<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::Error::other("told to fail")),
                read => Ok(read),
            }
        }
    }

    #[test]
    fn a_long_file_reads_the_same_ahead_with_its_damage_and_its_torn_end() {
        let mut bytes = Vec::new();
        let mut id = 0;
        while (bytes.len() as u64) < 2 * LONG {
            id += 1;
            let text = "x".repeat(if id % 1000 == 0 { 1 << 20 } else { 1 << 10 });
            let event = Event::Note(Note::Warning { text });
            let (at, is_damaged) = (At(0), id % 997 == 0);
            let id = EntryId(id);
            bytes.extend(jsonl::encode(&Entry { id, at, event }).unwrap());
            if is_damaged {
                bytes.extend_from_slice(b"damage\n");
            }
        }
        for end in [&b""[..], b"{\"id\":"] {
            let bytes = [&bytes, end].concat();
            let items = Reader::new(&bytes[..]).map(|item| format!("{:?}", item.unwrap()));
            let items: Vec<String> = items.collect();
            assert!(items.len() > 2000);

            let mut reader = Reader::new(&bytes[..]);
            let mut ahead = Vec::new();
            read(&mut reader, |item| {
                ahead.push(format!("{item:?}"));
                let Item::Entry { entry, .. } = item else {
                    return Vec::new();
                };
                vec![entry]
            })
            .unwrap();
            assert!(ahead == items);
            assert_eq!(reader.offset(), bytes.len() as u64);
            assert_eq!(reader.line_open(), !end.is_empty());
        }
        let mut reader = Reader::new(io::BufReader::new(Failing(&bytes)));
        let failed = read(&mut reader, |_| Vec::new()).unwrap_err();
        assert_eq!(failed.to_string(), "told to fail");
    }
}
