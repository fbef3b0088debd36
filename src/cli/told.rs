//! What a run is told before its task, as settings and flags want it.

use std::path::{Path, PathBuf};

use undertext::config::{self, Settings};
use undertext::instructions::{self, Instructions, Sources};

use crate::cli::exit::{Exit, Failure};
use crate::cli::{Process, start};

/// The system text and the skills for a run in this workspace.
pub(super) fn told(
    settings: &Settings,
    workspace: &Path,
    process: &Process,
) -> Result<Instructions, Failure> {
    let home = start::home(&process.environment);
    let own = config::own_file(&process.environment);
    let own_skills = own.map(|file| file.with_file_name("skills"));
    let wanted = &settings.instructions;
    let text = wanted.file.as_deref().map(|file| {
        let path = placed(file, home.as_deref(), process);
        instructions::read(&path).map_err(|error| Failure::new(Exit::Usage, error))
    });
    let text = text.transpose()?;
    Ok(Instructions::find(&Sources {
        workspace,
        home: home.as_deref(),
        own_skills: own_skills.as_deref(),
        skills: settings.tool("LoadSkill").enabled != Some(false),
        text: text.as_deref(),
        append: wanted.append.as_deref(),
        agents_md: wanted.agents_md,
    }))
}

/// The path with `~` and from the current directory.
fn placed(file: &Path, home: Option<&Path>, process: &Process) -> PathBuf {
    if let (Ok(rest), Some(home)) = (file.strip_prefix("~"), home) {
        return home.join(rest);
    }
    match &process.directory {
        Ok(current) => current.join(file),
        Err(_) => file.to_owned(),
    }
}
