//! `doctor`: whether runs can be had with these settings, and what to change if not.

pub(crate) mod check;
mod probe;

use std::time::Duration;

use clap::Args;
use undertext::announcement::{self, Announcement};
use undertext::config::{
    self, ConfigError, EndpointError, Environment, Key, Layers, Sections, Settings, Sources,
};
use undertext::exchange::Ending;
use undertext::model::offline::{NAME, Offline, WINDOW};
use undertext::model::{Client, Fault, Listed};
use undertext::profile::{self, Choice, Known, known};
use undertext::setup::Model;
use undertext::transcript::FaultClass;

use crate::cli::doctor::check::Findings;
use crate::cli::doctor::probe::Probed;
use crate::cli::exit::{Exit, Failure};
use crate::cli::model_args::ModelArgs;
use crate::cli::term::Term;
use crate::cli::{Process, SettingArgs, amount, models, run, start};

/// `doctor`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DoctorArgs {
    /// Which model, and where.
    #[command(flatten, next_help_heading = "Model")]
    asked: ModelArgs,
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

It asks the model for a word and for a call of a tool, which costs a few hundred tokens. It exits
with 0 if runs can be had; else with 2 if settings or the key are wrong, 4 if the server fails, and
1 if the model does not do what a run needs.";

/// The longest waits here: for a connection, and for anything else.
const PATIENCE: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(120)];

/// What to do where a reply is cut.
const LESS: &str =
    "let the model think less (model.reasoning_effort), or see what limits output at the server";

/// A window below this is small for an agent, in tokens.
const SMALL: u64 = 32_000;

/// Looks at everything that a run needs, in order.
pub(crate) fn doctor(
    args: &DoctorArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let mut flags = Sections::default();
    args.asked.say(&mut flags);
    let environment = &process.environment;
    let sources = args.settings.sources(environment, flags);
    let mut findings = Findings::new(term, args.json);
    let Some(settings) = settings(&sources, &mut findings)? else {
        return findings.end();
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            let error = anyhow::Error::new(error).context("cannot begin to work");
            Failure::new(Exit::Unfinished, error)
        })?;
    let offline = settings.model.name.as_deref() == Some(NAME) && args.asked.base_url.is_none();
    runtime.block_on(async {
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
            findings.fail("settings", failure.exit, failure.line())?;
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
        client(&endpoint, &settings, findings)?,
        settings.models(None),
    ) {
        let probed = probe::word(&client, &models.main).await?;
        reply(&probed, findings)?;
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
            findings.fail("key", Exit::Usage, start::no_key(error).line())?;
            findings.change(format!("set the variable: export {variable}=…"));
            findings.change(
                "or name a server that needs none: \
                 undertext doctor --base-url http://127.0.0.1:11434/v1 -m MODEL",
            );
            return Ok(());
        }
    };
    let url = config::public_part(&endpoint.base_url);
    match &endpoint.key {
        Some(Key { variable, .. }) => findings.ok("key", format!("from {variable}"))?,
        None => findings.ok("key", "none is sent")?,
    }
    let Some(client) = client(&endpoint, &settings, findings)? else {
        return Ok(());
    };
    let listed = match client.models().await {
        Ok(listed) => {
            findings.ok(
                "server",
                format!("{url} answers{}", proxy(&url, environment)),
            )?;
            listed
        }
        Err(fault) => {
            if !unlisted(&url, &fault, &endpoint, environment, findings)? {
                return Ok(());
            }
            Vec::new()
        }
    };
    let Some(models) = settings.models(Some(&endpoint.base_url)) else {
        findings.fail(
            "model",
            Exit::Usage,
            format!("none is named{}", some_of(&listed)),
        )?;
        findings.change("name one: undertext doctor -m MODEL, or model.name in config.yaml");
        return Ok(());
    };
    let model = models.main;
    let there = model_listed(&model, &listed, findings)?;
    let known = known(&model.profile.name, &model.name);
    let Choice { profile, why } = settings.profile(&endpoint.base_url, &model.name);
    findings.ok("profile", format!("{}: {why}", profile.name))?;
    profile_advice(&profile.name, there, findings);
    window(&settings, &model, known.as_ref(), there, findings)?;
    prices(&settings, known.as_ref(), findings)?;

    findings.say("asking the model for a word and a call, a few hundred tokens")?;
    let probed = probe::word(&client, &model).await?;
    if reply(&probed, findings)? {
        let probed = probe::call(&client, &model).await?;
        call(&probed, findings)?;
    }
    Ok(())
}

