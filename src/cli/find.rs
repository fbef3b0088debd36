//! Finding the run that a command is about, and reading it, damaged or not.

use std::path::{Path, PathBuf};

use undertext::config::{self, Sections};
use undertext::record::runs::{self, Loaded};
use undertext::transcript::FORMAT;

use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, SettingArgs, amount};

/// The word for the newest run of this workspace.
pub(crate) const LAST: &str = "last";

/// A run that was read, and where.
pub(crate) struct Found {
    /// Its transcript.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) loaded: Loaded,
}

/// The directory of the transcripts.
pub(crate) fn directory(args: &SettingArgs, process: &Process) -> Result<PathBuf, Failure> {
    let sources = args.sources(&process.environment, Sections::default());
    Ok(config::load(&sources)?.transcripts_dir(&process.environment)?)
}

/// Finds the run that a text names and reads it; says what is wrong with it.
pub(crate) fn read(
    text: &str,
    args: &SettingArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Found, Failure> {
    let path = path(text, &directory(args, process)?, process)?;
    let loaded = runs::read(&path)?;
    if loaded.view.transcript().last().is_none() {
        let text = format!("{} holds no run", path.display());
        return Err(Failure::new(Exit::Transcript, anyhow::Error::msg(text)));
    }
    let mut warn = |text: String| term.say(&[(Look::Bad, "warning: "), (Look::Plain, &text)]);
    if let Some(format) = loaded.newer() {
        let path = path.display();
        warn(format!(
            "{path} has format {format}, this version knows formats up to {FORMAT}; \
             what is shown may be wrong"
        ))?;
    } else if loaded.run().is_none() {
        warn(format!("{} does not begin with a run", path.display()))?;
    }
    for damage in &loaded.damage {
        warn(format!("{} is damaged: {damage}", path.display()))?;
    }
    if let Some(torn) = loaded.torn {
        warn(format!(
            "{} does not end with an entry: its last {} are left out",
            path.display(),
            amount::of(torn.bytes, "byte")
        ))?;
    }
    Ok(Found { path, loaded })
}

/// The transcript that a text names; `last` is the newest run of this workspace.
pub(crate) fn path(text: &str, dir: &Path, process: &Process) -> Result<PathBuf, Failure> {
    if text != LAST {
        return Ok(runs::find(dir, text)?);
    }
    let current = process.directory.as_ref().ok();
    let Some(workspace) = current.and_then(|current| current.canonicalize().ok()) else {
        return Err(Failure::usage("the current directory is gone; name a run"));
    };
    newest(dir, &workspace)
}

/// The transcript of the newest run of a workspace.
pub(crate) fn newest(dir: &Path, workspace: &Path) -> Result<PathBuf, Failure> {
    match runs::newest(dir, &workspace.to_string_lossy())? {
        Some(run) => Ok(run.path),
        None => Err(Failure::usage(format!(
            "no run of {} in {}; `undertext list` shows all runs",
            workspace.display(),
            dir.display()
        ))),
    }
}
