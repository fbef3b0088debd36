//! The demo as a person sees it.

use std::fs;
use std::io::{BufRead as _, BufReader};

use rustix::process::Signal;

use crate::cli::{Place, ended, signal};

#[test]
fn the_demo_fits_the_terminal() {
    let place = Place::new();
    let mut command = place.command(&["demo"]);
    let ran = ended(command.env("COLUMNS", "80").spawn().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    // Paths and commands are there to be copied.
    let is_told = |line: &&str| !line.contains('/') || line.starts_with("  ");
    let wide: Vec<&str> = ran
        .out
        .lines()
        .filter(is_told)
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert!(wide.is_empty(), "{wide:#?}");
}

/// Whoever ends it finds nothing left but the transcript, which can be taken up again.
#[test]
fn a_demo_that_is_ended_leaves_nothing_behind() {
    for (signalled, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 143)] {
        let place = Place::new();
        let temporary = place.path("tmp");
        fs::create_dir(&temporary).unwrap();
        let mut command = place.command(&["demo"]);
        let mut child = command.env("TMPDIR", &temporary).spawn().unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        let begun = told.find(|line| line.as_ref().unwrap().starts_with("r2 "));
        assert!(begun.is_some());
        signal(&child, signalled);
        let rest: Vec<String> = told.map(Result::unwrap).collect();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(code), "{rest:#?}");
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
        assert_eq!(place.transcripts().len(), 1);
    }
}

/// The overlays of a run without the moments they were laid at.
fn overlays(place: &Place) -> Vec<String> {
    let transcript = fs::read_to_string(&place.transcripts()[0]).unwrap();
    let laid = transcript
        .lines()
        .filter(|line| line.contains(r#""type":"overlay""#));
    let timeless = |line: &str| {
        let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let members = entry.as_object_mut().unwrap();
        members.retain(|name, _| name != "at" && name != "crc");
        entry.to_string()
    };
    laid.map(timeless).collect()
}

#[test]
fn the_same_seed_lays_the_same_overlays_and_none_if_told_so() {
    let played = |args: &[&str]| {
        let place = Place::new();
        let mut command = place.command(&["demo", "--seed", "3"]);
        let ran = ended(command.args(args).spawn().unwrap());
        (
            overlays(&place),
            fs::read_to_string(&place.transcripts()[0]).unwrap(),
            ran,
        )
    };
    let (first, transcript, _) = played(&[]);
    assert!(first.len() >= 3, "{first:#?}");
    assert!(transcript.contains(r#""name":"Compact""#));
    assert_eq!(played(&[]).0, first);
    let (none, transcript, ran) = played(&["--set", "compaction.enabled=false"]);
    assert_eq!((none, ran.code), (Vec::new(), 0), "{}", ran.err);
    assert!(!transcript.contains(r#""name":"Compact""#));
}

#[test]
fn a_demo_does_not_pretend_to_take_other_settings() {
    let place = Place::new();
    let ran = place.run(&["demo", "--set", "model.name=x"]);
    assert_eq!(ran.code, 2);
    assert_eq!(
        ran.err,
        "undertext: a demo has its own settings but for compaction and limits; leave out model.name=x\n"
    );
}
