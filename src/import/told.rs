//! What a recording reads as once it is imported, as text: for the tests of the readers.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::exchange::{Reasoning, Response, Usage};
use crate::import::{Format, ImportError, Imported, read, read_bytes};
use crate::overlay::Layer;
use crate::transcript::{Event, Note, User};

/// The entries of every run of a recording, one a line, without what all of them have.
pub(super) fn told(name: &str, recording: &str) -> String {
    told_bytes(name, recording.as_bytes())
}

/// The same for bytes that are no text.
pub(super) fn told_bytes(name: &str, recording: &[u8]) -> String {
    all(read_bytes(name, recording.to_vec(), None))
}

/// The same for a directory that counts as one recording.
pub(super) fn told_directory(directory: &Path) -> String {
    all(read(directory, None))
}

/// Reads a recording again and again, each time with another value in one place: whatever stands
/// there, nothing panics.
pub(super) fn survives(name: &str, format: Format, recording: &str) {
    let is_one = serde_json::from_str::<Value>(recording).is_ok();
    let lines: Vec<&str> = if is_one {
        vec![recording]
    } else {
        recording.lines().collect()
    };
    for (number, line) in lines.iter().enumerate() {
        let Ok(whole) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let mut found = vec![String::new()];
        places(&whole, "", &mut found);
        let others = ["null", "\"x\"", "1e300", "[[{}]]"];
        for (place, at) in found.iter().zip(0..) {
            for other in [others[at % 4], others[(at + 1) % 4]] {
                let mut changed = whole.clone();
                *changed.pointer_mut(place).unwrap() = serde_json::from_str(other).unwrap();
                let changed = changed.to_string();
                let mut lines = lines.clone();
                lines[number] = &changed;
                let bytes = lines.join("\n").into_bytes();
                drop(read_bytes(name, bytes, Some(format)));
            }
        }
    }
}

/// The places of all values in a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let members: Vec<(String, &Value)> = match value {
        Value::Array(list) => {
            let numbered = list.iter().enumerate();
            numbered
                .map(|(number, value)| (number.to_string(), value))
                .collect()
        }
        Value::Object(members) => {
            let members = members.iter();
            members.map(|(name, value)| (name.clone(), value)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (name, value) in members {
        let place = format!("{at}/{name}");
        places(value, &place, found);
        found.push(place);
    }
}

fn all(runs: Result<Vec<Imported>, ImportError>) -> String {
    let runs = match runs {
        Ok(runs) => runs,
        Err(error) => return format!("{error}\n"),
    };
    let mut told = String::new();
    for run in runs {
        for entry in run.entries().unwrap() {
            if let Some(line) = event(&entry.event) {
                writeln!(told, "{line}").unwrap();
            }
        }
    }
    told
}

fn event(event: &Event) -> Option<String> {
    Some(match event {
        Event::Run(run) => {
            let import = run.imported.as_ref().unwrap();
            let mut line = format!("run {}", run.generator);
            for (name, said) in [
                ("in", Some(run.workspace.clone())),
                ("session", import.session.clone()),
                ("skipped", Some(import.skipped.to_string())),
            ] {
                let said = said.filter(|said| !said.is_empty() && said != "0");
                line.extend(said.map(|said| format!(" {name} {said:?}")));
            }
            line
        }
        Event::Setup(setup) => {
            let tools = setup.wire.tools.iter();
            let tools = tools.filter(|tool| !tool.description.is_empty());
            let tools: Vec<String> = tools
                .map(|tool| format!(" {}={}", tool.name, tool.schema))
                .collect();
            let wire = &setup.wire;
            let model = &wire.models.main.name;
            format!("setup {model} {:?}{}", wire.instructions, tools.concat())
        }
        Event::User(User {
            origin,
            text,
            attachments,
            ..
        }) => {
            let named = attachments.iter();
            let named: Vec<String> = named
                .map(|attached| format!(" [{}: {}]", attached.name, attached.text))
                .collect();
            format!("{origin:?} {text:?}{}", named.concat())
        }
        Event::Response(response) => self::response(response),
        Event::Result(result) => format!(
            "  result {} {} {:?}",
            result.call,
            result.status.word(),
            result.content
        ),
        Event::Overlay(overlay) => {
            let Layer::Summary(summary) = &overlay.layer else {
                return Some(serde_json::to_string(overlay).unwrap());
            };
            format!("{:?} {} {:?}", overlay.origin, summary.span, summary.text)
        }
        Event::Retract(retract) => format!("retract {:?}", retract.overlays),
        Event::Pin(pin) => format!("pin {}", pin.entry),
        Event::Unpin(pin) => format!("unpin {}", pin.entry),
        Event::Note(Note::Warning { text }) => format!("note {text:?}"),
        Event::Request(_) | Event::End(_) => return None,
        Event::Started(_) | Event::Fault(_) | Event::Note(_) | Event::Unknown(_) => {
            panic!("no reader tells {event:?}")
        }
    })
}

fn response(response: &Response) -> String {
    let mut line = format!("{:?} {:?}", response.ending, response.text);
    for block in &response.reasoning {
        let block = match block {
            Reasoning::Text { text, .. } => format!(" thought {text:?}"),
            Reasoning::Raw { raw, .. } => format!(" raw {raw}"),
        };
        line.push_str(&block);
    }
    for call in &response.calls {
        let id = call.provider_id.as_deref().unwrap_or("-");
        write!(line, " {id}:{}{}", call.name, call.arguments).unwrap();
    }
    if let Some(usage) = response.usage {
        let Usage {
            input,
            cached,
            cache_write,
            output,
            reasoning,
        } = usage;
        let counts = [input, cached, cache_write, output, reasoning];
        let counts = counts.map(|count| count.map_or("-".to_owned(), |count| count.to_string()));
        write!(line, " ({})", counts.join(" ")).unwrap();
    }
    line
}
