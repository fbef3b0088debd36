//! The hands of a run: confined as the settings say, or held by nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::process::DumpableBehavior;
use undertext::config::{self, Settings};
#[cfg(target_os = "linux")]
use undertext::hands::Launch;
use undertext::hands::{External, Hands, Workspace};
use undertext::sandbox::{Bounds, Enforced, Home, Mechanism};
use undertext::setup::{Network, Reach, Sandbox};

use crate::cli::exit::{Exit, Failure};
use crate::cli::{Process, advice, outputs, start};

/// A sandbox cannot be enforced.
#[derive(Debug)]
pub(super) struct Unheld {
    /// How the program ends.
    pub(super) exit: Exit,
    /// Why.
    pub(super) why: String,
    /// What the user can do, unless the reason says so.
    pub(super) advice: Option<&'static str>,
}

impl Unheld {
    /// For this reason, about which this can be done.
    fn new(why: impl Into<String>, advice: Option<&'static str>) -> Self {
        Self {
            exit: Exit::Sandbox,
            why: why.into(),
            advice,
        }
    }
}

impl From<Unheld> for Failure {
    fn from(unheld: Unheld) -> Self {
        let Unheld { exit, why, advice } = unheld;
        let text = match (exit, advice) {
            (Exit::Sandbox, Some(advice)) => {
                format!("the sandbox cannot be enforced: {why}; {advice}")
            }
            (Exit::Sandbox, None) => format!("the sandbox cannot be enforced: {why}"),
            _ => why,
        };
        Self::new(exit, anyhow::Error::msg(text))
    }
}

/// What is left where nothing else helps.
const WITHOUT: &str = "--sandbox off runs tools with your own rights";

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
    /// Who is asked about what is out of bounds.
    pub(super) asked: Option<Asked>,
    /// How their process is started, and the process itself if it is already.
    pub(super) ahead: Ahead,
}

/// A process for tools, or how one is started.
#[cfg(target_os = "linux")]
pub(super) use undertext::hands::Ahead;

/// Elsewhere there is no such process.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) struct Ahead;

/// A program that decides for the user.
#[derive(Debug)]
pub(super) struct Asked {
    command: Vec<String>,
    /// Its variables.
    environment: Vec<(OsString, OsString)>,
}

impl Asked {
    /// The program that the settings name, if it is to be asked. It has the variables of the user, but
    /// not the model's key.
    pub(super) fn of(
        settings: &Settings,
        key: Option<&str>,
        process: &Process,
    ) -> Result<Option<Self>, Failure> {
        if !settings
            .policy
            .sandbox
            .reach()
            .is_some_and(|reach| reach.asks)
        {
            return Ok(None);
        }
        let mut command = settings.asked.clone();
        let Some(program) = command.first_mut().filter(|program| !program.is_empty()) else {
            return Err(Failure::usage(
                "sandbox.ask is on-request, but sandbox.ask_command names no program to ask; \
                 name one there",
            ));
        };
        if let (Some(rest), Some(home)) = (
            program.strip_prefix("~/"),
            start::home(&process.environment),
        ) {
            *program = home.join(rest).to_string_lossy().into_owned();
        }
        if program.contains('/') && !program.starts_with('/') {
            return Err(Failure::usage(format!(
                "sandbox.ask_command: {program} counts from nowhere; give its full path, or its name \
                 alone if it is in PATH"
            )));
        }
        let is_key = |name: &str| {
            name == "OPENAI_API_KEY"
                || key == Some(name)
                || settings.server.api_key_env.as_deref() == Some(name)
        };
        let variables = process.environment.iter().filter(|(name, _)| !is_key(name));
        let environment = variables.map(|(name, value)| (name.into(), value.into()));
        Ok(Some(Self {
            command,
            environment: environment.collect(),
        }))
    }
}

