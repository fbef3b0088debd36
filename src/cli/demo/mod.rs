//! `demo`: a full run without key or network. The model is a script; everything else is real.
//!
//! A small project is laid out and broken by one slip, drawn from a seed. A run of the usual kind then
//! looks for it: the offline model is served on a loopback port and asked by the real client. What it
//! said and did is told as it happens; what was broken is told in the end, and to the model never.

mod draw;
mod tokens;
mod mutate;
mod data;
mod project;
mod broken;
mod site;
mod play;
mod report;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;

use futures::{FutureExt as _, StreamExt as _};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, AgentError, Finished, Progress, Task};
use undertext::config::{self, Sections, Settings};
use undertext::hands::{self, Hands};
use undertext::id::{EntryId, RunId};
use undertext::model::offline::Offline;
use undertext::record::{Clock, Durability, FileStorage, Recorder};
use undertext::setup::{Policy, Sandbox, Setup};
use undertext::transcript::{At, FORMAT, Reason, Run};
use undertext::view::{Sizes, Source, View};

use crate::cli::brief::cut;
use crate::cli::demo::report::Report;
pub(crate) use crate::cli::demo::site::{DIRECTORY, Site, SiteError, Where};
use crate::cli::exit::{Exit, Failure};
use crate::cli::story::{Story, wrapped};
use crate::cli::term::{Look, Term};
use crate::cli::{DemoArgs, Process, amount, confined, stop};

/// The widest line, in characters, on the widest terminal.
const WIDTH: usize = 100;

/// The moment of the golden runs.
const GOLDEN: At = At(1_795_291_200_000);

/// What is said when the person does not wait.
const AT_ONCE: &str = "ended at once";

/// Runs the demo. `program` is what this program was called as.
pub(crate) fn run(
    args: &DemoArgs,
    process: &Process,
    program: &str,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let settings = args
        .settings()
        .sources(&process.environment, Sections::default());
    let settings = config::load(&settings)?;
    let heard = |set: &&String| !set.starts_with("compaction.") && !set.starts_with("limits.");
    if let Some(set) = args.set.iter().find(heard) {
        let text =
            format!("a demo has its own settings but for compaction and limits; leave out {set}");
        return Err(Failure::usage(text));
    }
    let policy = play::policy(&args.set)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let exit = runtime.block_on(async {
        let mut signals = stop::watch(AT_ONCE, term.masks())?;
        let place = match args.golden {
            Some(_) => Where::Golden,
            None => Where::Anew,
        };
        let site = tokio::select! {
            site = Site::new(args.seed, place, &process.environment) => site,
            Some(exit) = signals.recv() => return Ok(exit),
        };
        let site = site.map_err(unfinished)?;
        let stage = Stage::new(args, process, &settings, site)?;
        let (exit, asked) = stage.play(policy, process, &mut signals, term).await?;
        stage.strike(args, program, asked, term)?;
        Ok(exit)
    });
    // Whatever did not end in time.
    hands::end_all();
    exit
}

/// Where a run takes place, and where it is recorded.
struct Stage {
    seed: u64,
    site: Site,
    clock: Clock,
    run: RunId,
    transcripts: PathBuf,
    durability: Durability,
    /// Holds the transcript of a golden run until its file is where it belongs.
    golden: Option<TempDir>,
}

impl Stage {
    fn new(
        args: &DemoArgs,
        process: &Process,
        settings: &Settings,
        site: Site,
    ) -> Result<Self, Failure> {
        let golden = args.golden.as_ref();
        let golden = golden.map(|_| tempfile::tempdir()).transpose()?;
        let transcripts = match &golden {
            Some(directory) => directory.path().to_owned(),
            None => settings.transcripts_dir(&process.environment)?,
        };
        let clock = match &golden {
            Some(_) => Clock::fixed(GOLDEN),
            None => Clock::System,
        };
        Ok(Self {
            seed: args.seed,
            site,
            run: clock.new_run(),
            clock,
            transcripts,
            durability: settings.transcripts.sync,
            golden,
        })
    }

