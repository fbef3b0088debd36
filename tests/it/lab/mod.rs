//! Policies tried on recorded runs: what the laboratory lays is what the loop would have laid.

mod independent;

use std::path::Path;
use std::sync::Arc;

use undertext::lab::{Source, Summaries, Terms, simulate};
use undertext::overlay::Overlay;
use undertext::record::runs;
use undertext::setup::{Compaction, Setup};
use undertext::transcript::{Entry, Event, Purpose};

/// The entries of the recorded demo.
fn golden() -> Vec<Arc<Entry>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts/demo.jsonl");
    let loaded = runs::read(&path).unwrap();
    loaded.view.transcript().entries().to_vec()
}

fn setup(entries: &[Arc<Entry>]) -> &Setup {
    let mut setups = entries.iter().filter_map(|entry| match &entry.event {
        Event::Setup(setup) => Some(setup.as_ref()),
        _ => None,
    });
    setups.next().unwrap()
}

fn overlays(entries: &[Arc<Entry>]) -> Vec<(u64, Overlay)> {
    let laid = entries.iter().filter_map(|entry| match &entry.event {
        Event::Overlay(overlay) => Some((entry.id.0, overlay.clone())),
        _ => None,
    });
    laid.collect()
}

fn estimates(entries: &[Arc<Entry>]) -> Vec<(u64, Purpose, u64)> {
    let asked = entries.iter().filter_map(|entry| match &entry.event {
        Event::Request(request) => {
            let estimate = request.estimate.tokens;
            Some((entry.id.0, request.purpose.clone(), estimate))
        }
        _ => None,
    });
    asked.collect()
}

/// The run of the repository, played again under its own policy, is the run: every overlay has its
/// id, its layer, its sizes and its reason, and every request its estimate.
#[test]
fn a_run_under_its_own_policy_is_itself() {
    let entries = golden();
    let recorded = overlays(&entries);
    assert!(recorded.len() > 2, "{recorded:?}");
    let own = setup(&entries).policy.compaction.clone();
    let source = Source::new("demo", entries.clone());
    let terms = Terms {
        summaries: Summaries::Recorded,
        ..Terms::default()
    };
    let played = simulate(&source, &own, &terms);
    let again = played.view.transcript().entries();
    assert_eq!(overlays(again), recorded);
    assert_eq!(estimates(again), estimates(&entries));
    assert_eq!(played.outcome.overlays, recorded.len() as u64);
    assert_eq!(played.outcome.stopped, false);

    // Another policy lays something else, and none lays nothing.
    let mut other = own.clone();
    other.micro.min_gain_tokens = 0;
    other.micro.keep_recent = 1;
    let played = simulate(&source, &other, &terms);
    assert_ne!(overlays(played.view.transcript().entries()), recorded);
    let none = Compaction {
        enabled: false,
        ..own
    };
    let played = simulate(&source, &none, &terms);
    assert_eq!(overlays(played.view.transcript().entries()), []);
}
