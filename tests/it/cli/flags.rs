//! What is handed in with a task, what a run leaves behind, and how much is said.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::cli::{Place, Ran, ended, looks, ran_id, says, signal};
use crate::provider::{Answer, Provider};

/// `run` with a text on standard input.
fn ask_with(place: &Place, provider: &Provider, line: &[&str], input: &[u8]) -> Ran {
    let line = [&["run", "-m", "m", "--base-url", &provider.url], line].concat();
    let mut child = place.command(&line).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writes = std::thread::spawn(move || {
        // Who refuses a text need not read it to its end.
        stdin.write_all(&input).ok();
    });
    let ran = ended(child);
    writes.join().unwrap();
    ran
}

#[test]
fn a_long_task_on_standard_input_is_clipped_and_kept_whole() {
    let place = Place::new();
    let task = (0..).map(|n| format!("line {n} of the task\n"));
    let task = task.scan(0, |length, line| {
        *length += line.len();
        (*length < 10 << 20).then_some(line)
    });
    let task = task.collect::<String>();
    let recall = r#"{"handle":"e3","from_line":400000,"lines":2}"#;
    let provider = Provider::new([Answer::Calls(vec![("Recall", recall)]), says("I see.")]);
    let ran = ask_with(&place, &provider, &["-"], task.as_bytes());
    assert_eq!((ran.code, ran.out.as_str()), (0, "I see.\n"), "{ran:?}");
    let (first, second) = (provider.messages(), provider.messages());
    assert!(first[1]["content"].as_str().unwrap().len() < 200_000);
    let shown = second.last().unwrap()["content"].as_str().unwrap();
    assert!(shown.contains("line 399999 of the task"), "{shown}");
    let blobs = place.transcripts()[0].with_extension("blobs");
    let blob = fs::read_dir(blobs).unwrap().next().unwrap().unwrap().path();
    assert!(fs::read(blob).unwrap() == task.as_bytes());

    let long = vec![b'x'; (64 << 20) + 1];
    let refused = ask_with(&place, &provider, &["-"], &long);
    assert_eq!(refused.code, 2);
    insta::assert_snapshot!(refused.err, @"undertext: the task is longer than 64 MiB; put it into the workspace, where tools can read it");
}