fn client(
    endpoint: &config::Endpoint,
    settings: &Settings,
    findings: &mut Findings<'_>,
) -> Result<Option<Client>, Failure> {
    let mut timeouts = settings.timeouts;
    let [connect, answer] = PATIENCE;
    timeouts.connect = timeouts.connect.min(connect);
    timeouts.bytes = timeouts.bytes.min(answer);
    timeouts.progress = timeouts.progress.min(answer);
    match Client::new(run::endpoint(endpoint), timeouts) {
        Ok(client) => Ok(Some(client)),
        Err(error) => {
            let failure = Failure::new(Exit::Usage, error);
            findings.fail("server", Exit::Usage, failure.line())?;
            findings.change("mend what is named there");
            Ok(None)
        }
    }
}

/// Which proxy may stand between.
fn proxy(url: &str, environment: &Environment) -> String {
    let variables = if url.starts_with("https:") {
        ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
    } else {
        ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
    };
    let here = ["127.", "localhost", "[::1]"];
    let is_here = here.iter().any(|here| url.contains(&format!("://{here}")));
    let set = |name: &&str| environment.get(*name).is_some_and(|text| !text.is_empty());
    match variables.iter().find(|name| set(name)).filter(|_| !is_here) {
        Some(name) => format!(", by the proxy of {name} unless NO_PROXY names it"),
        None => String::new(),
    }
}

/// What to do about a server that cannot be reached, by a proxy or without.
fn unreached(url: &str, by_proxy: bool, fault: &Fault) -> String {
    let message = &fault.message;
    if fault.class == FaultClass::Permanent {
        // A certificate, and the message says what can be done.
        return "see that the address is right, and that its certificate can be trusted".to_owned();
    }
    if message.contains("InvalidContentType") {
        let plain = url.replacen("https:", "http:", 1);
        return format!("that server speaks no TLS; try --base-url {plain}");
    }
    if by_proxy {
        return "see that the proxy works, or name that host in NO_PROXY".to_owned();
    }
    if message.contains("connection was lost") {
        return format!(
            "see that {url} is the address of an API; with TLS it begins with https://"
        );
    }
    "start that server, or name another with --base-url".to_owned()
}

/// What it means that there is no list of models: the server may do well without one. Returns whether
/// the model can be asked.
fn unlisted(
    url: &str,
    fault: &Fault,
    endpoint: &config::Endpoint,
    environment: &Environment,
    findings: &mut Findings<'_>,
) -> Result<bool, Failure> {
    let message = &fault.message;
    match (fault.status, fault.class) {
        (None, _) => {
            let proxy = proxy(url, environment);
            findings.fail("server", Exit::Provider, format!("{url}{proxy}: {message}"))?;
            findings.change(unreached(url, !proxy.is_empty(), fault));
            Ok(false)
        }
        (Some(_), FaultClass::Auth) => {
            findings.ok(
                "server",
                format!("{url} answers{}", proxy(url, environment)),
            )?;
            let what = match &endpoint.key {
                Some(_) => "the server refuses it",
                None => "the server wants one",
            };
            findings.fail("key", Exit::Usage, format!("{what}: {message}"))?;
            findings.change(match &endpoint.key {
                Some(key) => format!("put a key that is valid at {url} into {}", key.variable),
                None => "name the variable that holds the key: --api-key-env NAME".to_owned(),
            });
            Ok(false)
        }
        (Some(200..=299), _) => {
            findings.warn("server", format!("{url} answers, but {message}"))?;
            findings.change(format!(
                "see that {url} is the address of an API; most end in /v1"
            ));
            Ok(true)
        }
        (Some(status), _) => {
            let text = format!("{url} answers, without a list of models ({status})");
            findings.ok("server", text)?;
            Ok(true)
        }
    }
}

/// Whether the server lists the model.
fn model_listed<'a>(
    model: &Model,
    listed: &'a [Listed],
    findings: &mut Findings<'_>,
) -> Result<Option<&'a Listed>, Failure> {
    let name = &model.name;
    if listed.is_empty() {
        findings.ok("model", format!("{name}; the server lists none"))?;
        return Ok(None);
    }
    let there = listed.iter().find(|listed| listed.name == *name);
    if there.is_some() {
        findings.ok("model", format!("{name}, which the server lists"))?;
    } else {
        findings.warn(
            "model",
            format!("the server does not list {name}{}", some_of(listed)),
        )?;
        let names: Vec<&str> = listed.iter().map(|listed| listed.name.as_str()).collect();
        if let Some(near) = similar::get_close_matches(name.as_str(), &names, 1, 0.6).first() {
            findings.change(format!("take the name that is listed: -m {near}"));
        }
    }
    Ok(there)
}

