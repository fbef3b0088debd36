//! Whatever operation of the storage fails, and whatever a loss of power takes of what was not synced:
//! nothing that the world was told of is lost, no effect happens twice, and the run goes on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::stream::BoxStream;
use undertext::agent::{Agent, AgentError, Task};
use undertext::exchange::{Effect, Ending, Status, ToolMeta};
use undertext::model::{Ask, Delta, Fault, Model, Reply, Script, Scripted};
use undertext::record::{
    Clock, Failure, MemoryStorage, OnDamage, RecordError, Recorder, SECTOR, Storage as _,
};
use undertext::setup::Policy;
use undertext::tools::{Outcome, Toolbox, typed};
use undertext::transcript::{Entry, Event, FaultClass, Note, Reason};

use crate::crash::{Draw, times};
use crate::scene::{self, Amount};
use crate::simulated::keeps_the_laws;

const WINDOW: u64 = 12_000;

/// What is changed by the script, each once.
const CHANGES: [&str; 5] = ["c1", "c2", "c3", "c4", "c5"];

/// What happened outside: how often tools changed what, and what had to be durable for it.
#[derive(Clone, Debug, Default)]
struct World {
    changes: Arc<Mutex<BTreeMap<String, u32>>>,
    /// The transcript as it was when something outside last depended on it.
    told: Arc<Mutex<Vec<u8>>>,
}

impl World {
    fn is_told(&self, storage: &MemoryStorage) {
        *self.told.lock().unwrap() = storage.bytes();
    }

    fn told(&self) -> Vec<u8> {
        self.told.lock().unwrap().clone()
    }

    /// A world in which the same has happened so far.
    fn copy(&self) -> Self {
        let changes = self.changes.lock().unwrap().clone();
        Self {
            changes: Arc::new(Mutex::new(changes)),
            told: Arc::new(Mutex::new(self.told())),
        }
    }
}

/// A scripted model that is part of the world.
#[derive(Debug)]
struct Outside(Scripted, World, MemoryStorage);

impl Model for Outside {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        self.1.is_told(&self.2);
        self.0.ask(ask)
    }
}

