//! Many runs at once in one process: an agent is shared, each run has a recorder of its own.
//!
//! ```sh
//! cargo run --example many
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::error::Error;
use std::sync::Arc;

use futures::future::try_join_all;
use futures::stream::{self, BoxStream, StreamExt as _};
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, AgentError, Task};
use undertext::model::{Ask, Delta, Model, Reply};
use undertext::record::{Clock, MemoryStorage, RecordError, Recorder};
use undertext::setup::{self, Setup};
use undertext::tools::{Recall, Toolbox};
use undertext::transcript::{Run, Totals};

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
async fn run(agent: &Agent, number: u32) -> Result<Totals, AgentError> {
    let mut recorder = recorder()?;
    let task = Task::new(format!(
        "Find out which number you are. (You are number {number}.)"
    ));
    // A token for each: one run can be cancelled and the others go on.
    let cancel = CancellationToken::new();
    agent.run(&mut recorder, Some(task), &cancel).await?;
    Ok(recorder.view().ledger().whole)
}

/// A transcript in memory. `FileStorage::create` keeps one in a file instead.
fn recorder() -> Result<Recorder, RecordError> {
    let clock = Clock::System;
    let run = Run::new(clock.new_run(), "/nowhere");
    Recorder::create(Box::new(MemoryStorage::default()), clock, run)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let setup = Setup::new(setup::Model::named("curious"), "Be curious.");
    let agent = Agent::new(setup, Arc::new(Curious), Toolbox::new().with(Recall));
    let all = try_join_all((1..=100).map(|number| run(&agent, number))).await?;
    let (rounds, calls) = all.iter().fold((0, 0), |(rounds, calls), totals| {
        (rounds + totals.rounds, calls + totals.calls)
    });
    println!("{} runs, {rounds} rounds, {calls} calls", all.len());
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
