//! What the script reads of a request, and the summary it makes of one.

use std::fmt::Write as _;

use serde_json::Value;
use undertext::model::Ask;

/// The longest summary, in characters.
const SUMMARY_CHARS: usize = 2_400;

/// What a request says, as far as the script reads it.
pub(crate) struct Sent(Vec<Value>);

/// A call in a request, with its result.
pub(crate) struct Made<'a> {
    /// The name of the tool.
    pub(crate) name: &'a str,
    /// The path, command or handle.
    pub(crate) about: String,
    /// The result as it reads.
    pub(crate) result: &'a str,
}

impl Sent {
    /// What this request says.
    pub(crate) fn of(ask: &Ask) -> Self {
        let body: Value = serde_json::from_slice(&ask.body).unwrap_or_default();
        let messages = body.get("messages").and_then(Value::as_array);
        Self(messages.cloned().unwrap_or_default())
    }

    fn texts<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a str> {
        let of_role = self.0.iter().filter(move |message| message["role"] == role);
        of_role.filter_map(|message| message["content"].as_str())
    }

    /// Its calls, oldest first.
    pub(crate) fn calls(&self) -> Vec<Made<'_>> {
        let made = self
            .0
            .iter()
            .filter_map(|message| message["tool_calls"].as_array());
        let made = made.flatten().map(|call| {
            let result = self
                .0
                .iter()
                .find(|message| message["tool_call_id"] == call["id"]);
            let result = result.and_then(|message| message["content"].as_str());
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            let about = ["path", "command", "handle", "focus"]
                .iter()
                .find_map(|name| arguments[*name].as_str());
            Made {
                name: call["function"]["name"].as_str().unwrap_or_default(),
                about: about.unwrap_or_default().to_owned(),
                result: result.unwrap_or_default(),
            }
        });
        made.collect()
    }
}

/// A summary made of what is there: no sentence in it is invented.
pub(crate) fn summary(sent: &Sent) -> String {
    let mut text = String::from("(by the demo's script, out of what it was given)\nDone:");
    let mut lines: Vec<String> = Vec::new();
    for call in sent.calls() {
        let about = call.about.lines().next().unwrap_or_default();
        let line = format!("- {} {about}: {}", call.name, outcome(call.result));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let said = sent.texts("assistant").map(|said| format!("- {said}"));
    lines.push("Said on the way:".to_owned());
    lines.extend(said);
    let asked = sent.texts("user").last().unwrap_or_default();
    if let Some((_, focus)) = asked.split_once("Pay special attention to: ") {
        lines.push(format!(
            "Asked to keep in mind: {}",
            focus.lines().next().unwrap_or_default()
        ));
    }
    for line in lines {
        if text.len() + line.len() < SUMMARY_CHARS {
            write!(text, "\n{line}").ok();
        }
    }
    text
}

/// A result in a few words: its first line if it is short, what failed, or else its length.
fn outcome(result: &str) -> String {
    let failed = result.lines().filter_map(|line| line.strip_prefix("FAIL"));
    let failed: Vec<&str> = failed.map(str::trim).collect();
    let lines = result.lines().count();
    match result.lines().next() {
        Some(_) if !failed.is_empty() => format!("failed: {}", failed.join(", ")),
        Some(first) if lines <= 2 => first.chars().take(120).collect(),
        Some(_) | None => format!("{lines} lines"),
    }
}
