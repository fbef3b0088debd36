//! `lab`: policies tried on recorded runs, without a model.

mod found;
mod policies;
mod runs;
mod table;
mod told;

use std::path::{Path, PathBuf};

use clap::Args;
use undertext::config::Duration;
use undertext::lab::plot::{self, Panel};
use undertext::lab::{self, Contender, Outcome, Prices, Source, Summaries, Terms};

#[cfg(test)]
pub(crate) use crate::cli::lab::told::Told;

use crate::cli::exit::{Exit, Failure};
use crate::cli::lab::policies::FOUND;
use crate::cli::lab::table::Table;
use crate::cli::outputs;
use crate::cli::term::{Look, Term};
use crate::cli::{Process, SettingArgs};

const AFTER_HELP: &str = "\
Each run is played again, request by request, as it would have read under each policy: none, the one \
that is built in (default), the same with a pass at each chance, yours if your settings change it, and \
those of --policy. What was said and what tools returned stays as it was recorded. docs/policies.md says \
what the figures mean, and what they do not.

  undertext lab last
  undertext lab runs/ --policy cheap.yaml --plot cheap.svg
  undertext lab runs/ --search --regret-bound 1";

/// `lab`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct LabArgs {
    /// Runs: transcripts, run ids, files of other agents, directories of any of them
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<String>,
    #[arg(long, value_name = "FILE")]
    #[arg(help = "Try the `compaction:` section of this file as well")]
    pub(crate) policy: Vec<PathBuf>,
    /// The context window of every model, in tokens; else as recorded, or 200000
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    pub(crate) window: Option<u64>,
    /// What a cached token costs, as a part of one that is read afresh
    #[arg(long, value_name = "PART", default_value = "0.1", value_parser = part)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) cached_price: f64,
    /// What a token costs that the provider caches
    #[arg(long, value_name = "PART", default_value = "1", value_parser = price)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) cache_write_price: f64,
    /// How long the provider keeps what it has cached, by the recorded times
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(crate) cache_lifetime: Duration,
    /// What a token of a summary costs that a model writes
    #[arg(long, value_name = "PART", default_value = "5", value_parser = price)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) output_price: f64,
    /// How long a summary is, in tokens; else as long as the policy lets it be
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) summary_tokens: Option<u64>,
    /// What instructions and tools take that the runs do not record, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub(crate) overhead_tokens: u64,
    /// Look for the cheapest settings on every other run, and try them on the rest
    #[arg(long)]
    pub(crate) search: bool,
    /// With --search: the most results that may be missed, in percent of those hidden
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = percent)]
    #[arg(requires = "search", allow_negative_numbers = true)]
    pub(crate) regret_bound: f64,
    /// Draw the size of every request into this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Write one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// The price of a token that is read from the cache: never more than that of one that is read afresh.
fn part(text: &str) -> Result<f64, String> {
    number(text, 1.0, "0.1")
}

fn price(text: &str) -> Result<f64, String> {
    number(text, 1000.0, "1.25")
}

fn percent(text: &str) -> Result<f64, String> {
    number(text, 100.0, "2")
}

/// A number from 0 to the most.
fn number(text: &str, most: f64, such_as: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number: &f64| (0.0..=most).contains(number));
    number.ok_or_else(|| format!("it is a number from 0 to {most}, such as {such_as}"))
}

/// Tries policies on runs.
pub(crate) fn lab(args: &LabArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    let plot = outputs::place(args.plot.as_deref(), process)?;
    plot.as_deref()
        .map_or(Ok(()), |path| outputs::spare(path, None))?;
    let mut contenders = policies::contenders(args, process, term)?;
    let mut sources = runs::read(args, process, term)?;
    let terms = terms(args);
    let mut search = None;
    if args.search {
        let (learned, rest) = lab::search::halves(sources);
        if rest.is_empty() {
            return Err(Failure::usage(
                "--search learns on one half of the runs and tries on the other: name two or more",
            ));
        }
        sources = rest;
        let found = lab::search::search(&learned, &terms, args.regret_bound);
        if found.is_better() {
            contenders.push(Contender::new(FOUND, found.policy.clone()));
        }
        search = Some((found, learned.len() as u64));
    }
    let outcomes = lab::outcomes(&sources, &contenders, &terms);
    let names: Vec<&str> = contenders.iter().map(|it| it.name.as_str()).collect();
    let mut table = Table::new(&names, args.json);
    for (source, outcomes) in sources.iter().zip(&outcomes) {
        table.run(&source.name, outcomes);
    }
    table.print(search.as_ref(), term)?;
    if let (Some(place), Some(path)) = (&plot, &args.plot) {
        draw(place, &sources, &names, &outcomes)?;
        term.say(&[(Look::Faint, format!("drawn: {}", path.display()))])?;
    }
    Ok(Exit::Done)
}

fn terms(args: &LabArgs) -> Terms {
    Terms {
        window: args.window,
        prices: Prices {
            cached: args.cached_price,
            cache_write: args.cache_write_price,
            output: args.output_price,
            lifetime: std::time::Duration::from_millis(args.cache_lifetime.0),
        },
        summaries: args
            .summary_tokens
            .map_or(Summaries::Share, Summaries::Tokens),
        overhead_tokens: args.overhead_tokens,
    }
}

fn draw(
    path: &Path,
    sources: &[Source],
    names: &[&str],
    outcomes: &[Vec<Outcome>],
) -> Result<(), Failure> {
    let panels = sources
        .iter()
        .zip(outcomes)
        .map(|(source, outcomes)| Panel {
            name: &source.name,
            lines: names.iter().copied().zip(outcomes).collect(),
        });
    let drawn = plot::svg(&panels.collect::<Vec<_>>());
    outputs::write(path, drawn.as_bytes()).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("cannot write {}", path.display()));
        Failure::new(Exit::Unfinished, error)
    })
}
