//! `retract`: overlays are taken back, and what they alone covered reads again.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use undertext::compaction::edits::{self, Retraction, Uncovered, Which};
use undertext::id::{EntryId, RunId};

use crate::cli::edits::{Next, json, open, record, refused, row, some};
use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, SettingArgs, amount};

/// `retract`
#[derive(Debug, Args)]
#[command(after_help = "\
What is taken back stays in the transcript, and a retract is final: to have an overlay again, lay it
anew with `undertext compact RUN --again OVERLAY`.")]
pub(crate) struct RetractArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// An overlay such as e210, the last pass (all its overlays), or all
    #[arg(value_name = "OVERLAY|last|all", default_value = "last")]
    pub(crate) which: Which,
    /// Write a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// What is told of overlays that were taken back.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Retracted {
    run: RunId,
    /// The entry that takes them back.
    entry: EntryId,
    overlays: Vec<EntryId>,
    next_request: Next,
    uncovers: Uncovered,
}

/// Takes overlays back.
pub(crate) fn retract(
    args: &RetractArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let mut recorder = open(&args.run, &args.settings, process, term)?;
    let found = edits::retract(recorder.view(), args.which);
    let retraction = found.map_err(|error| refused(error, None))?;
    let next = Next::new(recorder.view(), retraction.size);
    let entry = record(&mut recorder, retraction.event())?;
    let Retraction {
        overlays, uncovers, ..
    } = retraction;
    let told = Retracted {
        run: recorder.run(),
        entry,
        overlays,
        next_request: next,
        uncovers,
    };
    if args.json {
        json(term, &told)?;
    } else {
        told.print(term)?;
    }
    next.warn(term)?;
    Ok(Exit::Done)
}

impl Retracted {
    fn print(&self, term: &mut Term) -> std::io::Result<()> {
        let (name, overlays) = (self.run.short(), Shown(&self.overlays));
        term.print(&[
            (Look::Strong, format!("took back {overlays}")),
            (Look::Plain, format!("  run {name}, entry e{}", self.entry)),
        ])?;
        let all = &self.uncovers;
        let number =
            |number: usize, noun: &str| (number > 0).then(|| amount::of(number as u64, noun));
        let calls = |calls: &[_]| some(calls, ToString::to_string);
        let named = |noun: &str, named: &[_]| {
            number(named.len(), noun).map(|number| format!("{number}: {}", calls(named)))
        };
        let again = [
            rounds(&all.rounds),
            number(all.messages.len(), "message"),
            (!all.summaries.is_empty()).then(|| format!("summary {}", Shown(&all.summaries))),
            number(all.reasoning.len(), "block").map(|blocks| blocks + " of reasoning"),
            number(all.attachments.len(), "attachment"),
        ];
        let again: Vec<String> = again.into_iter().flatten().collect();
        row(term, "reads again", &again.join(", "))?;
        let full = named("result", &all.results);
        row(term, "in full again", &full.unwrap_or_default())?;
        let arguments = named("call", &all.arguments);
        row(term, "arguments of", &arguments.unwrap_or_default())?;
        let by: Vec<EntryId> = all.still_by.iter().copied().collect();
        let still = number(all.still.len(), "result");
        let still = still.map(|still| format!("{still}, by {}", Shown(&by)));
        row(term, "still put away", &still.unwrap_or_default())?;
        let away = named("result", &all.put_away);
        row(term, "put away again", &away.unwrap_or_default())?;
        if all.is_empty() {
            row(
                term,
                "reads again",
                "nothing: other overlays cover the same",
            )?;
        }
        self.next_request.print(term)?;
        let again = |overlay: &str| format!("undertext compact {name} --again {overlay}");
        match self.overlays.as_slice() {
            [overlay] => row(term, "to lay it again", &again(&format!("e{overlay}"))),
            _ => row(term, "to lay one anew", &again("OVERLAY")),
        }
    }
}

/// Overlays by name.
struct Shown<'a>(&'a [EntryId]);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&some(self.0, |overlay| format!("e{overlay}")))
    }
}

/// `10 rounds (r1 to r10)`
fn rounds(rounds: &[u32]) -> Option<String> {
    let number = amount::of(rounds.len() as u64, "round");
    let names = match rounds {
        [] => return None,
        [first, .., last] if rounds.is_sorted_by(|one, next| *next == one + 1) => {
            format!("r{first} to r{last}")
        }
        _ => some(rounds, |round| format!("r{round}")),
    };
    Some(format!("{number} ({names})"))
}
