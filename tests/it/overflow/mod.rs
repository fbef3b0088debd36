//! Runs against a server whose window is smaller than anyone was told, and which says so in every way
//! that providers do: they recover, keep their task, and are seldom refused again.

mod ends;
mod server;
pub(crate) mod wordings;

use std::collections::BTreeSet;
use std::sync::Arc;

use undertext::agent::{Agent, Finished, Task};
use undertext::id::EntryId;
use undertext::model::{self, Client, Endpoint, Timeouts};
use undertext::overlay::{Layer, Origin, Overlay};
use undertext::record::MemoryStorage;
use undertext::setup::{Model, Policy, Role, Setup};
use undertext::transcript::{Event, Fault, FaultClass, Reason};
use undertext::view::View;

use crate::failing::{TASK, Unlucky};
use crate::{oracle, scene};
use server::{Manner, Narrow, Seen};
use wordings::{THROTTLED, WORDINGS, Wording};

/// What the window of the server really holds, in its own tokens.
const WINDOW: u64 = 18_000;

/// Requests of one run that the server refuses rightly, at most.
const REFUSALS: usize = 3;

/// A run that is over.
struct Played {
    finished: Finished,
    view: View,
    /// What the server saw.
    seen: Vec<Seen>,
}

impl Played {
    fn entries<'a, T>(&'a self, pick: impl Fn(EntryId, &'a Event) -> Option<T>) -> Vec<T> {
        let entries = self.view.transcript().entries().iter();
        entries
            .filter_map(|entry| pick(entry.id, &entry.event))
            .collect()
    }

    /// The windows that were recorded for a role, the declared one first.
    fn windows(&self, role: Role) -> Vec<Option<u64>> {
        let window = |setup: &Setup| setup.wire.models.role(role).and_then(|model| model.window);
        self.entries(|_, event| match event {
            Event::Setup(setup) => Some(window(setup)),
            _ => None,
        })
    }

    /// The entries that recovery laid.
    fn recoveries(&self) -> Vec<(EntryId, &Overlay)> {
        self.entries(|id, event| match event {
            Event::Overlay(overlay) if overlay.origin == Origin::Recovery => Some((id, overlay)),
            _ => None,
        })
    }

    fn faults(&self, class: FaultClass) -> Vec<&Fault> {
        self.entries(|_, event| match event {
            Event::Fault(fault) if fault.class == class => Some(fault),
            _ => None,
        })
    }

    /// Requests that the server refused rightly: those for rounds, those for summaries.
    fn refused(&self) -> [usize; 2] {
        [false, true].map(|summary| {
            let refused = |seen: &&Seen| seen.refused && seen.summary == summary;
            self.seen.iter().filter(refused).count()
        })
    }

    /// The run finished, its task stood in every round's request, what was sent can be built again, and
    /// the server refused few requests.
    fn recovered(&self, what: &str) {
        assert_eq!(
            self.finished.reason,
            Reason::Finished,
            "{what}: {}",
            self.finished
        );
        let kept = self.seen.iter().all(|seen| seen.summary || seen.has_task);
        assert!(kept, "{what}: the task is gone");
        let refused = self.refused();
        assert!(
            refused.iter().sum::<usize>() <= REFUSALS,
            "{what}: {refused:?} are refused"
        );
        let passes: BTreeSet<EntryId> = self
            .recoveries()
            .iter()
            .map(|(_, laid)| laid.pass)
            .collect();
        assert_eq!(
            passes.len(),
            refused[0],
            "{what}: a pass for each round that is refused"
        );
        let mut view = View::default();
        for (place, entry) in self.view.transcript().entries().iter().enumerate() {
            if let (Event::Request(request), 0) = (&entry.event, place % 9) {
                let body = view.body(&request.purpose).unwrap();
                assert_eq!(body.digest(), request.body, "{what}: entry {}", entry.id);
                assert_eq!(
                    oracle::pairing(&body.bytes),
                    Ok(()),
                    "{what}: entry {}",
                    entry.id
                );
            }
            view.take(Arc::clone(entry));
        }
    }
}

fn manner(wording: Wording, seed: u64, rounds: u32) -> Manner {
    Manner {
        wording,
        window: WINDOW,
        chars: 32,
        counts: true,
        busy: Vec::new(),
        model: Unlucky::new(seed, rounds, 4),
    }
}

fn client(server: &Narrow) -> Arc<dyn model::Model> {
    let endpoint = Endpoint {
        base_url: server.url.clone(),
        api_key: None,
        headers: Vec::new(),
    };
    Arc::new(Client::new(endpoint, Timeouts::default()).unwrap())
}

/// The settings of a run whose model is said to have this window.
fn setup(window: Option<u64>) -> Setup {
    let mut policy = Policy::default();
    policy.limits.rounds = None;
    let mut setup = scene::setup(0, policy);
    setup.wire.models.main.window = window;
    setup
}

fn play(manner: Manner, setup: Setup) -> Played {
    let server = Narrow::new(manner);
    let agent = Agent::new(setup, client(&server), scene::toolbox());
    go(&agent, &server)
}

fn go(agent: &Agent, server: &Narrow) -> Played {
    let mut recorder = scene::create(&MemoryStorage::default());
    let finished = scene::go(agent, &mut recorder, Some(Task::new(TASK))).unwrap();
    let (view, seen) = (recorder.view().clone(), server.seen());
    Played {
        finished,
        view,
        seen,
    }
}

