//! `replay --run`: the recorded replies are played as the model, and the tools run for real.
//!
//! What is played, and how it is compared, is for [`undertext::rerun`] to say. Here a fresh workspace
//! is made, the tools are those that the run had, and what came of it is told.

mod site;
mod told;

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use clap::Args;
use tokio_util::sync::CancellationToken;
use undertext::agent::Agent;
use undertext::config::{self, Sections, Settings};
use undertext::exchange::ToolSpec;
use undertext::hands::{self, Hands};
use undertext::model::Model;
use undertext::record::{Clock, Recorder};
use undertext::rerun::{self, Places, Recording, Replayed, Until};
use undertext::secret::Known;
use undertext::setup::Setup;
use undertext::tools::{Skill, Toolbox};
use undertext::transcript::Run;

use crate::cli::confined::{self, Site};
use crate::cli::ending::AT_ONCE;
use crate::cli::exit::{Exit, Failure};
use crate::cli::rerun::site::Fresh;
pub(crate) use crate::cli::rerun::told::Rerun;
use crate::cli::term::{Look, Term};
use crate::cli::toolbox::{self, Tools};
use crate::cli::{
    Process, ReplayArgs, advice, find, process, run, start, stop, told as instructed,
};

/// `replay --run`
#[derive(Debug, Args)]
pub(crate) struct RerunArgs {
    /// Run its calls again: the recorded replies are played as the model, the tools run for real
    /// in a fresh workspace, and the first result that differs is told
    #[arg(id = "again", long = "run", conflicts_with_all = ["verify", "at", "diff", "blame"])]
    pub(crate) run: bool,
    /// With --run: begin with a copy of this directory, such as a clean checkout [default: the
    /// run's workspace as it is now; of a demo, its project laid out anew]
    #[arg(long, value_name = "DIR", requires = "again")]
    pub(crate) workspace: Option<PathBuf>,
    /// With --run: leave the fresh workspace where it is
    #[arg(long, requires = "again")]
    pub(crate) keep: bool,
    /// With --run: end with the round of the first difference [default: play on, and count]
    #[arg(long, requires = "again")]
    pub(crate) stop: bool,
}

/// Plays a run again.
pub(crate) fn rerun(
    args: &ReplayArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let sources = args
        .settings
        .sources(&process.environment, Sections::default());
    let settings = config::load(&sources)?;
    let found = find::read(&args.run, &args.settings, process, term)?;
    let loaded = &found.loaded;
    let wrong = |text: &str| Failure::new(Exit::Transcript, anyhow::Error::msg(text.to_owned()));
    if loaded.newer().is_some() {
        let failure = wrong("this version cannot play a run of a newer format");
        return Err(failure.advised(advice::NEWER));
    }
    if !loaded.damage.is_empty() {
        return Err(wrong(
            "a damaged run cannot be played; `undertext fork --at` makes a sound run of what lies \
             before the damage",
        ));
    }
    let Some(first) = loaded.run() else {
        let failure = wrong("a run without its first entry cannot be played");
        return Err(failure.advised(advice::PRINT));
    };
    if first.imported.is_some() && args.again.workspace.is_none() {
        return Err(Failure::usage(
            "another agent recorded this run, so its commands are somebody else's, and they would \
             run with your rights; name a directory to begin with (--workspace) if that is what you \
             want",
        ));
    }
    let recording = Recording::of(loaded.view.transcript());
    if recording.parts().is_empty() {
        return Err(Failure::usage(
            "there is nothing to run again: the run has no task; name one that has",
        ));
    }
    let stage = Stage {
        args,
        process,
        settings: &settings,
        recorded: first,
        recording: &recording,
    };
    let runtime = process::runtime()?;
    let exit = runtime.block_on(stage.go(term));
    runtime.shutdown_timeout(run::LEAVING);
    // Whatever did not end in time.
    hands::end_all();
    exit
}

/// A run to play, and all that is needed for it.
struct Stage<'a> {
    args: &'a ReplayArgs,
    process: &'a Process,
    settings: &'a Settings,
    recorded: &'a Run,
    recording: &'a Recording,
}

