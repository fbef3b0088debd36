//! Runs from the command line, told to people and to programs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use regex::Regex;
use serde_json::Value;
use undertext::transcript::jsonl;

use crate::cli::{Place, ended, looks, ran_id, says};
use crate::provider::{Answer, Provider};

#[test]
fn a_run_is_told_shown_and_replayed() {
    let place = Place::new();
    let provider = Provider::new([looks(), says("All done.")]);
    let ran = place.ask(&provider, &["look around"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "All done.\n"), "{ran:?}");
    insta::assert_snapshot!(place.plain(&ran.err), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    finished: 2 rounds, 2 calls, 2,000 tokens in (0 cached), 20 out, cost unknown, TIME
    ");
    let path = &place.transcripts()[0];
    let dir = path.parent().unwrap();
    assert_eq!(
        fs::metadata(dir).unwrap().permissions().mode() & 0o777,
        0o700
    );

    let (_, second) = (provider.body(), provider.body());
    let replayed = place.run(&["replay", "--verify"]);
    assert_eq!(replayed.code, 0, "{replayed:?}");
    assert_eq!(replayed.out, "2 of 2 requests rebuilt, all digests equal\n");
    assert_eq!(place.run(&["replay", "--at", "r2"]).out.as_bytes(), second);

    let second_body = String::from_utf8(second.clone()).unwrap();
    let second: Value = serde_json::from_slice(&second).unwrap();
    let printed = place.run(&["print", "--compacted", "--at", "r2", "--format", "json"]);
    let printed: Vec<Value> = printed
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(&printed, second["messages"].as_array().unwrap());
    assert_eq!(
        place.run(&["print", "--json"]).out,
        fs::read_to_string(path).unwrap()
    );

    let text = [
        place.run(&["print", "--at", "5.1"]).out,
        place.run(&["print", "--at", "r9"]).err,
        place.run(&["replay"]).out,
        place.run(&["list"]).out,
    ];
    insta::assert_snapshot!(place.plain(&text.concat().replace(&ran_id(path), "RUN")), @r#"
    e5    response, tokens: 1,000 in, 10 out
          I look.
          5.1 Bash {"command":"echo from bash"}
          5.2 Read {"path":"a.txt"}
    e6    5.1 started
    e7    5.1 ok, TIME
          from bash
    undertext: r9 points at nothing: the run has 11 entries, 2 rounds, 1 turn
    t1    look around
    r1    e4         N tokens  Bash, Read
    r2    e9         N tokens  text
          end e11: finished
    2 of 2 requests rebuilt, all digests equal
    RUN  just now     2 rounds  finished     /home/w  look around
    "#);
    // What points at nothing is an error, and at the end is the newest.
    for line in [
        ["replay", "--at", "r99"],
        ["print", "--at", "9"],
        ["print", "--at", "last-compaction"],
        ["replay", "--at", "e11"],
    ] {
        let ran = place.run(&line);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{line:?} {ran:?}");
        let named = format!("undertext: {} points at no", line[2]);
        assert!(ran.err.starts_with(&named), "{ran:?}");
    }
    assert_eq!(place.run(&["replay", "--at", "end"]).out, second_body);
    assert!(place.run(&["print", "--at", "end"]).out.starts_with("e11 "));
    let shown: Value = serde_json::from_str(&place.run(&["show", "--json"]).out).unwrap();
    assert_eq!(
        (&shown["task"], &shown["turns"]),
        (&"look around".into(), &1.into())
    );
    assert_eq!(shown["totals"]["calls"], 2);
}

#[test]
fn programs_read_one_object_a_line() {
    let place = Place::new();
    let provider = Provider::new([looks(), says("All done.")]);
    let ran = place.ask(&provider, &["--json", "look around"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let path = &place.transcripts()[0];
    assert_eq!(
        lines[0]["transcript"],
        path.canonicalize().unwrap().to_str().unwrap()
    );
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["type"], &last["exit"]),
        (&"totals".into(), &0.into())
    );
    let kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    assert!(
        kinds.contains(&"delta") && kinds.contains(&"progress"),
        "{kinds:?}"
    );
    let is_entry = |line: &&str| jsonl::decode(line.as_bytes()).is_ok();
    let entries: Vec<&str> = ran.out.lines().filter(is_entry).collect();
    let file = fs::read_to_string(path).unwrap();
    assert_eq!(entries, file.lines().collect::<Vec<_>>());
}

#[test]
fn a_run_goes_on_after_a_limit_and_after_its_end() {
    let place = Place::new();
    let provider = Provider::new([looks(), says("First."), says("Second.")]);
    let ran = place.ask(&provider, &["--max-rounds", "1", "look"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{ran:?}");
    // The model is remembered; the server is not, since keys belong to servers.
    let ran = place.run(&["run", "--continue", "--base-url", &provider.url]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "First.\n"), "{ran:?}");
    let id = ran_id(&place.transcripts()[0]);
    let ran = place.run(&["run", "--resume", &id, "--base-url", &provider.url]);
    assert_eq!(ran.code, 2, "{ran:?}");
    insta::assert_snapshot!(place.plain(&ran.err), @r#"undertext: run RUN is finished; say what is next: undertext run --resume RUN --base-url http://HOST/v1 "TASK""#);
    let ran = place.ask(&provider, &["--resume", &id, "and now?"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Second.\n"), "{ran:?}");
    assert_eq!(place.transcripts().len(), 1);
    assert_eq!(place.run(&["replay", &id, "--verify"]).code, 0);
}

#[test]
fn arguments_that_do_not_fit_are_told_to_the_model() {
    let place = Place::new();
    let calls = vec![("Read", "{path: a"), ("Bash", r#"{"cmd":"touch made"}"#)];
    let provider = Provider::new([Answer::Calls(calls), says("I see.")]);
    let ran = place.ask(&provider, &["task"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "I see.\n"), "{ran:?}");
    let (_, second) = (provider.messages(), provider.messages());
    let results: Vec<&str> = second
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    insta::assert_snapshot!(results.join("\n"), @r#"
    The call of Read did not run: the arguments are not valid JSON: key must be a string at line 1 column 2.
    The call of Bash did not run: the arguments: Additional properties are not allowed ('cmd' was unexpected); the arguments: "command" is a required property.
    "#);
    assert!(!place.path("home/w/made").exists());
}

#[test]
fn a_long_task_is_told_short_and_what_is_clipped_is_said() {
    let place = Place::new();
    let provider = Provider::new([says("All done."), says("Done.")]);
    let task = format!("look\n{}", "x".repeat(2_000));
    let ran = place.ask(&provider, &["--set", "limits.text_chars=1000", &task]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let shown = place.run(&["show"]).out;
    let row = shown.lines().find(|line| line.starts_with("  task"));
    let mut list = place.command(&["list"]);
    let listed = ended(list.env("COLUMNS", "60").spawn().unwrap()).out;
    assert!(listed.ends_with("…\n"), "{listed:?}");
    let widest = listed.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(60), "{listed}");
    let clipped = ran.err.lines().find(|line| line.contains("clipped"));
    insta::assert_snapshot!(format!("{}\n{}", clipped.unwrap(), row.unwrap()), @"
    the task was clipped to 1,000 of 2,005 characters; the model can read the rest by Recall
      task        look…
    ");
}

#[test]
fn what_was_clipped_is_printed_in_full() {
    let place = Place::new();
    let counts = Answer::Calls(vec![("Bash", r#"{"command":"seq 20000"}"#)]);
    let provider = Provider::new([counts, says("Counted.")]);
    assert_eq!(place.ask(&provider, &["count"]).code, 0);
    let raw = place.run(&["print", "--at", "5.1"]).out;
    let head =
        Regex::new(r"^e7    5\.1 ok, .*, clipped for the model from 108,894 bytes$").unwrap();
    let lines = raw.lines().skip_while(|line| !head.is_match(line));
    let counted: Vec<String> = (1..=20_000).map(|n| format!("      {n}")).collect();
    assert_eq!(lines.skip(1).collect::<Vec<_>>(), counted);
    let read = place.run(&["print", "--compacted", "--at", "end"]).out;
    let has = |line: &str| read.lines().any(|other| other.trim() == line);
    assert_eq!(
        (has("1"), has("10000"), has("20000")),
        (true, false, true),
        "{read:.600}"
    );
}
