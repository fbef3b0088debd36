//! Where a run is played again: a fresh workspace, never the run's own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use undertext::hands::{self, Workspace};
use undertext::model::offline;
use undertext::rerun::{self, Copied, Recording};
use undertext::transcript::Run;

use crate::cli::demo::{self, Site, Where};
use crate::cli::exit::{Exit, Failure};
use crate::cli::{Process, advice, start};

/// A fresh workspace, and what it was made from.
pub(super) struct Fresh {
    holder: Holder,
    pub(super) workspace: Workspace,
    pub(super) from: From,
}

/// What is removed when it is over.
enum Holder {
    Copy(TempDir),
    Demo(Box<Site>),
}

/// What a fresh workspace was made from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum From {
    /// The project of the demo with this seed, laid out anew.
    Demo {
        /// The seed.
        seed: u64,
    },
    /// A copy of the directory that was named.
    Named {
        /// The directory.
        path: PathBuf,
    },
    /// A copy of the run's own workspace, as it is now.
    Recorded {
        /// The directory.
        path: PathBuf,
    },
}

impl Fresh {
    /// Makes a workspace for a run: from the directory that was named, or from what the run tells.
    pub(super) async fn make(
        named: Option<&Path>,
        run: &Run,
        recording: &Recording,
        process: &Process,
        cancel: &CancellationToken,
    ) -> Result<Self, Failure> {
        let environment = &process.environment;
        if let (None, Some(seed)) = (named, demo_seed(run, recording)) {
            let site = Site::new(seed, Where::Anew, environment).await;
            let site = site.map_err(|error| Failure::new(Exit::Unfinished, error))?;
            return Ok(Self {
                workspace: site.workspace().clone(),
                holder: Holder::Demo(Box::new(site)),
                from: From::Demo { seed },
            });
        }
        let (path, from): (PathBuf, fn(PathBuf) -> From) = match named {
            Some(named) => (start::workspace(Some(named), process)?, |path| {
                From::Named { path }
            }),
            None => (recorded(run, process)?, |path| From::Recorded { path }),
        };
        let directory = tempfile::Builder::new()
            .prefix("undertext-replay-")
            .tempdir()
            .map_err(|error| {
                unfinished(error, "cannot make a workspace").advised(advice::TEMPORARY)
            })?;
        // Named as the recorded one, for whoever prints no more than that.
        let name = Path::new(&run.workspace).file_name();
        let target = directory
            .path()
            .join(name.unwrap_or(OsStr::new("workspace")));
        let copied = copied(path.clone(), target.clone(), cancel.clone()).await?;
        let variables = environment.iter();
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let home = start::home(environment);
        let workspace = Workspace::open(&target, home.as_deref(), hands::allowed(variables, &[]));
        let workspace = workspace.map_err(|error| Failure::new(Exit::Unfinished, error))?;
        tracing::info!(
            files = copied.files,
            bytes = copied.bytes,
            "workspace copied"
        );
        Ok(Self {
            holder: Holder::Copy(directory),
            workspace,
            from: from(path),
        })
    }

    /// Whether skills and tools of this machine were there when it was recorded.
    pub(super) fn is_demo(&self) -> bool {
        matches!(self.holder, Holder::Demo(_))
    }

    /// Leaves it where it is.
    pub(super) fn keep(self) {
        match self.holder {
            Holder::Copy(directory) => drop(directory.keep()),
            Holder::Demo(site) => drop(site.keep()),
        }
    }
}

impl From {
    /// What it is in words.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Demo { seed } => format!("the project of demo {seed}, laid out anew"),
            Self::Named { path } => format!("a copy of {}", path.display()),
            Self::Recorded { path } => format!(
                "a copy of {} as it is now; --workspace names another",
                path.display()
            ),
        }
    }
}

/// The seed of a run that is a demo: its name, its model and the name of its directory say so.
fn demo_seed(run: &Run, recording: &Recording) -> Option<u64> {
    let seed = run.name.as_deref()?.strip_prefix("demo ")?.parse().ok()?;
    let model = &recording.parts().first()?.setup.wire.models.main;
    let name = Path::new(&run.workspace).file_name()?.to_str()?;
    (model.name == offline::NAME && name.starts_with(demo::DIRECTORY)).then_some(seed)
}

/// The workspace in which the run was recorded, if it is still there.
fn recorded(run: &Run, process: &Process) -> Result<PathBuf, Failure> {
    let path = Path::new(&run.workspace);
    if !path.is_absolute() || !path.is_dir() {
        return Err(Failure::usage(format!(
            "the run's workspace {} is not here; --workspace names a directory to begin with a \
             copy of",
            path.display()
        )));
    }
    start::workspace(Some(path), process)
}

/// Copies a directory beside what else goes on.
async fn copied(from: PathBuf, to: PathBuf, cancel: CancellationToken) -> Result<Copied, Failure> {
    let copy = move || rerun::copy(&from, &to, || cancel.is_cancelled());
    let copied = tokio::task::spawn_blocking(copy).await;
    let copied = copied.map_err(|error| unfinished(error, "cannot copy the workspace"))?;
    let copied = copied.map_err(|error| Failure::new(Exit::Unfinished, error))?;
    Ok(copied)
}

fn unfinished(error: impl Into<anyhow::Error>, what: &'static str) -> Failure {
    Failure::new(Exit::Unfinished, error.into().context(what))
}