impl Stage<'_> {
    async fn go(&self, term: &mut Term) -> Result<Exit, Failure> {
        let cancel = CancellationToken::new();
        let mut signals = stop::watch(AT_ONCE, term.masks())?;
        let mut signal = None;
        let again = &self.args.again;
        let fresh = {
            let named = again.workspace.as_deref();
            let (run, recording) = (self.recorded, self.recording);
            let mut fresh = pin!(Fresh::make(named, run, recording, self.process, &cancel));
            loop {
                tokio::select! {
                    biased;
                    Some(exit) = signals.recv() => {
                        signal = Some(exit);
                        cancel.cancel();
                    }
                    fresh = &mut fresh => break fresh,
                }
            }
        };
        if let Some(exit) = signal {
            return Ok(exit);
        }
        let fresh = fresh?;
        term.hide(&self.known());
        let mut recorder = self.recorder(&fresh)?;
        let (hands, told) = self.hands(&fresh).await?;
        let hands = Arc::new(hands);
        let (run, location) = (recorder.run(), recorder.storage().location());
        term.say(&[(Look::Strong, format!("run {}: {location}", run.short()))])?;
        let root = fresh.workspace.root().display().to_string();
        for remark in [format!("workspace: {root}, {}", fresh.from.told()), told] {
            term.say(&[(Look::Faint, remark)])?;
        }
        let replayed = {
            let mut play = pin!(self.play(&fresh, &hands, &mut recorder, &cancel));
            loop {
                tokio::select! {
                    biased;
                    Some(exit) = signals.recv() => {
                        signal.get_or_insert(exit);
                        cancel.cancel();
                    }
                    replayed = &mut play => break replayed?,
                }
            }
        };
        let rerun = Rerun {
            run,
            transcript: location,
            of: self.recorded.run,
            named: self.named(),
            workspace: root,
            from: fresh.from.clone(),
            kept: again.keep,
            replayed,
        };
        if self.args.json {
            rerun.json(term)?;
        } else {
            rerun.print(term)?;
        }
        if let Some(hands) = Arc::into_inner(hands) {
            hands.close().await;
        }
        if again.keep {
            fresh.keep();
        }
        Ok(match signal {
            Some(exit) => exit,
            None if rerun.replayed.is_same() => Exit::Done,
            None => Exit::Unfinished,
        })
    }

    /// The run as it is named on a command line: by its id where runs are kept, else as it was.
    fn named(&self) -> String {
        let typed = &self.args.run;
        if Path::new(typed).extension().is_some() {
            return typed.clone();
        }
        self.recorded.run.short()
    }

    /// Where what happens is recorded.
    fn recorder(&self, fresh: &Fresh) -> Result<Recorder, Failure> {
        let clock = Clock::System;
        let run = Run {
            name: Some(format!("replay of {}", self.recorded.run.short())),
            ..Run::new(clock.new_run(), fresh.workspace.root().to_string_lossy())
        };
        let dir = self.settings.transcripts_dir(&self.process.environment)?;
        let storage = self.settings.transcripts.create(&dir, run.run)?;
        let mut recorder = Recorder::create(Box::new(storage), clock, run)?;
        recorder.keep_out(self.known());
        Ok(recorder)
    }

    /// The values that must be nowhere: those that a run with these settings would keep out.
    fn known(&self) -> Known {
        let known = self.process.known();
        match self.settings.endpoint(&self.process.environment) {
            Ok(endpoint) => known.and(&start::of_server(&endpoint)),
            // Without a server there is no key, and none is needed.
            Err(_) => known,
        }
    }

    /// Who runs the calls.
    async fn hands(&self, fresh: &Fresh) -> Result<(Hands, String), Failure> {
        let files = Tools::all(self.settings, &self.process.environment, Vec::new())?.files;
        let dir = self.settings.transcripts_dir(&self.process.environment)?;
        let site = Site {
            workspace: fresh.workspace.clone(),
            tools: files.into_iter().map(|file| file.tool).collect(),
            ours: vec![self.process.here(&dir)],
            above: Vec::new(),
            asked: None,
            ahead: confined::later(self.process),
        };
        let sandbox = &self.settings.policy.sandbox;
        let (hands, told) = confined::hands(sandbox, site, self.process).await?;
        let told = if told == confined::OFF {
            "sandbox: off, the recorded commands run with your own rights".to_owned()
        } else {
            told
        };
        Ok((hands, told))
    }

    async fn play(
        &self,
        fresh: &Fresh,
        hands: &Arc<Hands>,
        recorder: &mut Recorder,
        cancel: &CancellationToken,
    ) -> Result<Replayed, Failure> {
        let root = fresh.workspace.root();
        let places = Places::new(self.recorded.workspace.as_ref(), root);
        let until = if self.args.again.stop {
            Until::Difference
        } else {
            Until::End
        };
        let skills = self.skills(fresh, hands).await?;
        let all = || Tools::all(self.settings, &self.process.environment, skills.clone());
        let toolboxes = self.recording.parts().iter().map(|part| {
            let tools = all()?;
            Ok(self.offered(tools.toolbox, &part.setup.wire.tools))
        });
        // One a turn.
        let toolboxes: Result<Vec<Toolbox>, Failure> = toolboxes.collect();
        let mut toolboxes = toolboxes?.into_iter();
        let agent = |setup: Setup, model: Arc<dyn Model>| {
            let toolbox = toolboxes.next().unwrap_or_default();
            Agent::new(setup, model, toolbox).with_hands(Arc::clone(hands))
        };
        let played = rerun::play(self.recording, recorder, places, until, agent, cancel).await;
        played.map_err(|error| Failure::new(Exit::Unfinished, error))
    }

    /// The skills of the fresh workspace; a demo knows no others.
    async fn skills(&self, fresh: &Fresh, hands: &Hands) -> Result<Vec<Skill>, Failure> {
        let own = if fresh.is_demo() {
            None
        } else {
            instructed::own_skills(self.process)
        };
        instructed::skills(own.as_deref(), hands).await
    }

    /// The tools that the run offered, as far as they are here, and treated as they were then. Of a
    /// run that does not say, those that it called.
    fn offered(&self, toolbox: Toolbox, recorded: &[ToolSpec]) -> Toolbox {
        let here = toolbox::names(&toolbox);
        let called = self.recording.called();
        let was_there = |name: &&String| {
            if recorded.is_empty() {
                called.contains(name.as_str())
            } else {
                recorded.iter().any(|spec| spec.name == **name)
            }
        };
        let names: Vec<&String> = here.iter().filter(was_there).collect();
        let toolbox = toolbox.with_meta(|spec| {
            let then = recorded.iter().find(|then| then.name == spec.name);
            then.map_or_else(|| spec.meta.clone(), |then| then.meta.clone())
        });
        // Every name is one that is here.
        toolbox.only(names).unwrap_or_default()
    }
}
