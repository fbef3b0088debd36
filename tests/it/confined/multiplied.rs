//! What multiplies while whoever should see to that is dead or stopped: it ends all the same.
//!
//! With Landlock alone no kernel ends what is left of hands. Each bomb here is a thousand processes at
//! most, and ends by itself after a while.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use undertext::exchange::Status;
use undertext::hands::{Hands, Workspace};

use super::limits::{PROCESSES, frugal};
use super::{Area, By, bash, order};

/// The processes that have this text among their arguments.
fn those(text: &str) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let found = processes.filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let id = entry.file_name().to_str()?.parse().ok()?;
        let is_one = String::from_utf8_lossy(&line).contains(text);
        Pid::from_raw(id).filter(|_| is_one)
    });
    found.collect()
}

/// A word that no other process has among its arguments.
fn word(test: u32) -> String {
    format!("{test}{}7", std::process::id())
}

/// Those above a process, up to the first of this stage.
fn above(pid: Pid, stage: &str) -> Option<Pid> {
    let mut above = pid;
    loop {
        let line = fs::read_to_string(format!("/proc/{above}/cmdline")).unwrap_or_default();
        if line.ends_with(&format!("\0hands\0{stage}\0")) {
            return Some(above);
        }
        let stat = fs::read_to_string(format!("/proc/{above}/stat")).ok()?;
        let parent = stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
        above = Pid::from_raw(parent)?;
    }
}

/// A command that doubles nine times, each with this word.
fn bomb(word: &str) -> String {
    format!(
        "b() {{ [ $1 -eq 9 ] || {{ b $(($1 + 1)) & b $(($1 + 1)) & }}; exec sleep 20.{word}; }}; b 0"
    )
}

