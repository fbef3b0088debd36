//! Many runs at once in one process: an agent is shared, each run has a recorder of its own.
//!
//! A hundred tasks, of which sixteen go on at once; the next is made when there is room for it. When
//! enough is spent, those under way are ended, resumable, and no more begin.
//!
//! ```sh
//! cargo run --example many
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt as _};
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, AgentError, Task};
use undertext::batch;
use undertext::model::{Ask, Delta, Model, Reply};
use undertext::record::{Clock, MemoryStorage, RecordError, Recorder};
use undertext::setup::{self, Setup};
use undertext::tools::{Recall, Toolbox};
use undertext::transcript::{Run, Totals};

/// How many runs go on at once.
const AT_ONCE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);

/// The rounds after which no more is begun.
const ENOUGH: u64 = 1000;

/// A model that looks something up ten times before it is content.
#[derive(Debug)]
struct Curious;

impl Model for Curious {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let body = String::from_utf8_lossy(&ask.body);
        let reply = match body.matches(r#""role":"tool""#).count() {
            0..10 => Reply::calls([("Recall", r#"{"pattern":"number [0-9]+"}"#)]),
            _ => Reply::text("That was my task."),
        };
        stream::iter([Delta::Reply(Box::new(reply))]).boxed()
    }
}

/// One run, from its task to its end. What it used is told.
async fn run(agent: Agent, number: u32, cancel: CancellationToken) -> Result<Totals, AgentError> {
    let mut recorder = recorder()?;
    let task = Task::new(format!(
        "Find out which number you are. (You are number {number}.)"
    ));
    agent.run(&mut recorder, Some(task), &cancel).await?;
    Ok(recorder.view().ledger().whole)
}

/// A transcript in memory. `FileStorage::create` keeps one in a file instead.
fn recorder() -> Result<Recorder, RecordError> {
    let clock = Clock::System;
    let run = Run::new(clock.new_run(), "/nowhere");
    Recorder::create(Box::new(MemoryStorage::default()), clock, run)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let setup = Setup::new(setup::Model::named("curious"), "Be curious.");
    let agent = Agent::new(setup, Arc::new(Curious), Toolbox::new().with(Recall));
    let cancel = CancellationToken::new();
    let work = |number, cancel| run(agent.clone(), number, cancel);
    let mut runs = Box::pin(batch::each(1..=100, AT_ONCE, cancel.clone(), work));
    let (mut ended, mut rounds, mut calls) = (0, 0, 0);
    while let Some(totals) = runs.next().await {
        let totals = totals??;
        (ended, rounds, calls) = (ended + 1, rounds + totals.rounds, calls + totals.calls);
        if rounds >= ENOUGH {
            cancel.cancel();
        }
    }
    println!("{ended} runs, {rounds} rounds, {calls} calls");
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
