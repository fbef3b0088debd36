//! The lines of a batch one after another: which is begun when, and what is told of it.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
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
use crate::cli::batch::before::{self, Begun, Which};
use crate::cli::batch::job::{self, Job, Jobs, NO_MODEL};
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

/// What is said once when a line waits for another though there is room for its run.
const WAITS: &str =
    "tasks of one workspace work one after another; --share-workspace lets them work at once";

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
    /// No workspace has become free since all of them were looked at.
    is_looked_through: bool,
    /// The workspaces that are in use.
    busy: Vec<PathBuf>,
    common: Arc<Common>,
    batch: Batch<Worked>,
    /// Why no more lines are begun.
    stopped: Option<Exit>,
    /// A run was ended that the same command goes on with.
    is_left: bool,
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
        },
        tasks: Tasks::new(from),
        is_read: false,
        waiting: VecDeque::new(),
        is_looked_through: true,
        busy: Vec::new(),
        common: Arc::new(Common {
            process: process.copy(),
            spent,
            tell,
            clients: Mutex::default(),
        }),
        batch: Batch::new(args.jobs, CancellationToken::new()),
        stopped: None,
        is_left: false,
        results,
        tally: Tally::default(),
        since: Clock::System.stopwatch(),
        remarks: Vec::new(),
        term,
    };
    if settings.model.name.as_deref() != Some(offline::NAME) {
        let server = settings.endpoint(&process.environment).err();
        going.check_named(server.map(Failure::from), &path)?;
    }
    going.all(&mut told).await?;
    going.tell_all()
}

