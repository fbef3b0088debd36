//! Recordings of other agents become runs, which every command takes.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::cli::{Place, ended, ran_id};
use crate::corpus::excerpts;

/// A directory with two recordings, another file and a broken line.
fn recordings(place: &Place) {
    let directory = place.path("home/w/old/deep");
    fs::create_dir_all(&directory).unwrap();
    for (from, to) in [
        ("pi/session.jsonl", "pi.jsonl"),
        ("codex/rollout.jsonl", "deep/codex.jsonl"),
    ] {
        let mut text = fs::read_to_string(excerpts().join(from)).unwrap();
        if to == "pi.jsonl" {
            text.push_str("{\"type\":\"mess\n");
        }
        fs::write(place.path("home/w/old").join(to), text).unwrap();
    }
    fs::write(place.path("home/w/old/notes.txt"), "hello\n").unwrap();
    fs::write(place.path("home/w/odd.jsonl"), "{\"b\":1}\n").unwrap();
}

#[test]
fn recordings_become_runs_once() {
    let place = Place::new();
    recordings(&place);
    let mut said = String::new();
    let mut tell = |line: &[&str]| {
        let ran = place.run(&[&["import"], line].concat());
        let line = line.join(" ");
        write!(said, "$ {line} -> {}\n{}{}", ran.code, ran.out, ran.err).unwrap();
    };
    tell(&["old"]);
    tell(&["old/pi.jsonl", "--name", "first"]);
    tell(&["old/pi.jsonl", "--format", "codex"]);
    tell(&["old/pi.jsonl", "--format", "gpt"]);
    tell(&["odd.jsonl", "old/notes.txt", "none.jsonl"]);
    tell(&["."]);
    fs::create_dir(place.path("home/w/empty")).unwrap();
    tell(&["empty"]);
    insta::assert_snapshot!(place.plain(&said), @"
    $ old -> 0
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
      imported from    codex.jsonl
      recorded by      codex 0.40.0
      holds            1 turn, 7 rounds, 7 calls
      tokens           not counted in the file
      to look at it    undertext show 3da8e487
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
      imported from    pi.jsonl
      recorded by      pi
      holds            4 turns, 7 rounds, 4 calls
      tokens           not counted in the file
      left out         1 line that cannot be read
      to look at it    undertext show 182514c4
    $ old/pi.jsonl --name first -> 0
    run RUN holds pi.jsonl already; --again imports it once more
    $ old/pi.jsonl --format codex -> 2
    undertext: pi.jsonl looks like pi, not like codex; leave --format out, or name that one
    $ old/pi.jsonl --format gpt -> 2
    undertext: invalid value 'gpt' for '--format <FORMAT>': no format is called `gpt`; known formats: claude-code, codex, pi, mini-swe-agent, swe-agent, openhands, openhands-sdk, atif, gemini-cli, copilot-cli, inspect, aider; see --help
    $ odd.jsonl old/notes.txt none.jsonl -> 2
    undertext: odd.jsonl is of no known agent: its first object has the members b; if you know its agent, `undertext import --format` names it
    undertext: notes.txt is of no known agent: it is neither JSON nor a chat history of aider; if you know its agent, `undertext import --format` names it
    undertext: cannot read none.jsonl: No such file or directory (os error 2); check the path
    known formats: claude-code, codex, pi, mini-swe-agent, swe-agent, openhands, openhands-sdk, atif, gemini-cli, copilot-cli, inspect, aider
    $ . -> 0
    run RUN holds codex.jsonl already; --again imports it once more
    run RUN holds pi.jsonl already; --again imports it once more
    $ empty -> 2
    undertext: no recording of a known agent in empty; name one, and its format with --format
    known formats: claude-code, codex, pi, mini-swe-agent, swe-agent, openhands, openhands-sdk, atif, gemini-cli, copilot-cli, inspect, aider
    ");

    let runs = place.transcripts();
    assert_eq!(runs.len(), 2);
    for run in &runs {
        let run = run.to_str().unwrap();
        for line in [
            &["show", run][..],
            &["print", run],
            &["print", run, "--view", "compacted"],
            &["list"],
        ] {
            let ran = place.run(line);
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line:?}");
        }
        let verified = place.run(&["replay", run, "--verify"]);
        assert_eq!(verified.code, 0, "{verified:?}");
        let end = verified.out.lines().last().unwrap();
        assert!(end.ends_with("all digests equal"), "{end}");
    }
}

