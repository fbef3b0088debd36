//! What a recording looks like: its format, found out from its name and its beginning.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::de::IgnoredAny;

use crate::import::members::{Members, objects};
use crate::import::signature;

/// How much of the beginning is looked at, in bytes.
pub(super) const HEAD: usize = 1 << 20;

/// The format of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// A session of Claude Code.
    ClaudeCode,
    /// A rollout of Codex.
    Codex,
    /// A session of pi.
    Pi,
    /// A trajectory of mini-SWE-agent.
    MiniSweAgent,
    /// A trajectory of SWE-agent.
    SweAgent,
    /// The output of an evaluation with `OpenHands`.
    OpenHands,
    /// A directory of events of the `OpenHands` SDK.
    OpenHandsSdk,
    /// The Agent Trajectory Interchange Format.
    Atif,
    /// A session of Gemini CLI.
    GeminiCli,
    /// The events of a session of Copilot CLI.
    CopilotCli,
    /// A log of inspect.
    Inspect,
    /// A chat history of aider.
    Aider,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 12] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Pi,
        Self::MiniSweAgent,
        Self::SweAgent,
        Self::OpenHands,
        Self::OpenHandsSdk,
        Self::Atif,
        Self::GeminiCli,
        Self::CopilotCli,
        Self::Inspect,
        Self::Aider,
    ];

    /// The word by which it is named, and which a transcript records.
    pub fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Pi => "pi",
            Self::MiniSweAgent => "mini-swe-agent",
            Self::SweAgent => "swe-agent",
            Self::OpenHands => "openhands",
            Self::OpenHandsSdk => "openhands-sdk",
            Self::Atif => "atif",
            Self::GeminiCli => "gemini-cli",
            Self::CopilotCli => "copilot-cli",
            Self::Inspect => "inspect",
            Self::Aider => "aider",
        }
    }

    /// The words of all formats, for people.
    pub fn names() -> String {
        Self::ALL.map(Self::word).join(", ")
    }

    /// The format that a file of this name with this beginning looks like; `None` if it looks like
    /// none, or like a transcript of ours.
    pub fn detect(name: &str, beginning: &[u8]) -> Option<Self> {
        match head(name, beginning) {
            Found::Format(format) => Some(format),
            Found::Transcript | Found::Unknown(_) | Found::Nothing(_) => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no format is called `{word}`; known formats: {}", Format::names())]
pub struct NoFormat {
    word: String,
}

impl FromStr for Format {
    type Err = NoFormat;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|format| format.word() == word)
            .ok_or_else(|| NoFormat {
                word: word.to_owned(),
            })
    }
}

/// What a recording looks like.
#[derive(Debug)]
pub(super) enum Found {
    Format(Format),
    /// It is ours already.
    Transcript,
    /// Something else, in words.
    Unknown(String),
    /// What is certainly no recording, in words.
    Nothing(String),
}

/// Whether a file of this name is an event of the `OpenHands` SDK.
pub(super) fn is_event(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("event-") && name.ends_with(".json")
}

/// What a directory looks like that holds these events.
pub(super) fn directory(events: &[OsString]) -> Found {
    if events.is_empty() {
        return Found::Nothing("it is a directory without event-*.json files".to_owned());
    }
    Found::Format(Format::OpenHandsSdk)
}

/// What a file of this name with this beginning looks like.
pub(super) fn head(name: &str, beginning: &[u8]) -> Found {
    let extension = Path::new(name).extension().and_then(|end| end.to_str());
    let is_zip = beginning.starts_with(b"PK\x03\x04");
    if is_zip && extension == Some("eval") || signature::is_inspect(beginning) {
        return Found::Format(Format::Inspect);
    }
    if let Some(looks) = signature::of(beginning) {
        return Found::Nothing(looks.to_owned());
    }
    let text = beginning.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(beginning);
    let text = text.trim_ascii_start();
    if text.is_empty() {
        return Found::Nothing("there is nothing in it but white space".to_owned());
    }
    if text.first().is_some_and(|byte| matches!(byte, b'{' | b'[')) {
        // A first line may be broken, or one that says little: the next ones are looked at as well.
        let objects = objects(text);
        let mut known = objects.filter_map(|members| of_members(&members, extension));
        return match known.next() {
            Some(Found::Format(Format::OpenHandsSdk)) if is_alone(text) => Found::Unknown(
                "it is one event of an openhands-sdk run: the directory that holds it is one"
                    .to_owned(),
            ),
            Some(known) => known,
            None if text.starts_with(b"[") && name.ends_with(".traj.json") && chats(text) => {
                Found::Format(Format::MiniSweAgent)
            }
            None => unknown(text, beginning.len() < HEAD),
        };
    }
    if serde_json::from_slice::<IgnoredAny>(text).is_ok() {
        return Found::Nothing("it is JSON, but neither an object nor a list".to_owned());
    }
    let has = |mark: &[u8]| {
        text.split(|byte| *byte == b'\n')
            .any(|line| line.starts_with(mark))
    };
    // A history may have lost its heading.
    let is_history = extension == Some("md") && has(b"#### ") && has(b"> ");
    if has(b"# aider chat started at") || is_history {
        return Found::Format(Format::Aider);
    }
    Found::Unknown("it is neither JSON nor a chat history of aider".to_owned())
}

