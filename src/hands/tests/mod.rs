//! Orders from end to end, with real processes in a temporary workspace.

mod external;
mod jobs;

use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::oneshot::error::TryRecvError;

use super::*;
use crate::exchange::Facts;
use crate::id::EntryId;

/// A workspace with hands in it.
struct Bench {
    place: TempDir,
    hands: Hands,
    cwd: Option<String>,
}

impl Bench {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("sub")).unwrap();
        let path = std::env::split_paths("/usr/local/bin:/usr/bin:/bin");
        let environment = vec![
            ("PATH".into(), std::env::join_paths(path).unwrap()),
            ("GIVEN".into(), "yes".into()),
        ];
        let workspace = Workspace::open(place.path(), None, environment).unwrap();
        Self {
            hands: Hands::in_process(workspace),
            place,
            cwd: None,
        }
    }

    fn root(&self) -> String {
        self.place
            .path()
            .canonicalize()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn order(&self, place: u32, command: &str, timeout_ms: u64) -> Order {
        let arguments = serde_json::json!({"command": command, "timeout_ms": timeout_ms});
        Order {
            call: CallId::new(EntryId(41), place),
            tool: "Bash".into(),
            arguments: arguments.to_string(),
            cwd: self.cwd.clone(),
            known: None,
            chars: 2000,
            timeout_ms: None,
        }
    }

    async fn bash(&self, command: &str) -> Outcome {
        self.hands.run(self.order(2, command, 120_000)).await
    }

    /// Whether a process runs that has this word among its arguments.
    fn runs(word: &str) -> bool {
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines
            .filter(|line| {
                line.split(|byte| *byte == 0)
                    .any(|part| part == word.as_bytes())
            })
            .count()
            > 0
    }
}

/// What comes of a call that ends by its limit, and how it says so. A limit that passes before this was
/// printed, since the machine is busy, is doubled.
async fn past_its_limit(
    hands: &Hands,
    order: impl Fn(u64) -> Order,
    said: &str,
) -> (Outcome, String) {
    let mut limit = 300;
    loop {
        let outcome = hands.run(order(limit)).await;
        assert_eq!(outcome.status, Status::Timeout, "{outcome:?}");
        if outcome.content.contains(said) {
            let end = format!(
                "[ended after {} ms, the limit of this call; what it did until then may have taken \
                 effect]",
                crate::words::grouped(limit)
            );
            return (outcome, end);
        }
        limit *= 2;
    }
}

#[tokio::test]
async fn a_command_is_answered_with_what_it_printed_and_how_it_ended() {
    let bench = Bench::new();
    for (command, status, exit, expected) in [
        (
            "echo one; echo two >&2; echo three",
            Status::Ok,
            Some(0),
            "one\ntwo\nthree\n",
        ),
        ("true", Status::Ok, Some(0), "[no output]"),
        ("printf x; exit 3", Status::Error, Some(3), "x\n[exit 3]"),
        ("exit 255", Status::Error, Some(255), "[exit 255]"),
        (
            "echo a; kill -9 $$",
            Status::Error,
            Some(137),
            "a\n[ended by signal 9]",
        ),
        // There is nothing to read, and no terminal.
        ("readlink /proc/$$/fd/0", Status::Ok, Some(0), "/dev/null\n"),
        ("cat; echo $?", Status::Ok, Some(0), "0\n"),
        // An interpreter, a search without a path, a question.
        (
            "sh; grep x; echo $?; read -p '? ' answer; echo $?",
            Status::Ok,
            Some(0),
            "1\n1\n",
        ),
        (
            "[ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && echo a session of its own",
            Status::Ok,
            Some(0),
            "a session of its own\n",
        ),
        (
            "(: </dev/tty) 2>/dev/null && echo tty || echo none",
            Status::Ok,
            Some(0),
            "none\n",
        ),
        ("printf 'a\\0b\\377'", Status::Ok, Some(0), "a\\0b\u{fffd}"),
        // The shell that keeps the directory is not to be noticed.
        ("set -x; true", Status::Ok, Some(0), "+ true\n"),
        ("trap 'echo mine' EXIT", Status::Ok, Some(0), "mine\n"),
        (
            "set -eu; false; echo not",
            Status::Error,
            Some(1),
            "[exit 1]",
        ),
        ("cat <<'END'\n'$x'\nEND", Status::Ok, Some(0), "'$x'\n"),
        ("# nothing", Status::Ok, Some(0), "[no output]"),
        (
            "env | cut -d= -f1 | sort | tr '\\n' ' '",
            Status::Ok,
            Some(0),
            "GIVEN PATH PWD SHLVL TERM UNDERTEXT_CALL _ ",
        ),
        (
            "echo 'ends in a comment' # like this",
            Status::Ok,
            Some(0),
            "ends in a comment\n",
        ),
    ] {
        let outcome = bench.bash(command).await;
        assert_eq!(
            (outcome.status, outcome.facts.exit),
            (status, exit),
            "{command}: {outcome:?}"
        );
        assert_eq!(outcome.content, expected, "{command}");
    }
    let outcome = bench.bash("echo )").await;
    assert!(
        outcome.content.contains("line 1: syntax error"),
        "{outcome:?}"
    );
    assert_eq!(outcome.facts.exit, Some(2));
}

