//! Undertext runs a coding agent without a screen, and its context never loses anything.
//!
//! A task goes in; a model and its tools work in a loop until it is done. What happens is recorded in a
//! **transcript** that only grows. Long runs fill the model's window; then old parts are covered by
//! **overlays**, entries like any other, which change how earlier entries *read* and never what they
//! *are*. What the model is sent is a pure function of the transcript, so every request of every run
//! can be built again, byte for byte.
//!
//! ```text
//!  Transcript ──take──▶ View ──request──▶ Body ──▶ model, or a recording of one ──▶ Response ──┐
//!      ▲                 │                                                                     │
//!      │                 ├──plan──▶ Plan ──▶ Overlay ─────────────────────────────────┐         │
//!      │                 └──next──▶ Ask · Wait · Call · Compact · Check · Hook · Stop │         │
//!      │                                             └──▶ hands (tools) ──▶ Result ───┤         │
//!      └────────────────────────── Entry ◀──── Recorder ◀──── Event ◀─────────────────┴─────────┘
//! ```
//!
//! # A run
//!
//! A model that answers from a script, a tool of one's own, a recorder in memory:
//!
//! ```
//! use std::sync::Arc;
//!
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use tokio_util::sync::CancellationToken;
//! use undertext::agent::{Agent, Task};
//! use undertext::model::{Reply, Scripted};
//! use undertext::record::{Clock, MemoryStorage, Recorder};
//! use undertext::setup::{Model, Setup};
//! use undertext::tools::{Outcome, Toolbox, typed};
//! use undertext::transcript::{At, Run};
//!
//! /// The arguments of a tool: its comments are what the model reads.
//! #[derive(Deserialize, JsonSchema)]
//! struct Sum {
//!     /// The numbers to add.
//!     numbers: Vec<i64>,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sum = typed("Sum", "Adds numbers.", |sum: Sum| async move {
//!     Outcome::ok(sum.numbers.iter().sum::<i64>().to_string())
//! });
//! let model = Scripted::new([
//!     Reply::calls([("Sum", r#"{"numbers":[20,22]}"#)]).into(),
//!     Reply::text("It is 42.").into(),
//! ]);
//! let setup = Setup::new(Model::named("scripted"), "You add.");
//! let agent = Agent::new(setup, Arc::new(model.clone()), Toolbox::new().with(sum));
//!
//! let clock = Clock::fixed(At(1_795_291_200_000));
//! let run = Run::new(clock.new_run(), "/workspace");
//! let mut recorder = Recorder::create(Box::new(MemoryStorage::default()), clock, run)?;
//! let task = Task::new("What is 20 and 22?");
//! let finished = agent.run(&mut recorder, Some(task), &CancellationToken::new()).await?;
//! assert_eq!(finished.text, "It is 42.");
//!
//! // The second request, as it was sent.
//! let request = String::from_utf8(model.asked()[1].body.to_vec())?;
//! println!("{request}");
//! assert!(request.ends_with(concat!(
//!     r#"{"role":"user","content":"What is 20 and 22?"},"#,
//!     r#"{"role":"assistant","tool_calls":[{"id":"call_5_1","type":"function","#,
//!     r#""function":{"name":"Sum","arguments":"{\"numbers\":[20,22]}"}}]},"#,
//!     r#"{"role":"tool","tool_call_id":"call_5_1","content":"42"}]}"#,
//! )));
//! # Ok(())
//! # }
//! ```
//!
//! # Where to begin
//!
//! Read [`transcript`] and [`overlay`] for what is recorded, [`view`] for how it reads, [`step`] for what
//! comes next, [`agent`] for the loop. The modules below stand in floors: **a module imports only
//! what stands above it**, and nothing above the edge knows that files, clocks or networks exist.
//!
//! # What holds
//!
//! - There is no way to change or delete an entry: [`Transcript::append`](transcript::Transcript::append)
//!   is the only change.
//! - There is no state beside the entries: [`View`](view::View) is their fold, a request and a
//!   [`Step`](step::Step) are functions of it. Running, resuming and replaying are the same loop over a
//!   shorter or a longer transcript.
//! - There is one writer, [`Recorder`](record::Recorder); everything that touches the world stands at
//!   the edge. What an effect or a request depends on is durable before it.
//! - No overlay splits a call from its result, and no request leaves a call unanswered.
//! - The provider's ids are never looked anything up by, and its types stay in [`wire`] and [`model`].

// Ground: plain data.
pub mod id;
pub mod exchange;
mod json_text;
mod door;
pub mod overlay;
pub mod setup;
pub mod transcript;
// Pure: functions over the ground.
pub mod difference;
pub mod words;
pub mod announcement;
pub mod answer;
pub mod secret;
pub mod profile;
pub mod wire;
pub mod meter;
pub mod view;
pub mod address;
pub mod compaction;
pub mod step;
pub mod explain;
// Edge: the world.
pub mod record;
pub mod model;
pub mod sandbox;
pub mod tools;
pub mod instructions;
pub mod hands;
// Top: composition.
pub mod agent;
pub mod batch;
pub mod replay;
pub mod rerun;
pub mod import;
pub mod export;
pub mod lab;
pub mod page;
#[cfg(feature = "cli")]
pub mod config;