/// Plays a run for each wording of these cases.
fn check(cases: std::ops::RangeInclusive<u32>) {
    let all = WORDINGS.into_iter().enumerate();
    for (place, wording) in all.filter(|(_, wording)| cases.contains(&wording.case)) {
        let mut manner = manner(wording, place as u64, 120);
        manner.counts = place % 3 != 0;
        let played = play(manner, setup([Some(32_000), None][place % 2]));
        let what = format!("{wording:?}");
        played.recovered(&what);
        let windows = played.windows(Role::Main);
        let [rounds, _] = played.refused();
        assert!(rounds > 0, "{what}: nothing is refused");
        let sinks = windows.windows(2).skip(1).all(|pair| pair[1] < pair[0]);
        assert!(sinks, "{what}: {windows:?}");
        let last = windows.last().copied().flatten();
        if wording.names_window() {
            assert_eq!(windows[1], Some(WINDOW), "{what}: {windows:?}");
        }
        // It never sinks far below what is there.
        assert!(last >= Some(WINDOW * 3 / 4), "{what}: {windows:?}");
    }
}

#[test]
fn a_run_recovers_from_each_wording_68_to_70() {
    check(68..=70);
}

#[test]
fn a_run_recovers_from_each_wording_71_to_74() {
    check(71..=74);
}

#[test]
fn a_run_recovers_from_each_wording_75_and_76() {
    check(75..=76);
}

#[test]
fn a_run_recovers_from_each_wording_of_77() {
    check(77..=77);
}

/// A refusal that explains nothing, near the limit, and the finish reasons.
#[test]
fn a_run_recovers_from_what_explains_nothing() {
    let all = WORDINGS.into_iter().enumerate();
    for (place, wording) in all.filter(|(_, wording)| wording.case == 78) {
        // Rounds come near the limit, and the estimate does not know how near.
        let mut manner = manner(wording, place as u64, 120);
        manner.counts = false;
        let mut setup = setup(Some(19_200));
        setup.policy.compaction.auto.trigger_ratio = 1.0;
        let played = play(manner, setup);
        let what = format!("{wording:?}");
        played.recovered(&what);
        assert!(played.refused()[0] > 0, "{what}: nothing is refused");
    }
}

/// However far off the estimate is, with counts to learn from and without.
#[test]
fn a_run_recovers_whatever_a_token_is() {
    let named = WORDINGS[4];
    let unnamed = WORDINGS[1];
    assert!(named.names_window() && !unnamed.names_window());
    // Ten tokens are from eight characters (the factor would be 5000) to 120 (it would be 333).
    for (chars, wording, counts, window) in [
        (8, named, true, Some(32_000)),
        (8, unnamed, true, Some(32_000)),
        (12, named, false, Some(32_000)),
        (12, unnamed, false, None),
        (60, named, true, None),
        (60, unnamed, false, None),
        (120, unnamed, true, None),
        (120, named, true, None),
    ] {
        let mut manner = manner(wording, chars, 80);
        (manner.chars, manner.counts) = (chars, counts);
        let played = play(manner, setup(window));
        played.recovered(&format!("{chars} {counts} {window:?} {wording:?}"));
    }
}

/// What says that requests come too often is waited for, and teaches nothing about the window.
#[test]
fn throttling_is_no_overflow() {
    for refusal in THROTTLED {
        let mut manner = manner(WORDINGS[0], 1, 20);
        (manner.window, manner.busy) = (u64::MAX, vec![refusal; 3]);
        let played = play(manner, setup(Some(32_000)));
        played.recovered(refusal.1);
        assert_eq!(played.windows(Role::Main), [Some(32_000)], "{refusal:?}");
        assert_eq!(played.recoveries(), [], "{refusal:?}");
        assert_eq!(played.faults(FaultClass::Rate).len(), 3, "{refusal:?}");
        let same = played.seen[..4]
            .iter()
            .all(|seen| seen.bytes == played.seen[0].bytes);
        assert!(same, "{refusal:?}: the same request is sent again");
    }
}

/// A model of its own for summaries whose window is smaller than it is said to be: the next text is
/// asked for in parts that fit, and the main model's window stays what it is.
#[test]
fn the_window_of_a_summariser_is_learned_too() {
    for wording in [WORDINGS[4], WORDINGS[1]] {
        for declared in [None, Some(32_000)] {
            let mut wide = manner(wording, 1, 100);
            wide.window = u64::MAX;
            let mut small = manner(wording, 2, 0);
            small.window = 7_000;
            small.model = Unlucky::new(2, 0, 0);
            let (wide, small) = (Narrow::new(wide), Narrow::new(small));
            let mut setup = setup(Some(32_000));
            setup.wire.models.summary = Some(Model {
                window: declared,
                ..Model::named("small")
            });
            let agent = Agent::new(setup, client(&wide), scene::toolbox());
            let agent = agent.with_model(Role::Summary, client(&small));
            let played = go(&agent, &wide);
            let what = format!("{wording:?} {declared:?}");
            played.recovered(&what);
            let windows = played.windows(Role::Summary);
            let seen = small.seen();
            let refused = seen.iter().filter(|seen| seen.refused).count();
            assert!(
                (1..=4).contains(&refused),
                "{what}: {refused} of {} are refused",
                seen.len()
            );
            assert_eq!(
                played.windows(Role::Main).last(),
                Some(&Some(32_000)),
                "{what}"
            );
            if wording.names_window() {
                assert_eq!(windows[1], Some(7_000), "{what}: {windows:?}");
            }
            let parts = played.entries(|_, event| match event {
                Event::Overlay(Overlay {
                    layer: Layer::Summary(summary),
                    ..
                }) => (!summary.parts.is_empty()).then_some(()),
                _ => None,
            });
            assert!(!parts.is_empty(), "{what}: nothing is read in parts");
        }
    }
}
