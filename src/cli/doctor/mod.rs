//! `doctor`: whether runs can be had with these settings, and what to change if not.

pub(crate) mod check;
mod probe;
mod server;
mod figures;
mod answers;
mod sandbox;

use clap::Args;
use undertext::config::{
    self, ConfigError, EndpointError, Environment, Given, Key, Layers, NetworkChoice, SandboxMode,
    Sections, Settings, Sources,
};
use undertext::model::offline::{NAME, Offline, WINDOW};
use undertext::profile::{Choice, known};

use crate::cli::doctor::check::Findings;
use crate::cli::exit::{Exit, Failure};
use crate::cli::model_args::ModelArgs;
use crate::cli::run_args::network;
use crate::cli::term::Term;
use crate::cli::{Process, SettingArgs, amount, process, start};

/// `doctor`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DoctorArgs {
    /// Which model, and where.
    #[command(flatten, next_help_heading = "Model")]
    asked: ModelArgs,
    /// What tools may do: write in the workspace, only read, or all that you may (`off`)
    #[arg(long, value_name = "workspace|read-only|off")]
    #[arg(help_heading = "Tools")]
    sandbox: Option<SandboxMode>,
    /// Let tools reach these hosts, or the whole network (`open`) [default: none]
    #[arg(long, value_name = "HOST,…", require_equals = true, value_parser = network)]
    #[arg(help_heading = "Tools")]
    network: Option<NetworkChoice>,
    /// Write a JSON object
    #[arg(long)]
    json: bool,
    /// Where settings come from.
    #[command(flatten, next_help_heading = "Settings")]
    settings: SettingArgs,
}

const HELP: &str = "\
Examples:
  undertext doctor -m gpt-5
  undertext doctor --base-url http://127.0.0.1:11434/v1 -m qwen3
  undertext doctor -m offline                    needs neither key nor network
  undertext doctor -m gpt-5 --network=crates.io  what is stopped with this open

It asks the model for a word and for a call of a tool, which costs a few hundred tokens. It exits
with 0 if runs can be had; else with 2 if settings or the key are wrong, 4 if the server fails, 5 if
the sandbox cannot be enforced, and 1 if the model does not do what a run needs.";

/// Looks at everything that a run needs, in order.
pub(crate) fn doctor(
    args: &DoctorArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let mut flags = Sections::default();
    args.asked.say(&mut flags);
    if let Some(mode) = args.sandbox {
        flags.sandbox.mode = Given::value(mode);
    }
    if let Some(network) = &args.network {
        flags.sandbox.network = Given::value(network.clone());
    }
    let environment = &process.environment;
    let sources = args.settings.sources(environment, flags);
    let mut findings = Findings::new(term, args.json);
    let Some(settings) = settings(&sources, &mut findings)? else {
        return findings.end();
    };
    let runtime = process::runtime()?;
    let offline = settings.model.name.as_deref() == Some(NAME) && args.asked.base_url.is_none();
    runtime.block_on(async {
        sandbox::look(&settings, process, &mut findings).await?;
        if offline {
            self::offline(settings, &mut findings).await?;
        } else {
            online(settings, environment, &mut findings).await?;
        }
        findings.end()
    })
}

/// The settings, if they can be meant.
fn settings(sources: &Sources, findings: &mut Findings<'_>) -> Result<Option<Settings>, Failure> {
    let read = Layers::read(sources).and_then(|layers| layers.settings());
    let read = read.map_err(Failure::from);
    match read.and_then(|settings| start::spoken(&settings).map(|()| settings)) {
        Ok(settings) => {
            let file = config::own_file(&sources.environment);
            let file = file.filter(|file| file.exists());
            let from = match (file, sources.files.len()) {
                (Some(file), 0) => file.display().to_string(),
                (Some(file), more) => format!("{} and {more} more", file.display()),
                (None, 0) => "no file; all as built in".to_owned(),
                (None, files) => amount::of(files as u64, "file"),
            };
            findings.ok("settings", from)?;
            for mistaken in start::mistaken(&sources.environment) {
                findings.warn("settings", mistaken)?;
            }
            Ok(Some(settings))
        }
        Err(failure) => {
            findings.fail("settings", failure.exit, failure.why())?;
            findings.change("mend that setting; `undertext config check` says when it is right");
            Ok(None)
        }
    }
}