#[tokio::test]
async fn the_working_directory_is_kept_while_it_is_below_the_root() {
    let mut bench = Bench::new();
    let root = bench.root();
    let sub = format!("{root}/sub");
    for (command, content, cwd) in [
        ("cd sub", "[no output]", &sub),
        ("pwd", &format!("{sub}\n"), &sub),
        (
            "mv ../sub ../renamed",
            "[no output]",
            &format!("{root}/renamed"),
        ),
        ("mv ../renamed ../sub", "[no output]", &sub),
        ("(cd /; exit 1)", "[exit 1]", &sub),
        ("trap : EXIT; cd /", "[no output]", &sub),
        (
            "cd /; echo x; exit 4",
            "x\n[exit 4]\n[the working directory is the workspace again]",
            &root,
        ),
        (
            "mkdir gone && cd gone",
            "[no output]",
            &format!("{root}/gone"),
        ),
        (
            "rmdir ../gone; pwd",
            &format!("{root}/gone\n"),
            &format!("{root}/gone"),
        ),
        ("pwd", &format!("{root}\n"), &root),
        ("cd sub; exec true", "[no output]", &root),
    ] {
        let outcome = bench.bash(command).await;
        assert_eq!(outcome.content, content, "{command}");
        assert_eq!(outcome.facts.cwd.as_ref(), Some(cwd), "{command}");
        bench.cwd = outcome.facts.cwd;
    }
}

/// A call that the process never got when it died is not told as lost: the next one gets it.
#[test]
fn what_was_handed_to_nobody_is_not_lost() {
    let mut waiting = Waiting::default();
    let mut wait = |call: &str| {
        let (waits, told) = tokio::sync::oneshot::channel();
        let call: CallId = call.parse().unwrap();
        waiting.calls.insert(call, waits);
        waiting.unsent.insert(call);
        (call, told)
    };
    let (sent, mut lost) = wait("41.1");
    let (unsent, mut kept) = wait("41.2");
    waiting.unsent.remove(&sent);
    waiting.lose();
    assert!(
        lost.try_recv()
            .is_err_and(|error| error == TryRecvError::Closed)
    );
    assert!(
        kept.try_recv()
            .is_err_and(|error| error == TryRecvError::Empty)
    );
    waiting
        .take(unsent)
        .unwrap()
        .send(Outcome::ok("x"))
        .unwrap();
    assert_eq!(kept.try_recv().unwrap().content, "x");
    waiting.lose();
    assert!(waiting.calls.is_empty() && waiting.unsent.is_empty());
}

/// Nothing need be asked of a shell that stays where it began: it becomes what it runs last.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_plain_command_takes_the_place_of_its_shell() {
    let bench = Bench::new();
    let own = format!("PPid:\t{}\n", std::process::id());
    let outcome = bench.bash("grep PPid /proc/self/status").await;
    assert_eq!(outcome.content, own);
    let outcome = bench.bash("cd . && grep PPid /proc/self/status").await;
    assert_ne!(outcome.content, own);
}