/// Hands within the bounds that a sandbox means, and what a person should know of them.
pub(super) async fn hands(
    sandbox: &Sandbox,
    site: Site,
    process: &Process,
) -> Result<(Hands, String), Failure> {
    let Some(reach) = sandbox.reach() else {
        return Ok((free(site).await?, OFF.to_owned()));
    };
    let (bounds, around) = bounds(sandbox, &site, process)?;
    check_written(&bounds, &site)?;
    #[cfg(target_os = "linux")]
    if matches!(reach.network, Network::Hosts(_)) || reach.asks {
        upstream(process).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let (hands, enforced, _) = confined(bounds, &around, site, process).await?;
    let how = match enforced.mechanism {
        Mechanism::Namespaces => "",
        Mechanism::Landlock => {
            ", by Landlock alone (`undertext doctor` says what that leaves open)"
        }
    };
    let mut remark = format!("sandbox: {}{how}; {}", sandbox.word(), network(reach));
    for told in &enforced.told {
        remark.push_str("; ");
        remark.push_str(told);
    }
    Ok((hands, remark))
}

/// Hands that nothing holds, in a process of their own: what tools have started ends with this one, however
/// that ends.
#[cfg(target_os = "linux")]
async fn free(site: Site) -> Result<Hands, Failure> {
    // They are of the same user: unless that is root they may not read the key here.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(std::io::Error::from)?;
    let hands = Hands::free(site.workspace, site.tools, site.ahead).await;
    hands.map_err(|error| {
        let advice = of_confined(&error).filter(|advice| *advice != WITHOUT);
        let failure = Failure::new(Exit::Unfinished, error);
        match advice {
            Some(advice) => failure.advised(advice),
            None => failure,
        }
    })
}

/// Elsewhere there is no such process: tools run in this one.
#[cfg(not(target_os = "linux"))]
async fn free(site: Site) -> Result<Hands, Failure> {
    Ok(Hands::in_process_with(site.workspace, site.tools))
}

/// What this machine enforces of a sandbox, tried in a workspace of its own; why not, if it cannot.
pub(super) async fn tried(
    sandbox: &Sandbox,
    process: &Process,
) -> Result<(Enforced, Bounds), Unheld> {
    let failed =
        |error: &dyn std::error::Error| Unheld::new(error.to_string(), Some(advice::TEMPORARY));
    let directory = tempfile::tempdir().map_err(|error| failed(&error))?;
    let workspace = Workspace::open(directory.path(), None, Vec::new());
    let workspace = workspace.map_err(|error| failed(&error))?;
    let site = Site {
        workspace,
        tools: Vec::new(),
        ours: Vec::new(),
        above: Vec::new(),
        asked: None,
        ahead: later(process),
    };
    let (bounds, around) = bounds(sandbox, &site, process)?;
    let (hands, enforced, bounds) = confined(bounds, &around, site, process).await?;
    hands.close().await;
    Ok((enforced, bounds))
}

/// What is said of the network.
pub(super) fn network(reach: &Reach) -> String {
    let network = match &reach.network {
        Network::None => "no network (--network=open allows it)".to_owned(),
        Network::Open => "with your network".to_owned(),
        Network::Hosts(hosts) => format!("network: {}", hosts.join(", ")),
    };
    let asks = if reach.asks {
        "; sandbox.ask_command is asked for more"
    } else {
        ""
    };
    network + asks
}

/// What tools may reach at a site, and what is around it. The whole machine and the whole home directory are
/// not let to be written, as no run is let to work there.
fn bounds(sandbox: &Sandbox, site: &Site, process: &Process) -> Result<(Bounds, Home), Unheld> {
    let environment = &process.environment;
    let settings = config::own_file(environment);
    let settings = settings.iter().filter_map(|file| file.parent());
    let path = environment
        .get("PATH")
        .map(String::as_str)
        .unwrap_or_default();
    let ours = site.ours.iter().cloned();
    let ours = ours.chain(config::state_dir(environment));
    let around = Home {
        directory: start::home(environment),
        programs: std::env::split_paths(path)
            .filter(|path| path.is_absolute())
            .collect(),
        ours: ours.chain(settings.map(Path::to_owned)).collect(),
    };
    let roots: Vec<PathBuf> = site.workspace.roots().map(Path::to_owned).collect();
    let bounds = Bounds::of(sandbox, &roots, &around)
        .ok_or_else(|| Unheld::new("there are no bounds", None))?;
    for path in bounds.written_outside() {
        let real = outputs::real(path);
        let what = if real.parent().is_none() {
            "is the whole file system"
        } else if start::holds_home(&real, process) {
            "holds your whole home directory"
        } else {
            continue;
        };
        return Err(Unheld {
            exit: Exit::Usage,
            why: format!(
                "sandbox.write: {} {what}; name those directories in it that tools are to write",
                path.display()
            ),
            advice: None,
        });
    }
    Ok((bounds, around))
}

/// Refuses to let tools write what is not there: it would be gone with them.
fn check_written(bounds: &Bounds, site: &Site) -> Result<(), Failure> {
    let roots: Vec<PathBuf> = site.workspace.roots().map(Path::to_owned).collect();
    bounds.missing(&roots).map_or(Ok(()), |path| {
        Err(Failure::usage(format!(
            "sandbox.write: {} is not there; make it first, so that what is written there stays",
            path.display()
        )))
    })
}

#[cfg(target_os = "linux")]
async fn confined(
    bounds: Bounds,
    around: &Home,
    site: Site,
    process: &Process,
) -> Result<(Hands, Enforced, Bounds), Unheld> {
    use undertext::hands::Approval;

    let Site {
        workspace,
        tools,
        above,
        asked,
        ahead,
        ..
    } = site;
    let roots: Vec<PathBuf> = workspace.roots().map(Path::to_owned).collect();
    let real = |path: &PathBuf| path.canonicalize().ok();
    if let Some(ours) = around
        .ours
        .iter()
        .filter_map(real)
        .find(|ours| roots.iter().any(|root| root.starts_with(ours)))
    {
        let why = format!(
            "the workspace lies in {}, which tools may not see: settings, transcripts or logs of \
             undertext are there",
            ours.display()
        );
        return Err(Unheld::new(why, Some("name another workspace with -C")));
    }
    for path in &around.ours {
        hold(path, &bounds).map_err(|error| {
            let why = format!("cannot make {}: {error}", path.display());
            Unheld::new(why, Some("make it, so that it can be kept from tools"))
        })?;
    }
    // Programs of tools may stand beside their descriptions, and skills have files of their own.
    let settings = config::own_file(&process.environment);
    let beside = settings.iter().filter_map(|file| file.parent());
    let beside = beside.flat_map(|dir| ["tools", "skills"].map(|name| dir.join(name)));
    let bounds = beside
        .filter(|path| path.is_dir())
        .fold(bounds, Bounds::reading)
        .seeing(above);
    let approval = asked.and_then(|asked| {
        let mut words = asked.command.into_iter();
        let program = PathBuf::from(words.next()?);
        let arguments = words.map(OsString::from).collect();
        Some(Approval::command(program, arguments, asked.environment))
    });
    let held = bounds.clone();
    let hands = match approval {
        Some(by) => Hands::confined_asking(workspace, tools, bounds, ahead, by).await,
        None => Hands::confined(workspace, tools, bounds, ahead).await,
    };
    hands
        .map(|(hands, enforced)| (hands, enforced, held))
        .map_err(|error| {
            let advice = of_confined(&error);
            Unheld::new(format!("{:#}", anyhow::Error::new(error)), advice)
        })
}

/// What the user can do about it: to run without a sandbox comes last, and only where it is what helps.
#[cfg(target_os = "linux")]
fn of_confined(error: &undertext::hands::ConfinedError) -> Option<&'static str> {
    use undertext::hands::ConfinedError;

    match error {
        ConfinedError::Start(_) => {
            Some("see whether `ulimit -u` and `ulimit -n` leave room for one process more")
        }
        ConfinedError::Directory { .. } => Some(advice::TEMPORARY),
        ConfinedError::Refused(_) => Some(
            "mend what is named there; if that cannot be, --sandbox off runs tools with your own \
             rights",
        ),
        ConfinedError::Without(_) | ConfinedError::Stranger => Some(WITHOUT),
        // They say it themselves.
        ConfinedError::Hosts | ConfinedError::LedAway { .. } => None,
    }
}

