//! What a run is told before its task, as settings and flags want it.

use std::path::{Path, PathBuf};

use undertext::config::{self, Settings};
use undertext::instructions::{self, Instructions, Sources};
use undertext::tools::Skill;

use crate::cli::exit::{Exit, Failure};
use crate::cli::{Process, start};

/// The system text for a run in this workspace, and the skills if it wants them.
pub(super) fn told(
    settings: &Settings,
    with_skills: bool,
    workspace: &Path,
    process: &Process,
) -> Result<Instructions, Failure> {
    let home = start::home(&process.environment);
    let own_skills = own_skills(process);
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
        skills: with_skills,
        text: text.as_deref(),
        append: wanted.append.as_deref(),
        agents_md: wanted.agents_md,
    }))
}

/// The skills for a run in this workspace.
pub(super) fn skills(workspace: &Path, process: &Process) -> Vec<Skill> {
    let found = Instructions::find(&Sources {
        workspace,
        home: start::home(&process.environment).as_deref(),
        own_skills: own_skills(process).as_deref(),
        skills: true,
        text: None,
        append: None,
        agents_md: false,
    });
    found.skills
}

fn own_skills(process: &Process) -> Option<PathBuf> {
    let own = config::own_file(&process.environment)?;
    Some(own.with_file_name("skills"))
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
