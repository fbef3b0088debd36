//! Law 10: a run is stopped after every entry, taken up again, and goes on as if nothing had been.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use undertext::agent::{Agent, AgentError, Task};
use undertext::exchange::{Effect, Ending, Status, ToolMeta};
use undertext::model::{Fault, Reply, Script, Scripted};
use undertext::record::MemoryStorage;
use undertext::setup::Policy;
use undertext::tools::{Compact, Outcome, Recall, Toolbox, typed};
use undertext::transcript::{Entry, Event, FaultClass, Purpose, Reason};

use crate::scene::{self, Amount};
use crate::simulated::keeps_the_laws;

/// What the tools did, by path: how often.
type Effects = Arc<Mutex<BTreeMap<String, u32>>>;

const WINDOW: u64 = 12_000;

fn agent(answers: Vec<Script>, done: &Effects) -> Agent {
    let done = Arc::clone(done);
    let change = typed("Change", "Changes a file.", move |amount: Amount| {
        *done.lock().unwrap().entry(amount.path.clone()).or_default() += 1;
        async move { Outcome::ok(scene::text(&amount.path, amount.chars)) }
    });
    let show = typed("Show", "Shows a file.", |amount: Amount| async move {
        Outcome::ok(scene::text(&amount.path, amount.chars))
    });
    let reads = ToolMeta {
        effect: Effect::Reads,
        ..ToolMeta::default()
    };
    let toolbox = Toolbox::new()
        .with(change)
        .with(show.with_meta(reads))
        .with(Compact)
        .with(Recall);
    let mut policy = Policy::default();
    policy.compaction.micro.min_gain_tokens = 800;
    policy.compaction.micro.min_gain_ratio = 0.0;
    policy.compaction.tool.min_ratio = 0.1;
    let model = Scripted::new(answers).with_summaries(|_| Ok(Reply::text("What was done.")));
    Agent::new(scene::setup(WINDOW, policy), Arc::new(model), toolbox)
}

