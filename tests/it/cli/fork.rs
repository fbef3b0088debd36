//! Another run from a point of one.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use serde_json::Value;
use undertext::exchange::{Clipped, Facts, Status, ToolResult};
use undertext::id::{CallId, Digest};
use undertext::record::{Durability, FileStorage};
use undertext::transcript::{Event, Purpose};

use crate::cli::sample::{KEPT, RUN, compacted, told, write};
use crate::cli::{Place, ran_id, says};
use crate::provider::Provider;

#[test]
fn a_run_is_forked() {
    let place = Place::new();
    let mut draft = compacted();
    let request = draft.request(Purpose::Round);
    let open = draft.response(request, "", &[], &[("Bash", "{}"), ("Bash", "{}")]);
    let (kept, lost) = (Digest::of(b"kept"), Digest::of(b"lost"));
    let path = write(&place, &draft);
    let told = told(
        &place,
        &[
            "fork 7c31d0f2 --at nowhere",
            "fork 7c31d0f2 --at e99",
            "fork 7c31d0f2 --at start",
            "fork 7c31d0f2",
            "fork 7c31d0f2 --at e16 --name again",
            "fork 7c31d0f2 --at r2",
        ],
    );
    insta::assert_snapshot!(told, @r#"
    $ fork 7c31d0f2 --at nowhere
    undertext: invalid value 'nowhere' for '--at <ADDRESS>': `nowhere` is no address; use e210 (entry), r120 or r-3 (round), 5 or -3 (turn), 41.2 (call), 5h (ago), last, last-compaction, start or end

    exit 2

    $ fork 7c31d0f2 --at e99
    undertext: e99 points at nothing: the run has 28 entries, 6 rounds, 2 turns

    exit 2

    $ fork 7c31d0f2 --at start
    undertext: no round is closed at e1 yet; the first one is at e7

    exit 2

    $ fork 7c31d0f2
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
      forked from      7c31d0f2 at e26, after 5 rounds: a round is open at e28
      next request     266 tokens, 4 % of 6,000
      to go on         undertext run --resume RUN "TASK"

    $ fork 7c31d0f2 --at e16 --name again
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
      forked from      7c31d0f2 at e14, after 3 rounds: a round is open at e16
      next request     299 tokens, 4 % of 6,000
      to go on         undertext run --resume RUN

    $ fork 7c31d0f2 --at r2
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
      forked from      7c31d0f2 at e10, after 2 rounds
      next request     1,175 tokens, 19 % of 6,000
      to go on         undertext run --resume RUN
    "#);

    // A run at work is forked as well, with what its entries name.
    let name = "whole".to_owned();
    for (place, blob) in [(1, kept), (2, lost)] {
        draft.push(Event::Result(ToolResult {
            call: CallId::new(open, place),
            status: Status::Ok,
            content: name.clone(),
            clipped: Some(Clipped {
                bytes: 4,
                blob: Some(blob),
            }),
            facts: Facts::default(),
            ms: None,
        }));
    }
    write(&place, &draft);
    let blobs = path.with_extension("blobs");
    fs::create_dir(&blobs).unwrap();
    fs::write(blobs.join(kept.hex()), "kept").unwrap();
    let held = FileStorage::open(&path, Durability::None).unwrap();
    let ran = place.run(&["fork", RUN, "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    drop(held);
    let made: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&made["blobs"], &made["lost_blobs"]),
        (&1.into(), &1.into())
    );
    let fork = Path::new(made["transcript"].as_str().unwrap());
    let (theirs, ours) = (fs::read(&path).unwrap(), fs::read(fork).unwrap());
    assert_eq!(behind_the_first(&theirs), behind_the_first(&ours));
    let blob = fork.with_extension("blobs").join(kept.hex());
    assert_eq!(fs::metadata(&blob).unwrap().nlink(), 2);
    assert_eq!(
        fs::metadata(fork).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let dir = fs::read_dir(place.path(KEPT)).unwrap();
    let halves = dir.filter(|file| file.as_ref().unwrap().path().extension().unwrap() == "part");
    assert_eq!(halves.count(), 0);
}

/// The model can be asked as if an overlay had not been laid.
#[test]
fn a_fork_does_without_overlays() {
    let place = Place::new();
    write(&place, &compacted());
    let told = told(
        &place,
        &[
            "fork 7c31d0f2 --at r4 --without e14",
            "fork 7c31d0f2 --at r4 --without last --name again --json",
            "fork 7c31d0f2 --without last --without last",
            "fork 7c31d0f2 --at r5 --without all --compact=light",
            "fork 7c31d0f2 --at r3 --without e14",
            "fork 7c31d0f2 --at r3 --without last",
            "fork 7c31d0f2 --at r4 --without e13",
            "fork 7c31d0f2 --without nothing",
        ],
    );
    let undo = regex::Regex::new("undo [0-9a-f]{8}").unwrap();
    let told = undo.replace_all(&told, "undo RUN");
    insta::assert_snapshot!(told, @r#"
    $ fork 7c31d0f2 --at r4 --without e14
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
      forked from      7c31d0f2 at e17, after 4 rounds
      without          e14, taken back by e18
      next request     360 → 2,270 tokens, 37 % of 6,000
      to go on         undertext run --resume RUN

    $ fork 7c31d0f2 --at r4 --without last --name again --json
    {"run":"UUID","transcript":"/home/.local/state/undertext/transcripts/UUID.jsonl","parent":{"run":"UUID","entry":17},"rounds":4,"blobs":0,"without":{"entry":18,"overlays":[14],"next_request":{"before":360,"after":2270,"trigger":6000,"compacted_again":false}}}

    $ fork 7c31d0f2 --without last --without last
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
      forked from      7c31d0f2 at e26, after 5 rounds
      without          e18 e19 e22, taken back by e27
      next request     266 → 385 tokens, 6 % of 6,000
      to go on         undertext run --resume RUN "TASK"

    $ fork 7c31d0f2 --at r5 --without all --compact=light
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
      forked from      7c31d0f2 at e25, after 5 rounds
      without          e14 e18 e19 e22, taken back by e26
      next request     266 → 2,295 tokens, 38 % of 6,000
      to go on         undertext run --resume RUN "TASK"
    run RUN: 2,295 → 2,282 tokens, 0 % less
    rounds 1–2 reasoning stripped · 3–5 kept

      e27 strip-reasoning  2,295 → 2,282  2 blocks of reasoning in rounds 1 to 2

    to undo: undertext undo RUN

    $ fork 7c31d0f2 --at r3 --without e14
    undertext: e14 is not in the fork, which ends at e13: there it has not been laid; name a later --at, or leave out --without

    exit 2

    $ fork 7c31d0f2 --at r3 --without last
    undertext: in the fork, which ends at e13, there is nothing to take back: no overlay was ever laid; leave out --without

    exit 2

    $ fork 7c31d0f2 --at r4 --without e13
    undertext: in the fork, which ends at e17, e13 is a result, no overlay; the nearest is e14; leave out --without

    exit 2

    $ fork 7c31d0f2 --without nothing
    undertext: invalid value 'nothing' for '--without <OVERLAY>': `nothing` names no overlay; use e210, last or all

    exit 2
    "#);
    // The same entries, and one more.
    let parent = fs::read_to_string(place.path(KEPT).join(format!("{RUN}.jsonl"))).unwrap();
    let fork = fs::read_to_string(&place.transcripts()[1]).unwrap();
    let (taken, more) = fork.trim_end().rsplit_once('\n').unwrap();
    assert!(
        more.contains(r#""type":"retract","overlays":[14],"origin":"user""#),
        "{more}"
    );
    let taken = taken.split_once('\n').unwrap().1;
    assert!(parent.contains(taken), "{taken}");
}

/// The lines of a transcript behind its first.
fn behind_the_first(bytes: &[u8]) -> &str {
    let text = std::str::from_utf8(bytes).unwrap();
    text.split_once('\n').unwrap().1
}

/// Damage is not taken over.
#[test]
fn a_damaged_run_is_forked_before_the_damage() {
    let place = Place::new();
    let path = write(&place, &compacted());
    let damaged = fs::read_to_string(&path).unwrap();
    let damaged = damaged.replace("it fails", "it failed");
    fs::write(&path, &damaged).unwrap();
    let told = told(&place, &["fork 7c31d0f2", "fork 7c31d0f2 --at r3"]);
    insta::assert_snapshot!(told, @"
    $ fork 7c31d0f2
    warning: /home/.local/state/undertext/transcripts/UUID.jsonl is damaged: line 17: checksum does not match; line 18: entry 17 is missing
    undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is damaged before e26: line 17: checksum does not match; `--at e14` takes the rounds before that

    exit 6

    $ fork 7c31d0f2 --at r3
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
      forked from      7c31d0f2 at e13, after 3 rounds
      next request     2,209 tokens, 36 % of 6,000
      to go on         undertext run --resume RUN
    warning: /home/.local/state/undertext/transcripts/UUID.jsonl is damaged: line 17: checksum does not match; line 18: entry 17 is missing
    ");
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
}

/// Its requests are its parent's, and it goes on by itself.
#[test]
fn a_fork_is_proved_and_goes_on() {
    let place = Place::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");
    let verify = |run: &str| {
        let ran = place.run(&["replay", "--verify", run]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out
    };
    let fork = |line: &[&str]| {
        let ran = place.run(&[&["fork", "--json"], line].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let made: Value = serde_json::from_str(&ran.out).unwrap();
        made["transcript"].as_str().unwrap().to_owned()
    };
    assert_eq!(verify(&fork(&[golden])), verify(golden));

    let provider = Provider::new([says("One."), says("Two."), says("Other.")]);
    place.ask(&provider, &["first"]);
    place.ask(&provider, &["--continue", "second"]);
    let parent = place.transcripts().pop().unwrap();
    let whole = fs::read(&parent).unwrap();
    let fork = fork(&[parent.to_str().unwrap(), "--at", "r1"]);
    let ran = place.ask(
        &provider,
        &["--resume", &ran_id(Path::new(&fork)), "another"],
    );
    assert_eq!((ran.code, ran.out.as_str()), (0, "Other.\n"), "{ran:?}");
    let said: Vec<Vec<Value>> = (0..3).map(|_| provider.messages()).collect();
    assert_eq!(said[2][..3], said[1][..3]);
    assert_eq!(said[2][3]["content"], "another");
    assert_eq!(fs::read(&parent).unwrap(), whole);
    verify(&fork);
}
