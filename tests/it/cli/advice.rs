//! Every refusal says in one line what was refused, why, and what can be done; what is advised works.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use undertext::record::{Durability, FileStorage};

use crate::cli::{Place, Ran};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

/// Refusals whose reason says itself what can be done, or that nothing needs to be.
const ENOUGH: [&str; 22] = [
    // The place of what is wrong, and what may stand there.
    "wrong setting in ",
    "wrong tool in ",
    " cannot be used: ",
    "must be an http or https address",
    ", did you mean ",
    "invalid value ",
    // What there is instead.
    " points at nothing: ",
    "say what it is about: ",
    ": name one of them",
    ": give words that it says",
    ": name two or more",
    ": undertext ",
    ", no overlay",
    " is no call: ",
    "only messages, replies and results can be pinned",
    " tokens, and ",
    // It is done already, or there is nothing to do.
    " taken back already",
    ": laying it ",
    " is no recording: ",
    ", so there is nothing to pin",
    ": a new run has nothing to compact",
    "nobody reads the output",
];

/// What the program refused here without saying what can be done; each time it ends, it is asked.
pub(super) fn unadvised(ran: &Ran) -> Vec<&str> {
    let lines = ran.err.lines();
    let refusals = lines.filter(|line| line.starts_with("undertext: ") && ran.code != 0);
    let says = |line: &&str| line.contains("; ") || ENOUGH.iter().any(|part| line.contains(part));
    refusals.filter(|line| !says(line)).collect()
}

/// The golden run under another id.
fn copy(dir: &Path, id: u32) {
    let name = format!("01a1ffb1-ba00-7000-8000-0000aaaa000{id}.jsonl");
    fs::create_dir_all(dir).unwrap();
    fs::copy(GOLDEN, dir.join(name)).unwrap();
}

#[test]
fn what_is_in_use_or_may_be_several_is_told_with_what_to_do() {
    let place = Place::new();
    let dir = place.path("home/.local/state/undertext/transcripts");
    copy(&dir, 1);
    copy(&dir, 2);
    let run = "aaaa0001";
    let path = dir.join("01a1ffb1-ba00-7000-8000-0000aaaa0001.jsonl");
    let used = FileStorage::open(&path, Durability::None).unwrap();
    let mut said = String::new();
    for line in [
        &["show", "aaaa"][..],
        &["run", "-m", "offline", "--resume", run, "-C", ".", "go on"],
        &["compact", run],
        &["pin", run, "e20"],
        &["rm", run],
    ] {
        let ran = place.run(line);
        assert_eq!(ran.out, "", "{line:?}");
        write!(said, "{} {}", ran.code, place.plain(&ran.err)).unwrap();
    }
    insta::assert_snapshot!(said, @"
    2 undertext: `aaaa` may be any of aaaa0002, aaaa0001; give more of its id, as `undertext list` shows it
    6 undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is in use by another process; wait until that ends, or go on with a copy: `undertext fork` makes one meanwhile
    6 undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is in use by another process; wait until that ends, or go on with a copy: `undertext fork` makes one meanwhile
    6 undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is in use by another process; wait until that ends, or go on with a copy: `undertext fork` makes one meanwhile
    6 undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is in use by another process; wait until that ends, or end it
    ");
    // As is advised.
    for line in [&["show", "aaaa0002"][..], &["show", run], &["fork", run]] {
        let ran = place.run(line);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line:?}");
    }
    drop(used);
}

/// The rounds before the damage are forked by the very address that the refusal names, and the copy is
/// sound.
#[test]
fn the_rounds_before_damage_are_had_as_is_advised() {
    let place = Place::new();
    let golden = fs::read_to_string(GOLDEN).unwrap();
    for (line, advice) in [(20, Some("--at e16")), (4, None)] {
        let lines = golden.lines().zip(1..).map(|(text, number)| {
            let text = if number == line { &text[1..] } else { text };
            format!("{text}\n")
        });
        let file = format!("{line}.jsonl");
        fs::write(place.path("home/w").join(&file), lines.collect::<String>()).unwrap();
        let ran = place.run(&["fork", &file]);
        assert_eq!(ran.code, 6, "{ran:?}");
        let refusal = ran.err.lines().last().unwrap();
        let Some(advice) = advice else {
            let print = "; `undertext print` shows what is left";
            assert!(refusal.ends_with(print), "{refusal}");
            assert_eq!(place.run(&["print", &file]).code, 0);
            continue;
        };
        let says = format!("; `{advice}` takes the rounds before that");
        assert!(refusal.ends_with(&says), "{refusal}");
        let at = advice.split(' ').collect::<Vec<_>>();
        let ran = place.run(&[&["fork", &file], &at[..]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let fork = place.transcripts().remove(0);
        let verified = place.run(&["replay", "--verify", fork.to_str().unwrap()]);
        assert_eq!((verified.code, verified.err.as_str()), (0, ""));
    }
}