/// What JSON of no known format looks like; whether it is all there is.
fn unknown(text: &[u8], is_all: bool) -> Found {
    let list = text.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    let looks = match list {
        Some(rest) if rest.starts_with(b"]") => {
            return Found::Nothing("it is an empty list".to_owned());
        }
        Some(rest) if !rest.starts_with(b"{") => "it is a list without objects".to_owned(),
        Some(_) if chats(text) => "it is a list of messages, and does not say whose; if it is \
                                   mini-swe-agent's, --format mini-swe-agent reads it"
            .to_owned(),
        None if chats(text) => "it holds a message a line, and does not say whose".to_owned(),
        Some(_) | None => {
            let first = objects(text).next();
            let first = first.as_ref().map(Members::listed).unwrap_or_default();
            format!("its first object has {first}")
        }
    };
    let read = serde_json::from_slice::<IgnoredAny>(text);
    let is_cut = is_all && read.is_err_and(|error| error.is_eof());
    Found::Unknown(if is_cut {
        format!("{looks}, and its JSON is cut off")
    } else {
        looks
    })
}

/// Whether the first object is a message as Chat Completions has them, which many write.
fn chats(text: &[u8]) -> bool {
    let first = objects(text).next();
    first.is_some_and(|first| {
        let roles = ["system", "developer", "user", "assistant", "tool"];
        roles.contains(&first.text("role")) && first.has(&["content"])
    })
}

/// What a file looks like one of whose first objects has these members.
fn of_members(members: &Members, extension: Option<&str>) -> Option<Found> {
    let has = |names: &[&str]| members.has(names);
    let kind = members.text("type");
    if kind == "run" && has(&["id", "at", "format", "run"]) {
        return Some(Found::Transcript);
    }
    Some(Found::Format(
        if members.text("schema_version").starts_with("ATIF") {
            Format::Atif
        } else if has(&["trajectory_format"])
            || (has(&["messages", "info"]) && extension != Some("eval"))
            || (has(&["messages"]) && extension == Some("traj"))
        {
            Format::MiniSweAgent
        } else if has(&["trajectory", "environment"])
            || has(&["history", "trajectory"])
            || (has(&["history"]) && extension == Some("traj"))
        {
            Format::SweAgent
        } else if has(&["history"]) || has(&["instance_id", "metadata"]) {
            Format::OpenHands
        } else if has(&["eval", "status"]) || has(&["eval", "plan"]) {
            Format::Inspect
        } else if has(&["sessionId", "projectHash"]) {
            Format::GeminiCli
        } else if has(&["type", "data"])
            && (has(&["parentId"]) || COPILOT.iter().any(|begins| kind.starts_with(begins)))
        {
            Format::CopilotCli
        } else if has(&["type", "payload"]) || has(&["id", "timestamp", "instructions"]) {
            Format::Codex
        } else if kind == "session" && has(&["id", "cwd"])
            || has(&["type", "id", "parentId", "message"])
        {
            Format::Pi
        } else if has(&["uuid", "sessionId"])
            || has(&["parentUuid", "type"])
            || has(&["type", "leafUuid"])
            || has(&["type", "sessionId"])
            || kind == "file-history-snapshot"
        {
            Format::ClaudeCode
        } else if has(&["action", "args"]) || has(&["observation", "content"]) {
            Format::OpenHands
        } else if has(&["kind", "id", "source"]) {
            Format::OpenHandsSdk
        } else if has(&["attempts"]) || has(&["trajectory"]) {
            // What follows may be beyond the beginning.
            Format::SweAgent
        } else {
            return None;
        },
    ))
}

