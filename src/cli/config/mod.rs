//! `config`: where settings come from, what they are, and what they may be.

pub(crate) mod show;
mod yaml;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use undertext::config::{self, EXAMPLE, Layers, Origin, Sections, Source, Sources};

use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, SettingArgs, output, start};

/// `config`
#[derive(Debug, Args)]
#[command(after_help = CONFIG_HELP)]
pub(crate) struct ConfigArgs {
    /// What about them.
    #[command(subcommand)]
    what: What,
}

const CONFIG_HELP: &str = "\
Later sources win: built in, your config.yaml, --config FILE, variables, --set KEY=VALUE, flags.
A variable has two underscores between levels: UNDERTEXT_MODEL__NAME=gpt-5.";

#[derive(Debug, Subcommand)]
enum What {
    /// Write your config.yaml: every key with its default and a line of comment
    Init,
    /// List the files and variables that settings are read from
    Path(ListArgs),
    /// Say whether the settings, or those of one file, are right
    Check(CheckArgs),
    /// Show every setting, and what set it
    Show(ShowArgs),
    /// Write what may stand in config.yaml, or what --json writes, as a JSON Schema
    Schema(SchemaArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Write one JSON object a line
    #[arg(long)]
    json: bool,
    /// Where settings come from.
    #[command(flatten)]
    settings: SettingArgs,
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Check this file alone
    #[arg(value_name = "FILE", conflicts_with_all = ["config", "set"])]
    file: Option<PathBuf>,
    /// Write a JSON object
    #[arg(long)]
    json: bool,
    /// Where settings come from.
    #[command(flatten)]
    settings: SettingArgs,
}

/// `config show`
#[derive(Debug, Args)]
struct ShowArgs {
    /// Only what differs from its default
    #[arg(long)]
    changed: bool,
    /// Write one JSON object a line
    #[arg(long)]
    json: bool,
    /// Where settings come from.
    #[command(flatten)]
    settings: SettingArgs,
}

#[derive(Debug, Args)]
struct SchemaArgs {
    /// What it describes: your config.yaml, or what commands write with --json
    #[arg(value_name = "WHAT", value_enum, default_value_t = Described::Config)]
    what: Described,
}

/// What a schema is written of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Described {
    // The settings: config.yaml.
    Config,
    // What commands write with --json.
    Output,
}

/// Does what is asked about the settings.
pub(crate) fn config(
    args: &ConfigArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let sources =
        |settings: &SettingArgs| settings.sources(&process.environment, Sections::default());
    match &args.what {
        What::Init => init(process, term),
        What::Path(args) => path(&sources(&args.settings), args.json, term),
        What::Check(args) => {
            let sources = match &args.file {
                Some(file) => Sources {
                    files: vec![file.clone()],
                    ..Sources::default()
                },
                None => sources(&args.settings),
            };
            check(&sources, args.json, term)
        }
        What::Show(args) => show::show(args, &sources(&args.settings), term),
        What::Schema(args) => schema(args.what, term),
    }
}

/// Writes the user's own file, if there is none.
fn init(process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    let path = config::own_file(&process.environment).ok_or_else(|| {
        Failure::usage(
            "neither XDG_CONFIG_HOME nor HOME says where your config.yaml belongs; set one of them",
        )
    })?;
    let shown = path.display();
    create(&path).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            return Failure::usage(format!(
                "{shown} is there already and stays as it is; edit it, or move it away first"
            ));
        }
        let error = anyhow::Error::new(error).context(format!("cannot write {shown}"));
        Failure::new(Exit::Usage, error)
    })?;
    term.print(&[(Look::Plain, format!("wrote {shown}"))])?;
    term.say(&[(
        Look::Faint,
        "change what you like; `undertext config check` says whether it is right",
    )])?;
    Ok(Exit::Done)
}

fn create(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(EXAMPLE.as_bytes())
}

/// A source of settings.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Listed {
    /// `file` or `variable`.
    kind: &'static str,
    /// The path, or the name.
    name: String,
    /// `read`, `absent` or `wrong`.
    state: &'static str,
}

/// Whether the settings are right.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checked {
    /// Whether they are.
    ok: bool,
    /// What is wrong, a line each.
    errors: Vec<String>,
}

/// Lists the sources, those below first.
fn path(sources: &Sources, json: bool, term: &mut Term) -> Result<Exit, Failure> {
    let mut absent = false;
    for Source { origin, given } in Source::all(sources) {
        let state = match given {
            Ok(Some(_)) => "read",
            Ok(None) => "absent",
            Err(_) => "wrong",
        };
        absent |= state == "absent";
        let (kind, name) = match origin {
            Origin::File(path, _) => ("file", path.display().to_string()),
            Origin::Variable(name) => ("variable", name),
            Origin::BuiltIn | Origin::Set | Origin::Flag => continue,
        };
        if json {
            let source = Listed { kind, name, state };
            term.print_json(&serde_json::to_string(&source).map_err(io::Error::from)?)?;
        } else {
            let look = if state == "wrong" {
                Look::Bad
            } else {
                Look::Faint
            };
            term.print(&[(look, format!("{state:8}")), (Look::Plain, name)])?;
        }
    }
    if absent && !json {
        let hint = "`undertext config init` writes the file that is absent";
        term.say(&[(Look::Faint, hint)])?;
    }
    Ok(Exit::Done)
}

/// Reads every source and says what is wrong with each.
fn check(sources: &Sources, json: bool, term: &mut Term) -> Result<Exit, Failure> {
    let each = Source::all(sources).into_iter();
    let mut wrong: Vec<Failure> = each
        .filter_map(|source| source.given.err())
        .map(Failure::from)
        .collect();
    if wrong.is_empty() {
        let settings = Layers::read(sources).and_then(|layers| layers.settings());
        let usable = settings
            .map_err(Failure::from)
            .and_then(|settings| start::spoken(&settings));
        wrong.extend(usable.err());
    }
    let exit = if wrong.is_empty() {
        Exit::Done
    } else {
        Exit::Usage
    };
    if json {
        let checked = Checked {
            ok: wrong.is_empty(),
            errors: wrong.iter().map(Failure::line).collect(),
        };
        term.print_json(&serde_json::to_string(&checked).map_err(io::Error::from)?)?;
        return Ok(exit);
    }
    for mistaken in start::mistaken(&sources.environment) {
        term.say(&[(Look::Plain, format!("warning: {mistaken}"))])?;
    }
    for failure in &wrong {
        term.say(&[(Look::Bad, "undertext: "), (Look::Plain, &failure.said())])?;
    }
    if wrong.is_empty() {
        term.print(&[(Look::Plain, "ok")])?;
    }
    Ok(exit)
}

/// Writes a schema.
fn schema(what: Described, term: &mut Term) -> Result<Exit, Failure> {
    let schema = match what {
        Described::Config => config::SCHEMA,
        Described::Output => output::SCHEMA,
    };
    let schema: Value = serde_json::from_str(schema).map_err(io::Error::from)?;
    let text = serde_json::to_string_pretty(&schema).map_err(io::Error::from)?;
    term.write(format!("{text}\n").as_bytes())?;
    Ok(Exit::Done)
}
