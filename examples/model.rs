//! A model of one's own: anything that answers a request can drive the loop.
//!
//! ```sh
//! cargo run --example model
//! ```
//!
//! This one is asked in Chat Completions, as every model is that says nothing else, and answers by a rule: it counts the
//! lines of each file that it can see. The tools are the built-in ones, in a workspace of its own.

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::error::Error;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt as _};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Task};
use undertext::hands::{Hands, Workspace};
use undertext::model::{Ask, Delta, Fault, Model, Reply};
use undertext::record::{Clock, MemoryStorage, Recorder};
use undertext::setup::{self, Setup};
use undertext::tools::Toolbox;
use undertext::transcript::{FaultClass, Run};

/// A model that knows one thing to do.
#[derive(Debug)]
struct Counter;

impl Model for Counter {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        // The last item is a reply or a fault; before it there may be pieces to show.
        let answer = match serde_json::from_slice(&ask.body) {
            Ok(request) => Delta::Reply(Box::new(reply(&request))),
            Err(error) => {
                let fault = Fault::new(FaultClass::Permanent, error.to_string());
                Delta::Fault(Box::new(fault))
            }
        };
        stream::iter([answer]).boxed()
    }
}

/// Calls `Bash` once, and then tells what it said.
fn reply(request: &Value) -> Reply {
    let last = request["messages"].as_array().and_then(|all| all.last());
    match last {
        Some(last) if last["role"] == "tool" => {
            let content = last["content"].as_str().unwrap_or_default();
            Reply::text(format!("I counted:\n{}", content.trim_end()))
        }
        _ => Reply::calls([("Bash", r#"{"command":"wc -l *.txt"}"#)]),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let workspace = tempfile::tempdir()?;
    std::fs::write(workspace.path().join("a.txt"), "one\ntwo\n")?;
    std::fs::write(workspace.path().join("b.txt"), "three\n")?;
    let variables = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let hands = Hands::in_process(Workspace::open(workspace.path(), None, variables)?);

    let setup = Setup::new(setup::Model::named("counter"), "Count.");
    let agent = Agent::new(setup, Arc::new(Counter), Toolbox::builtin()).with_hands(hands);
    let clock = Clock::System;
    let run = Run::new(clock.new_run(), workspace.path().display().to_string());
    let mut recorder = Recorder::create(Box::new(MemoryStorage::default()), clock, run)?;
    let task = Task::new("How long are the files?");
    let finished = agent
        .run(&mut recorder, Some(task), &CancellationToken::new())
        .await?;
    println!("{finished}");
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