/// The warden of the hands in which this word multiplies, and those.
async fn multiplying(word: &str, by: By) -> (Pid, Pid) {
    let (warden, hands) = match by {
        By::Nothing => ("free", "loose"),
        By::Namespaces | By::Landlock => ("alone", "kept"),
    };
    loop {
        let found = those(word);
        if found.len() > 100
            && let Some(hands) = above(found[0], hands)
            && let Some(warden) = above(hands, warden)
        {
            return (warden, hands);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Hands that are killed while something multiplies: their warden ends it before the next call runs.
#[tokio::test]
async fn hands_that_are_killed_leave_nothing_that_multiplies() {
    for (test, by) in [(1, By::Landlock), (4, By::Nothing)] {
        let area = Area::new();
        let Some((hands, enforced)) = area.hands(by).await else {
            continue;
        };
        let word = word(test);
        let bomb = bomb(&word);
        let (outcome, ()) = tokio::join!(bash(&hands, &bomb), async {
            let (_, hands) = multiplying(&word, by).await;
            kill_process(hands, Signal::KILL).unwrap();
        });
        assert_eq!(outcome.status, Status::Interrupted, "{outcome:?}");
        let next = bash(&hands, "cat a.txt; touch ../outside/new").await;
        assert_eq!(those(&word), [], "{by:?}");
        assert!(next.content.starts_with("hello\n"), "{next:?}");
        let is_held = enforced.is_some();
        assert_eq!(area.path("outside/new").exists(), !is_held);
        hands.close().await;
        assert_eq!(fs::read_dir(area.path("tmp")).unwrap().count(), 0);
    }
}

/// Nothing holds tools back there: one stops whoever would see to the end of all. The end comes at once.
#[tokio::test]
async fn a_warden_that_a_tool_has_stopped_keeps_nobody_waiting() {
    let area = Area::new();
    let Some((hands, _)) = area.hands(By::Nothing).await else {
        return;
    };
    let stop = "read -r _ _ _ warden _ </proc/$PPID/stat; kill -STOP $warden; echo on";
    assert_eq!(bash(&hands, stop).await.content, "on\n");
    // Before, it was given up after 26 seconds.
    let closed = tokio::time::timeout(Duration::from_secs(15), hands.close()).await;
    assert!(closed.is_ok());
}

/// What hands note for themselves goes with them, also if they are killed: tools' own files stay.
#[tokio::test]
async fn hands_that_are_killed_leave_no_notes() {
    let area = Area::new();
    let temporary = area.path("home");
    let workspace = area.workspace();
    let mut environment = workspace.environment().to_vec();
    environment.push(("TMPDIR".into(), temporary.clone().into()));
    let workspace = Workspace::open(workspace.root(), None, environment).unwrap();
    let hands = Hands::free(workspace, Vec::new(), area.launch())
        .await
        .unwrap();
    let killed = bash(
        &hands,
        "echo mine >$TMPDIR/mine; kill -KILL $PPID; sleep 60",
    )
    .await;
    assert_eq!(killed.status, Status::Interrupted, "{killed:?}");
    let next = bash(&hands, "cd sub && cat $TMPDIR/mine").await;
    assert_eq!(next.content, "mine\n");
    let noted = next.facts.cwd.map(PathBuf::from);
    assert_eq!(noted, Some(area.path("w/sub")));
    hands.close().await;
    assert_eq!(fs::read_dir(area.path("tmp")).unwrap().count(), 0);
    let names = fs::read_dir(temporary)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, [".netrc", ".ssh", "mine", "tools"]);
}

/// Nobody works any more: the brain lets them go on, and they end what they have begun.
#[tokio::test]
async fn what_was_stopped_with_its_warden_ends_when_it_is_asked_to() {
    let area = Area::new();
    let Some((hands, _)) = area.hands(By::Landlock).await else {
        return;
    };
    let word = word(2);
    let call = order("Bash", &json!({"command": bomb(&word)}));
    let id = call.call;
    let (outcome, ()) = tokio::join!(hands.run(call), async {
        let (warden, below) = multiplying(&word, By::Landlock).await;
        kill_process(warden, Signal::STOP).unwrap();
        kill_process(below, Signal::STOP).unwrap();
        hands.cancel(id);
    });
    let ends = [Status::Cancelled, Status::Interrupted];
    assert!(ends.contains(&outcome.status), "{outcome:?}");
    assert_eq!(bash(&hands, "cat a.txt").await.content, "hello\n");
    assert_eq!(those(&word), []);
    hands.close().await;
}

/// A tool that stops the process it runs in gains nothing: that goes on, and counts.
#[tokio::test]
async fn a_tool_that_stops_hands_is_counted_all_the_same() {
    let area = Area::new();
    let Some(hands) = frugal(&area, By::Landlock).await else {
        return;
    };
    let stopped = bash(&hands, "kill -STOP $PPID; echo on").await;
    assert_eq!(stopped.content, "on\n");
    let word = word(3);
    let outcome = bash(&hands, &format!("kill -STOP $PPID; {}", bomb(&word))).await;
    assert!(outcome.content.ends_with(PROCESSES), "{outcome:?}");
    assert_eq!(bash(&hands, "cat a.txt").await.content, "hello\n");
    assert_eq!(those(&word), []);
    assert_eq!(hands.remarks(), [""; 0]);
    hands.close().await;
}

/// Hands that cannot go on are ended when somebody waits for them, and the next call has others.
#[tokio::test]
async fn hands_that_do_not_answer_are_ended() {
    let area = Area::new();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let word = word(5);
    let call = order("Bash", &json!({"command": format!("sleep 600.{word}")}));
    let id = call.call;
    let (outcome, ()) = tokio::join!(hands.run(call), async {
        let first = loop {
            let tool = those(&word).first().copied();
            if let Some(first) = tool.and_then(|tool| above(tool, "inside")) {
                break first;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        kill_process(first, Signal::STOP).unwrap();
        hands.cancel(id);
    });
    assert_eq!(outcome.status, Status::Interrupted, "{outcome:?}");
    assert_eq!(bash(&hands, "cat a.txt").await.content, "hello\n");
    assert_eq!(those(&word), []);
    hands.close().await;
}
