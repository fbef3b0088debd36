//! Nothing that a terminal would obey comes out.

use std::fs;

use crate::cli::secrets::SAYING;
use crate::cli::{Place, says};
use crate::provider::{Answer, Provider};

/// What moves a cursor or turns the direction of writing.
fn odd(bytes: &str) -> Option<char> {
    let is_odd = |c: &char| match *c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    };
    bytes.chars().find(is_odd)
}

/// A text with everything in it that a terminal obeys.
const EVIL: &str = "e\u{1b}]0;t\u{7}\u{9b}2J\u{202e}\u{200b}\u{7f}\rv";

/// Commands that are wrong because of it.
const WRONG: [&[&str]; 18] = [
    &["show", EVIL],
    &[EVIL],
    &["run", EVIL, EVIL],
    &["show", "--nothing\u{1b}[2J"],
    &["run", "-C", EVIL, "x"],
    &["run", "--base-url", EVIL, "-m", "m", "x"],
    &["run", "--config", EVIL, "x"],
    &["run", "--set", EVIL, "x"],
    &[
        "run",
        "--attach",
        EVIL,
        "--base-url",
        "http://127.0.0.1:1",
        "-m",
        EVIL,
        "--set",
        "model.retries.attempts=1",
        "x",
    ],
    &["tools", EVIL],
    &["import", EVIL],
    &["why", EVIL],
    &["replay", "--at", EVIL],
    &["compact", "--rule", EVIL],
    &[
        "doctor",
        "--base-url",
        "http://127.0.0.1:1/\u{1b}",
        "-m",
        EVIL,
    ],
    &["page", "--out", "/\u{1b}/x"],
    &["config", "check", "--set", EVIL],
    &["rm", EVIL],
];

#[test]
fn nothing_that_a_terminal_would_obey_comes_out() {
    let place = Place::new();
    let work = place.path("home").join(EVIL);
    fs::create_dir_all(&work).unwrap();
    fs::write(work.join(EVIL), format!("text {EVIL}\n")).unwrap();
    let tools = place.path("home/.config/undertext/tools");
    fs::create_dir_all(&tools).unwrap();
    let escaped = |c: char| format!("\\u{:04x}", u32::from(c));
    let described: String = EVIL.chars().map(escaped).collect();
    let tool = format!(
        "name: Odd\ndescription: \"{described}\"\nmeta: {{ effect: reads }}\ncommand: ls\n"
    );
    fs::write(tools.join("Odd.yaml"), tool).unwrap();
    let provider = Provider::new([
        Answer::Calls(vec![
            (
                "Bash",
                r#"{"command":"cat e*; ls; printf '\\033[2J\\007'; exit 3"}"#,
            ),
            ("Glob", r#"{"pattern":"*"}"#),
            ("e\u{1b}[31m\u{202e}", r#"{"path":"\u001b[2J\u202e"}"#),
        ]),
        says(EVIL),
    ]);
    let run = |line: &[&str]| {
        let mut command = place.command(line);
        command.current_dir(&work).env("MODEL", EVIL);
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        for (name, bytes) in [("output", &output.stdout), ("remarks", &output.stderr)] {
            let text = String::from_utf8(bytes.clone()).unwrap();
            assert_eq!(odd(&text), None, "{name} of {line:?}: {text:?}");
        }
        output.status.code()
    };
    let name = format!("name {EVIL}");
    let code = run(&[
        "run",
        "-vv",
        "-m",
        EVIL,
        "--base-url",
        &provider.url,
        "--name",
        &name,
        "--append-instructions",
        EVIL,
        "--output-last-message",
        "said",
        "--diff",
        "patch",
        "--check",
        "echo \u{202e}; exit 0",
        EVIL,
    ]);
    assert_eq!(code, Some(0));
    for line in SAYING {
        run(&line.split(' ').collect::<Vec<_>>());
    }
    for line in WRONG {
        run(line);
    }
}