    /// Runs the agent, telling what happens, and holds the result against what was promised. Names an
    /// entry whose life is worth looking at.
    async fn play(
        &self,
        mut policy: Policy,
        process: &Process,
        signals: &mut Signals,
        term: &mut Term,
    ) -> Result<(Exit, EntryId), Failure> {
        let served = Offline::serve().await.map_err(|error| {
            unfinished(anyhow::Error::new(error).context("cannot serve the offline model"))
        })?;
        let hands = self.hands(&mut policy, process).await;
        let agent = play::agent(&self.site, hands, &self.clock, &served.base_url, policy);
        let agent = agent.map_err(unfinished)?;
        let mut recorder = self.recorder()?;
        self.opening(agent.setup(), term)?;
        let (finished, stopped) = watched(&agent, &mut recorder, signals, term).await?;
        let finished = finished.map_err(|error| Failure::new(Exit::Transcript, error))?;
        agent.close().await;
        let exit = self.ending(&finished, &recorder, stopped, term).await?;
        Ok((exit, covered(recorder.view())))
    }

    /// Confined hands, if they can be had: what a demo runs is its own, and harms nobody. A golden run
    /// is the same everywhere.
    async fn hands(&self, policy: &mut Policy, process: &Process) -> Hands {
        let workspace = || self.site.workspace().clone();
        if self.golden.is_none() {
            let site = confined::Site {
                workspace: workspace(),
                tools: Vec::new(),
                ours: vec![process.here(&self.transcripts)],
                above: Vec::new(),
                asked: None,
                ahead: confined::later(process),
            };
            if let Ok((hands, _)) = confined::hands(&policy.sandbox, site, process).await {
                return hands;
            }
        }
        policy.sandbox = Sandbox::Off;
        Hands::in_process(workspace())
    }

    fn recorder(&self) -> Result<Recorder, Failure> {
        let storage = FileStorage::create(&self.transcripts, self.run, self.durability)
            .map_err(|error| Failure::new(Exit::Transcript, error))?;
        let first = Run {
            format: FORMAT,
            run: self.run,
            workspace: self.site.path().display().to_string(),
            generator: concat!("undertext ", env!("CARGO_PKG_VERSION")).to_owned(),
            name: Some(format!("demo {}", self.seed)),
            parent: None,
            imported: None,
            batch: None,
        };
        Recorder::create(Box::new(storage), self.clock.clone(), first)
            .map_err(|error| Failure::new(Exit::Transcript, error))
    }

    /// Says what is about to be seen.
    fn opening(&self, setup: &Setup, term: &mut Term) -> Result<(), Failure> {
        paragraph(
            term,
            Look::Strong,
            "A run of Undertext. The model is a script: no LLM, no network, no key.",
        )?;
        paragraph(
            term,
            Look::Faint,
            "It knows its tools and nothing of the project: by a few fixed rules it looks for the bug in \
             what the tools show it. The client and its server, the loop, the tools, the files, the \
             compaction and the transcript are the real ones.",
        )?;
        say(term, Look::Plain, "")?;
        let workspace = format!("{}, a small project with a bug", self.site.path().display());
        fact(term, "workspace", Look::Plain, &workspace)?;
        fact(term, "window", Look::Plain, &window(setup))?;
        fact(term, "task", Look::Plain, play::TASK)?;
        say(term, Look::Plain, "")
    }

