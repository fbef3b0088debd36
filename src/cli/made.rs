//! The agent of a run: its hands, its client, what it is told and what it is offered.

use std::path::Path;
use std::sync::Arc;

use futures::future;
use undertext::agent::Agent;
use undertext::config::{self, ToolFile};
use undertext::id::RunId;
use undertext::instructions::Instructions;
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
        match told::told(&start.settings, &wanted, &hands, process).await {
            Ok(told) => Ok((hands, sandboxed, told)),
            Err(failure) => {
                hands.close().await;
                Err(failure)
            }
        }
    };
    let beside = async {
        // First the process has what it is to do: then nothing it waits for is done here.
        tokio::task::yield_now().await;
        let client = client()?;
        let (setup, prices) = setup(start, before, run)?;
        Ok::<_, Failure>((client, setup, prices, Toolbox::builtin()))
    };
    // Both to their end: hands that are let go of while they begin would leave marks in the workspace. What
    // holds tools is told first, since whoever mends the other would not know of it.
    let (hands, beside) = future::join(hands, beside).await;
    let (hands, sandboxed, told) = hands?;
    let put = beside.and_then(|(client, setup, prices, builtin)| {
        let mut remarks = vec![sandboxed];
        remarks.extend(process.told_of_hidden(&workspace.to_string_lossy(), key_variable(start)));
        let (setup, toolbox) = offered(
            args,
            start,
            before,
            (setup, builtin, files),
            told,
            &mut remarks,
        )?;
        remarks.extend(models::moved(start, before));
        remarks.extend(prices);
        Ok((Agent::new(setup, Arc::new(client), toolbox), remarks))
    });
    let (agent, mut remarks) = match put {
        Ok(put) => put,
        Err(failure) => {
            hands.close().await;
            return Err(failure);
        }
    };
    if workspace.join("config.yaml").exists() {
        remarks.push("config.yaml in the workspace is not read; name it with --config".to_owned());
    }
    Ok((agent.with_hands(hands), remarks))
}

/// What is recorded of the settings with what was found, and the tools that are offered.
fn offered(
    args: &RunArgs,
    start: &Start,
    before: Option<&Setup>,
    (mut setup, builtin, files): (Setup, Toolbox, Vec<ToolFile>),
    told: Instructions,
    remarks: &mut Vec<String>,
) -> Result<(Setup, Toolbox), Failure> {
    setup.wire.instructions = told.text;
    // A run that is taken up keeps the form of its answer unless another one is named.
    if setup.policy.output.is_none() {
        let kept = before.and_then(|before| before.policy.output.as_ref());
        setup.policy.output = kept.cloned();
    }
    let tools = Tools::of(&start.settings, (builtin, files), told.skills);
    remarks.extend(tools.remarks(&start.settings));
    remarks.extend(told.remarks);
    let mut toolbox = tools.offered(&start.settings, &args.choice)?;
    // What a person pruned stays out until they name the tools to offer.
    if let Some(before) = before.filter(|_| args.choice.tools.is_empty()) {
        let pruned = &before.policy.pruned;
        let there = toolbox::names(&toolbox);
        let there = pruned.iter().filter(|name| there.contains(name));
        toolbox = toolbox.without(there).map_err(toolbox::unknown)?;
        setup.policy.pruned.clone_from(pruned);
    }
    Ok((setup, toolbox))
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
