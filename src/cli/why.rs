//! `why`: how an entry read in every request, and what changed that.

use std::io;

use clap::Args;
use regex::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use undertext::address::Address;
use undertext::explain::{self, Life, Subject};
use undertext::id::EntryId;
use undertext::record::Clock;
use undertext::transcript::Event;
use undertext::view::View;

use crate::cli::exit::{Exit, Failure};
use crate::cli::find::{self, LAST};
use crate::cli::laid::Overlaid;
use crate::cli::place::Place;
use crate::cli::searched::{self, Match};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, SettingArgs, amount, lived};

/// The entries told of one search.
const TOLD: usize = 20;

const EXAMPLES: &str = "\
Examples:
  undertext why e57                  an entry of the last run of this workspace
  undertext why 7c31d0f2 41.2        a call of another run
  undertext why --text 'port \\d+'    every entry that says it

One argument is the address; the run is the last one of this workspace then.";

/// `why`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "undertext why [RUN] ADDRESS\n       undertext why [RUN] --text REGEX")]
pub(crate) struct WhyArgs {
    /// The run, and what it is about, such as e57, 41.2, r9 or last-compaction
    #[arg(value_name = "RUN|ADDRESS", num_args = 0..=2, allow_negative_numbers = true)]
    pub(crate) about: Vec<String>,
    /// Every entry with a text that matches this regular expression
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub(crate) text: Option<Regex>,
    /// Write one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// What `why --json` writes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Told {
    /// How an entry, or a call, read in every request.
    Life(Box<Lived>),
    /// The last line, with `--text`.
    Found {
        /// How many entries match.
        entries: u64,
        /// How many of them were told.
        told: u64,
    },
}

/// An entry or a call, and its life.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Lived {
    /// What it is, for people.
    pub(crate) what: String,
    /// The characters that it says.
    pub(crate) chars: u64,
    /// The text that was looked for, and what became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) matched: Option<Match>,
    /// Of an overlay: what it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) overlay: Option<Overlaid>,
    /// How it read.
    #[serde(flatten)]
    pub(crate) life: Life,
}

/// Explains how entries read.
pub(crate) fn why(args: &WhyArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    if args.text.as_ref().is_some_and(|it| it.as_str().is_empty()) {
        return Err(Failure::usage(
            "--text is empty, so every entry would match: give words that it says, such as \
             --text 'port \\d+'",
        ));
    }
    let (run, place) = about(args)?;
    let found = find::read(&run, &args.settings, process, term)?;
    let view = &found.loaded.view;
    let name = found.loaded.run().map(|run| run.run.short());
    let name = name.unwrap_or_else(|| found.path.display().to_string());
    let (subjects, matches) = match (&args.text, &place) {
        (Some(regex), _) => {
            let matches = searched::entries(view, regex, term.masks());
            let first = matches.iter().take(TOLD);
            let subjects = first.map(|(entry, _)| Subject::Entry(*entry)).collect();
            (subjects, Some(matches))
        }
        (None, Some(place)) => (subjects(view, place)?, None),
        (None, None) => return Err(nothing()),
    };
    let mut first = true;
    for life in explain::lives(view.transcript(), &subjects) {
        let mut found = matches.iter().flatten();
        let text = found.find(|(entry, _)| Subject::Entry(*entry) == life.subject);
        let text = text.map(|(_, text)| searched::followed(view, text, &life));
        let lived = lived::of(view, term.masks(), life, text);
        if args.json {
            print_json(&Told::Life(Box::new(lived)), term)?;
            continue;
        }
        if !std::mem::take(&mut first) {
            term.print(&[(Look::Plain, "")])?;
        }
        lived::print(view, &name, &lived, term)?;
    }
    if let Some(matches) = matches {
        finish(matches.len(), args.json, term)?;
    }
    Ok(Exit::Done)
}

/// The run and the place that are meant.
fn about(args: &WhyArgs) -> Result<(String, Option<Place>), Failure> {
    let place = |text: &String| {
        let place = text.parse::<Place>();
        place.map_err(|error| Failure::usage(error.to_string()))
    };
    match (&args.about[..], &args.text) {
        ([], Some(_)) => Ok((LAST.to_owned(), None)),
        ([run], Some(_)) => Ok((run.clone(), None)),
        ([_, _], Some(_)) => Err(Failure::usage(
            "an address and --text do not go together: name one of them",
        )),
        // Of a run alone there is nothing to say.
        ([address], None) => match address.parse() {
            Ok(place) => Ok((LAST.to_owned(), Some(place))),
            Err(_) => Err(nothing()),
        },
        ([run, address], None) => Ok((run.clone(), Some(place(address)?))),
        (_, None) | ([_, _, ..], Some(_)) => Err(nothing()),
    }
}

fn nothing() -> Failure {
    Failure::usage(
        "say what it is about: an address such as e57 (entry), 41.2 (call) or r9 (round), \
         or --text REGEX",
    )
}

/// What an address is about: of a call, its two entries; of a place with many, those that are read.
fn subjects(view: &View, place: &Place) -> Result<Vec<Subject>, Failure> {
    let span = place.span(view, Clock::System.now())?;
    if let Address::Call(call) = place.address {
        let result = view.result_of(call).map(|(entry, _)| Subject::Entry(entry));
        return Ok([Subject::Call(call)].into_iter().chain(result).collect());
    }
    if span.from == span.to {
        return Ok(vec![Subject::Entry(span.from)]);
    }
    let entries = view.transcript().span(span).iter();
    let read = entries.filter(|entry| match &entry.event {
        Event::User(_) | Event::Result(_) | Event::Overlay(_) => true,
        Event::Response(_) => view.rounds().of_response(entry.id).is_some(),
        Event::Run(_)
        | Event::Setup(_)
        | Event::Request(_)
        | Event::Started(_)
        | Event::Retract(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Fault(_)
        | Event::Note(_)
        | Event::End(_)
        | Event::Unknown(_) => false,
    });
    let entries: Vec<EntryId> = read.map(|entry| entry.id).collect();
    if entries.is_empty() {
        return Err(Failure::usage(format!(
            "nothing that a model reads stands in {span}; name other entries"
        )));
    }
    Ok(entries.into_iter().map(Subject::Entry).collect())
}

/// Says how many entries match, if not all were told.
fn finish(entries: usize, json: bool, term: &mut Term) -> io::Result<()> {
    let told = entries.min(TOLD);
    if json {
        let (entries, told) = (entries as u64, told as u64);
        return print_json(&Told::Found { entries, told }, term);
    }
    if entries == 0 {
        return term.print(&[(Look::Plain, "no entry says that")]);
    }
    if entries > told {
        let more = amount::count((entries - told) as u64);
        return term.print(&[(Look::Faint, format!("\nand {more} more"))]);
    }
    Ok(())
}

fn print_json(told: &Told, term: &mut Term) -> io::Result<()> {
    term.print_json(&serde_json::to_string(told).map_err(io::Error::from)?)
}
