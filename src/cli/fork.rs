//! `fork`: another run from any point of this one.

use std::fmt::Write as _;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use undertext::address::Address;
use undertext::compaction::by_hand::{Order, Report};
use undertext::compaction::edits::{self, RetractError, Retraction, Which};
use undertext::config::{self, Sections};
use undertext::id::{EntryId, RunId, Span};
use undertext::record::fork::{Fork, ForkError, Forked};
use undertext::record::{Clock, OnDamage, Recorder};
use undertext::transcript::Parent;
use undertext::transcript::turn::Round;
use undertext::view::View;

use crate::cli::advice::{self, Advice};
use crate::cli::compacted::{self, How};
use crate::cli::edits::{Next, record};
use crate::cli::exit::{Exit, Failure};
use crate::cli::place::Place;
use crate::cli::term::{Look, Term};
use crate::cli::{Process, RunArgs, SettingArgs, amount, brief, compact, find};

/// `fork`
#[derive(Debug, Args)]
#[command(after_help = "\
The fork begins with the same entries, byte for byte, and goes on by itself. This run stays as it
is, and may be at work meanwhile. A run is cut where no round is open.

Example: ask the model again what it was asked after round 40, with nothing put away by e210
  undertext fork last --at r40 --without e210")]
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
    /// Let what this overlay covers read again in the fork: e210, last (the last pass there) or
    /// all; may be given several times
    #[arg(long, value_name = "OVERLAY")]
    pub(crate) without: Vec<Which>,
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
    /// The overlays that are taken back in it, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    without: Option<Without>,
    /// What its compaction came to, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    compacted: Option<Report>,
    /// The model said its last word there: it goes on when somebody speaks.
    #[serde(skip)]
    answered: bool,
}

/// What a fork does without.
#[derive(Debug, Serialize, JsonSchema)]
struct Without {
    /// The entry that takes them back.
    entry: EntryId,
    overlays: Vec<EntryId>,
    next_request: Next,
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
    let without = without(&before, entry, &args.without)?;
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
    } = forked.map_err(|error| failed(error, view))?;
    let mut made = Made {
        run,
        transcript: storage.path().display().to_string(),
        parent,
        asked_for: (entry != last).then_some(last),
        rounds: before.rounds().last().map_or(0, |round| round.number),
        blobs,
        lost_blobs: lost,
        without: None,
        compacted: None,
        answered: !before.awaits_model(),
    };
    if order.is_none() && without.is_none() {
        made.tell(&before, args.json, term)?;
        return Ok(Exit::Done);
    }
    let storage = settings.transcripts.indexing(storage);
    let mut recorder = Recorder::open(Box::new(storage), clock, OnDamage::Refuse)?;
    recorder.keep_out(process.known());
    if let Some(retraction) = &without {
        made.without = Some(take_back(retraction, &mut recorder)?);
    }
    let Some(order) = order else {
        made.tell(recorder.view(), args.json, term)?;
        if let Some(without) = &made.without {
            without.next_request.warn(term)?;
        }
        return Ok(Exit::Done);
    };
    made.compact(&order, &mut recorder, args, process, term)
}

/// What is taken back in the fork; nothing if nothing is to be.
fn without(before: &View, entry: EntryId, each: &[Which]) -> Result<Option<Retraction>, Failure> {
    if each.is_empty() {
        return Ok(None);
    }
    let found = edits::retract_each(before, each);
    let retraction = found.map_err(|error| match error {
        RetractError::Nowhere(nowhere) => Failure::usage(format!(
            "e{} is not in the fork, which ends at e{entry}: there it has not been laid; name a \
             later --at, or leave out --without",
            nowhere.entry
        )),
        error @ (RetractError::Nothing { .. }
        | RetractError::Another { .. }
        | RetractError::Already { .. }) => {
            let text = format!("in the fork, which ends at e{entry}, {error}");
            Failure::usage(text).advised("leave out --without")
        }
    })?;
    Ok(Some(retraction))
}

/// Takes overlays back, durable at once.
fn take_back(retraction: &Retraction, recorder: &mut Recorder) -> Result<Without, Failure> {
    let next_request = Next::new(recorder.view(), retraction.size);
    let entry = record(recorder, retraction.event())?;
    Ok(Without {
        entry,
        overlays: retraction.overlays.clone(),
        next_request,
    })
}

impl Made {
    /// Tells of the fork in one way or the other.
    fn tell(&self, view: &View, json: bool, term: &mut Term) -> std::io::Result<()> {
        if json {
            let text = serde_json::to_string(self).map_err(std::io::Error::from)?;
            return term.print_json(&text);
        }
        self.print(view, term)
    }

    /// Compacts the fork, which is there all the same if that fails.
    fn compact(
        mut self,
        order: &Order,
        recorder: &mut Recorder,
        args: &ForkArgs,
        process: &Process,
        term: &mut Term,
    ) -> Result<Exit, Failure> {
        if !args.json {
            self.print(recorder.view(), term)?;
        }
        let as_run = RunArgs {
            resume: Some(self.run.to_string()),
            settings: args.settings.clone(),
            ..RunArgs::default()
        };
        let carried = compact::carry_out(order, recorder, &as_run, process, term);
        let refused = match carried {
            Ok(report) if args.json => {
                self.compacted = Some(report);
                None
            }
            Ok(report) => {
                let name = self.run.short();
                compacted::show(&report, (Some(self.run), &name), How::Real, false, term)?;
                None
            }
            Err(failure) => Some(failure),
        };
        if args.json {
            self.tell(recorder.view(), true, term)?;
        }
        refused.map_or(Ok(Exit::Done), Err)
    }
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
        let first = first.and_then(Round::span);
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
            None => "there is nothing to fork: no round of the run is closed yet; it goes on with \
                     `undertext run --resume`"
                .to_owned(),
        })
    })
}

fn failed(error: ForkError, view: &View) -> Failure {
    let ForkError::Damaged { sound, .. } = &error else {
        return Failure::new(Exit::Transcript, error);
    };
    let closed = sound.and_then(|sound| view.rounds().closed_at(sound));
    let advice = closed.map_or(Advice::from(advice::PRINT), |closed| {
        format!("`--at e{closed}` takes the rounds before that").into()
    });
    Failure::new(Exit::Transcript, error).advised(advice)
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
        if let Some(Without {
            entry, overlays, ..
        }) = &self.without
        {
            let names: Vec<String> = overlays.iter().map(|one| format!("e{one}")).collect();
            let text = format!("{}, taken back by e{entry}", names.join(" "));
            row("without", text)?;
        }
        let next = view.estimate().tokens;
        let fill = brief::fill(next, view.setup().map(brief::trigger));
        let before = self
            .without
            .as_ref()
            .map(|without| without.next_request.before());
        let before = before.map_or_else(String::new, |before| {
            format!("{} → ", amount::count(before))
        });
        row("next request", before + &fill)?;
        let task = if self.answered { " \"TASK\"" } else { "" };
        // What is taken back would be laid anew at once.
        let next = self.without.as_ref().map(|without| without.next_request);
        let set = match next.filter(|next| next.is_compacted_again()) {
            Some(_) => " --set compaction.auto.enabled=false",
            None => "",
        };
        row(
            "to go on",
            format!("undertext run --resume {name}{set}{task}"),
        )
    }
}
