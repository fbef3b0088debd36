//! Where the tools of a run act, and what of ours lies in their way.

use std::path::{Path, PathBuf};

use undertext::config::Settings;
use undertext::hands::{self, Workspace, WorkspaceError};
use undertext::record::{FileError, FileStorage, runs};
use undertext::sandbox::{Bounds, Home};

use crate::cli::start::{self, Start};
use crate::cli::{Process, RunArgs, outputs};

/// Where tools and hooks act, and with which variables.
pub(super) fn of(
    workspace: &Path,
    start: &Start,
    process: &Process,
) -> Result<Workspace, WorkspaceError> {
    let variables = process.environment.iter();
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let environment = hands::allowed(variables, &start.environment);
    let home = start::home(&process.environment);
    Workspace::open(workspace, home.as_deref(), environment)
}

/// What is ours and not for tools to see.
pub(super) fn ours(args: &RunArgs, start: &Start, process: &Process) -> Vec<PathBuf> {
    let mut ours = vec![process.here(&start.transcripts)];
    ours.extend(args.settings.config.iter().map(|file| process.here(file)));
    ours.extend(args.logs.path(process));
    ours.extend(named(args, process));
    ours
}

/// The transcript that was named by its path, and its blobs: they may lie where tools write.
pub(super) fn named(args: &RunArgs, process: &Process) -> Vec<PathBuf> {
    let named = args.resume.as_deref().map(Path::new);
    let is_path = |path: &&Path| path.extension().is_some_and(|end| end == "jsonl");
    let path = named.filter(is_path).map(|path| process.here(path));
    let paths = path.map(|path| [path.with_extension("blobs"), path]);
    paths.into_iter().flatten().collect()
}

/// A transcript that is taken up, and what is known of who wrote around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside<'a> {
    /// The settings of whoever takes it up.
    pub(super) settings: &'a Settings,
    /// Their directory of transcripts.
    pub(super) transcripts: &'a Path,
    /// The workspace that was named, if any was.
    pub(super) workspace: Option<&'a Path>,
}

impl Beside<'_> {
    /// Opens the transcript at this path to go on with it: without an index where tools may have put one,
    /// since it would be believed.
    pub(super) fn open(&self, path: &Path, process: &Process) -> Result<FileStorage, FileError> {
        let storage = self.settings.transcripts.open(path)?;
        Ok(if self.tools_wrote(path, process) {
            storage.indexed_from(None)
        } else {
            storage
        })
    }

    /// Whether tools may have put files beside a transcript: in the workspace in which it began, whatever
    /// holds them now, or where they may write in the one that was named.
    fn tools_wrote(&self, path: &Path, process: &Process) -> bool {
        let Ok(real) = path.canonicalize() else {
            return false;
        };
        // In a directory of transcripts they write nothing, wherever it is.
        let ours = vec![outputs::real(&process.here(self.transcripts))];
        if ours.iter().any(|ours| real.starts_with(ours)) {
            return false;
        }
        let home = start::home(&process.environment);
        let roots = |workspace: &Path| -> Option<Vec<PathBuf>> {
            let workspace = Workspace::open(workspace, home.as_deref(), Vec::new());
            Some(workspace.ok()?.roots().map(Path::to_owned).collect())
        };
        // Of what cannot be looked at any more nobody knows what was written there.
        let Some(own) = runs::begun(path).and_then(|run| roots(Path::new(&run.workspace))) else {
            return true;
        };
        if own.iter().any(|root| real.starts_with(root)) {
            return true;
        }
        let Some(roots) = self.workspace.map_or(Some(own), roots) else {
            return true;
        };
        let around = Home {
            directory: home.clone(),
            ours,
            ..Home::default()
        };
        let bounds = Bounds::of(&self.settings.policy.sandbox, &roots, &around);
        bounds.is_some_and(|bounds| bounds.writes(&real))
    }
}
