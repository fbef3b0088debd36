//! `why`, `replay --diff` and `replay --blame`, as people read them.

use std::fs;

use crate::cli::Place;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

/// What the program says of a copy of the golden run, and its exit code.
#[track_caller]
fn said(line: &[&str]) -> String {
    let place = Place::new();
    fs::copy(GOLDEN, place.path("home/w/run.jsonl")).unwrap();
    let ran = place.run(line);
    if ran.code == 0 && ran.err.is_empty() {
        ran.out
    } else {
        let said = format!("{}{}[exit {}]\n", ran.out, ran.err, ran.code);
        place.plain(&said)
    }
}

#[test]
fn the_life_of_an_entry() {
    insta::assert_snapshot!(said(&["why", "run.jsonl", "e29"]), @"
    e29  result of Read (lib/voucher.awk), 846 chars, round 5
      r6–r9     in full
      r10–r11   stub        e48 auto: 15,208 of 14,000 tokens (chars/4)
      r12–      in a band   e57 tool: the model asked, focus: the failing test `sh tests/run.sh`, the suspects `lib/v…
      read by a summariser: e55 for e57
      fetched again: 59.1 Read (lib/voucher.awk) in round 12, the same call again
      undo: undertext retract 00000001 57 · keep next time: undertext pin 00000001 e29
    ");
    insta::assert_snapshot!(said(&["why", "run.jsonl", "9.1"]), @"
    9.1  call of LoadSkill (mend-the-till), 24 chars, round 2
      r3–r11    in full
      r12–      in a band   e57 tool: the model asked, focus: the failing test `sh tests/run.sh`, the suspects `lib/v…; shown again in full behind e57
      read by a summariser: e55 for e57
      fetched again: never
      undo: undertext retract 00000001 57 · keep next time: undertext pin 00000001 e10

    e10  result of LoadSkill (mend-the-till), 888 chars, round 2
      r3–r11    in full
      r12–      in a band   e57 tool: the model asked, focus: the failing test `sh tests/run.sh`, the suspects `lib/v…; shown again in full behind e57
      read by a summariser: e55 for e57
      fetched again: never
      undo: undertext retract 00000001 57 · keep next time: undertext pin 00000001 e10
    ");
}

#[test]
fn entries_that_say_something() {
    let text = r#"FAIL voucher_value\("V-0500", \d+\)"#;
    insta::assert_snapshot!(said(&["why", "run.jsonl", "--text", text]), @r#"
    e20  result of Bash (sh tests/run.sh), 7,973 chars, round 3
      says: FAIL voucher_value("V-0500", 999)
      r4–r6     in full
      r7–r11    stub        e38 micro: 2,636 of 1,400 tokens, not among the newest 10
      r12–      in a band   e57 tool: the model asked, focus: the failing test `sh tests/run.sh`, the suspects `lib/v…; "FAIL voucher_value("V-0500", 999)" is in its text
      read by a summariser: e55 for e57
      fetched again: never
      undo: undertext retract 00000001 57 · keep next time: undertext pin 00000001 e20

    e37  result of Bash (sh tests/run.sh), 3,965 chars, round 6
      says: FAIL voucher_value("V-0500", 999)
      r7–r9     in full
      r10–r11   stub        e48 auto: 15,208 of 14,000 tokens (chars/4)
      r12–      in a band   e57 tool: the model asked, focus: the failing test `sh tests/run.sh`, the suspects `lib/v…; "FAIL voucher_value("V-0500", 999)" is in its text
      read by a summariser: e55 for e57
      fetched again: never
      undo: undertext retract 00000001 57 · keep next time: undertext pin 00000001 e37

    e57  tool: summary of e4–e51, 2,836 chars
      says: FAIL voucher_value("V-0500", 999)
      because: the model asked, focus: the failing test `sh tests/run.sh`, the suspects `lib/v…
      next request: 10,556 → 5,175 tokens
      covers: e4–e51, rounds 1 to 10
      shown again behind it: 34.1, 9.1, the working state
      | An extract by rules; no LLM wrote it.
      | 
      | Task:
      | > `sh tests/run.sh` fails. Find the bug and mend it. The tests and their data are right: change neither, and nothing that need not be changed.
      | 
      | Focus:
      | the failing test `sh tests/run.sh`, the suspects `lib/voucher.awk`, `lib/main.awk`, `bin/find-article`, `bin/till` and the repairs to try next
      | 
      | Test: `sh tests/run.sh`
      | It failed when it last ran:
      |     FAIL voucher_value("V-0500", 999)
      |       expected: 0
      | … all of it: undertext print 00000001 --at e57
      r12–      in force
      undo: undertext retract 00000001 57
    "#);
    insta::assert_snapshot!(said(&["why", "run.jsonl", "--text", "no such words"]), @"no entry says that");
    let all = said(&["why", "run.jsonl", "--text", "."]);
    insta::assert_snapshot!(all.lines().last().unwrap(), @"and 26 more");
    assert_eq!(all.lines().filter(|line| line.starts_with('e')).count(), 20);
}

#[test]
fn what_is_no_message_says_what_it_is() {
    let all = ["e2", "e4", "e38", "e56", "e72"];
    let all = all.map(|entry| said(&["why", "run.jsonl", entry]));
    insta::assert_snapshot!(all.concat(), @r#"
    e2  setup: offline (chat, profile openai, window 32,000)
      r1–       in force
    e4  request: round 1, about 3,638 tokens in 14,549 bytes
      no model reads it: it says what was sent
      its messages: undertext replay 00000001 --blame e4
    e38  micro: 3 results
      because: 2,636 of 1,400 tokens, not among the newest 10
      next request: 11,398 → 8,762 tokens
      stubs results of 5.2 9.3 18.1
      r7–       in force
      undo: undertext retract 00000001 38
    e56  response, 2,836 chars
      it answers e55, which is for no round
      its text is in e57
    e72  end: finished, 15 rounds, 29 calls, 127,638 tokens in (0 cached), 2,126 out, cost unknown, 27.2 s
      no model reads it
    "#);
}

#[test]
fn a_person_changes_it_and_sees_that() {
    let place = Place::new();
    fs::copy(GOLDEN, place.path("home/w/run.jsonl")).unwrap();
    for line in [
        &["retract", "run.jsonl", "57"][..],
        &["expand", "run.jsonl", "28.1"],
        &["pin", "run.jsonl", "e29"],
    ] {
        let ran = place.run(line);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    insta::assert_snapshot!(place.run(&["why", "run.jsonl", "e29"]).out, @"
    e29  result of Read (lib/voucher.awk), 846 chars, round 5
      r6–r9     in full
      r10–r11   stub        e48 auto: 15,208 of 14,000 tokens (chars/4)
      r12–r15   in a band   e57 tool: the model asked, focus: the failing test `sh tests/run.sh`, the suspects `lib/v…
      next      in full     e74 shows it
      read by a summariser: e55 for e57
      fetched again: 59.1 Read (lib/voucher.awk) in round 12, the same call again
    ");
    insta::assert_snapshot!(place.run(&["why", "run.jsonl", "e57"]).out, @r#"
    e57  tool: summary of e4–e51, 2,836 chars
      because: the model asked, focus: the failing test `sh tests/run.sh`, the suspects `lib/v…
      next request: 10,556 → 5,175 tokens
      covers: e4–e51, rounds 1 to 10
      shown again behind it: 34.1, 9.1, the working state
      | An extract by rules; no LLM wrote it.
      | 
      | Task:
      | > `sh tests/run.sh` fails. Find the bug and mend it. The tests and their data are right: change neither, and nothing that need not be changed.
      | 
      | Focus:
      | the failing test `sh tests/run.sh`, the suspects `lib/voucher.awk`, `lib/main.awk`, `bin/find-article`, `bin/till` and the repairs to try next
      | 
      | Test: `sh tests/run.sh`
      | It failed when it last ran:
      |     FAIL voucher_value("V-0500", 999)
      |       expected: 0
      | … all of it: undertext print 00000001 --at e57
      r12–r15   in force
      next      no more     taken back by e73
    "#);
}

/// What an overlay did, as programs read it: what it covers and why, since when, and until when.
#[test]
fn programs_read_what_an_overlay_did() {
    let place = Place::new();
    fs::copy(GOLDEN, place.path("home/w/run.jsonl")).unwrap();
    let told = |entry: &str| place.run(&["why", "run.jsonl", entry, "--json"]).out;
    insta::assert_snapshot!(told("e38"), @r#"{"type":"life","what":"micro: 3 results","chars":0,"overlay":{"kind":"stub","origin":"micro","rule":"micro","pass":38,"reason":"2636 of 1400 tokens","covers":"3 results","results":["5.2","9.3","18.1"],"size":{"before":11398,"after":8762},"from":{"request":39,"round":7}},"subject":{"entry":38},"stretches":[{"from":{"request":39,"round":7},"reads":{"as":"in_force"}}],"remedies":[{"retract":38}]}"#);
    assert_eq!(place.run(&["retract", "run.jsonl", "57"]).code, 0);
    insta::assert_snapshot!(told("e57"), @r#"{"type":"life","what":"tool: summary of e4–e51","chars":2836,"overlay":{"kind":"summary","origin":"tool","rule":"summary","pass":57,"reason":"the model asked, focus: the failing test `sh tests/run.sh`, the suspects `lib/voucher.awk`, `lib/main.awk`, `bin/find-article`, `bin/till` and the repairs to try next","covers":"summary of e4–e51","span":[4,51],"size":{"before":10556,"after":5175},"from":{"request":58,"round":12},"retracted":73},"subject":{"entry":57},"stretches":[{"from":{"request":58,"round":12},"to":{"request":70,"round":15},"reads":{"as":"in_force"}},{"reads":{"as":"no_more"}}]}"#);
}

#[test]
fn what_two_requests_differ_in() {
    insta::assert_snapshot!(said(&["replay", "run.jsonl", "--diff", "r6", "r7"]), @"
    r6 e33: 24 messages, 38,919 bytes, about 9,727 tokens
    r7 e39: 27 messages, 35,056 bytes, about 8,762 tokens
      = 21 messages are the same in both
      ~ 4    e7     result of Glob (**/*), 1,275 → 106 bytes   stub e38
      ~ 8    e12    result of Read (README.md), 1,230 → 106 bytes   stub e38
      ~ 14   e20    result of Bash (sh tests/run.sh), 8,372 → 116 bytes   stub e38
      + 25   e34    response: TodoWrite, Bash, 2,355 bytes
      + 26   e35    result of TodoWrite, 109 bytes
      + 27   e37    result of Bash (sh tests/run.sh), 4,219 bytes
    e38 micro: 2,636 of 1,400 tokens, not among the newest 10, 3 results
    first changed byte: 15,445, in message 4, e7 result of Glob (**/*)
    both begin alike: 15,445 bytes, about 3,862 tokens
    cached and lost: 23,472 bytes, about 5,865 tokens of r6
    sent anew: 19,609 bytes, about 4,900 tokens of r7
    ");
    insta::assert_snapshot!(said(&["replay", "run.jsonl", "--diff", "r11", "r12"]), @"
    r11 e52: 35 messages, 41,561 bytes, about 10,388 tokens
    r12 e58: 5 messages, 20,699 bytes, about 5,175 tokens
      = 1 message is the same in both
      - 2–35        34 messages, e5 to e51   in a band e57
      + 2    e57    tool: summary of e4–e51, 3,168 bytes
      + 3    e57    shown again behind the last summary, 2,306 bytes
      + 4    e53    response: Compact, 356 bytes
      + 5    e54    result of Compact (the failing test `sh tests/run.sh`, the…), 316 bytes
    e57 tool: the model asked, focus: the failing test `sh tests/run.sh`, the suspects `lib/v…, summary of e4–e51
    first changed byte: 14,557, in message 2, e57 tool: summary of e4–e51
    both begin alike: 14,557 bytes, about 3,640 tokens
    cached and lost: 27,002 bytes, about 6,748 tokens of r11
    sent anew: 6,140 bytes, about 1,535 tokens of r12
    ");
    insta::assert_snapshot!(said(&["replay", "run.jsonl", "--diff", "r3", "e17"]), @"
    r3 e17: 12 messages, 23,124 bytes, about 5,781 tokens
    r3 e17: 12 messages, 23,124 bytes, about 5,781 tokens
      = 12 messages are the same in both
    both are the same, byte for byte
    ");
}

#[test]
fn where_each_message_comes_from() {
    insta::assert_snapshot!(said(&["replay", "run.jsonl", "--blame", "r8"]), @"
    r8 e42: 29 messages, 43,661 bytes, about 10,912 tokens
        #  entry      bytes  what it is, and what changed how it reads
           e2        14,379  setup: offline (chat, profile openai, window 32,000): instructions and tools
        1  e3           168  task
        2  e5           748  response: TodoWrite, Glob
        3  e6            95  result of TodoWrite
        4  e7           106  result of Glob (**/*)   stub e38
        5  e9           977  response: LoadSkill, Read ×6
        6  e10          957  result of LoadSkill (mend-the-till)
        7  e11          654  result of Read (AGENTS.md)
        8  e12          106  result of Read (README.md)   stub e38
        9  e13          832  result of Read (docs/CHANGES.md)
       10  e14          399  result of Read (docs/barcodes.md)
       11  e15          590  result of Read (docs/dates.md)
       12  e16          807  result of Read (docs/discounts.md)
       13  e18          183  response: Bash
       14  e20          116  result of Bash (sh tests/run.sh)   stub e38
       15  e22        1,153  response: TodoWrite, Grep, Read ×2
       16  e23          109  result of TodoWrite
       17  e24          199  result of Grep (voucher_value)
       18  e25          710  result of Read (tests/cases/mixed.expected)
       19  e26          444  result of Read (tests/cases/mixed.tsv)
       20  e28          548  response: Read ×4
       21  e29          951  result of Read (lib/voucher.awk)
       22  e30        2,136  result of Read (lib/main.awk)
       23  e31          435  result of Read (bin/find-article)
       24  e32          543  result of Read (bin/till)
       25  e34        2,355  response: TodoWrite, Bash
       26  e35          109  result of TodoWrite
       27  e37        4,219  result of Bash (sh tests/run.sh)
       28  e40          223  response: Read
       29  e41        8,380  result of Read (data/orders-01.tsv)
    e38 micro: 2,636 of 1,400 tokens, not among the newest 10, 3 results
    ");
    insta::assert_snapshot!(said(&["replay", "run.jsonl", "--blame", "r13"]), @"
    r13 e61: 7 messages, 21,847 bytes, about 5,462 tokens
        #  entry      bytes  what it is, and what changed how it reads
           e2        14,379  setup: offline (chat, profile openai, window 32,000): instructions and tools
        1  e3           168  task
        2  e57        3,168  tool: summary of e4–e51
        3  e57        2,306  shown again behind the last summary
        4  e53          356  response: Compact
        5  e54          316  result of Compact (the failing test `sh tests/run.sh`, the…)
        6  e59          195  response: Read
        7  e60          951  result of Read (lib/voucher.awk)
    ");
}

#[test]
fn what_cannot_be_explained() {
    let all = [
        &["why", "run.jsonl", "e99"][..],
        &["why", "run.jsonl"],
        &["why"],
        &["why", "run.jsonl", "x9"],
        &["why", "run.jsonl", "e9", "--text", "a"],
        &["why", "run.jsonl", "--text", ""],
        &["why", "e9"],
        &["replay", "run.jsonl", "--diff", "r9", "r99"],
        &["replay", "run.jsonl", "--blame", "e72"],
    ];
    insta::assert_snapshot!(all.map(said).concat(), @r#"
    undertext: e99 points at nothing: the run has 72 entries, 15 rounds, 1 turn
    [exit 2]
    undertext: say what it is about: an address such as e57 (entry), 41.2 (call) or r9 (round), or --text REGEX
    [exit 2]
    undertext: say what it is about: an address such as e57 (entry), 41.2 (call) or r9 (round), or --text REGEX
    [exit 2]
    undertext: `x9` is no address; use e210 (entry), r120 or r-3 (round), 5 or -3 (turn), 41.2 (call), 5h (ago), last, last-compaction, start or end
    [exit 2]
    undertext: an address and --text do not go together: name one of them
    [exit 2]
    undertext: --text is empty, so every entry would match: give words that it says, such as --text 'port \d+'
    [exit 2]
    undertext: no run of /home/w in /home/.local/state/undertext/transcripts; `undertext list` shows all runs
    [exit 2]
    undertext: r99 points at nothing: the run has 72 entries, 15 rounds, 1 turn
    [exit 2]
    undertext: e72 points at no request: none came after it; name an earlier place
    [exit 2]
    "#);
}