/// The replies to the rounds, each change of its own kind; faults stand before the reply that
/// follows them.
fn script() -> Vec<Script> {
    let change = |n: usize| ("Change", format!(r#"{{"path":"c{n}","chars":1200}}"#));
    let show = |n: usize| ("Show", format!(r#"{{"path":"s{n}","chars":2500}}"#));
    let mut script: Vec<Script> = vec![
        Reply::calls([show(1), show(2)]).into(),
        Reply::calls([change(1), show(3), change(2), change(3)]).into(),
        Fault::new(FaultClass::Overload, "busy").into(),
        Reply::calls([change(4)]).into(),
        Reply {
            ending: Ending::Cut,
            ..Reply::calls([change(5)])
        }
        .into(),
        Reply::calls([show(4), ("Nothing", "{}".to_owned())]).into(),
    ];
    script.extend((6..14).map(|n| Reply::calls([change(n), show(n)]).into()));
    script.push(Reply::calls([("Compact", r#"{"focus":"c1"}"#.to_owned())]).into());
    script.extend((14..24).map(|n| Reply::calls([show(n), change(n)]).into()));
    script.push(Reply::default().into());
    script.push(Reply::text("Done.").into());
    script
}

/// What the model still has to say when it has answered as the entries tell.
fn rest(entries: &[Arc<Entry>]) -> Vec<Script> {
    let rounds: Vec<_> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Request(request) if request.purpose == Purpose::Round => Some(entry.id),
            _ => None,
        })
        .collect();
    let said = |entry: &&Arc<Entry>| match &entry.event {
        Event::Response(response) => rounds.contains(&response.request),
        Event::Fault(fault) => fault.class != FaultClass::Local,
        _ => false,
    };
    script().split_off(entries.iter().filter(said).count())
}

#[test]
fn a_run_goes_on_from_every_entry() {
    let task = || Some(Task::new("Change c1 to c23."));
    let whole = MemoryStorage::default();
    let ended = scene::go(
        &agent(script(), &Effects::default()),
        &mut scene::create(&whole),
        task(),
    );
    assert_eq!(ended.unwrap().reason, Reason::Finished);
    let entries = scene::entries(&whole);
    let bytes = whole.bytes();
    assert!(
        entries
            .iter()
            .any(|entry| matches!(&entry.event, Event::Overlay(_)))
    );
    keeps_the_laws_of(&entries);

    let line_ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let cuts: Vec<usize> = line_ends.map(|(at, _)| at + 1).collect();
    for (count, cut) in (1..).zip(&cuts) {
        let past = &entries[..count];
        let storage = MemoryStorage::with(bytes[..*cut].to_vec());
        let effects = happened(past);
        let agent = agent(rest(past), &effects);
        let begun = past
            .iter()
            .any(|entry| matches!(&entry.event, Event::User(_)));
        let ended = scene::go(
            &agent,
            &mut scene::open(&storage),
            if begun { None } else { task() },
        );
        if count == cuts.len() {
            assert!(
                matches!(ended, Err(AgentError::NoTask)),
                "nothing is left to do"
            );
            continue;
        }
        assert_eq!(
            ended.unwrap().reason,
            Reason::Finished,
            "after entry {count}"
        );
        let resumed = scene::entries(&storage);
        assert!(
            storage.bytes().starts_with(&bytes[..*cut]),
            "after entry {count}"
        );
        keeps_the_laws_of(&resumed);

        // Every change happened once, unless its reply never was whole.
        let effects = effects.lock().unwrap();
        assert!(
            effects.values().all(|times| *times == 1),
            "after entry {count}: {effects:?}"
        );
        let asked: Vec<String> = (1..24)
            .filter(|n| *n != 5)
            .map(|n| format!("c{n}"))
            .collect();
        assert!(
            asked.iter().all(|path| effects.contains_key(path)),
            "after entry {count}"
        );
        // A call that was started and has no result is not run twice: it is answered so.
        if let Event::Started(started) = &past[count - 1].event {
            let result = resumed.iter().find_map(|entry| match &entry.event {
                Event::Result(result) if result.call == started.call => Some(result),
                _ => None,
            });
            let result = result.unwrap();
            assert_eq!(result.status, Status::Interrupted);
            assert_eq!(result.content, "interrupted, effect unknown");
        }
    }
}

/// The effects of calls that were started.
fn happened(entries: &[Arc<Entry>]) -> Effects {
    let calls = entries.iter().filter_map(|entry| match &entry.event {
        Event::Started(started) => Some(started.call),
        _ => None,
    });
    let paths = calls.map(|call| {
        let response = entries
            .iter()
            .find(|entry| entry.id == call.response)
            .unwrap();
        let Event::Response(response) = &response.event else {
            panic!("{response:?}")
        };
        let made = &response.calls[call.place as usize - 1];
        serde_json::from_str::<Amount>(&made.arguments)
            .unwrap()
            .path
    });
    let mut effects = BTreeMap::new();
    for path in paths {
        *effects.entry(path).or_default() += 1;
    }
    Arc::new(Mutex::new(effects))
}

fn keeps_the_laws_of(entries: &[Arc<Entry>]) {
    keeps_the_laws(entries, WINDOW).unwrap();
}

/// What is durable when: n calls with effects take n + 1 syncs a round.
#[test]
fn a_round_syncs_once_for_each_effect_and_once_for_the_request() {
    let change = |n: usize| ("Change", format!(r#"{{"path":"c{n}"}}"#));
    let show = ("Show", r#"{"path":"s"}"#.to_owned());
    for (effects, calls) in [
        (0, vec![show.clone(), show.clone()]),
        (1, vec![change(1)]),
        (3, vec![change(1), show, change(2), change(3)]),
    ] {
        let answers = vec![Reply::calls(calls).into(), Reply::text("Done.").into()];
        let storage = MemoryStorage::default();
        let mut recorder = scene::create(&storage);
        let agent = agent(answers, &Effects::default());
        scene::go(&agent, &mut recorder, Some(Task::new("Go."))).unwrap();
        keeps_the_laws_of(&scene::entries(&storage));
        // The beginning, the first request, the round itself, the end.
        assert_eq!(
            recorder.syncs(),
            1 + 1 + (effects + 1) + 1,
            "{effects} effects"
        );
    }
}
