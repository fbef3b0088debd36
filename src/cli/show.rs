//! `show`: one run at a glance.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::compaction;
use undertext::export;
use undertext::id::{EntryId, RunId};
use undertext::overlay::{Overlay, Size};
use undertext::record::{Clock, runs};
use undertext::transcript::{At, BatchTask, End, Event, Import, Speaker, Totals, Work};
use undertext::view::{Estimates, View};

use crate::cli::exit::{Exit, Failure};
use crate::cli::find::{self, Found};
use crate::cli::term::{Look, Term};
use crate::cli::unread::{Unread, unread};
use crate::cli::{Process, ShowArgs, amount, brief, entry, named, wrap};

/// The places of damage that are shown.
const DAMAGE: usize = 20;

/// Everything that is told of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Overview {
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    transcript: String,
    workspace: String,
    generator: String,
    /// Where it comes from, if another agent recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<Import>,
    /// The task of a batch that it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<BatchTask>,
    began: At,
    /// Whether a process is at work on it.
    #[serde(skip)]
    at_work: bool,
    /// Whether entries have times of their own.
    #[serde(skip)]
    timed: bool,
    task: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Model>,
    turns: usize,
    entries: usize,
    totals: Totals,
    context: Context,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimates: Option<Estimates>,
    /// How estimates are made now.
    #[serde(skip)]
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    regret: Option<Regret>,
    overlays: Vec<Laid>,
    /// By class.
    faults: BTreeMap<&'static str, u64>,
    notes: Vec<String>,
    /// Entries that this version does not understand.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<Unread>,
    damage: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<End>,
}

/// The model of the newest setup.
#[derive(Debug, Serialize, JsonSchema)]
struct Model {
    name: String,
    profile: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u64>,
}

/// What the next request would take.
#[derive(Debug, Serialize, JsonSchema)]
struct Context {
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<u64>,
}

/// What was hidden and then fetched again.
#[derive(Debug, Serialize, JsonSchema)]
struct Regret {
    /// The calls that were ever hidden.
    hidden: usize,
    /// Of those, the ones that were fetched again, by tool.
    by_tool: BTreeMap<String, u64>,
    /// Other texts that were.
    texts: usize,
    /// All of them by the rule that had hidden them.
    by_rule: BTreeMap<String, u64>,
}

/// An overlay.
#[derive(Debug, Serialize, JsonSchema)]
struct Laid {
    id: EntryId,
    origin: &'static str,
    kind: &'static str,
    rule: String,
    pass: EntryId,
    size: Size,
    covers: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    retracted: bool,
    #[serde(skip)]
    line: String,
}

/// Shows a run.
pub(crate) fn show(args: &ShowArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    let found = find::read(&args.run, &args.settings, process, term)?;
    let overview = overview(&found);
    if args.json {
        term.print_json(&serde_json::to_string(&overview).map_err(std::io::Error::from)?)?;
    } else {
        overview.print(Clock::System.now(), term)?;
    }
    Ok(Exit::Done)
}