/// The process for tools, started before it is known what it may do.
#[cfg(target_os = "linux")]
pub(super) fn ahead(process: &Process) -> Ahead {
    launch(process).ahead()
}

/// The same, started when it is needed.
#[cfg(target_os = "linux")]
pub(super) fn later(process: &Process) -> Ahead {
    launch(process).into()
}

/// Elsewhere there is no such process.
#[cfg(not(target_os = "linux"))]
pub(super) fn ahead(_: &Process) -> Ahead {
    Ahead
}

/// Elsewhere there is no such process.
#[cfg(not(target_os = "linux"))]
pub(super) fn later(_: &Process) -> Ahead {
    Ahead
}

/// How the process for tools is started.
#[cfg(target_os = "linux")]
fn launch(process: &Process) -> Launch {
    let temporary = process.environment.get("TMPDIR");
    Launch {
        program: "/proc/self/exe".into(),
        arguments: vec![crate::cli::hands::NAME.into()],
        temporary: temporary
            .filter(|path| Path::new(path).is_absolute())
            .map_or_else(|| "/tmp".into(), PathBuf::from),
        upstream: upstream(process).unwrap_or_default(),
    }
}

/// The proxies of the user's own network.
#[cfg(target_os = "linux")]
fn upstream(
    process: &Process,
) -> Result<Option<undertext::hands::Upstream>, undertext::hands::UpstreamError> {
    undertext::hands::Upstream::of(|name| process.environment.get(name).cloned())
}

/// Makes a directory of ours that is not there yet, if tools could: then it can be kept from them.
#[cfg(target_os = "linux")]
fn hold(path: &Path, bounds: &Bounds) -> std::io::Result<()> {
    let path = outputs::real(path);
    if path.exists() || !bounds.writes(&path) {
        return Ok(());
    }
    undertext::record::make_directory(&path)
}

#[cfg(not(target_os = "linux"))]
async fn confined(
    _: Bounds,
    _: &Home,
    _: Site,
    _: &Process,
) -> Result<(Hands, Enforced, Bounds), Unheld> {
    Err(Unheld::new("there is none for this system", Some(WITHOUT)))
}
