//! Policies tried on recorded runs: what the laboratory lays is what the loop would have laid, and what
//! it counts is what a second simulation counts.

#[expect(
    clippy::too_many_lines,
    clippy::cast_precision_loss,
    reason = "a simulation to be read in one go, of counts far below 2^52"
)]
mod independent;
mod missed;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use undertext::import;
use undertext::lab::{Contender, Source, Summaries, Terms, outcomes, simulate};
use undertext::overlay::Overlay;
use undertext::record::runs;
use undertext::setup::{Compaction, EstimateRule, Setup};
use undertext::transcript::{Entry, Event, Purpose};

use crate::corpus::{corpus, excerpts};

/// The runs in a file or below a directory, by name.
fn runs_in(path: &Path, found: &mut Vec<(String, Vec<Arc<Entry>>)>) {
    if let Ok(runs) = import::read(path, None) {
        for (part, run) in runs.into_iter().enumerate() {
            let name = path.file_name().unwrap().to_string_lossy();
            found.push((format!("{name} {part}"), run.entries().unwrap()));
        }
    } else if path.is_dir() {
        let files = fs::read_dir(path).unwrap();
        let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        paths.sort();
        for path in &paths {
            runs_in(path, found);
        }
    }
}

/// Micro-compaction alone, which waits for so many tokens and never for the cache.
fn micro_alone(min_gain_tokens: usize, [keep, chars]: [usize; 2]) -> Compaction {
    let mut policy = Compaction {
        estimate: EstimateRule::Chars,
        ..Compaction::default()
    };
    policy.auto.enabled = false;
    policy.micro.min_gain_tokens = min_gain_tokens as u64;
    policy.micro.min_gain_ratio = 0.0;
    policy.micro.keep_recent = u32::try_from(keep).unwrap();
    policy.micro.min_chars = chars as u64;
    policy.micro.cold_after_ms = u64::MAX;
    policy.micro.arguments = false;
    policy
}

/// No compaction, each chance, and at least 10,000 tokens come to the same in both simulations.
#[test]
fn a_second_simulation_agrees() {
    let (folder, _) = corpus();
    if folder != excerpts() {
        agree(&folder, 10_000, [10, 800]);
    }
    // The excerpts are short.
    agree(&excerpts(), 400, [1, 100]);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of tokens are far below 2^52"
)]
fn agree(folder: &Path, gain: usize, micro: [usize; 2]) {
    let mut runs = Vec::new();
    runs_in(folder, &mut runs);
    assert!(runs.len() > 4, "{}", runs.len());
    let terms = Terms {
        window: Some(200_000),
        ..Terms::default()
    };
    let policies = [
        Contender::none(),
        Contender::new("each chance", micro_alone(0, micro)),
        Contender::new("enough", micro_alone(gain, micro)),
    ];
    let percent = |part: f64, of: f64| part / of * 100.0;
    let mut passes = 0;
    for (name, entries) in runs {
        let plain = entries
            .iter()
            .map(|it| serde_json::to_value(&**it).unwrap());
        let plain: Vec<_> = plain.collect();
        let source = Source::new(&name, entries);
        if source.requests() == 0 {
            continue;
        }
        let ours = outcomes(&[source], &policies, &terms).remove(0);
        let theirs = [None, Some(0), Some(gain)].map(|gain| independent::play(&plain, gain, micro));
        for (our, their) in ours.iter().zip(&theirs) {
            let our_percent = [
                percent(our.prompt_tokens as f64, ours[0].prompt_tokens as f64),
                percent(our.cost, ours[0].cost),
            ];
            let their_percent = [percent(their.0, theirs[0].0), percent(their.1, theirs[0].1)];
            // The same percentages of something else would say nothing: tokens are characters / 4.
            for (our, their) in [(our.prompt_tokens as f64, their.0), (our.cost, their.1)] {
                let off = (our * 4.0 - their).abs();
                assert!(
                    off < their / 100.0 || off < 100.0,
                    "{name}: {our} tokens are not {their} characters"
                );
            }
            for (our, their) in our_percent.iter().zip(their_percent) {
                assert!((our - their).abs() < 0.1, "{name}: {our} is not {their}");
            }
            passes += our.passes;
        }
    }
    assert!(passes > 0, "{}", folder.display());
}

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

/// Of a run that lost a result to damage, the rest is played as long as it was.
#[test]
fn a_lost_result_leaves_the_rest_as_long_as_it_was() {
    let entries = golden();
    let prompts = |entries: &[Arc<Entry>]| {
        let source = Source::new("demo", entries.to_vec());
        let outcome = simulate(&source, &Contender::none().policy, &Terms::default()).outcome;
        outcome.sizes
    };
    let whole = prompts(&entries);
    let is_result = |entry: &Arc<Entry>| matches!(entry.event, Event::Result(_));
    let lost = entries.iter().position(is_result).unwrap();
    let Event::Result(result) = &entries[lost].event else {
        panic!()
    };
    let most = result.content.len() as u64 / 3 + 30;
    let damaged = prompts(&[&entries[..lost], &entries[lost + 1..]].concat());
    assert_eq!(damaged.len(), whole.len());
    for (damaged, whole) in damaged.iter().zip(&whole) {
        assert!(whole.abs_diff(*damaged) < most, "{damaged} of {whole}");
    }
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
    let again = &played.view.transcript().entries().to_vec();
    assert_eq!(overlays(again), recorded);
    assert_eq!(estimates(again), estimates(&entries));
    assert_eq!(played.outcome.overlays, recorded.len() as u64);
    assert!(!played.outcome.stopped);

    // Another policy lays something else, and none lays nothing.
    let mut other = own.clone();
    other.micro.min_gain_tokens = 0;
    other.micro.keep_recent = 1;
    let played = simulate(&source, &other, &terms);
    assert_ne!(
        overlays(&played.view.transcript().entries().to_vec()),
        recorded
    );
    let none = Compaction {
        enabled: false,
        ..own
    };
    let played = simulate(&source, &none, &terms);
    assert_eq!(overlays(&played.view.transcript().entries().to_vec()), []);
}
