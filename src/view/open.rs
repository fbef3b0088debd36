//! What the run is in the middle of: the working directory, files, todos, skills, failures.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exchange::{Status, ToolResult};
use crate::id::{CallId, Digest, EntryId};
use crate::transcript::turn::Rounds;
use crate::transcript::{Entry, Event, Speaker, Transcript};
use crate::view::View;

/// The working state of a run, from facts alone. Copies share what grows with the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Working {
    /// The working directory after the newest call that said so.
    pub cwd: Option<String>,
    /// Files by path, as the model last knew them.
    pub files: Arc<BTreeMap<String, FileState>>,
    /// The newest todo list that was written.
    pub todo: Option<CallId>,
    /// The newest load of each skill, by name.
    pub skills: Arc<BTreeMap<String, CallId>>,
    /// Commands that failed when they last ran, by command.
    pub failures: Arc<BTreeMap<String, Failure>>,
    /// The first task.
    pub task: Option<EntryId>,
    /// Later messages of the user, oldest first.
    pub follow_ups: Vec<EntryId>,
    /// The newest call that was started and has no result.
    pub started: Vec<CallId>,
}

/// A file as the model last knew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Its digest then.
    pub sha256: Digest,
    /// Whether the model ever changed it.
    pub changed: bool,
    /// The call that last read or wrote it.
    pub call: CallId,
}

/// A command that failed when it last ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The call.
    pub call: CallId,
    /// The exit status.
    pub exit: i32,
}

impl Working {
    pub(super) fn take(&mut self, entry: &Entry, transcript: &Transcript, rounds: &Rounds) {
        match &entry.event {
            Event::User(user) => match user.origin {
                Speaker::Task if self.task.is_none() => self.task = Some(entry.id),
                Speaker::Task | Speaker::FollowUp => self.follow_ups.push(entry.id),
                Speaker::Hook | Speaker::Runtime => {}
            },
            Event::Started(started) => self.started.push(started.call),
            Event::Result(result) => {
                self.started.retain(|call| *call != result.call);
                if rounds.of_response(result.call.response).is_some() {
                    self.take_result(result, transcript);
                }
            }
            Event::Run(_)
            | Event::Setup(_)
            | Event::Request(_)
            | Event::Response(_)
            | Event::Overlay(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => {}
        }
    }

    fn take_result(&mut self, result: &ToolResult, transcript: &Transcript) {
        let facts = &result.facts;
        let call = result.call;
        if let Some(cwd) = &facts.cwd {
            self.cwd = Some(cwd.clone());
        }
        for read in &facts.read {
            let changed = self.files.get(&read.path).is_some_and(|file| file.changed);
            let state = FileState {
                sha256: read.sha256,
                changed,
                call,
            };
            Arc::make_mut(&mut self.files).insert(read.path.clone(), state);
        }
        for wrote in &facts.wrote {
            let state = FileState {
                sha256: wrote.sha256,
                changed: true,
                call,
            };
            Arc::make_mut(&mut self.files).insert(wrote.path.clone(), state);
        }
        let Some((name, arguments)) = made(transcript, call) else {
            return;
        };
        match name {
            "TodoWrite" if result.status == Status::Ok => self.todo = Some(call),
            "LoadSkill" if result.status == Status::Ok => {
                if let Some(skill) = text(arguments, "name") {
                    Arc::make_mut(&mut self.skills).insert(skill, call);
                }
            }
            _ => {
                // Arguments are read for commands alone: those of other tools may hold whole files.
                let command = |exit| Some((exit, text(arguments, "command")?));
                if let Some((exit, command)) = facts.exit.and_then(command) {
                    if exit != 0 {
                        let failure = Failure { call, exit };
                        Arc::make_mut(&mut self.failures).insert(command, failure);
                    } else if self.failures.contains_key(&command) {
                        Arc::make_mut(&mut self.failures).remove(&command);
                    }
                }
            }
        }
    }
}

impl View {
    /// The items of the newest todo list that are not done, each on a line; empty if the list is
    /// none that can be read.
    pub fn open_todos(&self) -> Vec<String> {
        let call = self.working.todo.and_then(|call| self.tool_call(call));
        let arguments = call.and_then(|call| object(&call.arguments));
        let list = arguments
            .as_ref()
            .and_then(|list| list.get("todos")?.as_array());
        let open = list.into_iter().flatten().filter(|todo| {
            let status = todo.get("status").and_then(Value::as_str);
            !matches!(status, Some("completed" | "cancelled"))
        });
        let items = open.filter_map(|todo| todo.get("content")?.as_str());
        items
            .map(|item| item.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    }
}

/// The name and arguments of a call, from its response.
fn made(transcript: &Transcript, call: CallId) -> Option<(&str, &str)> {
    let Event::Response(response) = &transcript.get(call.response)?.event else {
        return None;
    };
    let call = response.calls.get(call.index()?)?;
    Some((&call.name, &call.arguments))
}

/// A string among the arguments of a call.
fn text(arguments: &str, name: &str) -> Option<String> {
    Some(object(arguments)?.get(name)?.as_str()?.to_owned())
}

/// The arguments of a call, which may have come as a string that holds them.
fn object(arguments: &str) -> Option<Value> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    if let Value::String(inner) = &arguments {
        return serde_json::from_str(inner).ok();
    }
    Some(arguments)
}
