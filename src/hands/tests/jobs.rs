//! Commands in the background: what is said of them, and that they end.

use futures::FutureExt as _;
use serde_json::{Value, json};

use super::*;

impl Bench {
    /// Starts a command in the background, as call `41.<place>`.
    async fn start(&self, place: u32, command: &str) -> Outcome {
        let arguments = json!({"command": command, "background": true});
        self.call(place, "Bash", &arguments).await
    }

    async fn job(&self, arguments: Value) -> String {
        self.call(99, "Job", &arguments).await.content
    }

    async fn call(&self, place: u32, tool: &str, arguments: &Value) -> Outcome {
        let order = Order {
            tool: tool.into(),
            arguments: arguments.to_string(),
            ..self.order(place, "", 1)
        };
        self.hands.run(order).await
    }
}

/// A duration that nothing else on the machine sleeps for.
fn word(number: u32) -> String {
    format!("{}.{number}", 500_000 + std::process::id())
}

#[tokio::test]
async fn a_job_is_read_awaited_and_ended_by_its_handle() {
    let bench = Bench::new();
    let word = word(1);
    assert_eq!(bench.job(json!({})).await, "There are no jobs.");
    let command = format!("echo up; echo and running >&2; setsid sleep {word} & wait");
    let begun = bench.start(1, &command).await;
    assert_eq!(begun.status, Status::Ok);
    let handle = "[runs on as job 41.1; Job reads, waits for and ends it]";
    assert!(begun.content.ends_with(handle), "{begun:?}");
    until(true, &word).await;
    let first = json!({"job": "41.1"});
    while !bench.job(first.clone()).await.contains("lines 1–2 of 2") {}
    let mut said = String::new();
    for arguments in [
        json!({}),
        json!({"job": "41.1"}),
        json!({"job": "41.1", "from_line": 2, "lines": 7}),
        json!({"job": "41.1", "lines": 1}),
        json!({"job": "41.1", "action": "wait", "timeout_ms": 1}),
        json!({"job": "41.1", "action": "end"}),
        json!({"job": "41.1", "action": "end", "from_line": 9}),
        json!({"job": "41.2"}),
        json!({"job": "first", "action": "end"}),
        json!({"action": "wait"}),
    ] {
        said += &bench.job(arguments).await.replace(&word, "N");
        said.push('\n');
        let ended = said.contains("was ended");
        assert_eq!(Bench::runs(&word), !ended, "{said}");
    }
    insta::assert_snapshot!(said, @"
        job 41.1 runs: `echo up; echo and running >&2; setsid sleep N & wait`
        up
        and running
        [job 41.1 runs; lines 1–2 of 2]
        and running
        [job 41.1 runs; lines 2–2 of 2]
        and running
        [job 41.1 runs; lines 2–2 of 2]
        up
        and running
        [job 41.1 runs; lines 1–2 of 2]
        up
        and running
        [job 41.1 was ended; lines 1–2 of 2]
        [job 41.1 was ended; it printed 2 lines so far]
        No job 41.2 runs here: jobs end with the run, and those of an earlier part of it are gone.
        job 41.1 was ended: `echo up; echo and running >&2; setsid sleep N & wait`
        No job first runs here: jobs end with the run, and those of an earlier part of it are gone.
        job 41.1 was ended: `echo up; echo and running >&2; setsid sleep N & wait`
        Say which job.
        job 41.1 was ended: `echo up; echo and running >&2; setsid sleep N & wait`
        ");
}

#[tokio::test]
async fn a_job_that_ends_by_itself_says_how() {
    let bench = Bench::new();
    for (place, command, said) in [
        (1, "exit 3", "[job 41.1 ended: exit 3; it printed nothing]"),
        (2, "echo a", "a\n[job 41.2 ended: exit 0; lines 1–1 of 1]"),
        (
            3,
            "kill -9 $$",
            "[job 41.3 was ended by signal 9; it printed nothing]",
        ),
    ] {
        bench.start(place, command).await;
        let wait = json!({"job": format!("41.{place}"), "action": "wait"});
        assert_eq!(bench.job(wait).await, said);
    }
    let limited = json!({"command": "sleep 1000", "background": true, "timeout_ms": 1});
    bench.call(4, "Bash", &limited).await;
    assert_eq!(
        bench.job(json!({"job": "41.4", "action": "wait"})).await,
        "[job 41.4 was ended after 1 ms, its limit; it printed nothing]"
    );
    let flood = "head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end";
    bench.start(5, flood).await;
    let wait = json!({"job": "41.5", "action": "wait"});
    let outcome = bench.call(99, "Job", &wait).await;
    assert!(outcome.content.chars().count() <= 2000);
    assert!(
        outcome
            .content
            .ends_with("x\nend\n[job 41.5 ended: exit 0; lines 1–2 of 2]")
    );
    assert!(outcome.whole.unwrap().len() < 3 << 20);
}

#[tokio::test]
async fn there_are_only_so_many_jobs() {
    let bench = Bench::new();
    let word = word(2);
    for place in 1..=16 {
        bench.start(place, &format!("sleep {word}")).await;
    }
    let refused = bench.start(17, "true").await;
    assert_eq!(
        refused,
        Outcome::error(
            "Nothing ran: 16 jobs run already, which is the most: end one with Job, or wait until \
             one is done."
        )
    );
    bench.job(json!({"job": "41.3", "action": "end"})).await;
    assert_eq!(bench.start(17, "true").await.status, Status::Ok);
    bench.hands.end_jobs().await;
    assert!(!Bench::runs(&word));
    assert_eq!(bench.job(json!({})).await, "There are no jobs.");
}

#[tokio::test]
async fn jobs_end_with_the_hands() {
    let bench = Bench::new();
    let word = word(3);
    let command = format!("trap '' TERM; setsid sleep {word} & sleep {word}; sleep {word}");
    bench.start(1, &command).await;
    until(true, &word).await;
    // A call that is given up leaves its job alone.
    bench.hands.cancel(CallId::new(EntryId(41), 1));
    assert!(bench.job(json!({})).await.starts_with("job 41.1 runs: "));
    let Bench { hands, .. } = bench;
    hands.close().await;
    assert!(!Bench::runs(&word));
}

#[tokio::test]
async fn a_job_of_a_call_that_was_given_up_does_not_begin_late() {
    let bench = Bench::new();
    let word = word(5);
    // The order is sent, given up, and the jobs are ended before its tool has begun.
    let command = format!("sleep {word}");
    let starting = bench.start(1, &command);
    assert_eq!(starting.now_or_never(), None);
    bench.hands.end_jobs().await;
    // Another call comes after it.
    bench.start(2, "true").await;
    assert!(!Bench::runs(&word));
    assert!(!bench.job(json!({})).await.contains("41.1"));
}

#[test]
fn jobs_end_with_the_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let word = word(4);
    let bench = runtime.block_on(async {
        let bench = Bench::new();
        bench.start(1, &format!("setsid sleep {word} & wait")).await;
        until(true, &word).await;
        bench
    });
    drop(runtime);
    assert!(!Bench::runs(&word));
    drop(bench);
}
