//! `compact`: parts of a run are hidden from the model by hand, or summed up.

use std::io;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use futures::{FutureExt as _, StreamExt as _};
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, ByHandError, Progress};
use undertext::compaction::by_hand::{self, Order, Report, Strategy, Work};
use undertext::compaction::notice::Notice;
use undertext::config::{self, Sections, Settings};
use undertext::hands::Workspace;
use undertext::id::EntryId;
use undertext::record::{Clock, OnDamage, Recorder};
use undertext::setup::{Hooks, Setup};
use undertext::tools::Toolbox;
use undertext::transcript::{Event, FaultClass};
use undertext::view::View;

use crate::cli::compacted::{self, How};
use crate::cli::confined::{self, Site};
use crate::cli::exit::{Exit, Failure};
use crate::cli::model_args::ModelArgs;
use crate::cli::place::Place;
use crate::cli::start::Start;
use crate::cli::term::{Look, Term};
use crate::cli::{
    Process, RunArgs, SettingArgs, brief, edits, find, made, notice, offline, process, run, site,
    stop,
};

/// `compact`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CompactArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[arg(long, value_name = "NAME", alias = "profile")]
    #[arg(conflicts_with_all = ["strategy", "again"])]
    #[arg(help = "Do what this rule of your settings says [default: compaction.default_rule]")]
    #[arg(help_heading = "What")]
    pub(crate) rule: Option<String>,
    /// Do this; may be given several times, from left to right
    #[arg(long, value_name = "STRATEGY", conflicts_with = "again")]
    #[arg(value_parser = strategy())]
    #[arg(help_heading = "What")]
    pub(crate) strategy: Vec<Strategy>,
    /// Tell whoever writes the summary what to preserve; alone it means summarize
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["summary", "again"])]
    #[arg(help_heading = "What")]
    pub(crate) focus: Option<String>,
    /// Put this text of yours in place of the rounds; no model is asked
    #[arg(long, value_name = "TEXT", conflicts_with = "again")]
    #[arg(help_heading = "What")]
    pub(crate) summary: Option<String>,
    /// Sum up anew what older summaries cover, from the entries themselves
    #[arg(long, conflicts_with = "again")]
    #[arg(help_heading = "What")]
    pub(crate) fresh: bool,
    /// Lay an overlay anew that was taken back, such as e210
    #[arg(long, value_name = "OVERLAY", value_parser = overlay)]
    #[arg(conflicts_with_all = ["from", "to", "keep_first", "keep_last"])]
    #[arg(help_heading = "What")]
    pub(crate) again: Option<EntryId>,
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    #[arg(
        help = "Begin here, such as r3, e40, 5 (turn), 2h (ago) or last-compaction \
                  [default: the start; of a summary, the end of the last one]"
    )]
    #[arg(help_heading = "Where")]
    pub(crate) from: Option<Place>,
    /// End here; the newest round always stays [default: the rounds that stay]
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    #[arg(help_heading = "Where")]
    pub(crate) to: Option<Place>,
    /// Leave so many rounds at the start alone [default: as the rule says, else 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(help_heading = "Where")]
    pub(crate) keep_first: Option<u32>,
    /// Leave so many rounds at the end alone [default: as the rule says, else 3; 0 with --to]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(help_heading = "Where")]
    pub(crate) keep_last: Option<u32>,
    /// Only say what would be done: nothing is changed, no model is asked
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Write a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The model that writes the summary, and its server.
    #[command(flatten, next_help_heading = "Model")]
    pub(crate) asked: ModelArgs,
    /// Where settings come from.
    #[command(flatten, next_help_heading = "Settings")]
    pub(crate) settings: SettingArgs,
}

const HELP: &str = "\
Examples:
  undertext compact last --dry-run               what the default rule would hide
  undertext compact last --focus \"the parser\"    a model sums up all but the last 3 rounds
  undertext compact last --strategy strip-tools --to r40
  undertext compact last --from r3 --to r9 --summary \"Tried sqlite; it was too slow.\"

The summary is written by the model of -m, else the one of your settings, else the run's own.
Nothing is deleted: what is hidden can be had back by `undertext undo`, and the model can read it by
Recall. The first task, pins, and the todo list and skills in force stay, unless they are named alone.";

/// Reads the word of a strategy; a shell can complete it.
fn strategy() -> impl clap::builder::TypedValueParser<Value = Strategy> {
    let words = PossibleValuesParser::new(Strategy::ALL.map(Strategy::word));
    words.try_map(|word| word.parse::<Strategy>())
}

/// Reads the name of an overlay, as it is shown or as a bare number.
fn overlay(text: &str) -> Result<EntryId, &'static str> {
    let digits = text.strip_prefix('e').unwrap_or(text);
    let id = digits.parse().ok().filter(|id| *id > 0);
    id.map(EntryId)
        .ok_or("an overlay is named by its entry, such as e210")
}