#[test]
fn files_go_with_a_task_in_one_entry() {
    let place = Place::new();
    let long = "a long line of notes\n".repeat(20_000);
    fs::write(place.path("home/w/task.txt"), "compare them\n").unwrap();
    fs::write(place.path("home/w/notes.md"), &long).unwrap();
    fs::write(
        place.path("latin.csv"),
        [&b"x;".repeat(100)[..], b"caf\xe9\n"].concat(),
    )
    .unwrap();
    let recall = r#"{"handle":"e3","pattern":"^a long line"}"#;
    let provider = Provider::new([Answer::Calls(vec![("Recall", recall)]), says("Compared.")]);
    let flags = [
        "--task-file",
        "task.txt",
        "--attach",
        "notes.md",
        "--attach",
        "../../latin.csv",
    ];
    let ran = place.ask(
        &provider,
        &[&flags[..], &["--name", "csv\u{1b}[31m"]].concat(),
    );
    assert_eq!((ran.code, ran.out.as_str()), (0, "Compared.\n"), "{ran:?}");
    let path = &place.transcripts()[0];
    let entries = fs::read_to_string(path).unwrap();
    let user: Value = serde_json::from_str(entries.lines().nth(2).unwrap()).unwrap();
    assert_eq!(
        (&user["type"], &user["text"]),
        (&"user".into(), &"compare them\n".into())
    );
    let attached = user["attachments"].as_array().unwrap();
    let told: Vec<String> = attached
        .iter()
        .map(|file| {
            format!(
                "{} {} {}",
                file["name"], file["media"], file["clipped"]["bytes"]
            )
        })
        .collect();
    let blob = attached[0]["clipped"]["blob"].as_str().unwrap();
    let blob = path.with_extension("blobs").join(&blob["sha256:".len()..]);
    assert_eq!(fs::read_to_string(blob).unwrap(), long);
    // The model has the whole by its handle.
    let (_, second) = (provider.messages(), provider.messages());
    let recalled = second.last().unwrap()["content"].as_str().unwrap();
    let recalled = recalled.lines().next().unwrap().to_owned();
    let text = [place.run(&["list"]).out, place.run(&["show"]).out];
    let name = text.concat().replace(&ran_id(path), "RUN");
    let name = name.lines().filter(|line| line.contains("csv"));
    let all = [
        ran.err,
        told.join("\n"),
        recalled,
        name.collect::<Vec<_>>().join("\n"),
    ];
    insta::assert_snapshot!(place.plain(&all.join("\n")), @r#"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    attachment ../../latin.csv is not UTF-8 in 1 place, which read �
    sandbox: off, tools run with your own rights
    the attachment notes.md was clipped to N characters of 420,000 bytes; the model can read the rest by Recall
    warning: the provider counted 1,000 tokens in request 4, far fewer than the N of the estimate; counts like that are not believed
    finished: 2 rounds, 1 call, 2,000 tokens in (0 cached), 20 out, cost unknown, TIME

    "notes.md" "text/markdown" 420000
    "latin.csv" "text/csv" null
    e3:5: a long line of notes
    RUN  just now     2 rounds  finished     /home/w  csv\u{1b}[31m  compare them
      name        csv\u{1b}[31m
    "#);
    assert_eq!(place.run(&["replay", "--verify"]).code, 0);
}

#[test]
fn what_cannot_be_handed_in_is_refused_before_anything_is_recorded() {
    let place = Place::new();
    fs::write(place.path("home/w/binary.md"), b"\0\x01").unwrap();
    let server = ["run", "-m", "m", "--base-url", "http://127.0.0.1:1/v1"];
    let mut said = String::new();
    for line in [
        &["task", "--attach", "binary.md"][..],
        &["task", "--attach", "missing.md"],
        &["task", "--attach", "."],
        &["task", "--attach", "/dev/zero"],
        &["--task-file", "binary.md"],
        &["--task-file", "missing.md"],
        &["--task-file", "a.txt", "task"],
        &["--resume", "00000000", "--name", "new"],
        &["task", "--name", " "],
        &["task", "--env", "NOT_SET"],
        &["task", "--api-key-env", "SECRET_KEY", "--env", "SECRET_KEY"],
        &["task", "--diff", "."],
        &["task", "--output-last-message", "none/out"],
        &["task", "--log-file", "none/log"],
        &["task", "-q", "-v"],
        &["task", "--base-url", "http://me:pass@127.0.0.1:1/v1?key=sk"],
    ] {
        let line = if line.contains(&"--base-url") {
            [&server[..3], line].concat()
        } else {
            [&server[..], line].concat()
        };
        let ran = place.run(&line);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{line:?} {ran:?}");
        said += ran.err.lines().next().unwrap();
        said.push('\n');
    }
    insta::assert_snapshot!(place.plain(&said), @"
    undertext: attachment binary.md is binary; only text can be attached, though tools may work on any file
    undertext: cannot read attachment missing.md: No such file or directory (os error 2); check the path
    undertext: attachment . is a directory; name its files
    undertext: attachment /dev/zero is longer than 64 MiB; put it into the workspace, where tools can read it
    undertext: the task file binary.md is binary; a task is a text
    undertext: cannot read the task file missing.md: No such file or directory (os error 2); check the path
    undertext: the argument '--task-file <FILE>' cannot be used with '[TASK]'; see --help
    undertext: the argument '--resume <RUN>' cannot be used with '--name <TEXT>'; see --help
    undertext: invalid value ' ' for '--name <TEXT>': a name has at least one letter; see --help
    undertext: --env NOT_SET: it is not set; export it, or leave that out
    undertext: --env SECRET_KEY: it holds the model's key, and what a tool prints goes into the transcript; give tools a key of their own
    undertext: . is a directory; name a file to write
    undertext: none/out cannot be written: No such file or directory (os error 2); make its directory first, or name another place
    undertext: cannot write the log file /home/w/none/log: No such file or directory (os error 2); check the path
    undertext: the argument '--quiet' cannot be used with '--verbose...'; see --help
    undertext: base url `…@HOST/v1` must be an http or https address without a user name
    ");
    assert!(place.transcripts().is_empty());
}

#[test]
fn tools_see_the_variables_that_are_passed_on() {
    let place = Place::new();
    let env = r#"{"command":"echo [$SECRET_KEY] [$COLUMNS]"}"#;
    let provider = Provider::new([Answer::Calls(vec![("Bash", env)]), says("Done.")]);
    let line = [
        "run",
        "-m",
        "m",
        "--base-url",
        &provider.url,
        "--env",
        "COLUMNS",
        "task",
    ];
    let ran = ended(place.command(&line).env("COLUMNS", "77").spawn().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let (_, second) = (provider.messages(), provider.messages());
    assert_eq!(second.last().unwrap()["content"], "[] [77]\n");
}

#[test]
fn a_quiet_run_says_only_the_answer_and_errors() {
    let place = Place::new();
    let refusal = r#"{"error":{"message":"no"}}"#;
    let provider = Provider::new([looks(), says("All done."), Answer::Status(401, refusal)]);
    let log = ["-q", "--log-file", "log", "task"];
    let quiet = place.ask(&provider, &log);
    assert_eq!((quiet.code, quiet.out.as_str()), (0, "All done.\n"));
    assert_eq!(quiet.err, "");
    // What it did stands in a file of its user's own.
    let path = place.path("home/w/log");
    let log = fs::read_to_string(&path).unwrap();
    assert!(log.contains(" DEBUG ") && !log.contains('\u{1b}'), "{log}");
    assert!(
        log.lines().all(|line| line.contains(" undertext::")),
        "{log}"
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let failed = place.ask(&provider, &["-q", "task"]);
    assert_eq!(failed.code, 4);
    insta::assert_snapshot!(failed.err, @"the provider failed for good: no");
    assert_eq!(fs::read_to_string(&path).unwrap(), log);
}

#[test]
fn a_run_leaves_its_last_message_and_its_changes_however_it_ends() {
    let place = Place::new();
    let write = r#"{"path":"new/b.txt","content":"new\n"}"#;
    let edit = r#"{"path":"a.txt","edits":[{"old":"hello","new":"goodbye"}]}"#;
    let provider = Provider::new([
        Answer::Calls(vec![("Read", r#"{"path":"a.txt"}"#), ("Write", write)]),
        Answer::Calls(vec![("Edit", edit)]),
        Answer::Silence,
        says("All done."),
        looks(),
    ]);
    let files = [
        "--output-last-message",
        "../last",
        "--diff",
        "patch",
        "--log-file",
        "log",
        "--transcripts",
        "../w/not/yet",
    ];
    let line = ["run", "-m", "m", "--base-url", &provider.url, "task"];
    let child = place
        .command(&[&line[..], &files].concat())
        .spawn()
        .unwrap();
    let bodies = [provider.body(), provider.body(), provider.body()];
    assert_eq!(bodies.len(), 3);
    signal(&child, Signal::INT);
    let interrupted = ended(child);
    assert_eq!(interrupted.code, 130, "{interrupted:?}");
    let left = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    let first = [left("home/last"), left("home/w/patch")];
    // The text stood in both replies before; files of the program's own are no changes.
    insta::assert_snapshot!(place.plain(&interrupted.err) + &first.concat(), @"
    run RUN: ../w/not/yet/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    ending the run; once more ends it at once
    /home/w/patch: changes of 2 files
    ended (interrupted): 2 rounds, 3 calls, 2,000 tokens in (0 cached), 20 out, cost unknown, TIME
    to go on: undertext run --resume RUN --log-file log --base-url http://HOST/v1 --transcripts ../w/not/yet
    I look.diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1 @@
    -hello
    +goodbye
    diff --git a/new/b.txt b/new/b.txt
    new file mode 100644
    --- /dev/null
    +++ b/new/b.txt
    @@ -0,0 +1 @@
    +new
    ");

    // From where it is taken up again on nothing changes.
    let ran = place.ask(&provider, &[&["--continue"], &files[..]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "All done.\n"), "{ran:?}");
    assert_eq!([left("home/last"), left("home/w/patch")], ["All done.", ""]);
    // A limit ends a run as well.
    let ran = place.ask(
        &provider,
        &[&["--max-rounds", "1", "task"], &files[..2]].concat(),
    );
    assert_eq!(
        (ran.code, left("home/last").as_str()),
        (3, "I look."),
        "{ran:?}"
    );
    // What was said before is not said again by a run that is taken up and told nothing.
    let nobody = ["run", "--continue", "--base-url", "http://127.0.0.1:1/v1"];
    let retries = ["--set", "model.retries.attempts=1"];
    let ran = place.run(&[&nobody[..], &retries, &files[..2]].concat());
    assert_eq!((ran.code, left("home/last").as_str()), (4, ""));
    let said = ran.err.lines().find(|line| line.contains("nothing"));
    insta::assert_snapshot!(place.plain(said.unwrap()), @"the model said nothing; /home/last is empty");
}

#[test]
fn settings_in_the_workspace_are_not_read_and_that_is_said_once() {
    let place = Place::new();
    fs::write(
        place.path("home/w/config.yaml"),
        "model: {name: evil, base_url: 'http://evil'}",
    )
    .unwrap();
    let provider = Provider::new([looks(), looks(), says("Done.")]);
    let first = place.ask(&provider, &["--max-rounds", "1", "task"]);
    let again = place.run(&["run", "--continue", "--base-url", &provider.url]);
    assert_eq!((first.code, again.code), (3, 0), "{first:?} {again:?}");
    for ran in [first, again] {
        let said: Vec<&str> = ran
            .err
            .lines()
            .filter(|line| line.contains("config.yaml"))
            .collect();
        assert_eq!(
            said,
            ["config.yaml in the workspace is not read; name it with --config"]
        );
    }
    let body: Value = serde_json::from_slice(&provider.body()).unwrap();
    assert_eq!(body["model"], "m");
}

#[test]
fn the_way_to_go_on_has_the_flags_that_matter() {
    let place = Place::new();
    let provider = Provider::new([looks()]);
    let line = [
        "--max-rounds",
        "1",
        "--share-workspace",
        "--env",
        "HOME",
        "--log-file",
        "the log",
    ];
    let ran = place.ask(&provider, &[&line[..], &["-q", "-q", "task"]].concat());
    assert_eq!(ran.code, 2, "{ran:?}");
    let ran = place.ask(&provider, &[&line[..], &["task"]].concat());
    let way = ran.err.lines().find(|line| line.starts_with("to go on"));
    insta::assert_snapshot!(place.plain(way.unwrap()), @"to go on: undertext run --resume RUN --env HOME --log-file 'the log' --base-url http://HOST/v1 --share-workspace");
}
