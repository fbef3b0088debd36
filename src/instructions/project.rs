//! What a project has to say to agents, read where its files may be looked at.
//!
//! Which directories belong to the project is told from names and owners alone ([`Wanted::of`]); its
//! files are opened by [`Project::read`], which a confined process does for a run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::instructions::{agents, skills};
use crate::tools::Skill;

/// What is asked of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The root of the project: the workspace, or a directory above it.
    pub root: PathBuf,
    /// Whether its notes for agents are read.
    pub notes: bool,
    /// Whether its skills are.
    pub skills: bool,
}

/// What a project says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Project {
    /// Its notes as they stand in the system text; empty if there are none.
    pub(super) notes: String,
    /// Its folders of skills, as they can be named, and what each of them is.
    pub(super) skills: Vec<(String, Result<Skill, String>)>,
    /// What the user should know of its notes.
    pub(super) remarks: Vec<String>,
    /// What the user should know of its skills.
    pub(super) said: Vec<String>,
}

impl Wanted {
    /// What is asked of the project around a workspace. Nothing of it is opened for that.
    pub fn of(workspace: &Path, home: Option<&Path>, notes: bool, skills: bool) -> Self {
        Self {
            root: agents::root(workspace, home),
            notes,
            skills,
        }
    }

    /// The files above the workspace that a run reads, and what they lead to: notes, and what
    /// version control ignores. None leads out of the project.
    pub fn above(&self, workspace: &Path) -> Vec<PathBuf> {
        let above = workspace.ancestors().skip(1);
        let above = above.take_while(|directory| directory.starts_with(&self.root));
        let files = above
            .flat_map(|directory| [agents::NAME, ".gitignore"].map(|name| directory.join(name)));
        let inside = |path: PathBuf| {
            let real = path.canonicalize().ok()?;
            let inside = agents::is_of(&self.root, &real) && real.is_file();
            inside.then_some([path, real])
        };
        let mut found: Vec<PathBuf> = files.filter_map(inside).flatten().collect();
        found.dedup();
        found
    }
}

impl Project {
    /// Reads what is wanted of the project around a workspace.
    pub fn read(workspace: &Path, wanted: &Wanted) -> Self {
        let mut project = Self::default();
        if wanted.notes {
            project.notes = agents::find(workspace, &wanted.root, &mut project.remarks);
        }
        if wanted.skills {
            project.skills = skills::of_project(workspace, &mut project.said);
        }
        project
    }
}
