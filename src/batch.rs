//! Many runs at once, never more than so many.
//!
//! A [`Batch`] is given work, such as a run of a shared [`Agent`](crate::agent::Agent), and gives back
//! what came of it in the order in which it ends. It takes no more work than may go on at once, so
//! whoever has a million tasks makes the next one when there is room for it. [`each`] does that over
//! any list. What a run needs (a recorder, hands in a workspace) is made by the work itself, when it
//! begins.
//!
//! ```
//! use std::num::NonZeroUsize;
//! use std::sync::Arc;
//!
//! use futures::StreamExt as _;
//! use tokio_util::sync::CancellationToken;
//! use undertext::agent::{Agent, AgentError, Finished, Task};
//! use undertext::batch;
//! use undertext::model::{Reply, Scripted};
//! use undertext::record::{Clock, MemoryStorage, Recorder};
//! use undertext::setup::{Model, Setup};
//! use undertext::tools::Toolbox;
//! use undertext::transcript::Run;
//!
//! async fn run(agent: Agent, word: u32, cancel: CancellationToken) -> Result<Finished, AgentError> {
//!     let clock = Clock::System;
//!     let run = Run::new(clock.new_run(), "/nowhere");
//!     let mut recorder = Recorder::create(Box::new(MemoryStorage::default()), clock, run)?;
//!     let task = Task::new(format!("Say {word}."));
//!     agent.run(&mut recorder, Some(task), &cancel).await
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Scripted::new((0..1000).map(|_| Reply::text("Done.").into()));
//! let agent = Agent::new(Setup::new(Model::named("m"), ""), Arc::new(model), Toolbox::new());
//! let jobs = NonZeroUsize::new(16).ok_or("none")?;
//! // Cancelled, it begins no more runs, and those under way end resumable.
//! let cancel = CancellationToken::new();
//! let runs = batch::each(0..1000, jobs, cancel, |word, cancel| run(agent.clone(), word, cancel));
//! let finished = runs.filter(|run| std::future::ready(matches!(run, Ok(Ok(_)))));
//! assert_eq!(finished.count().await, 1000);
//! # Ok(())
//! # }
//! ```

use std::num::NonZeroUsize;

use futures::{Stream, stream};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// Work that goes on at once, on all threads of the runtime. Dropped, it ends what is under way at
/// once; [cancelled](Self::cancel), orderly.
#[derive(Debug)]
pub struct Batch<T> {
    jobs: NonZeroUsize,
    open: JoinSet<T>,
    cancel: CancellationToken,
}

impl<T: Send + 'static> Batch<T> {
    /// Nothing yet, of which at most so many go on at once. The token cancels all of it.
    pub fn new(jobs: NonZeroUsize, cancel: CancellationToken) -> Self {
        Self {
            jobs,
            open: JoinSet::new(),
            cancel,
        }
    }

    /// How many go on, or have ended and were not asked for yet.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Whether as many go on as may.
    pub fn is_full(&self) -> bool {
        self.open() >= self.jobs.get()
    }

    /// Begins work, which is given a token of its own: one of several can be cancelled. To be called
    /// within a tokio runtime.
    ///
    /// If there is no room it first waits until something ends, and returns what came of that.
    pub async fn begin<F>(
        &mut self,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Option<Result<T, JoinError>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let ended = if self.is_full() {
            self.next().await
        } else {
            None
        };
        self.open.spawn(work(self.cancel.child_token()));
        ended
    }

    /// What came of the next that ends; `None` if nothing goes on. An error is a panic of the work.
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Result<T, JoinError>> {
        self.open.join_next().await
    }

    /// Asks all that goes on to end.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Whether all that goes on was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

/// Works on each task, on at most so many at once: what comes of them, in the order in which they end.
///
/// A task is taken when there is room for it and somebody reads the stream, so that nothing piles up
/// on either side. Once the token is cancelled no more are taken, and what is under way is read to its
/// end. To be read within a tokio runtime.
pub fn each<I, F>(
    tasks: I,
    jobs: NonZeroUsize,
    cancel: CancellationToken,
    work: impl FnMut(I::Item, CancellationToken) -> F,
) -> impl Stream<Item = Result<F::Output, JoinError>>
where
    I: IntoIterator,
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let batch = Batch::new(jobs, cancel);
    let begun = (batch, tasks.into_iter(), work);
    stream::unfold(begun, |(mut batch, mut tasks, mut work)| async move {
        while !batch.is_full() && !batch.is_cancelled() {
            let Some(task) = tasks.next() else { break };
            batch.begin(|cancel| work(task, cancel)).await;
        }
        let ended = batch.next().await?;
        Some((ended, (batch, tasks, work)))
    })
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt as _;

    use super::*;
    use crate::agent::Agent;

    fn jobs(number: usize) -> NonZeroUsize {
        NonZeroUsize::new(number).unwrap()
    }

    #[test]
    fn an_agent_can_be_sent_and_shared() {
        fn holds<T: Clone + Send + Sync + 'static>() {}
        holds::<Agent>();
    }

    #[tokio::test]
    async fn no_task_is_taken_before_there_is_room_for_it() {
        let taken = Arc::new(AtomicUsize::new(0));
        let tasks = (0..100).inspect(|_| {
            taken.fetch_add(1, Ordering::Relaxed);
        });
        let work = |task: usize, _| ready(task);
        let mut each = Box::pin(each(tasks, jobs(3), CancellationToken::new(), work));
        assert_eq!(taken.load(Ordering::Relaxed), 0, "nobody reads yet");
        let mut seen = Vec::new();
        while let Some(task) = each.next().await {
            seen.push(task.unwrap());
            let open = taken.load(Ordering::Relaxed) - seen.len();
            assert!(open < 3, "{open} wait or go on");
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn what_goes_on_is_cancelled_together_and_nothing_begins_after_it() {
        let cancel = CancellationToken::new();
        let work = |task: usize, cancel: CancellationToken| async move {
            cancel.cancelled().await;
            task
        };
        let each = each(0.., jobs(2), cancel.clone(), work);
        let (ended, ()) = tokio::join!(each.count(), async { cancel.cancel() });
        assert_eq!(ended, 2);
    }

    #[tokio::test]
    async fn work_that_panics_costs_nobody_else_anything() {
        let mut batch = Batch::new(jobs(1), CancellationToken::new());
        assert!(batch.begin(|_| async { panic!("once") }).await.is_none());
        let lost = batch.begin(|_| async { 2 }).await.unwrap();
        assert!(lost.unwrap_err().is_panic());
        assert_eq!(batch.next().await.unwrap().unwrap(), 2);
        assert!(batch.next().await.is_none());
    }
}
