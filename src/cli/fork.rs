//! `fork`: another run from any point of this one.

use std::fmt::Write as _;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use undertext::address::Address;
use undertext::compaction::by_hand::Report;
use undertext::config::{self, Sections};
use undertext::id::{EntryId, RunId, Span};
use undertext::record::fork::{Fork, ForkError, Forked};
use undertext::record::{Clock, OnDamage, Recorder};
use undertext::transcript::Parent;
use undertext::view::View;

use crate::cli::compacted::{self, How};
use crate::cli::exit::{Exit, Failure};
use crate::cli::place::Place;
use crate::cli::term::{Look, Term};
use crate::cli::{Process, RunArgs, SettingArgs, amount, brief, compact, find};

/// `fork`
#[derive(Debug, Args)]
#[command(after_help = "\
The fork begins with the same entries, byte for byte, and goes on by itself. This run stays as it
is, and may be at work meanwhile. A run is cut where no round is open.")]
pub(crate) struct ForkArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    #[arg(
        help = "Take over everything up to there, such as r12, e40 or 5 (turn) \
                  [default: all of it]"
    )]
    pub(crate) at: Option<Place>,
    #[arg(long, value_name = "RULE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "")]
    #[arg(help = "Compact the fork at once, as this rule of your settings says \
                  [default: compaction.default_rule]")]
    pub(crate) compact: Option<String>,
    /// Call the fork this, where runs are listed
    #[arg(long, value_name = "TEXT", value_parser = crate::cli::run_args::title)]
    pub(crate) name: Option<String>,
    /// Write a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// What is told of a fork.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Made {
    run: RunId,
    transcript: String,
    parent: Parent,
    /// The last entry that was asked for, if a round is open there: the fork ends before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_for: Option<EntryId>,
    /// How many rounds were taken over.
    rounds: u32,
    blobs: u64,
    /// Blobs that its entries name and the parent does not have any more.
    #[serde(skip_serializing_if = "is_none")]
    lost_blobs: u64,
    /// What its compaction came to, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    compacted: Option<Report>,
    /// The model said its last word there: it goes on when somebody speaks.
    #[serde(skip)]
    answered: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "what the serializer calls it with"
)]
fn is_none(number: &u64) -> bool {
    *number == 0
}

/// Makes a fork.
pub(crate) fn fork(args: &ForkArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    let sources = args
        .settings
        .sources(&process.environment, Sections::default());
    let settings = config::load(&sources)?;
    let order = compact::order_named(&settings, args.compact.as_deref())?;
    let dir = settings.transcripts_dir(&process.environment)?;
    let found = find::read(&args.run, &args.settings, process, term)?;
    let view = &found.loaded.view;
    let clock = Clock::System;
    let last = last(view, args.at.as_ref(), &clock)?;
    let entry = closed(view, last, args.at.as_ref())?;
    let taken = view.transcript().span(Span::new(EntryId::FIRST, entry));
    let before = View::of(taken.iter().cloned());
    let fork = Fork {
        parent: found.path,
        entry,
        name: args.name.clone(),
    };
    let forked = fork.make(&dir, &clock, settings.transcripts.sync);
    let Forked {
        storage,
        run,
        parent,
        blobs,
        lost,
    } = forked.map_err(failed)?;
    let mut made = Made {
        run,
        transcript: storage.path().display().to_string(),
        parent,
        asked_for: (entry != last).then_some(last),
        rounds: before.rounds().last().map_or(0, |round| round.number),
        blobs,
        lost_blobs: lost,
        compacted: None,
        answered: !before.awaits_model(),
    };
    if !args.json {
        made.print(&before, term)?;
    }
    let mut refused = None;
    if let Some(order) = order {
        let mut recorder = Recorder::open(Box::new(storage), clock, OnDamage::Refuse)?;
        let as_run = RunArgs {
            resume: Some(run.to_string()),
            settings: args.settings.clone(),
            ..RunArgs::default()
        };
        match compact::carry_out(&order, &mut recorder, &as_run, process, term) {
            Ok(report) if args.json => made.compacted = Some(report),
            Ok(report) => {
                let name = run.short();
                compacted::show(&report, (Some(run), &name), How::Real, false, term)?;
            }
            // The fork is there all the same.
            Err(failure) => refused = Some(failure),
        }
    }
    if args.json {
        let text = serde_json::to_string(&made).map_err(std::io::Error::from)?;
        term.print_json(&text)?;
    }
    refused.map_or(Ok(Exit::Done), Err)
}

/// The last entry that is asked for: of a time the one before it, of all else its end.
fn last(view: &View, at: Option<&Place>, clock: &Clock) -> Result<EntryId, Failure> {
    let Some(at) = at else {
        let last = view.transcript().last().map(|last| last.id);
        return Ok(last.unwrap_or_default());
    };
    let span = at.span(view, clock.now())?;
    Ok(if let Address::Ago(_) = at.address {
        EntryId(span.from.0.saturating_sub(1))
    } else {
        span.to
    })
}

/// The last entry up to this one at which a run can be cut.
fn closed(view: &View, last: EntryId, at: Option<&Place>) -> Result<EntryId, Failure> {
    view.rounds().closed_at(last).ok_or_else(|| {
        let first = view.rounds().all().iter().find(|round| round.is_closed());
        let first = first.and_then(|round| round.span());
        Failure::usage(match first {
            Some(span) => {
                let ago = at.map(|at| at.address);
                let ago = ago.filter(|address| matches!(address, Address::Ago(_)));
                let when = match ago {
                    Some(ago) => format!("was closed {ago} ago"),
                    None => format!("is closed at e{last} yet"),
                };
                format!("no round {when}; the first one is at e{}", span.to)
            }
            None => "there is nothing to fork: no round of the run is closed yet".to_owned(),
        })
    })
}

fn failed(error: ForkError) -> Failure {
    match error {
        ForkError::File(error) => error.into(),
        error @ (ForkError::Read { .. }
        | ForkError::NoRun { .. }
        | ForkError::Newer { .. }
        | ForkError::Damaged { .. }
        | ForkError::Short { .. }
        | ForkError::Encode(_)
        | ForkError::Write { .. }) => Failure::new(Exit::Transcript, error),
    }
}

impl Made {
    fn print(&self, view: &View, term: &mut Term) -> std::io::Result<()> {
        let (name, parent) = (self.run.short(), self.parent);
        term.print(&[
            (Look::Strong, format!("run {name}")),
            (Look::Plain, format!(": {}", self.transcript)),
        ])?;
        let mut row = |name: &str, text: String| {
            term.print(&[(Look::Faint, format!("  {name:<17}")), (Look::Plain, text)])
        };
        let mut from = format!(
            "{} at e{}, after {}",
            parent.run.short(),
            parent.entry,
            amount::of(self.rounds.into(), "round")
        );
        if let Some(asked) = self.asked_for {
            write!(from, ": a round is open at e{asked}").ok();
        }
        row("forked from", from)?;
        if self.blobs > 0 {
            row("blobs", amount::count(self.blobs))?;
        }
        if self.lost_blobs > 0 {
            let lost = amount::of(self.lost_blobs, "blob");
            row(
                "not taken over",
                format!("{lost}: lost to the parent as well"),
            )?;
        }
        let next = view.estimate().tokens;
        row(
            "next request",
            brief::fill(next, view.setup().map(brief::trigger)),
        )?;
        let task = if self.answered { " \"TASK\"" } else { "" };
        row("to go on", format!("undertext run --resume {name}{task}"))
    }
}
