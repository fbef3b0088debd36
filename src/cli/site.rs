//! Where the tools of a run act, and what of ours lies in their way.

use std::path::{Path, PathBuf};

use undertext::config::Settings;
use undertext::hands::{self, Workspace, WorkspaceError};
use undertext::record::{FileError, FileStorage};

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

/// Opens the transcript at this path to go on with it. It has an index only in the directory of transcripts,
/// in which tools write nothing: elsewhere they may have laid one, which would be believed.
pub(super) fn opened(
    path: &Path,
    settings: &Settings,
    transcripts: &Path,
    process: &Process,
) -> Result<FileStorage, FileError> {
    let storage = settings.transcripts.open(path)?;
    let directory = outputs::real(&process.here(transcripts));
    let is_ours = path
        .canonicalize()
        .is_ok_and(|path| path.starts_with(directory));
    Ok(if is_ours {
        storage
    } else {
        storage.indexed_from(None)
    })
}
