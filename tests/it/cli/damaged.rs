//! A damaged run: who looks at it is told and ends with 0, who answers for it ends with 6.

use std::fmt::Write as _;
use std::fs;

use crate::cli::Place;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

/// What the golden run is called.
const RUN: &str = "00000001";

/// Commands that look: the warning is all that is different.
const LOOKS: [&[&str]; 9] = [
    &["list"],
    &["show", RUN],
    &["print", RUN],
    &["print", RUN, "--compacted", "--at", "r12"],
    &["replay", RUN],
    &["replay", RUN, "--at", "r2"],
    &["why", RUN, "e20"],
    &["why", RUN, "--text", "FAIL"],
    &["lab", RUN],
];

/// Commands that write all there is somewhere else, or judge it, and say that it is not the whole.
const ANSWERS: [&[&str]; 5] = [
    &["replay", RUN, "--verify"],
    &["export", RUN],
    &["export", RUN, "--format", "markdown"],
    &["export", RUN, "--format", "atif"],
    &["page", RUN, "--out", "-"],
];

/// Commands that go on from it, or write in it, and do nothing.
const REFUSES: [&[&str]; 8] = [
    &["replay", RUN, "--run"],
    &["fork", RUN],
    &["compact", RUN],
    &["retract", RUN, "last"],
    &["expand", RUN, "5.1"],
    &["pin", RUN, "e20"],
    &["unpin", RUN, "e20"],
    &[
        "run",
        "-m",
        "m",
        "--base-url",
        "http://127.0.0.1:1",
        "--resume",
        RUN,
        "-C",
        ".",
        "go on",
    ],
];

#[test]
fn who_looks_is_warned_and_who_answers_for_it_ends_with_6() {
    let place = Place::new();
    let dir = place.path("home/.local/state/undertext/transcripts");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join("01a1ffb1-ba00-7000-8000-000000000001.jsonl");
    let damaged = fs::read_to_string(GOLDEN).unwrap();
    let damaged = damaged.replacen("# An order of", "# An odd of", 1);
    fs::write(&path, &damaged).unwrap();
    let mut wrong = String::new();
    let mut check = |commands: &[&[&str]], code: i32, refuses: bool| {
        for line in commands {
            let ran = place.run(line);
            let said = ran.err.lines();
            let of_damage: Vec<&str> = said.filter(|line| line.contains("damaged")).collect();
            let is_list = line[0] == "list";
            let told = match of_damage[..] {
                [] => is_list && ran.out.contains("finished, damaged"),
                [warning] => warning.starts_with("warning: ") || refuses,
                [.., refusal] => refuses && refusal.starts_with("undertext: "),
            };
            if ran.code != code || !told || (refuses && !ran.out.is_empty()) {
                writeln!(wrong, "{line:?} {} {}", ran.code, ran.err).unwrap();
            }
        }
    };
    check(&LOOKS, 0, false);
    check(&ANSWERS, 6, false);
    check(&REFUSES, 6, true);
    assert_eq!(wrong, "");
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    // A request that held what is damaged is not what was sent: who asks for it is told.
    for line in [
        &["replay", RUN, "--at", "r6"][..],
        &["replay", RUN, "--blame", "r6"],
        &["replay", RUN, "--diff", "r2", "r6"],
    ] {
        assert_eq!(place.run(line).code, 1, "{line:?}");
    }
    let shown = place.run(&["show", RUN]);
    insta::assert_snapshot!(place.plain(&shown.err), @"warning: /home/.local/state/undertext/transcripts/UUID.jsonl is damaged: line 26: checksum does not match; line 27: entry 26 is missing");
    assert_eq!(place.run(&["rm", RUN]).code, 0);
}

/// What a newer version wrote may not be all there: who writes it somewhere else ends with 6.
#[test]
fn an_export_of_a_newer_format_ends_with_6() {
    let place = Place::new();
    let newer = fs::read_to_string(GOLDEN).unwrap();
    let (first, rest) = newer.split_once('\n').unwrap();
    let first = first.replacen("\"format\":1", "\"format\":9", 1);
    let (json, _) = first.split_once(",\"crc\"").unwrap();
    let crc = crc32c::crc32c(json.as_bytes());
    let newer = format!("{json},\"crc\":\"{crc:08x}\"}}\n{rest}");
    fs::write(place.path("home/w/newer.jsonl"), &newer).unwrap();
    for form in ["jsonl", "markdown", "atif"] {
        let ran = place.run(&["export", "newer.jsonl", "--format", form]);
        let warning = "warning: newer.jsonl has format 9, this version knows formats up to 1; what is \
                       shown may be wrong\n";
        assert_eq!((ran.code, ran.err.as_str()), (6, warning), "{form}");
        assert!(form != "jsonl" || ran.out == newer);
    }
}