/// `; there is a, b, c and 7 more`
fn some_of(listed: &[Listed]) -> String {
    const SHOWN: usize = 5;
    let names: Vec<&str> = listed.iter().map(|listed| listed.name.as_str()).collect();
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>();
    match names.len() {
        0 => String::new(),
        all if all > SHOWN => format!("; there is {} and {} more", shown.join(", "), all - SHOWN),
        _ => format!("; there is {}", shown.join(", ")),
    }
}

/// Servers for one's own machine say who they are.
fn profile_advice(taken: &str, there: Option<&Listed>, findings: &mut Findings<'_>) {
    let owner = there.and_then(|listed| listed.owner.as_deref());
    let better = match owner {
        Some("llamacpp") => "llama.cpp",
        Some("vllm") => "vllm",
        Some("sglang") => "sglang",
        Some("library") => "ollama",
        Some(_) | None => return,
    };
    if taken == profile::UNKNOWN {
        findings.better(format!(
            "the server seems to be {better}: model.profile: {better}"
        ));
    }
    if better == "ollama" {
        findings.better(
            "Ollama cuts off what is longer than its window and says nothing: set \
             OLLAMA_CONTEXT_LENGTH where it runs, and model.context_window to the same",
        );
    }
}

/// The window: told, known, or named by the server.
fn window(
    settings: &Settings,
    model: &Model,
    known: Option<&Known>,
    there: Option<&Listed>,
    findings: &mut Findings<'_>,
) -> Result<(), Failure> {
    let named = there.and_then(|listed| listed.window);
    let tokens = |window: u64| format!("{} tokens", amount::count(window));
    let source = match (settings.model.window, known) {
        (Some(_), _) => "as your settings say".to_owned(),
        (None, Some(known)) => format!("as known on {}", known.as_of),
        (None, None) => String::new(),
    };
    let advice = |window: u64| format!("model.context_window: {window}");
    match (model.window, named) {
        (Some(used), Some(named)) if named < used => {
            let text = format!(
                "{}, {source}; the server says {}",
                tokens(used),
                tokens(named)
            );
            findings.warn("window", text)?;
            findings.change(advice(named));
        }
        (Some(used), _) if used < SMALL => {
            let text = format!("{}, {source}: that is small for an agent", tokens(used));
            findings.warn("window", text)?;
        }
        (Some(used), _) => findings.ok("window", format!("{}, {source}", tokens(used)))?,
        (None, Some(named)) => {
            let small = if named < SMALL {
                ", which is small for an agent"
            } else {
                ""
            };
            let text = format!(
                "the server says {}{small}; it is not used yet",
                tokens(named)
            );
            findings.warn("window", text)?;
            findings.better(advice(named));
        }
        (None, None) => {
            let text = "not known; it is learned when the server says that a request is too long";
            findings.warn("window", text)?;
            findings.better("name the model's window, in tokens: model.context_window: 128000");
        }
    }
    let output = model.parameters.max_output_tokens;
    if let (Some(most), Some(output)) = (known.and_then(|known| known.output), output)
        && output > most
    {
        findings.warn(
            "window",
            format!("one response has at most {}", tokens(most)),
        )?;
        findings.change(format!("model.max_output_tokens: {most}"));
    }
    Ok(())
}

/// What tokens cost.
fn prices(
    settings: &Settings,
    known: Option<&Known>,
    findings: &mut Findings<'_>,
) -> Result<(), Failure> {
    match (&settings.policy.prices, known) {
        (Some(prices), _) => {
            let text = format!("{}, as your settings say", models::listed(prices));
            findings.ok("prices", text)
        }
        (None, Some(known)) => findings.ok("prices", models::of_known(known)),
        (None, None) if settings.policy.limits.cost_usd_micro.is_some() => {
            let text = "not known, so that limits.cost cannot hold";
            findings.fail("prices", Exit::Usage, text)?;
            findings
                .change("model.prices: { input: …, output: … }, in US dollars per million tokens");
            Ok(())
        }
        (None, None) => findings.ok("prices", "not known: cost is not counted"),
    }
}