fn overview(found: &Found) -> Overview {
    let view = &found.loaded.view;
    let transcript = view.transcript();
    let run = found.loaded.run();
    let standing: BTreeSet<EntryId> = view.overlays().into_iter().collect();
    let mut overview = Overview {
        run: run.map(|run| run.run),
        name: run.and_then(|run| run.name.clone()),
        transcript: found.path.display().to_string(),
        workspace: run.map_or_else(String::new, |run| run.workspace.clone()),
        generator: run.map_or_else(String::new, |run| run.generator.clone()),
        imported: run.and_then(|run| run.imported.clone()),
        batch: run.and_then(|run| run.batch.clone()),
        began: transcript
            .entries()
            .first()
            .map_or_else(At::default, |first| first.at),
        at_work: runs::is_at_work(&found.path),
        timed: timed(found),
        task: String::new(),
        model: view.wire().map(|wire| Model {
            name: wire.models.main.name.clone(),
            profile: wire.models.main.profile.name.clone(),
            window: wire.models.main.window,
        }),
        turns: view.rounds().turns().len(),
        entries: transcript.entries().len(),
        totals: view.ledger().whole,
        context: Context {
            tokens: view.estimate().tokens,
            trigger: view.setup().map(brief::trigger),
        },
        estimates: view.estimates(),
        rule: compaction::rule(view),
        regret: regret(view),
        overlays: Vec::new(),
        faults: BTreeMap::new(),
        notes: Vec::new(),
        unread: unread(view),
        damage: found
            .loaded
            .damage
            .iter()
            .map(ToString::to_string)
            .collect(),
        end: None,
    };
    for entry in transcript.entries() {
        match &entry.event {
            Event::User(user) if user.origin == Speaker::Task => {
                overview.task.clone_from(&user.text);
            }
            Event::Overlay(overlay) => {
                overview
                    .overlays
                    .push(laid(entry.id, overlay, standing.contains(&entry.id)));
            }
            Event::Fault(fault) => *overview.faults.entry(fault.class.word()).or_default() += 1,
            Event::Note(note) => {
                overview
                    .notes
                    .push(format!("e{}: {}", entry.id, named::note(view, note)));
            }
            Event::End(end) => overview.totals.ms += end.totals.ms,
            Event::User(_)
            | Event::Run(_)
            | Event::Setup(_)
            | Event::Request(_)
            | Event::Response(_)
            | Event::Started(_)
            | Event::Result(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Unknown(_) => {}
        }
    }
    let mut work = Work::default();
    let mut last = None;
    for entry in transcript.entries() {
        if work.take(entry) {
            last = Some(entry);
        }
    }
    if let Some(last) = last {
        if let Event::End(end) = &last.event {
            overview.end = Some(end.clone());
        } else {
            let begun = view.ledger().begun.unwrap_or(last.at);
            overview.totals.ms += last.at.ms_since(begun);
        }
    }
    overview
}

/// Whether entries have times of their own: what another agent recorded may have none.
fn timed(found: &Found) -> bool {
    let is_imported = found.loaded.run().is_some_and(|run| run.imported.is_some());
    let entries = found.loaded.view.transcript().entries();
    let times = entries.first().zip(entries.last());
    !is_imported || times.is_some_and(|(first, last)| first.at != last.at)
}

fn laid(id: EntryId, overlay: &Overlay, stands: bool) -> Laid {
    Laid {
        id,
        origin: overlay.origin.word(),
        kind: brief::kind(&overlay.layer),
        rule: overlay.rule.clone(),
        pass: overlay.pass,
        size: overlay.size,
        covers: export::covers(&overlay.layer),
        reason: overlay.reason.clone(),
        retracted: !stands,
        line: brief::overlay(id, overlay),
    }
}

/// What was hidden and then fetched again; `None` if nothing was hidden.
fn regret(view: &View) -> Option<Regret> {
    let hidden = view.ever_hidden().len();
    let regret = view.regret();
    let texts = regret.texts().len();
    (hidden > 0 || texts > 0).then(|| Regret {
        hidden,
        by_tool: regret.by_tool().clone(),
        texts,
        by_rule: regret.by_rule().clone(),
    })
}

/// Whether most estimates are of any use.
fn is_near(estimates: &Estimates) -> bool {
    estimates.median_permille < 500
}

/// How far estimates were off, in words.
fn estimate_error(estimates: &Estimates, rule: &str) -> String {
    let Estimates {
        rounds,
        median_permille,
        worst_permille,
        not_believed,
        ..
    } = *estimates;
    let refused = match not_believed {
        0 => String::new(),
        count => format!("{} not believed", amount::of(count, "count")),
    };
    if rounds == 0 {
        return format!("{rule}; {refused}");
    }
    let percent = |permille: u64| amount::count(permille.div_ceil(10));
    let refused = if refused.is_empty() {
        refused
    } else {
        format!(", {refused}")
    };
    let near = if is_near(estimates) {
        "within"
    } else {
        "off by"
    };
    format!(
        "{near} {} % of what the provider counted (worst {} %, {}; {rule}){refused}",
        percent(median_permille),
        percent(worst_permille),
        amount::of(rounds, "round")
    )
}

impl Overview {
    /// Whether the run goes on, by the name that resumes it.
    fn state(&self, name: &str) -> String {
        match &self.end {
            Some(end) => end.reason.word().to_owned(),
            None if self.imported.is_some() => "the recording has no end".to_owned(),
            None if self.at_work => "running: a process is at work on it".to_owned(),
            None => {
                format!("open: it was killed, and goes on with `undertext run --resume {name}`")
            }
        }
    }

    fn print(&self, now: At, term: &mut Term) -> std::io::Result<()> {
        let name = self
            .run
            .map_or_else(|| "without a name".to_owned(), RunId::short);
        let state = self.state(&name);
        term.print(&[
            (Look::Strong, format!("run {name}")),
            (Look::Plain, format!("  {state}")),
        ])?;
        let room = term.width().map_or(100, |width| width.saturating_sub(14));
        let masks = term.masks().clone();
        let mut row = |name: &str, text: &str| {
            let mut name = name;
            for line in text.lines() {
                let name = std::mem::take(&mut name);
                let line = [
                    (Look::Faint, format!("  {name:<12}")),
                    (Look::Plain, line.to_owned()),
                ];
                wrap::print(&line, 14, term)?;
            }
            std::io::Result::Ok(())
        };
        row("name", self.name.as_deref().unwrap_or_default())?;
        row("task", &brief::first_line(&masks, &self.task, room))?;
        row("workspace", &self.workspace)?;
        row(
            "batch",
            &self.batch.as_ref().map_or_else(String::new, entry::batch),
        )?;
        row(
            "transcript",
            &format!(
                "{} ({})",
                self.transcript,
                amount::entries(self.entries as u64)
            ),
        )?;
        if let Some(model) = &self.model {
            let window = model
                .window
                .map_or_else(|| "unknown".to_owned(), amount::count);
            row(
                "model",
                &format!(
                    "{} (profile {}, window {window})",
                    model.name, model.profile
                ),
            )?;
        }
        let ago = amount::ago(now.ms_since(self.began));
        let mut began = format!("{}, {ago}, by {}", self.began, self.generator);
        if !self.timed {
            began += "; entries have no times of their own; a recording without any is dated by its file";
        }
        row("began", &began)?;
        if let Some(import) = &self.imported {
            row("imported", &format!("from {}", import.file))?;
        }
        row("work", &self.work())?;
        row("tokens", &self.tokens())?;
        if let Some(estimates) = &self.estimates {
            let mut text = estimate_error(estimates, &self.rule);
            if self.imported.is_some() && !is_near(estimates) {
                text += "; the recording may not hold all that was sent";
            }
            row("estimate", &text)?;
        }
        row(
            "context",
            &brief::fill(self.context.tokens, self.context.trigger),
        )?;
        if let Some(regret) = &self.regret {
            row("regret", &regret.text())?;
        }
        let overlays: Vec<String> = self.overlays.iter().map(Laid::text).collect();
        row("overlays", &overlays.join("\n"))?;
        let faults: Vec<String> = self
            .faults
            .iter()
            .map(|(class, times)| format!("{times} {class}"))
            .collect();
        row("faults", &faults.join(", "))?;
        row("notes", &self.notes.join("\n"))?;
        if let Some(unread) = &self.unread {
            row("unread", &unread.text())?;
        }
        let (shown, more) = self.damage.split_at(self.damage.len().min(DAMAGE));
        let mut damage = shown.join("\n");
        if !more.is_empty() {
            let more = amount::of(more.len() as u64, "place");
            write!(damage, "\nand {more} more").ok();
        }
        row("damage", &damage)?;
        if let Some(end) = &self.end {
            row("end", end.text.trim())?;
        }
        Ok(())
    }

    fn work(&self) -> String {
        let mut work = format!(
            "{}, {}, {}, {}",
            amount::of(self.turns as u64, "turn"),
            amount::of(self.totals.rounds, "round"),
            amount::of(self.totals.requests, "request"),
            amount::of(self.totals.calls, "call"),
        );
        if self.timed {
            write!(work, " in {}", amount::time(self.totals.ms)).ok();
        }
        work
    }

    fn tokens(&self) -> String {
        let totals = &self.totals;
        format!(
            "{} in ({} cached), {} out{}{}",
            amount::count(totals.input),
            amount::count(totals.cached),
            amount::count(totals.output),
            entry::estimated(totals),
            entry::cost(totals)
        )
    }
}

impl Regret {
    fn text(&self) -> String {
        let named = |counts: &BTreeMap<String, u64>| {
            let counts = counts.iter();
            counts
                .map(|(name, count)| format!("{name} {}", amount::count(*count)))
                .collect::<Vec<_>>()
        };
        let mut fetched = named(&self.by_tool);
        if self.texts > 0 {
            fetched.push(amount::of(self.texts as u64, "text"));
        }
        let hidden = amount::of(self.hidden as u64, "call");
        if fetched.is_empty() {
            return format!("none (of {hidden} hidden)");
        }
        let rules = named(&self.by_rule).join(", ");
        format!(
            "{} (of {hidden} hidden; by rule: {rules})",
            fetched.join(", ")
        )
    }
}

impl Laid {
    fn text(&self) -> String {
        let retracted = if self.retracted { " (retracted)" } else { "" };
        format!("{}{retracted}", self.line)
    }
}
