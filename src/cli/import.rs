//! `import`: runs that other agents recorded become transcripts of ours.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use undertext::config::{self, Sections};
use undertext::id::{Digest, RunId};
use undertext::import::{self, Format, ImportError, Imported, Recordings};
use undertext::overlay::Layer;
use undertext::record::{Clock, Durability, FileStorage, Recorder, runs};
use undertext::secret;
use undertext::transcript::{Event, Import, Note};

use crate::cli::ending::quoted;
use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, SettingArgs, amount, brief};

/// `import`
#[derive(Debug, Args)]
#[command(after_help = "\
What the model was sent becomes a run like any other: show, print, replay, why, page and lab work \
on it. The format is found out by itself. The files are only read.

Examples:
  undertext import ~/.codex/sessions              every recording below a directory
  undertext import run.jsonl --out elsewhere      not among your own runs
  gunzip -c run.jsonl.gz | undertext import -     what comes through a pipe

Formats: claude-code, codex, pi, mini-swe-agent, swe-agent, openhands, openhands-sdk, atif, \
gemini-cli, copilot-cli, inspect, aider")]
pub(crate) struct ImportArgs {
    /// Files that an agent recorded, or directories that hold some; - reads standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Read them as this format
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Keep the transcripts in this directory [default: where all are kept]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Call the runs this, where runs are listed
    #[arg(long, value_name = "TEXT", value_parser = crate::cli::run_args::title)]
    pub(crate) name: Option<String>,
    /// Import once more what was imported before
    #[arg(long)]
    pub(crate) again: bool,
    /// Write one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// What is told of a run that was imported.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Told {
    run: RunId,
    transcript: String,
    imported: Import,
    /// It was imported before, and nothing was written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    already: bool,
    /// What it holds; absent if nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<Holds>,
}

/// What an imported run holds.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Holds {
    /// The agent and its version.
    generator: String,
    turns: usize,
    rounds: usize,
    calls: u64,
    /// Compactions that the agent recorded.
    compactions: usize,
    /// Tokens read and written, as the provider counted them; absent if the file does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Tokens>,
    /// The tokens of the next request, as estimated.
    next: u64,
    /// What a person should know of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// Tokens as the provider counted them.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Tokens {
    input: u64,
    cached: u64,
    output: u64,
    /// Rounds that were not counted.
    #[serde(skip_serializing_if = "is_none")]
    uncounted: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "what the serializer calls it with"
)]
fn is_none(number: &u64) -> bool {
    *number == 0
}

/// Where runs go, and what is there already.
struct Shelf<'a> {
    args: &'a ImportArgs,
    dir: PathBuf,
    sync: Durability,
    known: Vec<Known>,
    /// What must be nowhere.
    secrets: secret::Known,
    /// Whether something was of no known format.
    is_unknown: bool,
}

/// A run that was imported before.
struct Known {
    sha256: Digest,
    part: Option<u32>,
    run: RunId,
    path: PathBuf,
}

/// Imports recordings.
pub(crate) fn import(
    args: &ImportArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let sources = args
        .settings
        .sources(&process.environment, Sections::default());
    let settings = config::load(&sources)?;
    let dir = match &args.out {
        Some(dir) => dir.clone(),
        None => settings.transcripts_dir(&process.environment)?,
    };
    let key = settings.server.api_key_env.as_ref();
    let key = key.and_then(|name| process.environment.get(name));
    let mut shelf = Shelf {
        args,
        known: known(&dir)?,
        dir,
        sync: settings.transcripts.sync,
        secrets: process.known().and(&secret::Known::new(key)),
        is_unknown: false,
    };
    let mut failed = None;
    for path in &args.files {
        let found = match import::recordings(path) {
            _ if path.as_os_str() == "-" => Recordings {
                paths: vec![path.clone()],
                is_cut: false,
            },
            Ok(found) if found.paths.is_empty() => {
                failed = Some(Exit::Usage);
                shelf.is_unknown = true;
                let text = format!(
                    "no recording of a known agent in {}; name one, and its format with --format",
                    path.display()
                );
                term.say(&[(Look::Bad, "undertext: "), (Look::Plain, &text)])?;
                continue;
            }
            Ok(found) => found,
            Err(source) => {
                failed = Some(Exit::Usage);
                let path = path.clone();
                let failure = Failure::new(Exit::Usage, ImportError::Read { path, source });
                term.say(&[(Look::Bad, "undertext: "), (Look::Plain, &failure.said())])?;
                continue;
            }
        };
        // One that cannot be imported does not keep the others from it.
        for recording in &found.paths {
            if let Err(failure) = shelf.import(recording, term) {
                if failure.is_broken_pipe() || failure.exit != Exit::Usage {
                    return Err(failure);
                }
                failed = Some(failure.exit);
                term.say(&[(Look::Bad, "undertext: "), (Look::Plain, &failure.said())])?;
            }
        }
        if found.is_cut {
            let text = format!(
                "{} holds more than is looked through: name what lies deeper",
                path.display()
            );
            term.say(&[(Look::Bad, "warning: "), (Look::Plain, &text)])?;
        }
    }
    // Once, however many are refused.
    if shelf.is_unknown {
        let text = format!("known formats: {}", Format::names());
        term.say(&[(Look::Faint, text)])?;
    }
    Ok(failed.unwrap_or(Exit::Done))
}

