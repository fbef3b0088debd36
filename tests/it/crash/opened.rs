//! Many open one transcript at once: one has it, the others say so.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use undertext::record::{Clock, Durability, FileError, FileStorage, OnDamage, Recorder, runs};
use undertext::transcript::{Event, Speaker, User};

use crate::crash::times;
use crate::scene;

/// How many open it at once.
const OPENERS: u64 = 64;

#[test]
fn of_many_that_open_a_transcript_at_once_one_has_it_and_the_others_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::fixed(scene::BEGIN);
    let run = scene::run(&clock);
    let storage = FileStorage::create(dir.path(), run.run, Durability::None).unwrap();
    let path = storage.path().to_owned();
    drop(Recorder::create(Box::new(storage), clock, run).unwrap());

    let rounds = times("UNDERTEXT_ROUNDS", 20);
    let openers = if rounds < 100 { 16 } else { OPENERS };
    let barrier = || Barrier::new(usize::try_from(openers).unwrap());
    let (ready, tried) = (barrier(), barrier());
    let [won, lost, slowest] = [(); 3].map(|()| AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..openers {
            scope.spawn(|| {
                for round in 1..=rounds {
                    ready.wait();
                    let watch = Clock::System.stopwatch();
                    let opened = FileStorage::open(&path, Durability::None);
                    slowest.fetch_max(watch.ms(), Ordering::Relaxed);
                    // The one that has it keeps it until all have tried.
                    tried.wait();
                    match opened {
                        Ok(storage) => {
                            let clock = Clock::fixed(scene::BEGIN);
                            let storage = Box::new(storage);
                            let recorder = Recorder::open(storage, clock, OnDamage::Refuse);
                            recorder.unwrap().record(said(round)).unwrap();
                            won.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(FileError::InUse { .. }) => {
                            lost.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let [won, lost, slowest] = [won, lost, slowest].map(AtomicU64::into_inner);
    println!("{openers} openers, {rounds} rounds: {won} won, the slowest took {slowest} ms");
    assert_eq!((won, lost), (rounds, rounds * (openers - 1)));
    assert!(slowest < 1_000, "{slowest} ms");
    let read = runs::read(&path).unwrap();
    assert!(read.damage.is_empty() && read.torn.is_none());
    let entries = read.view.transcript().entries();
    let texts = entries.iter().filter_map(|entry| match &entry.event {
        Event::User(user) => Some(user.text.clone()),
        _ => None,
    });
    let rounds = (1..=rounds).map(|round| format!("round {round}"));
    assert!(texts.eq(rounds));
}

fn said(round: u64) -> Event {
    Event::User(User {
        origin: Speaker::FollowUp,
        text: format!("round {round}"),
        attachments: Vec::new(),
        clipped: None,
    })
}
