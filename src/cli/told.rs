//! What a run is told before its task, as settings and flags want it.

use std::path::{Path, PathBuf};

use undertext::config::{self, Settings};
use undertext::hands::{Hands, LookError};
use undertext::instructions::{self, Instructions, Sources, Wanted};
use undertext::tools::Skill;

use crate::cli::exit::{Exit, Failure};
use crate::cli::{Process, planted, start};

/// What of the project around a workspace is read.
pub(super) fn wanted(
    settings: &Settings,
    with_skills: bool,
    workspace: &Path,
    process: &Process,
) -> Wanted {
    let home = start::home(&process.environment);
    let notes = settings.instructions.agents_md;
    Wanted::of(workspace, home.as_deref(), notes, with_skills)
}

/// The system text for a run with these hands, and the skills if it wants them. The project's own words
/// are read by the hands, the user's here.
pub(super) async fn told(
    settings: &Settings,
    wanted: &Wanted,
    hands: &Hands,
    process: &Process,
) -> Result<Instructions, Failure> {
    let home = start::home(&process.environment);
    let own_skills = own_skills(process);
    let said = &settings.instructions;
    let text = said.file.as_deref().map(|file| {
        let path = placed(file, home.as_deref(), process);
        let what = format!("the instructions {}", file.display());
        planted::check(&path, &what, hands.root(), process)?;
        instructions::read(&path).map_err(|error| Failure::new(Exit::Usage, error))
    });
    let text = text.transpose()?;
    let sources = Sources {
        workspace: hands.root(),
        home: home.as_deref(),
        own_skills: own_skills.as_deref(),
        skills: wanted.skills,
        text: text.as_deref(),
        append: said.append.as_deref(),
        agents_md: wanted.notes,
    };
    let project = hands.project(wanted).await.map_err(unseen)?;
    Ok(Instructions::with(&sources, project))
}

/// The skills that these hands see in their workspace, and those in the user's own folder.
pub(super) async fn skills(own: Option<&Path>, hands: &Hands) -> Result<Vec<Skill>, Failure> {
    let sources = Sources {
        own_skills: own,
        skills: true,
        ..Sources::of(hands.root())
    };
    let project = hands.project(&sources.of_project()).await.map_err(unseen)?;
    Ok(Instructions::with(&sources, project).skills)
}

/// The skills of a workspace that is only looked at, by nobody with a key.
pub(super) fn skills_here(workspace: &Path, process: &Process) -> Vec<Skill> {
    let found = Instructions::find(&Sources {
        home: start::home(&process.environment).as_deref(),
        own_skills: own_skills(process).as_deref(),
        skills: true,
        ..Sources::of(workspace)
    });
    found.skills
}

fn unseen(error: LookError) -> Failure {
    Failure::new(Exit::Unfinished, error)
}

/// The user's own folder of skills.
pub(super) fn own_skills(process: &Process) -> Option<PathBuf> {
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
