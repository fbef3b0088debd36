//! The side of [`Hands`](super::Hands) that works: takes orders, runs tools, answers each once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::exchange::Status;
#[cfg(target_os = "linux")]
use crate::hands::hints::Hints;
#[cfg(target_os = "linux")]
use crate::hands::left::Left;
#[cfg(target_os = "linux")]
use crate::hands::limits::Limits;
use crate::hands::vanishing::Vanishing;
#[cfg(target_os = "linux")]
use crate::hands::watched::Watched;
use crate::hands::{Answer, Ask, Order, look};
use crate::id::CallId;
use crate::tools::background::Jobs;
use crate::tools::external::{self, External};
use crate::tools::scope::{OUTSIDE, Site};
use crate::tools::walk::{self, Watch};
use crate::tools::workspace::Workspace;
use crate::tools::{Outcome, bash, edit, family, glob, grep, hook, job, read, write};

/// What all calls share.
#[derive(Debug)]
pub(super) struct Bench {
    workspace: Arc<Workspace>,
    tools: Vec<External>,
    jobs: Jobs,
    /// Whether all that descends from this process is what tools started.
    alone: bool,
    /// What is added to failures that the sandbox explains.
    #[cfg(target_os = "linux")]
    hints: Option<Hints>,
    /// What is told of when it changes.
    #[cfg(target_os = "linux")]
    watched: Option<Watched>,
    /// What processes may take together.
    #[cfg(target_os = "linux")]
    limits: Option<Arc<Limits>>,
    /// Where what is written does not last.
    #[cfg(target_os = "linux")]
    vanishing: Option<Vanishing>,
    /// What is told of when a run ends.
    #[cfg(target_os = "linux")]
    left: Option<Left>,
}

impl Bench {
    /// The bench in this workspace, with these tools beside the built-in ones.
    pub(super) fn new(workspace: Workspace, tools: Vec<External>) -> Self {
        Self {
            workspace: Arc::new(workspace),
            tools,
            jobs: Jobs::default(),
            alone: false,
            #[cfg(target_os = "linux")]
            hints: None,
            #[cfg(target_os = "linux")]
            watched: None,
            #[cfg(target_os = "linux")]
            limits: None,
            #[cfg(target_os = "linux")]
            vanishing: None,
            #[cfg(target_os = "linux")]
            left: None,
        }
    }

    /// The same in a process that does nothing else: whatever nobody waits for is ended.
    #[cfg(target_os = "linux")]
    pub(super) fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// The same, held to bounds and limits.
    #[cfg(target_os = "linux")]
    pub(super) fn held(mut self, hints: Hints, limits: Arc<Limits>) -> Self {
        self.limits = Some(limits);
        self.hints = Some(hints);
        let protected = self.workspace.protected();
        self.watched = protected.map(|protected| Watched::new(self.workspace.root(), protected));
        self
    }

    /// The same, which tells of what is written and does not last, and of what runs leave behind.
    #[cfg(target_os = "linux")]
    pub(super) fn telling(mut self, vanishing: Option<Vanishing>, left: Left) -> Self {
        self.vanishing = vanishing;
        self.left = Some(left);
        self
    }

    /// Ends what the last call left behind, whatever it did to escape.
    fn sweep(&self) {
        if self.alone && !self.jobs.is_running() {
            family::end_strays();
        }
    }
}

/// Serves until nobody can ask any more; then ends what still runs, and waits for it.
pub(super) async fn serve(
    bench: Bench,
    mut asked: mpsc::UnboundedReceiver<Ask>,
    answer: mpsc::UnboundedSender<Answer>,
) {
    let bench = Arc::new(bench);
    let mut running: HashMap<Id, (CallId, CancellationToken)> = HashMap::new();
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            ask = asked.recv() => match ask {
                Some(Ask::Order(order)) => {
                    let (call, cancel) = (order.call, CancellationToken::new());
                    let task = calls.spawn(perform(Arc::clone(&bench), order, cancel.clone()));
                    running.insert(task.id(), (call, cancel));
                }
                Some(Ask::Cancel(call)) => {
                    for (_, cancel) in running.values().filter(|(other, _)| *other == call) {
                        cancel.cancel();
                    }
                }
                Some(Ask::EndJobs) => {
                    bench.jobs.end_all().await;
                    answer.send(Answer::JobsEnded).ok();
                }
                Some(Ask::Sign) => {
                    answer.send(Answer::Sign).ok();
                }
                None => break,
            },
            Some(done) = calls.join_next_with_id() => {
                let (task, outcome) = match done {
                    Ok((task, outcome)) => (task, outcome),
                    Err(error) => (error.id(), failed()),
                };
                if let Some((call, _)) = running.remove(&task) {
                    if running.is_empty() {
                        bench.sweep();
                    }
                    let outcome = Box::new(outcome);
                    answer.send(Answer::Done { call, outcome }).ok();
                }
            }
        }
    }
    for (_, cancel) in running.values() {
        cancel.cancel();
    }
    while calls.join_next().await.is_some() {}
    bench.jobs.end_all().await;
}

