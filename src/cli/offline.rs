//! The offline model: where it is meant, it is served, and asked like any other.

use undertext::config::{ConfigError, Endpoint, EndpointError, Environment, Settings};
use undertext::model::offline::{NAME, Offline, WINDOW};
use undertext::record::Recorder;
use undertext::setup;

use crate::cli::RunArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::start::{self, Start};

/// What a person is told of it.
const TOLD: &str = "model: offline, a script in this program and no LLM";

/// Whether the offline model is meant: it is named, and nobody named a server on the command line.
fn is_meant(args: &RunArgs, settings: &Settings, recorded: Option<&str>) -> bool {
    let name = settings.model.name.as_deref().or(recorded);
    name == Some(NAME) && args.asked.base_url.is_none()
}

/// The server and its key, as far as they can be told before a run that is taken up is read. The
/// address is empty where that is open.
pub(super) fn endpoint(
    args: &RunArgs,
    settings: &Settings,
    environment: &Environment,
) -> Result<Endpoint, ConfigError> {
    let open = Endpoint {
        base_url: String::new(),
        key: None,
    };
    if is_meant(args, settings, None) {
        return Ok(open);
    }
    let taken_up = args.resume.is_some() || args.continue_last;
    match settings.endpoint(environment) {
        Err(ConfigError::Endpoint(EndpointError::UsualKey))
            if taken_up && settings.model.name.is_none() =>
        {
            Ok(open)
        }
        named => named,
    }
}

/// Serves the offline model if it is meant, and lets the run ask it.
pub(super) async fn serve(
    args: &RunArgs,
    start: &mut Start,
    taken_up: Option<&Recorder>,
) -> Result<Option<Offline>, Failure> {
    let recorded: Option<&setup::Model> = taken_up
        .and_then(|recorder| recorder.view().setup())
        .map(|setup| &setup.wire.models.main);
    if !is_meant(
        args,
        &start.settings,
        recorded.map(|model| model.name.as_str()),
    ) {
        if start.endpoint.base_url.is_empty() {
            return Err(start::no_key(EndpointError::UsualKey.into()));
        }
        return Ok(None);
    }
    let offline = Offline::serve().await.map_err(|error| {
        let error = anyhow::Error::new(error).context("cannot serve the offline model");
        Failure::new(Exit::Unfinished, error)
    })?;
    start.endpoint.base_url.clone_from(&offline.base_url);
    start.endpoint.key = None;
    start.offline = true;
    let known = recorded.filter(|model| model.name == NAME);
    if known.is_none_or(|model| model.window.is_none()) {
        start.settings.model.window.get_or_insert(WINDOW);
    }
    // It stands where the server would be named.
    if let Some(server) = start.remarks.first_mut() {
        TOLD.clone_into(server);
    }
    Ok(Some(offline))
}
