//! `tools`: the tools that a model may call, in a table, or one of them in full.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use undertext::config::{self, Settings};
use undertext::exchange::{Effect, ToolMeta, ToolSpec, Treatment};

use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::toolbox::{self, Tools};
use crate::cli::{Process, SettingArgs, brief, start, told};

/// `tools`
#[derive(Debug, Args)]
#[command(after_help = TOOLS_HELP)]
pub(crate) struct ToolsArgs {
    /// See this one in full
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Write one JSON object a line
    #[arg(long)]
    json: bool,
    /// Where settings come from.
    #[command(flatten)]
    settings: SettingArgs,
}

const TOOLS_HELP: &str = "\
Tools of your own are files in the directory tools beside your settings, usually
~/.config/undertext/tools/NAME.yaml:

  name: Weather
  description: Says how the weather is in a place.
  command: [weather, --json]
  parameters: { type: object, properties: { place: { type: string } }, required: [place] }
  meta: { effect: reads }

The command gets the arguments as JSON on its standard input; what it prints is the answer.";

/// The longest beginning of a description that is shown where no terminal says, in characters.
const DESCRIPTION_CHARS: usize = 80;

/// What is told of a tool.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Offered<'a> {
    #[serde(flatten)]
    spec: &'a ToolSpec,
    /// Whether runs offer it.
    enabled: bool,
    /// The file that describes it; none if it is built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

/// Lists the tools, or shows one.
pub(crate) fn tools(args: &ToolsArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    let sources = args
        .settings
        .sources(&process.environment, config::Sections::default());
    let settings = config::load(&sources)?;
    let skills = start::workspace(None, process).map(|here| told::skills_here(&here, process));
    let skills = skills.unwrap_or_default();
    let Tools { toolbox, files } = Tools::all(&settings, &process.environment, skills)?;
    let all = toolbox.specs();
    let shown = match &args.name {
        None => all,
        Some(name) => {
            let only = toolbox.only([name]);
            only.map_err(toolbox::unknown)?.specs()
        }
    };
    let glances: Vec<Offered<'_>> = shown
        .iter()
        .map(|spec| {
            let file = files.iter().find(|file| file.tool.spec().name == spec.name);
            Offered {
                spec,
                enabled: is_enabled(&settings, &spec.name),
                file: file.and_then(|file| file.path.to_str()),
            }
        })
        .collect();
    if args.json {
        for glance in &glances {
            term.print_json(&serde_json::to_string(glance).map_err(std::io::Error::from)?)?;
        }
    } else if args.name.is_some() {
        for glance in &glances {
            page(glance, term)?;
        }
    } else {
        table(&glances, term)?;
    }
    Ok(Exit::Done)
}

/// Whether runs offer the tool of this name.
fn is_enabled(settings: &Settings, name: &str) -> bool {
    let compaction = &settings.policy.compaction;
    let is_off = name == "Compact" && !(compaction.enabled && compaction.tool.enabled);
    settings.tool(name).enabled.unwrap_or(true) && !is_off
}

/// Where it comes from.
fn origin(glance: &Offered<'_>) -> String {
    let origin = match glance.file {
        None => "built in".to_owned(),
        Some(path) => path.rsplit('/').next().unwrap_or(path).to_owned(),
    };
    if glance.enabled {
        origin
    } else {
        format!("{origin}, off")
    }
}

/// What its calls do to the world.
fn effect(meta: &ToolMeta) -> &'static str {
    match meta.effect {
        Effect::Reads => "reads",
        Effect::Writes => "writes",
    }
}

/// A line for each tool.
fn table(glances: &[Offered<'_>], term: &mut Term) -> Result<(), Failure> {
    let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let names = widest(
        &mut glances
            .iter()
            .map(|glance| glance.spec.name.chars().count()),
    );
    let origins = widest(&mut glances.iter().map(|glance| origin(glance).chars().count()));
    let masks = term.masks().clone();
    for glance in glances {
        let ToolSpec {
            name,
            description,
            meta,
            ..
        } = glance.spec;
        let facts = format!("  {:6}  {:origins$}  ", effect(meta), origin(glance));
        let taken = names + facts.chars().count();
        let room = term
            .width()
            .map_or(DESCRIPTION_CHARS, |width| width.saturating_sub(taken + 1));
        let first = description.lines().next().unwrap_or_default();
        let look = if glance.enabled {
            Look::Strong
        } else {
            Look::Faint
        };
        term.print(&[
            (look, format!("{name:names$}")),
            (Look::Faint, facts),
            (Look::Plain, brief::cut(&masks, first, room)),
        ])?;
    }
    Ok(())
}

/// All there is to say of one tool.
fn page(glance: &Offered<'_>, term: &mut Term) -> Result<(), Failure> {
    let ToolSpec {
        name,
        description,
        schema,
        meta,
    } = glance.spec;
    let facts = format!("  {}, {}", effect(meta), origin(glance));
    term.print(&[(Look::Strong, name.clone()), (Look::Faint, facts)])?;
    for line in description.lines() {
        term.print(&[(Look::Plain, line)])?;
    }
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let pretty = serde_json::to_string_pretty(&schema).map_err(std::io::Error::from)?;
    term.print(&[(Look::Strong, "\nArguments")])?;
    term.print(&[(Look::Plain, pretty)])?;
    term.print(&[(Look::Strong, "\nTreatment")])?;
    for (key, said) in treatment(glance) {
        term.print(&[(Look::Faint, format!("{key:13}")), (Look::Plain, said)])?;
    }
    Ok(())
}

/// How the runtime treats its calls, in words.
fn treatment(glance: &Offered<'_>) -> Vec<(&'static str, String)> {
    let ToolMeta {
        effect,
        hint,
        exempt,
        supersession,
        labels,
        timeout_ms,
    } = &glance.spec.meta;
    let order = match effect {
        Effect::Reads => "run side by side",
        Effect::Writes => "run one by one",
    };
    let half = |treatment: Treatment| match treatment {
        Treatment::Keep => "stay",
        Treatment::Strip => "become a line",
        Treatment::Omit => "go, and the call with them",
    };
    let mut all = vec![
        ("calls", order.to_owned()),
        ("compaction", {
            let (request, response) = (half(hint.request), half(hint.response));
            format!("by hints, old arguments {request}, old results {response}")
        }),
    ];
    if *exempt {
        all.push(("", "micro-compaction never touches its results".to_owned()));
    }
    if let Some(rule) = supersession {
        let same = match &rule.key {
            Some(key) => format!("the same {key}"),
            None => "the same arguments".to_owned(),
        };
        all.push(("superseded", format!("by a later call with {same}")));
        if !rule.stale_after.is_empty() {
            let tools = rule.stale_after.join(" or ");
            all.push(("stale", format!("after {tools} of {same}")));
        }
    }
    if !labels.is_empty() {
        all.push(("stubs name", labels.join(", ")));
    }
    if let Some(ms) = timeout_ms {
        all.push(("timeout", format!("{ms} ms")));
    }
    if let Some(path) = glance.file {
        all.push(("file", path.to_owned()));
    }
    all
}