    /// Says how it ended, and proves it.
    async fn ending(
        &self,
        finished: &Finished,
        recorder: &Recorder,
        stopped: Option<Exit>,
        term: &mut Term,
    ) -> Result<Exit, Failure> {
        say(term, Look::Plain, "")?;
        for line in finished.text.lines() {
            paragraph(term, Look::Plain, line)?;
        }
        say(term, Look::Plain, "")?;
        if let Some(exit) = stopped {
            return Ok(exit);
        }
        let verdict = self.site.test().await;
        let report = Report::of(&recorder.view().transcript().entries().to_vec());
        let (look, more) = match (verdict.passes(), finished.reason) {
            (true, _) => (Look::Plain, ""),
            (false, Reason::Finished) => (Look::Bad, "; the model did not mend it, and says so"),
            (false, _) => (Look::Bad, ""),
        };
        let ended = format!(
            "{}; the project's test, run once more by this program: {}{more}",
            finished.reason.word(),
            verdict.last
        );
        fact(term, "ended", look, &ended)?;
        report.tell(term)?;
        self.reveal(term)?;
        let exit = Exit::of(finished.reason);
        let proved = verdict.passes() && report.is_proved();
        Ok(if exit == Exit::Done && !proved {
            Exit::Unfinished
        } else {
            exit
        })
    }

    /// Says what was broken, and shows what became of the files.
    fn reveal(&self, term: &mut Term) -> Result<(), Failure> {
        let broken = self.site.broken();
        let seed = format!(
            "{} had broken {}:{} ({})",
            self.seed,
            broken.path,
            broken.line,
            broken.operator.label()
        );
        fact(term, "seed", Look::Plain, &seed)?;
        for (name, line) in [("before", &broken.before), ("broken", &broken.after)] {
            let line = cut(term.masks(), line.trim(), width(term).saturating_sub(14));
            term.print(&[(Look::Faint, format!("{name:<13}")), (Look::Plain, line)])?;
        }
        say(term, Look::Plain, "")?;
        let diff = self.site.diff();
        if diff.is_empty() {
            return say(term, Look::Faint, "  no file was changed in the end");
        }
        for line in diff.lines() {
            let look = match line.as_bytes().first() {
                Some(b'-') => Look::Bad,
                Some(b'+') => Look::Strong,
                Some(_) | None => Look::Faint,
            };
            let line = cut(term.masks(), &format!("  {line}"), width(term));
            say(term, look, &line)?;
        }
        Ok(())
    }

    /// Puts away what is not kept, and says where the rest is.
    fn strike(
        self,
        args: &DemoArgs,
        program: &str,
        asked: EntryId,
        term: &mut Term,
    ) -> Result<(), Failure> {
        let name = format!("{}.jsonl", self.run);
        say(term, Look::Plain, "")?;
        if let Some(file) = &args.golden {
            publish(&self.transcripts.join(name), file)?;
            drop(self.golden);
            return fact(term, "golden", Look::Plain, &file.display().to_string());
        }
        if args.keep {
            let kept = self.site.keep();
            fact(term, "kept", Look::Plain, &kept.display().to_string())?;
        }
        fact(
            term,
            "transcript",
            Look::Plain,
            &self.transcripts.join(name).display().to_string(),
        )?;
        let run = self.run.short();
        let dir = match &args.transcripts {
            Some(dir) => format!(" --transcripts {}", dir.display()),
            None => String::new(),
        };
        let life = format!("life of e{asked}");
        for (name, command) in [
            ("at a glance", format!("show {run}")),
            ("as it reads", format!("print {run} --view compacted")),
            ("prove it", format!("replay {run} --verify")),
            (&life, format!("why {run} e{asked}")),
            ("in a browser", format!("page {run}")),
        ] {
            // On one line, however long: it is there to be copied.
            let command = format!("{program} {command}{dir}");
            term.print(&[(Look::Faint, format!("{name:<13}")), (Look::Plain, command)])?;
        }
        Ok(())
    }
}

/// The first result that does not read in full any more, or else the task.
fn covered(view: &View) -> EntryId {
    let mut entries = view.transcript().entries().iter();
    let covered = entries.find(|entry| {
        let result = view.result(entry.id);
        let reads = result.map(|result| view.stands_as(Source::Result(result.call)));
        reads.is_some_and(|reads| reads.overlay().is_some())
    });
    let task = view.working().task.unwrap_or(EntryId(1));
    covered.map_or(task, |entry| entry.id)
}