/// Whether the model answered.
fn reply(probed: &Probed, findings: &mut Findings<'_>) -> Result<bool, Failure> {
    let Some(response) = probed.responses.last() else {
        failed("reply", probed, findings)?;
        return Ok(false);
    };
    let finish = match &response.finish {
        Some(finish) => format!("finish reason {finish}"),
        None => "no finish reason".to_owned(),
    };
    match response.ending {
        Ending::Complete if response.text.trim().is_empty() => {
            findings.fail("reply", Exit::Unfinished, format!("empty, {finish}"))?;
            findings.change("see that the server uses the chat template that the model needs");
            return Ok(false);
        }
        Ending::Complete => {}
        Ending::Cut => {
            let most = amount::count(probe::OUTPUT_MAX);
            let text = format!("cut, {finish}: {most} tokens were not enough for a word");
            findings.warn("reply", text)?;
            findings.change(LESS);
            return Ok(true);
        }
        Ending::Filtered | Ending::Refused => {
            findings.fail("reply", Exit::Unfinished, format!("refused, {finish}"))?;
            findings.change("take a model or a server that refuses less");
            return Ok(false);
        }
    }
    let counted = response.usage;
    if let Some((input, output)) = counted.and_then(|usage| usage.input.zip(usage.output)) {
        let text = format!("whole, {finish}, {input} tokens in and {output} out");
        findings.ok("reply", text)?;
    } else {
        let text = format!("whole, {finish}, but tokens are not reported");
        findings.warn("reply", text)?;
        findings.better(
            "tokens and cost will be estimates; see if the server can report usage when streaming",
        );
    }
    Ok(true)
}

/// Whether the model called the tool.
fn call(probed: &Probed, findings: &mut Findings<'_>) -> Result<(), Failure> {
    let called = probed.responses.iter().map(|response| response.calls.len());
    match (probed.ran, called.sum::<usize>()) {
        (1.., _) => match &probed.fault {
            None => findings.ok(
                "call",
                "made, with whole arguments, and its result was read",
            ),
            Some(fault) => {
                let text = format!("made, but its result was refused: {}", fault.message);
                findings.fail("call", Exit::Provider, text)?;
                findings.change("another profile may do: model.profile");
                Ok(())
            }
        },
        (0, 0) if probed.fault.is_some() || probed.late => failed("call", probed, findings),
        (0, 0) => {
            findings.fail("call", Exit::Unfinished, instead(probed))?;
            let last = probed.responses.last();
            if last.is_none_or(|response| response.ending != Ending::Cut) {
                advise_tools(findings);
            }
            Ok(())
        }
        (0, _) => {
            let text = "made, but its arguments were not usable";
            findings.fail("call", Exit::Unfinished, text)?;
            advise_tools(findings);
            Ok(())
        }
    }
}

/// What the model did in place of a call.
fn instead(probed: &Probed) -> &'static str {
    let Some(response) = probed.responses.last() else {
        return "no call was made";
    };
    let announced = announcement::announced(&response.text, &[probe::TOOL]);
    match response.ending {
        Ending::Cut => "the reply was cut before a call was made",
        Ending::Filtered | Ending::Refused => "the model refused it",
        Ending::Complete if announced == Some(Announcement::Call) => {
            "the model wrote it as text, which does not run"
        }
        Ending::Complete if response.text.trim().is_empty() => "the reply is empty",
        Ending::Complete => "the model answered in words instead",
    }
}

fn advise_tools(findings: &mut Findings<'_>) {
    findings.change("take a model that is made for tools, or switch tool calls on at the server");
}

/// There was no answer.
fn failed(name: &'static str, probed: &Probed, findings: &mut Findings<'_>) -> Result<(), Failure> {
    let Some(fault) = &probed.fault else {
        let text = if probed.late {
            "no answer came in time"
        } else {
            "no answer came"
        };
        return findings.fail(name, Exit::Provider, text);
    };
    let status = fault
        .status
        .map_or_else(String::new, |status| format!(" ({status})"));
    let text = format!("{}{status}: {}", fault.class.word(), fault.message);
    findings.fail(name, Exit::Provider, text)?;
    match fault.class {
        FaultClass::Permanent if matches!(fault.status, Some(402 | 429)) => {
            findings.change("see to credit and limits of your account at the provider");
        }
        FaultClass::Permanent if matches!(fault.status, Some(300..=399)) => {
            findings.change("name the address that the server moved to with --base-url");
        }
        FaultClass::Auth => findings.change("see that the key is right, and may use this model"),
        FaultClass::Rate | FaultClass::Overload | FaultClass::Server => {
            findings.change("wait a little and try again: the server is busy or broken");
        }
        FaultClass::Transport | FaultClass::Stall | FaultClass::Torn => {
            findings.change("see that the server runs, and that nothing between cuts connections");
        }
        FaultClass::Permanent | FaultClass::ContentFilter | FaultClass::Local if name == "call" => {
            advise_tools(findings);
        }
        FaultClass::Permanent | FaultClass::ContentFilter | FaultClass::Local => {
            findings.change("see that the model's name and the address are right");
        }
        FaultClass::Overflow => findings.change("give the server a larger window"),
    }
    Ok(())
}