/// The offline model, which needs neither key nor network.
async fn offline(settings: Settings, findings: &mut Findings<'_>) -> Result<(), Failure> {
    let served = Offline::serve().await.map_err(|error| {
        let error = anyhow::Error::new(error).context("cannot serve the offline model");
        Failure::new(Exit::Unfinished, error)
    })?;
    findings.ok("key", "none is needed")?;
    findings.ok("model", "offline, a script in this program and no LLM")?;
    let window = settings.model.window.unwrap_or(WINDOW);
    findings.ok("window", format!("{} tokens", amount::count(window)))?;
    let endpoint = config::Endpoint {
        base_url: served.base_url.clone(),
        key: None,
    };
    if let (Some(client), Some(models)) = (
        server::client(&endpoint, &settings, findings)?,
        settings.models(None),
    ) {
        let probed = probe::word(&client, &models.main).await?;
        answers::reply(&probed, findings)?;
    }
    Ok(())
}

/// A model at a server.
async fn online(
    settings: Settings,
    environment: &Environment,
    findings: &mut Findings<'_>,
) -> Result<(), Failure> {
    let endpoint = match settings.endpoint(environment) {
        Ok(endpoint) => endpoint,
        Err(error) => {
            let variable = if let ConfigError::Endpoint(EndpointError::NamedKey(name, _)) = &error {
                name.clone()
            } else {
                "OPENAI_API_KEY".to_owned()
            };
            findings.fail("key", Exit::Usage, start::no_key(error).why())?;
            findings.change(format!("set the variable: export {variable}=…"));
            findings.change(
                "or name a server that needs none: \
                 undertext doctor --base-url http://127.0.0.1:11434/v1 -m MODEL",
            );
            return Ok(());
        }
    };
    findings.hide(&start::of_server(&endpoint));
    let url = config::public_part(&endpoint.base_url);
    match &endpoint.key {
        Some(Key { variable, .. }) => findings.ok("key", format!("from {variable}"))?,
        None => findings.ok("key", "none is sent")?,
    }
    let Some(client) = server::client(&endpoint, &settings, findings)? else {
        return Ok(());
    };
    let listed = match client.models().await {
        Ok(listed) => {
            findings.ok(
                "server",
                format!("{url} answers{}", server::proxy(&url, environment)),
            )?;
            listed
        }
        Err(fault) => {
            if !server::unlisted(&url, &fault, &endpoint, environment, findings)? {
                return Ok(());
            }
            Vec::new()
        }
    };
    let Some(models) = settings.models(Some(&endpoint.base_url)) else {
        findings.fail(
            "model",
            Exit::Usage,
            format!("none is named{}", server::some_of(&listed)),
        )?;
        findings.change("name one: undertext doctor -m MODEL, or model.name in config.yaml");
        return Ok(());
    };
    let model = models.main;
    let there = server::model_listed(&model, &listed, findings)?;
    let known = known(&model.profile.name, &model.name);
    let Choice { profile, why } = settings.profile(&endpoint.base_url, &model.name);
    findings.ok("profile", format!("{}: {why}", profile.name))?;
    server::profile_advice(&profile.name, there, findings);
    figures::window(&settings, &model, known.as_ref(), there, findings)?;
    figures::prices(&settings, known.as_ref(), findings)?;

    findings.say("asking the model for a word and a call, a few hundred tokens")?;
    let probed = probe::word(&client, &model).await?;
    if answers::reply(&probed, findings)? {
        let probed = probe::call(&client, &model).await?;
        answers::call(&probed, findings)?;
    }
    Ok(())
}
