//! Transcripts that are cut or damaged: every byte is an entry or told of with its place.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use undertext::agent::Task;
use undertext::exchange::Ending;
use undertext::export::{Shown, markdown};
use undertext::model::{Reply, Script, Scripted};
use undertext::record::{Clock, MemoryStorage, OnDamage, RecordError, Recorder};
use undertext::setup::Policy;
use undertext::transcript::jsonl::{self, Item, Reader};
use undertext::transcript::{Entry, Event, Note, Reason, Speaker, Torn, User};

use crate::crash::{Draw, times};
use crate::scene;

/// A run that was compacted in several ways.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

fn open(bytes: &[u8], damage: OnDamage) -> (MemoryStorage, Result<Recorder, RecordError>) {
    let storage = MemoryStorage::with(bytes.to_vec());
    let clock = Clock::fixed(scene::BEGIN.plus_ms(60_000));
    let recorder = Recorder::open(Box::new(storage.clone()), clock, damage);
    (storage, recorder)
}

fn text(entries: &[Arc<Entry>]) -> Vec<String> {
    let text = entries.iter().map(serde_json::to_string);
    text.collect::<Result<_, _>>().unwrap()
}

fn said(text: &str) -> Event {
    Event::User(User {
        origin: Speaker::FollowUp,
        text: text.to_owned(),
        attachments: Vec::new(),
        clipped: None,
    })
}

/// Where each line begins, and where the last one ends.
fn lines(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    std::iter::once(0)
        .chain(ends.map(|(at, _)| at + 1))
        .collect()
}

/// What a file holds: the bytes of its entries' lines, the lines that are damaged, and what is torn.
fn held(bytes: &[u8]) -> (Vec<&[u8]>, Vec<u64>, Option<Torn>) {
    let (mut entries, mut damaged, mut torn) = (Vec::new(), Vec::new(), None);
    for item in Reader::new(bytes) {
        match item.unwrap() {
            Item::Entry {
                offset,
                bytes: length,
                ..
            } => {
                let from = usize::try_from(offset).unwrap();
                let to = from + usize::try_from(length).unwrap();
                entries.push(&bytes[from..to]);
            }
            Item::Damage(damage) => damaged.push(damage.line),
            Item::Torn(it) => torn = Some(it),
        }
    }
    (entries, damaged, torn)
}

/// Reads what is left of a file that was cut here, and checks that no whole line is lost, and that what
/// is torn is told with its place.
fn check_cut(whole: &[u8], cut: usize) {
    let begins = lines(whole);
    // A line that lacks nothing but its end is whole.
    let kept = begins.iter().skip(1).filter(|end| **end <= cut + 1).count();
    let (entries, damaged, torn) = held(&whole[..cut]);
    assert_eq!((entries.len(), damaged), (kept, Vec::new()), "cut at {cut}");
    let begins = begins[kept];
    let place = (begins < cut).then(|| (begins as u64, (cut - begins) as u64));
    assert_eq!(torn.map(|it| (it.offset, it.bytes)), place, "cut at {cut}");
}

/// Goes on with what is left of a file that was cut here, after a word or to the end of the run.
fn check_gone_on(whole: &[u8], entries: &[String], cut: usize, ends: bool) {
    let (kept, _, torn) = held(&whole[..cut]);
    let kept = kept.len();
    let (storage, recorder) = open(&whole[..cut], OnDamage::Refuse);
    let mut recorder = recorder.unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
    let read = recorder.view().transcript().entries().to_vec();
    assert_eq!(text(&read[..kept]), entries[..kept], "cut at {cut}");
    let note = read.get(kept).map(|entry| &entry.event);
    assert!(match (note, torn) {
        (Some(Event::Note(Note::Torn(note))), Some(torn)) => *note == torn,
        (note, torn) => note.is_none() && torn.is_none(),
    });
    if ends {
        let model = Scripted::new([Reply::text("Done.").into()])
            .with_summaries(|_| Ok(Reply::text("What was done.")));
        let agent = scene::agent(100_000, Policy::default(), model);
        let ended = scene::go(&agent, &mut recorder, Some(Task::new("Go on.")));
        assert_eq!(ended.unwrap().reason, Reason::Finished, "cut at {cut}");
    } else {
        recorder.record(said("goes on")).unwrap();
    }
    let written = recorder.view().transcript().entries().len();
    let bytes = storage.bytes();
    assert!(bytes.starts_with(&whole[..cut]), "cut at {cut}");
    // Whatever was torn is described by now.
    let (read, damaged, torn) = held(&bytes);
    assert_eq!(
        (read.len(), damaged, torn),
        (written, Vec::new(), None),
        "cut at {cut}"
    );
}

