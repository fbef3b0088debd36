//! The lines of a batch one after another: which is begun when, and what is told of it.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinError;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use undertext::batch::Batch;
use undertext::config::{self, Sections};
use undertext::model::offline;
use undertext::record::runs;
use undertext::record::{Clock, Stopwatch};
use undertext::transcript::Reason;

use crate::cli::batch::BatchArgs;
use crate::cli::batch::before::{self, Which};
use crate::cli::batch::job::{self, Job, Jobs};
use crate::cli::batch::outcome::{Outcome, Results};
use crate::cli::batch::spent::Spent;
use crate::cli::batch::tasks::{self, Key, Line, Tasks};
use crate::cli::batch::work::{self, Begins, Common, Worked};
use crate::cli::exit::{Exit, Failure};
use crate::cli::lock::BatchLock;
use crate::cli::term::{Look, Term};
use crate::cli::{Process, amount, entry, stop};

/// How many lines are held that wait for a workspace, while lines behind them are begun.
const AHEAD: usize = 256;

/// How many wrong lines are told to people one by one, and how many remarks.
const TOLD: usize = 10;

/// What is said when all is ended at once.
const AT_ONCE: &str = "ended at once; the same command goes on where it stopped";

/// A batch that goes on.
struct Going<'a> {
    jobs: Jobs<'a>,
    tasks: Tasks<BufReader<File>>,
    /// All lines were read.
    is_read: bool,
    /// Lines whose workspace was in use when they were read.
    waiting: VecDeque<Job>,
    /// The workspaces that are in use.
    busy: Vec<PathBuf>,
    common: Arc<Common>,
    batch: Batch<Worked>,
    /// Why no more lines are begun.
    stopped: Option<Exit>,
    results: Results,
    tally: Tally,
    since: Stopwatch,
    remarks: Vec<String>,
    term: &'a mut Term,
}

/// How many lines came to what.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    finished: u64,
    /// Ended without finishing.
    unfinished: u64,
    /// No run could work on them.
    wrong: u64,
    /// Done before; how many of them did not finish.
    before: u64,
    unfinished_before: u64,
}

/// Works on all lines, as far as limits and the person let it.
pub(super) async fn go(
    args: &BatchArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let mut flags = Sections::default();
    args.asked.say(&mut flags);
    let settings = config::load(&args.settings.sources(&process.environment, flags))?;
    let typed = process.here(&args.tasks);
    let from = tasks::open(&typed)?;
    let path = fs::canonicalize(&typed).unwrap_or(typed);
    let which = Which {
        file: path.to_string_lossy().into_owned(),
        name: args.name.clone(),
    };
    let transcripts = settings.transcripts_dir(&process.environment)?;
    let _lock = BatchLock::take(&which.file, which.name.as_deref(), process)?;
    let output = args.output.as_deref().map(|file| process.here(file));
    let results = Results::to(output.as_deref(), &path, term)?;
    let (tell, mut told) = mpsc::unbounded_channel();
    let most_tokens = args.max_tokens.map(u64::from);
    let spent = Spent::up_to(most_tokens, args.max_cost.map(|most| most.0));
    let mut going = Going {
        jobs: Jobs {
            args,
            process,
            begun: before::begun(&transcripts, &which)?,
            which,
            directory: path.parent().map(PathBuf::from).unwrap_or_default(),
            has_model: settings.model.name.is_some(),
            has_server: settings.model.name.as_deref() == Some(offline::NAME)
                || settings.endpoint(&process.environment).is_ok(),
        },
        tasks: Tasks::new(from),
        is_read: false,
        waiting: VecDeque::new(),
        busy: Vec::new(),
        common: Arc::new(Common {
            process: process.copy(),
            spent,
            tell,
            clients: Mutex::default(),
        }),
        batch: Batch::new(args.jobs, CancellationToken::new()),
        stopped: None,
        results,
        tally: Tally::default(),
        since: Clock::System.stopwatch(),
        remarks: Vec::new(),
        term,
    };
    going.all(&mut told).await?;
    going.tell_all()
}

