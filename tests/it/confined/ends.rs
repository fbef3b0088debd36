//! How confined processes end: all at once, whoever dies.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use undertext::agent::{Agent, Task};
use undertext::exchange::Status;
use undertext::hands::{Hands, Launch, Workspace};
use undertext::model::{Reply, Scripted};
use undertext::record::MemoryStorage;
use undertext::setup::{Policy, Sandbox};
use undertext::tools::Toolbox;
use undertext::transcript::{Event, Note, Reason};

use crate::scene;

use super::{Area, By, bash, number, order};

/// The processes that have this word among their arguments.
pub(super) fn those(word: &str) -> Vec<Pid> {
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

/// How many hands share the calls: most of a call's time is spent waiting.
const AT_ONCE: u64 = 8;

/// Whatever a call starts is gone when it ends, however it hides.
#[tokio::test]
async fn nothing_is_left_of_a_call() {
    let calls = number("UNDERTEXT_CALLS", 24).div_ceil(AT_ONCE);
    for by in [By::Namespaces, By::Landlock, By::Nothing] {
        let all = (0..AT_ONCE).map(|which| nothing_is_left(by, calls, which));
        let made: u64 = futures::future::join_all(all).await.iter().sum();
        println!("{by:?}: {made} calls, 0 processes left");
    }
}

/// Makes so many calls by hands of their own, and looks after each; how many were made.
async fn nothing_is_left(by: By, calls: u64, which: u64) -> u64 {
    let area = Area::new();
    let Some((hands, _)) = area.hands(by).await else {
        return 0;
    };
    let word = format!("7{}{which}{}", by as u32, std::process::id());
    for _ in 0..calls {
        // By a double fork, a session of its own, without the mark, deaf to what asks it to end.
        let command = format!(
            "sleep {word} & setsid sleep {word} & (setsid env -i sleep {word} &) ; \
             env -i setsid sh -c 'sleep {word} & sleep {word} &' & \
             (trap '' TERM HUP; exec setsid sleep {word}) & \
             nohup sleep {word} >/dev/null 2>&1 & true"
        );
        assert_eq!(bash(&hands, &command).await.status, Status::Ok);
        assert_eq!(those(&word), [], "{by:?}");
    }
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
    calls
}

/// A process goes on without its first thread, and looks then as if it had ended.
#[tokio::test]
async fn what_goes_on_without_its_first_thread_ends_with_its_call() {
    for by in [By::Namespaces, By::Landlock, By::Nothing] {
        let area = Area::new();
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let program = "import ctypes, fcntl, os, threading, time\n\
                       held = open(\"held\", \"w\")\nfcntl.flock(held, fcntl.LOCK_EX)\n\
                       threading.Thread(target=lambda: time.sleep(60)).start()\n\
                       ctypes.CDLL(None).syscall(60 if os.uname().machine == \"x86_64\" else 93, 0)";
        let command = format!(
            "setsid env -i PATH=\"$PATH\" python3 -c '{program}' &\n\
             until grep -q '^State:.Z' /proc/$!/status; do :; done; flock -n held true || echo held"
        );
        assert_eq!(bash(&hands, &command).await.content, "held\n", "{by:?}");
        let held = fs::File::open(area.path("w/held")).unwrap();
        assert!(held.try_lock().is_ok(), "{by:?}");
        hands.close().await;
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
    let kill = kill_hands(area.path("w/begun"), &word);
    let (outcome, ()) = tokio::join!(call, kill);
    assert_eq!(outcome.status, Status::Interrupted, "{outcome:?}");
    assert!(are_gone(&word).await);
    let outcome = bash(&hands, "cat a.txt; touch ../outside/new").await;
    assert_eq!(outcome.status, Status::Error);
    assert!(outcome.content.starts_with("hello\n"), "{outcome:?}");
    assert!(!area.path("outside/new").exists());
    hands.close().await;
    assert!(!area.path("w/.git").exists());
    assert_eq!(fs::read_dir(area.path("tmp")).unwrap().count(), 0);
}

/// Kills the process in which a tool with this word runs, once the tool has made this file.
async fn kill_hands(begun: PathBuf, word: &str) {
    let tool = loop {
        if let (true, [tool, ..]) = (begun.exists(), &those(word)[..]) {
            break *tool;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    fs::remove_file(begun).unwrap();
    // Its first process: the ancestor that all its namespace hangs on.
    let mut pid = tool;
    loop {
        let name = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if name.contains("inside") {
            break;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let parent = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap();
        pid = Pid::from_raw(parent.parse().unwrap()).unwrap();
    }
    kill_process(pid, Signal::KILL).unwrap();
}

/// One that dies whatever is asked of it is not started for ever: the run says so, and ends.
#[tokio::test]
async fn a_process_that_dies_again_and_again_ends_the_run() {
    let area = Area::new();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let word = format!("4{}", std::process::id());
    let command = json!({"command": format!("touch begun; sleep {word}")}).to_string();
    let call = || Reply::calls([("Bash", command.as_str())]);
    let model = Scripted::new([
        call().into(),
        Reply::calls([("Bash", r#"{"command":"echo hello"}"#)]).into(),
        call().into(),
        call().into(),
        call().into(),
        call().into(),
    ]);
    let toolbox = Toolbox::builtin();
    let setup = scene::setup(100_000, Policy::default());
    let agent = Agent::new(setup, Arc::new(model), toolbox).with_hands(hands);
    let storage = MemoryStorage::default();
    let mut recorder = scene::create(&storage);
    let killing = async {
        loop {
            kill_hands(area.path("w/begun"), &word).await;
        }
    };
    let cancel = CancellationToken::new();
    let task = Some(Task::new("Go."));
    let finished = tokio::select! {
        finished = agent.run(&mut recorder, task, &cancel) => finished.unwrap(),
        never = killing => never,
    };
    assert_eq!(finished.reason, Reason::Hands);
    assert!(are_gone(&word).await);
    drop(recorder);
    let entries = scene::entries(&storage);
    let told = entries.iter().filter_map(|entry| match &entry.event {
        Event::Result(result) => Some(format!("{:?}: {}", result.status, result.content)),
        Event::Note(Note::Warning { text }) => Some(text.clone()),
        Event::End(end) => Some(format!("end: {}", end.text)),
        _ => None,
    });
    let told: Vec<String> = told.collect();
    let lost = "Interrupted: The tool was lost while it ran; what it did until then may have taken effect.";
    let again = "the process for tools died, and what ran in it; the next call starts another, held as the first was";
    assert_eq!(
        told,
        [
            lost,
            again,
            "Ok: hello\n",
            lost,
            again,
            lost,
            again,
            lost,
            again,
            lost,
            "the process for tools died 4 times in a row",
            "end: the process for tools died 4 times in a row; resume to go on",
        ]
    );
}

/// Killing the program that runs the agent ends its tools within a second, also where nothing holds them.
#[tokio::test]
async fn a_program_that_is_killed_leaves_nothing() {
    for (test, sandbox) in ["workspace", "off"].into_iter().enumerate() {
        let area = Area::new();
        if sandbox == "workspace" && area.hands(By::Namespaces).await.is_none() {
            continue;
        }
        let word = format!("5{test}{}", std::process::id());
        let asked = "trap 'echo asked >asked' TERM";
        let check = format!("{asked}; sleep {word} & setsid sleep {word} & sleep {word}");
        #[expect(clippy::disallowed_methods, reason = "what is killed is the program")]
        let mut run = Command::new(env!("CARGO_BIN_EXE_undertext"))
            .args(["run", "-m", "offline", "--sandbox", sandbox])
            .args(["--check", &check, "Say that you are ready."])
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
        assert!(are_gone(&word).await, "{sandbox}: {:?}", those(&word));
        // What is asked to end may act once more, when somebody else works there already.
        assert!(!area.path("w/asked").exists(), "{sandbox}");
        // A directory of its own is removed by the next, once whatever died with it has let go of it.
        let left = || fs::read_dir(area.path("tmp")).unwrap().count();
        for _ in 0..100 {
            if left() > 0 && sandbox == "workspace" {
                let (hands, _) = area.hands(By::Namespaces).await.unwrap();
                hands.close().await;
            }
            if left() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        assert_eq!(left(), 0);
    }
}

/// One that refuses at once has ended before it is sent what it is to do, and is heard all the same.
#[tokio::test]
async fn a_process_that_refuses_before_it_is_told_anything_is_heard() {
    let area = Area::new();
    let said = r#"{"without":"not here"}"#;
    // The lengths of what it says and of what stands beside it come first.
    let script = format!(
        r"printf '\{:03o}\000\000\000\000\000\000\000%s' '{said}' >&0",
        said.len()
    );
    let launch = Launch {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        ..area.launch()
    };
    // It cannot all be on its way before it is read.
    let environment = vec![("LONG".into(), "x".repeat(1 << 20).into())];
    let workspace = Workspace::open(&area.path("w"), None, environment).unwrap();
    let bounds = area.bounds(&Sandbox::Workspace(area.reach()));
    let started = Hands::confined(workspace, Vec::new(), bounds, launch).await;
    let told = started.err().map(|error| error.to_string());
    assert_eq!(told.as_deref(), Some("not here; namespaces: not here"));
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

/// The first process of every namespace has the same id; what each ends is its own all the same.
#[tokio::test]
async fn no_two_processes_for_tools_mark_alike() {
    let area = Area::new();
    let mut marks = Vec::new();
    for _ in 0..2 {
        let Some((hands, _)) = area.hands(By::Namespaces).await else {
            return;
        };
        marks.push(bash(&hands, "echo $UNDERTEXT_CALL").await.content);
        hands.close().await;
    }
    // The first process, what is its own, and which call: the last is the same.
    let parts = marks.iter().map(|mark| mark.trim().split('.').collect());
    let parts: Vec<Vec<&str>> = parts.collect();
    assert!(parts.iter().all(|parts| parts[0] == "1"), "{parts:?}");
    assert_ne!(parts[0][1], parts[1][1], "{parts:?}");
}
