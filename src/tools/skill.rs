//! `LoadSkill`: instructions for one kind of task, which wait until the model asks for them.
//!
//! A [`Skill`] is found and read once, at the start of a run (see
//! [`instructions`](crate::instructions)): loading it touches nothing in the world, and nothing
//! that belongs to it is ever run by loading. Its list stands in the tool's description, so a
//! run records which skills it offered; its text stands in the result of a call.

use std::fmt::Write as _;

use futures::future::{BoxFuture, FutureExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exchange::ToolSpec;
use crate::tools::{Call, Outcome, Tool, declared, schema};
use crate::words::grouped;

/// A skill as a run knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// The name by which it is loaded.
    pub name: String,
    /// When it is of use, in one line.
    pub description: String,
    /// Whose words it holds.
    pub origin: SkillOrigin,
    /// Its folder, as the model can name it: relative to the workspace, or absolute.
    pub folder: String,
    /// Its text, as much as is given.
    pub body: String,
    /// The bytes of the text that are not given.
    pub left_out: u64,
    /// The other files in its folder, relative to it.
    pub files: Vec<String>,
    /// Whether there are more of them.
    pub more_files: bool,
}

/// Whose words a skill holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SkillOrigin {
    /// The user's own.
    User,
    /// The project's.
    Workspace,
}

impl SkillOrigin {
    fn words(self) -> &'static str {
        match self {
            Self::User => "from the user's configuration",
            Self::Workspace => "from the workspace",
        }
    }
}

/// The tool by which the model loads a skill.
#[derive(Clone, Debug)]
pub struct LoadSkill {
    skills: Vec<Skill>,
}

/// The arguments of `LoadSkill`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The name of the skill, as it stands in the list.
    name: String,
}

impl LoadSkill {
    /// The tool that loads these skills; of two with the same name the first.
    pub fn new(skills: Vec<Skill>) -> Self {
        Self { skills }
    }

    /// The skills, listed for the model.
    fn list(&self) -> String {
        let mut text = String::new();
        for origin in [SkillOrigin::User, SkillOrigin::Workspace] {
            let these = self.skills.iter().filter(|skill| skill.origin == origin);
            for (place, skill) in these.enumerate() {
                if place == 0 {
                    write!(text, "\n\nSkills {}:", origin.words()).ok();
                }
                write!(text, "\n- {}: {}", skill.name, skill.description).ok();
            }
        }
        text
    }

    fn answer(&self, arguments: &str) -> Outcome {
        let name = match serde_json::from_str::<Arguments>(arguments) {
            Ok(arguments) => arguments.name,
            Err(error) => return Outcome::error(format!("The arguments do not fit: {error}")),
        };
        let found = self.skills.iter().find(|skill| skill.name == name);
        if let Some(skill) = found {
            return Outcome::ok(skill.text());
        }
        let name: String = name.chars().take(80).collect();
        let names: Vec<&str> = self.skills.iter().map(|s| s.name.as_str()).collect();
        let names = names.join(", ");
        Outcome::error(format!(
            "No skill is named `{name}`; there is: {names}. Nothing was loaded."
        ))
    }
}

impl Tool for LoadSkill {
    fn spec(&self) -> ToolSpec {
        let mut spec = declared::spec("LoadSkill", schema::of::<Arguments>());
        spec.description.push_str(&self.list());
        spec
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        futures::future::ready(self.answer(call.arguments)).boxed()
    }
}