#[tokio::test]
async fn a_flood_is_bounded_and_counted() {
    let bench = Bench::new();
    let outcome = bench
        .bash("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end")
        .await;
    assert_eq!(outcome.bytes, 50_000_005);
    assert_eq!(outcome.whole, None);
    assert!(
        outcome.content.chars().count() <= 2000,
        "{}",
        outcome.content.len()
    );
    assert!(outcome.content.ends_with("x\nend\n"));
    assert!(
        outcome
            .content
            .contains(" bytes left out; they were not kept …]\n")
    );

    let outcome = bench.bash("seq 10000; exit 1").await;
    let whole = String::from_utf8(outcome.whole.unwrap()).unwrap();
    assert!(whole.starts_with("1\n2\n3\n") && whole.ends_with("9999\n10000\n[exit 1]"));
    assert_eq!(outcome.bytes, whole.len() as u64);
    assert!(
        outcome
            .content
            .contains(" characters left out; Recall 41.2 shows all …]\n")
    );
    assert!(outcome.content.ends_with("10000\n[exit 1]"));
}

#[tokio::test]
async fn no_process_is_left_when_a_call_ends() {
    let bench = Bench::new();
    for (number, (command, status)) in [
        // It keeps the pipe.
        ("sleep @ & echo started", Status::Ok),
        ("setsid sleep @ & echo started", Status::Ok),
        (
            "(setsid sleep @ >/dev/null 2>&1 &) ; echo started",
            Status::Ok,
        ),
        (
            "echo started; trap '' TERM; sleep @ & while :; do wait; done",
            Status::Timeout,
        ),
        (
            "echo started; (trap '' TERM; exec setsid sleep @) & wait",
            Status::Timeout,
        ),
        (
            "echo started; mkfifo fifo 2>/dev/null; sleep @ & cat fifo",
            Status::Timeout,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        // A duration that nothing else on the machine sleeps for.
        let word = format!("{}.{number}", 100_000 + std::process::id());
        let command = command.replace('@', &word);
        let order = |limit| bench.order(1, &command, limit);
        let (outcome, end) = if status == Status::Timeout {
            past_its_limit(&bench.hands, order, "started\n").await
        } else {
            let outcome = bench.hands.run(order(120_000)).await;
            (outcome, String::new())
        };
        assert_eq!(outcome.status, status, "{command}: {outcome:?}");
        // The call ends long before what it left behind would.
        assert_eq!(outcome.content, format!("started\n{end}"), "{command}");
        assert!(!Bench::runs(&word), "{command}");
    }
}

/// Where nothing is confined, file tools still act in the workspace alone, which is no dead end.
#[tokio::test]
async fn a_path_outside_is_refused_with_a_way_on() {
    let bench = Bench::new();
    for (tool, arguments) in [
        ("Read", r#"{"path": "/etc/hostname"}"#),
        ("Grep", r#"{"pattern": "x", "path": "/etc"}"#),
        ("Glob", r#"{"pattern": "/etc/*"}"#),
    ] {
        let order = Order {
            tool: tool.into(),
            arguments: arguments.into(),
            ..bench.order(1, "", 1)
        };
        let outcome = bench.hands.run(order).await;
        assert_eq!(outcome.status, Status::Denied, "{tool}: {outcome:?}");
        let end = "file tools act only below it\n[commands reach it; the user lets file tools act there \
                   by running in a directory that holds it (-C)]";
        assert!(outcome.content.ends_with(end), "{tool}: {outcome:?}");
    }
}

/// Waits until a process with this word runs, or until none does.
async fn until(runs: bool, word: &str) {
    let settled = async {
        while Bench::runs(word) != runs {
            tokio::task::yield_now().await;
        }
    };
    let settled = tokio::time::timeout(Duration::from_secs(120), settled).await;
    settled.expect("it begins, and ends, long before its own time is up");
}

#[tokio::test]
async fn a_call_that_is_given_up_or_cancelled_ends() {
    let bench = Bench::new();
    let word = format!("{}.5", 200_000 + std::process::id());
    let command = format!("echo begun; setsid sleep {word} & wait");

    let cancelled = bench.hands.run(bench.order(1, &command, 120_000));
    let cancel = async {
        until(true, &word).await;
        bench.hands.cancel(CallId::new(EntryId(41), 1));
    };
    let (outcome, ()) = tokio::join!(cancelled, cancel);
    assert_eq!(outcome.status, Status::Cancelled);
    assert_eq!(
        outcome.content,
        "begun\n[cancelled; what it did until then may have taken effect]"
    );
    assert!(!Bench::runs(&word));

    tokio::select! {
        _ = bench.hands.run(bench.order(1, &command, 120_000)) => panic!("it waits"),
        () = until(true, &word) => {}
    }
    until(false, &word).await;

    // Given up and closed at once: gone when the hands are.
    tokio::select! {
        _ = bench.hands.run(bench.order(2, &command, 120_000)) => panic!("it waits"),
        () = until(true, &word) => {}
    }
    let Bench { hands, .. } = bench;
    hands.close().await;
    assert!(!Bench::runs(&word));
}

#[tokio::test]
async fn a_brain_that_is_gone_takes_its_processes_along() {
    let bench = Bench::new();
    let word = format!("{}.7", 400_000 + std::process::id());
    let order = bench.order(1, &format!("setsid sleep {word} & wait"), 120_000);
    let workspace = Workspace::open(bench.place.path(), None, Vec::new()).unwrap();
    let (ask, asked) = mpsc::unbounded_channel();
    let (answer, _answers) = mpsc::unbounded_channel();
    let bench = serve::Bench::new(workspace, Vec::new());
    let serving = tokio::spawn(serve::serve(bench, asked, answer));
    ask.send(Ask::Order(order)).unwrap();
    until(true, &word).await;
    drop(ask);
    let served = tokio::time::timeout(Duration::from_secs(120), serving).await;
    served.expect("it does not wait for the command").unwrap();
    assert!(!Bench::runs(&word));
}

#[test]
fn a_runtime_that_ends_takes_its_processes_along() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let word = format!("{}.6", 300_000 + std::process::id());
    let bench = runtime.block_on(async {
        let bench = Bench::new();
        let order = bench.order(1, &format!("setsid sleep {word} & wait"), 120_000);
        tokio::select! {
            _ = bench.hands.run(order) => panic!("it waits"),
            () = until(true, &word) => {}
        }
        bench
    });
    assert!(Bench::runs(&word));
    drop(runtime);
    assert!(!Bench::runs(&word));
    drop(bench);
}

#[tokio::test]
async fn a_call_runs_once_at_a_time_and_an_unknown_tool_is_an_error() {
    let bench = Bench::new();
    let (first, second) = tokio::join!(
        bench.hands.run(bench.order(1, "echo once", 120_000)),
        bench.hands.run(bench.order(1, "echo twice", 120_000)),
    );
    assert_eq!(
        (first.content.as_str(), second.status),
        ("once\n", Status::Error)
    );
    let order = Order {
        tool: "Fly".into(),
        ..bench.order(1, "", 1)
    };
    assert_eq!(
        bench.hands.run(order).await,
        Outcome::error("There is no tool Fly here.")
    );
}

#[test]
fn messages_pass_as_json() {
    let order = Order {
        call: CallId::new(EntryId(41), 2),
        tool: "Read".into(),
        arguments: r#"{"path":"a"}"#.into(),
        cwd: Some("/w".into()),
        known: Some(Digest::of(b"")),
        chars: 100,
        timeout_ms: Some(1),
    };
    let text = serde_json::to_string(&Ask::Order(order.clone())).unwrap();
    let Ask::Order(again) = serde_json::from_str(&text).unwrap() else {
        panic!("an order stays one");
    };
    assert_eq!(again, order);

    let outcome = Outcome::ok("x".repeat(300))
        .clipped(100, order.call)
        .with_facts(Facts {
            exit: Some(1),
            ..Facts::default()
        });
    let text = serde_json::to_string(&Answer::Done {
        call: order.call,
        outcome: Box::new(outcome.clone()),
    });
    let Answer::Done { outcome: again, .. } = serde_json::from_str(&text.unwrap()).unwrap() else {
        panic!("an answer stays one");
    };
    assert_eq!(*again, outcome);
}

#[test]
fn a_path_is_found_in_arguments_of_file_tools() {
    for (tool, arguments, expected) in [
        ("Read", r#"{"path":"a"}"#, Some("a")),
        ("Edit", r#""{\"path\":\"a\"}""#, Some("a")),
        ("Bash", r#"{"path":"a"}"#, None),
        ("Write", r#"{"path":1}"#, None),
        ("Write", "", None),
    ] {
        assert_eq!(
            path_argument(tool, arguments).as_deref(),
            expected,
            "{tool} {arguments}"
        );
    }
}