impl Going<'_> {
    /// Refuses tasks of which none can be worked on, since nobody names a model, or a server: what is wrong
    /// with one of them is wrong with all.
    fn check_named(&self, server: Option<Failure>, file: &Path) -> Result<(), Failure> {
        let Jobs {
            has_model, begun, ..
        } = &self.jobs;
        let has_server = server.is_none();
        let no_model = || Failure::usage(NO_MODEL);
        let Some(failure) = (!has_model).then(no_model).or(server) else {
            return Ok(());
        };
        let mut tasks = Tasks::new(tasks::open(file)?);
        let mut is_any = false;
        while let Ok(Some(line)) = tasks.next() {
            let Ok(task) = line.task else { continue };
            is_any = true;
            let works = begun.contains_key(&line.key)
                || (*has_model || task.names_model()) && (has_server || task.may_name_server());
            if works {
                return Ok(());
            }
        }
        if is_any { Err(failure) } else { Ok(()) }
    }

    /// Works on all lines.
    async fn all(&mut self, told: &mut UnboundedReceiver<Begins>) -> Result<(), Failure> {
        let mut signals = stop::watch(AT_ONCE, self.term.masks())?;
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
        if !self.is_looked_through {
            let free = self.waiting.iter().position(|job| self.is_free(job));
            if let Some(job) = free.and_then(|at| self.waiting.remove(at)) {
                self.begin(job).await;
                return Ok(true);
            }
            self.is_looked_through = true;
        }
        if self.is_read || self.waiting.len() >= AHEAD {
            return Ok(false);
        }
        match self.tasks.next() {
            Ok(Some(line)) => self.take(line).await?,
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
    async fn take(&mut self, line: Line) -> Result<(), Failure> {
        let (number, key, id) = (line.number, line.key, line.id);
        let job = match line.task.map_err(Failure::usage) {
            Ok(task) => match self.is_done(number, key, id.as_deref()).await {
                Ok(true) => return Ok(()),
                Ok(false) => self.jobs.job(number, key, *task),
                Err(failure) => Err(failure),
            },
            Err(wrong) => Err(wrong),
        };
        match job {
            Ok(job) if self.is_free(&job) => self.begin(job).await,
            Ok(job) => {
                self.remark(WAITS);
                self.waiting.push_back(job);
            }
            Err(failure) => {
                let outcome = Outcome::failed(number, id, &failure);
                self.tell_wrong(&outcome);
                self.results.write_once(&outcome, self.term)?;
            }
        }
        Ok(())
    }

    /// Whether a line was done before. Its result is written again if it is wanted.
    async fn is_done(&mut self, number: u64, key: Key, id: Option<&str>) -> Result<bool, Failure> {
        let Some(Begun { run, path, .. }) = self.jobs.begun.get(&key).cloned() else {
            return Ok(false);
        };
        let Some((reason, end)) = before::ended(&path)? else {
            return Ok(false);
        };
        let finished = reason == Reason::Finished;
        if before::was_stopped(reason) || self.jobs.args.retry && !finished {
            return Ok(false);
        }
        self.tally.before += 1;
        self.tally.unfinished_before += u64::from(!finished);
        if match &self.results {
            Results::Standard => self.jobs.args.all,
            Results::Kept(..) => self.results.lack(run, end),
        } {
            let id = id.map(str::to_owned);
            // A long one is folded for a while, in which others go on.
            let outcome = tokio::task::spawn_blocking(move || {
                let view = runs::fold_along(&path, |_, _| {})?.view;
                let path = path.display().to_string();
                Ok::<_, Failure>(Outcome::of(number, id, path, &view))
            });
            let outcome = outcome.await.map_err(lost)??;
            self.results.write_once(&outcome, self.term)?;
        }
        Ok(true)
    }

    /// Tells that a run begins.
    fn begins(&mut self, begins: &Begins) {
        self.term.hide(&begins.known);
        for remark in &begins.remarks {
            self.remark(remark);
        }
        if self.jobs.args.logs.verbose > 0 {
            let (number, run) = (begins.number, &begins.run);
            self.say(Look::Plain, &format!("line {number}: run {run} begins"));
        }
    }

    /// Tells something once.
    fn remark(&mut self, remark: &str) {
        if self.remarks.len() < TOLD && self.remarks.iter().all(|told| told != remark) {
            self.remarks.push(remark.to_owned());
            self.say(Look::Faint, remark);
        }
    }

    /// Takes what became of a line.
    fn ended(&mut self, ended: Result<Worked, JoinError>) -> Result<(), Failure> {
        let Worked { outcome, workspace } = ended.map_err(lost)?;
        if let Some(at) = self.busy.iter().position(|busy| *busy == workspace) {
            self.busy.swap_remove(at);
        }
        self.is_looked_through = self.waiting.is_empty();
        self.is_left |= outcome.reason.is_some_and(before::was_stopped);
        let unheld = outcome.exit == Exit::Sandbox as u8 && outcome.run.is_none();
        if unheld && self.stopped.is_none() {
            // What this machine does not enforce for one run it enforces for none.
            self.stopped = Some(Exit::Sandbox);
            self.is_left = true;
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
        // Where no run could begin, the same is found each time.
        match outcome.run {
            Some(_) => self.results.write(&outcome, self.term)?,
            None => self.results.write_once(&outcome, self.term)?,
        }
        Ok(())
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
            some(self.waiting.len() as u64, "waiting for a workspace"),
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
        if before > 0 && matches!(self.results, Results::Standard) && !self.jobs.args.all {
            let text = "results of what was done before are not written again; --all writes them";
            self.say(Look::Faint, text);
        }
        if let Some(exit) = self.stopped {
            let is_left = self.is_left || !self.waiting.is_empty() || self.batch.open() > 0;
            if is_left || !self.is_read_to_its_end() {
                self.say(Look::Plain, "the same command goes on where it stopped");
                return Ok(exit);
            }
            // A limit that the last answer of all reaches ends nothing.
            if exit != Exit::Limit {
                return Ok(exit);
            }
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

    /// Whether the file holds no line that was not looked at.
    fn is_read_to_its_end(&mut self) -> bool {
        self.is_read || matches!(self.tasks.next(), Ok(None))
    }

    /// Writes a line to standard error, unless people want to read only what went wrong.
    fn say(&mut self, look: Look, text: &str) {
        if !self.jobs.args.logs.quiet || look == Look::Bad {
            self.term.say(&[(look, text)]).ok();
        }
    }
}

/// What is said of work that panicked.
fn lost(error: JoinError) -> Failure {
    let error = anyhow::Error::new(error).context("a run came to no end of its own");
    Failure::new(Exit::Unfinished, error)
}

/// `3 failed`, if there are any.
fn some(number: u64, what: &str) -> Option<String> {
    (number > 0).then(|| format!("{} {what}", amount::count(number)))
}
