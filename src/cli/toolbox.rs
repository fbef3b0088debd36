//! The tools of a run: the built-in ones and the person's own, as settings and flags want them.

use clap::Args;
use undertext::config::{self, Environment, Settings, ToolFile};
use undertext::tools::{Skill, Toolbox, UnknownTool};

use crate::cli::exit::{Exit, Failure};

/// The tool that is there only if there are skills, so that its name is known in any case.
const FOR_SKILLS: &str = "LoadSkill";

/// Which tools a run offers.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ToolArgs {
    /// Offer only these tools; `undertext tools` lists all
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    #[arg(conflicts_with = "no_tools")]
    pub(crate) tools: Vec<String>,
    /// Offer all tools but these
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) no_tools: Vec<String>,
}

impl ToolArgs {
    /// Whether a run that finds skills offers them.
    pub(crate) fn wants_skills(&self, settings: &Settings) -> bool {
        let is_for_skills = |name: &String| name == FOR_SKILLS;
        if !self.tools.is_empty() {
            return self.tools.iter().any(is_for_skills);
        }
        settings.tool(FOR_SKILLS).enabled != Some(false) && !self.no_tools.iter().any(is_for_skills)
    }
}

/// Tools whose calls have a limit of time, beside the person's own.
const TIMED: [&str; 2] = ["Bash", "Job"];

/// All tools there are.
#[derive(Debug)]
pub(crate) struct Tools {
    /// What is known of them, with what the settings say.
    pub(crate) toolbox: Toolbox,
    /// The person's own.
    pub(crate) files: Vec<ToolFile>,
}

impl Tools {
    /// Finds them all, those that are switched off included, and one for these skills.
    pub(crate) fn all(
        settings: &Settings,
        environment: &Environment,
        skills: Vec<Skill>,
    ) -> Result<Self, Failure> {
        let files = own(environment)?;
        Ok(Self::of(settings, (Toolbox::builtin(), files), skills))
    }

    /// The same of the built-in ones and of the person's own in these files.
    pub(crate) fn of(
        settings: &Settings,
        (builtin, files): (Toolbox, Vec<ToolFile>),
        skills: Vec<Skill>,
    ) -> Self {
        let toolbox = builtin.with_skills(skills);
        let toolbox = files
            .iter()
            .fold(toolbox, |toolbox, file| toolbox.with_external(&file.tool));
        let toolbox = toolbox.with_meta(|spec| settings.tool(&spec.name).meta(spec.meta.clone()));
        Self { toolbox, files }
    }

    /// The tools that a run offers: those that the flags name, else those that are not switched
    /// off.
    pub(crate) fn offered(
        self,
        settings: &Settings,
        choice: &ToolArgs,
    ) -> Result<Toolbox, Failure> {
        let mut off = names(&self.toolbox);
        // Whoever names the tool for skills need not know whether there are any.
        let is_there = |name: &&String| *name != FOR_SKILLS || off.contains(name);
        if !choice.tools.is_empty() {
            let only = choice.tools.iter().filter(is_there);
            return self.toolbox.only(only).map_err(unknown);
        }
        let without = choice.no_tools.iter().filter(is_there);
        let toolbox = self.toolbox.without(without).map_err(unknown)?;
        off.retain(|name| settings.tool(name).enabled == Some(false));
        off.retain(|name| !choice.no_tools.contains(name));
        toolbox.without(&off).map_err(unknown)
    }

    /// What the settings say of tools in vain.
    pub(crate) fn remarks(&self, settings: &Settings) -> Vec<String> {
        let names = names(&self.toolbox);
        let own = self.files.iter().map(|file| file.tool.spec().name.as_str());
        let timed: Vec<&str> = TIMED.into_iter().chain(own).collect();
        let said = settings.tools.iter().filter_map(|(key, said)| {
            let is_key = |name: &str| name.eq_ignore_ascii_case(key);
            let is_there = names.iter().any(|name| is_key(name)) || is_key(FOR_SKILLS);
            if said.enabled == Some(false) && !is_there {
                return Some(format!("tools.{key}: there is no such tool to switch off"));
            }
            let is_timed = timed.iter().any(|name| is_key(name));
            (said.timeout_ms.is_some() && is_there && !is_timed)
                .then(|| format!("tools.{key}.timeout: calls of this tool have no limit of time"))
        });
        said.collect()
    }
}

/// The files of the person's own tools.
pub(crate) fn own(environment: &Environment) -> Result<Vec<ToolFile>, Failure> {
    let taken = || {
        let mut taken = names(&Toolbox::builtin());
        taken.push(FOR_SKILLS.to_owned());
        taken
    };
    Ok(config::tools(environment, taken)?)
}

/// The names of the tools, in their order.
pub(crate) fn names(toolbox: &Toolbox) -> Vec<String> {
    let specs = toolbox.specs().into_iter();
    specs.map(|spec| spec.name).collect()
}

/// Refuses a name that no tool has.
pub(crate) fn unknown(error: UnknownTool) -> Failure {
    if error.close.is_empty() {
        Failure::usage(format!("{error}; `undertext tools` lists all"))
    } else {
        Failure::new(Exit::Usage, error)
    }
}