/// What was imported into a directory before.
fn known(dir: &Path) -> Result<Vec<Known>, Failure> {
    let files = runs::list(dir)?.into_iter();
    let known = files.filter_map(|file| {
        let import = file.run()?.imported?;
        Some(Known {
            sha256: import.sha256,
            part: import.part,
            run: file.id,
            path: file.path,
        })
    });
    Ok(known.collect())
}

impl Shelf<'_> {
    fn import(&mut self, recording: &Path, term: &mut Term) -> Result<(), Failure> {
        let format = self.args.format;
        let imported = if recording.as_os_str() == "-" {
            // A run without times is dated now.
            import::read_from(
                "standard input",
                Box::new(io::stdin()),
                Clock::System.now(),
                format,
            )
        } else {
            import::read(recording, format)
        };
        let imported = imported.map_err(|error| {
            self.is_unknown |= matches!(error, ImportError::Unknown { .. });
            Failure::new(Exit::Usage, error)
        });
        for run in imported? {
            let told = self.run(run)?;
            if self.args.json {
                let text = serde_json::to_string(&told).map_err(io::Error::from)?;
                term.print_json(&text)?;
            } else {
                let elsewhere = self.args.out.is_some();
                told.print(elsewhere, term)?;
            }
        }
        Ok(())
    }

    fn run(&mut self, imported: Imported) -> Result<Told, Failure> {
        let import = imported.import().clone();
        let same = |known: &&Known| {
            (known.sha256, known.part) == (import.sha256, import.part) && !self.args.again
        };
        if let Some(known) = self.known.iter().find(same) {
            return Ok(Told {
                run: known.run,
                transcript: known.path.display().to_string(),
                imported: import,
                already: true,
                holds: None,
            });
        }
        // Another copy gets an id of its own.
        let is_free = |run: &RunId| !self.dir.join(format!("{run}.jsonl")).exists();
        let mut ids = (0..).map(|copy| imported.run_id(copy));
        let run = ids.find(is_free).unwrap_or_else(|| imported.run_id(0));
        let storage = FileStorage::create(&self.dir, run, self.sync)?;
        let path = storage.path().to_owned();
        let name = self.args.name.clone();
        let secrets = self.secrets.clone();
        let recorder = match imported.record(Box::new(storage), run, name, secrets) {
            Ok(recorder) => recorder,
            Err(error) => {
                // Half a run is none.
                runs::remove(&path).ok();
                return Err(error.into());
            }
        };
        self.known.push(Known {
            sha256: import.sha256,
            part: import.part,
            run,
            path: path.clone(),
        });
        Ok(Told {
            run,
            transcript: path.display().to_string(),
            imported: import,
            already: false,
            holds: Some(holds(&recorder)),
        })
    }
}

