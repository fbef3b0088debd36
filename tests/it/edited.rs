//! What a person changes by hand, in any order, on any run: what is said of a change is so, and the
//! laws hold after it.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use undertext::compaction::edits::{self, Target, Which};
use undertext::id::{CallId, EntryId, Span};
use undertext::overlay::Layer;
use undertext::overlay::layers::Reads;
use undertext::transcript::turn::Round;
use undertext::transcript::{At, Entry, Event, Pin, Purpose};
use undertext::view::View;

use crate::generate::{Written, cases, lifelike, wild};
use crate::oracle;

/// A change, aimed at some entry.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Retract(Option<bool>, u16),
    Expand(u16),
    Pin(u16, bool),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<Option<bool>>(), any::<u16>()).prop_map(|(which, pick)| Edit::Retract(which, pick)),
        any::<u16>().prop_map(Edit::Expand),
        (any::<u16>(), any::<bool>()).prop_map(|(pick, on)| Edit::Pin(pick, on)),
    ]
}

/// The event of a change, if it can be made; what is said of it is held against what comes of it.
fn made(view: &View, edit: Edit) -> Result<Option<Event>, TestCaseError> {
    let entries = view.transcript().entries();
    let entry = |pick: u16| {
        let place = usize::from(pick).checked_rem(entries.len() + 1);
        place.map_or(EntryId(1), |place| EntryId(place as u64 + 1))
    };
    match edit {
        Edit::Retract(which, pick) => {
            let which = match which {
                None => Which::Last,
                Some(true) => Which::All,
                Some(false) => {
                    let overlays = view.overlays();
                    let place = usize::from(pick).checked_rem(overlays.len());
                    Which::Overlay(place.map_or(entry(pick), |place| overlays[place]))
                }
            };
            let Ok(retraction) = edits::retract(view, which) else {
                let none = view.overlays().is_empty() || matches!(which, Which::Overlay(_));
                prop_assert!(none, "{which:?} can be taken back");
                return Ok(None);
            };
            let after = after(view, retraction.event());
            let standing = after.overlays();
            prop_assert!(retraction.overlays.iter().all(|it| !standing.contains(it)));
            let (was, is) = (view.overlays().len(), standing.len());
            prop_assert_eq!(was - is, retraction.overlays.len());
            prop_assert_eq!(retraction.size.after, after.estimate().tokens);
            for call in &retraction.uncovers.results {
                prop_assert_eq!(after.reads(*call), Some(Reads::Full));
            }
            // A summary may come off what another overlay leaves out.
            let is_summary = |it: &EntryId| {
                matches!(
                    view.overlay(*it).map(|it| &it.layer),
                    Some(Layer::Summary(_))
                )
            };
            let same =
                view.messages() == after.messages() || retraction.overlays.iter().any(is_summary);
            prop_assert!(same || !retraction.uncovers.is_empty(), "{:?}", retraction);
            Ok(Some(retraction.event()))
        }
        Edit::Expand(pick) => {
            let call = CallId::new(entry(pick), u32::from(pick % 2) + 1);
            let before = (view.reads(call), view.reads_arguments(call));
            let Ok(expanded) = edits::expand(view, call) else {
                return Ok(None);
            };
            let Some(expansion) = expanded else {
                prop_assert!(!matches!(
                    before.0,
                    Some(Reads::Stubbed(_) | Reads::Hidden(_))
                ));
                prop_assert_eq!(before.1, Some(Reads::Full));
                return Ok(None);
            };
            let event = Event::Overlay(expansion.overlay);
            let after = after(view, event.clone());
            prop_assert!(matches!(after.reads(call), Some(Reads::Full) | None));
            prop_assert_eq!(after.reads_arguments(call), Some(Reads::Full));
            Ok(Some(event))
        }
        Edit::Pin(pick, on) => {
            let target = Target::Entry(entry(pick));
            if !on {
                let unpinned = edits::unpin(view, target).ok().filter(|(_, is)| *is);
                return Ok(unpinned.map(|(entry, _)| Event::Unpin(Pin { entry })));
            }
            let Ok(pinning) = edits::pin(view, target) else {
                return Ok(None);
            };
            let entry = pinning.entry;
            let after = after(view, Event::Pin(Pin { entry }));
            prop_assert_eq!(after.is_protected(entry), pinning.unread.is_none());
            prop_assert!(
                pinning.already || pinning.pinned <= pinning.room || pinning.unread.is_some()
            );
            Ok((!pinning.already).then_some(Event::Pin(Pin { entry })))
        }
    }
}

fn entry(view: &View, event: Event) -> Arc<Entry> {
    let id = view.transcript().next_id();
    let at = At::default();
    Arc::new(Entry { id, at, event })
}

fn after(view: &View, event: Event) -> View {
    let mut after = view.clone();
    after.take(entry(view, event));
    after
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn changes_by_hand_keep_the_laws(
        (Written(entries), tame) in prop_oneof![
            lifelike().prop_map(|run| (run, true)),
            wild().prop_map(|run| (run, false)),
        ],
        edits in vec(edit(), 1..8),
    ) {
        let mut view = View::of(entries.iter().cloned());
        let mut entries = entries;
        for edit in edits {
            let Some(event) = made(&view, edit)? else { continue };
            let entry = entry(&view, event);
            entries.push(Arc::clone(&entry));
            view.take(entry);
            prop_assert_eq!(view.messages(), oracle::messages(&entries), "after {:?}", edit);
            if tame && view.may_ask() {
                let body = view.body(&Purpose::Round).unwrap();
                let judged = oracle::pairing(&body.bytes);
                prop_assert!(judged.is_ok(), "{judged:?}");
            }
        }
    }

    /// A run is cut where no round is open, and as late as that can be.
    #[test]
    fn a_run_is_cut_where_no_round_is_open(Written(entries) in lifelike(), at in 1_u64..80) {
        let whole = View::of(entries.iter().cloned());
        let at = EntryId(at.min(entries.len() as u64));
        let closed = |at: EntryId| {
            let taken = whole.transcript().span(Span::new(EntryId::FIRST, at));
            let rounds = View::of(taken.iter().cloned()).rounds().all().to_vec();
            !rounds.is_empty() && rounds.iter().all(Round::is_closed)
        };
        let expected = (1..=at.0).rev().map(EntryId).find(|at| closed(*at));
        prop_assert_eq!(whole.rounds().closed_at(at), expected);
    }
}
