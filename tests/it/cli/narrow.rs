//! A terminal that is narrower than what there is to say.

use std::fs;

use crate::cli::{Place, ended};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

/// The columns of the terminal.
const COLUMNS: usize = 64;

/// What the program says of a copy of the golden run, to a terminal of some columns or to a program.
fn said(line: &[&str], columns: Option<usize>) -> String {
    let place = Place::new();
    fs::copy(GOLDEN, place.path("home/w/run.jsonl")).unwrap();
    let mut command = place.command(line);
    if let Some(columns) = columns {
        command.env("COLUMNS", columns.to_string());
    }
    let ran = ended(command.spawn().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line:?}");
    place.plain(&ran.out)
}

#[test]
fn what_is_too_long_goes_on_below_and_nothing_is_lost() {
    for line in [
        &["why", "run.jsonl", "e20"][..],
        &["why", "run.jsonl", "e57"],
        &["why", "run.jsonl", "--text", "V-0500"],
        &["replay", "run.jsonl"],
        &["replay", "run.jsonl", "--diff", "r5", "r12"],
        &["replay", "run.jsonl", "--blame", "r12"],
        &["show", "run.jsonl"],
    ] {
        let (wide, narrow) = (said(line, None), said(line, Some(COLUMNS)));
        let too_long = narrow.lines().filter(|line| {
            // One word, or a command that is there to be copied.
            let is_whole = line.trim_start().starts_with("keep") || !line.trim().contains(' ');
            line.chars().count() > COLUMNS && !is_whole
        });
        let too_long: Vec<&str> = too_long.collect();
        assert_eq!(too_long, [""; 0], "{line:?}");
        let words = |text: &str| -> Vec<String> {
            // A task is cut to one line.
            let lines = text.lines().filter(|line| !line.starts_with("  task "));
            let words = lines.flat_map(str::split_whitespace);
            words
                .filter(|word| *word != "·")
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(words(&narrow), words(&wide), "{line:?}");
    }
    insta::assert_snapshot!(said(&["why", "run.jsonl", "e20"], Some(COLUMNS)), @"
    e20  result of Bash (sh tests/run.sh), 7,973 chars, round 3
      r4–r6     in full
      r7–r11    stub        e38 micro: 2,636 of 1,400 tokens, not
                            among the newest 10
      r12–      in a band   e57 tool: the model asked, focus: the
                            failing test `sh tests/run.sh`, the
                            suspects `lib/v…
      read by a summariser: e55 for e57
      fetched again: never
      undo: undertext retract 00000001 57
      keep next time: undertext pin 00000001 e20
    ");
}

#[test]
fn a_table_loses_the_columns_that_say_least() {
    insta::assert_snapshot!(said(&["lab", "run.jsonl"], Some(COLUMNS)), @"
      policy         cost  of none  passes     regret
    run.jsonl
      none         38,800  100.0 %       0          -
      each chance  76,722  197.7 %       6  1 (4.2 %)
      default      60,264  155.3 %       1  1 (4.2 %)
    left out, too wide for here: requests, prompt, of none, peak,
      hidden, arguments missed
    ");
    let whole = said(&["lab", "run.jsonl"], None);
    assert!(
        whole.lines().all(|line| !line.starts_with("left out")),
        "{whole}"
    );
}
