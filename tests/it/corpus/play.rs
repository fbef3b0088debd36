//! A recording played through the real loop: a model that says what was said, tools that answer what
//! was answered, and the offline model for summaries.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt as _, ready};
use futures::stream::{self, BoxStream, StreamExt as _};
use serde_json::Value;
use serde_json::value::RawValue;
use undertext::agent::{Agent, Task};
use undertext::exchange::{Effect, Facts, FileRead, FileWritten};
use undertext::exchange::{Hint, Reasoning, Supersession, ToolMeta, ToolSpec, Treatment};
use undertext::id::Digest;
use undertext::model::offline::{Request, reply};
use undertext::model::{Ask, Delta, Model, Reply};
use undertext::record::{MemoryStorage, Recorder};
use undertext::setup::Policy;
use undertext::tools::{self, Compact, Outcome, Recall, Tool, Toolbox};
use undertext::transcript::Reason;

use super::recording::{Call, Recording, Round};
use crate::scene;

/// Arguments that name a file.
const PATHS: [&str; 4] = ["file_path", "path", "absolute_path", "filename"];

/// Tools that only read, and tools that write a file, of all the agents recorded.
const READERS: [&str; 12] = [
    "Read",
    "read",
    "read_file",
    "view",
    "Grep",
    "grep",
    "Glob",
    "LS",
    "ls",
    "find",
    "list_directory",
    "open",
];
const WRITERS: [&str; 9] = [
    "Edit",
    "MultiEdit",
    "Write",
    "edit",
    "write",
    "write_file",
    "replace",
    "create",
    "str_replace_editor",
];

/// What is left of the recording: the rounds to come, and the calls of the round in progress.
#[derive(Debug, Default)]
struct Reel {
    rounds: VecDeque<Round>,
    calls: Vec<Call>,
}

/// The recorded model.
#[derive(Clone, Debug, Default)]
struct Player {
    reel: Arc<Mutex<Reel>>,
}

impl Model for Player {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let reply = if ask.summary {
            reply(&Request::read(&ask.body).unwrap())
        } else {
            let mut reel = self.reel.lock().unwrap();
            let round = reel.rounds.pop_front().expect("a round for every request");
            let said = said(&round);
            reel.calls = round.calls;
            said
        };
        stream::iter([Delta::Reply(Box::new(reply))]).boxed()
    }
}

fn said(round: &Round) -> Reply {
    let calls = round.calls.iter();
    let field = "reasoning_content".to_owned();
    let text = round.reasoning.clone();
    Reply {
        text: round.text.clone(),
        reasoning: if text.is_empty() {
            Vec::new()
        } else {
            vec![Reasoning::Text { field, text }]
        },
        ..Reply::calls(calls.map(|call| (call.name.clone(), call.arguments.to_string())))
    }
}

/// A tool that answers what was recorded.
#[derive(Debug)]
struct Recorded {
    spec: ToolSpec,
    reel: Arc<Mutex<Reel>>,
}

impl Tool for Recorded {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call<'a>(&'a self, call: tools::Call<'a>) -> BoxFuture<'a, Outcome> {
        let reel = self.reel.lock().unwrap();
        let recorded = &reel.calls[call.id.index().unwrap()];
        ready(outcome(recorded)).boxed()
    }
}

fn outcome(call: &Call) -> Outcome {
    let (text, ok) = recorded(call);
    let outcome = if ok {
        Outcome::ok(text)
    } else {
        Outcome::error(text)
    };
    let mut facts = Facts::default();
    if let Some(path) = path(call).map(|(_, path)| path.to_owned()).filter(|_| ok) {
        let sha256 = Digest::of(text.as_bytes());
        if WRITERS.contains(&call.name.as_str()) {
            facts.wrote.push(FileWritten { path, sha256 });
        } else if READERS.contains(&call.name.as_str()) {
            facts.read.push(FileRead {
                path,
                sha256,
                lines: None,
            });
        }
    }
    if call.arguments["command"].is_string() {
        facts.exit = Some(i32::from(!ok));
    }
    outcome.with_facts(facts)
}

/// The recorded result of a call, and whether it went well.
pub(super) fn recorded(call: &Call) -> (&str, bool) {
    match &call.result {
        Some((text, ok)) => (text, *ok),
        None => ("no result was recorded", false),
    }
}

fn path(call: &Call) -> Option<(&'static str, &str)> {
    let mut named = PATHS
        .iter()
        .filter_map(|name| Some((*name, call.arguments[*name].as_str()?)));
    named.next()
}

