//! The hands of a run: confined as the settings say, or held by nothing.

use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::process::DumpableBehavior;
use undertext::config::{self, Settings};
#[cfg(target_os = "linux")]
use undertext::hands::Launch;
use undertext::hands::{External, Hands, Workspace};
use undertext::sandbox::{Bounds, Enforced, Home, Mechanism};
use undertext::setup::{Network, Reach, Sandbox};

use crate::cli::asked::Asked;
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

    /// Settings mean something else than can be had.
    pub(super) fn usage(why: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            why: why.into(),
            advice: None,
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

/// Hands within the bounds that a sandbox means, and what a person should know of them.
pub(super) async fn hands(
    sandbox: &Sandbox,
    site: Site,
    process: &Process,
) -> Result<(Hands, String), Failure> {
    let Some(reach) = sandbox.reach() else {
        return Ok((free(site).await?, OFF.to_owned()));
    };
    let (bounds, around) = bounds(sandbox, &site.workspace, &site.ours, process)?;
    check(
        &bounds,
        &site.workspace,
        (reach, site.asked.as_ref()),
        process,
    )?;
    let (hands, enforced) = confined(bounds, &around, site, process).await?;
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

/// What this machine enforces of the sandbox of these settings, tried in a workspace of its own; why not,
/// if it cannot, or if no run that begins here could mean it.
pub(super) async fn tried(
    settings: &Settings,
    process: &Process,
) -> Result<(Enforced, Bounds), Unheld> {
    let sandbox = &settings.policy.sandbox;
    let failed =
        |error: &dyn std::error::Error| Unheld::new(error.to_string(), Some(advice::TEMPORARY));
    let directory = tempfile::tempdir().map_err(|error| failed(&error))?;
    let workspace = Workspace::open(directory.path(), None, Vec::new());
    let workspace = workspace.map_err(|error| failed(&error))?;
    let asked = Asked::of(settings, None, process)?;
    let here = process.here(Path::new(""));
    let home = start::home(&process.environment);
    // Where no run can begin, what counts from its workspace counts from the one of its own.
    let here = Workspace::open(&here, home.as_deref(), Vec::new());
    let here = here.as_ref().unwrap_or(&workspace);
    let (meant, _) = bounds(sandbox, here, &[], process)?;
    if let Some(reach) = sandbox.reach() {
        check(&meant, here, (reach, asked.as_ref()), process)?;
    }
    let meant = beside(meant, process);
    let sandbox = from(here.root(), sandbox);
    let site = Site {
        workspace,
        tools: Vec::new(),
        ours: Vec::new(),
        above: Vec::new(),
        asked,
        ahead: later(process),
    };
    let (bounds, around) = bounds(&sandbox, &site.workspace, &site.ours, process)?;
    let (hands, enforced) = confined(bounds, &around, site, process).await?;
    hands.close().await;
    Ok((enforced, meant))
}

/// The same sandbox in another workspace: what counts from this one is named in full.
fn from(root: &Path, sandbox: &Sandbox) -> Sandbox {
    let mut sandbox = sandbox.clone();
    if let Sandbox::Workspace(reach) | Sandbox::ReadOnly(reach) = &mut sandbox {
        for path in reach.read.iter_mut().chain(&mut reach.write) {
            if path != "~" && !path.starts_with("~/") {
                *path = root.join(&*path).to_string_lossy().into_owned();
            }
        }
    }
    sandbox
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

/// What tools may reach in a workspace, from which these places of ours are kept, and what is around it.
fn bounds(
    sandbox: &Sandbox,
    workspace: &Workspace,
    ours: &[PathBuf],
    process: &Process,
) -> Result<(Bounds, Home), Unheld> {
    let environment = &process.environment;
    let settings = config::own_file(environment);
    let settings = settings.iter().filter_map(|file| file.parent());
    let path = environment
        .get("PATH")
        .map(String::as_str)
        .unwrap_or_default();
    let ours = ours.iter().cloned();
    let ours = ours.chain(config::state_dir(environment));
    let around = Home {
        directory: start::home(environment),
        programs: std::env::split_paths(path)
            .filter(|path| path.is_absolute())
            .collect(),
        ours: ours.chain(settings.map(Path::to_owned)).collect(),
    };
    let roots: Vec<PathBuf> = workspace.roots().map(Path::to_owned).collect();
    let bounds = Bounds::of(sandbox, &roots, &around)
        .ok_or_else(|| Unheld::new("there are no bounds", None))?;
    Ok((bounds, around))
}

/// Refuses what nobody means, or what cannot be had in a workspace with such settings.
#[cfg(target_os = "linux")]
fn check(
    bounds: &Bounds,
    workspace: &Workspace,
    (reach, asked): (&Reach, Option<&Asked>),
    process: &Process,
) -> Result<(), Unheld> {
    check_wide(bounds, process)?;
    let roots: Vec<PathBuf> = workspace.roots().map(Path::to_owned).collect();
    check_written(bounds, &roots)?;
    if let Some(asked) = asked {
        asked.check(bounds)?;
    }
    if matches!(reach.network, Network::Hosts(_)) || reach.asks {
        upstream(process).map_err(|error| Unheld::usage(error.to_string()))?;
    }
    Ok(())
}

/// Elsewhere there is no sandbox, which is told before all else.
#[cfg(not(target_os = "linux"))]
fn check(
    _: &Bounds,
    _: &Workspace,
    _: (&Reach, Option<&Asked>),
    _: &Process,
) -> Result<(), Unheld> {
    Ok(())
}

/// Refuses to let tools write the whole machine or the whole home directory, as it refuses to let them
/// work there.
#[cfg(target_os = "linux")]
fn check_wide(bounds: &Bounds, process: &Process) -> Result<(), Unheld> {
    for path in bounds.written_outside() {
        let real = outputs::real(path);
        let what = if real.parent().is_none() {
            "is the whole file system"
        } else if start::holds_home(&real, process) {
            "holds your whole home directory"
        } else {
            continue;
        };
        return Err(Unheld::usage(format!(
            "sandbox.write: {} {what}; name those directories in it that tools are to write",
            path.display()
        )));
    }
    Ok(())
}

/// Refuses to let tools write what is not there: it would be gone with them.
#[cfg(target_os = "linux")]
fn check_written(bounds: &Bounds, roots: &[PathBuf]) -> Result<(), Unheld> {
    bounds.missing(roots).map_or(Ok(()), |path| {
        Err(Unheld::usage(format!(
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
) -> Result<(Hands, Enforced), Unheld> {
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
    let bounds = beside(bounds, process).seeing(above);
    let approval = asked.map(|asked| asked.approval(&bounds));
    let hands = match approval {
        Some(by) => Hands::confined_asking(workspace, tools, bounds, ahead, by).await,
        None => Hands::confined(workspace, tools, bounds, ahead).await,
    };
    hands.map_err(|error| {
        let advice = of_confined(&error);
        Unheld::new(format!("{:#}", anyhow::Error::new(error)), advice)
    })
}

/// The same bounds, within which of your settings these may be read: programs of tools may stand beside their
/// descriptions, and skills have files of their own.
fn beside(bounds: Bounds, process: &Process) -> Bounds {
    let settings = config::own_file(&process.environment);
    let beside = settings.iter().filter_map(|file| file.parent());
    let beside = beside.flat_map(|dir| ["tools", "skills"].map(|name| dir.join(name)));
    let there = beside.filter(|path| path.is_dir());
    there.fold(bounds, Bounds::reading)
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
async fn confined(_: Bounds, _: &Home, _: Site, _: &Process) -> Result<(Hands, Enforced), Unheld> {
    Err(Unheld::new("there is none for this system", Some(WITHOUT)))
}
