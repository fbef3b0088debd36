//! A recorded run of another agent, as it is played: taken from the transcript that its import made.

use std::mem;
use std::sync::Arc;

use serde_json::{Value, json};
use undertext::exchange::{Reasoning, Status};
use undertext::id::CallId;
use undertext::transcript::{Entry, Event, Speaker};

/// What a run recorded, whatever its format: turns of a message and the rounds that follow it.
#[derive(Clone, Debug, Default)]
pub(super) struct Recording {
    /// The file, and the number of the run in it if there are several.
    pub(super) name: String,
    pub(super) turns: Vec<Turn>,
}

/// A message of the user, and what the agent did then. The last round has no calls, all others have.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    pub(super) user: String,
    pub(super) rounds: Vec<Round>,
}

/// One response, with the results of its calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    pub(super) reasoning: String,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
}

/// One call and its result.
#[derive(Clone, Debug)]
pub(super) struct Call {
    id: String,
    pub(super) name: String,
    /// One JSON object.
    pub(super) arguments: Value,
    /// The text, and whether it went well; `None` if none was recorded.
    pub(super) result: Option<(String, bool)>,
}

impl Recording {
    /// What an imported run recorded; `None` if nothing was answered in it. What a client put in the
    /// user's place is no message of a person: what it tells of work in the background is the result of
    /// a call, all else is left out once somebody spoke.
    pub(super) fn of(name: &str, entries: &[Arc<Entry>]) -> Option<Self> {
        let mut pen = Pen::default();
        for entry in entries {
            let key = entry.id.to_string();
            match &entry.event {
                Event::User(user) if user.origin == Speaker::Runtime && pen.has_begun() => {
                    if !user.text.starts_with("<task-notification>") {
                        continue;
                    }
                    pen.called(Some(&key), &key, "Notification", &json!({}));
                    pen.answered(&key, &user.text, true);
                }
                Event::User(user) => {
                    let parts = user.attachments.iter().map(|part| part.text.as_str());
                    let texts: Vec<&str> = [user.text.as_str()].into_iter().chain(parts).collect();
                    pen.user(&texts.join("\n"));
                }
                Event::Response(response) => {
                    for block in &response.reasoning {
                        if let Reasoning::Text { text, .. } = block {
                            pen.thought(Some(&key), text);
                        }
                    }
                    pen.said(Some(&key), &response.text);
                    for (index, call) in response.calls.iter().enumerate() {
                        let id = CallId::at(entry.id, index).to_string();
                        let arguments = serde_json::from_str(&call.arguments);
                        let arguments = arguments.unwrap_or_else(|_| call.arguments.clone().into());
                        pen.called(Some(&key), &id, &call.name, &arguments);
                    }
                }
                Event::Result(result) if result.status != Status::Interrupted => {
                    let ok = result.status == Status::Ok;
                    pen.answered(&result.call.to_string(), &result.content, ok);
                }
                _ => {}
            }
        }
        pen.recording(name)
    }

    pub(super) fn rounds(&self) -> impl Iterator<Item = &Round> {
        self.turns.iter().flat_map(|turn| &turn.rounds)
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.rounds().flat_map(|round| &round.calls)
    }
}

/// Writes a recording down, piece by piece, in the order of the file.
///
/// Pieces of one response have the same key.
#[derive(Debug, Default)]
pub(super) struct Pen {
    turns: Vec<Turn>,
    key: Option<String>,
    answered: bool,
}

impl Pen {
    /// Whether somebody spoke.
    fn has_begun(&self) -> bool {
        !self.turns.is_empty()
    }

    /// The user says something.
    pub(super) fn user(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match self.turns.last_mut() {
            // Nothing was answered yet: one message.
            Some(turn) if turn.rounds.is_empty() => {
                turn.user.push_str("\n\n");
                turn.user.push_str(text);
            }
            _ => self.turns.push(Turn {
                user: text.to_owned(),
                rounds: Vec::new(),
            }),
        }
        self.key = None;
    }

    /// A piece of the agent's reasoning.
    pub(super) fn thought(&mut self, key: Option<&str>, text: &str) {
        if let Some(round) = self.round(key) {
            push(&mut round.reasoning, text);
        }
    }

    /// A piece of what the agent says.
    pub(super) fn said(&mut self, key: Option<&str>, text: &str) {
        if let Some(round) = self.round(key) {
            push(&mut round.text, text);
        }
    }

    /// The agent calls a tool. Arguments may be an object, or a string that holds one.
    pub(super) fn called(&mut self, key: Option<&str>, id: &str, name: &str, arguments: &Value) {
        let parsed = arguments.as_str().map(serde_json::from_str::<Value>);
        let arguments = match parsed {
            Some(Ok(value)) => value,
            Some(Err(_)) | None => arguments.clone(),
        };
        let arguments = if arguments.is_object() {
            arguments
        } else {
            serde_json::json!({ "input": arguments })
        };
        if let Some(round) = self.round(key).filter(|_| !name.is_empty()) {
            round.calls.push(Call {
                id: id.to_owned(),
                name: name.to_owned(),
                arguments,
                result: None,
            });
        }
    }

    /// A call is answered: the newest one of this id that is open.
    pub(super) fn answered(&mut self, id: &str, text: &str, ok: bool) {
        let rounds = self.turns.iter_mut().rev().take(2);
        let rounds = rounds.flat_map(|turn| turn.rounds.iter_mut().rev());
        let mut calls = rounds.flat_map(|round| round.calls.iter_mut());
        if let Some(call) = calls.find(|call| call.id == id && call.result.is_none()) {
            call.result = Some((text.to_owned(), ok));
        }
        self.answered = true;
    }

    /// The round that a piece of a response belongs to; `None` before the first message.
    fn round(&mut self, key: Option<&str>) -> Option<&mut Round> {
        let turn = self.turns.last_mut()?;
        let same = match key {
            Some(_) => self.key.as_deref() == key,
            None => !self.answered,
        };
        if !same || turn.rounds.is_empty() {
            turn.rounds.push(Round::default());
            self.key = key.map(str::to_owned);
            self.answered = false;
        }
        turn.rounds.last_mut()
    }

    /// The recording; `None` if there is no answered message in it.
    pub(super) fn recording(self, name: &str) -> Option<Recording> {
        let mut turns: Vec<Turn> = Vec::new();
        let mut unanswered = String::new();
        for mut turn in self.turns {
            turn.rounds = sound(turn.rounds);
            turn.user = mem::take(&mut unanswered) + &turn.user;
            if turn.rounds.is_empty() {
                unanswered = turn.user + "\n\n";
            } else {
                turns.push(turn);
            }
        }
        (!turns.is_empty()).then(|| Recording {
            name: name.to_owned(),
            turns,
        })
    }
}

/// Rounds as the loop has them: none is empty, and only the last one has no calls.
fn sound(rounds: Vec<Round>) -> Vec<Round> {
    let mut sound: Vec<Round> = Vec::new();
    let mut before = Round::default();
    for round in rounds {
        push(&mut before.reasoning, &round.reasoning);
        push(&mut before.text, &round.text);
        before.calls = round.calls;
        if !before.calls.is_empty() {
            sound.push(mem::take(&mut before));
        }
    }
    if before.text.is_empty() && !sound.is_empty() {
        "Done.".clone_into(&mut before.text);
    }
    sound.extend((!before.text.is_empty()).then_some(before));
    sound
}

fn push(text: &mut String, more: &str) {
    let more = more.trim();
    if !more.is_empty() {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(more);
    }
}
