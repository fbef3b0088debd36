//! Runs that a provider or a signal ends.

use std::fs;
use std::io::Read as _;

use rustix::process::Signal;

use crate::cli::{Place, ended, looks, ran_id, says, signal};
use crate::provider::{Answer, Provider};

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
    ended (provider): 0 rounds, 0 calls, 0 tokens in (0 cached), 0 out, cost unknown, TIME
    to go on: undertext run --resume RUN --base-url http://HOST/v1 --api-key-env SECRET_KEY
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    server: http://HOST/v1 (no key)
    sandbox: off, tools run with your own rights
    the provider failed for good: cannot connect: tcp connect error: Connection refused (os error 111)
    check that a server listens at http://HOST/v1
    ended (provider): 0 rounds, 0 calls, 0 tokens in (0 cached), 0 out, cost unknown, TIME
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
        ended (interrupted): 1 round, 2 calls, 1,000 tokens in (0 cached), 10 out, cost unknown, TIME
        to go on: undertext run --resume RUN --base-url http://HOST/v1
        "));
        let ran = place.run(&["run", "--continue", "--base-url", &provider.url]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "All done.\n"), "{ran:?}");
        assert_eq!(place.run(&["replay", "--verify"]).code, 0);
    }
}

#[test]
fn a_second_signal_ends_a_run_that_hangs() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 143)] {
        if sent == Signal::HUP && is_hang_up_ignored() {
            continue;
        }
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
            signal(&child, sent);
            std::thread::yield_now();
        }
        let mut said = String::new();
        err.read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{said}");
        insta::allow_duplicates!(insta::assert_snapshot!(place.plain(&said), @"
        run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
        server: http://HOST/v1 (no key)
        sandbox: off, tools run with your own rights
        ended at once; the run can be taken up again
        to go on: undertext run --resume RUN --base-url http://HOST/v1
        "));
        let line = ["run", "--continue", "--base-url", &provider.url, "go on"];
        let ran = place.run(&line);
        assert_eq!((ran.code, ran.out.as_str()), (0, "All done.\n"), "{ran:?}");
    }
}
