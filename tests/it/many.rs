//! One agent at work on many runs: each has its own transcript, and is ended by its own token alone.

use std::sync::Arc;

use futures::future;
use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Task};
use undertext::model::{Ask, Delta, Model, Reply};
use undertext::record::{Clock, MemoryStorage, Recorder};
use undertext::setup::{self, Setup};
use undertext::tools::Toolbox;
use undertext::transcript::{Reason, Run};

const RUNS: usize = 1000;

/// The run to which nothing is answered.
const HELD: usize = 7;

/// A model that answers nobody before all have asked, and says to each who it is.
#[derive(Debug)]
struct Patient(Arc<Barrier>);

impl Model for Patient {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let body = String::from_utf8_lossy(&ask.body);
        let (_, rest) = body.split_once("number ").unwrap();
        let digits = rest.split(|c: char| !c.is_ascii_digit());
        let number: usize = digits.into_iter().next().unwrap().parse().unwrap();
        let all = Arc::clone(&self.0);
        stream::once(async move {
            all.wait().await;
            if number == HELD {
                future::pending::<()>().await;
            }
            Delta::Reply(Box::new(Reply::text(format!("You are {number}."))))
        })
        .boxed()
    }
}

#[tokio::test]
async fn a_thousand_clones_work_at_once_and_one_is_ended_alone() {
    let setup = Setup::new(setup::Model::named("m"), "Be brief.");
    let model = Patient(Arc::new(Barrier::new(RUNS)));
    let agent = Agent::new(setup, Arc::new(model), Toolbox::new());
    let held = CancellationToken::new();
    let begin = |number: usize| {
        let cancel = if number == HELD {
            held.clone()
        } else {
            CancellationToken::new()
        };
        let agent = agent.clone();
        tokio::spawn(async move {
            let clock = Clock::System;
            let run = Run::new(clock.new_run(), "/nowhere");
            let storage = Box::new(MemoryStorage::default());
            let mut recorder = Recorder::create(storage, clock, run).unwrap();
            let task = Task::new(format!("You are number {number}."));
            let ended = agent.run(&mut recorder, Some(task), &cancel).await.unwrap();
            let is_recorded = recorder.view().ledger().ended == Some(ended.reason);
            (ended.reason, ended.text, is_recorded)
        })
    };
    let mut runs: Vec<_> = (0..RUNS).map(begin).collect();
    let last = runs.remove(HELD);
    let numbers = (0..RUNS).filter(|number| *number != HELD);
    for (number, run) in numbers.zip(runs) {
        let expected = (Reason::Finished, format!("You are {number}."), true);
        assert_eq!(run.await.unwrap(), expected);
    }
    // All others are done with the same agent, and it works on.
    assert!(!last.is_finished());
    held.cancel();
    let (reason, _, is_recorded) = last.await.unwrap();
    assert_eq!((reason, is_recorded), (Reason::Interrupted, true));
}