#[test]
fn a_run_cut_at_any_byte_of_its_end_loses_at_most_its_last_entry() {
    let whole = std::fs::read(GOLDEN).unwrap();
    let (_, recorder) = open(&whole, OnDamage::Refuse);
    let entries = text(&recorder.unwrap().view().transcript().entries().to_vec());
    let from = whole.len() - (64 << 10);
    // All of them, or some everywhere and all around the ends of lines.
    let step = usize::try_from(times("UNDERTEXT_CUTS", 997)).unwrap();
    let some = (from..=whole.len()).step_by(step);
    let ends = lines(&whole).into_iter().filter(|end| *end > from);
    let around = ends
        .step_by(12)
        .flat_map(|end| end - 2..=(end + 1).min(whole.len()));
    let cuts: BTreeSet<usize> = some.chain(around).collect();
    for (count, cut) in cuts.iter().enumerate() {
        check_cut(&whole, *cut);
        if count % 8 == 0 {
            check_gone_on(&whole, &entries, *cut, count % 128 == 0);
        }
    }
    println!("{} cuts", cuts.len());
}

/// A small run.
fn small() -> Vec<u8> {
    let script: Vec<Script> = vec![
        Reply::calls([("Change", r#"{"path":"a","chars":60}"#)]).into(),
        Reply {
            ending: Ending::Cut,
            ..Reply::calls([("Show", "{")])
        }
        .into(),
        Reply::text("Done.").into(),
    ];
    let storage = MemoryStorage::default();
    let agent = scene::agent(100_000, Policy::default(), Scripted::new(script));
    let ended = scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go.")));
    assert_eq!(ended.unwrap().reason, Reason::Finished);
    storage.bytes()
}

/// The file with bits flipped, each given by its place.
fn flipped(whole: &[u8], bits: &[usize]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for bit in bits {
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    bytes
}

/// Reads a file in which these bits are flipped, and checks that nothing reads otherwise than it was
/// written, and that what does not read is told with its place. `false` if only its end is torn.
fn check_flipped(whole: &[u8], bits: &[usize]) -> bool {
    let bytes = flipped(whole, bits);
    let begins = lines(whole);
    let line_of = |bit: &usize| begins.iter().skip(1).filter(|end| **end <= bit / 8).count() + 1;
    let first = bits.iter().map(line_of).min().unwrap();
    let (entries, damaged, torn) = held(&bytes);
    let (written, ..) = held(whole);
    let known = |entry: &&[u8]| written.contains(entry);
    assert!(entries.iter().all(known), "{bits:?}: another entry");
    if damaged.is_empty() {
        // Nothing but the end of the last line looks as if it was never finished.
        let at = torn.map(|it| it.offset);
        assert_eq!(at, Some(begins[first - 1] as u64), "{bits:?}: silent");
        assert_eq!(entries, written[..entries.len()], "{bits:?}");
    } else {
        let is_there = damaged.contains(&(first as u64));
        assert!(is_there, "{bits:?}: line {first}, but told of {damaged:?}");
    }
    !damaged.is_empty()
}

/// Opens a file that is damaged there, and checks that it is refused with nothing written, twice in the
/// same words, and that what is left can be shown and gone on with if a person says so.
fn check_accepted(whole: &[u8], bits: &[usize]) {
    let bytes = flipped(whole, bits);
    let (storage, recorder) = open(&bytes, OnDamage::Refuse);
    let error = recorder.unwrap_err();
    assert_eq!(storage.bytes(), bytes, "{bits:?}: nothing is written");
    assert!(
        matches!(error, RecordError::Damaged { .. }),
        "{bits:?}: {error}"
    );
    match open(&bytes, OnDamage::Accept) {
        (_, Err(RecordError::NoRun { .. })) => {
            let first = lines(whole)[1];
            assert!(bits.iter().any(|bit| bit / 8 < first), "{bits:?}");
        }
        (storage, Ok(mut recorder)) => {
            let read = text(&recorder.view().transcript().entries().to_vec());
            let note = read.last().unwrap();
            assert!(note.contains("\"kind\":\"damage\""), "{bits:?}: {note}");
            let mut page = Vec::new();
            markdown::write(recorder.view(), Shown::Both, &mut page).unwrap();
            recorder.record(said("goes on")).unwrap();
            let (_, again) = open(&storage.bytes(), OnDamage::Refuse);
            assert_eq!(again.unwrap_err().to_string(), error.to_string());
        }
        (_, Err(error)) => panic!("{bits:?}: {error}"),
    }
}

#[test]
fn no_flipped_bits_are_passed_over() {
    let whole = small();
    let bits = whole.len() * 8;
    let flips = usize::try_from(times("UNDERTEXT_FLIPS", 3_000)).unwrap();
    let mut draw = Draw(flips as u64);
    let mut damaged = 0;
    for count in 0..flips {
        // Each bit once, if there are enough; then some at once.
        let flipped: BTreeSet<usize> = if flips > bits && count < bits {
            BTreeSet::from([count])
        } else {
            (0..=draw.below(4)).map(|_| draw.below(bits)).collect()
        };
        let flipped = Vec::from_iter(flipped);
        if check_flipped(&whole, &flipped) {
            damaged += 1;
            if count % 32 == 0 {
                check_accepted(&whole, &flipped);
            }
        }
        if count % 100_000 == 99_999 {
            println!("{} of {flips} flips", count + 1);
        }
    }
    println!(
        "{flips} flips in {} bytes, {damaged} are damage",
        whole.len()
    );
}

/// What stands in a file instead of its third line, and what is said of it.
#[test]
fn whatever_stands_in_a_line_is_told_with_its_place() {
    let whole = small();
    let begins = lines(&whole);
    let line = |number: usize| whole[begins[number - 1]..begins[number]].to_vec();
    let framed = |json: &str| {
        let json = &json[..json.len() - 1];
        let crc = crc32c::crc32c(json.as_bytes());
        format!("{json},\"crc\":\"{crc:08x}\"}}\n").into_bytes()
    };
    let mut told = String::new();
    for (what, bytes) in [
        ("NUL", vec![0; line(3).len()]),
        ("NUL and a line end", [vec![0; 600], vec![b'\n']].concat()),
        ("nothing", Vec::new()),
        ("an empty line", b"\n".to_vec()),
        ("the line before", line(2)),
        ("a later line", line(5)),
        ("the line twice", [line(3), line(3)].concat()),
        (
            "no UTF-8",
            framed_bytes(b"{\"id\":3,\"type\":\"user\",\"origin\":\"task\",\"text\":\"\xff\""),
        ),
        (
            "half a surrogate",
            framed(r#"{"id":3,"type":"user","origin":"task","text":"\ud800"}"#),
        ),
        (
            "an unknown type",
            framed(r#"{"id":3,"type":"dream","depth":[1,{"a":null}]}"#),
        ),
        (
            "a wrong type",
            framed(r#"{"id":3,"type":"user","origin":"task","text":7}"#),
        ),
        (
            "an unknown word",
            framed(r#"{"id":3,"type":"user","origin":"angel","text":"a"}"#),
        ),
        (
            "an unknown field",
            framed(r#"{"id":3,"type":"user","origin":"task","text":"a","mood":"b"}"#),
        ),
        (
            "an id of no number",
            framed(r#"{"id":"3","type":"pin","entry":1}"#),
        ),
        (
            "the largest id",
            framed(r#"{"id":18446744073709551615,"type":"pin","entry":1}"#),
        ),
        ("id 0", framed(r#"{"id":0,"type":"pin","entry":1}"#)),
        (
            "too long a line",
            [vec![b'x'; jsonl::LINE_READ + 1], vec![b'\n']].concat(),
        ),
    ] {
        let file = [&whole[..begins[2]], &bytes, &whole[begins[3]..]].concat();
        let (_, opened) = open(&file, OnDamage::Refuse);
        let said = match &opened {
            Ok(recorder) => {
                let third = recorder
                    .view()
                    .transcript()
                    .get(undertext::id::EntryId(3))
                    .unwrap();
                format!("reads as {}", serde_json::to_string(third).unwrap())
            }
            Err(error) => error.to_string(),
        };
        let read = Reader::new(&file[..]).map(Result::unwrap);
        let entries = read
            .filter(|item| matches!(item, Item::Entry { .. }))
            .count();
        let said: String = said.chars().take(150).collect();
        writeln!(told, "{what}: {entries} entries, {said}").unwrap();
    }
    insta::assert_snapshot!(told, @r#"
    NUL: 11 entries, transcript in memory is damaged: line 3: checksum does not match; line 4: entries 3 to 4 are missing
    NUL and a line end: 12 entries, transcript in memory is damaged: line 3: no checksum; line 4: entry 3 is missing
    nothing: 12 entries, transcript in memory is damaged: line 3: entry 3 is missing
    an empty line: 12 entries, transcript in memory is damaged: line 3: no checksum; line 4: entry 3 is missing
    the line before: 12 entries, transcript in memory is damaged: line 3: entry 2 is there twice; line 4: entry 3 is missing
    a later line: 11 entries, transcript in memory is damaged: line 3: entries 3 to 4 are missing; line 4: entry 4 is there twice; line 5: entry 5 is there twice
    the line twice: 13 entries, transcript in memory is damaged: line 4: entry 3 is there twice
    no UTF-8: 12 entries, transcript in memory is damaged: line 3: no entry: stream did not contain valid UTF-8; line 4: entry 3 is missing
    half a surrogate: 13 entries, reads as {"id":3,"type":"user","origin":"task","text":"\ud800"}
    an unknown type: 13 entries, reads as {"id":3,"type":"dream","depth":[1,{"a":null}]}
    a wrong type: 13 entries, reads as {"id":3,"type":"user","origin":"task","text":7}
    an unknown word: 13 entries, reads as {"id":3,"type":"user","origin":"angel","text":"a"}
    an unknown field: 13 entries, reads as {"id":3,"at":"1970-01-01T00:00:00.000Z","type":"user","origin":"task","text":"a"}
    an id of no number: 12 entries, transcript in memory is damaged: line 3: no entry: invalid type: string "3", expected u64 at line 1 column 9; line 4: entry 3 is missing
    the largest id: 3 entries, transcript in memory is damaged: line 3: entries 3 to 18446744073709551614 are missing; line 4: entry 4 is there twice; line 5: entry 5 is there twice
    id 0: 12 entries, transcript in memory is damaged: line 3: entry 0 is there twice; line 4: entry 3 is missing
    too long a line: 12 entries, transcript in memory is damaged: line 3: line of more than 67108864 bytes; line 4: entry 3 is missing
    "#);
}

fn framed_bytes(json: &[u8]) -> Vec<u8> {
    let crc = crc32c::crc32c(json);
    [json, format!(",\"crc\":\"{crc:08x}\"}}\n").as_bytes()].concat()
}

/// What a person or a model wrote reads as it was, in one line of the file.
#[test]
fn any_text_is_one_line_and_reads_as_it_was() {
    let texts = [
        "NUL \0 and \u{1}",
        "\u{2028}\u{2029}\u{85}\u{feff}",
        "\r\n\n\r",
        "\u{fffd}\u{10ffff}\u{202e}",
        "\",\"crc\":\"00000000\"}",
        "\\ud800",
        "",
    ];
    let storage = MemoryStorage::default();
    let mut recorder = scene::create(&storage);
    for text in texts {
        recorder.record(said(text)).unwrap();
    }
    let bytes = storage.bytes();
    assert_eq!(lines(&bytes).len(), 1 + 1 + texts.len());
    let read = scene::entries(&storage);
    for (entry, text) in read[1..].iter().zip(texts) {
        assert!(matches!(&entry.event, Event::User(user) if user.text == text));
    }
}
