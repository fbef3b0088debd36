//! `retract`, `expand`, `pin`, `unpin`: a person changes how a run reads, by one more entry.
//!
//! What can be changed and what comes of it is for [`undertext::compaction::edits`] to say; here the
//! entry is recorded, under the transcript's lock, and told.

mod expand;
mod pin;
mod retract;

use std::io;

pub(crate) use expand::{ExpandArgs, expand};
pub(crate) use pin::{PinArgs, pin, unpin};
pub(crate) use retract::{RetractArgs, retract};
#[cfg(test)]
pub(crate) use {expand::Expanded, pin::Pinned, retract::Retracted};

use schemars::JsonSchema;
use serde::Serialize;
use undertext::compaction::edits;
use undertext::config::{self, Sections};
use undertext::id::EntryId;
use undertext::overlay::Size;
use undertext::record::{Clock, OnDamage, Recorder};
use undertext::transcript::{Event, Note};
use undertext::view::View;

use crate::cli::exit::Failure;
use crate::cli::term::{Look, Term};
use crate::cli::{Process, SettingArgs, amount, brief, find, site};

/// The run that a text names, locked and ready for one more entry.
fn open(
    run: &str,
    settings: &SettingArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Recorder, Failure> {
    let sources = settings.sources(&process.environment, Sections::default());
    let settings = config::load(&sources)?;
    let dir = settings.transcripts_dir(&process.environment)?;
    let path = find::path(run, &dir, process)?;
    let storage = site::opened(&path, &settings, &dir, process)?;
    let mut recorder = Recorder::open(Box::new(storage), Clock::System, OnDamage::Refuse)?;
    recorder.keep_out(process.known());
    // What opening it found and closed.
    if let Some(last) = recorder.view().transcript().last()
        && let Event::Note(note @ Note::Torn(_)) = &last.event
    {
        term.say(&[(Look::Bad, "warning: "), (Look::Plain, &brief::note(note))])?;
    }
    Ok(recorder)
}

/// Records the one entry that makes the change, durable at once.
pub(super) fn record(recorder: &mut Recorder, event: Event) -> Result<EntryId, Failure> {
    let entry = recorder.record(event)?;
    recorder.sync()?;
    keep_index(recorder);
    Ok(entry)
}

/// Keeps the index of a long transcript, so that whoever takes the run up next need not read all of it.
pub(super) fn keep_index(recorder: &mut Recorder) {
    if let Err(error) = recorder.keep_index() {
        tracing::debug!("no index is kept: {error}");
    }
}

/// What cannot be done, and what to do instead.
fn refused(error: impl std::fmt::Display, advice: Option<String>) -> Failure {
    let advice = advice.map_or_else(String::new, |advice| format!(": {advice}"));
    Failure::usage(format!("{error}{advice}"))
}

/// What the next request takes, and where it would be compacted.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct Next {
    /// Before the change, in tokens.
    before: u64,
    /// After it.
    after: u64,
    /// Above this it is compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<u64>,
    /// It is over that now, and was not as far before: it is compacted again before it is sent.
    compacted_again: bool,
}

impl Next {
    /// Of a change that does this to it.
    pub(crate) fn new(view: &View, size: Size) -> Self {
        Self {
            before: size.before,
            after: size.after,
            trigger: view.setup().map(brief::trigger),
            compacted_again: edits::compacted_again(view, size).is_some(),
        }
    }

    /// What it took before the change, in tokens.
    pub(crate) fn before(self) -> u64 {
        self.before
    }

    /// Whether it is compacted again before it is sent.
    pub(crate) fn is_compacted_again(self) -> bool {
        self.compacted_again
    }

    /// Prints it, and warns if what was uncovered does not stay so.
    fn print(self, term: &mut Term) -> io::Result<()> {
        let after = brief::fill(self.after, self.trigger);
        let text = format!("{} → {after}", amount::count(self.before));
        row(term, "next request", &text)
    }

    /// Says that the change may not last.
    pub(crate) fn warn(self, term: &mut Term) -> io::Result<()> {
        let Some(trigger) = self.trigger.filter(|_| self.compacted_again) else {
            return Ok(());
        };
        let text = format!(
            "the next request would be over {} tokens, so it is compacted again before it is sent",
            amount::count(trigger)
        );
        term.say(&[(Look::Bad, "warning: "), (Look::Plain, &text)])
    }
}

/// A line of a report: what it is about, and what is said of it. Nothing to say is no line.
fn row(term: &mut Term, name: &str, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    term.print(&[
        (Look::Faint, format!("  {name:<17}")),
        (Look::Plain, text.to_owned()),
    ])
}

/// Some of many things by name, the others by number.
fn some<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<String> = all.iter().take(SHOWN).map(name).collect();
    if let Some(more) = all.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        names.push(format!("and {} more", amount::count(more as u64)));
    }
    names.join(" ")
}

fn json(term: &mut Term, told: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(told).map_err(io::Error::from)?;
    Ok(term.print_json(&text)?)
}