#[test]
fn programs_are_told_what_was_imported() {
    let place = Place::new();
    recordings(&place);
    let told = |line: &[&str]| -> Value {
        let ran = place.run(&[&["import", "--json", "old/pi.jsonl"], line].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line:?}");
        serde_json::from_str(&ran.out).unwrap()
    };
    let (first, already, again) = (told(&[]), told(&[]), told(&["--again"]));
    assert_eq!(first["imported"]["format"], "pi");
    assert_eq!(first["imported"]["skipped"], 1);
    assert_eq!(first["holds"]["rounds"], 7);
    assert_eq!(
        (&already["run"], &already["already"]),
        (&first["run"], &true.into())
    );
    assert_eq!(already["holds"], Value::Null);
    assert_ne!(again["run"], first["run"]);
    assert_eq!(again["holds"], first["holds"]);
    assert_eq!(place.transcripts().len(), 2);

    // Kept elsewhere it is another run's file, under the same id.
    let out = told(&["--out", "there"]);
    assert_eq!(out["run"], first["run"]);
    let path = Path::new(out["transcript"].as_str().unwrap());
    assert_eq!(path.parent(), Some(Path::new("there")));
    assert!(first["run"].as_str().unwrap().ends_with(&ran_id(path)));
}

#[test]
fn a_pipe_is_a_file_and_a_run_kept_elsewhere_is_named_by_its_path() {
    let place = Place::new();
    recordings(&place);
    let text = fs::read(place.path("home/w/old/pi.jsonl")).unwrap();
    let mut said = String::new();
    for line in [
        &["-"][..],
        &["/dev/stdin"],
        &["-", "--out", "kept here", "--name", "piped"],
    ] {
        let mut command = place.command(&[&["import"], line].concat());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&text).unwrap();
        let output = child.wait_with_output().unwrap();
        let (out, err) = (output.stdout, output.stderr);
        write!(
            said,
            "$ {}\n{}",
            line.join(" "),
            String::from_utf8(out).unwrap()
        )
        .unwrap();
        assert_eq!(String::from_utf8(err).unwrap(), "");
    }
    insta::assert_snapshot!(place.plain(&said), @"
    $ -
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
      imported from    standard input
      recorded by      pi
      holds            4 turns, 7 rounds, 4 calls
      tokens           not counted in the file
      left out         1 line that cannot be read
      to look at it    undertext show 182514c4
    $ /dev/stdin
    run RUN holds stdin already; --again imports it once more
    $ - --out kept here --name piped
    run RUN: kept here/UUID.jsonl
      imported from    standard input
      recorded by      pi
      holds            4 turns, 7 rounds, 4 calls
      tokens           not counted in the file
      left out         1 line that cannot be read
      to look at it    undertext show 'kept here/UUID.jsonl'
    ");
    let shown = said.lines().last().unwrap().split_once("undertext show ");
    let path = shown.unwrap().1.trim_matches('\'');
    assert_eq!(place.run(&["show", path]).code, 0);
}

/// What the process knows to be secret is in no file, whatever held it and wherever it was cut.
#[test]
fn no_known_value_is_imported() {
    let place = Place::new();
    let secret = "hunter2-and-a-good-deal-more";
    // Longer than a line: the whole text is kept beside the transcript.
    let long = format!("{}{secret}\n", "half a line\n".repeat(80_000));
    let line = |role: &str, text: &str| {
        let message = json!({"role": role, "stopReason": "stop", "content": text});
        json!({"type": "message", "timestamp": "2026-01-01T00:00:00Z", "message": message})
    };
    let recording = [
        json!({"type": "session", "id": secret, "cwd": format!("/w/{secret}")}),
        line("user", &long),
        line("assistant", &format!("The password is {secret}.")),
    ];
    let recording: Vec<String> = recording.iter().map(Value::to_string).collect();
    fs::write(place.path("home/w/pi.jsonl"), recording.join("\n")).unwrap();
    let mut command = place.command(&["import", "pi.jsonl", "--name", secret]);
    let ran = ended(command.env("MY_PASSWORD", secret).spawn().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));

    let mut files = place.transcripts();
    let blobs = fs::read_dir(files[0].with_extension("blobs")).unwrap();
    files.extend(blobs.map(|blob| blob.unwrap().path()));
    assert_eq!(files.len(), 2);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("hunter2"), "{}", file.display());
        assert!(text.contains("[secret]"), "{}", file.display());
    }
}

/// The same is not imported from what another command prints.
#[test]
fn messages_that_are_nobodys_are_refused() {
    let place = Place::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");
    let printed = place.run(&["print", golden, "--view", "compacted", "--json"]);
    fs::write(place.path("home/w/view.jsonl"), printed.out).unwrap();
    let ran = place.run(&["import", "view.jsonl"]);
    insta::assert_snapshot!(ran.err, @"
    undertext: view.jsonl is of no known agent: it holds a message a line, and does not say whose; if you know its agent, `undertext import --format` names it
    known formats: claude-code, codex, pi, mini-swe-agent, swe-agent, openhands, openhands-sdk, atif, gemini-cli, copilot-cli, inspect, aider
    ");
    assert_eq!((ran.code, place.transcripts().len()), (2, 0));
}
