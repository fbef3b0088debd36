//! The program itself, run as a user runs it, against a server on the loopback interface.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use undertext::record::{Durability, FileStorage};
use undertext::transcript::jsonl;

use crate::provider::{Answer, Provider};

/// A home directory with a workspace in it.
struct Place(tempfile::TempDir);

/// How the program ended, and what it said.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(place.path("home/w")).unwrap();
        fs::write(place.path("home/w/a.txt"), "hello\n").unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    #[expect(clippy::disallowed_methods, reason = "what is tested is the program")]
    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_undertext"));
        command
            .args(line)
            .current_dir(self.path("home/w"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("SECRET_KEY", "sk-very-secret")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, line: &[&str]) -> Ran {
        ended(self.command(line).spawn().unwrap())
    }

    /// `run` with the server's address.
    fn ask(&self, provider: &Provider, line: &[&str]) -> Ran {
        self.run(&[&["run", "-m", "m", "--base-url", &provider.url], line].concat())
    }

    /// Every transcript, oldest first.
    fn transcripts(&self) -> Vec<PathBuf> {
        let dir = self.path("home/.local/state/undertext/transcripts");
        let mut all: Vec<PathBuf> = fs::read_dir(dir)
            .into_iter()
            .flatten()
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        all.sort();
        all
    }

    /// The text without what differs from one time to the next.
    fn plain(&self, text: &str) -> String {
        let text = text.replace(self.0.path().canonicalize().unwrap().to_str().unwrap(), "");
        let text = text.replace(self.0.path().to_str().unwrap(), "");
        let mut text = text;
        for (pattern, by) in [
            (r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID"),
            (r"(run|--resume) [0-9a-f]{8}\b", "$1 RUN"),
            (r"127\.0\.0\.1:\d+", "HOST"),
            (r"\d+ ms|\d+\.\d s\b", "TIME"),
            // What instructions and tools take.
            (r" [0-9,]+ tokens  ", " N tokens  "),
        ] {
            text = Regex::new(pattern)
                .unwrap()
                .replace_all(&text, by)
                .into_owned();
        }
        text
    }
}

fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn looks() -> Answer {
    Answer::Calls(vec![
        ("Bash", r#"{"command":"echo from bash"}"#),
        ("Read", r#"{"path":"a.txt"}"#),
    ])
}

fn says(text: &str) -> Answer {
    Answer::Text(text.to_owned())
}

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
    finished: 2 rounds, 2 calls, 2,000 tokens in (0 cached), 20 out, TIME
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

/// The name by which people call the run of this transcript.
fn ran_id(path: &std::path::Path) -> String {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    stem[stem.len() - 8..].to_owned()
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
fn bad_input_ends_before_anything_is_recorded() {
    let place = Place::new();
    let server = ["-m", "m", "--base-url", "http://127.0.0.1:1/v1"];
    let mut said = String::new();
    for (code, line) in [
        (2, vec!["task"]),
        (2, vec!["-m", "m", "task"]),
        (2, [&server[..], &[""]].concat()),
        (2, [&server[..], &["-C", "none", "task"]].concat()),
        (2, [&server[..], &["-C", "/", "task"]].concat()),
        (2, [&server[..], &["-C", "..", "task"]].concat()),
        (2, [&server[..], &["--continue"]].concat()),
        (2, [&server[..], &["--resume", "0000"]].concat()),
        (
            2,
            [&server[..], &["--set", "model.nome=x", "task"]].concat(),
        ),
        (
            5,
            [&server[..], &["--sandbox", "workspace", "task"]].concat(),
        ),
    ] {
        let ran = place.run(&[&["run"], &line[..]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{line:?} {ran:?}");
        said += &ran.err;
    }
    insta::assert_snapshot!(place.plain(&said), @r#"
    undertext: no model named; there are three ways on:
      with a key       OPENAI_API_KEY=… undertext run -m MODEL "TASK"
      a local server   undertext run --base-url http://HOST/v1 -m MODEL "TASK"
      with neither     undertext demo
    undertext: no key for https://api.openai.com/v1; set OPENAI_API_KEY, name another server with --base-url, or try `undertext demo`
    undertext: the task is empty; say what is to be done
    undertext: workspace /home/w/none cannot be used: No such file or directory (os error 2)
    undertext: workspace / is the whole file system; name a project's directory with -C
    undertext: workspace /home/w/.. holds your whole home directory; name a project's directory with -C
    undertext: no run of /home/w in /home/.local/state/undertext/transcripts; `undertext list` shows all runs
    undertext: no run `0000` in /home/.local/state/undertext/transcripts
    undertext: wrong setting in --set model.nome=x: unknown key `nome`, did you mean `name`?
    undertext: settings cannot be used: sandbox `workspace` cannot be enforced by this version, which knows only `off`
    "#);
    assert!(!place.path("home/.local").exists());
}

#[test]
fn a_provider_that_fails_ends_the_run_resumable() {
    let place = Place::new();
    let refusal = r#"{"error":{"message":"Incorrect API key provided: sk-very-secret","code":"invalid_api_key"}}"#;
    let provider = Provider::new([Answer::Status(401, refusal), says("Now.")]);
    let key = ["--api-key-env", "SECRET_KEY"];
    let wrong = place.ask(&provider, &[&key[..], &["task"]].concat());
    let nobody = "http://127.0.0.1:1/v1";
    let line = [
        "run",
        "-m",
        "m",
        "--base-url",
        nobody,
        "--set",
        "model.retries.attempts=1",
        "task",
    ];
    let unreachable = place.run(&line);
    assert_eq!((wrong.code, unreachable.code), (4, 4));
    insta::assert_snapshot!(place.plain(&[wrong.err, unreachable.err].concat()), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (key from SECRET_KEY)
    sandbox: off, tools run with your own rights
    the provider failed for good: Incorrect API key provided: [key]
    check the key in SECRET_KEY
    ended (provider): 0 rounds, 0 calls, 0 tokens in (0 cached), 0 out, TIME
    to go on: undertext run --resume RUN --base-url http://HOST/v1 --api-key-env SECRET_KEY
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    the provider failed for good: error sending request: client error (Connect): tcp connect error: Connection refused (os error 111)
    check that a server listens at http://HOST/v1
    ended (provider): 0 rounds, 0 calls, 0 tokens in (0 cached), 0 out, TIME
    to go on: undertext run --resume RUN --base-url http://HOST/v1 --set model.retries.attempts=1
    ");
    let paths = place.transcripts();
    assert!(
        !fs::read_to_string(&paths[0])
            .unwrap()
            .contains("very-secret")
    );
    let ran = place.ask(&provider, &["--resume", &ran_id(&paths[0])]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Now.\n"), "{ran:?}");
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
fn a_transcript_that_cannot_be_trusted_is_left_alone() {
    let place = Place::new();
    let provider = Provider::new([looks(), says("All done."), says("Again.")]);
    place.ask(&provider, &["look"]);
    let path = place.transcripts().remove(0);
    let text = fs::read_to_string(&path).unwrap();

    let damaged = place.path("damaged.jsonl");
    fs::write(&damaged, text.replacen("\"ok\"", "\"no\"", 1)).unwrap();
    let link = place.path("link.jsonl");
    symlink(&path, &link).unwrap();
    let newer = place.path("newer.jsonl");
    let first = text
        .lines()
        .next()
        .unwrap()
        .replace("\"format\":1", "\"format\":2");
    let json = &first[..first.rfind(",\"crc\"").unwrap()];
    let crc = crc32c::crc32c(json.as_bytes());
    fs::write(&newer, format!("{json},\"crc\":\"{crc:08x}\"}}\n")).unwrap();
    let locked = FileStorage::open(&path, Durability::None).unwrap();

    let mut said = String::new();
    for path in [&damaged, &link, &newer, &path] {
        let before = fs::read(path).unwrap();
        let ran = place.ask(&provider, &["--resume", path.to_str().unwrap(), "task"]);
        assert_eq!((ran.code, ran.out.as_str()), (6, ""), "{ran:?}");
        assert_eq!(fs::read(path).unwrap(), before);
        said += &ran.err;
    }
    drop(locked);
    // Reading does not need a transcript to be whole, and says what is not.
    let shown = place.run(&["show", damaged.to_str().unwrap()]);
    assert_eq!(shown.code, 0, "{shown:?}");
    said += &shown.err;
    let replayed = place.run(&["replay", "--verify", damaged.to_str().unwrap()]);
    assert_eq!(replayed.code, 6);
    said += &replayed.out;
    insta::assert_snapshot!(place.plain(&said), @"
    undertext: /damaged.jsonl is damaged: line 7: checksum does not match; line 8: entry 7 is missing; --accept-damage goes on with what is left
    undertext: /link.jsonl is a symbolic link, not a plain file
    undertext: /newer.jsonl has format 2, this version knows formats up to 1
    undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is in use by another process
    warning: /damaged.jsonl is damaged: line 7: checksum does not match
    warning: /damaged.jsonl is damaged: line 8: entry 7 is missing
    1 of 2 requests rebuilt; the first that is not: e9 (round 2): other bytes than were sent
    ");

    let accepting = [
        "--resume",
        damaged.to_str().unwrap(),
        "--accept-damage",
        "task",
    ];
    let ran = place.ask(&provider, &accepting);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Again.\n"), "{ran:?}");
}

/// Whether the tests were begun with SIGHUP ignored, as `nohup` does: then a run ignores it too.
fn is_hang_up_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| {
        mask.trim()
            .ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f'])
    })
}

#[test]
fn a_signal_ends_a_run_orderly() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 143)] {
        if sent == Signal::HUP && is_hang_up_ignored() {
            continue;
        }
        let place = Place::new();
        let provider = Provider::new([looks(), Answer::Silence, says("All done.")]);
        let line = ["run", "-m", "m", "--base-url", &provider.url, "task"];
        let child = place.command(&line).spawn().unwrap();
        let (_, _) = (provider.body(), provider.body());
        signal(&child, sent);
        let ran = ended(child);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{ran:?}");
        insta::allow_duplicates!(insta::assert_snapshot!(place.plain(&ran.err), @"
        run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
        server: http://HOST/v1 (no key)
        sandbox: off, tools run with your own rights
        ending the run; once more ends it at once
        ended (interrupted): 1 round, 2 calls, 1,000 tokens in (0 cached), 10 out, TIME
        to go on: undertext run --resume RUN --base-url http://HOST/v1
        "));
        let ran = place.run(&["run", "--continue", "--base-url", &provider.url]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "All done.\n"), "{ran:?}");
        assert_eq!(place.run(&["replay", "--verify"]).code, 0);
    }
}

#[test]
fn a_second_signal_ends_a_run_that_hangs() {
    let place = Place::new();
    // More than a pipe holds, which nobody reads.
    let provider = Provider::new([says(&"x".repeat(1 << 20)), says("All done.")]);
    let line = [
        "run",
        "--json",
        "-m",
        "m",
        "--base-url",
        &provider.url,
        "task",
    ];
    let mut child = place.command(&line).spawn().unwrap();
    provider.body();
    // Once it writes the text, it waits for a reader for ever.
    let out = child.stdout.as_mut().unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"\"delta\"") {
        let mut byte = [0];
        out.read_exact(&mut byte).unwrap();
        seen.extend(byte);
    }
    let mut err = child.stderr.take().unwrap();
    // Signals that come together are one.
    while child.try_wait().unwrap().is_none() {
        signal(&child, Signal::INT);
        std::thread::yield_now();
    }
    let mut said = String::new();
    err.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    insta::assert_snapshot!(place.plain(&said), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    ended at once; the run can be taken up again
    to go on: undertext run --resume RUN --base-url http://HOST/v1
    ");
    let line = ["run", "--continue", "--base-url", &provider.url, "go on"];
    let ran = place.run(&line);
    assert_eq!((ran.code, ran.out.as_str()), (0, "All done.\n"), "{ran:?}");
}

#[test]
fn what_holds_no_run_is_told_in_one_line() {
    let place = Place::new();
    let provider = Provider::new([says("All done.")]);
    place.ask(&provider, &["look"]);
    let path = place.transcripts().remove(0);
    let text = fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut newer = first.replace("\"format\":1", "\"format\":2");
    newer.truncate(newer.rfind(",\"crc\"").unwrap());
    let crc = crc32c::crc32c(newer.as_bytes());
    let newer = format!("{newer},\"crc\":\"{crc:08x}\"}}\n");
    for (name, bytes) in [
        ("text", b"some\ntext\n".to_vec()),
        ("empty", Vec::new()),
        ("binary", vec![0, 159, 146, 150]),
        ("headless", rest.into()),
        ("newer", newer.into_bytes()),
        ("torn", format!("{text}{{\"id\":").into_bytes()),
    ] {
        fs::write(place.path(&format!("{name}.jsonl")), bytes).unwrap();
    }
    let run = |line: &[&str], name: &str| {
        let file = place.path(&format!("{name}.jsonl"));
        let ran = place.run(&[line, &[file.to_str().unwrap()]].concat());
        (ran.code, place.plain(&ran.err))
    };
    for name in ["text", "empty", "binary"] {
        for command in ["show", "print", "replay"] {
            let said = format!("undertext: /{name}.jsonl holds no run\n");
            assert_eq!(run(&[command], name), (6, said));
        }
    }
    let torn = "warning: /torn.jsonl does not end with an entry: its last 6 bytes are left out\n";
    for command in ["show", "print", "replay"] {
        assert_eq!(run(&[command], "torn"), (0, torn.to_owned()));
    }
    let verify = run(&["replay", "--verify"], "newer");
    let server = ["run", "-m", "m", "--base-url", &provider.url, "task"];
    let headless = run(&[&server[..], &["--resume"]].concat(), "headless");
    assert_eq!((verify.0, headless.0), (6, 6));
    insta::assert_snapshot!(verify.1 + &headless.1, @"
    warning: /newer.jsonl has format 2, this version knows formats up to 1; what is shown may be wrong
    undertext: this version cannot verify a run of a newer format
    undertext: /headless.jsonl is damaged: line 1: entry 1 is missing; without its first entry it cannot be taken up; print shows what is left
    ");
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
fn wrong_usage_is_said_by_the_program_and_help_is_a_command() {
    let place = Place::new();
    let mut said = String::new();
    for line in [&["walk"][..], &["run", "--max-rounds", "0", "task"]] {
        let ran = place.run(line);
        assert_eq!(ran.code, 2, "{ran:?}");
        said += ran.err.lines().next().unwrap();
        said.push('\n');
    }
    insta::assert_snapshot!(said, @"
    undertext: unrecognized subcommand 'walk'
    undertext: invalid value '0' for '--max-rounds <N>': --max-rounds takes a number from 1
    ");
    for line in [&["help"][..], &["help", "run"]] {
        let ran = place.run(line);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line:?}");
        assert!(ran.out.contains("Usage: undertext"), "{ran:?}");
    }
}

#[test]
fn the_demo_fits_the_terminal() {
    let place = Place::new();
    let mut command = place.command(&["demo"]);
    let ran = ended(command.env("COLUMNS", "80").spawn().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    // Paths and commands are there to be copied.
    let is_told = |line: &&str| !line.contains('/') || line.starts_with("  ");
    let wide: Vec<&str> = ran
        .out
        .lines()
        .filter(is_told)
        .filter(|line| line.chars().count() > 80)
        .collect();
    assert!(wide.is_empty(), "{wide:#?}");
}