/// The tools that occur in a recording, and the real `Compact` and `Recall`.
fn toolbox(recording: &Recording, reel: &Arc<Mutex<Reel>>) -> Toolbox {
    let mut keys: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for call in recording.calls() {
        let key = keys.entry(&call.name).or_default();
        *key = key.or(path(call).map(|(key, _)| key));
    }
    let mut toolbox = Toolbox::new();
    for (name, key) in &keys {
        // What no provider takes as a name is none of a tool; its calls are answered with an error.
        if !name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        {
            continue;
        }
        let reads = READERS.contains(name);
        let writers = keys
            .iter()
            .filter(|(writer, of)| WRITERS.contains(writer) && *of == key);
        let supersession = Supersession {
            key: key.map(str::to_owned),
            range: Some(["offset".to_owned(), "limit".to_owned()]),
            stale_after: writers.map(|(writer, _)| (*writer).to_owned()).collect(),
        };
        let meta = ToolMeta {
            effect: if reads { Effect::Reads } else { Effect::Writes },
            hint: hint(name),
            supersession: (reads && key.is_some()).then_some(supersession),
            labels: key.iter().map(|key| (*key).to_owned()).collect(),
            ..ToolMeta::default()
        };
        let schema = RawValue::from_string(r#"{"type":"object"}"#.to_owned()).unwrap();
        let spec = ToolSpec {
            name: (*name).to_owned(),
            description: "A tool of a recorded run.".to_owned(),
            schema,
            meta,
        };
        let reel = Arc::clone(reel);
        toolbox = toolbox.with(Recorded { spec, reel });
    }
    toolbox.with(Compact).with(Recall)
}

fn hint(name: &str) -> Hint {
    match name {
        "TodoWrite" => Hint::new(Treatment::Keep, Treatment::Keep),
        _ if WRITERS.contains(&name) => Hint::new(Treatment::Strip, Treatment::Strip),
        _ => Hint::default(),
    }
}

/// Plays a recording to its end with a window of so many tokens.
pub(super) fn play(recording: &Recording, window: u64) -> (MemoryStorage, Recorder) {
    let recording = &named(recording);
    let player = Player::default();
    let mut policy = Policy::default();
    // What ends a run is up to the recording.
    policy.limits.rounds = None;
    policy.limits.failing_calls_stop = u32::MAX;
    policy.limits.nudges = 0;
    let setup = scene::setup(window, policy);
    let toolbox = toolbox(recording, &player.reel);
    let agent = Agent::new(setup, Arc::new(player.clone()), toolbox);
    let storage = MemoryStorage::default();
    let mut recorder = scene::create(&storage);
    for turn in &recording.turns {
        player.reel.lock().unwrap().rounds = turn.rounds.clone().into();
        let task = Some(Task::new(turn.user.as_str()));
        let finished = scene::go(&agent, &mut recorder, task).unwrap();
        let name = &recording.name;
        assert_eq!(finished.reason, Reason::Finished, "{name}: {finished}");
        let left = player.reel.lock().unwrap().rounds.len();
        assert_eq!(left, 0, "{name}: rounds are left");
    }
    (storage, recorder)
}

/// The recording with names of tools that a provider takes; one was blotted out.
fn named(recording: &Recording) -> Recording {
    let mut recording = recording.clone();
    let rounds = recording.turns.iter_mut().flat_map(|turn| &mut turn.rounds);
    for call in rounds.flat_map(|round| &mut round.calls) {
        let odd = |c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c));
        call.name = call.name.replace(odd, "_");
    }
    recording
}

/// The recording as a model with this window would have made it: no response longer than its
/// reserve for output.
pub(super) fn within(recording: &Recording, window: u64) -> Recording {
    let most = usize::try_from(window / 8 * 4).unwrap();
    let mut recording = recording.clone();
    for round in recording.turns.iter_mut().flat_map(|turn| &mut turn.rounds) {
        let mut longest = most;
        while length(round) > most {
            longest = longest * 2 / 3;
            shorten(&mut round.text, longest);
            shorten(&mut round.reasoning, longest);
            for call in &mut round.calls {
                shorten_all(&mut call.arguments, longest);
            }
        }
    }
    recording
}

/// About the characters that a response takes in a body.
fn length(round: &Round) -> usize {
    let calls = round.calls.iter().map(|call| call.arguments.to_string());
    let calls: usize = calls.map(|arguments| arguments.len() * 5 / 4).sum();
    round.text.len() + round.reasoning.len() + calls
}

fn shorten(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
    }
}

fn shorten_all(value: &mut Value, most: usize) {
    match value {
        Value::String(text) => shorten(text, most),
        Value::Array(items) => items.iter_mut().for_each(|item| shorten_all(item, most)),
        Value::Object(members) => members
            .iter_mut()
            .for_each(|(_, member)| shorten_all(member, most)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