/// Replies with effects, readings, results that are clipped, a fault, a cut reply and a wrong call.
fn script() -> Vec<Script> {
    let change = |name: &str, chars: u32| {
        let arguments = format!(r#"{{"path":"{name}","chars":{chars}}}"#);
        ("Change", arguments)
    };
    let show = |n: u32, chars: u32| ("Show", format!(r#"{{"path":"s{n}","chars":{chars}}}"#));
    vec![
        Reply::calls([show(1, 90), show(2, 20_000)]).into(),
        Reply::calls([change("c1", 90), show(3, 600), change("c2", 20_001)]).into(),
        Fault::new(FaultClass::Overload, "busy").into(),
        Reply::calls([change("c3", 1_500)]).into(),
        Reply {
            ending: Ending::Cut,
            ..Reply::calls([change("never", 9)])
        }
        .into(),
        Reply::calls([("Nothing", "{}".to_owned()), change("c4", 9)]).into(),
        Reply::calls([change("c5", 700), show(4, 9)]).into(),
        Reply::text("Done.").into(),
    ]
}

/// What the model still has to say when it has answered as the entries tell.
fn rest(entries: &[Arc<Entry>]) -> Vec<Script> {
    let said = |entry: &&Arc<Entry>| match &entry.event {
        Event::Response(_) => true,
        Event::Fault(fault) => fault.class != FaultClass::Local,
        _ => false,
    };
    script().split_off(entries.iter().filter(said).count())
}

fn agent(world: &World, storage: &MemoryStorage, answers: Vec<Script>) -> Agent {
    let (outside, kept) = (world.clone(), storage.clone());
    let change = typed("Change", "Changes a file.", move |amount: Amount| {
        outside.is_told(&kept);
        let mut changes = outside.changes.lock().unwrap();
        *changes.entry(amount.path.clone()).or_default() += 1;
        drop(changes);
        async move { Outcome::ok(scene::text(&amount.path, amount.chars)) }
    });
    let show = typed("Show", "Shows a file.", |amount: Amount| async move {
        Outcome::ok(scene::text(&amount.path, amount.chars))
    });
    let reads = ToolMeta {
        effect: Effect::Reads,
        ..ToolMeta::default()
    };
    let toolbox = Toolbox::new().with(change).with(show.with_meta(reads));
    let model = Outside(Scripted::new(answers), world.clone(), storage.clone());
    let mut policy = Policy::default();
    policy.compaction.enabled = false;
    Agent::new(scene::setup(WINDOW, policy), Arc::new(model), toolbox)
}

/// The task with more text than is taken as it is, so that the rest of it is kept.
fn task() -> Task {
    Task::new("Change c1 to c5. ".repeat(3_000))
}

/// Begins the run and lets it work until something fails.
fn begin(world: &World, storage: &MemoryStorage) -> Result<(), AgentError> {
    let clock = Clock::fixed(scene::BEGIN);
    let run = scene::run(&clock);
    let mut recorder = Recorder::create(Box::new(storage.clone()), clock, run)?;
    let agent = agent(world, storage, script());
    scene::go(&agent, &mut recorder, Some(task())).map(drop)
}

fn open(storage: &MemoryStorage, damage: OnDamage) -> Result<Recorder, RecordError> {
    let clock = Clock::fixed(scene::BEGIN.plus_ms(60_000));
    Recorder::open(Box::new(storage.clone()), clock, damage)
}

/// Takes the run up as a person would who is told of damage, and lets it work until it ends or
/// something fails. `false` if nothing of a run is there, which nobody was told of.
fn go_on(world: &World, storage: &MemoryStorage) -> Result<bool, AgentError> {
    assert!(storage.bytes().starts_with(&world.told()), "what was told");
    let mut recorder = match open(storage, OnDamage::Refuse) {
        Err(RecordError::NoRun { .. }) => {
            assert_eq!(world.told(), b"", "nobody was told of the run");
            return Ok(false);
        }
        Err(error @ RecordError::Damaged { .. }) => {
            let text = error.to_string();
            let (_, places) = text.split_once(" is damaged: ").unwrap();
            let is_place = |place: &str| place.starts_with("line ");
            assert!(places.split("; ").all(is_place), "{text}");
            match open(storage, OnDamage::Accept) {
                Err(RecordError::NoRun { .. }) => {
                    assert_eq!(world.told(), b"", "nobody was told of the run");
                    return Ok(false);
                }
                recorder => recorder?,
            }
        }
        recorder => recorder?,
    };
    let view = recorder.view();
    if view.ledger().is_finished() {
        return Ok(true);
    }
    let task = view.working().task.is_none().then(task);
    let entries = view.transcript().entries().to_vec();
    let agent = agent(world, storage, rest(&entries));
    let finished = scene::go(&agent, &mut recorder, task)?;
    assert_eq!(finished.reason, Reason::Finished, "{finished:?}");
    Ok(true)
}

/// What is there at the end: every change once, or honestly called interrupted; every blob; and a
/// transcript that reads the same from now on.
fn check_end(world: &World, storage: &MemoryStorage, at: &str) {
    let end = open(storage, OnDamage::Accept).unwrap();
    let entries = &end.view().transcript().entries().to_vec();
    let changes = world.changes.lock().unwrap();
    let interrupted = interrupted(entries);
    for change in CHANGES {
        let times = changes.get(change).copied().unwrap_or_default();
        let is_unsure = interrupted.contains(&change);
        assert!(
            times == 1 || (times == 0 && is_unsure),
            "{at}: {change} {times} times"
        );
    }
    assert!(
        changes.keys().all(|name| CHANGES.contains(&&**name)),
        "{at}"
    );
    for entry in entries {
        let clipped = match &entry.event {
            Event::Result(result) => result.clipped,
            Event::User(user) => user.clipped,
            _ => None,
        };
        if let Some(clipped) = clipped {
            let blob = storage.read_blob(clipped.blob.unwrap()).unwrap();
            let kept = blob.map(|blob| blob.len() as u64);
            assert_eq!(kept, Some(clipped.bytes), "{at}: blob of {}", entry.id);
        }
    }
}

/// What interrupted calls would have changed.
fn interrupted(entries: &[Arc<Entry>]) -> Vec<&'static str> {
    let calls = entries.iter().filter_map(|entry| match &entry.event {
        Event::Result(result) if result.status == Status::Interrupted => Some(result.call),
        _ => None,
    });
    let changes = calls.filter_map(|call| {
        let response = entries.iter().find(|it| it.id == call.response)?;
        let Event::Response(response) = &response.event else {
            return None;
        };
        let call = &response.calls[call.place as usize - 1];
        CHANGES
            .into_iter()
            .find(|name| call.arguments.contains(name))
    });
    changes.collect()
}

/// What a crash may leave: the program ended, or the power went with some of what was on its way.
fn left(storage: &MemoryStorage, draws: u64) -> Vec<(String, MemoryStorage)> {
    let whole = storage.bytes().len();
    let last = whole.saturating_sub(1) / SECTOR;
    let by_sectors = |how: &str, length, arrived: &mut dyn FnMut(usize) -> bool| {
        let left = storage.after_power_loss_by_sectors(length, arrived);
        (how.to_owned(), left)
    };
    let mut left = vec![
        by_sectors("the program ended", whole, &mut |_| true),
        by_sectors("all was dropped", 0, &mut |_| false),
        by_sectors("all is zero", whole, &mut |_| false),
        by_sectors("only the last sector came", whole, &mut |at| at == last),
        by_sectors("the last sector did not come", whole, &mut |at| at != last),
    ];
    for seed in 0..draws {
        let mut draw = Draw(seed);
        let length = draw.below(whole + 1);
        let how = format!("draw {seed}");
        left.push(by_sectors(&how, length, &mut |_| draw.below(3) > 0));
    }
    left
}

/// An error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

#[test]
fn whatever_fails_or_power_takes_nothing_told_is_lost_and_nothing_happens_twice() {
    let (world, whole) = (World::default(), MemoryStorage::default());
    begin(&world, &whole).unwrap();
    check_end(&world, &whole, "whole");
    keeps_the_laws(&scene::entries(&whole), WINDOW).unwrap();
    let (mut crashes, mut noted, mut unsure) = (0, 0, 0);
    for failure in [Failure::Refused, Failure::Short, Failure::Unsure] {
        for operation in 1..=whole.operations() {
            let (world, storage) = (World::default(), MemoryStorage::default());
            storage.fail(operation, failure);
            let error = chain(&begin(&world, &storage).unwrap_err());
            let mut whats = ["write to", "sync", "keep a blob of"].into_iter();
            let names = |what| error.contains(&format!("cannot {what} transcript in memory: "));
            assert!(whats.any(names), "{error}");

            let losses = times("UNDERTEXT_LOSSES", 0);
            for (number, (how, left)) in (0..).zip(left(&storage, losses)) {
                // Each in its turn, unless all are asked for.
                if losses == 0 && number % 3 != operation % 3 {
                    continue;
                }
                let at = format!("{failure:?} of {operation}, {how}");
                let (world, before) = (world.copy(), left.bytes());
                let went_on = go_on(&world, &left);
                if !went_on.unwrap_or_else(|error| panic!("{at}: {}", chain(&error))) {
                    continue;
                }
                assert!(left.bytes().starts_with(&before), "{at}");
                check_end(&world, &left, &at);
                let end = open(&left, OnDamage::Accept).unwrap();
                let entries = &end.view().transcript().entries().to_vec();
                let is_note = |entry: &Arc<Entry>| {
                    let event = &entry.event;
                    matches!(event, Event::Note(Note::Damage { .. } | Note::Torn(_)))
                };
                crashes += 1;
                noted += u64::from(entries.iter().any(is_note));
                unsure += u64::from(!interrupted(entries).is_empty());
            }
        }
    }
    let operations = whole.operations();
    println!("{operations} operations: {crashes} crashes, {noted} with a note, {unsure} unsure");
    assert!(noted > 60 && unsure > 30, "it happened: {noted} {unsure}");
}

#[test]
fn a_run_goes_on_however_often_it_fails_again() {
    let failures = [Failure::Refused, Failure::Short, Failure::Unsure];
    let mut failed = 0;
    for seed in 0..times("UNDERTEXT_WALKS", 20) {
        let mut draw = Draw(seed);
        let (mut world, mut storage) = (World::default(), MemoryStorage::default());
        let fail = |storage: &MemoryStorage, draw: &mut Draw| {
            storage.fail(1 + draw.below(14) as u64, failures[draw.below(3)]);
        };
        fail(&storage, &mut draw);
        let mut ended = begin(&world, &storage).map(|()| true);
        for _ in 0..1_000 {
            match ended {
                Ok(true) => break,
                Ok(false) => {
                    (world, storage) = (World::default(), MemoryStorage::default());
                    fail(&storage, &mut draw);
                    ended = begin(&world, &storage).map(|()| true);
                }
                Err(_) => {
                    failed += 1;
                    let mut left = left(&storage, 4);
                    storage = left.swap_remove(draw.below(left.len())).1;
                    fail(&storage, &mut draw);
                    ended = go_on(&world, &storage);
                }
            }
        }
        assert!(matches!(ended, Ok(true)), "{seed}: {ended:?}");
        check_end(&world, &storage, &format!("seed {seed}"));
        // Where entries are missing, a request that was not sent any more cannot be built again.
        if let Ok(recorder) = open(&storage, OnDamage::Refuse) {
            let entries = &recorder.view().transcript().entries().to_vec();
            keeps_the_laws(entries, WINDOW).unwrap_or_else(|error| panic!("{seed}: {error}"));
        }
    }
    println!("{failed} failures were survived");
    assert!(failed > 40, "{failed}");
}
