//! The command line: what can be typed, and what each command is given.
//!
//! The commands themselves stand one in a file. Everything they read of the process arrives in
//! [`Process`]; everything they show goes through [`term::Term`].

pub(crate) mod advice;
pub(crate) mod exit;
pub(crate) mod visible;
pub(crate) mod term;
mod wrap;
pub(crate) mod help;
pub(crate) mod amount;
pub(crate) mod brief;
pub(crate) mod entry;
pub(crate) mod find;
pub(crate) mod process;
mod model_args;
mod start;
mod told;
mod offline;
mod models;
mod toolbox;
mod stop;
mod logs;
mod planted;
mod task;
mod lock;
mod asked;
mod confined;
mod site;
pub(crate) mod hands;
pub(crate) mod changes;
mod outputs;
mod target;
mod answer_form;
mod notice;
mod story;
mod report;
mod ending;
mod made;
pub(crate) mod run;
mod run_args;
pub(crate) mod batch;
pub(crate) mod demo;
pub(crate) mod list;
pub(crate) mod show;
mod place;
mod sent;
pub(crate) mod compact;
mod compacted;
pub(crate) mod print;
mod named;
mod requests;
mod differs;
mod searched;
mod laid;
mod lived;
mod unread;
pub(crate) mod replay;
pub(crate) mod rerun;
pub(crate) mod page;
pub(crate) mod serve;
pub(crate) mod why;
pub(crate) mod edits;
pub(crate) mod fork;
pub(crate) mod import;
pub(crate) mod lab;
pub(crate) mod export;
pub(crate) mod rm;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod completions;
pub(crate) mod output;
pub(crate) mod tools;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use undertext::config::{Environment, Given, Sections, Sources};

use crate::cli::batch::BatchArgs;
use crate::cli::compact::CompactArgs;
use crate::cli::completions::CompletionsArgs;
use crate::cli::config::ConfigArgs;
use crate::cli::doctor::DoctorArgs;
use crate::cli::edits::{ExpandArgs, PinArgs, RetractArgs};
use crate::cli::export::ExportArgs;
use crate::cli::fork::ForkArgs;
use crate::cli::hands::HandsArgs;
use crate::cli::import::ImportArgs;
use crate::cli::lab::LabArgs;
use crate::cli::page::PageArgs;
use crate::cli::place::Place;
pub(crate) use crate::cli::process::Process;
use crate::cli::rerun::RerunArgs;
pub(crate) use crate::cli::run_args::RunArgs;
use crate::cli::tools::ToolsArgs;
use crate::cli::why::WhyArgs;

/// Runs a coding agent without a screen, and never forgets what it did.
#[derive(Debug, Parser)]
#[command(name = "undertext", version, help_template = HELP)]
#[command(arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Show what looks like a secret as it is, also in files that are written
    #[arg(long, global = true)]
    pub(crate) unmasked: bool,
}

const HELP: &str = "\
{about}

Usage: undertext COMMAND [OPTIONS]

Do:
  run          Give a task to a model and let it work until it is done
  batch        Give many tasks to a model, some at once, a run for each
  demo         Watch a full run without key or network

Look:
  list         List the runs
  show         See one run at a glance
  print        Read a run from its beginning
  replay       Rebuild what was sent, round by round, and verify it
  why          See how an entry read in every request, and what changed that
  page         Look at a run in a browser, and lift its layers one by one

Change, nothing is ever deleted:
  compact      Hide parts of a run from the model, or sum them up
  retract      Take back what was compacted: it reads again (also: undo)
  expand       Show one call in full again
  pin          Keep a message, a reply or a result readable
  unpin        Let it be compacted again
  fork         Begin another run from any point of this one

Tune:
  lab          Try compaction policies on recorded runs, without a model
  import       Make runs of what other agents recorded
  export       Write a run as JSON lines, a document, or an ATIF trajectory

Set up:
  config       Write, check and show your settings
  doctor       Say whether key, server and model work, and what to change
  completions  Write what your shell needs to complete command lines
  tools        List the tools a model may call, or see one of them in full
  rm           Delete runs for good

Options:
{options}

