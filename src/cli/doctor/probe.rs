//! Tiny runs, which show whether the model answers and calls tools.
//!
//! They are runs like any other, in memory: what works here works in a run.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Task};
use undertext::exchange::{Response, Status};
use undertext::model::Client;
use undertext::record::{Clock, MemoryStorage, Recorder};
use undertext::setup::{Model, Policy, Setup};
use undertext::tools::{Outcome, Toolbox, typed};
use undertext::transcript::{Event, FORMAT, Fault, Run};

use crate::cli::exit::Failure;

/// The most tokens of an answer, which leaves room to think.
pub(super) const OUTPUT_MAX: u64 = 1024;

/// The tool that is called.
pub(super) const TOOL: &str = "Add";

/// The longest that a tiny run may take.
const LIMIT: Duration = Duration::from_secs(180);

/// What came of a tiny run.
#[derive(Debug, Default)]
pub(super) struct Probed {
    /// Its responses.
    pub(super) responses: Vec<Response>,
    /// How many calls ran, with whole arguments.
    pub(super) ran: usize,
    /// The last failed attempt.
    pub(super) fault: Option<Fault>,
    /// Whether it took too long.
    pub(super) late: bool,
}

/// The arguments of the tool that is called.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

/// Asks for a word.
pub(super) async fn word(client: &Client, model: &Model) -> Result<Probed, Failure> {
    let task = "Answer with the single word: ready";
    probe(client, model, Toolbox::new(), task).await
}

/// Asks for a call.
pub(super) async fn call(client: &Client, model: &Model) -> Result<Probed, Failure> {
    let add = typed(TOOL, "Adds two numbers.", |add: Add| async move {
        Outcome::ok(add.a.saturating_add(add.b).to_string())
    });
    let toolbox = Toolbox::new().with(add.reads());
    let task = "Call the tool Add with a = 17 and b = 25, then answer with its result alone.";
    probe(client, model, toolbox, task).await
}

async fn probe(
    client: &Client,
    model: &Model,
    toolbox: Toolbox,
    task: &str,
) -> Result<Probed, Failure> {
    let mut model = model.clone();
    let most = &mut model.parameters.max_output_tokens;
    *most = Some(most.map_or(OUTPUT_MAX, |most| most.min(OUTPUT_MAX)));
    let mut setup = Setup::new(model, "You do exactly what you are told, and nothing else.");
    setup.policy = policy();
    let agent = Agent::new(setup, Arc::new(client.clone()), toolbox);
    let clock = Clock::System;
    let run = Run {
        format: FORMAT,
        run: clock.new_run(),
        workspace: String::new(),
        generator: "undertext doctor".to_owned(),
        name: None,
        parent: None,
        imported: None,
        batch: None,
    };
    let mut recorder = Recorder::create(Box::new(MemoryStorage::default()), clock, run)?;
    let cancel = CancellationToken::new();
    let ran = agent.run(&mut recorder, Some(Task::new(task)), &cancel);
    let late = tokio::time::timeout(LIMIT, ran).await.is_err();
    let mut probed = Probed {
        late,
        ..Probed::default()
    };
    for entry in recorder.view().transcript().entries() {
        match &entry.event {
            Event::Response(response) => probed.responses.push(response.clone()),
            Event::Fault(fault) => probed.fault = Some(fault.clone()),
            Event::Result(result) => probed.ran += usize::from(result.status == Status::Ok),
            Event::Run(_)
            | Event::Setup(_)
            | Event::User(_)
            | Event::Request(_)
            | Event::Started(_)
            | Event::Overlay(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => {}
        }
    }
    Ok(probed)
}

/// One attempt at each of a few requests; nothing is compacted.
fn policy() -> Policy {
    let mut policy = Policy::default();
    policy.retries.attempts = 1;
    policy.compaction.enabled = false;
    policy.limits.rounds = Some(3);
    policy.limits.nudges = 0;
    policy
}
