//! What recordings, and files that are none, are found out to be.

use std::fmt::Write as _;
use std::io::{self, Read};

use crate::import::told::told;
use crate::import::{Format, read_bytes, read_from};
use crate::transcript::At;

/// The shortest recording of each format that comes in one file.
const RECORDINGS: [(Format, &str, &str); 11] = [
    (
        Format::ClaudeCode,
        "a.jsonl",
        r#"{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"Go."}}
{"type":"assistant","uuid":"a","parentUuid":"u","message":{"id":"m","content":[{"type":"text","text":"Gone."}]}}"#,
    ),
    (
        Format::Codex,
        "a.jsonl",
        r#"{"type":"session_meta","payload":{"id":"s"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Go."}]}}"#,
    ),
    (
        Format::Pi,
        "a.jsonl",
        r#"{"type":"session","id":"s","cwd":"/w"}
{"type":"message","message":{"role":"user","content":"Go."}}"#,
    ),
    (
        Format::MiniSweAgent,
        "a.traj.json",
        r#"{"info":{},"messages":[{"role":"user","content":"Go."}]}"#,
    ),
    (
        Format::SweAgent,
        "a.traj",
        r#"{"environment":"e","trajectory":[],"history":[{"role":"user","content":"Go."}]}"#,
    ),
    (
        Format::OpenHands,
        "a.json",
        r#"[{"id":0,"source":"user","action":"message","args":{"content":"Go."}}]"#,
    ),
    (
        Format::OpenHandsSdk,
        "a.json",
        r#"[{"id":"e","kind":"MessageEvent","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"Go."}]}}]"#,
    ),
    (
        Format::Atif,
        "a.json",
        r#"{"schema_version":"ATIF-v1.4","agent":{},"steps":[{"step_id":1,"source":"user","message":"Go."}]}"#,
    ),
    (
        Format::GeminiCli,
        "a.json",
        r#"{"sessionId":"s","projectHash":"h","messages":[{"id":"m","type":"user","content":"Go."}]}"#,
    ),
    (
        Format::CopilotCli,
        "a.jsonl",
        r#"{"type":"user.message","data":{"content":"Go."},"id":"e","parentId":null}"#,
    ),
    (
        Format::Inspect,
        "a.json",
        r#"{"eval":{},"status":"success","samples":[{"id":1,"messages":[{"role":"user","source":"input","content":"Go."}]}]}"#,
    ),
];

const AIDER: &str = "# aider chat started at 2024-05-01 10:00:00\n\n#### Go.\n\nGone.\n";

fn recordings() -> Vec<(Format, &'static str, &'static str)> {
    let mut all = RECORDINGS.to_vec();
    all.push((Format::Aider, ".aider.chat.history.md", AIDER));
    all
}

#[test]
fn a_recording_named_as_another_says_what_it_is() {
    assert_eq!(recordings().len(), Format::ALL.len());
    for (format, name, text) in recordings() {
        for wanted in Format::ALL {
            let read = read_bytes(name, text.into(), Some(wanted));
            if wanted == format {
                let runs = read.unwrap();
                assert_eq!((runs.len(), runs[0].format()), (1, format));
                continue;
            }
            let said = read.unwrap_err().to_string();
            assert_eq!(
                said,
                format!("{name} looks like {format}, not like {wanted}")
            );
        }
    }
}

/// A reader that gives one byte at a time, as a slow pipe does.
struct Slow(&'static [u8]);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(1);
        self.0.read(&mut buffer[..most])
    }
}

#[test]
fn what_comes_through_a_pipe_needs_no_name() {
    for (format, name, text) in recordings() {
        let at = At(1_700_000_000_000);
        let piped = read_from("-", Box::new(Slow(text.as_bytes())), at, None);
        let piped = piped.unwrap_or_else(|error| panic!("{format}: {error}"));
        let file = read_bytes(name, text.into(), None).unwrap();
        assert_eq!(piped[0].import().sha256, file[0].import().sha256);
        assert_eq!(piped[0].began(), file[0].began().or(Some(at)), "{format}");
        assert_eq!(told("-", text), told(name, text), "{format}");
    }
}

