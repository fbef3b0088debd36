//! Two runs do not edit one tree unless somebody says so.

use std::fs;

use rustix::process::Signal;

use crate::cli::{Place, ended, says, signal};
use crate::provider::{Answer, Provider};

#[test]
fn two_runs_do_not_work_in_one_tree_unless_they_share_it() {
    let place = Place::new();
    fs::create_dir(place.path("home/w/sub")).unwrap();
    let provider = Provider::new([Answer::Silence, says("Shared."), says("Alone.")]);
    let line = ["run", "-m", "m", "--base-url", &provider.url, "task"];
    let child = place.command(&line).spawn().unwrap();
    provider.body();

    let in_use = place.ask(&provider, &["task"]);
    let below = place.ask(&provider, &["-C", "sub", "task"]);
    assert_eq!((in_use.code, below.code), (2, 2), "{in_use:?} {below:?}");
    let said = in_use.err + &below.err;
    let said = place.plain(&said.replace(&format!("process {}", child.id()), "process PID"));
    insta::assert_snapshot!(said, @"
    undertext: workspace /home/w is in use by run RUN (process PID); wait until it ends, or give --share-workspace if both may change the same files
    undertext: workspace /home/w/sub lies in /home/w, where run RUN (process PID) works; wait until it ends, or give --share-workspace if both may change the same files
    ");
    // Nothing is begun in the workspace before: what is wrong with the sandbox is not known yet.
    let line = [
        "run",
        "-m",
        "m",
        "--base-url",
        &provider.url,
        "--sandbox",
        "workspace",
        "task",
    ];
    let mut command = place.command(&line);
    let ran = ended(command.env("TMPDIR", "/nowhere").spawn().unwrap());
    assert_eq!(ran.code, 2, "{ran:?}");
    // Nothing was recorded of them.
    assert_eq!(place.transcripts().len(), 1);
    let shared = place.ask(&provider, &["--share-workspace", "task"]);
    assert_eq!(
        (shared.code, shared.out.as_str()),
        (0, "Shared.\n"),
        "{shared:?}"
    );

    // However it ends, its lock ends with it.
    signal(&child, Signal::KILL);
    drop(child.wait_with_output());
    let alone = place.ask(&provider, &["-C", "sub", "task"]);
    assert_eq!(
        (alone.code, alone.out.as_str()),
        (0, "Alone.\n"),
        "{alone:?}"
    );
    assert!(!alone.err.contains("locked"), "{alone:?}");
}

#[test]
fn a_run_goes_on_where_locks_cannot_be_had() {
    let place = Place::new();
    let provider = Provider::new([says("Done.")]);
    fs::write(place.path("state"), "a file").unwrap();
    let transcripts = place.path("t");
    let line = [
        "run",
        "-m",
        "m",
        "--base-url",
        &provider.url,
        "--transcripts",
        transcripts.to_str().unwrap(),
        "task",
    ];
    let mut command = place.command(&line);
    let ran = ended(
        command
            .env("XDG_STATE_HOME", place.path("state"))
            .spawn()
            .unwrap(),
    );
    assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{ran:?}");
    let remark = ran.err.lines().find(|line| line.contains("lock"));
    insta::assert_snapshot!(place.plain(remark.unwrap()), @"the workspace is not locked against other runs: /state/undertext/locks: Not a directory (os error 20)");
}
