//! What a recording looks like: its format, found out from its name and its beginning.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::import::signature;

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
    if text.first().is_some_and(|byte| matches!(byte, b'{' | b'[')) {
        // A first line may be broken, or one that says little: the next ones are looked at as well.
        let mut objects = objects(text).peekable();
        let first = objects.peek().map(Members::listed).unwrap_or_default();
        let mut known = objects.filter_map(|members| of_members(&members, extension));
        return match known.next() {
            Some(Found::Format(Format::OpenHandsSdk)) if is_alone(text) => Found::Unknown(
                "it is one event of an openhands-sdk run: the directory that holds it is one"
                    .to_owned(),
            ),
            Some(known) => known,
            None => Found::Unknown(format!("its first object has {first}")),
        };
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

/// What a file looks like one of whose first objects has these members.
fn of_members(members: &Members, extension: Option<&str>) -> Option<Found> {
    let has = |names: &[&str]| names.iter().all(|name| members.0.contains_key(*name));
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
        } else if has(&["type", "data"]) && (has(&["parentId"]) || kind.contains('.')) {
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
        } else if has(&["role", "content"]) {
            Format::MiniSweAgent
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

/// How many objects of the beginning are looked at.
const LOOKED_AT: usize = 20;

/// The members of one object: their names, and the beginnings of those that are strings.
#[derive(Debug, Default)]
struct Members(BTreeMap<String, String>);

impl Members {
    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The names, for people.
    fn listed(&self) -> String {
        let names: Vec<&str> = self.0.keys().map(String::as_str).take(8).collect();
        match names.len() {
            0 => "no members".to_owned(),
            _ => format!("the members {}", names.join(", ")),
        }
    }
}

/// The members of the first objects: one a line, the one whole object, or those of a list. The text
/// may end anywhere.
fn objects(text: &[u8]) -> impl Iterator<Item = Members> + '_ {
    // One object on many lines, or a list of them.
    let first_line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let spread = text.starts_with(b"[")
        || serde_json::from_slice::<serde::de::IgnoredAny>(first_line).is_err();
    let (whole, lines): (&[u8], &[u8]) = if spread { (text, text) } else { (b"", text) };
    let whole = (!whole.is_empty())
        .then(|| members(whole.trim_ascii_start().strip_prefix(b"[").unwrap_or(whole)));
    let lines = lines.split(|byte| *byte == b'\n').take(LOOKED_AT);
    let lines = lines.filter(|line| line.starts_with(b"{")).map(members);
    whole.into_iter().chain(lines)
}

/// The members of the object that begins a text.
fn members(text: &[u8]) -> Members {
    let mut found = Members::default();
    let (mut depth, mut at) = (0_usize, 0);
    let mut name: Option<String> = None;
    let mut is_value = false;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            b'"' => {
                let end = string_end(text, at + 1);
                if depth == 1 {
                    let inner = &text[at + 1..end.min(text.len())];
                    let short =
                        String::from_utf8_lossy(&inner[..inner.len().min(100)]).into_owned();
                    if is_value {
                        if let Some(name) = &name {
                            found.0.insert(name.clone(), short);
                        }
                    } else {
                        name = Some(short);
                    }
                }
                at = end;
            }
            b':' if depth == 1 => {
                is_value = true;
                found.0.entry(name.clone().unwrap_or_default()).or_default();
            }
            b',' if depth == 1 => is_value = false,
            _ => {}
        }
        at += 1;
    }
    found
}

/// Where the string ends that begins here: its quote, or the end of the text.
fn string_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_tells_the_format() {
        for (name, beginning, looks) in [
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
                "a.json",
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
            (
                "a.jsonl",
                r#"{"id":1,"at":"x","type":"run","format":1,"run":"x"}"#,
                "transcript",
            ),
            (
                "a.jsonl",
                r#"{"b":1,"a":{"c":"}"},"d":"#,
                "its first object has the members a, b, d",
            ),
            ("a.jsonl", "{}", "its first object has no members"),
            (
                "a.md",
                "it is not `# aider chat started at`",
                "it is neither JSON nor a chat history of aider",
            ),
        ] {
            let found = match head(name, beginning.as_bytes()) {
                Found::Format(format) => format.word().to_owned(),
                Found::Transcript => "transcript".to_owned(),
                Found::Unknown(looks) | Found::Nothing(looks) => looks,
            };
            assert_eq!(found, looks, "{beginning}");
        }
        for format in Format::ALL {
            assert_eq!(format.word().parse(), Ok(format));
        }
        assert!("gpt".parse::<Format>().is_err());
    }
}
