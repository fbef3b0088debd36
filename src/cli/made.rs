//! The agent of a run: its hands, its client, what it is told and what it is offered.

use std::path::Path;
use std::sync::Arc;

use futures::future;
use undertext::agent::Agent;
use undertext::config;
use undertext::id::RunId;
use undertext::model::{ApiKey, Client, Endpoint};
use undertext::profile;
use undertext::setup::{Setup, Wire};
use undertext::tools::Toolbox;

use crate::cli::asked::Asked;
use crate::cli::confined::{self, Ahead, Site};
use crate::cli::exit::{Exit, Failure};
use crate::cli::start::Start;
use crate::cli::toolbox::{self, Tools};
use crate::cli::{Process, RunArgs, models, site, told};

/// The agent, and what a person should know of it. Its client, and whatever else does not need its hands, is
/// made while these are started: that takes longer than all the rest.
pub(super) async fn agent(
    args: &RunArgs,
    start: &Start,
    (workspace, run): (&Path, RunId),
    before: Option<&Setup>,
    (ahead, client, process): (Ahead, impl FnOnce() -> Result<Client, Failure>, &Process),
) -> Result<(Agent, Vec<String>), Failure> {
    let usage = |error: anyhow::Error| Failure::new(Exit::Usage, error);
    let files = toolbox::own(&process.environment)?;
    let skills = args.choice.wants_skills(&start.settings);
    let wanted = told::wanted(&start.settings, skills, workspace, process);
    let site = Site {
        workspace: site::of(workspace, start, process).map_err(|error| usage(error.into()))?,
        tools: files.iter().map(|file| file.tool.clone()).collect(),
        ours: site::ours(args, start, process),
        above: wanted.above(workspace),
        asked: Asked::of(&start.settings, key_variable(start), process)?,
        ahead,
    };
    let hands = async {
        let sandbox = &start.settings.policy.sandbox;
        let (hands, sandboxed) = confined::hands(sandbox, site, process).await?;
        let told = told::told(&start.settings, &wanted, &hands, process).await?;
        Ok::<_, Failure>((hands, sandboxed, told))
    };
    let beside = async {
        // First the process has what it is to do: then nothing it waits for is done here.
        tokio::task::yield_now().await;
        let client = client()?;
        let (setup, prices) = setup(start, before, run)?;
        Ok::<_, Failure>((client, setup, prices, Toolbox::builtin()))
    };
    // Both to their end: hands that are let go of while they begin would leave marks in the workspace.
    let (hands, beside) = future::join(hands, beside).await;
    let (client, mut setup, prices, builtin) = beside?;
    let (hands, sandboxed, told) = hands?;
    setup.wire.instructions = told.text;
    // A run that is taken up keeps the form of its answer unless another one is named.
    if setup.policy.output.is_none() {
        let kept = before.and_then(|before| before.policy.output.as_ref());
        setup.policy.output = kept.cloned();
    }
    let tools = Tools::of(&start.settings, (builtin, files), told.skills);
    let mut remarks = vec![sandboxed];
    remarks.extend(process.told_of_hidden(&workspace.to_string_lossy(), key_variable(start)));
    remarks.extend(tools.remarks(&start.settings));
    remarks.extend(told.remarks);
    remarks.extend(models::moved(start, before));
    remarks.extend(prices);
    let mut toolbox = tools.offered(&start.settings, &args.choice)?;
    // What a person pruned stays out until they name the tools to offer.
    if let Some(before) = before.filter(|_| args.choice.tools.is_empty()) {
        let pruned = &before.policy.pruned;
        let there = toolbox::names(&toolbox);
        let there = pruned.iter().filter(|name| there.contains(name));
        toolbox = toolbox.without(there).map_err(toolbox::unknown)?;
        setup.policy.pruned.clone_from(pruned);
    }
    if workspace.join("config.yaml").exists() {
        remarks.push("config.yaml in the workspace is not read; name it with --config".to_owned());
    }
    let agent = Agent::new(setup, Arc::new(client), toolbox).with_hands(hands);
    Ok((agent, remarks))
}

/// The variable that holds the key of the model's server.
fn key_variable(start: &Start) -> Option<&str> {
    start.endpoint.key.as_ref().map(|key| key.variable.as_str())
}

/// Who asks the server.
pub(super) fn client(start: &Start) -> Result<Client, Failure> {
    let client = Client::new(endpoint(&start.endpoint), start.settings.timeouts);
    client.map_err(|error| Failure::new(Exit::Usage, error))
}

/// The server as the client knows it.
pub(super) fn endpoint(endpoint: &config::Endpoint) -> Endpoint {
    let base_url = endpoint.base_url.clone();
    let key = endpoint.key.as_ref();
    match key.filter(|_| profile::is_azure(&base_url)) {
        Some(key) => Endpoint {
            base_url,
            api_key: None,
            headers: vec![("api-key".to_owned(), key.secret().to_owned())],
        },
        None => Endpoint {
            base_url,
            api_key: key.map(|key| ApiKey::new(key.secret())),
            headers: Vec::new(),
        },
    }
}

/// The settings that are recorded, without instructions and tools, and what is said of prices.
fn setup(
    start: &Start,
    before: Option<&Setup>,
    run: RunId,
) -> Result<(Setup, Option<String>), Failure> {
    let models = models::models(start, before, run)?;
    let (prices, told) = models::prices(start, &models)?;
    let mut policy = start.settings.policy.clone();
    policy.prices = prices;
    let wire = Wire {
        instructions: String::new(),
        tools: Vec::new(),
        models,
    };
    Ok((Setup { wire, policy }, told))
}
