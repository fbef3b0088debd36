//! Long runs: what a round costs does not grow with the run.

use std::sync::atomic::{AtomicU32, Ordering};

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde_json::json;
use undertext::agent::{Agent, Task};
use undertext::compaction::micro;
use undertext::model::{Ask, Delta, Model, Reply};
use undertext::record::MemoryStorage;
use undertext::setup::Policy;
use undertext::transcript::{Event, Purpose, Reason};
use undertext::view::Work;

use crate::oracle;
use crate::scene;
use crate::shelved;

/// A model that calls a tool so many times and then is done. It remembers nothing else.
#[derive(Debug)]
struct Endless {
    left: AtomicU32,
    chars: usize,
}

impl Model for Endless {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let reply = if ask.summary {
            Reply::text("The files were read one by one. ".repeat(20))
        } else {
            let left = self.left.fetch_sub(1, Ordering::Relaxed);
            let arguments = json!({ "path": format!("src/{left}.rs"), "chars": self.chars });
            if left == 0 {
                Reply::text("Done.")
            } else {
                Reply::calls([("Show", arguments.to_string())])
            }
        };
        stream::iter([Delta::Reply(Box::new(reply))]).boxed()
    }
}

/// One that reads results of 4,000 characters for so many rounds.
fn reader(rounds: u32) -> Agent {
    let mut policy = Policy::default();
    policy.limits.rounds = None;
    let model = Endless {
        left: AtomicU32::new(rounds),
        chars: 4000,
    };
    scene::agent(64_000, policy, model)
}

/// What a run of so many rounds allocates in all: how often, and how many bytes.
fn allocated(rounds: u32) -> (u64, u64) {
    let agent = reader(rounds);
    let storage = MemoryStorage::default();
    let mut recorder = scene::create(&storage);
    let task = Some(Task::new("Read everything."));
    let info = allocation_counter::measure(|| {
        let finished = scene::go(&agent, &mut recorder, task).unwrap();
        assert_eq!(finished.reason, Reason::Finished);
    });
    (info.count_total, info.bytes_total)
}

#[test]
fn a_round_allocates_no_more_for_those_before_it() {
    let [(none, few), (some, more), (all, most)] = [250, 500, 1000].map(allocated);
    // What the second quarter of the longest run allocates a round, and what its last half does.
    let early = ((some - none) / 250, (more - few) / 250);
    let late = ((all - some) / 500, (most - more) / 500);
    println!("allocations and bytes a round: {early:?}, then {late:?}");
    assert!(late.0 * 10 < early.0 * 12, "{early:?} {late:?}");
    assert!(late.1 * 10 < early.1 * 12, "{early:?} {late:?}");
}

#[test]
fn a_round_costs_what_is_new() {
    const ROUNDS: u32 = 2000;
    let agent = reader(ROUNDS);
    let storage = MemoryStorage::default();
    let mut recorder = scene::create(&storage);
    let finished = scene::go(&agent, &mut recorder, Some(Task::new("Read everything."))).unwrap();
    assert_eq!(finished.reason, Reason::Finished);

    // What is covered is not held any more, and hardly ever read again.
    let entries = recorder.view().transcript().entries().len();
    let (held, fetched) = (recorder.view().held(), recorder.view().work().fetched);
    assert!(entries > 6000 && held < 300, "{held} of {entries} entries");
    assert!(fetched < 8 * u64::from(ROUNDS), "{fetched}");

    // The same fold again, with a look at its counters at each round.
    let mut view = shelved::holding(&recorder.view().transcript().entries().to_vec());
    let mut rounds: Vec<(Work, bool)> = Vec::new();
    let (mut laid, mut waits) = (0, 0);
    let mut overlays = false;
    for entry in recorder.view().transcript().entries() {
        match &entry.event {
            Event::Request(request) => {
                if request.purpose == Purpose::Round {
                    // As the loop looks before it asks.
                    let look = micro::look(&view, entry.at).unwrap();
                    let trigger = view.sizes().unwrap().trigger;
                    waits += u32::from(look.gain > trigger / 10 && !look.fires());
                    rounds.push((view.work(), std::mem::take(&mut overlays)));
                }
                // All would take longer than the run did.
                if request.purpose != Purpose::Round || rounds.len() % 100 == 1 {
                    let body = view.body(&request.purpose).unwrap();
                    assert_eq!(body.digest(), request.body, "entry {}", entry.id);
                    assert_eq!(oracle::pairing(&body.bytes), Ok(()), "entry {}", entry.id);
                }
            }
            Event::Overlay(_) => {
                laid += 1;
                overlays = true;
            }
            _ => {}
        }
        shelved::take(&mut view, entry);
    }
    assert_eq!(rounds.len(), 2001);
    assert!(laid > 20, "compaction was on: {laid}");
    assert!(view.estimate().tokens < 48_000, "and kept the view small");
    assert!(
        waits > 500,
        "enough was old, but not beside the rest: {waits}"
    );

    // A round without an overlay: its few entries, one result that grows old, its own messages.
    let spent = |from: &Work, to: &Work| Work {
        visited: to.visited - from.visited,
        rendered: to.rendered - from.rendered,
        hashed: to.hashed - from.hashed,
        measured: to.measured - from.measured,
        looked: to.looked - from.looked,
        fetched: to.fetched - from.fetched,
    };
    for pair in rounds.windows(2).filter(|pair| !pair[1].1) {
        let work = spent(&pair[0].0, &pair[1].0);
        assert!(work.visited <= 5, "{work:?}");
        assert!(work.looked <= 3, "{work:?}");
        assert!(work.rendered <= 5000, "{work:?}");
        assert!(work.measured <= 5000, "{work:?}");
        assert_eq!(work.fetched, 0, "{work:?}");
    }
    // Overlays included, hardly a message is rendered twice.
    let whole = spent(&rounds[0].0, &rounds[2000].0);
    assert!(whole.rendered < 2000 * 5000, "{whole:?}");
    // Behind an overlay what follows is hashed again: less than two results a round.
    assert!(whole.hashed < 2000 * 8000, "{whole:?}");
    // And the second half of the run costs what the first one cost.
    let early = spent(&rounds[0].0, &rounds[1000].0);
    let late = spent(&rounds[1000].0, &rounds[2000].0);
    assert!(
        late.visited * 10 <= early.visited * 12,
        "{early:?} {late:?}"
    );
    assert!(
        late.rendered * 10 <= early.rendered * 12,
        "{early:?} {late:?}"
    );
    assert!(late.hashed * 10 <= early.hashed * 12, "{early:?} {late:?}");
    // And so does its dearest round, in which old results are put away and summarised.
    let dearest = |rounds: &[(Work, bool)]| {
        rounds
            .windows(2)
            .map(|pair| spent(&pair[0].0, &pair[1].0).visited)
            .max()
            .unwrap()
    };
    assert!(dearest(&rounds[1000..]) * 10 <= dearest(&rounds[..1000]) * 12);
}
