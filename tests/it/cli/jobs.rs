//! Commands in the background: however a run ends, no process of theirs is left.

use std::fs;
use std::io::Read as _;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::cli::{Place, ended, says, signal};
use crate::provider::{Answer, Provider};

/// Whether a process runs that has this word among its arguments.
fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| {
        line.split(|byte| *byte == 0)
            .any(|part| part == word.as_bytes())
    })
}

/// Waits until such a process runs, or until none does.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "it waits for processes")]
fn until(is_there: bool, word: &str) {
    let begun = Instant::now();
    while runs(word) != is_there {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{word} {is_there}"
        );
        std::thread::yield_now();
    }
}

/// A duration that nothing else sleeps for, and a response that starts who does: in the group,
/// out of it, without its mark, with neither; for some numbers deaf to being asked to end.
fn starts(number: u32) -> (String, Answer) {
    let word = format!("{}.{number}", 700_000 + std::process::id());
    let deaf = match number {
        3 | 5 => "",
        _ => "trap '' TERM; ",
    };
    let command = format!(
        "{deaf}sleep {word} & setsid sleep {word} & env -i sleep {word} & \
         env -i setsid sleep {word} & wait; wait"
    );
    let arguments = serde_json::json!({"command": command, "background": true}).to_string();
    (word, Answer::Calls(vec![("Bash", arguments.leak())]))
}

fn child(place: &Place, provider: &Provider, more: &[&str]) -> Child {
    let line = ["run", "-m", "m", "--base-url", &provider.url, "serve"];
    place.command(&[&line[..], more].concat()).spawn().unwrap()
}

#[test]
fn a_job_ends_with_a_run_that_ends_by_itself() {
    let place = Place::new();
    let (word, calls) = starts(1);
    let asks = Answer::Calls(vec![("Job", "{}")]);
    let provider = Provider::new([calls, asks, says("It runs.")]);
    let child = child(&place, &provider, &[]);
    let (_, _) = (provider.body(), provider.body());
    let told = provider.messages().pop().unwrap().to_string();
    let ran = ended(child);
    assert_eq!((ran.code, ran.out.as_str()), (0, "It runs.\n"), "{ran:?}");
    until(false, &word);
    assert!(
        told.contains("job 5.1 runs: `trap '' TERM; sleep"),
        "{told}"
    );

    // Taken up again, the run has no jobs.
    let provider = Provider::new([
        Answer::Calls(vec![("Job", r#"{"job":"5.1"}"#)]),
        says("Gone."),
    ]);
    let line = ["run", "--continue", "--base-url", &provider.url, "still?"];
    let ran = place.run(&line);
    assert_eq!(ran.code, 0, "{ran:?}");
    provider.body();
    let told = provider.messages().pop().unwrap();
    assert_eq!(
        told["content"],
        "No job 5.1 runs here: jobs end with the run, and those of an earlier part of it are gone.\
         \nThere are no jobs."
    );
}

#[test]
fn a_job_ends_with_a_run_that_is_signalled() {
    for (number, sent, code) in [(2, Signal::INT, 130), (3, Signal::TERM, 143)] {
        let place = Place::new();
        let (word, calls) = starts(number);
        let provider = Provider::new([calls, Answer::Silence]);
        let child = child(&place, &provider, &[]);
        let (_, _) = (provider.body(), provider.body());
        until(true, &word);
        signal(&child, sent);
        let ran = ended(child);
        assert_eq!(ran.code, code, "{ran:?}");
        until(false, &word);
    }
}

#[test]
fn a_job_ends_with_a_run_that_is_ended_at_once() {
    // It answers the second signal itself; or it hangs on a pipe that nobody reads.
    let path = serde_json::json!({"path": "x".repeat(1 << 20)}).to_string();
    let goes_on = Answer::Calls(vec![("Read", path.leak())]);
    for (number, answer) in [(4, Answer::Silence), (5, goes_on)] {
        let place = Place::new();
        let (word, calls) = starts(number);
        let hangs = matches!(answer, Answer::Calls(_));
        let provider = Provider::new([calls, answer]);
        let mut child = child(&place, &provider, if hangs { &["--json"] } else { &[] });
        let (_, _) = (provider.body(), provider.body());
        until(true, &word);
        if hangs {
            let out = child.stdout.as_mut().unwrap();
            let mut seen = Vec::new();
            while !seen.ends_with(b"xxxxxxxx") {
                let mut byte = [0];
                out.read_exact(&mut byte).unwrap();
                seen.extend(byte);
            }
        }
        // Signals that come together are one.
        while child.try_wait().unwrap().is_none() {
            signal(&child, Signal::INT);
            std::thread::yield_now();
        }
        assert_eq!(child.wait().unwrap().code(), Some(130));
        until(false, &word);
    }
}
