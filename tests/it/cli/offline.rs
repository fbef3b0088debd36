//! `run --model offline`: a run without key or network.

use std::fs;

use insta::assert_snapshot;

use crate::cli::{Place, ended, ran_id};

#[test]
fn a_run_needs_no_key_and_can_be_taken_up_again() {
    let place = Place::new();
    let sum = place.path("home/w/sum.sh");
    fs::write(&sum, "echo $(($1 - $2))\n").unwrap();
    fs::write(
        place.path("home/w/test.sh"),
        "[ \"$(sh sum.sh 2 3)\" = 5 ] || { echo \"FAIL sum: expected 5, got $(sh sum.sh 2 3)\"; exit 1; }\n",
    )
    .unwrap();
    let line = [
        "run",
        "-m",
        "offline",
        "--max-rounds",
        "2",
        "`sh test.sh` fails.",
    ];
    // What is asked stands on this machine: a proxy has no part in it.
    let nobody = "http://127.0.0.1:1";
    let mut command = place.command(&line);
    let begun = ended(
        command
            .env("http_proxy", nobody)
            .env("HTTP_PROXY", nobody)
            .spawn()
            .unwrap(),
    );
    assert_eq!(begun.code, 3, "{}", begun.err);
    let head: Vec<&str> = begun.err.lines().take(3).collect();
    assert_snapshot!(place.plain(&head.join("\n")), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    model: offline, a script in this program and no LLM
    sandbox: off, tools run with your own rights
    ");
    let run = ran_id(&place.transcripts()[0]);
    let mended = place.run(&["run", "--resume", &run]);
    assert_eq!(mended.code, 0, "{}", mended.err);
    assert_snapshot!(mended.out, @"
    `sh test.sh` passes now.

    What was wrong: in `sum.sh`, line 1, `-` stood where `+` belongs.

        - echo $(($1 - $2))
        + echo $(($1 + $2))

    How I know: the test failed before this change and passes with it. It was the first try. I am a script and no LLM: that the test passes is all I can judge, so have a look at the change.
    ");
    assert_eq!(fs::read_to_string(&sum).unwrap(), "echo $(($1 + $2))\n");
}
