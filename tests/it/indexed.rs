//! A transcript that is taken up by its index reads as one that is read whole, and an index that does
//! not fit is made anew: laws 3, 9 and 10 with the index on, off, stale, torn and of another file.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt as _;
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

use undertext::agent::{Progress, Task};
use undertext::id::EntryId;
use undertext::model::{Reply, Scripted};
use undertext::record::{Clock, Durability, FileStorage, MemoryStorage, OnDamage, Recorder};
use undertext::setup::Policy;
use undertext::step;
use undertext::transcript::{At, Entry, Event, Note, Purpose, Speaker, jsonl};
use undertext::view::View;

use crate::draft::{Draft, note};
use crate::generate::{Written, cases, lifelike, wild};
use crate::scene;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A moment after everything.
const LATER: At = At(4_000_000_000_000);

fn bytes(entries: &[Arc<Entry>]) -> Vec<u8> {
    let lines = entries.iter().map(|entry| jsonl::encode(entry).unwrap());
    lines.flatten().collect()
}

fn open(storage: &MemoryStorage) -> Option<Recorder> {
    let storage = Box::new(storage.clone());
    Recorder::open(storage, Clock::fixed(LATER), OnDamage::Refuse).ok()
}

/// The index of a transcript of these entries, if it is one that can be written.
fn index(entries: &[Arc<Entry>]) -> Option<Vec<u8>> {
    let storage = MemoryStorage::with(bytes(entries)).indexed_from(0);
    assert!(open(&storage)?.keep_index().unwrap());
    storage.index()
}

/// Takes these entries up by an index, and says how many bytes it spared.
fn taken_up(entries: &[Arc<Entry>], index: Vec<u8>) -> (Recorder, u64) {
    let storage = MemoryStorage::with(bytes(entries)).indexed_from(0);
    storage.set_index(Some(index));
    let recorder = open(&storage).unwrap();
    let indexed = recorder.indexed();
    (recorder, indexed)
}

/// Takes up a transcript in a file; `None` if it is damaged.
fn open_file(path: &Path) -> Option<Recorder> {
    let storage = FileStorage::open(path, Durability::None).unwrap();
    let storage = Box::new(storage.indexed_from(Some(0)));
    Recorder::open(storage, Clock::fixed(LATER), OnDamage::Refuse).ok()
}

/// What becomes of a transcript in a file, or of the index beside it, once that is stamped.
#[derive(Clone, Debug)]
enum Fate {
    /// Nothing.
    Left,
    /// What follows is written.
    Grown,
    /// A byte is changed where nothing is read again, and the length stays.
    Changed,
    /// So much is missing at the end of the index.
    Torn(usize),
    /// They are copied.
    Copied,
    /// Another file's stamp stands there.
    Strange,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Left),
        Just(Fate::Grown),
        Just(Fate::Changed),
        (1..100_usize).prop_map(Fate::Torn),
        Just(Fate::Copied),
        Just(Fate::Strange),
    ]
}

/// Everything that is asked of a view, as text.
fn told(view: &View) -> String {
    let body = view
        .body(&Purpose::Round)
        .map(|body| (body.digest(), body.bytes));
    let regret = view.regret();
    let regret = (
        regret.calls(),
        regret.texts(),
        regret.by_tool(),
        regret.by_rule(),
    );
    let rounds = (view.rounds().all().to_vec(), view.rounds().turns());
    let parts = [
        format!("{:?}", view.readings()),
        format!("{body:?} {:?}", view.may_ask()),
        format!("{:?}", step::next(view, LATER)),
        format!("{:?} {:?}", view.aging().candidates(), view.ripe()),
        format!("{:?} {:?}", view.working(), view.ledger()),
        format!("{:?} {regret:?}", view.sought()),
        format!("{rounds:?} {:?}", view.overlays()),
    ];
    parts.join("\n")
}

/// How large the view was when a summary could not be had is told, though nothing is rendered of what
/// is only passed by.
#[test]
fn what_a_note_remembers_of_the_view_is_the_same_when_it_is_read_again() {
    let mut draft = Draft::default();
    draft.push(Event::Run(scene::run(&Clock::fixed(scene::BEGIN))));
    draft.push(Event::Setup(Box::new(scene::setup(
        100_000,
        Policy::default(),
    ))));
    draft.user(Speaker::Task, "a task");
    draft.round("first", &[("Read", "{}", "what it reads")]);
    let request = draft.next();
    let why = "cut".to_owned();
    draft.push(Event::Note(Note::SummaryFailed { request, why }));
    draft.round("second", &[("Read", "{}", "what it reads next")]);
    let entries = draft.into_entries();
    let whole = open(&MemoryStorage::with(bytes(&entries))).unwrap();
    let (indexed, _) = taken_up(&entries, index(&entries[..4]).unwrap());
    let plain = View::of(entries);
    assert!(plain.ledger().failed_at.all > 0);
    for view in [whole.view(), indexed.view()] {
        assert_eq!(told(view), told(&plain));
    }
}

/// Writing it takes its time where a run is long, and other runs go on meanwhile: it is done where what
/// blocks is done, and that is busy here.
#[test]
fn an_index_is_kept_beside_the_thread_that_runs() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || held.recv());
        let storage = MemoryStorage::default().indexed_from(0);
        let mut recorder = scene::create(&storage);
        let model = Scripted::new([Reply::text("Done.").into()]);
        let agent = scene::agent(100_000, Policy::default(), model);
        let mut events = agent.events();
        let run = tokio::spawn(async move {
            let never = CancellationToken::new();
            agent.run(&mut recorder, Some(Task::new("Go.")), &never).await
        });
        let is_end = |progress: &Progress| {
            matches!(progress, Progress::Entry(entry) if matches!(entry.event, Event::End(_)))
        };
        while !events.next().await.is_some_and(|progress| is_end(&progress)) {}
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(!run.is_finished() && storage.index().is_none());
        release.send(()).unwrap();
        busy.await.unwrap().unwrap();
        run.await.unwrap().unwrap();
        assert!(storage.index().is_some());
    });
}

