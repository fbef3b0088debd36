//! `--check`: a command decides whether the work is done.

use std::fs;

use crate::cli::{Place, says};
use crate::provider::{Answer, Provider};

/// A place whose test fails until `sum.sh` adds.
fn project() -> Place {
    let place = Place::new();
    let file = |name: &str, text: &str| fs::write(place.path("home/w").join(name), text).unwrap();
    file("sum.sh", "echo $(($1 - $2))\n");
    file(
        "test.sh",
        "got=$(sh sum.sh 40 2)\n[ \"$got\" = 42 ] || { echo \"40 and 2: $got\"; exit 3; }\n",
    );
    place
}

#[test]
fn a_run_is_finished_when_its_check_passes() {
    let place = project();
    let mend = r#"{"command":"sed -i s/-/+/ sum.sh"}"#;
    let provider = Provider::new([
        says("It adds."),
        Answer::Calls(vec![("Bash", mend)]),
        says("Now it adds."),
    ]);
    let ran = place.ask(&provider, &["--check", "sh test.sh", "make it add"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "Now it adds.\n"),
        "{ran:?}"
    );
    insta::assert_snapshot!(place.plain(&ran.err), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    check of e5: failed with exit 3, TIME
    check of e13: passed, TIME
    finished: 3 rounds, 1 call, 3,000 tokens in (0 cached), 30 out, cost unknown, TIME
    ");
    let (_, told) = (provider.body(), provider.messages());
    insta::assert_snapshot!(told.last().unwrap()["content"].as_str().unwrap(), @"
    [undertext, not the user] The work is not done yet: the check `sh test.sh` failed with exit 3. Mend what it reports, then say again that you are done: it is run each time. It printed:

    40 and 2: 38
    [exit 3]
    ");
    let shown = [
        place.run(&["print", "--at", "e6"]).out,
        place.run(&["show"]).out,
    ]
    .concat();
    let shown: Vec<&str> = shown
        .lines()
        .filter(|line| line.contains("check of"))
        .collect();
    insta::assert_snapshot!(place.plain(&shown.join("\n")), @"
    e6    note: check of e5: failed with exit 3, TIME
      notes       e6: check of e5: failed with exit 3, TIME
                  e14: check of e13: passed, TIME
    ");
    assert_eq!(place.run(&["replay", "--verify"]).code, 0);
}

#[test]
fn a_run_whose_check_keeps_failing_ends_without_finishing() {
    let place = project();
    let provider = Provider::new((0..4).map(|_| says("It adds.")));
    let line = [
        "--check",
        "sh test.sh",
        "--set",
        "limits.check_rounds=1",
        "make it add",
    ];
    let ran = place.ask(&provider, &line);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    insta::assert_snapshot!(place.plain(&ran.err), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    check of e5: failed with exit 3, TIME
    check of e9: failed with exit 3, TIME
    the check `sh test.sh` fails with exit 3, after 1 repair
    ended (check): 2 rounds, 0 calls, 2,000 tokens in (0 cached), 20 out, cost unknown, TIME
    to go on: undertext run --resume RUN --base-url http://HOST/v1 --check 'sh test.sh' --set limits.check_rounds=1
    ");
    // Taken up again without the check, the model's word counts.
    let ran = place.ask(&provider, &["--continue"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "It adds.\n"), "{ran:?}");
}