impl Skill {
    /// The skill as the model reads it.
    fn text(&self) -> String {
        let Self {
            name,
            origin,
            folder,
            body,
            ..
        } = self;
        let mut text = format!(
            "[skill {name}, {}; paths in it count from {folder}]\n\n{body}",
            origin.words()
        );
        if self.left_out > 0 {
            let left_out = grouped(self.left_out);
            write!(
                text,
                "\n[… {left_out} bytes left out; {folder}/SKILL.md holds all …]"
            )
            .ok();
        }
        write!(text, "\n\n[end of skill {name}").ok();
        if !self.files.is_empty() {
            let how = match origin {
                SkillOrigin::Workspace => "Read shows them",
                SkillOrigin::User => {
                    "they lie outside the workspace, where Read does not go, but Bash can print them"
                }
            };
            write!(
                text,
                "; its other files, none of which was read or run ({how}):"
            )
            .ok();
            for file in &self.files {
                write!(text, "\n{folder}/{file}").ok();
            }
            if self.more_files {
                text.push_str("\n… and more");
            }
        }
        text.push(']');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Status;
    use crate::tools::Toolbox;

    fn skill(name: &str, origin: SkillOrigin, files: &[&str]) -> Skill {
        Skill {
            name: name.to_owned(),
            description: format!("Helps to {name}."),
            origin,
            folder: format!("skills/{name}"),
            body: "First look,\nthen leap.".to_owned(),
            left_out: 0,
            files: files.iter().map(|&file| file.to_owned()).collect(),
            more_files: false,
        }
    }

    #[test]
    fn skills_are_listed_and_loaded() {
        let mut leap = skill("leap", SkillOrigin::Workspace, &["scripts/leap.sh"]);
        (leap.left_out, leap.more_files) = (12_345, true);
        let tool = LoadSkill::new(vec![
            leap,
            skill("look", SkillOrigin::User, &["a.md", "b.md"]),
            skill("wait", SkillOrigin::User, &[]),
        ]);
        insta::assert_snapshot!(tool.spec().description, @"
        Loads a skill: instructions for one kind of task, written beforehand, and the names of the files that belong to them.
        - Load a skill before you begin work that its description fits, then follow it as far as the task goes.
        - Loading runs nothing. A skill stays in sight when older parts of this conversation are summarized; load it once.

        Skills from the user's configuration:
        - look: Helps to look.
        - wait: Helps to wait.

        Skills from the workspace:
        - leap: Helps to leap.
        ");
        let load = |name: &str| {
            let outcome = tool.answer(&serde_json::json!({"name": name}).to_string());
            format!("{}: {}\n", outcome.status.word(), outcome.content)
        };
        insta::assert_snapshot!(["leap", "look", "wait", "Leap"].map(load).concat(), @"
        ok: [skill leap, from the workspace; paths in it count from skills/leap]

        First look,
        then leap.
        [… 12,345 bytes left out; skills/leap/SKILL.md holds all …]

        [end of skill leap; its other files, none of which was read or run (Read shows them):
        skills/leap/scripts/leap.sh
        … and more]
        ok: [skill look, from the user's configuration; paths in it count from skills/look]

        First look,
        then leap.

        [end of skill look; its other files, none of which was read or run (they lie outside the workspace, where Read does not go, but Bash can print them):
        skills/look/a.md
        skills/look/b.md]
        ok: [skill wait, from the user's configuration; paths in it count from skills/wait]

        First look,
        then leap.

        [end of skill wait]
        error: No skill is named `Leap`; there is: leap, look, wait. Nothing was loaded.
        ");
    }

    #[test]
    fn without_skills_there_is_no_tool() {
        let names = |toolbox: Toolbox| {
            let specs = toolbox.specs().into_iter();
            specs.map(|spec| spec.name).collect::<Vec<_>>()
        };
        let none = Toolbox::new().with_skills(Vec::new());
        assert!(names(none).is_empty());
        let one = vec![skill("look", SkillOrigin::User, &[])];
        let toolbox = Toolbox::new().with_skills(one);
        assert!(toolbox.check("LoadSkill", r#"{"name":"look"}"#).is_ok());
        assert_eq!(names(toolbox), ["LoadSkill"]);
        let wrong = LoadSkill::new(Vec::new()).answer("{}");
        assert_eq!(wrong.status, Status::Error);
    }
}
