//! The hands of a run: confined as the settings say, or in this process.

use std::path::{Path, PathBuf};

use undertext::config;
use undertext::hands::{External, Hands, Workspace};
use undertext::sandbox::{Enforced, Home, Mechanism};
use undertext::setup::{Network, Reach, Sandbox};

use crate::cli::exit::{Exit, Failure};
use crate::cli::{Process, start};

/// What is said where there is no sandbox.
pub(super) const OFF: &str = "sandbox: off, tools run with your own rights";

/// Where hands work.
#[derive(Debug)]
pub(super) struct Site {
    /// The workspace.
    pub(super) workspace: Workspace,
    /// The tools of the user's own.
    pub(super) tools: Vec<External>,
    /// What is ours and not for tools to see: transcripts, settings, logs.
    pub(super) ours: Vec<PathBuf>,
    /// The files of the project that lie above the workspace and may be read.
    pub(super) above: Vec<PathBuf>,
}

/// Hands within the bounds that a sandbox means, and what a person should know of them.
pub(super) async fn hands(
    sandbox: &Sandbox,
    site: Site,
    process: &Process,
) -> Result<(Hands, String), Failure> {
    let Some(reach) = sandbox.reach() else {
        let hands = Hands::in_process_with(site.workspace, site.tools);
        return Ok((hands, OFF.to_owned()));
    };
    let (hands, enforced) = confined(sandbox, site, process).await.map_err(|why| {
        let text = format!(
            "the sandbox cannot be enforced: {why}; --sandbox off runs tools with your own rights"
        );
        Failure::new(Exit::Sandbox, anyhow::Error::msg(text))
    })?;
    let how = match enforced.mechanism {
        Mechanism::Namespaces => "",
        Mechanism::Landlock => {
            ", by Landlock alone (`undertext doctor` says what that leaves open)"
        }
    };
    let remark = format!("sandbox: {}{how}; {}", sandbox.word(), network(reach));
    Ok((hands, remark))
}

/// What this machine enforces of a sandbox, tried in a workspace of its own; why not, if it cannot.
pub(super) async fn tried(sandbox: &Sandbox, process: &Process) -> Result<Enforced, String> {
    let failed = |error: &dyn std::error::Error| error.to_string();
    let directory = tempfile::tempdir().map_err(|error| failed(&error))?;
    let workspace = Workspace::open(directory.path(), None, Vec::new());
    let site = Site {
        workspace: workspace.map_err(|error| failed(&error))?,
        tools: Vec::new(),
        ours: Vec::new(),
        above: Vec::new(),
    };
    let (hands, enforced) = confined(sandbox, site, process).await?;
    hands.close().await;
    Ok(enforced)
}

/// What is said of the network.
fn network(reach: &Reach) -> String {
    match &reach.network {
        Network::None => "no network (--network allows it)".to_owned(),
        Network::Open => "with your network".to_owned(),
        Network::Hosts(hosts) => format!("network: {}", hosts.join(", ")),
    }
}

#[cfg(target_os = "linux")]
async fn confined(
    sandbox: &Sandbox,
    site: Site,
    process: &Process,
) -> Result<(Hands, Enforced), String> {
    use undertext::hands::Launch;
    use undertext::sandbox::Bounds;

    let environment = &process.environment;
    let Site {
        workspace,
        tools,
        mut ours,
        above,
    } = site;
    ours.extend(config::state_dir(environment));
    let settings = config::own_file(environment);
    ours.extend(
        settings
            .iter()
            .filter_map(|file| file.parent())
            .map(Path::to_owned),
    );
    let path = environment
        .get("PATH")
        .map(String::as_str)
        .unwrap_or_default();
    let around = Home {
        directory: start::home(environment),
        programs: std::env::split_paths(path)
            .filter(|path| path.is_absolute())
            .collect(),
        ours,
    };
    let roots: Vec<PathBuf> = workspace.roots().map(Path::to_owned).collect();
    let bounds = Bounds::of(sandbox, &roots, &around).ok_or("there are no bounds")?;
    // Programs of tools may stand beside their descriptions, and skills have files of their own.
    let beside = settings.iter().filter_map(|file| file.parent());
    let beside = beside.flat_map(|dir| ["tools", "skills"].map(|name| dir.join(name)));
    let bounds = beside
        .filter(|path| path.is_dir())
        .fold(bounds, Bounds::reading)
        .seeing(above);
    let launch = Launch {
        program: "/proc/self/exe".into(),
        arguments: vec![crate::cli::hands::NAME.into()],
        temporary: environment
            .get("TMPDIR")
            .filter(|path| Path::new(path).is_absolute())
            .map_or_else(|| "/tmp".into(), PathBuf::from),
    };
    let hands = Hands::confined(workspace, tools, bounds, launch).await;
    hands.map_err(|error| format!("{:#}", anyhow::Error::new(error)))
}

#[cfg(not(target_os = "linux"))]
async fn confined(_: &Sandbox, _: Site, _: &Process) -> Result<(Hands, Enforced), String> {
    Err("there is none for this system".to_owned())
}
