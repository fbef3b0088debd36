//! Surroundings that are not as usual: another umask, limits, no home, streams that are closed.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use regex::Regex;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use undertext::record::runs;

use crate::cli::{Place, Ran, ended, looks, ran_id, says};
use crate::provider::{Answer, Provider};

/// Runs a line after a shell has changed what it is run in.
#[expect(clippy::disallowed_methods, reason = "what is tested is the program")]
fn run_after(place: &Place, change: &str, line: &[&str]) -> Ran {
    let inner = place.command(line);
    let mut outer = Command::new("/bin/sh");
    outer
        .arg("-c")
        .arg(format!("{change}; exec \"$@\""))
        .arg("sh")
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(inner.get_current_dir().unwrap())
        .env_clear()
        .envs(
            inner
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    ended(outer.spawn().unwrap())
}

/// A reply whose results are clipped, so that blobs are kept.
fn counts() -> Answer {
    Answer::Calls(vec![
        ("Bash", r#"{"command":"seq 30000"}"#),
        ("Bash", r#"{"command":"seq 30001"}"#),
    ])
}

/// A model that answers so, goes on from where a request says that it is, and is done then.
fn provider(answers: &'static [fn() -> Answer]) -> Provider {
    Provider::answering(|body| {
        let messages = body["messages"].as_array().unwrap().iter();
        let said = messages.filter(|it| it["role"] == "assistant").count();
        answers
            .get(said)
            .map_or_else(|| says("Done."), |answer| answer())
    })
}

/// Everything below a directory, with its mode.
fn modes(dir: &Path, all: &mut Vec<(PathBuf, u32)>) {
    for file in fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        all.push((path.clone(), found.permissions().mode() & 0o7777));
        if found.is_dir() {
            modes(&path, all);
        }
    }
}

#[test]
fn whatever_the_umask_is_nobody_else_may_read_what_is_kept() {
    for umask in ["000", "022"] {
        let place = Place::new();
        let provider = Provider::new([counts(), says("Done.")]);
        let line = [
            "run",
            "-m",
            "m",
            "--base-url",
            &provider.url,
            "--log-file",
            "log.jsonl",
            "count",
        ];
        let ran = run_after(&place, &format!("umask {umask}"), &line);
        assert_eq!(ran.code, 0, "{ran:?}");
        let mut all = vec![(place.path("home/w/log.jsonl"), 0o600)];
        all[0].1 = fs::metadata(&all[0].0).unwrap().permissions().mode() & 0o7777;
        modes(&place.path("home/.local/state/undertext"), &mut all);
        assert!(all.len() > 5, "{all:?}");
        for (path, mode) in all {
            let wanted = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, wanted, "{umask} {} {mode:o}", path.display());
        }
    }
}

/// A limit on the size of files is a disk that is full: what fits is there, what is said names the
/// place, and with room again the run goes on.
#[test]
fn a_run_that_may_write_no_more_says_so_and_goes_on_later() {
    let mut said = String::new();
    let digits = Regex::new(r"only \d+ of \d+").unwrap();
    // In blocks of 512 bytes.
    for blocks in [1, 30, 45, 90, 250] {
        let place = Place::new();
        let provider = provider(&[looks, counts, looks]);
        let line = ["run", "-q", "-m", "m", "--base-url", &provider.url];
        let limit = format!("ulimit -f {blocks}");
        let ran = run_after(&place, &limit, &[&line[..], &["count"]].concat());
        let asked = provider.asked();
        let text = place.plain(&ran.err);
        let text = digits.replace_all(&text, "only N of M");
        writeln!(said, "{blocks}: {} {asked} {text}", ran.code).unwrap();
        let path = place.transcripts().remove(0);
        let before = fs::read(&path).unwrap();
        if runs::read(&path).unwrap().run().is_none() {
            continue;
        }
        let again = place.run(&[&line[..], &["--resume", path.to_str().unwrap()]].concat());
        let task = [&line[..], &["--resume", path.to_str().unwrap(), "count"]].concat();
        let again = if again.code == 2 {
            place.run(&task)
        } else {
            again
        };
        assert_eq!(
            (again.code, again.out.as_str()),
            (0, "Done.\n"),
            "{blocks} {again:?}"
        );
        assert!(fs::read(&path).unwrap().starts_with(&before));
        assert_eq!(place.run(&["replay", "--verify"]).code, 0);
    }
    insta::assert_snapshot!(said, @"
    1: 6 0 undertext: cannot record the run: cannot write to /home/.local/state/undertext/transcripts/UUID.jsonl: only N of M bytes were written; free some space there or raise the limit on files (`ulimit -f`), then try again

    30: 6 0 undertext: cannot record the run: cannot write to /home/.local/state/undertext/transcripts/UUID.jsonl: only N of M bytes were written; free some space there or raise the limit on files (`ulimit -f`), then try again

    45: 6 2 undertext: cannot record the run: cannot keep a blob of /home/.local/state/undertext/transcripts/UUID.jsonl: File too large (os error 27); raise the limit on files (`ulimit -f`), then try again

    90: 6 2 undertext: cannot record the run: cannot keep a blob of /home/.local/state/undertext/transcripts/UUID.jsonl: File too large (os error 27); raise the limit on files (`ulimit -f`), then try again

    250: 6 2 undertext: cannot record the run: cannot keep a blob of /home/.local/state/undertext/transcripts/UUID.jsonl: File too large (os error 27); raise the limit on files (`ulimit -f`), then try again
    ");
}

#[test]
fn a_program_that_may_open_few_files_fails_in_a_line() {
    for files in (4..12).chain((12..28).step_by(4)) {
        let place = Place::new();
        let provider = provider(&[counts]);
        let line = ["run", "-q", "-m", "m", "--base-url", &provider.url];
        let ran = run_after(
            &place,
            &format!("ulimit -n {files}"),
            &[&line[..], &["count"]].concat(),
        );
        // Where not even the loader may open its libraries, nothing is ours to say.
        assert!(!ran.err.contains("panicked"), "{files}: {ran:?}");
        assert!(ran.code == 0 || !ran.err.is_empty(), "{files}: {ran:?}");
        let begun = place.transcripts().pop();
        let Some(path) = begun.filter(|path| runs::read(path).unwrap().run().is_some()) else {
            continue;
        };
        if ran.code != 0 {
            let again =
                place.run(&[&line[..], &["--resume", path.to_str().unwrap(), "go on"]].concat());
            assert_eq!(again.code, 0, "{files}: {ran:?} {again:?}");
        }
    }
}

#[test]
fn without_a_home_or_a_temporary_directory_it_is_said_what_to_name() {
    let place = Place::new();
    let provider = provider(&[counts]);
    let run = ["run", "-q", "-m", "m", "--base-url", &provider.url];
    let elsewhere = place.path("elsewhere");
    let named = ["--transcripts", elsewhere.to_str().unwrap()];
    let mut said = String::new();
    for (change, line) in [
        ("unset HOME", [&run[..], &["task"]].concat()),
        ("unset HOME", [&run[..], &named, &["task"]].concat()),
        ("HOME=/proc", [&run[..], &["task"]].concat()),
        ("HOME=/proc", [&run[..], &named, &["task"]].concat()),
        ("HOME=none", [&run[..], &["task"]].concat()),
        ("HOME=", [&run[..], &["task"]].concat()),
        ("export TMPDIR=/none", [&run[..], &["task"]].concat()),
        ("export TMPDIR=/none", vec!["demo"]),
        ("unset HOME", vec!["list"]),
        ("HOME=/proc", vec!["list"]),
        ("unset HOME", vec!["config", "init"]),
        ("HOME=/proc", vec!["config", "init"]),
        ("HOME=/proc", vec!["doctor", "-m", "offline"]),
    ] {
        let ran = run_after(&place, change, &line);
        let shown: Vec<&str> = line
            .iter()
            .filter(|it| !it.starts_with("http"))
            .copied()
            .collect();
        let last = ran
            .err
            .lines()
            .rev()
            .find(|line| line.starts_with("undertext: "));
        let last = last.unwrap_or_default();
        let text = place.plain(&format!(
            "{} {} {last}",
            ran.code,
            ran.out.lines().next().unwrap_or_default()
        ));
        let line = place.plain(&shown.join(" "));
        writeln!(said, "{change}; {line}\n  {}", text.trim_end()).unwrap();
    }
    let made = Regex::new("undertext-demo-[A-Za-z0-9]{6}").unwrap();
    let said = made.replace_all(&said, "undertext-demo-NEW");
    insta::assert_snapshot!(said, @r#"
    unset HOME; run -q -m m --base-url task
      2  undertext: settings cannot be used: neither XDG_STATE_HOME nor HOME says where transcripts go; name a directory with --transcripts
    unset HOME; run -q -m m --base-url --transcripts /elsewhere task
      0 Done.
    HOME=/proc; run -q -m m --base-url task
      6  undertext: cannot create /proc/.local/state/undertext/transcripts: No such file or directory (os error 2); name another directory with --transcripts
    HOME=/proc; run -q -m m --base-url --transcripts /elsewhere task
      0 Done.
    HOME=none; run -q -m m --base-url task
      2  undertext: settings cannot be used: neither XDG_STATE_HOME nor HOME says where transcripts go; name a directory with --transcripts
    HOME=; run -q -m m --base-url task
      2  undertext: settings cannot be used: neither XDG_STATE_HOME nor HOME says where transcripts go; name a directory with --transcripts
    export TMPDIR=/none; run -q -m m --base-url task
      0 Done.
    export TMPDIR=/none; demo
      1  undertext: cannot lay out the demo's project: No such file or directory (os error 2) at path "/none/undertext-demo-NEW"; name a directory that you may write with TMPDIR
    unset HOME; list
      2  undertext: settings cannot be used: neither XDG_STATE_HOME nor HOME says where transcripts go; name a directory with --transcripts
    HOME=/proc; list
      0
    unset HOME; config init
      2  undertext: neither XDG_CONFIG_HOME nor HOME says where your config.yaml belongs; set one of them
    HOME=/proc; config init
      2  undertext: cannot write /proc/.config/undertext/config.yaml: No such file or directory (os error 2); check the path
    HOME=/proc; doctor -m offline
      0 ok    settings  no file; all as built in
    "#);
}

#[test]
fn a_transcript_that_is_no_plain_file_is_not_taken_up() {
    let place = Place::new();
    let at = |name: &str| place.path(&format!("home/w/{name}"));
    fs::create_dir(at("directory.jsonl")).unwrap();
    mknodat(
        CWD,
        at("pipe.jsonl"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("zero.jsonl")).unwrap();
    std::os::unix::fs::symlink("none", at("nowhere.jsonl")).unwrap();
    let mut said = String::new();
    for name in ["directory", "pipe", "zero", "nowhere"] {
        let file = format!("{name}.jsonl");
        let server = ["-m", "m", "--base-url", "http://127.0.0.1:1/v1"];
        let ran = place.run(&[&["run", "--resume", &file], &server[..], &["task"]].concat());
        write!(said, "{} {}", ran.code, place.plain(&ran.err)).unwrap();
    }
    insta::assert_snapshot!(said, @"
    6 undertext: directory.jsonl is a directory, not a plain file; name a transcript in it
    6 undertext: pipe.jsonl is a named pipe, not a plain file; write what it gives into a file whose name ends in .jsonl, and name that
    6 undertext: zero.jsonl is a symbolic link, not a plain file; name the file that it leads to
    6 undertext: nowhere.jsonl is a symbolic link, not a plain file; name the file that it leads to
    ");
}

#[test]
fn a_run_whose_output_is_closed_ends_and_can_be_taken_up() {
    let place = Place::new();
    let provider = provider(&[looks]);
    let line = [
        "run",
        "--json",
        "-m",
        "m",
        "--base-url",
        &provider.url,
        "task",
    ];
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.command(&line);
    let unread = ended(command.stdout(writer).spawn().unwrap());
    let closed = run_after(&place, "exec >&-", &line);
    let silent = run_after(&place, "exec >&- 2>&-", &line);
    let mut said = String::new();
    for ran in [unread, closed, silent] {
        let text = place.plain(&ran.err);
        let lines = text.lines().filter(|line| !line.starts_with("sandbox: "));
        let text: Vec<&str> = lines.collect();
        writeln!(said, "{} {}", ran.code, text.join("\n").trim_end()).unwrap();
    }
    insta::assert_snapshot!(said, @"
    130 run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    undertext: nobody reads the output, so nothing was done
    0 run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    finished: 2 rounds, 2 calls, 2,000 tokens in (0 cached), 20 out, cost unknown, TIME
    0
    ");
    // What was begun is there, and has nothing in it.
    let first = place.transcripts().remove(0);
    let line = [&line[..], &["--resume", first.to_str().unwrap()]].concat();
    let ran = place.run(&line);
    assert!(ran.code == 0 && ran.out.contains("Done."), "{ran:?}");
}

#[test]
fn a_run_whose_workspace_is_gone_goes_on_in_another() {
    let place = Place::new();
    fs::create_dir(place.path("home/gone")).unwrap();
    let provider = Provider::new([says("Done."), says("Again.")]);
    let gone = place.path("home/gone");
    let ran = place.ask(&provider, &["-C", gone.to_str().unwrap(), "task"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    fs::remove_dir(&gone).unwrap();
    let run = ran_id(&place.transcripts()[0]);
    let refused = place.ask(&provider, &["--resume", &run, "go on"]);
    let moved = place.ask(&provider, &["--resume", &run, "-C", ".", "go on"]);
    assert_eq!((refused.code, moved.code), (2, 0), "{refused:?} {moved:?}");
    let remark = moved.err.lines().find(|line| line.contains("workspace"));
    insta::assert_snapshot!(place.plain(&(refused.err + remark.unwrap())), @"
    undertext: workspace /home/gone cannot be used: No such file or directory (os error 2); make that directory first, or name another
    the run began in another workspace, /home/gone
    ");
}
