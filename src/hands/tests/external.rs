//! External tools: programs that behave, and programs that do not.

use super::*;
use crate::exchange::ToolMeta;
use crate::tools::external::Command;

/// Hands that know one tool, which this answers.
fn hands(bench: &Bench, command: Command) -> Hands {
    let tool = External::new("Own", "Does it.", None, ToolMeta::default(), command).unwrap();
    let path = ("PATH".into(), "/usr/bin:/bin".into());
    let workspace = Workspace::open(bench.place.path(), None, vec![path]).unwrap();
    Hands::in_process_with(workspace, vec![tool])
}

fn order(bench: &Bench, arguments: &str) -> Order {
    Order {
        tool: "Own".into(),
        arguments: arguments.into(),
        // However long a busy machine takes: nothing here is meant to come near it.
        timeout_ms: Some(600_000),
        ..bench.order(1, "", 1)
    }
}

async fn check(command: &str, status: Status, exit: Option<i32>, expected: &str) {
    let bench = Bench::new();
    let hands = hands(&bench, Command::Shell(command.to_owned()));
    let outcome = hands.run(order(&bench, r#"{"a": 1}"#)).await;
    let found = (outcome.status, outcome.facts.exit, outcome.content.as_str());
    assert_eq!(found, (status, exit, expected), "{command}");
}

#[tokio::test]
async fn a_program_answers_in_text_or_json() {
    for (command, status, exit, expected) in [
        ("cat", Status::Ok, Some(0), "{\"a\": 1}\n"),
        ("pwd >&2; echo $TERM", Status::Ok, Some(0), "dumb\n"),
        ("true", Status::Ok, Some(0), "[no output]"),
        (
            r#"echo ' {"content": "one\ntwo", "status": "ok"}'"#,
            Status::Ok,
            Some(0),
            "one\ntwo",
        ),
        (
            r#"echo '{"content": [1, 2]}'"#,
            Status::Ok,
            Some(0),
            "[1,2]",
        ),
        (
            r#"echo '{"content": "no such place", "status": "error"}'"#,
            Status::Error,
            Some(0),
            "no such place",
        ),
        // What holds more than an answer is none: nothing of it is lost.
        (
            r#"echo '{"content": "x", "path": "a"}'"#,
            Status::Ok,
            Some(0),
            "{\"content\": \"x\", \"path\": \"a\"}\n",
        ),
        (
            r#"echo '{"content": "x", "status": "open"}'"#,
            Status::Ok,
            Some(0),
            "{\"content\": \"x\", \"status\": \"open\"}\n",
        ),
        (
            r#"echo '{"content": "a\u0000b"}'"#,
            Status::Ok,
            Some(0),
            "a\\0b",
        ),
        (
            r#"echo '{"contents": 1}'"#,
            Status::Ok,
            Some(0),
            "{\"contents\": 1}\n",
        ),
        (
            r#"echo '{"content": '"#,
            Status::Ok,
            Some(0),
            "{\"content\": \n",
        ),
        (
            "echo out; echo why >&2; exit 3",
            Status::Error,
            Some(3),
            "out\n[standard error]\nwhy\n[exit 3]",
        ),
        (
            r#"echo '{"content": "half"}'; exit 1"#,
            Status::Error,
            Some(1),
            "half\n[exit 1]",
        ),
        (
            "head -c 5000 /dev/zero",
            Status::Error,
            Some(0),
            "[the tool printed 5,000 bytes that are no text]",
        ),
        (
            "no-such-program-here 2>/dev/null",
            Status::Error,
            Some(127),
            "[exit 127]",
        ),
    ] {
        check(command, status, exit, expected).await;
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let bench = Bench::new();
    for name in ["no-such-program", "./none", "/none", "."] {
        let hands = hands(&bench, Command::Program(vec![name.to_owned()]));
        let outcome = hands.run(order(&bench, "{}")).await;
        let said = format!("The program of Own is not there: `{name}`. Nothing ran.");
        assert_eq!(outcome, Outcome::error(said));
    }
    let words = ["printf", "%s.", "one", "two three"].map(str::to_owned);
    let hands = hands(&bench, Command::Program(words.into()));
    assert_eq!(
        hands.run(order(&bench, "{}")).await.content,
        "one.two three."
    );
}

#[tokio::test]
async fn a_program_cannot_hang_flood_or_stay() {
    let bench = Bench::new();
    let word = format!("{}.1", 600_000 + std::process::id());
    let command = format!("echo begun; echo why >&2; setsid sleep {word} & wait");
    let hanging = hands(&bench, Command::Shell(command));
    let limited = |limit| Order {
        timeout_ms: Some(limit),
        ..order(&bench, "{}")
    };
    let (outcome, end) = past_its_limit(&hanging, limited, "why").await;
    let said = format!("begun\n[standard error]\nwhy\n{end}");
    assert_eq!(outcome.content, said);
    assert!(!Bench::runs(&word));

    let staying = hands(&bench, Command::Shell(format!("setsid sleep {word} &")));
    assert_eq!(staying.run(order(&bench, "{}")).await.status, Status::Ok);
    assert!(!Bench::runs(&word));

    let flood = "head -c 50000000 /dev/zero | tr '\\0' x | tee /dev/stderr; exit 1";
    let flooding = hands(&bench, Command::Shell(flood.to_owned()));
    let outcome = flooding.run(order(&bench, "{}")).await;
    assert_eq!((outcome.bytes, outcome.whole), (50_000_000, None));
    assert!(outcome.content.ends_with("x\n[exit 1]"));
    assert!(outcome.content.chars().count() < 8000);

    // It is not waited for a program that does not read.
    let deaf = hands(&bench, Command::Shell("echo done".to_owned()));
    let large = format!(r#"{{"a": "{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(deaf.run(order(&bench, &large)).await.content, "done\n");
    let counting = hands(&bench, Command::Shell("wc -c".to_owned()));
    let counted = counting.run(order(&bench, &large)).await.content;
    assert_eq!(counted.trim(), (large.len() + 1).to_string());
}
