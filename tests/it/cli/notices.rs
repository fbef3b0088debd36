//! What `run` tells of compaction: to people, to programs, and in the log.

use std::fs;

use regex::Regex;

use crate::cli::{Place, says};
use crate::provider::{Answer, Provider};

/// Settings with which a few long results fill the window, and only a summary makes room.
const SMALL: [&str; 10] = [
    "--set",
    "model.context_window=40000",
    "--set",
    "compaction.estimate=chars",
    "--set",
    "compaction.auto.token_threshold=9000",
    "--set",
    "compaction.micro.enabled=false",
    "--set",
    "tools.Bash.compaction=keep",
];

/// A server whose first summary is empty.
fn provider() -> Provider {
    let call = |command| Answer::Calls(vec![("Bash", command)]);
    Provider::new([
        call(r#"{"command":"seq 1 3000"}"#),
        call(r#"{"command":"seq 2 3001"}"#),
        call(r#"{"command":"seq 3 3002"}"#),
        call(r#"{"command":"seq 4 3003"}"#),
        call(r#"{"command":"seq 5 3004"}"#),
        says(""),
        says("It was counted, again and again."),
        says("Counted."),
        says("Counted."),
    ])
}

/// The text without the sizes of requests, which depend on the words of instructions and tools.
fn sized(text: &str) -> String {
    let tokens = Regex::new("[0-9,]+ → [0-9,]+ tokens").unwrap();
    let text = tokens.replace_all(text, "A → B tokens");
    let tokens = Regex::new(r#"(about |"?(tokens|before|after|percent)"?[:=])[0-9,]+"#).unwrap();
    tokens.replace_all(&text, "${1}N").into_owned()
}

#[test]
fn people_are_told_of_each_pass() {
    let place = Place::new();
    let told = |line: &[&str]| {
        let ran = place.ask(&provider(), &[&SMALL, line, &["count"]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (0, "Counted.\n"), "{ran:?}");
        sized(&place.plain(&ran.err))
    };
    insta::assert_snapshot!(told(&[]), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    no summary (empty); trying again with results clipped harder
    compacted (auto): [11 entries] → [summary + 3 entries], A → B tokens, 1 overlay
    finished: 6 rounds, 5 calls, 8,000 tokens in (0 cached), 80 out, cost unknown, TIME
    ");
    assert_eq!(told(&["-q"]), "");
    let log = place.path("log");
    let verbose = told(&["-v", "--log-file", log.to_str().unwrap()]);
    // Rounds and calls in a line each, as the demo tells them.
    let rounds = Regex::new(r"(?m)^(r\d)[ 0-9,]+  ").unwrap();
    let verbose = rounds.replace_all(&verbose, "$1 N  ");
    let lines: Vec<&str> = verbose.lines().collect();
    insta::assert_snapshot!(lines[3..].join("\n"), @"
    r1 N  I look.
                 Bash seq 1 3000                                              ok, 870 lines, clipped
    r2 N  I look.
                 Bash seq 2 3001                                              ok, 869 lines, clipped
    r3 N  I look.
                 Bash seq 3 3002                                              ok, 869 lines, clipped
    r4 N  I look.
                 Bash seq 4 3003                                              ok, 868 lines, clipped
    r5 N  I look.
                 Bash seq 5 3004                                              ok, 868 lines, clipped
    compacting: asking m for a summary of rounds 1 to 4 (about N tokens)
    no summary (empty); trying again with results clipped harder
    compacting: asking m for a summary of rounds 1 to 4 (about N tokens)
    compacted (auto): [11 entries] → [summary + 3 entries], A → B tokens, 1 overlay
    r6 N  [calls nothing]
    finished: 6 rounds, 5 calls, 8,000 tokens in (0 cached), 80 out, cost unknown, TIME
    ");
    let log = sized(&fs::read_to_string(log).unwrap());
    let events = log
        .lines()
        .filter_map(|line| Some(&line[line.find("auto_compact")?..]));
    insta::assert_snapshot!(events.collect::<Vec<_>>().join("\n"), @r#"
    auto_compact planned origin="auto" model=m span=e4–e19 tokens=N
    auto_compact failed request=24 why="empty" next="harder" model="m"
    auto_compact planned origin="auto" model=m span=e4–e19 tokens=N
    auto_compact triggered origin="auto" pass=29 overlays=1 results=0 entries_before=N entries_after=N before=N after=N
    "#);
}

#[test]
fn programs_are_told_of_each_pass() {
    let place = Place::new();
    let ran = place.ask(&provider(), &[&SMALL[..], &["--json", "count"]].concat());
    let lines = ran.out.lines().filter(|line| line.contains("\"notice\""));
    insta::assert_snapshot!(sized(&lines.collect::<Vec<_>>().join("\n")), @r#"
    {"type":"notice","notice":"planned","origin":"auto","model":"m","span":[4,19],"rounds":[1,4],"tokens":N}
    {"type":"notice","notice":"failed","request":24,"why":"empty","next":"harder","model":"m"}
    {"type":"notice","notice":"planned","origin":"auto","model":"m","span":[4,19],"rounds":[1,4],"tokens":N}
    {"type":"notice","notice":"laid","origin":"auto","pass":29,"overlays":[29],"by":"model","results":0,"before":{"summaries":0,"entries":11,"tokens":N},"after":{"summaries":1,"entries":3,"tokens":N},"percent":N}
    "#);
}

/// Micro-compaction has a word of its own in the log.
#[test]
fn what_is_put_away_is_logged() {
    let place = Place::new();
    let log = place.path("log");
    let set = [
        "--set",
        "model.context_window=40000",
        "--set",
        "compaction.micro={ keep_recent: 1, min_gain_tokens: 1000, min_gain_ratio: 0 }",
        "--log-file",
        log.to_str().unwrap(),
        "count",
    ];
    let call = |command| Answer::Calls(vec![("Bash", command)]);
    let provider = Provider::new([
        call(r#"{"command":"seq 1 3000"}"#),
        call(r#"{"command":"seq 2 3001"}"#),
        call("{}"),
        says("Counted."),
    ]);
    let ran = place.ask(&provider, &set);
    assert_eq!(ran.code, 0, "{ran:?}");
    let log = sized(&fs::read_to_string(log).unwrap());
    let events = log
        .lines()
        .filter_map(|line| Some(&line[line.find("micro_compact")?..]));
    insta::assert_snapshot!(events.collect::<Vec<_>>().join("\n"), @"
    micro_compact looked look=micro: 0 candidates, 0 of 1000 tokens, waits
    micro_compact looked look=micro: 0 candidates, 0 of 1000 tokens, waits
    micro_compact triggered pass=12 results=1 before=N after=N
    micro_compact looked look=micro: 0 candidates, 0 of 1000 tokens, waits
    micro_compact triggered pass=16 results=1 before=N after=N
    micro_compact looked look=micro: 0 candidates, 0 of 1000 tokens, waits
    ");
}