Begin with `undertext demo`. `undertext COMMAND --help` says more about one.
RUN is the id that `list` shows or a part of it, a path to a transcript, or
`last`.
";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a task to a model and let it work until it is done
    Run(Box<RunArgs>),
    /// Give many tasks to a model, some at once, a run for each
    Batch(Box<BatchArgs>),
    /// Watch a full run without key or network
    Demo(DemoArgs),
    /// List the runs
    List(ListArgs),
    /// See one run at a glance
    Show(ShowArgs),
    /// Read a run from its beginning
    Print(PrintArgs),
    /// Rebuild what was sent, round by round, and verify it
    Replay(ReplayArgs),
    /// See how an entry read in every request, and what changed that
    Why(WhyArgs),
    /// Look at a run in a browser, and lift its layers one by one
    Page(PageArgs),
    /// Hide parts of a run from the model, or sum them up
    #[command(visible_aliases = ["summarize", "compress"])]
    Compact(Box<CompactArgs>),
    /// Take back what was compacted: it reads again (also: undo)
    #[command(alias = "undo")]
    Retract(RetractArgs),
    /// Show one call in full again
    Expand(ExpandArgs),
    /// Keep a message, a reply or a result readable
    Pin(PinArgs),
    /// Let it be compacted again
    Unpin(PinArgs),
    /// Begin another run from any point of this one
    Fork(ForkArgs),
    /// Try compaction policies on recorded runs, without a model
    Lab(Box<LabArgs>),
    /// Make runs of what other agents recorded
    Import(ImportArgs),
    /// Write a run as JSON lines, a document, or an ATIF trajectory
    Export(ExportArgs),
    /// Write, check and show your settings
    Config(ConfigArgs),
    /// Say whether key, server and model work, and what to change
    Doctor(DoctorArgs),
    /// Write what your shell needs to complete command lines
    Completions(CompletionsArgs),
    /// List the tools a model may call, or see one of them in full
    Tools(ToolsArgs),
    /// Delete runs for good
    Rm(RmArgs),
    /// Be the process in which the tools of a run work
    #[command(hide = true)]
    Hands(HandsArgs),
}

/// Where settings come from.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingArgs {
    /// Keep transcripts in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) transcripts: Option<PathBuf>,
    /// Read settings from this file; later files win
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    // Given as `help`: what looks like code in it would need marks that a terminal shows.
    #[arg(long, value_name = "KEY=VALUE")]
    #[arg(help = "Change one setting, such as compaction.auto.min_rounds=8")]
    pub(crate) set: Vec<String>,
}

impl SettingArgs {
    /// The sources of settings, with what other flags say.
    pub(crate) fn sources(&self, environment: &Environment, mut flags: Sections) -> Sources {
        if let Some(dir) = &self.transcripts {
            flags.transcripts.dir = Given::value(Some(dir.clone()));
        }
        Sources {
            environment: environment.clone(),
            files: self.config.clone(),
            set: self.set.clone(),
            flags,
        }
    }
}

/// `demo`
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Draw the bug from this number
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Keep the transcript in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) transcripts: Option<PathBuf>,
    /// Leave the workspace where it is
    #[arg(long)]
    pub(crate) keep: bool,
    #[arg(long, value_name = "KEY=VALUE")]
    #[arg(help = "Change one setting of limits or compaction, such as compaction.enabled=false")]
    pub(crate) set: Vec<String>,
    /// Write the same transcript every time, into this file
    #[arg(long, value_name = "FILE", hide = true, conflicts_with_all = ["transcripts", "keep"])]
    pub(crate) golden: Option<PathBuf>,
}

impl DemoArgs {
    /// Where its settings come from: it uses none but the directory of transcripts.
    pub(crate) fn settings(&self) -> SettingArgs {
        SettingArgs {
            transcripts: self.transcripts.clone(),
            ..SettingArgs::default()
        }
    }
}

/// `list`
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Write one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// `show`
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,
    /// Write a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// `print`
