//! What a crash, damage or a failing device leaves, and how it is gone on with.

use super::*;

/// Opens what a crash left, and checks that the entries before are all there, that whatever was
/// torn is described once, and that the transcript goes on.
fn check_torn(bytes: &[u8], before: &[String]) -> MemoryStorage {
    let storage = MemoryStorage::with(bytes.to_vec());
    let mut recorder = open(storage.clone(), OnDamage::Refuse).unwrap();
    assert!(storage.appends() <= 1);
    let left = lines(&recorder);
    assert_eq!(&left[..before.len()], before);
    for entry in recorder
        .view()
        .transcript()
        .entries()
        .iter()
        .skip(before.len())
    {
        let torn = matches!(&entry.event, Event::Note(Note::Torn(_)));
        assert!(torn || storage.appends() == 0, "{entry:?}");
    }
    let next = recorder.record(user("goes on")).unwrap();
    assert_eq!(next.0, left.len() as u64 + 1);
    let written = lines(&recorder);

    assert!(storage.bytes().starts_with(bytes));
    let again = open(storage.clone(), OnDamage::Refuse).unwrap();
    assert_eq!(lines(&again), written);
    storage
}

#[test]
fn a_last_line_cut_at_any_byte_costs_at_most_that_entry() {
    let whole = transcript(4).bytes();
    let entries = lines(&open(transcript(4), OnDamage::Refuse).unwrap());
    let last = transcript(3).bytes().len();

    for cut in last..=whole.len() {
        let kept = if cut < whole.len() - 1 { 3 } else { 4 };
        let storage = check_torn(&whole[..cut], &entries[..kept]);
        let torn = cut > last && kept == 3;
        let recorder = open(storage, OnDamage::Refuse).unwrap();
        let fourth = recorder.view().transcript().get(EntryId(4)).unwrap();
        let note = matches!(&fourth.event, Event::Note(Note::Torn(torn))
            if (torn.offset, torn.bytes) == (last as u64, (cut - last) as u64));
        assert_eq!(note, torn, "cut at {cut}: {fourth:?}");
    }
}

#[test]
fn a_crash_while_a_torn_line_is_being_closed_is_survived_too() {
    let torn = {
        let whole = transcript(4).bytes();
        whole[..whole.len() - 40].to_vec()
    };
    let entries = lines(&open(transcript(3), OnDamage::Refuse).unwrap());
    let storage = MemoryStorage::with(torn.clone());
    open(storage.clone(), OnDamage::Refuse).unwrap();
    let closed = storage.bytes();
    for cut in torn.len()..=closed.len() {
        check_torn(&closed[..cut], &entries);
    }
}

#[test]
fn a_transcript_that_ends_before_its_first_entry_is_none() {
    let first = transcript(1).bytes();
    for cut in [0, 1, first.len() - 2] {
        let storage = MemoryStorage::with(first[..cut].to_vec());
        let error = open(storage.clone(), OnDamage::Accept).unwrap_err();
        assert!(matches!(error, RecordError::NoRun { .. }), "{error}");
        assert_eq!(storage.appends(), 0);
    }
}

#[test]
fn damage_is_reported_with_its_place_and_nothing_is_written_unless_it_is_accepted() {
    let mut bytes = transcript(5).bytes();
    let third = transcript(2).bytes().len();
    bytes[third + 60] ^= 1;
    let storage = MemoryStorage::with(bytes.clone());
    let error = open(storage.clone(), OnDamage::Refuse).unwrap_err();
    assert_eq!(
        told(&error),
        "transcript in memory is damaged: \
         line 3: checksum does not match; line 4: entry 3 is missing"
    );
    assert_eq!(storage.bytes(), bytes);

    // A second acceptance of the same damage has nothing to add.
    for _ in 0..2 {
        let recorder = open(storage.clone(), OnDamage::Accept).unwrap();
        let last = lines(&recorder).pop().unwrap();
        assert_eq!(
            last,
            "{\"id\":6,\"at\":\"2026-11-21T20:00:00.123Z\",\"type\":\"note\",\"kind\":\"damage\",\
             \"text\":\"line 3: checksum does not match; line 4: entry 3 is missing\"}"
        );
    }
    assert!(storage.bytes().starts_with(&bytes));
    let again = open(storage, OnDamage::Refuse).unwrap_err();
    assert_eq!(told(&again), told(&error));
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    let whole = transcript(4).bytes();
    let entries = lines(&open(transcript(4), OnDamage::Refuse).unwrap());
    for place in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[place / 8] ^= 1 << (place % 8);
        let storage = MemoryStorage::with(bytes);
        match open(storage.clone(), OnDamage::Refuse) {
            Err(RecordError::Damaged { damage, .. }) => assert!(!damage.is_empty()),
            Err(error) => panic!("bit {place}: {error}"),
            // Only the end of the last line can be mistaken for one that was never finished.
            Ok(recorder) => {
                let read = lines(&recorder);
                let noted = storage.appends() == 1 && read[..3] == entries[..3];
                assert!(noted || read == entries, "bit {place}: {read:#?}");
            }
        }
    }
}