proptest! {
    #![proptest_config(config())]

    /// On, and stale: what is behind the index is read and folded as ever.
    #[test]
    fn an_indexed_view_is_the_same(
        Written(entries) in prop_oneof![lifelike(), wild()],
        cut in any::<prop::sample::Index>(),
    ) {
        prop_assume!(!entries.is_empty());
        let whole = MemoryStorage::with(bytes(&entries));
        let covered = &entries[..=cut.index(entries.len())];
        let (Some(whole), Some(index)) = (open(&whole), index(covered)) else {
            return Ok(());
        };
        let (mut recorder, indexed) = taken_up(&entries, index);
        prop_assert_eq!(indexed, bytes(covered).len() as u64);
        prop_assert_eq!(told(recorder.view()), told(whole.view()));
        // All of it can be read, and the run goes on.
        let read: Vec<EntryId> = recorder.view().transcript().entries().iter().map(|it| it.id).collect();
        prop_assert!(read.into_iter().eq(entries.iter().map(|it| it.id)));
        // As they are read: an entry that is not understood may have no time of its own.
        let mut plain = View::of(whole.view().transcript().entries().iter().cloned());
        let id = recorder.record(note("goes on")).unwrap();
        plain.take(Arc::clone(recorder.view().transcript().get(id).unwrap()));
        prop_assert_eq!(told(recorder.view()), told(&plain));
    }

    /// Torn, or with a byte of it changed: it is not used, and kept anew.
    #[test]
    fn a_torn_index_is_made_anew(
        Written(entries) in lifelike(),
        at in any::<prop::sample::Index>(),
        flips in any::<bool>(),
    ) {
        let right = index(&entries).unwrap();
        let mut index = right.clone();
        let at = at.index(index.len());
        if flips {
            index[at] ^= 1;
        } else {
            index.truncate(at);
        }
        let (mut recorder, indexed) = taken_up(&entries, index);
        prop_assert_eq!(indexed, 0);
        prop_assert_eq!(told(recorder.view()), told(&View::of(entries.iter().cloned())));
        prop_assert!(recorder.keep_index().unwrap());
    }

    /// Of another file: it is not used.
    #[test]
    fn an_index_of_another_file_is_not_used(
        Written(entries) in lifelike(),
        Written(others) in lifelike(),
    ) {
        prop_assume!(bytes(&entries) != bytes(&others));
        let index = index(&others).unwrap();
        let begins = bytes(&entries).starts_with(&bytes(&others));
        let (recorder, indexed) = taken_up(&entries, index);
        prop_assert_eq!(indexed > 0, begins);
        prop_assert_eq!(told(recorder.view()), told(&View::of(entries.iter().cloned())));
    }

    /// In a file, whose stamp fits, is stale, torn or of another file, and is renewed then: it reads as it
    /// does without an index, each time that it is taken up.
    #[test]
    fn a_stamp_changes_nothing_of_what_is_read(
        Written(entries) in lifelike(),
        cut in any::<prop::sample::Index>(),
        fate in fate(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let stamped = |name: &str, covered: &[u8]| {
            fs::write(place(name), covered).unwrap();
            assert!(open_file(&place(name)).unwrap().keep_index().unwrap());
            fs::read(place(name).with_extension("index")).unwrap()
        };
        let at = cut.index(entries.len()) + 1;
        let (covered, rest) = (bytes(&entries[..at]), bytes(&entries[at..]));
        let (mut path, index) = (place("run.jsonl"), place("run.index"));
        let kept = stamped("run.jsonl", &covered);
        match fate {
            Fate::Left => {}
            Fate::Grown => {
                let mut file = File::options().append(true).open(&path).unwrap();
                file.write_all(&rest).unwrap();
            }
            Fate::Changed => {
                let is_request = |entry: &Arc<Entry>| matches!(entry.event, Event::Request(_));
                let line = entries[..at].iter().position(is_request).unwrap_or_default();
                let checksum = bytes(&entries[..=line]).len() - 5;
                let mut changed = covered.clone();
                changed[checksum] ^= 1;
                fs::write(&path, changed).unwrap();
            }
            Fate::Torn(bytes) => fs::write(&index, &kept[..kept.len() - bytes]).unwrap(),
            Fate::Copied => {
                fs::copy(&path, place("copy.jsonl")).unwrap();
                fs::copy(&index, place("copy.index")).unwrap();
                path = place("copy.jsonl");
            }
            Fate::Strange => {
                let other = stamped("other.jsonl", &covered);
                fs::write(&index, other).unwrap();
            }
        }
        fs::copy(&path, place("plain.jsonl")).unwrap();
        for _ in 0..3 {
            let plain = open_file(&place("plain.jsonl"));
            let mut recorder = open_file(&path);
            prop_assert_eq!(
                recorder.as_ref().map(|recorder| told(recorder.view())),
                plain.map(|recorder| told(recorder.view()))
            );
            if let Some(recorder) = &mut recorder {
                recorder.keep_index().unwrap();
            }
        }
    }
}