impl Going<'_> {
    /// Works on all lines.
    async fn all(&mut self, told: &mut UnboundedReceiver<Begins>) -> Result<(), Failure> {
        let mut signals = stop::watch(AT_ONCE.to_owned())?;
        let common = Arc::clone(&self.common);
        let mut over = pin!(common.spent.over().fuse());
        let time = self.jobs.args.max_time;
        let late = time.map(|time| Clock::System.now().plus_ms(time.0.0));
        let mut late = pin!(async {
            match late {
                Some(late) => Clock::System.comes(late).await,
                None => std::future::pending().await,
            }
        });
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let more = self.begin_one().await?;
            if !more && self.batch.open() == 0 {
                return Ok(());
            }
            tokio::select! {
                biased;
                Some(exit) = signals.recv() => {
                    if matches!(self.stopped, Some(Exit::Interrupted | Exit::Terminated)) {
                        self.say(Look::Bad, AT_ONCE);
                        self.stopped = Some(exit);
                        return Ok(());
                    }
                    self.stop(exit, "ending all runs; once more ends them at once");
                }
                () = &mut over, if self.stopped.is_none() => {
                    self.stop(Exit::Limit, "a limit of all runs together is reached; ending them");
                }
                () = &mut late, if self.stopped.is_none() => {
                    self.stop(Exit::Limit, "the time of all runs together is up; ending them");
                }
                Some(begins) = told.recv() => self.begins(&begins),
                Some(ended) = self.batch.next() => self.ended(ended)?,
                _ = tick.tick(), if self.term.is_live() => {}
                () = std::future::ready(()), if more => continue,
            }
            self.tick();
        }
    }

    /// Begins no more lines, and asks those under way to end.
    fn stop(&mut self, exit: Exit, why: &str) {
        self.stopped = Some(exit);
        self.batch.cancel();
        self.say(Look::Plain, why);
    }

    /// Looks at one line more, if there is room for its run: `false` if nothing is left to be looked at
    /// before a run ends.
    async fn begin_one(&mut self) -> Result<bool, Failure> {
        if self.stopped.is_some() || self.batch.is_full() {
            return Ok(false);
        }
        let free = self.waiting.iter().position(|job| self.is_free(job));
        if let Some(job) = free.and_then(|at| self.waiting.remove(at)) {
            self.begin(job).await;
            return Ok(true);
        }
        if self.is_read || self.waiting.len() >= AHEAD {
            return Ok(false);
        }
        match self.tasks.next() {
            Ok(Some(line)) => self.take(line)?,
            Ok(None) => self.is_read = true,
            // What was read goes on; the rest is for the next time.
            Err(error) => {
                self.is_read = true;
                self.tally.wrong += 1;
                let file = self.jobs.args.tasks.display().to_string();
                self.say(Look::Bad, &format!("cannot read more of {file}: {error}"));
            }
        }
        Ok(true)
    }

    /// Whether nobody works in a job's workspace.
    fn is_free(&self, job: &Job) -> bool {
        let mut busy = self.busy.iter();
        job.args.share_workspace || !busy.any(|busy| job::overlap(busy, &job.workspace))
    }

    async fn begin(&mut self, job: Job) {
        self.busy.push(job.workspace.clone());
        self.term.hide(&job.start.known);
        let common = Arc::clone(&self.common);
        // There is room, so nothing ends in its place.
        self.batch
            .begin(|cancel| work::work(common, job, cancel))
            .await;
    }

    /// Takes a line that was read: it is wrong, done, or work.
    fn take(&mut self, line: Line) -> Result<(), Failure> {
        let (number, key) = (line.number, line.key);
        let task = match line.task {
            Ok(task) => task,
            Err(wrong) => {
                let outcome = Outcome::failed(number, None, &Failure::usage(wrong));
                self.tell_wrong(&outcome);
                return Ok(self.results.write_once(&outcome, self.term)?);
            }
        };
        let id = task.id.clone();
        let is_done = self.is_done(number, key, id.as_deref());
        let job = is_done.and_then(|is_done| {
            let job = (!is_done).then(|| self.jobs.job(number, key, *task));
            job.transpose()
        });
        match job {
            Ok(None) => {}
            Ok(Some(job)) => self.waiting.push_back(job),
            // What is wrong with the first is most often wrong with all: nobody named a model, or a key.
            Err(failure) if self.is_first(&failure) => return Err(failure),
            Err(failure) => {
                let outcome = Outcome::failed(number, id, &failure);
                self.tell_wrong(&outcome);
                self.results.write_once(&outcome, self.term)?;
            }
        }
        Ok(())
    }

    /// Whether a failure is that of the first task, and would be one of others that say as little.
    fn is_first(&self, failure: &Failure) -> bool {
        let Tally { wrong, before, .. } = self.tally;
        let is_first = wrong + before == 0 && self.batch.open() == 0 && self.waiting.is_empty();
        let says_little = !self.jobs.has_model || !self.jobs.has_server;
        is_first && failure.exit == Exit::Usage && says_little
    }

    /// Whether a line was done before. Its result is written again if it is wanted.
    fn is_done(&mut self, number: u64, key: Key, id: Option<&str>) -> Result<bool, Failure> {
        let Some(begun) = self.jobs.begun.get(&key) else {
            return Ok(false);
        };
        let path = begun.path.clone();
        let Some(reason) = before::ended(&path)? else {
            return Ok(false);
        };
        let finished = reason == Reason::Finished;
        if before::was_stopped(reason) || self.jobs.args.retry && !finished {
            return Ok(false);
        }
        self.tally.before += 1;
        self.tally.unfinished_before += u64::from(!finished);
        let again = self.jobs.args.all;
        if again || self.results.are_kept() {
            let view = runs::read(&path)?.view;
            let path = path.display().to_string();
            let outcome = Outcome::of(number, id.map(str::to_owned), path, &view);
            if again && !self.results.are_kept() {
                self.results.write(&outcome, self.term)?;
            } else {
                self.results.write_once(&outcome, self.term)?;
            }
        }
        Ok(true)
    }

    /// Tells that a run begins.
    fn begins(&mut self, begins: &Begins) {
        self.term.hide(&begins.known);
        for remark in &begins.remarks {
            if self.remarks.len() < TOLD && !self.remarks.contains(remark) {
                self.remarks.push(remark.clone());
                self.say(Look::Faint, remark);
            }
        }
        if self.jobs.args.logs.verbose > 0 {
            let (number, run) = (begins.number, &begins.run);
            self.say(Look::Plain, &format!("line {number}: run {run} begins"));
        }
    }

    /// Takes what became of a line.
    fn ended(&mut self, ended: Result<Worked, JoinError>) -> Result<(), Failure> {
        let Worked { outcome, workspace } = ended.map_err(|error| {
            let error = anyhow::Error::new(error).context("a run came to no end of its own");
            Failure::new(Exit::Unfinished, error)
        })?;
        if let Some(at) = self.busy.iter().position(|busy| *busy == workspace) {
            self.busy.swap_remove(at);
        }
        match outcome.reason {
            _ if outcome.error.is_some() => self.tell_wrong(&outcome),
            Some(Reason::Finished) => self.tally.finished += 1,
            Some(_) | None => self.tally.unfinished += 1,
        }
        if let (Some(reason), 1..) = (outcome.reason, self.jobs.args.logs.verbose) {
            let (number, reason) = (outcome.line, reason.word());
            let totals = outcome.totals.as_ref().map(entry::totals);
            let totals = totals.unwrap_or_default();
            self.say(Look::Plain, &format!("line {number}: {reason}, {totals}"));
        }
        Ok(self.results.write(&outcome, self.term)?)
    }

    /// Counts a line on which no run could work, and tells the first ones.
    fn tell_wrong(&mut self, outcome: &Outcome) {
        self.tally.wrong += 1;
        let error = outcome.error.as_deref().unwrap_or_default();
        let place = format!("line {}", outcome.line);
        let text = if error.starts_with(&place) {
            error.to_owned()
        } else {
            format!("{place}: {error}")
        };
        match usize::try_from(self.tally.wrong) {
            Ok(number) if number <= TOLD => self.say(Look::Bad, &text),
            Ok(number) if number == TOLD + 1 => {
                self.say(Look::Bad, "more is wrong; the results say what");
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// Shows the live line anew.
    fn tick(&mut self) {
        let Tally {
            finished,
            unfinished,
            wrong,
            before,
            ..
        } = self.tally;
        let running = format!("{} running", amount::count(self.batch.open() as u64));
        let parts = [
            Some(running),
            Some(format!("{} finished", amount::count(finished))),
            some(unfinished + wrong, "failed"),
            some(before, "done before"),
            Some(self.used()),
            Some(amount::time(self.since.ms())),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !self.jobs.args.logs.quiet {
            self.term.live(&parts.join(" · ")).ok();
        }
    }

    /// `12,040 tokens`, `12,040 tokens, $0.12`
    fn used(&self) -> String {
        let spent = &self.common.spent;
        let tokens = amount::of(spent.tokens(), "token");
        match spent.usd_micro() {
            0 => tokens,
            cost => format!("{tokens}, {}", amount::money(cost)),
        }
    }

    /// Tells what all came to, and says so to the shell.
    fn tell_all(mut self) -> Result<Exit, Failure> {
        let Tally {
            finished,
            unfinished,
            wrong,
            before,
            unfinished_before,
        } = self.tally;
        if finished + unfinished + wrong + before == 0 && self.stopped.is_none() {
            let file = self.jobs.args.tasks.display();
            return Err(Failure::usage(format!(
                "{file} holds no task; a line is one, such as {{\"task\": \"explain src/main.rs\"}}"
            )));
        }
        let parts = [
            Some(format!("{} finished", amount::count(finished))),
            some(unfinished, "ended without finishing"),
            some(wrong, "could not be worked on"),
            some(before, "done before"),
            Some(self.used()),
            Some(amount::time(self.since.ms())),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        self.say(Look::Faint, &format!("batch: {}", parts.join(", ")));
        if let Some(exit) = self.stopped {
            self.say(Look::Plain, "the same command goes on where it stopped");
            return Ok(exit);
        }
        if unfinished_before > 0 {
            let runs = amount::of(unfinished_before, "run");
            let text =
                format!("{runs} of those done before did not finish; --retry goes on with them");
            self.say(Look::Plain, &text);
        }
        Ok(match unfinished + wrong + unfinished_before {
            0 => Exit::Done,
            _ => Exit::Unfinished,
        })
    }

    /// Writes a line to standard error, unless people want to read only what went wrong.
    fn say(&mut self, look: Look, text: &str) {
        if !self.jobs.args.logs.quiet || look == Look::Bad {
            self.term.say(&[(look, text)]).ok();
        }
    }
}

/// `3 failed`, if there are any.
fn some(number: u64, what: &str) -> Option<String> {
    (number > 0).then(|| format!("{} {what}", amount::count(number)))
}
