//! A person changes how a run reads: overlays taken back, calls shown, entries pinned.

use std::fs;

use serde_json::Value;
use undertext::record::{Durability, FileStorage};
use undertext::transcript::Speaker;

use crate::cli::Place;
use crate::cli::sample::{RUN, compacted, told, write};

#[test]
fn overlays_are_taken_back() {
    let place = Place::new();
    let path = write(&place, &compacted());
    let before = fs::read(&path).unwrap();
    let wrong = told(
        &place,
        &[
            "retract 7c31d0f2 first",
            "retract 7c31d0f2 e99",
            "retract 7c31d0f2 e15",
            "retract 7c31d0f2 e1",
            "retract 00000000",
        ],
    );
    insta::assert_snapshot!(wrong, @"
    $ retract 7c31d0f2 first
    undertext: invalid value 'first' for '[OVERLAY|last|all]': `first` names no overlay; use e210, last or all

    exit 2

    $ retract 7c31d0f2 e99
    undertext: e99 points at nothing: the last entry is e26

    exit 2

    $ retract 7c31d0f2 e15
    undertext: e15 is a request, no overlay; the nearest are e14 and e18

    exit 2

    $ retract 7c31d0f2 e1
    undertext: e1 is the run's beginning, no overlay; the nearest is e14

    exit 2

    $ retract 00000000
    undertext: no run `00000000` in /home/.local/state/undertext/transcripts; `undertext list` shows all runs

    exit 2
    ");
    assert_eq!(fs::read(&path).unwrap(), before);
    let right = told(
        &place,
        &[
            "retract 7c31d0f2",
            "undo 7c31d0f2",
            "retract 7c31d0f2 e18",
            "retract 7c31d0f2 14",
            "undo 7c31d0f2 all",
        ],
    );
    insta::assert_snapshot!(right, @"
    $ retract 7c31d0f2
    took back e22  run RUN, entry e27
      reads again      2 rounds (r1 to r2)
      still put away   3 results, by e14 e18
      next request     266 → 329 tokens, 5 % of 6,000
      to lay it again  undertext compact 7c31d0f2 --again e22

    $ undo 7c31d0f2
    took back e18 e19  run RUN, entry e28
      reads again      2 blocks of reasoning
      in full again    1 result: 5.2
      arguments of     1 call: 12.1
      next request     329 → 385 tokens, 6 % of 6,000
      to lay one anew  undertext compact 7c31d0f2 --again OVERLAY

    $ retract 7c31d0f2 e18
    undertext: e18 was taken back already, by e28

    exit 2

    $ retract 7c31d0f2 14
    took back e14  run RUN, entry e29
      in full again    3 results: 5.1 9.1 12.1
      next request     385 → 2,295 tokens, 38 % of 6,000
      to lay it again  undertext compact 7c31d0f2 --again e14

    $ undo 7c31d0f2 all
    undertext: there is nothing to take back: all 4 overlays are taken back already

    exit 2
    ");
    let shown = place.run(&["show", RUN]).out;
    assert!(shown.starts_with("run 7c31d0f2  finished\n"), "{shown}");
    let listed = place.run(&["list"]).out;
    assert!(listed.contains("finished"), "{listed}");
    // Nothing but the three retracts came behind what was there.
    let after = fs::read(&path).unwrap();
    let added = String::from_utf8(after.strip_prefix(&before[..]).unwrap().to_vec()).unwrap();
    let named: Vec<Value> = added
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["overlays"].clone())
        .collect();
    assert_eq!(named, [Value::from([22]), [18, 19].into(), [14].into()]);
}

#[test]
fn a_summary_comes_off_what_lies_under_it() {
    let place = Place::new();
    write(&place, &compacted());
    let told = told(&place, &["retract 7c31d0f2 e14", "retract 7c31d0f2 all"]);
    insta::assert_snapshot!(told, @"
    $ retract 7c31d0f2 e14
    took back e14  run RUN, entry e27
      in full again    1 result: 12.1
      next request     266 → 1,228 tokens, 20 % of 6,000
      to lay it again  undertext compact 7c31d0f2 --again e14

    $ retract 7c31d0f2 all
    took back e18 e19 e22  run RUN, entry e28
      reads again      2 rounds (r1 to r2), 1 block of reasoning
      in full again    3 results: 5.1 5.2 9.1
      arguments of     1 call: 12.1
      next request     1,228 → 2,295 tokens, 38 % of 6,000
      to lay one anew  undertext compact 7c31d0f2 --again OVERLAY
    ");
}

#[test]
fn a_call_is_shown_again() {
    let place = Place::new();
    let path = write(&place, &compacted());
    let before = fs::read(&path).unwrap();
    let wrong = told(
        &place,
        &[
            "expand 7c31d0f2 e5",
            "expand 7c31d0f2 99.1",
            "expand 7c31d0f2 6.1",
            "expand 7c31d0f2 15.1",
            "expand 7c31d0f2 12.2",
            "expand 7c31d0f2 21.1",
            "expand 7c31d0f2 5.2",
            "expand 7c31d0f2 12.1",
            "expand 7c31d0f2 16.1",
        ],
    );
    insta::assert_snapshot!(wrong, @"
    $ expand 7c31d0f2 e5
    undertext: invalid value 'e5' for '<CALL>': `e5` is no call, such as 17.2

    exit 2

    $ expand 7c31d0f2 99.1
    undertext: e99 points at nothing: the last entry is e26

    exit 2

    $ expand 7c31d0f2 6.1
    undertext: 6.1 is no call: e6 is a result of 5.1: undertext expand 7c31d0f2 5.1

    exit 2

    $ expand 7c31d0f2 15.1
    undertext: 15.1 is no call: e15 is a request

    exit 2

    $ expand 7c31d0f2 12.2
    undertext: 12.2 is no call: e12 makes only one call

    exit 2

    $ expand 7c31d0f2 21.1
    undertext: 21.1 is no call: e21 makes no calls

    exit 2

    $ expand 7c31d0f2 5.2
    undertext: 5.2 lies in the summary e22; take that back first: undertext retract 7c31d0f2 e22

    exit 2

    $ expand 7c31d0f2 12.1
    undertext: 12.1 takes about 981 tokens, and what is shown may take 596 together; 0 of them are taken

    exit 2

    $ expand 7c31d0f2 16.1
    16.1 reads in full already; nothing is changed
    ");
    assert_eq!(fs::read(&path).unwrap(), before);
    let right = told(
        &place,
        &[
            "retract 7c31d0f2 e22",
            "expand 7c31d0f2 5.1",
            "expand 7c31d0f2 5.2",
            "expand 7c31d0f2 9.1",
            "expand 7c31d0f2 5.1",
            "undo 7c31d0f2 28",
            "undo 7c31d0f2 e27",
        ],
    );
    insta::assert_snapshot!(right, @"
    $ retract 7c31d0f2 e22
    took back e22  run RUN, entry e27
      reads again      2 rounds (r1 to r2)
      still put away   3 results, by e14 e18
      next request     266 → 329 tokens, 5 % of 6,000
      to lay it again  undertext compact 7c31d0f2 --again e22

    $ expand 7c31d0f2 5.1
    5.1 reads in full again  run RUN, overlay e28
      lifted from it   e14
      shown calls      493 of 596 tokens
      next request     329 → 804 tokens, 13 % of 6,000
      to undo it       undertext retract 7c31d0f2 e28

    $ expand 7c31d0f2 5.2
    5.2 reads in full again  run RUN, overlay e29
      lifted from it   e18
      shown calls      501 of 596 tokens
      next request     804 → 843 tokens, 14 % of 6,000
      to undo it       undertext retract 7c31d0f2 e29

    $ expand 7c31d0f2 9.1
    undertext: 9.1 takes about 493 tokens, and what is shown may take 596 together; 501 of them are taken: undertext retract 7c31d0f2 OVERLAY takes back what shows another

    exit 2

    $ expand 7c31d0f2 5.1
    5.1 reads in full already; nothing is changed

    $ undo 7c31d0f2 28
    took back e28  run RUN, entry e30
      put away again   1 result: 5.1
      next request     843 → 369 tokens, 6 % of 6,000
      to lay it again  undertext compact 7c31d0f2 --again e28

    $ undo 7c31d0f2 e27
    undertext: e27 is a retract, no overlay; the nearest are e19 and e29

    exit 2
    ");
}

#[test]
fn what_cannot_be_pinned_is_refused() {
    let place = Place::new();
    let path = write(&place, &compacted());
    let before = fs::read(&path).unwrap();
    let wrong = told(
        &place,
        &[
            "pin 7c31d0f2 5",
            "pin 7c31d0f2 e99",
            "pin 7c31d0f2 e2",
            "pin 7c31d0f2 e14",
            "pin 7c31d0f2 e15",
            "pin 7c31d0f2 e21",
            "pin 7c31d0f2 5.3",
            "unpin 7c31d0f2 e99",
            "unpin 7c31d0f2 e3",
        ],
    );
    insta::assert_snapshot!(wrong, @"
    $ pin 7c31d0f2 5
    undertext: invalid value '5' for '<ENTRY>': `5` names neither an entry nor a call; use e57 or 41.2

    exit 2

    $ pin 7c31d0f2 e99
    undertext: e99 points at nothing: the last entry is e26

    exit 2

    $ pin 7c31d0f2 e2
    undertext: e2 is a setup: only messages, replies and results can be pinned

    exit 2

    $ pin 7c31d0f2 e14
    undertext: e14 is an overlay: only messages, replies and results can be pinned

    exit 2

    $ pin 7c31d0f2 e15
    undertext: e15 is a request: only messages, replies and results can be pinned; did you mean e16?

    exit 2

    $ pin 7c31d0f2 e21
    undertext: e21 was never sent to the model, so there is nothing to pin

    exit 2

    $ pin 7c31d0f2 5.3
    undertext: 5.3 is no call: e5 makes 2 calls

    exit 2

    $ unpin 7c31d0f2 e99
    undertext: e99 points at nothing: the last entry is e26

    exit 2

    $ unpin 7c31d0f2 e3
    e3 is not pinned; nothing is changed
    ");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn entries_are_pinned() {
    let place = Place::new();
    write(&place, &compacted());
    let right = told(
        &place,
        &[
            "pin 7c31d0f2 16.1",
            "pin 7c31d0f2 e17",
            "pin 7c31d0f2 e23",
            "pin 7c31d0f2 5.1",
            "pin 7c31d0f2 e13",
            "pin 7c31d0f2 e13",
            "retract 7c31d0f2 e22",
            "retract 7c31d0f2 e14",
            "pin 7c31d0f2 e13",
            "pin 7c31d0f2 e6",
            "pin 7c31d0f2 9.1",
            "unpin 7c31d0f2 5.1",
            "unpin 7c31d0f2 5.1",
        ],
    );
    insta::assert_snapshot!(right, @"
    $ pin 7c31d0f2 16.1
    pinned e17  run RUN, entry e27
      all pins         10 of 596 tokens
      to undo it       undertext unpin 7c31d0f2 e17

    $ pin 7c31d0f2 e17
    e17 is pinned already; nothing is changed

    $ pin 7c31d0f2 e23
    pinned e23  run RUN, entry e28
      all pins         19 of 596 tokens
      to undo it       undertext unpin 7c31d0f2 e23

    $ pin 7c31d0f2 5.1
    pinned e6  run RUN, entry e29
      all pins         19 of 596 tokens
      to undo it       undertext unpin 7c31d0f2 e6
    warning: e6 does not read in full, by e22, and a pin uncovers nothing: it protects nothing until it is laid again after `undertext retract 7c31d0f2 e22`

    $ pin 7c31d0f2 e13
    pinned e13  run RUN, entry e30
      all pins         19 of 596 tokens
      to undo it       undertext unpin 7c31d0f2 e13
    warning: e13 does not read in full, by e14, and a pin uncovers nothing: it protects nothing until it is laid again after `undertext expand 7c31d0f2 12.1`

    $ pin 7c31d0f2 e13
    e13 is pinned already; nothing is changed
    warning: e13 does not read in full, by e14, and a pin uncovers nothing: it protects nothing until it is laid again after `undertext expand 7c31d0f2 12.1`

    $ retract 7c31d0f2 e22
    took back e22  run RUN, entry e31
      reads again      2 rounds (r1 to r2)
      still put away   3 results, by e14 e18
      next request     266 → 329 tokens, 5 % of 6,000
      to lay it again  undertext compact 7c31d0f2 --again e22

    $ retract 7c31d0f2 e14
    took back e14  run RUN, entry e32
      in full again    3 results: 5.1 9.1 12.1
      next request     329 → 2,239 tokens, 37 % of 6,000
      to lay it again  undertext compact 7c31d0f2 --again e14

    $ pin 7c31d0f2 e13
    undertext: e13 takes about 983 tokens, and pins may take 596 together; 19 of them are taken

    exit 2

    $ pin 7c31d0f2 e6
    pinned e6  run RUN, entry e33
      all pins         514 of 596 tokens
      to undo it       undertext unpin 7c31d0f2 e6

    $ pin 7c31d0f2 9.1
    undertext: e10 takes about 495 tokens, and pins may take 596 together; 514 of them are taken

    exit 2

    $ unpin 7c31d0f2 5.1
    unpinned e6  run RUN, entry e34
      to undo it       undertext pin 7c31d0f2 e6

    $ unpin 7c31d0f2 5.1
    e6 is not pinned; nothing is changed
    ");
}

#[test]
fn what_is_uncovered_may_be_compacted_again() {
    let place = Place::new();
    let mut draft = compacted();
    draft.user(Speaker::FollowUp, &"And one word more. ".repeat(1_150));
    draft.round("Done.", &[]);
    write(&place, &draft);
    let told = told(&place, &["retract 7c31d0f2 all"]);
    insta::assert_snapshot!(told, @"
    $ retract 7c31d0f2 all
    took back e14 e18 e19 e22  run RUN, entry e30
      reads again      2 rounds (r1 to r2), 1 block of reasoning
      in full again    4 results: 5.1 5.2 9.1 12.1
      arguments of     1 call: 12.1
      next request     5,752 → 7,781 tokens, 129 % of 6,000
      to lay one anew  undertext compact 7c31d0f2 --again OVERLAY
    warning: the next request would be over 6,000 tokens, so it is compacted again before it is sent
    ");
}

#[test]
fn a_run_that_is_damaged_or_in_use_is_not_changed() {
    let place = Place::new();
    let path = write(&place, &compacted());
    let text = fs::read_to_string(&path).unwrap();
    let damaged = text.replace("it fails", "it failed");
    fs::write(&path, &damaged).unwrap();
    let lines = ["retract 7c31d0f2", "expand 7c31d0f2 5.1", "pin 7c31d0f2 e3"];
    let mut said = told(&place, &lines);
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    fs::write(&path, &text).unwrap();
    let held = FileStorage::open(&path, Durability::None).unwrap();
    said += &told(&place, &["undo 7c31d0f2", "unpin 7c31d0f2 e3"]);
    drop(held);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    insta::assert_snapshot!(said, @"
    $ retract 7c31d0f2
    undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is damaged: line 17: checksum does not match; line 18: entry 17 is missing; `undertext fork --at` makes a sound run of what lies before it

    exit 6

    $ expand 7c31d0f2 5.1
    undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is damaged: line 17: checksum does not match; line 18: entry 17 is missing; `undertext fork --at` makes a sound run of what lies before it

    exit 6

    $ pin 7c31d0f2 e3
    undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is damaged: line 17: checksum does not match; line 18: entry 17 is missing; `undertext fork --at` makes a sound run of what lies before it

    exit 6

    $ undo 7c31d0f2
    undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is in use by another process; wait until that ends, or go on with a copy: `undertext fork` makes one meanwhile

    exit 6

    $ unpin 7c31d0f2 e3
    undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is in use by another process; wait until that ends, or go on with a copy: `undertext fork` makes one meanwhile

    exit 6
    ");
}

/// Of a long run an index is kept, and what is added by hand leaves it as it is but for its end, which
/// says that nobody else has written.
#[test]
fn the_index_of_a_long_run_is_kept_by_whoever_adds_to_it() {
    let place = Place::new();
    let mut draft = compacted();
    for _ in 0..5 {
        draft.user(Speaker::FollowUp, &"long ".repeat(200_000));
    }
    let index = write(&place, &draft).with_extension("index");
    assert_eq!(place.run(&["pin", RUN, "e3"]).code, 0);
    let made = fs::read(&index).unwrap();
    assert_eq!(place.run(&["unpin", RUN, "e3"]).code, 0);
    let stamped = fs::read(&index).unwrap();
    let same = made
        .iter()
        .zip(&stamped)
        .take_while(|(one, two)| one == two);
    let (same, length) = (same.count(), stamped.len());
    assert!(same < length && length - same < 100, "{same} of {length}");
}
