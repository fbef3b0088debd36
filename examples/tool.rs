//! A tool of one's own, beside the built-in ones.
//!
//! ```sh
//! cargo run --example tool
//! ```
//!
//! The model here is a script, so that this runs anywhere. With a server it is
//! `Client::new(endpoint, Timeouts::default())`, and nothing else changes.

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::error::Error;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Task};
use undertext::model::{Reply, Scripted};
use undertext::record::{Clock, MemoryStorage, Recorder};
use undertext::setup::{Model, Setup};
use undertext::tools::{Outcome, Toolbox, typed};
use undertext::transcript::{Run, jsonl};

/// The arguments. Their comments and their types are what the model reads.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ticket {
    /// The ticket's number.
    number: u32,
}

/// Answers from wherever tickets are kept. What goes wrong is told to the model.
async fn ticket(Ticket { number }: Ticket) -> Outcome {
    match number {
        17 => Outcome::ok("#17, open: the parser drops the last line of a file"),
        _ => Outcome::error(format!("There is no ticket {number}.")),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // `reads` says that calls change nothing: they may run side by side.
    let tool = typed("Ticket", "Shows a ticket of our tracker.", ticket).reads();
    let model = Scripted::new([
        Reply::calls([
            ("Ticket", r#"{"number":16}"#),
            ("Ticket", r#"{"number":17}"#),
        ])
        .into(),
        Reply::text("Ticket 17 is about the parser; there is no 16.").into(),
    ]);
    let setup = Setup::new(Model::named("a-script"), "You know our tickets.");
    let agent = Agent::new(setup, Arc::new(model), Toolbox::new().with(tool));

    let clock = Clock::System;
    let run = Run::new(clock.new_run(), "/nowhere");
    let mut recorder = Recorder::create(Box::new(MemoryStorage::default()), clock, run)?;
    let task = Task::new("What are tickets 16 and 17 about?");
    let finished = agent
        .run(&mut recorder, Some(task), &CancellationToken::new())
        .await?;

    for entry in recorder.view().transcript().entries() {
        print!("{}", String::from_utf8(jsonl::encode(entry)?)?);
    }
    println!("{finished}");
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
