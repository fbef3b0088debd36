//! `pin` and `unpin`: what must stay readable, whatever is compacted.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use undertext::compaction::edits::{self, Pinning, Target, Unread};
use undertext::id::{EntryId, RunId};
use undertext::transcript::{Event, Pin};

use crate::cli::edits::expand::Share;
use crate::cli::edits::{json, open, record, refused, row};
use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, SettingArgs};

/// `pin` and `unpin`
#[derive(Debug, Args)]
pub(crate) struct PinArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// A message, a reply or a result such as e57, or a call such as 41.2: its result
    #[arg(value_name = "ENTRY")]
    pub(crate) entry: Target,
    /// Write a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// What is told of an entry that was pinned or unpinned.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Pinned {
    run: RunId,
    /// What is pinned or not.
    of: EntryId,
    /// Whether it is pinned now.
    on: bool,
    /// The entry that made it so; absent if it was so already.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<EntryId>,
    /// The pin protects it: it read in full when it was pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    protects: Option<bool>,
    /// What all pins take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pins: Option<Share>,
}

/// Pins an entry.
pub(crate) fn pin(args: &PinArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    let mut recorder = open(&args.run, &args.settings, process, term)?;
    let found = edits::pin(recorder.view(), args.entry);
    let Pinning {
        entry: pinned,
        already,
        unread,
        pinned: takes,
        room,
    } = found.map_err(|error| refused(error, None))?;
    let entry = if already {
        None
    } else {
        Some(record(&mut recorder, Event::Pin(Pin { entry: pinned }))?)
    };
    let told = Pinned {
        run: recorder.run(),
        of: pinned,
        on: true,
        entry,
        protects: Some(unread.is_none()),
        pins: Some(Share { takes, room }),
    };
    if args.json {
        json(term, &told)?;
    } else {
        told.print(term)?;
    }
    if let Some(unread) = unread {
        let text = unprotected(pinned, unread, told.run);
        term.say(&[(Look::Bad, "warning: "), (Look::Plain, &text)])?;
    }
    Ok(Exit::Done)
}

/// Says that a pin uncovers nothing, and what does.
fn unprotected(pinned: EntryId, unread: Unread, run: RunId) -> String {
    let run = run.short();
    let (by, uncovers) = match unread {
        Unread::Call(call, overlay) => (overlay, format!("undertext expand {run} {call}")),
        Unread::Covered(overlay) => (overlay, format!("undertext retract {run} e{overlay}")),
    };
    format!(
        "e{pinned} does not read in full, by e{by}, and a pin uncovers nothing: it protects nothing \
         until it is laid again after `{uncovers}`"
    )
}

/// Unpins an entry.
pub(crate) fn unpin(args: &PinArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    let mut recorder = open(&args.run, &args.settings, process, term)?;
    let found = edits::unpin(recorder.view(), args.entry);
    let (pinned, is_pinned) = found.map_err(|error| refused(error, None))?;
    let entry = if is_pinned {
        Some(record(&mut recorder, Event::Unpin(Pin { entry: pinned }))?)
    } else {
        None
    };
    let told = Pinned {
        run: recorder.run(),
        of: pinned,
        on: false,
        entry,
        protects: None,
        pins: None,
    };
    if args.json {
        json(term, &told)?;
    } else {
        told.print(term)?;
    }
    Ok(Exit::Done)
}

impl Pinned {
    fn print(&self, term: &mut Term) -> std::io::Result<()> {
        let (name, pinned) = (self.run.short(), self.of);
        let Some(entry) = self.entry else {
            let state = if self.on {
                "pinned already"
            } else {
                "not pinned"
            };
            let text = format!("e{pinned} is {state}; nothing is changed");
            return term.print(&[(Look::Plain, text)]);
        };
        let (done, back) = if self.on {
            ("pinned", "unpin")
        } else {
            ("unpinned", "pin")
        };
        term.print(&[
            (Look::Strong, format!("{done} e{pinned}")),
            (Look::Plain, format!("  run {name}, entry e{entry}")),
        ])?;
        let pins = self.pins.map(|pins| pins.to_string());
        row(term, "all pins", &pins.unwrap_or_default())?;
        let back = format!("undertext {back} {name} e{pinned}");
        row(term, "to undo it", &back)
    }
}
