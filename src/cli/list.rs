//! `list`: the runs, newest first.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::id::{EntryId, RunId};
use undertext::record::runs::{self, RunFile};
use undertext::record::{Clock, newer_format};
use undertext::transcript::jsonl::{Item, Reader};
use undertext::transcript::turn::Rounds;
use undertext::transcript::{At, Event, Speaker, Work};

use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{ListArgs, Process, amount, brief, find};

/// The longest beginning of a task that is shown where no terminal says, in characters.
const TASK_CHARS: usize = 60;

/// With less room than this behind the facts, in characters, no workspace is shown.
const ROOM: usize = 40;

/// The least of a task that is shown behind a name, in characters.
const LEAST: usize = 12;

/// What is told of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Glance {
    run: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    transcript: String,
    began: At,
    workspace: String,
    turns: usize,
    rounds: usize,
    /// The reason of its end. Of a run without one: `running` if a process is at work on it, `recording`
    /// if another agent recorded it, else `open`. `unreadable` if the file cannot be read.
    state: &'static str,
    /// Its format, if it is newer than this version knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    newer: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    damaged: bool,
    task: String,
}

/// Lists the runs.
pub(crate) fn list(args: &ListArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    let dir = find::directory(&args.settings, process)?;
    let runs = runs::list(&dir)?;
    if runs.is_empty() && !args.json {
        let text = format!("no runs in {}", dir.display());
        term.say(&[(Look::Faint, text)])?;
    }
    let now = Clock::System.now();
    for file in &runs {
        let glance = glance(file);
        if args.json {
            term.print_json(&serde_json::to_string(&glance).map_err(std::io::Error::from)?)?;
        } else {
            row(&glance, now, term)?;
        }
    }
    Ok(Exit::Done)
}

fn row(glance: &Glance, now: At, term: &mut Term) -> Result<(), Failure> {
    let ago = amount::ago(now.ms_since(glance.began));
    let rounds = amount::of(glance.rounds as u64, "round");
    let mut state = glance.state.to_owned();
    if glance.damaged {
        state += ", damaged";
    }
    if glance.newer.is_some() {
        state += ", newer format";
    }
    let name = glance.run.short();
    let facts = format!("  {ago:9}  {rounds:>10}  {state:11}  ");
    let room = term
        .width()
        .map(|width| width.saturating_sub(name.chars().count() + facts.chars().count() + 2));
    // Where there is little room, what was to be done says more than where.
    let masks = term.masks().clone();
    let workspace = match room {
        Some(..ROOM) => String::new(),
        Some(room) => brief::tail(&masks, &glance.workspace, room / 2) + "  ",
        None => masks.text(&glance.workspace).into_owned() + "  ",
    };
    let left = room.map_or(TASK_CHARS, |room| {
        (room + 2).saturating_sub(workspace.chars().count())
    });
    let called = glance.name.as_deref().map_or_else(String::new, |called| {
        brief::cut_between(&masks, called, left / 2) + "  "
    });
    let left = left.saturating_sub(called.chars().count());
    let task = match left {
        ..LEAST if !called.is_empty() => String::new(),
        _ => brief::cut_between(&masks, &glance.task, left),
    };
    term.print(&[
        (Look::Strong, name),
        (Look::Plain, facts),
        (Look::Faint, workspace),
        (Look::Strong, called),
        (Look::Plain, task),
    ])?;
    Ok(())
}

/// What one reading of the file tells, without a view of it.
fn glance(file: &RunFile) -> Glance {
    let mut glance = Glance {
        run: file.id,
        name: None,
        transcript: file.path.display().to_string(),
        began: file.modified,
        workspace: String::new(),
        turns: 0,
        rounds: 0,
        state: "open",
        newer: None,
        damaged: false,
        task: String::new(),
    };
    let Ok(bytes) = File::open(&file.path) else {
        glance.state = "unreadable";
        return glance;
    };
    let mut rounds = Rounds::default();
    let mut work = Work::default();
    for item in Reader::new(BufReader::with_capacity(64 << 10, bytes)) {
        let entry = match item {
            Ok(Item::Entry { entry, .. }) => entry,
            // The last line of a run that goes on may be half written.
            Ok(Item::Torn(_)) => continue,
            Ok(Item::Damage(_)) => {
                glance.damaged = true;
                continue;
            }
            Err(_) => {
                glance.state = "unreadable";
                return glance;
            }
        };
        let entry = Arc::unwrap_or_clone(entry);
        rounds.take(&entry);
        work.take(&entry);
        if entry.id == EntryId::FIRST {
            glance.newer = newer_format(&entry.event);
        }
        match entry.event {
            Event::Run(run) => {
                glance.began = entry.at;
                glance.workspace = run.workspace;
                glance.name = run.name;
                if run.imported.is_some() {
                    glance.state = "recording";
                }
            }
            Event::User(user) if user.origin == Speaker::Task => glance.task = user.text,
            Event::User(_)
            | Event::Setup(_)
            | Event::Request(_)
            | Event::Response(_)
            | Event::Started(_)
            | Event::Result(_)
            | Event::Overlay(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => {}
        }
    }
    glance.turns = rounds.turns().len();
    glance.rounds = rounds.all().len();
    if let Some(reason) = work.ended() {
        glance.state = reason.word();
    } else if runs::is_at_work(&file.path) {
        glance.state = "running";
    }
    glance
}
