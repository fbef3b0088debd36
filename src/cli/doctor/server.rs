//! The server: whether it answers, what it lists, and what stands between.

use std::time::Duration;

use undertext::config::{self, Environment, Settings};
use undertext::model::{Client, Fault, Listed};
use undertext::profile;
use undertext::setup::Model;
use undertext::transcript::FaultClass;

use crate::cli::doctor::check::Findings;
use crate::cli::exit::{Exit, Failure};
use crate::cli::made;

/// The longest waits here: for a connection, and for anything else.
const PATIENCE: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(120)];

/// What asks the server, more patient than a person and less than a run.
pub(super) fn client(
    endpoint: &config::Endpoint,
    settings: &Settings,
    findings: &mut Findings<'_>,
) -> Result<Option<Client>, Failure> {
    let mut timeouts = settings.timeouts;
    let [connect, answer] = PATIENCE;
    timeouts.connect = timeouts.connect.min(connect);
    timeouts.bytes = timeouts.bytes.min(answer);
    timeouts.progress = timeouts.progress.min(answer);
    match Client::new(made::endpoint(endpoint), timeouts) {
        Ok(client) => Ok(Some(client)),
        Err(error) => {
            let failure = Failure::new(Exit::Usage, error);
            findings.fail("server", Exit::Usage, failure.why())?;
            findings.change("mend what is named there");
            Ok(None)
        }
    }
}

/// Which proxy may stand between.
pub(super) fn proxy(url: &str, environment: &Environment) -> String {
    let variables = if url.starts_with("https:") {
        ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
    } else {
        ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
    };
    let is_here = profile::is_here(url);
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
pub(super) fn unlisted(
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
pub(super) fn model_listed<'a>(
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
        if let Some(near) = config::closest(name, &names) {
            findings.change(format!("take the name that is listed: -m {near}"));
        }
    }
    Ok(there)
}

/// `; there is a, b, c and 7 more`
pub(super) fn some_of(listed: &[Listed]) -> String {
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
pub(super) fn profile_advice(taken: &str, there: Option<&Listed>, findings: &mut Findings<'_>) {
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
