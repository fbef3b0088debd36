//! A damaged run, or one of a newer format: who looks at it is told and ends with 0, who answers for
//! it ends with 6. What is no run at all is told apart.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

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
const ANSWERS: [&[&str]; 2] = [&["replay", RUN, "--verify"], &["page", RUN, "--out", "-"]];
const EXPORTS: [&[&str]; 3] = [
    &["export", RUN],
    &["export", RUN, "--format", "markdown"],
    &["export", RUN, "--format", "atif"],
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

/// A place with these bytes as a run, and where it is.
fn kept(bytes: &[u8]) -> (Place, PathBuf) {
    let place = Place::new();
    let dir = place.path("home/.local/state/undertext/transcripts");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join("01a1ffb1-ba00-7000-8000-000000000001.jsonl");
    fs::write(&path, bytes).unwrap();
    (place, path)
}

/// Commands that do not say of this run what `word` names, or end otherwise than they should.
fn silent(place: &Place, word: &str, listed: &str, exports: &[&[&str]]) -> String {
    let mut wrong = String::new();
    let mut check = |commands: &[&[&str]], code: i32, refuses: bool| {
        for line in commands {
            let ran = place.run(line);
            let said = ran.err.lines();
            let of_it: Vec<&str> = said.filter(|line| line.contains(word)).collect();
            let is_list = line[0] == "list";
            let told = match of_it[..] {
                [] => is_list && ran.out.contains(listed),
                [said] => said.starts_with("warning: ") || refuses,
                [.., refusal] => refusal.starts_with("undertext: "),
            };
            if ran.code != code || !told || (refuses && !ran.out.is_empty()) {
                writeln!(wrong, "{line:?} {} {}", ran.code, ran.err).unwrap();
            }
        }
    };
    check(&LOOKS, 0, false);
    check(&ANSWERS, 6, false);
    check(exports, 6, false);
    check(&REFUSES, 6, true);
    wrong
}

#[test]
fn who_looks_is_warned_and_who_answers_for_it_ends_with_6() {
    let golden = fs::read_to_string(GOLDEN).unwrap();
    let newer = changed(&|_, json| json.replacen(r#""format":1"#, r#""format":2"#, 1));
    let (place, path) = kept(newer.as_bytes());
    assert_eq!(silent(&place, "format", "finished, newer format", &[]), "");
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);
    let shown = place.run(&["show", RUN]);
    insta::assert_snapshot!(place.plain(&shown.err), @"warning: /home/.local/state/undertext/transcripts/UUID.jsonl has format 2, this version knows formats up to 1; what is shown may be wrong");

    let damaged = golden.replacen("# An order of", "# An odd of", 1);
    let (place, path) = kept(damaged.as_bytes());
    assert_eq!(silent(&place, "damaged", "finished, damaged", &EXPORTS), "");
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

/// The golden run with entries changed as JSON, their checksums made anew.
fn changed(change: &dyn Fn(u64, &str) -> String) -> String {
    let golden = fs::read_to_string(GOLDEN).unwrap();
    let lines = (1..).zip(golden.lines()).map(|(id, line)| {
        let (json, _) = line.rsplit_once(",\"crc\"").unwrap();
        let json = change(id, json);
        format!(
            "{json},\"crc\":\"{:08x}\"}}\n",
            crc32c::crc32c(json.as_bytes())
        )
    });
    lines.collect()
}

/// An entry of a type that is not known is kept, changes nothing, and is named.
#[test]
fn entries_that_are_not_understood_are_named() {
    let sketched = changed(&|id, json| match id {
        19 | 36 => json.replacen(r#""type":"started""#, r#""type":"sketch""#, 1),
        _ => json.to_owned(),
    });
    assert!(sketched.contains("sketch"));
    let (place, _) = kept(sketched.as_bytes());
    let verified = place.run(&["replay", RUN, "--verify"]);
    assert_eq!((verified.code, verified.err.as_str()), (0, ""));
    insta::assert_snapshot!(verified.out, @"16 of 16 requests rebuilt, all digests equal; 2 entries that this version does not understand, the first e19 (sketch)");
    let shown = place.run(&["show", RUN]).out;
    let row = shown.lines().find(|line| line.contains("unread"));
    insta::assert_snapshot!(row.unwrap_or_default(), @"  unread      2 entries that this version does not understand, the first e19 (sketch)");
}

/// Those in a row that another renderer made are told of once.
#[test]
fn another_renderer_is_said_once() {
    let other = changed(&|id, json| match id {
        ..40 => json.replacen(r#""renderer":1"#, r#""renderer":2"#, 1),
        _ => json.to_owned(),
    });
    let (place, _) = kept(other.as_bytes());
    let ran = place.run(&["replay", RUN]);
    assert_eq!(ran.code, 0);
    assert_eq!(
        ran.out.matches("made by renderer 2").count(),
        2,
        "{}",
        ran.out
    );
}

/// Why a file is no transcript, as its first line tells.
#[test]
fn a_file_that_is_no_transcript_is_told_apart() {
    let place = Place::new();
    let said = |text: &str| {
        fs::write(place.path("home/w/it.jsonl"), text).unwrap();
        let ran = place.run(&["show", "it.jsonl"]);
        assert_eq!((ran.code, ran.out.as_str()), (6, ""));
        ran.err
    };
    let texts = [
        "",
        "\n",
        "[]",
        "\"x\"\n",
        r#"{"id":1,"at":"20"#,
        "{\"a\":1}\n",
        "hello\n",
    ];
    insta::assert_snapshot!(texts.map(said).concat(), @"
    undertext: it.jsonl holds no run: it is empty; `undertext list` shows all runs
    undertext: it.jsonl holds no run: it is empty; `undertext list` shows all runs
    undertext: it.jsonl holds no run: its first line is a JSON list, no entry of a transcript; what other agents recorded is read by `undertext import`
    undertext: it.jsonl holds no run: its first line is a JSON value, no entry of a transcript; what other agents recorded is read by `undertext import`
    undertext: it.jsonl holds no run: its first line is JSON that is cut off; what other agents recorded is read by `undertext import`
    undertext: it.jsonl holds no run: its first line is an object, but no entry of a transcript; what other agents recorded is read by `undertext import`
    undertext: it.jsonl holds no run: its first line is no JSON; what other agents recorded is read by `undertext import`
    ");
}

/// A run without an end is at work, was killed, or was recorded by another agent.
#[test]
fn a_run_without_an_end_is_told_apart() {
    let golden = fs::read_to_string(GOLDEN).unwrap();
    let begun: String = golden
        .lines()
        .take(20)
        .flat_map(|line| [line, "\n"])
        .collect();
    let (place, path) = kept(begun.as_bytes());
    let states = || {
        let listed = place.run(&["list", "--json"]).out;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let shown = place.run(&["show", RUN]).out;
        let shown = place.plain(shown.lines().next().unwrap());
        format!("{}; {shown}\n", listed["state"].as_str().unwrap())
    };
    let mut told = states();
    let file = fs::File::open(&path).unwrap();
    file.lock().unwrap();
    told += &states();
    file.unlock().unwrap();
    let import = r#","imported":{"format":"codex","file":"a.jsonl","sha256":"sha256:"#;
    let recording = changed(&|id, json| match id {
        1 => format!("{json}{import}{}\"}}", "0".repeat(64)),
        _ => json.to_owned(),
    });
    let recording: String = recording
        .lines()
        .take(20)
        .flat_map(|line| [line, "\n"])
        .collect();
    fs::write(&path, recording).unwrap();
    told += &states();
    insta::assert_snapshot!(told, @"
    open; run RUN  open: it was killed, and goes on with `undertext run --resume RUN`
    running; run RUN  running: a process is at work on it
    recording; run RUN  the recording has no end
    ");
}