/// Whether a text is neither a list nor objects by the line.
fn is_alone(text: &[u8]) -> bool {
    let lines = text.split(|byte| *byte == b'\n');
    let objects = lines.filter(|line| line.starts_with(b"{"));
    !text.starts_with(b"[") && objects.take(2).count() < 2
}

/// How the kinds of events begin that Copilot CLI writes.
const COPILOT: [&str; 5] = ["session.", "user.", "assistant.", "tool.", "hook."];

#[cfg(test)]
mod tests {
    use super::*;

    /// What files of these names with these beginnings look like.
    fn check(cases: &[(&str, &str, &str)]) {
        for (name, beginning, looks) in cases {
            let found = match head(name, beginning.as_bytes()) {
                Found::Format(format) => format.word().to_owned(),
                Found::Transcript => "transcript".to_owned(),
                Found::Unknown(looks) | Found::Nothing(looks) => looks,
            };
            assert_eq!(found, *looks, "{beginning}");
        }
    }

    #[test]
    fn a_beginning_tells_the_format() {
        check(&[
            (
                "a.jsonl",
                r#"{"type":"summary","summary":"x","leafUuid":"y"}"#,
                "claude-code",
            ),
            (
                "a.jsonl",
                r#"{"parentUuid":null,"type":"user","message":{"role":"user""#,
                "claude-code",
            ),
            (
                "a.jsonl",
                "{\"type\":\"mess\n{\"type\":\"file-history-snapshot\"}\n",
                "claude-code",
            ),
            (
                "a.jsonl",
                r#"{"timestamp":"x","type":"session_meta","payload":{}}"#,
                "codex",
            ),
            ("a.jsonl", r#"{"type":"session","id":"x","cwd":"/w"}"#, "pi"),
            (
                "a.traj",
                "{\n  \"environment\": \"e\",\n  \"trajectory\": [\n {\"action\"",
                "swe-agent",
            ),
            (
                "a.traj.json",
                r#"[{"role":"system","content":"x"}"#,
                "mini-swe-agent",
            ),
            (
                "a.traj.json",
                "{\n \"info\": {\"a\": [1, {\"x\": \"}\"}]},\n \"messages\": [",
                "mini-swe-agent",
            ),
            (
                "output.jsonl",
                r#"{"instance_id":"x","metadata":{},"history":[]}"#,
                "openhands",
            ),
            (
                "a.json",
                r#"{"schema_version":"ATIF-v1.4","session_id":"x"}"#,
                "atif",
            ),
            (
                "a.json",
                r#"{"sessionId":"x","projectHash":"y","messages":[]}"#,
                "gemini-cli",
            ),
            (
                "events.jsonl",
                r#"{"type":"session.start","data":{},"id":"x","parentId":null}"#,
                "copilot-cli",
            ),
            (
                "a.json",
                r#"{"version":2,"status":"success","eval":{}}"#,
                "inspect",
            ),
            ("a.eval", "PK\x03\x04", "inspect"),
            ("a.md", "\n# aider chat started at 2024-05-01\n", "aider"),
        ]);
        for format in Format::ALL {
            assert_eq!(format.word().parse(), Ok(format));
        }
        assert!("gpt".parse::<Format>().is_err());
    }

    #[test]
    fn what_is_of_no_format_says_what_it_looks_like() {
        check(&[
            (
                "a.jsonl",
                r#"{"id":1,"at":"x","type":"run","format":1,"run":"x"}"#,
                "transcript",
            ),
            (
                "a.jsonl",
                r#"{"b":1,"a":{"c":"}"},"d":"#,
                "its first object has the members a, b, d, and its JSON is cut off",
            ),
            ("a.jsonl", "{}", "its first object has no members"),
            (
                "a.md",
                "it is not `# aider chat started at`",
                "it is neither JSON nor a chat history of aider",
            ),
            (
                "a.json",
                r#"[{"role":"system","content":"x"}]"#,
                "it is a list of messages, and does not say whose; if it is mini-swe-agent's, \
                 --format mini-swe-agent reads it",
            ),
            (
                "a.jsonl",
                "{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":\"assistant\"}\n",
                "it holds a message a line, and does not say whose",
            ),
            (
                "a.json",
                r#"{"type":"invoice.paid","data":{}}"#,
                "its first object has the members data, type",
            ),
            ("a.json", "[]", "it is an empty list"),
            ("a.json", "[1,2]", "it is a list without objects"),
            (
                "a.json",
                "\"x\"",
                "it is JSON, but neither an object nor a list",
            ),
            ("a.json", " \n", "there is nothing in it but white space"),
        ]);
    }
}
