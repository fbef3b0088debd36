//! How confined processes end: all at once, whoever dies.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use undertext::exchange::Status;

use super::{Area, By, bash, order};

/// The processes that have this word among their arguments.
fn those(word: &str) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let found = processes.filter(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|part| part == word.as_bytes())
    });
    let ids = found.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    ids.collect()
}

/// Whether they are all gone, soon.
async fn are_gone(word: &str) -> bool {
    for _ in 0..100 {
        if those(word).is_empty() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

/// Whatever a call starts is gone when it ends, however it hides.
#[tokio::test]
async fn nothing_is_left_of_a_call() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let word = format!("7{}{}", by as u32, std::process::id());
        for _ in 0..20 {
            let command = format!(
                "sleep {word} & setsid sleep {word} & (setsid env -i sleep {word} &) ; \
                 env -i setsid sh -c 'sleep {word} & sleep {word} &' & nohup sleep {word} >/dev/null 2>&1 & true"
            );
            assert_eq!(bash(&hands, &command).await.status, Status::Ok);
        }
        assert_eq!(those(&word), [], "{by:?}");
        let zombies = bash(
            &hands,
            "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l",
        )
        .await;
        if by == By::Namespaces {
            assert_eq!(zombies.content, "0\n");
        }
        // A job goes on until the hands end.
        let job = json!({"command": format!("sleep {word}"), "background": true});
        assert_eq!(hands.run(order("Bash", &job)).await.status, Status::Ok);
        assert_eq!(bash(&hands, "true").await.status, Status::Ok);
        assert!(!those(&word).is_empty());
        hands.close().await;
        assert_eq!(those(&word), [], "{by:?}");
    }
}

/// The process that is killed takes everything with it; the next order finds a new one, as confined.
#[tokio::test]
async fn a_process_that_dies_is_replaced_and_what_ran_is_told() {
    let area = Area::new();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let word = format!("6{}", std::process::id());
    let job = json!({"command": format!("sleep {word}"), "background": true});
    assert_eq!(hands.run(order("Bash", &job)).await.status, Status::Ok);
    let call = hands.run(order(
        "Bash",
        &json!({"command": format!("touch begun; sleep {word}")}),
    ));
    let kill = async {
        while !area.path("w/begun").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let [job, ..] = those(&word)[..] else {
            panic!("no job")
        };
        // Its first process: the ancestor that all its namespace hangs on.
        let mut pid = job;
        loop {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            let name = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if name.contains("inside") {
                break;
            }
            let parent = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap();
            pid = Pid::from_raw(parent.parse().unwrap()).unwrap();
        }
        kill_process(pid, Signal::KILL).unwrap();
    };
    let (outcome, ()) = tokio::join!(call, kill);
    assert_eq!(outcome.status, Status::Interrupted, "{outcome:?}");
    assert!(are_gone(&word).await);
    let outcome = bash(&hands, "cat a.txt; touch ../outside/new").await;
    assert_eq!(outcome.status, Status::Error);
    assert!(outcome.content.starts_with("hello\n"), "{outcome:?}");
    assert!(!area.path("outside/new").exists());
    hands.close().await;
    assert!(!area.path("w/.git").exists());
}

/// Killing the program that runs the agent ends its tools within a second.
#[tokio::test]
async fn a_program_that_is_killed_leaves_nothing() {
    let area = Area::new();
    if area.hands(By::Namespaces).await.is_none() {
        return;
    }
    let word = format!("5{}", std::process::id());
    #[expect(clippy::disallowed_methods, reason = "what is killed is the program")]
    let mut run = Command::new(env!("CARGO_BIN_EXE_undertext"))
        .args(["run", "-m", "offline", "--check"])
        .arg(format!("sleep {word} & setsid sleep {word} & sleep {word}"))
        .arg("Say that you are ready.")
        .current_dir(area.path("w"))
        .env_clear()
        .env("PATH", env!("PATH"))
        .env("HOME", area.path("home"))
        .env("TMPDIR", area.path("tmp"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while those(&word).len() < 3 {
        assert_eq!(run.try_wait().unwrap(), None, "the check does not run");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(are_gone(&word).await, "{:?}", those(&word));
}

/// What is too long for one message is answered, and the next call works.
#[tokio::test]
async fn a_flood_is_answered_and_the_next_call_works() {
    let area = Area::new();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let outcome = bash(&hands, "head -c 20000000 /dev/zero | tr '\\0' '\\1'").await;
    assert_eq!(outcome.status, Status::Ok);
    let long = "x".repeat(17 << 20);
    let outcome = hands
        .run(order("Write", &json!({"path": "b", "content": long})))
        .await;
    assert_eq!(
        outcome.content,
        "The arguments are too long for a tool. Nothing ran."
    );
    let outcome = bash(&hands, "seq 100000").await;
    assert!(
        outcome
            .whole
            .is_some_and(|whole| whole.ends_with(b"100000\n"))
    );
    assert_eq!(bash(&hands, "cat a.txt").await.content, "hello\n");
    hands.close().await;
}
