//! Commands that run on after the call that started them: jobs.
//!
//! A job has the handle of its call. What it prints is kept in bounded memory, its beginning and
//! its end. Jobs belong to the hands that started them, and are ended with the run.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::id::CallId;
use crate::tools::capture::Capture;
use crate::tools::process::{Ended, Job, Process};

/// The most jobs that run at once.
pub(crate) const MOST: usize = 16;

/// How many are known, those that ended included.
const KNOWN: usize = 32;

/// How much is kept of the beginning of what a job printed, and how much of the end, in bytes.
const HALF: usize = 1 << 20;

/// The jobs of one side of hands.
#[derive(Debug, Default)]
pub(crate) struct Jobs(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    jobs: BTreeMap<CallId, Arc<Background>>,
    /// Whoever watches them; dropped, they end the processes.
    watchers: JoinSet<()>,
}

/// A job cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The call was given up before it began.
    #[error("the call was given up before it began")]
    GivenUp,
    /// There are enough.
    #[error(
        "{MOST} jobs run already, which is the most: end one with Job, or wait until one is done"
    )]
    TooMany,
    /// The system refuses.
    #[error("the shell could not be started")]
    System(#[source] io::Error),
}

impl Jobs {
    /// Starts a job under the handle of the call that asks for it, unless that was given up.
    pub(crate) fn start(
        &self,
        call: CallId,
        command: &str,
        job: &Job,
        given_up: &CancellationToken,
    ) -> Result<Arc<Background>, StartError> {
        let mut table = self.table();
        // Asked while the table is held: who gives calls up and then ends all jobs, ends this one
        // too or keeps it from beginning.
        if given_up.is_cancelled() {
            return Err(StartError::GivenUp);
        }
        while table.watchers.try_join_next().is_some() {}
        let running = |job: &&Arc<Background>| job.ended().is_none();
        if table.jobs.values().filter(running).count() >= MOST {
            return Err(StartError::TooMany);
        }
        let process = Process::start(job, None).map_err(StartError::System)?;
        let (tell, ended) = watch::channel(None);
        let background = Arc::new(Background {
            command: command.to_owned(),
            limit: job.limit,
            capture: Mutex::new(Capture::with_half(HALF)),
            cancel: CancellationToken::new(),
            ended,
        });
        let watched = Arc::clone(&background);
        table.watchers.spawn(async move {
            let take = |_, bytes: &[u8]| watched.capture().take(bytes);
            let ended = process.follow(&watched.cancel, take).await;
            tell.send_replace(Some(ended.unwrap_or(Ended::Cancelled)));
        });
        if let Some(before) = table.jobs.insert(call, Arc::clone(&background)) {
            before.cancel.cancel();
        }
        while table.jobs.len() > KNOWN {
            let oldest = table.jobs.iter().find(|(_, job)| job.ended().is_some());
            let Some(oldest) = oldest.map(|(call, _)| *call) else {
                break;
            };
            table.jobs.remove(&oldest);
        }
        Ok(background)
    }

    /// The job of this handle.
    pub(crate) fn get(&self, call: CallId) -> Option<Arc<Background>> {
        self.table().jobs.get(&call).cloned()
    }

    /// All that are known, by handle.
    pub(crate) fn all(&self) -> Vec<(CallId, Arc<Background>)> {
        let table = self.table();
        let jobs = table.jobs.iter();
        jobs.map(|(call, job)| (*call, Arc::clone(job))).collect()
    }

    /// Whether any has not ended yet.
    pub(crate) fn is_running(&self) -> bool {
        self.table().jobs.values().any(|job| job.ended().is_none())
    }

    /// Ends and forgets every job, and waits until their processes are gone.
    pub(crate) async fn end_all(&self) {
        let Table { jobs, mut watchers } = std::mem::take(&mut *self.table());
        for job in jobs.values() {
            job.cancel.cancel();
        }
        while watchers.join_next().await.is_some() {}
    }

    /// The table. Every change of it is whole, also if its thread then panicked.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One job.
#[derive(Debug)]
pub(crate) struct Background {
    /// What was asked for.
    pub(crate) command: String,
    /// How long it may run.
    pub(crate) limit: Duration,
    capture: Mutex<Capture>,
    cancel: CancellationToken,
    ended: watch::Receiver<Option<Ended>>,
}

impl Background {
    /// How it ended; `None` while it runs.
    pub(crate) fn ended(&self) -> Option<Ended> {
        let ended = *self.ended.borrow();
        // Whoever watches it may be gone, and took it along.
        ended.or_else(|| self.ended.has_changed().err().map(|_| Ended::Cancelled))
    }

    /// Waits until it and all its processes have ended.
    pub(crate) async fn wait(&self) {
        self.ended.clone().wait_for(Option::is_some).await.ok();
    }

    /// Ends it and all its processes, and waits until they are gone.
    pub(crate) async fn end(&self) {
        self.cancel.cancel();
        self.wait().await;
    }

    /// What it has printed so far.
    pub(crate) fn printed(&self) -> Capture {
        self.capture().clone()
    }

    fn capture(&self) -> MutexGuard<'_, Capture> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
