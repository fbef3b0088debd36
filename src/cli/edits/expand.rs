//! `expand`: a call that was put away reads in full again.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use undertext::compaction::edits::{self, ExpandError, Expansion};
use undertext::id::{CallId, EntryId, RunId};
use undertext::transcript::Event;

use crate::cli::edits::{Next, json, open, record, refused, row, some};
use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, SettingArgs, amount};

/// `expand`
#[derive(Debug, Args)]
pub(crate) struct ExpandArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The call, such as 41.2: the handle that its stub names
    #[arg(value_name = "CALL")]
    pub(crate) call: CallId,
    /// Write a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// What is told of a call that is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Expanded {
    run: RunId,
    call: CallId,
    /// The overlay that shows it; absent if it read in full already.
    #[serde(skip_serializing_if = "Option::is_none")]
    overlay: Option<EntryId>,
    /// The overlays that are lifted from it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lifts: Vec<EntryId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_request: Option<Next>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<Share>,
}

/// What shown calls or pins take, of what they may take, in tokens.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct Share {
    pub(super) takes: u64,
    pub(super) room: u64,
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (takes, room) = (amount::count(self.takes), amount::count(self.room));
        write!(f, "{takes} of {room} tokens")
    }
}

/// Shows a call in full.
pub(crate) fn expand(
    args: &ExpandArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let mut recorder = open(&args.run, &args.settings, process, term)?;
    let run = recorder.run();
    let found = edits::expand(recorder.view(), args.call).map_err(|error| {
        let advice = advice(&error, run);
        refused(error, advice)
    })?;
    let mut told = Expanded {
        run,
        call: args.call,
        overlay: None,
        lifts: Vec::new(),
        next_request: None,
        shown: None,
    };
    if let Some(Expansion {
        overlay,
        lifts,
        shown,
        room,
    }) = found
    {
        told.next_request = Some(Next::new(recorder.view(), overlay.size));
        told.overlay = Some(record(&mut recorder, Event::Overlay(overlay))?);
        told.lifts = lifts;
        told.shown = Some(Share { takes: shown, room });
    }
    if args.json {
        json(term, &told)?;
    } else {
        told.print(term)?;
    }
    if let Some(next) = told.next_request {
        next.warn(term)?;
    }
    Ok(Exit::Done)
}

/// What to do about a call that cannot be shown.
fn advice(error: &ExpandError, run: RunId) -> Option<String> {
    let run = run.short();
    match error {
        ExpandError::Covered { overlay, .. } => Some(format!("undertext retract {run} e{overlay}")),
        ExpandError::NoCalls {
            meant: Some(call), ..
        } => Some(format!("undertext expand {run} {call}")),
        ExpandError::Room { shown: 1.., .. } => Some(format!(
            "undertext retract {run} OVERLAY takes back what shows another"
        )),
        ExpandError::Room { shown: 0, .. }
        | ExpandError::Nowhere(_)
        | ExpandError::NoCalls { meant: None, .. }
        | ExpandError::Fewer { .. }
        | ExpandError::Aside(_) => None,
    }
}

impl Expanded {
    fn print(&self, term: &mut Term) -> std::io::Result<()> {
        let (name, call) = (self.run.short(), self.call);
        let (Some(overlay), Some(next), Some(shown)) =
            (self.overlay, self.next_request, self.shown)
        else {
            let text = format!("{call} reads in full already; nothing is changed");
            return term.print(&[(Look::Plain, text)]);
        };
        term.print(&[
            (Look::Strong, format!("{call} reads in full again")),
            (Look::Plain, format!("  run {name}, overlay e{overlay}")),
        ])?;
        let lifted = some(&self.lifts, |lifted| format!("e{lifted}"));
        row(term, "lifted from it", &lifted)?;
        row(term, "shown calls", &shown.to_string())?;
        next.print(term)?;
        let back = format!("undertext retract {name} e{overlay}");
        row(term, "to undo it", &back)
    }
}