#[test]
fn what_is_no_recording_says_what_it_looks_like() {
    let mut tar = [b'a'; 512];
    tar[257..262].copy_from_slice(b"ustar");
    let event = r#"{"id":"e","kind":"MessageEvent","source":"user"}"#;
    let ours = r#"{"id":1,"at":"x","type":"run","format":1,"run":"x"}"#;
    let empty = r#"{"type":"session","id":"s","cwd":"/w"}"#;
    let cut = r#"{"schema_version":"ATIF-v1.7","steps":[{"#;
    let messages = "{\"role\":\"user\",\"content\":\"Go.\"}\n".repeat(2);
    let mut said = String::new();
    for (name, bytes, wanted) in [
        ("a.jsonl", &b""[..], None),
        ("a.jsonl", b"", Some(Format::Pi)),
        ("a.png", b"\x89PNG\r\n\x1a\n", None),
        ("a.png", b"\x89PNG\r\n\x1a\n", Some(Format::Aider)),
        ("a.jsonl.gz", b"\x1f\x8b\x08", Some(Format::Codex)),
        ("a.jsonl.zst", b"\x28\xb5\x2f\xfd", None),
        ("a.zip", b"PK\x03\x04", None),
        ("a.tar", &tar, None),
        ("state.vscdb", b"SQLite format 3\0", None),
        ("a.txt", b"\xff\xfe{\0", None),
        ("a.bin", b"{\0", None),
        ("a.txt", b"hello", None),
        ("a.txt", b"hello", Some(Format::Pi)),
        ("a.txt", b"hello", Some(Format::Atif)),
        ("a.jsonl", b"{\"b\":1,\"a\":2}\n", None),
        ("a.jsonl", b"{\"b\":1,\"a\":2}\n", Some(Format::ClaudeCode)),
        ("a.jsonl", empty.as_bytes(), None),
        ("a.jsonl", ours.as_bytes(), None),
        ("a.jsonl", ours.as_bytes(), Some(Format::Codex)),
        ("event-00000-e.json", event.as_bytes(), None),
        ("a.json", b"[]", None),
        ("a.json", b"[]", Some(Format::Atif)),
        ("a.json", b"\"x\"", None),
        ("a.json", b"\n \n", None),
        ("a.json", b"{\"a\":[{\"b\":", None),
        ("a.json", cut.as_bytes(), None),
        ("messages.jsonl", messages.as_bytes(), None),
        (
            "messages.jsonl",
            messages.as_bytes(),
            Some(Format::MiniSweAgent),
        ),
    ] {
        let error = read_bytes(name, bytes.into(), wanted).unwrap_err();
        writeln!(said, "{error}").unwrap();
    }
    insta::assert_snapshot!(said, @"
    a.jsonl is no recording: it is empty
    a.jsonl is no recording: it is empty
    a.png is no recording: it is a PNG image
    a.png is no recording: it is a PNG image
    a.jsonl.gz is no recording: it is compressed with gzip: unpack it first
    a.jsonl.zst is no recording: it is compressed with zstd: unpack it first
    a.zip is no recording: it is a zip archive: unpack it first
    a.tar is no recording: it is a tar archive: unpack it first
    state.vscdb is no recording: it is an SQLite database
    a.txt is no recording: it is UTF-16 text: UTF-8 is read
    a.bin is no recording: it is binary
    a.txt is of no known agent: it is neither JSON nor a chat history of aider
    a.txt holds no run: no message of a pi run is in it; it is neither JSON nor a chat history of aider
    cannot understand a.txt as atif: it is not one JSON value: expected value at line 1 column 1
    a.jsonl is of no known agent: its first object has the members a, b
    a.jsonl holds no run: no message of a claude-code run is in it; its first object has the members a, b
    a.jsonl holds no run: no message of a pi run is in it
    a.jsonl is a transcript already: every command takes its path, nothing is to be imported
    a.jsonl is a transcript already: every command takes its path, nothing is to be imported
    event-00000-e.json is of no known agent: it is one event of an openhands-sdk run: the directory that holds it is one
    a.json is no recording: it is an empty list
    a.json is no recording: it is an empty list
    a.json is no recording: it is JSON, but neither an object nor a list
    a.json is no recording: there is nothing in it but white space
    a.json is of no known agent: its first object has the members a, and its JSON is cut off
    cannot understand a.json as atif: its JSON is cut off: it ends within a value, at line 1, column 40
    messages.jsonl is of no known agent: it holds a message a line, and does not say whose
    cannot understand messages.jsonl as mini-swe-agent: it is not one JSON value: trailing characters at line 2 column 1
    ");
}

/// What stands first may be longer than what is looked at.
#[test]
fn a_long_beginning_does_not_hide_the_format() {
    let long = "x".repeat(2 << 20);
    let run = |content: &str| {
        format!(
            r#"{{"history":[{{"role":"user","content":"{content}"}},{{"role":"assistant","content":"No."}}]}}"#
        )
    };
    let recording = format!(r#"{{"attempts":[{},{}]}}"#, run(&long), run("Again."));
    for name in ["a.traj", "-"] {
        let told = told(name, &recording);
        assert!(
            told.ends_with("Task \"Again.\"\nComplete \"No.\"\n"),
            "{name}"
        );
    }
}

/// A line is not lost for half a character.
#[test]
fn half_a_character_costs_no_line() {
    let [_, (.., codex), ..] = RECORDINGS;
    let whole = told("a.jsonl", codex);
    let cut = told("a.jsonl", &codex.replace("Go.", r"Go\ud83d."));
    assert_eq!(cut, whole.replace("Go.", "Go\u{fffd}."));
}