/// What a run holds.
fn holds(recorder: &Recorder) -> Holds {
    let view = recorder.view();
    let mut holds = Holds {
        generator: String::new(),
        turns: view.rounds().turns().len(),
        rounds: view.rounds().all().len(),
        calls: view.ledger().whole.calls,
        compactions: 0,
        tokens: None,
        next: view.estimate().tokens,
        notes: Vec::new(),
    };
    let mut tokens = Tokens::default();
    for entry in view.transcript().entries() {
        if let Event::Run(run) = &entry.event {
            holds.generator.clone_from(&run.generator);
        } else if let Event::Note(Note::Warning { text }) = &entry.event {
            holds.notes.push(text.clone());
        } else if let Event::Overlay(overlay) = &entry.event {
            holds.compactions += usize::from(matches!(overlay.layer, Layer::Summary(_)));
        } else if let Event::Response(response) = &entry.event {
            let usage = response.usage.unwrap_or_default();
            tokens.input = tokens.input.saturating_add(usage.input.unwrap_or(0));
            tokens.cached = tokens.cached.saturating_add(usage.cached.unwrap_or(0));
            tokens.output = tokens.output.saturating_add(usage.output.unwrap_or(0));
            tokens.uncounted += u64::from(usage.input.is_none());
        }
    }
    holds.tokens = (tokens.input > 0).then_some(tokens);
    holds
}

impl Told {
    /// Kept elsewhere, a run is found by its path alone.
    fn print(&self, elsewhere: bool, term: &mut Term) -> io::Result<()> {
        let name = self.run.short();
        let Import {
            format,
            file,
            part,
            skipped,
            ..
        } = &self.imported;
        let part = part.map_or_else(String::new, |part| format!(", run {part} in it"));
        let Some(holds) = &self.holds else {
            return term.print(&[
                (Look::Strong, format!("run {name}")),
                (
                    Look::Plain,
                    format!(" holds {file}{part} already; --again imports it once more"),
                ),
            ]);
        };
        term.print(&[
            (Look::Strong, format!("run {name}")),
            (Look::Plain, format!(": {}", self.transcript)),
        ])?;
        let masks = term.masks().clone();
        let mut row = |name: &str, text: String| {
            term.print(&[(Look::Faint, format!("  {name:<17}")), (Look::Plain, text)])
        };
        row("imported from", format!("{file}{part}"))?;
        let agent = match &holds.generator {
            generator if generator.starts_with(format.as_str()) => generator.clone(),
            generator => format!("{generator}, as {format}"),
        };
        row("recorded by", agent)?;
        row(
            "holds",
            format!(
                "{}, {}, {}",
                amount::of(holds.turns as u64, "turn"),
                amount::of(holds.rounds as u64, "round"),
                amount::of(holds.calls, "call")
            ),
        )?;
        row(
            "tokens",
            match &holds.tokens {
                None => "not counted in the file".to_owned(),
                Some(tokens) => {
                    let uncounted = match tokens.uncounted {
                        0 => String::new(),
                        rounds => format!(", {} without a count", amount::of(rounds, "round")),
                    };
                    format!(
                        "{} in ({} cached), {} out{uncounted}",
                        amount::count(tokens.input),
                        amount::count(tokens.cached),
                        amount::count(tokens.output)
                    )
                }
            },
        )?;
        if holds.compactions > 0 {
            let count = amount::of(holds.compactions as u64, "recorded compaction");
            row("compacted", count)?;
        }
        if *skipped > 0 {
            let lines = amount::of(*skipped, "line");
            row("left out", format!("{lines} that cannot be read"))?;
        }
        // The same may be said of many places.
        let mut notes: Vec<(&str, u64)> = Vec::new();
        for note in &holds.notes {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, times)) => *times += 1,
                None => notes.push((note, 1)),
            }
        }
        for (place, (note, times)) in notes.iter().enumerate().take(NOTES) {
            let mut text = brief::first_line(&masks, note, NOTE_CHARS);
            if *times > 1 {
                write!(text, " ({times} times)").ok();
            }
            row(if place == 0 { "notes" } else { "" }, text)?;
        }
        if let Some(more @ 1..) = notes.len().checked_sub(NOTES) {
            row("", format!("and {} more", amount::count(more as u64)))?;
        }
        let named = if elsewhere {
            quoted(&self.transcript)
        } else {
            name
        };
        row("to look at it", format!("undertext show {named}"))
    }
}

/// How many notes are shown, and how much of each, in characters.
const NOTES: usize = 5;
const NOTE_CHARS: usize = 120;