#[test]
fn a_newer_format_and_a_file_that_is_no_transcript_are_told_apart() {
    let entry = |json: &str| {
        let entry = serde_json::from_str(json).unwrap();
        MemoryStorage::with(crate::transcript::jsonl::encode(&entry).unwrap())
    };
    let newer = "transcript in memory has format 2, this version knows formats up to 1";
    let none = "transcript in memory does not begin with a run";
    for (storage, message) in [
        (
            entry(r#"{"id":1,"type":"run","format":2,"shape":"new"}"#),
            newer,
        ),
        (
            entry(
                r#"{"id":1,"type":"run","format":2,"run":"01a1ffb1-ba7b-7000-8000-000000000001","workspace":"/w","generator":"g"}"#,
            ),
            newer,
        ),
        (entry(r#"{"id":1,"type":"run","shape":"strange"}"#), none),
        (entry(r#"{"id":1,"type":"pin","entry":3}"#), none),
        (
            MemoryStorage::with(b"{\"a\": 1}\n{\"b\": 2}\n".to_vec()),
            none,
        ),
    ] {
        let error = open(storage, OnDamage::Accept).unwrap_err();
        assert_eq!(told(&error), message);
    }
}

/// How far a script came: entries that were recorded, and those of them known to be durable.
#[derive(Default)]
struct Done {
    entries: usize,
    synced: usize,
}

/// Keeps, records and syncs until something fails, and checks that nothing can be done then.
fn play(storage: &MemoryStorage, done: &mut Done) -> Result<(), RecordError> {
    let clock = Clock::fixed(START);
    let mut recorder = Recorder::create(Box::new(storage.clone()), clock, run())?;
    done.entries = 1;
    for round in ["first", "second", "third"] {
        let played = play_round(&mut recorder, round, done);
        if played.is_err() {
            let left = storage.bytes();
            for refused in [
                recorder.record(user("after")).map(drop),
                recorder.sync(),
                recorder.keep(b"after").map(drop),
            ] {
                assert!(matches!(refused, Err(RecordError::Poisoned { .. })));
            }
            assert_eq!(storage.bytes(), left);
        }
        played?;
    }
    Ok(())
}

fn play_round(recorder: &mut Recorder, round: &str, done: &mut Done) -> Result<(), RecordError> {
    let blob = recorder.keep(round.as_bytes())?;
    recorder.record(user(round))?;
    done.entries += 1;
    let bytes = round.len() as u64;
    recorder.record(result(Some(Clipped { bytes, blob })))?;
    done.entries += 1;
    recorder.sync()?;
    done.synced = done.entries;
    Ok(())
}

#[test]
fn whatever_operation_fails_nothing_acknowledged_is_lost_and_nothing_follows() {
    let whole = MemoryStorage::default();
    play(&whole, &mut Done::default()).unwrap();
    assert_eq!(whole.operations(), 1 + 3 * 4);
    let entries = lines(&open(whole.clone(), OnDamage::Refuse).unwrap());

    for failure in [Failure::Refused, Failure::Short, Failure::Unsure] {
        for operation in 1..=whole.operations() {
            let storage = MemoryStorage::default();
            storage.fail(operation, failure);
            let mut done = Done::default();
            play(&storage, &mut done).unwrap_err();
            // The program ends, or the machine loses power.
            for (left, sure) in [
                (storage.after_power_loss(), done.synced),
                (storage, done.entries),
            ] {
                let mut recorder = match open(left.clone(), OnDamage::Refuse) {
                    Err(RecordError::NoRun { .. }) if sure == 0 => continue,
                    Err(error) => panic!("{failure:?} of {operation}: {error}"),
                    Ok(recorder) => recorder,
                };
                assert_eq!(lines(&recorder)[..sure], entries[..sure]);
                for entry in recorder.view().transcript().entries() {
                    if let Event::Result(result) = &entry.event {
                        let blob = result.clipped.unwrap().blob.unwrap();
                        assert!(left.read_blob(blob).unwrap().is_some());
                    }
                }
                recorder.record(user("goes on")).unwrap();
                recorder.sync().unwrap();
                let written = lines(&recorder);
                assert_eq!(lines(&open(left, OnDamage::Refuse).unwrap()), written);
            }
        }
    }
}