/// Compacts a run, or says what that would come to.
pub(crate) fn compact(
    args: &CompactArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let sources = args
        .settings
        .sources(&process.environment, Sections::default());
    let settings = config::load(&sources)?;
    let order = args.order(&settings)?;
    if args.dry_run {
        let found = find::read(&args.run, &args.settings, process, term)?;
        let view = &found.loaded.view;
        let resolved = order.resolve(view, Clock::System.now()).map_err(refused)?;
        let plan = by_hand::plan(view, &resolved, None).map_err(refused)?;
        let run = found.loaded.run().map(|run| run.run);
        compacted::show(
            &plan.report(),
            (run, &args.run),
            How::DryRun,
            args.json,
            term,
        )?;
        return Ok(Exit::Done);
    }
    let dir = settings.transcripts_dir(&process.environment)?;
    let path = find::path(&args.run, &dir, process)?;
    let storage = site::opened(&path, &settings, &dir, process)?;
    let mut recorder = Recorder::open(Box::new(storage), Clock::System, OnDamage::Refuse)?;
    recorder.keep_out(process.known());
    let run = recorder.run();
    let report = carry_out(&order, &mut recorder, &args.as_run(), process, term)?;
    compacted::show(&report, (Some(run), &args.run), How::Real, args.json, term)?;
    Ok(Exit::Done)
}

impl CompactArgs {
    /// What a run would be told of models and servers.
    fn as_run(&self) -> RunArgs {
        RunArgs {
            resume: Some(self.run.clone()),
            asked: self.asked.clone(),
            settings: self.settings.clone(),
            ..RunArgs::default()
        }
    }

    /// What is ordered.
    fn order(&self, settings: &Settings) -> Result<Order, Failure> {
        let about_text = self.focus.is_some() || self.summary.is_some() || self.fresh;
        let work = match (self.again, &self.rule, self.strategy.as_slice()) {
            (Some(overlay), _, _) => Work::Again(overlay),
            (None, Some(rule), _) => rule_named(settings, Some(rule))?,
            (None, None, []) if about_text => Work::Strategies(vec![Strategy::Summarize]),
            (None, None, []) => rule_named(settings, None)?,
            (None, None, strategies) => Work::Strategies(strategies.to_vec()),
        };
        Ok(Order {
            from: self.from.as_ref().map(|place| place.address),
            to: self.to.as_ref().map(|place| place.address),
            keep_first: self.keep_first,
            keep_last: self.keep_last,
            focus: self.focus.clone(),
            text: self.summary.clone(),
            fresh: self.fresh,
            ..Order::new(work)
        })
    }
}

/// The order that `--compact[=RULE]` is, if it was given; without a name it is the default rule.
pub(super) fn order_named(
    settings: &Settings,
    rule: Option<&str>,
) -> Result<Option<Order>, Failure> {
    let named = rule.map(|rule| rule_named(settings, Some(rule).filter(|rule| !rule.is_empty())));
    Ok(named.transpose()?.map(Order::new))
}

fn rule_named(settings: &Settings, name: Option<&str>) -> Result<Work, Failure> {
    let compaction = &settings.policy.compaction;
    let name = name.unwrap_or(&compaction.default_rule);
    if let Some(rule) = compaction.rules.get(name) {
        return Ok(Work::Rule(name.to_owned(), rule.clone()));
    }
    let hint = config::rule_hint(compaction.rules.keys(), name);
    Err(Failure::usage(format!("no rule is named `{name}`; {hint}")))
}

fn refused(error: by_hand::Refused) -> Failure {
    Failure::new(Exit::Usage, error)
}

