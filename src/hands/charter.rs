//! What a confined process is told first, and what it answers to that.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::hands::left::Remains;
use crate::hands::{External, Workspace};
use crate::sandbox::{Bounds, Enforced, Walls, os_paths};

/// What lets programs that fetch packages fail at once where there is no network, instead of trying
/// again for minutes.
const AT_ONCE: [(&str, &str); 4] = [
    ("CARGO_NET_RETRY", "0"),
    ("PIP_RETRIES", "0"),
    ("UV_HTTP_RETRIES", "0"),
    ("npm_config_fetch_retries", "0"),
];

/// What a confined process does, and within which bounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Charter {
    /// What may be reached.
    pub(super) bounds: Bounds,
    /// The directories below which file tools act; the workspace is the first.
    #[serde(with = "os_paths")]
    roots: Vec<PathBuf>,
    /// The variables that tools see.
    environment: Vec<(OsString, OsString)>,
    /// The tools it knows beside the built-in ones.
    pub(super) tools: Vec<External>,
    /// What was there when the first of these processes began; `None` for that one.
    #[serde(default)]
    pub(super) before: Option<Remains>,
}

impl Charter {
    /// The charter of hands in this workspace.
    pub(super) fn new(workspace: &Workspace, tools: Vec<External>, bounds: Bounds) -> Self {
        let mut roots: Vec<PathBuf> = workspace.roots().map(PathBuf::from).collect();
        // What was named to be written is so by file tools as well.
        for path in bounds.unprotected.iter().filter(|path| path.is_dir()) {
            if !roots.iter().any(|root| path.starts_with(root)) {
                roots.push(path.clone());
            }
        }
        let mut environment = workspace.environment().to_vec();
        // Inside it is where it really is: links on the way to it are not there.
        if let Some(home) = bounds.home.as_deref() {
            for (_, value) in environment.iter_mut().filter(|(name, _)| name == "HOME") {
                if PathBuf::from(&*value)
                    .canonicalize()
                    .is_ok_and(|real| real == home)
                {
                    home.as_os_str().clone_into(value);
                }
            }
        }
        Self {
            bounds,
            roots,
            environment,
            tools,
            before: None,
        }
    }

    /// The same, after another process for which this was there before.
    pub(super) fn after(&self, before: Option<&Remains>) -> Self {
        Self {
            before: before.cloned(),
            ..self.clone()
        }
    }

    /// The workspace.
    pub(super) fn root(&self) -> &Path {
        self.roots.first().map_or(Path::new("/"), PathBuf::as_path)
    }

    /// The workspace as it is, for a process that nothing holds.
    pub(super) fn open_workspace(&self) -> Workspace {
        Workspace::unheld(self.roots.clone(), self.environment.clone())
    }

    /// A variable that the user has for tools.
    fn variable(&self, name: &str) -> Option<&OsStr> {
        let mut variables = self.environment.iter();
        let found = variables.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    }

    /// The workspace as it is inside.
    pub(super) fn workspace(
        &self,
        temporary: PathBuf,
        proxy: Option<SocketAddr>,
        walls: &Walls,
    ) -> Workspace {
        let mut environment = self.environment.clone();
        let is_set = |name: &str| self.variable(name).is_some();
        let mut set = |name: &str, value: OsString| {
            environment.retain(|(known, _)| known != name);
            environment.push((name.into(), value));
        };
        set("TMPDIR", temporary.into());
        // Go takes whatever is called so for a repository, and does not build beside an empty one.
        let mut placeholders = walls.enforced.placeholders.iter();
        let keeps_place = placeholders.any(|path| path.ends_with(".git"));
        if keeps_place && !is_set("GOFLAGS") {
            set("GOFLAGS", "-buildvcs=false".into());
        }
        // The directories between are not those of the repository's file system.
        if walls.protected.is_part() {
            set("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1".into());
        }
        let of_proxies = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
        for (name, proxy) in of_proxies
            .into_iter()
            .filter_map(|name| Some((name, proxy?)))
        {
            set(name, format!("http://{proxy}").into());
        }
        if proxy.is_some() {
            for name in ["NO_PROXY", "no_proxy"] {
                set(name, "localhost,127.0.0.1,::1".into());
            }
            // Else node's own `fetch` regards none of them.
            set("NODE_USE_ENV_PROXY", "1".into());
        } else if !self.bounds.open {
            for (name, value) in AT_ONCE.into_iter().filter(|(name, _)| !is_set(name)) {
                set(name, value.into());
            }
        }
        // It would give files to their owners, which nobody can do in here.
        if rustix::process::geteuid().is_root() {
            let mut options = self.variable("TAR_OPTIONS").unwrap_or_default().to_owned();
            options.push(" --no-same-owner");
            set("TAR_OPTIONS", options);
        }
        Workspace::inside(self.roots.clone(), environment, walls.protected.clone())
    }
}

/// What a confined process says first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Opening {
    /// It is within its bounds, and this was there before any tool of it ran.
    Ready(Enforced, Remains),
    /// It cannot be, and ends.
    Refused(String),
    /// Namespaces cannot be had, whatever the bounds are.
    Without(String),
}
