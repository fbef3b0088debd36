//! The run of one line, from its beginning to its end.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, AgentError, Task};
use undertext::config::{Endpoint, Settings};
use undertext::model::{Client, Timeouts};
use undertext::record::{Clock, Recorder};
use undertext::secret::Known;
use undertext::transcript::{Reason, Run};

use crate::cli::batch::job::Job;
use crate::cli::batch::outcome::Outcome;
use crate::cli::batch::spent::{Meter, Spent};
use crate::cli::exit::{Exit, Failure};
use crate::cli::start::Start;
use crate::cli::{Process, confined, made, offline, run};

/// What all runs of a batch share.
#[derive(Debug)]
pub(super) struct Common {
    /// The process.
    pub(super) process: Process,
    /// What they used.
    pub(super) spent: Spent,
    /// Whoever tells people what happens.
    pub(super) tell: mpsc::UnboundedSender<Begins>,
    /// Who asks the servers: one for each, with its connections.
    pub(super) clients: Mutex<Vec<(Endpoint, Timeouts, Client)>>,
}

/// A run begins to work on a line.
#[derive(Debug)]
pub(super) struct Begins {
    /// The line.
    pub(super) number: u64,
    /// What a person knows the run by.
    pub(super) run: String,
    /// What they should know of it.
    pub(super) remarks: Vec<String>,
    /// What must be shown nowhere.
    pub(super) known: Known,
}

/// A line that was worked on.
#[derive(Debug)]
pub(super) struct Worked {
    /// What came of it.
    pub(super) outcome: Outcome,
    /// The workspace that is free again.
    pub(super) workspace: PathBuf,
}

impl Common {
    /// The client for a server, which has what is open to it.
    fn client(&self, start: &Start) -> Result<Client, Failure> {
        // The offline model is served for each run by itself.
        if start.offline {
            return made::client(start);
        }
        let Settings { timeouts, .. } = &start.settings;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clients
            .iter()
            .find(|(endpoint, times, _)| *endpoint == start.endpoint && times == timeouts);
        if let Some((.., client)) = known {
            return Ok(client.clone());
        }
        let client = made::client(start)?;
        clients.push((start.endpoint.clone(), *timeouts, client.clone()));
        Ok(client)
    }
}

/// Works on a line until its run ends. Whatever goes wrong is its result.
pub(super) async fn work(common: Arc<Common>, job: Job, cancel: CancellationToken) -> Worked {
    let (number, id, workspace) = (job.number, job.id.clone(), job.workspace.clone());
    // What one run cannot survive is nothing to the others.
    let done = AssertUnwindSafe(Box::pin(go(&common, job, &cancel))).catch_unwind();
    let done = done.await.unwrap_or_else(|_| {
        let text = "the run came to no end of its own; its transcript holds what it did";
        Err(Failure::new(Exit::Unfinished, anyhow::Error::msg(text)))
    });
    let outcome = done.unwrap_or_else(|failure| Outcome::failed(number, id, &failure));
    Worked { outcome, workspace }
}

async fn go(common: &Common, job: Job, cancel: &CancellationToken) -> Result<Outcome, Failure> {
    let Job {
        number,
        id,
        args,
        mut start,
        workspace,
        task,
        begun,
    } = job;
    let process = &common.process;
    let taken_up = begun
        .as_deref()
        // A long one is read for a while, in which others go on.
        .map(|path| tokio::task::block_in_place(|| run::opened(path, &args, &start, process)));
    let taken_up = taken_up.transpose()?;
    start.keep_readable(&workspace);
    let _served = offline::serve(&args, &mut start, taken_up.as_ref()).await?;
    let mut remarks = start.remarks.clone();
    // Before its hands are made: they may leave marks in the workspace.
    let mut lock = run::lock(&args, &workspace, process, &mut remarks)?;
    let before = taken_up.as_ref().and_then(|it| it.view().setup());
    let new = match &taken_up {
        Some(recorder) => recorder.run(),
        None => Clock::System.new_run(),
    };
    let by = (confined::later(process), || common.client(&start), process);
    let (agent, more) = made::agent(&args, &start, (&workspace, new), before, by).await?;
    remarks.extend(more);
    if common.spent.counts_money() && agent.setup().policy.prices.is_none() {
        agent.close().await;
        return Err(Failure::usage(
            "prices unknown: cost is not counted for this model, so that --max-cost cannot hold; give \
             model.prices.input and model.prices.output",
        ));
    }
    let mut recorder = match taken_up {
        Some(recorder) => recorder,
        None => run::create(
            &start,
            Run {
                batch: Some(task),
                ..run::first(&args, new, &workspace)
            },
        )?,
    };
    recorder.keep_out(start.known.clone());
    if let Some(lock) = &mut lock {
        lock.name(new);
    }
    common
        .tell
        .send(Begins {
            number,
            run: new.short(),
            remarks,
            known: start.known.clone(),
        })
        .ok();
    // One that was killed early may not have been told yet.
    let is_told = recorder.view().working().task.is_some();
    let said = start.task.take().filter(|_| !is_told).map(|text| Task {
        text,
        attachments: std::mem::take(&mut start.attachments),
    });
    let ended = worked(&agent, &mut recorder, said, cancel, &common.spent).await;
    agent.close().await;
    drop(lock);
    let location = recorder.storage().location();
    let outcome = Outcome::of(number, id, location, recorder.view());
    match ended {
        Ok(()) => Ok(outcome),
        Err(error) => Ok(Outcome {
            reason: matches!(error, AgentError::Record(_)).then_some(Reason::Storage),
            exit: exit(&error) as u8,
            error: Some(format!("{:#}", anyhow::Error::new(error))),
            text: None,
            ..outcome
        }),
    }
}

/// Lets the agent work, and counts what that takes.
async fn worked(
    agent: &Agent,
    recorder: &mut Recorder,
    said: Option<Task>,
    cancel: &CancellationToken,
    spent: &Spent,
) -> Result<(), AgentError> {
    let mut meter = Meter::new(spent, agent.setup().policy.prices.clone());
    let mut events = agent.events();
    let ended = {
        let mut run = std::pin::pin!(agent.run(recorder, said, cancel));
        loop {
            tokio::select! {
                biased;
                Some(progress) = events.next() => meter.take(&progress),
                ended = &mut run => break ended,
            }
        }
    };
    while let Some(Some(progress)) = events.next().now_or_never() {
        meter.take(&progress);
    }
    ended.map(drop)
}

fn exit(error: &AgentError) -> Exit {
    match error {
        AgentError::NoTask | AgentError::EmptyTask | AgentError::NoHands | AgentError::Tools(_) => {
            Exit::Usage
        }
        AgentError::Record(_) => Exit::Transcript,
    }
}
