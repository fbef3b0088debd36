//! A stage for runs: a scripted model, tools, a recorder in memory, a clock that stands still.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, AgentError, Finished, Task};
use undertext::exchange::{Effect, Hint, ToolMeta, Treatment};
use undertext::model::Model;
use undertext::record::{Clock, MemoryStorage, OnDamage, Recorder};
use undertext::setup::{self, Models, Policy, Setup, Wire};
use undertext::tools::{Compact, Outcome, Recall, Tool, Toolbox, typed};
use undertext::transcript::jsonl::{Item, Reader};
use undertext::transcript::{At, Entry, Run};

/// The moment at which every stage begins.
pub(crate) const BEGIN: At = At(1_795_291_200_000);

/// A model of this window, plain in every other respect.
pub(crate) fn model(window: u64) -> setup::Model {
    setup::Model {
        window: Some(window),
        ..setup::Model::named("scripted")
    }
}

/// Settings for a model of this window.
pub(crate) fn setup(window: u64, policy: Policy) -> Setup {
    let models = Models {
        main: model(window),
        summary: None,
        fallback: None,
    };
    let instructions = "You are a careful worker.".to_owned();
    Setup {
        wire: Wire {
            instructions,
            tools: Vec::new(),
            models,
        },
        policy,
    }
}

/// The first entry of a run.
pub(crate) fn run(clock: &Clock) -> Run {
    Run {
        generator: "undertext test".to_owned(),
        ..Run::new(clock.new_run(), "/w")
    }
}

/// A recorder of a new run in this storage.
pub(crate) fn create(storage: &MemoryStorage) -> Recorder {
    let clock = Clock::fixed(BEGIN);
    let run = run(&clock);
    Recorder::create(Box::new(storage.clone()), clock, run).unwrap()
}

/// A recorder that takes the run in this storage up again.
pub(crate) fn open(storage: &MemoryStorage) -> Recorder {
    let clock = Clock::fixed(BEGIN.plus_ms(60_000));
    Recorder::open(Box::new(storage.clone()), clock, OnDamage::Refuse).unwrap()
}

/// Runs an agent to its end on a runtime of its own, whose time is paused.
pub(crate) fn go(
    agent: &Agent,
    recorder: &mut Recorder,
    task: Option<Task>,
) -> Result<Finished, AgentError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(agent.run(recorder, task, &CancellationToken::new()))
}

/// The entries in a storage.
pub(crate) fn entries(storage: &MemoryStorage) -> Vec<Arc<Entry>> {
    let bytes = storage.bytes();
    let items = Reader::new(bytes.as_slice()).map(|item| match item.unwrap() {
        Item::Entry { entry, .. } => entry,
        other => panic!("{other:?}"),
    });
    items.collect()
}

/// The arguments of the test tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Amount {
    /// What it is about.
    pub(crate) path: String,
    /// The length of the result in characters.
    #[serde(default)]
    pub(crate) chars: usize,
}

/// A text of this length that names what it is about, so that no two are the same.
pub(crate) fn text(path: &str, chars: usize) -> String {
    let line = format!("{path} says \"so\"; ");
    line.chars().cycle().take(chars).collect()
}

fn tool(name: &str, effect: Effect, hint: Hint) -> impl Tool + use<> {
    let answer = |amount: Amount| async move { Outcome::ok(text(&amount.path, amount.chars)) };
    let labels = vec!["path".to_owned()];
    let meta = ToolMeta {
        effect,
        hint,
        exempt: false,
        supersession: None,
        labels,
        timeout_ms: None,
    };
    typed(name, "A tool of the tests.", answer).with_meta(meta)
}

/// `Show` reads, `Change` writes, `TodoWrite` is exempt; `Compact` and `Recall` are real.
pub(crate) fn toolbox() -> Toolbox {
    let keep = Hint::new(Treatment::Keep, Treatment::Keep);
    let strip = Hint::new(Treatment::Strip, Treatment::Strip);
    Toolbox::new()
        .with(tool("Show", Effect::Reads, Hint::default()))
        .with(tool("Change", Effect::Writes, strip))
        .with(tool("TodoWrite", Effect::Reads, keep))
        .with(Compact)
        .with(Recall)
}

/// An agent with the test tools.
pub(crate) fn agent(window: u64, policy: Policy, model: impl Model + 'static) -> Agent {
    Agent::new(setup(window, policy), Arc::new(model), toolbox())
}