/// Does what is ordered. `as_run` says what a run would be told of models and servers; it is looked at
/// only if a model must write a summary.
pub(super) fn carry_out(
    order: &Order,
    recorder: &mut Recorder,
    as_run: &RunArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Report, Failure> {
    let resolved = order.resolve(recorder.view(), recorder.now());
    let resolved = resolved.map_err(refused)?;
    let plan = by_hand::plan(recorder.view(), &resolved, None).map_err(refused)?;
    if plan.wanted().is_some() {
        return ask(order, recorder, as_run, process, term);
    }
    let next = recorder.view().transcript().next_id();
    let report = plan.lay(next, |event| recorder.record(event))?;
    recorder.sync()?;
    edits::keep_index(recorder);
    Ok(report)
}

/// Lets a model write the summary, and lays the plan.
fn ask(
    order: &Order,
    recorder: &mut Recorder,
    as_run: &RunArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Report, Failure> {
    let mut start = Start::new(as_run, process, &mut io::empty())?;
    recorder.keep_out(start.known.clone());
    term.hide(&start.known);
    let runtime = process::runtime()?;
    let done = runtime.block_on(async {
        let _served = offline::serve(as_run, &mut start, Some(recorder)).await?;
        let setup = setup(as_run, &start, recorder)?;
        if let Some(server) = start.remarks.first() {
            term.say(&[(Look::Faint, server)])?;
        }
        let client = Arc::new(made::client(&start)?);
        let mut agent = Agent::new(setup, client, Toolbox::new());
        // Hooks act where the run does.
        if let Some(site) = site(recorder.view(), &start, process)? {
            let site = Site {
                workspace: site,
                tools: Vec::new(),
                ours: site::ours(as_run, &start, process),
                above: Vec::new(),
                asked: None,
                ahead: confined::later(process),
            };
            let sandbox = &start.settings.policy.sandbox;
            let (hands, _) = confined::hands(sandbox, site, process).await?;
            agent = agent.with_hands(hands);
        }
        let cancel = CancellationToken::new();
        let mut signals = stop::watch("stopped; nothing was changed", term.masks())?;
        let mut signal = None;
        let mut events = agent.events();
        let mut work = std::pin::pin!(agent.compact_by_hand(recorder, order, &cancel));
        let done = loop {
            tokio::select! {
                biased;
                Some(exit) = signals.recv() => {
                    signal.get_or_insert(exit);
                    cancel.cancel();
                }
                Some(progress) = events.next() => tell(&progress, term)?,
                done = &mut work => break done,
            }
        };
        while let Some(Some(progress)) = events.next().now_or_never() {
            tell(&progress, term)?;
        }
        done.map_err(|error| failed(error, signal))
    });
    // A name that is still being looked up holds nobody.
    runtime.shutdown_timeout(run::LEAVING);
    done
}

/// Where hooks act; `None` if there are none. Those that a transcript names are not run: it may be
/// somebody else's.
fn site(view: &View, start: &Start, process: &Process) -> Result<Option<Workspace>, Failure> {
    let hooks = &start.settings.policy.compaction.hooks;
    let run = view.transcript().get(EntryId::FIRST);
    let run = run.filter(|_| *hooks != Hooks::default());
    let Some(Event::Run(run)) = run.map(|entry| &entry.event) else {
        return Ok(None);
    };
    let site = site::of(Path::new(&run.workspace), start, process);
    let site = site.map_err(|error| Failure::new(Exit::Usage, error))?;
    Ok(Some(site))
}

/// Tells what happens while a model writes.
fn tell(progress: &Progress, term: &mut Term) -> io::Result<()> {
    let line = match progress {
        // What is laid is what the report is about.
        Progress::Compaction(Notice::Laid(_)) | Progress::Delta { .. } => return Ok(()),
        Progress::Compaction(Notice::Planned(planned)) => notice::asks(planned),
        Progress::Compaction(Notice::Failed(failed)) => format!("no summary: {}", failed.why),
        Progress::Entry(entry) => {
            // One that is not asked again ends as a notice.
            let Event::Fault(fault) = &entry.event else {
                return Ok(());
            };
            if fault.wait_ms.is_none() {
                return Ok(());
            }
            brief::fault(entry.id, fault)
        }
    };
    term.say(&[(Look::Faint, line)])
}

/// The settings of the run, with the models that write summaries as they are named now.
fn setup(as_run: &RunArgs, start: &Start, recorder: &Recorder) -> Result<Setup, Failure> {
    let Some(before) = recorder.view().setup() else {
        return Err(refused(by_hand::Refused::NoSettings));
    };
    let mut setup = before.clone();
    let main = &before.wire.models.main.name;
    let mut settings = start.settings.clone();
    let named = as_run.asked.model.clone().or(settings.model.summary.take());
    let named = named.or(settings.model.name.clone());
    settings.model.summary = named.filter(|named| named != main);
    settings.model.name.get_or_insert_with(|| main.clone());
    if let Some(models) = settings.models(start.server()) {
        setup.wire.models.summary = models.summary;
        setup.wire.models.fallback = models.fallback;
    }
    setup.policy.compaction.summary = settings.policy.compaction.summary;
    setup.policy.compaction.hooks = settings.policy.compaction.hooks;
    Ok(setup)
}

/// What ended the work.
pub(super) fn failed(error: ByHandError, signal: Option<Exit>) -> Failure {
    let exit = match &error {
        ByHandError::Refused(_) => Exit::Usage,
        ByHandError::NoSummary { class, .. } => match class {
            Some(FaultClass::ContentFilter) | None => Exit::Unfinished,
            Some(
                FaultClass::Rate
                | FaultClass::Overload
                | FaultClass::Server
                | FaultClass::Transport
                | FaultClass::Stall
                | FaultClass::Torn
                | FaultClass::Auth
                | FaultClass::Permanent
                | FaultClass::Overflow
                | FaultClass::Local,
            ) => Exit::Provider,
        },
        ByHandError::Vetoed { .. } => Exit::Unfinished,
        ByHandError::Cancelled => signal.unwrap_or(Exit::Interrupted),
        ByHandError::Record(_) => Exit::Transcript,
    };
    Failure::new(exit, error)
}