#[derive(Debug, Args)]
pub(crate) struct PrintArgs {
    /// The run
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,
    /// What is printed: entries as they are, messages as the model reads them, or both
    #[arg(long, value_name = "VIEW", value_enum, default_value_t = Shown::Raw)]
    pub(crate) view: Shown,
    /// The same as --view compacted
    #[arg(long, conflicts_with = "view")]
    pub(crate) compacted: bool,
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    #[arg(
        help = "Only what is there, such as r12, e40, 41.2, 5 (turn) or last; \
                  compacted: what its request sent"
    )]
    pub(crate) at: Option<Place>,
    /// How it is written; json: one object a line, of entries the lines of the file
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// What `print` shows of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shown {
    // Entries as they are.
    Raw,
    // Messages as the model reads them.
    Compacted,
    // First the one, then the other.
    Both,
}

/// How `print` writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // For people.
    Text,
    // One JSON object a line; of entries, the lines of the file.
    Json,
    // Headings and blocks.
    Markdown,
}

/// `replay`
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The run
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,
    /// Only say whether every request can be rebuilt as it was sent
    #[arg(long)]
    pub(crate) verify: bool,
    /// Write the exact bytes of the request there, such as r12, e40 or last
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["verify", "json"])]
    pub(crate) at: Option<Place>,
    /// What is different between two requests, such as r12 r13
    #[arg(long, value_names = ["A", "B"], num_args = 2, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["verify", "at", "blame"])]
    pub(crate) diff: Vec<Place>,
    /// For each message of the request there, what it comes from and what changed it
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["verify", "at"])]
    pub(crate) blame: Option<Place>,
    /// Write one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Whether the calls run again, and where.
    #[command(flatten, next_help_heading = "Run again")]
    pub(crate) again: RerunArgs,
}

/// `rm`
#[derive(Debug, Args)]
#[command(after_help = "Nothing is asked before: what is deleted cannot be had again.")]
pub(crate) struct RmArgs {
    /// The runs, by the digits that `list` shows, or by a path
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    /// Write one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_commands_are_consistent_and_all_in_the_help() {
        let mut cli = Cli::command();
        cli.clone().debug_assert();
        let help = cli.render_help().to_string();
        let own = |command: &&clap::Command| command.get_name() != "help" && !command.is_hide_set();
        for command in cli.get_subcommands().filter(own) {
            let line = format!(
                "\n  {:12} {}\n",
                command.get_name(),
                command.get_about().unwrap()
            );
            assert!(help.contains(&line), "{line} in {help}");
        }
    }

    /// As the forerunners called them.
    #[test]
    fn compact_and_retract_have_other_names() {
        let cli = Cli::command();
        for (name, others) in [
            ("compact", &["summarize", "compress"][..]),
            ("retract", &["undo"]),
        ] {
            let command = cli.find_subcommand(name).unwrap();
            let known: Vec<&str> = command.get_all_aliases().collect();
            assert_eq!(known, others, "{name}");
        }
    }

    #[test]
    fn flags_are_settings() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' ')).map(|cli| cli.command);
        let line = "undertext run task -m m --base-url http://h --max-rounds 3 --transcripts d \
                    --max-tokens 9 --max-time 2m";
        let Ok(Command::Run(args)) = parse(line) else {
            panic!("{line}")
        };
        let sources = args.settings.sources(&Environment::new(), args.flags());
        let settings = undertext::config::load(&sources).unwrap();
        assert_eq!(settings.model.name.as_deref(), Some("m"));
        assert_eq!(settings.server.base_url.as_deref(), Some("http://h"));
        assert_eq!(settings.policy.limits.rounds, Some(3));
        assert_eq!(settings.policy.limits.tokens, Some(9));
        assert_eq!(settings.policy.limits.wall_time_ms, Some(120_000));
        assert_eq!(settings.transcripts.dir, Some("d".into()));
        for wrong in [
            "undertext run --resume a --continue",
            "undertext run --max-rounds 0",
            "undertext run --max-tokens 0",
            "undertext run --max-time 90",
            "undertext run --check= task",
            "undertext replay --at nowhere",
            "undertext replay --at 5 --verify",
            "undertext replay --diff r1",
            "undertext replay --diff r1 r2 --verify",
            "undertext why --text (",
            "undertext why a b c",
            "undertext walk",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("undertext replay last --at -3").is_ok());
        assert!(parse("undertext replay last --diff r-1 r-0").is_ok());
        assert!(parse("undertext why last -3").is_ok());
    }
}
