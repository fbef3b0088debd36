//! `demo`: a full run without key or network. The model is a script; everything else is real.

mod project;
mod report;
mod script;
mod story;
mod summary;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::{fs, io};

use futures::{FutureExt as _, StreamExt as _};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, AgentError, Finished, Progress, Task};
use undertext::config::{self, Sections};
use undertext::exchange::Status;
use undertext::hands::{Hands, Order, Workspace};
use undertext::id::{CallId, EntryId, RunId};
use undertext::record::{Clock, Durability, FileStorage, Recorder};
use undertext::setup::{self, Api, EstimateRule, Models, Parameters, Policy, Profile, Setup, Wire};
use undertext::tools::Toolbox;
use undertext::transcript::{At, FORMAT, Run};
use undertext::view::Sizes;

use crate::cli::brief::cut;
use crate::cli::demo::report::Report;
use crate::cli::demo::story::Story;
use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{DemoArgs, Process, amount};

/// The window that the model is said to have: small, so that a short run fills it.
const WINDOW: u64 = 18_000;

/// The widest line, in characters, on the widest terminal.
const WIDTH: usize = 100;

/// The moment of the golden run.
const GOLDEN: At = At(1_795_291_200_000);

/// The workspace of the golden run, whose path its transcript names.
const GOLDEN_WORKSPACE: &str = "undertext-demo";

/// Runs the demo. `program` is what this program was called as.
pub(crate) fn run(
    args: &DemoArgs,
    process: &Process,
    program: &str,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let stage = Stage::new(args, process)?;
    let exit = runtime.block_on(stage.play(term))?;
    stage.strike(args, program, term)?;
    Ok(exit)
}

/// Where the run takes place.
struct Stage {
    clock: Clock,
    run: RunId,
    project: TempDir,
    workspace: Workspace,
    transcripts: PathBuf,
    durability: Durability,
    /// Holds the transcripts of the golden run until its file is where it belongs.
    golden: Option<TempDir>,
}

impl Stage {
    fn new(args: &DemoArgs, process: &Process) -> Result<Self, Failure> {
        let environment = &process.environment;
        let settings = config::load(&args.settings().sources(environment, Sections::default()))?;
        let golden = args
            .golden
            .as_ref()
            .map(|_| tempfile::tempdir())
            .transpose()?;
        let transcripts = match &golden {
            Some(directory) => directory.path().to_owned(),
            None => settings.transcripts_dir(environment)?,
        };
        let project = match &golden {
            Some(_) => tempfile::Builder::new()
                .prefix(GOLDEN_WORKSPACE)
                .rand_bytes(0)
                .tempdir_in("/tmp"),
            None => tempfile::Builder::new().prefix("undertext-demo-").tempdir(),
        };
        let project = project.map_err(no_workspace)?;
        project::lay_out(project.path()).map_err(no_workspace)?;
        let seen = ["PATH", "TMPDIR"]
            .iter()
            .filter_map(|name| environment.get_key_value(*name));
        let seen = seen.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let seen = seen.chain([("LC_ALL".into(), "C".into())]).collect();
        let workspace = Workspace::open(project.path(), None, seen)
            .map_err(|error| Failure::new(Exit::Unfinished, error))?;
        let clock = match &golden {
            Some(_) => Clock::fixed(GOLDEN),
            None => Clock::System,
        };
        Ok(Self {
            run: clock.new_run(),
            clock,
            project,
            workspace,
            transcripts,
            durability: settings.transcripts.sync,
            golden,
        })
    }

    /// Runs the agent, telling what happens, and holds the result against what was promised.
    async fn play(&self, term: &mut Term) -> Result<Exit, Failure> {
        let mut recorder = self.recorder()?;
        let agent = Agent::new(
            setup(),
            Arc::new(script::model(&self.clock)),
            Toolbox::builtin(),
        )
        .with_hands(Hands::in_process(self.workspace.clone()));
        self.opening(term)?;
        let finished = watched(&agent, &mut recorder, term).await?;
        let finished = finished.map_err(|error| Failure::new(Exit::Transcript, error))?;
        say(term, Look::Plain, "")?;
        for line in finished.text.lines() {
            paragraph(term, Look::Plain, line)?;
        }

        let (passes, verdict) = self.verdict().await;
        let report = Report::of(recorder.view().transcript().entries());
        say(term, Look::Plain, "")?;
        fact(
            term,
            "ended",
            if passes { Look::Plain } else { Look::Bad },
            &format!(
                "{}; its test, run once more by this program: {verdict}",
                finished.reason.word()
            ),
        )?;
        report.tell(term)?;
        self.changes(term)?;
        let proved = passes && report.is_proved();
        let exit = Exit::of(finished.reason);
        Ok(if exit == Exit::Done && !proved {
            Exit::Unfinished
        } else {
            exit
        })
    }

    fn recorder(&self) -> Result<Recorder, Failure> {
        let storage = FileStorage::create(&self.transcripts, self.run, self.durability)
            .map_err(|error| Failure::new(Exit::Transcript, error))?;
        let first = Run {
            format: FORMAT,
            run: self.run,
            workspace: self.workspace.root().display().to_string(),
            generator: concat!("undertext ", env!("CARGO_PKG_VERSION")).to_owned(),
            name: Some("demo".to_owned()),
            parent: None,
        };
        Recorder::create(Box::new(storage), self.clock.clone(), first)
            .map_err(|error| Failure::new(Exit::Transcript, error))
    }