/// Performs one order.
async fn perform(bench: Arc<Bench>, order: Order, cancel: CancellationToken) -> Outcome {
    let Order {
        call,
        tool,
        arguments,
        cwd,
        known,
        chars,
        timeout_ms,
    } = order;
    let usual = timeout_ms.map(Duration::from_millis);
    let jobs = &bench.jobs;
    let site = Site {
        call,
        workspace: Arc::clone(&bench.workspace),
        cwd,
        known,
        chars,
    };
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_mut, reason = "nothing is added there")
    )]
    let mut outcome = match tool.as_str() {
        "Bash" => bash::run(&site, &arguments, usual, jobs, &cancel).await,
        hook::NAME => hook::run(&site, &arguments, usual.unwrap_or(bash::LIMIT), &cancel).await,
        look::LEFT => left(Arc::clone(&bench)).await,
        name if look::is_one(name) => looked(site, tool.clone(), arguments).await,
        "Job" => job::run(jobs, &arguments, usual.unwrap_or(bash::LIMIT), &cancel).await,
        "Read" => file(read::run, site, arguments).await,
        "Write" => file(write::run, site, arguments).await,
        "Edit" => file(edit::run, site, arguments).await,
        "Grep" => search(grep::run, site, arguments, cancel).await,
        "Glob" => search(glob::run, site, arguments, cancel).await,
        name => match bench.tools.iter().find(|tool| tool.spec().name == name) {
            Some(tool) => external::run(&site, tool, &arguments, usual, &cancel).await,
            None => Outcome::error(format!("There is no tool {name} here.")),
        },
    };
    let is_held = bench.workspace.is_confined();
    if !is_held && outcome.status == Status::Denied && outcome.content.contains(OUTSIDE) {
        outcome.add_line(
            "[commands reach it; the user lets file tools act there by running in a directory that \
             holds it (-C)]",
        );
    }
    #[cfg(target_os = "linux")]
    if let Some(hints) = &bench.hints {
        hints.add(&tool, &mut outcome);
    }
    // What is read is not changed, and a hook's output is for a program.
    #[cfg(target_os = "linux")]
    let reads = matches!(
        tool.as_str(),
        "Read" | "Grep" | "Glob" | hook::NAME | look::LEFT
    ) || look::is_one(&tool);
    #[cfg(target_os = "linux")]
    if let Some(watched) = bench.watched.as_ref().filter(|_| !reads) {
        watched.tell(&mut outcome);
    }
    #[cfg(target_os = "linux")]
    if let Some(limits) = bench.limits.as_ref().filter(|_| !reads) {
        limits.tell(&mut outcome);
    }
    #[cfg(target_os = "linux")]
    if let Some(vanishing) = bench.vanishing.as_ref().filter(|_| !reads) {
        vanishing.tell(&mut outcome);
    }
    outcome.clipped(chars, call)
}

/// Runs a file tool where it may block. It is short: once begun it is not cut off.
async fn file(tool: fn(&Site, &str) -> Outcome, site: Site, arguments: String) -> Outcome {
    let done = tokio::task::spawn_blocking(move || tool(&site, &arguments)).await;
    done.unwrap_or_else(|_| failed())
}

/// Looks at what a run left behind, where that may block.
async fn left(bench: Arc<Bench>) -> Outcome {
    let look = move || {
        #[cfg(target_os = "linux")]
        if let Some(left) = &bench.left {
            return left.perform();
        }
        drop(bench);
        Outcome::ok("[]")
    };
    let done = tokio::task::spawn_blocking(look).await;
    done.unwrap_or_else(|_| failed())
}

/// Looks at the workspace where that may block. It is not cut off.
async fn looked(site: Site, name: String, arguments: String) -> Outcome {
    let look = move || look::perform(&site, &name, &arguments);
    let done = tokio::task::spawn_blocking(look).await;
    done.unwrap_or_else(|_| failed())
}

/// Runs a search where it may block. It ends early when it is cancelled, given up or takes long.
async fn search(
    tool: fn(&Site, &str, &Watch) -> Outcome,
    site: Site,
    arguments: String,
    cancel: CancellationToken,
) -> Outcome {
    let late = CancellationToken::new();
    let watch = Watch::new(cancel, late.clone());
    let mut task = tokio::task::spawn_blocking(move || tool(&site, &arguments, &watch));
    let given_up = late.drop_guard();
    let done = tokio::select! {
        done = &mut task => done,
        () = tokio::time::sleep(walk::LONGEST) => {
            drop(given_up);
            task.await
        }
    };
    done.unwrap_or_else(|_| failed())
}

/// The answer to a call whose tool did not come to an end of its own.
fn failed() -> Outcome {
    Outcome::error("The tool itself failed; what it did until then may have taken effect.")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::exchange::Status;
    use crate::id::EntryId;

    /// A search that ends when it is told to, and then says how through the place it was given.
    fn endless(_: &Site, place: &str, watch: &Watch) -> Outcome {
        loop {
            if let Some(status) = watch.ended() {
                std::fs::write(place, status.word()).unwrap();
                return Outcome::new(status, "");
            }
            std::thread::yield_now();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_ends_when_it_is_cancelled_or_given_up_or_takes_long() {
        let place = tempfile::tempdir().unwrap();
        let site = Site {
            call: CallId::new(EntryId(5), 1),
            workspace: Arc::new(Workspace::open(place.path(), None, Vec::new()).unwrap()),
            cwd: None,
            known: None,
            chars: 1000,
        };
        let note = place.path().join("note");
        let begin = |cancel: &CancellationToken| {
            let place = note.to_str().unwrap().to_owned();
            search(endless, site.clone(), place, cancel.clone())
        };

        let cancel = CancellationToken::new();
        let (outcome, ()) = tokio::join!(begin(&cancel), async { cancel.cancel() });
        assert_eq!(outcome.status, Status::Cancelled);

        let cancel = CancellationToken::new();
        let (outcome, ()) = tokio::join!(begin(&cancel), tokio::time::advance(walk::LONGEST));
        assert_eq!(outcome.status, Status::Timeout);

        std::fs::remove_file(&note).unwrap();
        let given_up = tokio::time::timeout(Duration::ZERO, begin(&cancel)).await;
        assert!(given_up.is_err());
        // It is noticed by the thread of the search, which nobody waits for.
        while !note.exists() {
            std::thread::yield_now();
        }
    }
}
