//! The recorder over memory and files: what is written, what survives, what is refused.

mod crashes;
mod files;
mod forks;
mod index;
#[cfg(target_os = "linux")]
mod synced;

use super::*;
use crate::exchange::{Clipped, Facts, Status, ToolResult};
use crate::id::CallId;
use crate::transcript::{Attachment, Speaker, User};

const START: At = At(1_795_291_200_123);

fn run() -> Run {
    Run {
        format: FORMAT,
        run: Clock::fixed(START).new_run(),
        workspace: "/w".to_owned(),
        generator: "undertext 0.1.0".to_owned(),
        name: None,
        parent: None,
        imported: None,
        batch: None,
    }
}

fn user(text: &str) -> Event {
    Event::User(User {
        origin: Speaker::FollowUp,
        text: text.to_owned(),
        attachments: vec![Attachment {
            name: "a.txt".to_owned(),
            media: "text/plain".to_owned(),
            text: "attached".to_owned(),
            clipped: None,
        }],
        clipped: None,
    })
}

fn result(clipped: Option<Clipped>) -> Event {
    Event::Result(ToolResult {
        call: CallId::new(EntryId(2), 1),
        status: Status::Ok,
        content: "as the model reads it".to_owned(),
        clipped,
        facts: Facts::default(),
        ms: None,
    })
}

fn create(storage: impl Storage + 'static) -> Recorder {
    Recorder::create(Box::new(storage), Clock::fixed(START), run()).unwrap()
}

fn open(storage: impl Storage + 'static, damage: OnDamage) -> Result<Recorder, RecordError> {
    Recorder::open(Box::new(storage), Clock::fixed(START), damage)
}

/// A transcript of this many entries, the run's own among them.
fn transcript(entries: u64) -> MemoryStorage {
    let storage = MemoryStorage::default();
    let mut recorder = create(storage.clone());
    for number in 2..=entries {
        recorder.record(user(&format!("text {number}"))).unwrap();
    }
    storage
}

/// The entries as text, one a line.
fn lines(recorder: &Recorder) -> Vec<String> {
    let entries = recorder.view().transcript().entries();
    entries
        .iter()
        .map(|entry| serde_json::to_string(entry).unwrap())
        .collect()
}

/// An error and its causes as text.
fn told(error: &dyn std::error::Error) -> String {
    match error.source() {
        None => error.to_string(),
        Some(source) => format!("{error}: {}", told(source)),
    }
}

#[test]
fn an_entry_is_one_write_and_a_sync_without_anything_new_is_none() {
    let storage = MemoryStorage::default();
    let mut recorder = create(storage.clone());
    let counts = |recorder: &Recorder| (storage.appends(), storage.syncs(), recorder.syncs());
    assert_eq!(counts(&recorder), (1, 0, 0));
    recorder.sync().unwrap();
    recorder.sync().unwrap();
    assert_eq!(counts(&recorder), (1, 1, 1));
    recorder.record(user("one")).unwrap();
    recorder.record(user("two")).unwrap();
    recorder.sync().unwrap();
    assert_eq!(counts(&recorder), (3, 2, 2));

    // Whoever wrote the last lines may not have synced them.
    let mut recorder = open(storage.clone(), OnDamage::Refuse).unwrap();
    recorder.sync().unwrap();
    recorder.sync().unwrap();
    assert_eq!(counts(&recorder), (3, 3, 1));
}

#[test]
fn what_cannot_be_a_line_is_refused_before_anything_is_written() {
    let storage = transcript(2);
    let before = storage.bytes();
    let mut recorder = open(storage.clone(), OnDamage::Refuse).unwrap();
    let error = recorder.record(user(&"x".repeat(4 << 20))).unwrap_err();
    assert_eq!(
        told(&error),
        "cannot record entry 3: entry of 4194479 bytes is longer than 4194304"
    );
    let foreign = serde_json::from_str::<Entry>(r#"{"id":7,"type":"dream"}"#).unwrap();
    let error = recorder.record(foreign.event).unwrap_err();
    assert!(matches!(error, RecordError::Unknown));
    assert_eq!(storage.bytes(), before);
    assert_eq!(recorder.record(user("short")).unwrap(), EntryId(3));

    let taken = Recorder::create(Box::new(storage), Clock::fixed(START), run());
    assert!(matches!(taken, Err(RecordError::NotEmpty { .. })));
}
