//! Many tasks at once: what is begun when, what comes of it, and how it goes on where it stopped.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cli::{Place, Ran, ended, looks, says, signal};
use crate::provider::{Answer, Provider};

/// Writes a file of tasks beside the workspaces that they name.
fn tasks(place: &Place, lines: &[String]) -> PathBuf {
    for name in ["a", "b", "c"] {
        fs::create_dir_all(place.path("home/w").join(name)).unwrap();
    }
    let path = place.path("home/w/tasks.jsonl");
    fs::write(&path, lines.join("\n")).unwrap();
    path
}

/// A task that is said like its workspace is named.
fn task(workspace: &str) -> String {
    json!({"task": format!("task {workspace}"), "workspace": workspace}).to_string()
}

/// `batch` of the file of tasks, with the server's address.
fn line<'a>(provider: &'a Provider, more: &[&'a str]) -> Vec<&'a str> {
    let line = ["batch", "-m", "m", "--base-url", &provider.url];
    [&line[..], more, &["tasks.jsonl"]].concat()
}

fn results(out: &str) -> Vec<Value> {
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What became of which line, in the order of the results.
fn told(out: &str) -> Vec<(u64, String)> {
    let told = |result: &Value| {
        let what = result.get("reason").or(result.get("error")).unwrap();
        (
            result["line"].as_u64().unwrap(),
            what.as_str().unwrap().to_owned(),
        )
    };
    results(out).iter().map(told).collect()
}

fn check(ran: &Ran, code: i32, expected: &[(u64, &str)]) {
    let told = told(&ran.out);
    let told: Vec<(u64, &str)> = told.iter().map(|(line, what)| (*line, &**what)).collect();
    assert_eq!((ran.code, &told[..]), (code, expected), "{ran:?}");
}

/// What cannot be enforced for the first is not tried for the others.
#[cfg(target_os = "linux")]
#[test]
fn without_a_sandbox_that_can_be_enforced_no_more_is_begun() {
    let place = Place::new();
    let provider = Provider::answering(|_| says("Done."));
    tasks(&place, &["a", "b", "c"].map(task));
    let mut command = place.command(&line(&provider, &["--jobs", "1"]));
    command.env_remove("UNDERTEXT_SANDBOX__MODE");
    let ran = ended(command.env("TMPDIR", "/nowhere").spawn().unwrap());
    let lines: Vec<_> = results(&ran.out)
        .iter()
        .map(|result| (result["line"].clone(), result["exit"].clone()))
        .collect();
    assert_eq!(lines, [(json!(1), json!(5))], "{ran:?}");
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(place.transcripts().is_empty());
}

#[test]
fn results_come_as_runs_end_and_a_workspace_has_one_run_at_a_time() {
    let place = Place::new();
    // The first waits for the result of the last, and the second for the workspace of the first.
    let waits = "for i in $(seq 2000); do grep -q '^{.line.:5,.*}$' ../results.jsonl && exit 0; \
                 sleep 0.05; done; exit 1";
    let provider = Provider::answering(|_| says("Done."));
    tasks(
        &place,
        &[
            json!({"id": "one", "task": "first", "workspace": "a", "check": waits}).to_string(),
            json!({"task": "second", "workspace": "a"}).to_string(),
            r#"{"task": "wrong", "nothing": 1}"#.to_owned(),
            json!({"task": "no place", "workspace": "missing"}).to_string(),
            json!({"task": "third", "workspace": "c"}).to_string(),
        ],
    );
    let kept = ["--jobs", "2", "--output", "results.jsonl"];
    let mut ran = place.run(&line(&provider, &kept));
    assert_eq!(ran.out, "");
    ran.out = fs::read_to_string(place.path("home/w/results.jsonl")).unwrap();
    let mut told = told(&ran.out);
    let (wrong, good) = told.split_at_mut(2);
    assert_eq!((wrong[0].0, wrong[1].0), (3, 4), "{ran:?}");
    assert!(
        wrong[0]
            .1
            .starts_with("line 3, column 27: unknown field `nothing`, expected one of"),
        "{ran:?}"
    );
    assert!(
        wrong[1].1.ends_with(
            "missing cannot be used: No such file or directory (os error 2); make that directory \
             first, or name another"
        ),
        "{ran:?}"
    );
    let finished = "finished".to_owned();
    let in_order = [5, 1, 2].map(|line| (line, finished.clone()));
    assert_eq!((ran.code, &*good), (1, &in_order[..]), "{ran:?}");
    // Who reads no terminal reads no live line, and why something waits only once.
    assert!(!ran.err.contains('\r'), "{ran:?}");
    let waits =
        "tasks of one workspace work one after another; --share-workspace lets them work at once\n";
    assert_eq!(ran.err.matches(waits).count(), 1, "{ran:?}");

    let results = results(&ran.out);
    let first = results.iter().find(|result| result["line"] == 1).unwrap();
    assert_eq!(
        (
            &first["id"],
            &first["text"],
            &first["exit"],
            &first["totals"]["rounds"]
        ),
        (&json!("one"), &json!("Done."), &json!(0), &json!(1))
    );
    let transcript = PathBuf::from(first["transcript"].as_str().unwrap());
    assert!(place.transcripts().contains(&transcript));
    let list = place.run(&["list"]).out;
    assert!(list.contains("one"), "{list}");
}

#[test]
fn a_batch_that_was_killed_goes_on_where_it_stopped() {
    let place = Place::new();
    let provider = Provider::new([
        says("A."),
        Answer::Silence,
        says("B."),
        says("C."),
        says("New."),
        says("Newer."),
    ]);
    let mut lines = ["a", "b", "c"].map(task).to_vec();
    tasks(&place, &lines);
    let command = line(&provider, &["--jobs", "1"]);
    let child = place.command(&command).spawn().unwrap();
    let (_, _) = (provider.body(), provider.body());
    // Nobody else works on it meanwhile.
    let other = place.run(&command);
    assert_eq!((other.code, other.out.as_str()), (2, ""), "{other:?}");
    insta::assert_snapshot!(place.plain(&other.err), @"undertext: another `undertext batch` works on /home/w/tasks.jsonl; wait until it ends, or give --name to begin its tasks anew");
    signal(&child, Signal::KILL);
    let killed = child.wait_with_output().unwrap();
    let out = String::from_utf8(killed.stdout).unwrap();
    assert_eq!(told(&out), [(1, "finished".to_owned())]);
    assert_eq!(place.transcripts().len(), 2);

    let again = place.run(&command);
    check(&again, 0, &[(2, "finished"), (3, "finished")]);
    let transcripts = place.transcripts();
    assert_eq!(transcripts.len(), 3, "the second run was gone on with");
    assert_eq!(
        results(&again.out)[0]["transcript"],
        json!(transcripts[1].to_str().unwrap())
    );
    assert_eq!(provider.asked(), 2);

    // What is done is not done again, also when lines come before it; it can be told again.
    lines.insert(0, task("a").replace("task a", "new"));
    tasks(&place, &lines);
    let more = place.run(&command);
    check(&more, 0, &[(1, "finished")]);
    assert_eq!(provider.asked(), 1);
    let nothing = place.run(&command);
    check(&nothing, 0, &[]);
    let all = place.run(&line(&provider, &["--all"]));
    let each = [1, 2, 3, 4].map(|line| (line, "finished"));
    check(&all, 0, &each);
    // A file gets what is missing in it, and loses what was cut off at its end.
    let kept = place.path("home/w/results.jsonl");
    let mut written = all.out.lines();
    let first = written.next().unwrap();
    fs::write(
        &kept,
        format!("{first}\n{}", &written.next().unwrap()[..40]),
    )
    .unwrap();
    for _ in 0..2 {
        let ran = place.run(&line(&provider, &["--output", "results.jsonl"]));
        check(&ran, 0, &[]);
        assert_eq!(fs::read_to_string(&kept).unwrap(), all.out);
    }
    assert_eq!(provider.asked(), 0);
    // A result is that of its run, on whichever line that stands by now.
    lines.insert(0, task("a").replace("task a", "newer"));
    tasks(&place, &lines);
    place.run(&line(&provider, &["--output", "results.jsonl"]));
    let written = fs::read_to_string(&kept).unwrap();
    let new = written.strip_prefix(&all.out).unwrap();
    assert_eq!(told(new), [(1, "finished".to_owned())]);
}

#[test]
fn a_batch_that_is_stopped_leaves_runs_that_can_be_gone_on_with() {
    let reached = "a limit of all runs together is reached; ending them";
    let asked = "ending all runs; once more ends them at once";
    // Each answer takes a tenth of a cent, and three hundredths for what is said.
    let costs = [
        "--max-cost",
        "0.0015",
        "--set",
        "model.prices.input=1",
        "--set",
        "model.prices.output=3",
    ];
    // By a person; by a limit of all runs together.
    for (limit, sent, code, why) in [
        (&[][..], Some(Signal::INT), 130, asked),
        (&[], Some(Signal::TERM), 143, asked),
        (&["--max-tokens", "1500"], None, 3, reached),
        (&costs, None, 3, reached),
        (
            &["--max-time", "1ms"],
            None,
            3,
            "the time of all runs together is up; ending them",
        ),
    ] {
        let place = Place::new();
        let talks = Arc::new(AtomicBool::new(false));
        let hears = Arc::clone(&talks);
        let provider = Provider::answering(move |body| {
            let asked = body["messages"].as_array().unwrap().len();
            match (hears.load(Ordering::Relaxed), asked) {
                (true, _) => says("Done."),
                (false, 0..=2) => looks(),
                (false, _) => Answer::Silence,
            }
        });
        tasks(&place, &["a", "b", "c"].map(task));
        let more = [&["--jobs", "2"], limit].concat();
        let child = place.command(&line(&provider, &more)).spawn().unwrap();
        if let Some(sent) = sent {
            // Both wait for the answer to their second request.
            (0..4).for_each(|_| drop(provider.body()));
            signal(&child, sent);
        }
        let ran = ended(child);
        let told = told(&ran.out);
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.err.lines().any(|line| line == why), "{ran:?}");
        assert!(told.iter().all(|(_, why)| why == "interrupted"), "{ran:?}");
        assert!(told.len() <= 2, "{ran:?}");
        assert!(
            ran.err
                .ends_with("the same command goes on where it stopped\n"),
            "{ran:?}"
        );

        talks.store(true, Ordering::Relaxed);
        let begun = place.transcripts();
        let again = place.run(&line(&provider, &["--jobs", "1"]));
        check(&again, 0, &[1, 2, 3].map(|line| (line, "finished")));
        let after = place.transcripts();
        assert!(begun.iter().all(|run| after.contains(run)), "{ran:?}");
        assert_eq!(after.len(), 3, "{begun:?} {after:?}");
    }
}

/// What the last answer of all reaches has ended nothing.
#[test]
fn a_limit_that_is_reached_when_all_is_done_is_none() {
    let place = Place::new();
    let provider = Provider::answering(|_| says("Done."));
    tasks(&place, &["a", "b"].map(task));
    for (more, code, lines) in [
        (&["--jobs", "1", "--max-tokens", "1"][..], 3, &[1][..]),
        (&["--jobs", "1", "--max-tokens", "1"], 0, &[2]),
    ] {
        let ran = place.run(&line(&provider, more));
        let lines: Vec<_> = lines.iter().map(|line| (*line, "finished")).collect();
        check(&ran, code, &lines);
    }
}

/// The second signal waits for nothing, and what was under way is gone on with like what was killed.
#[test]
fn a_batch_that_is_ended_at_once_is_gone_on_with() {
    let place = Place::new();
    let talks = Arc::new(AtomicBool::new(false));
    let hears = Arc::clone(&talks);
    let provider = Provider::answering(move |_| {
        if hears.load(Ordering::Relaxed) {
            says("Done.")
        } else {
            Answer::Silence
        }
    });
    tasks(&place, &["a", "b", "c"].map(task));
    let mut child = place
        .command(&line(&provider, &["--jobs", "2"]))
        .spawn()
        .unwrap();
    (0..2).for_each(|_| drop(provider.body()));
    // Signals that come together are one.
    while child.try_wait().unwrap().is_none() {
        signal(&child, Signal::INT);
        std::thread::yield_now();
    }
    let ran = ended(child);
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(
        told(&ran.out).iter().all(|(_, why)| why == "interrupted"),
        "{ran:?}"
    );
    let begun = place.transcripts();
    assert_eq!(begun.len(), 2);

    talks.store(true, Ordering::Relaxed);
    let again = place.run(&line(&provider, &["--jobs", "1"]));
    check(&again, 0, &[1, 2, 3].map(|line| (line, "finished")));
    let after = place.transcripts();
    assert!(begun.iter().all(|run| after.contains(run)), "{after:?}");
    assert_eq!(after.len(), 3);
}

#[test]
fn a_run_that_ended_by_itself_is_gone_on_with_only_when_that_is_said() {
    let place = Place::new();
    let provider = Provider::new([
        looks(),
        says("Done."),
        Answer::Status(401, r#"{"error":{"message":"no"}}"#),
        says("Else."),
        says("Named."),
        says("Named."),
    ]);
    let limited = json!({"task": "look", "max_rounds": 1}).to_string();
    tasks(&place, &[limited, task("a")]);
    let go = |more: &[&str]| place.run(&line(&provider, &[&["--jobs", "1"], more].concat()));
    // The second needs the workspace within that of the first.
    let ran = go(&["--max-time", "1h"]);
    check(&ran, 1, &[(1, "rounds"), (2, "finished")]);
    let ran = go(&[]);
    check(&ran, 1, &[]);
    assert!(
        ran.err
            .contains("1 run of those done before did not finish; --retry goes on with them"),
        "{ran:?}"
    );
    check(&go(&["--retry"]), 1, &[(1, "provider")]);
    // A provider that failed says nothing of the task.
    check(&go(&[]), 0, &[(1, "finished")]);
    // Under another name all of it is begun anew.
    check(
        &go(&["--name", "x"]),
        0,
        &[(1, "finished"), (2, "finished")],
    );
    assert_eq!(place.transcripts().len(), 4);
}

#[test]
fn what_is_no_batch_is_refused_before_anything_is_done() {
    let place = Place::new();
    let provider = Provider::new([]);
    let mut said = String::new();
    let mut refused = |more: &[&str]| {
        let ran = place.run(&[&["batch", "--base-url", &provider.url], more].concat());
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
        said += &ran.err;
    };
    tasks(&place, &[task("a")]);
    fs::write(place.path("home/w/empty.jsonl"), " \n\n").unwrap();
    refused(&["-m", "m", "missing.jsonl"]);
    refused(&["-m", "m", "/dev/null"]);
    refused(&["-m", "m", "a"]);
    refused(&["-m", "m", "empty.jsonl"]);
    refused(&["-m", "m", "--output", "tasks.jsonl", "tasks.jsonl"]);
    refused(&["-m", "m", "--jobs", "0", "tasks.jsonl"]);
    refused(&["-m", "m", "--set", "nothing=1", "tasks.jsonl"]);
    refused(&["tasks.jsonl"]);
    insta::assert_snapshot!(place.plain(&said), @r#"
    undertext: cannot read the tasks in /home/w/missing.jsonl: No such file or directory (os error 2); check the path
    undertext: /dev/null is no plain file; tasks are read from one, so that the same command can go on where it stopped
    undertext: /home/w/a is no plain file; tasks are read from one, so that the same command can go on where it stopped
    undertext: empty.jsonl holds no task; a line is one, such as {"task": "explain src/main.rs"}
    undertext: /home/w/tasks.jsonl holds the tasks; name another file for the results
    undertext: invalid value '0' for '--jobs <N>': --jobs takes a number from 1 to 10000; see --help
    undertext: wrong setting in --set nothing=1: unknown key `nothing`, known here: model, compaction, limits, instructions, sandbox, transcripts, tools, profiles
    undertext: no model named; give -m MODEL for all lines, or `model` on the line
    "#);
    assert!(place.transcripts().is_empty());
}

/// Only what no line could do is refused; else each line has a result of its own, the first as well.
#[test]
fn a_wrong_first_line_keeps_no_other_from_being_worked_on() {
    let wrong = [
        json!({"task": "t"}),
        json!({"id": "x", "task": "t", "model": "m", "set": {"nothing": 1}}),
        json!({"id": "x", "task": "t", "model": "m", "workspace": "missing"}),
        json!({"id": "x", "task": "t", "model": "m", "max_rounds": 0}),
    ];
    let mut said = Vec::new();
    for wrong in wrong {
        let place = Place::new();
        let provider = Provider::new([says("Done.")]);
        let right = json!({"task": "t", "model": "m", "workspace": "a"});
        tasks(&place, &[wrong.to_string(), right.to_string()]);
        let ran = place.run(&["batch", "--base-url", &provider.url, "tasks.jsonl"]);
        let told = told(&ran.out);
        assert_eq!((ran.code, told.len()), (1, 2), "{ran:?}");
        assert_eq!(told[1], (2, "finished".to_owned()), "{ran:?}");
        assert_eq!(results(&ran.out)[0].get("id"), wrong.get("id"), "{ran:?}");
        said.push(place.plain(&told[0].1));
    }
    insta::assert_snapshot!(said.join("\n"), @"
    no model named; give -m MODEL for all lines, or `model` on the line
    wrong setting in `set`, nothing=1: unknown key `nothing`, known here: model, compaction, limits, instructions, sandbox, transcripts, tools, profiles
    workspace /home/w/missing cannot be used: No such file or directory (os error 2); make that directory first, or name another
    line 1, column 48: invalid value: integer `0`, expected a number above 0
    ");
}

/// What is wrong with the settings of a line is told by the name of its key, not of a flag.
#[test]
fn a_setting_of_a_line_is_told_as_one() {
    let place = Place::new();
    let provider = Provider::new([]);
    let set = |key: &str, value: Value| json!({"task": "t", "set": {key: value}}).to_string();
    tasks(
        &place,
        &[
            set("model.nam", json!("x")),
            set("limits.rounds", json!(0)),
            set("model.prices.input", json!(1)),
            r#"{"task": "t""#.to_owned(),
        ],
    );
    let flags = ["--set", "limits.rounds=9"];
    let ran = place.run(&line(&provider, &flags));
    let told: Vec<String> = told(&ran.out).into_iter().map(|(_, what)| what).collect();
    insta::assert_snapshot!(place.plain(&told.join("\n")), @r#"
    wrong setting in `set`, model.nam="x": unknown key `nam`, did you mean `name`?
    wrong setting in `set`, limits.rounds=0: at least 1 must stand here
    settings cannot be used: `model.prices` needs both `input` and `output`
    line 4, column 12: the line ends before its JSON does; a task is one line
    "#);
    assert_eq!(ran.code, 1, "{ran:?}");
}

/// Whoever finds a run finds its batch by it.
#[test]
fn a_run_tells_of_which_batch_it_is() {
    let place = Place::new();
    let provider = Provider::answering(|_| says("Done."));
    tasks(
        &place,
        &[json!({"id": "map", "task": "t", "workspace": "a"}).to_string()],
    );
    let ran = place.run(&line(&provider, &["--name", "second"]));
    check(&ran, 0, &[(1, "finished")]);
    let run = results(&ran.out)[0]["run"].as_str().unwrap().to_owned();
    let shown = place.run(&["show", &run]).out;
    let row = shown
        .lines()
        .find(|row| row.trim_start().starts_with("batch"));
    let row = place.plain(row.unwrap_or(&shown));
    assert_eq!(
        row.trim(),
        "batch       /home/w/tasks.jsonl, id map, in the batch second"
    );
    let shown: Value = serde_json::from_str(&place.run(&["show", "--json", &run]).out).unwrap();
    assert_eq!(
        [&shown["batch"]["id"], &shown["batch"]["name"]],
        ["map", "second"]
    );
}