/// The signals to end.
type Signals = UnboundedReceiver<Exit>;

/// Runs the agent and tells each entry as it is recorded. The first signal ends it orderly, the
/// second at once; the exit code that it asks for is told.
async fn watched(
    agent: &Agent,
    recorder: &mut Recorder,
    signals: &mut Signals,
    term: &mut Term,
) -> Result<(Result<Finished, AgentError>, Option<Exit>), Failure> {
    let (masks, last) = (term.masks().clone(), "[calls nothing: it is done]");
    let mut story = Story::new(View::default(), width(term), masks, last);
    let mut events = agent.events();
    let cancel = CancellationToken::new();
    let mut run = pin!(agent.run(recorder, Some(Task::new(play::TASK)), &cancel));
    let mut stopped = None;
    let finished = loop {
        tokio::select! {
            biased;
            Some(exit) = signals.recv() => {
                if stopped.replace(exit).is_some() {
                    return Err(Failure::new(exit, anyhow::Error::msg(AT_ONCE)));
                }
                cancel.cancel();
            }
            Some(progress) = events.next() => tell(&mut story, &progress, term)?,
            finished = &mut run => break finished,
        }
    };
    while let Some(Some(progress)) = events.next().now_or_never() {
        tell(&mut story, &progress, term)?;
    }
    Ok((finished, stopped))
}

fn tell(story: &mut Story, progress: &Progress, term: &mut Term) -> Result<(), Failure> {
    if let Progress::Entry(entry) = progress {
        for line in story.lines(entry) {
            term.print(&line)?;
        }
    }
    Ok(())
}

/// Copies a transcript, with what was clipped in it, over an older one.
fn publish(from: &Path, to: &Path) -> Result<(), Failure> {
    let (old, new) = (to.with_extension("blobs"), from.with_extension("blobs"));
    if old.exists() {
        fs::remove_dir_all(&old)?;
    }
    fs::copy(from, to)?;
    if new.exists() {
        fs::create_dir_all(&old)?;
        for blob in fs::read_dir(&new)? {
            let blob = blob?;
            fs::copy(blob.path(), old.join(blob.file_name()))?;
        }
    }
    Ok(())
}

/// Nothing was run.
fn unfinished(error: impl Into<anyhow::Error>) -> Failure {
    Failure::new(Exit::Unfinished, error)
}

/// How much the model may read, in words.
fn window(setup: &Setup) -> String {
    let model = &setup.wire.models.main;
    let trigger = Sizes::new(model, &setup.policy, 0, 1000).trigger;
    format!(
        "{} tokens, compacted above {} already, to show it; a token is taken to be four characters",
        amount::count(model.window.unwrap_or_default()),
        amount::count(trigger)
    )
}

/// Writes a line to standard output.
fn say(term: &mut Term, look: Look, text: &str) -> Result<(), Failure> {
    Ok(term.print(&[(look, text)])?)
}

/// Writes a text in as many lines as it needs.
fn paragraph(term: &mut Term, look: Look, text: &str) -> Result<(), Failure> {
    for line in wrapped(text, width(term)) {
        say(term, look, &line)?;
    }
    Ok(())
}

/// The widest line, in characters.
fn width(term: &Term) -> usize {
    term.width().map_or(WIDTH, |width| width.min(WIDTH))
}

/// Writes a name and what there is to say of it, over several lines if it is long.
fn fact(term: &mut Term, name: &str, look: Look, text: &str) -> Result<(), Failure> {
    let mut name = name;
    for line in wrapped(text, width(term).saturating_sub(14)) {
        term.print(&[(Look::Faint, format!("{name:<13}")), (look, line)])?;
        name = "";
    }
    Ok(())
}
