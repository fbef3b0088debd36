//! Where the tools of a run act, and what of ours lies in their way.

use std::path::{Path, PathBuf};

use undertext::hands::{self, Workspace, WorkspaceError};
use undertext::record::runs;
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

/// Whether tools may have put files beside a transcript: in the workspace in which it began, whatever holds
/// them now, or where they may write in the one that was named.
pub(super) fn tools_wrote_beside(path: &Path, start: &Start, process: &Process) -> bool {
    let Ok(real) = path.canonicalize() else {
        return false;
    };
    // In a directory of transcripts they write nothing, wherever it is.
    let ours = vec![outputs::real(&process.here(&start.transcripts))];
    if ours.iter().any(|ours| real.starts_with(ours)) {
        return false;
    }
    let roots = |workspace: &Path| -> Vec<PathBuf> {
        let workspace = of(workspace, start, process);
        workspace.map_or_else(
            |_| Vec::new(),
            |it| it.roots().map(Path::to_owned).collect(),
        )
    };
    let own = runs::begun(path).map(|run| roots(Path::new(&run.workspace)));
    let own = own.unwrap_or_default();
    if own.iter().any(|root| real.starts_with(root)) {
        return true;
    }
    let roots = start.workspace.as_deref().map_or(own, roots);
    let around = Home {
        directory: start::home(&process.environment),
        ours,
        ..Home::default()
    };
    let bounds = Bounds::of(&start.settings.policy.sandbox, &roots, &around);
    !roots.is_empty() && bounds.is_some_and(|bounds| bounds.writes(&real))
}