    /// Says what is about to be seen.
    fn opening(&self, term: &mut Term) -> Result<(), Failure> {
        paragraph(
            term,
            Look::Strong,
            "A run of Undertext. The model is a script: no LLM, no network, no key.",
        )?;
        paragraph(
            term,
            Look::Faint,
            "Its replies are written down in the program; it makes its summaries by a rule. The loop, the \
            tools, the files, the compaction and the transcript are the real ones.",
        )?;
        say(term, Look::Plain, "")?;
        let workspace = format!(
            "{}, a small project with two bugs",
            self.workspace.root().display()
        );
        fact(term, "workspace", Look::Plain, &workspace)?;
        let trigger = Sizes::new(&model(), &policy(), 0, 1000).trigger;
        let window = format!(
            "{} tokens, compacted above {}; a token is taken to be four characters",
            amount::count(WINDOW),
            amount::count(trigger)
        );
        fact(term, "window", Look::Plain, &window)?;
        fact(term, "task", Look::Plain, script::TASK)?;
        say(term, Look::Plain, "")
    }

    /// Runs the project's test: whether it passes, and its last line.
    async fn verdict(&self) -> (bool, String) {
        let hands = Hands::in_process(self.workspace.clone());
        let order = Order {
            call: CallId::new(EntryId::FIRST, 1),
            tool: "Bash".to_owned(),
            arguments: r#"{"command":"sh tests/run.sh"}"#.to_owned(),
            cwd: None,
            known: None,
            chars: 10_000,
            timeout_ms: None,
        };
        let outcome = hands.run(order).await;
        let last = outcome
            .content
            .lines()
            .rfind(|line| !line.starts_with("[exit"));
        (
            outcome.status == Status::Ok,
            last.unwrap_or_default().to_owned(),
        )
    }

    /// Shows what became of the files.
    fn changes(&self, term: &mut Term) -> Result<(), Failure> {
        say(term, Look::Plain, "")?;
        for line in project::diff(self.project.path()).lines() {
            let look = match line.as_bytes().first() {
                Some(b'-') => Look::Bad,
                Some(b'+') => Look::Strong,
                Some(_) | None => Look::Faint,
            };
            say(term, look, &cut(&format!("  {line}"), width(term)))?;
        }
        Ok(())
    }

    /// Puts away what is not kept, and says where the rest is.
    fn strike(self, args: &DemoArgs, program: &str, term: &mut Term) -> Result<(), Failure> {
        let name = format!("{}.jsonl", self.run);
        say(term, Look::Plain, "")?;
        if let Some(file) = &args.golden {
            publish(&self.transcripts.join(name), file)?;
            drop(self.golden);
            return fact(term, "golden", Look::Plain, &file.display().to_string());
        }
        if args.keep {
            let kept = self.project.keep();
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
        for (name, command) in [
            ("at a glance", format!("show {run}")),
            ("as it reads", format!("print {run} --view compacted")),
            ("prove it", format!("replay {run} --verify")),
        ] {
            // On one line, however long: it is there to be copied.
            let command = format!("{program} {command}{dir}");
            term.print(&[(Look::Faint, format!("{name:<13}")), (Look::Plain, command)])?;
        }
        Ok(())
    }
}

/// Runs the agent and tells each entry as it is recorded. Interrupted at the keyboard, it ends
/// orderly.
async fn watched(
    agent: &Agent,
    recorder: &mut Recorder,
    term: &mut Term,
) -> Result<Result<Finished, AgentError>, Failure> {
    let mut story = Story::new(width(term));
    let mut events = agent.events();
    let cancel = CancellationToken::new();
    let mut run = pin!(agent.run(recorder, Some(Task::new(script::TASK)), &cancel));
    let mut interrupted = pin!(tokio::signal::ctrl_c().fuse());
    let finished = loop {
        tokio::select! {
            biased;
            Some(progress) = events.next() => tell(&mut story, &progress, term)?,
            Ok(()) = &mut interrupted => cancel.cancel(),
            finished = &mut run => break finished,
        }
    };
    while let Some(Some(progress)) = events.next().now_or_never() {
        tell(&mut story, &progress, term)?;
    }
    Ok(finished)
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

fn no_workspace(error: io::Error) -> Failure {
    let error = anyhow::Error::new(error).context("cannot lay out the demo's project");
    Failure::new(Exit::Unfinished, error)
}

/// The settings of the run: the usual ones, for a small window.
fn setup() -> Setup {
    let wire = Wire {
        instructions: script::INSTRUCTIONS.to_owned(),
        tools: Vec::new(),
        models: Models {
            main: model(),
            summary: None,
            fallback: None,
        },
    };
    Setup {
        wire,
        policy: policy(),
    }
}

fn model() -> setup::Model {
    setup::Model {
        name: "script".to_owned(),
        api: Api::Chat,
        profile: Profile::default(),
        window: Some(WINDOW),
        parameters: Parameters::default(),
    }
}

fn policy() -> Policy {
    let mut policy = Policy::default();
    policy.compaction.estimate = EstimateRule::Chars;
    policy
}

/// Writes a line to standard output.
fn say(term: &mut Term, look: Look, text: &str) -> Result<(), Failure> {
    Ok(term.print(&[(look, text)])?)
}

/// Writes a text in as many lines as it needs.
fn paragraph(term: &mut Term, look: Look, text: &str) -> Result<(), Failure> {
    for line in story::wrapped(text, width(term)) {
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
    for line in story::wrapped(text, width(term).saturating_sub(14)) {
        term.print(&[(Look::Faint, format!("{name:<13}")), (look, line)])?;
        name = "";
    }
    Ok(())
}
