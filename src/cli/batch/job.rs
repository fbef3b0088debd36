//! A line as a run: what `run` would be told on its command line, checked before the run begins.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use undertext::answer;
use undertext::config::{ConfigError, Place};
use undertext::setup::OutputSchema;
use undertext::transcript::BatchTask;

use crate::cli::batch::BatchArgs;
use crate::cli::batch::before::{Begun, Which};
use crate::cli::batch::tasks::{Key, TaskLine};
use crate::cli::exit::{Exit, Failure};
use crate::cli::logs::LogArgs;
use crate::cli::model_args::ModelArgs;
use crate::cli::start::{self, Start};
use crate::cli::task::TaskArgs;
use crate::cli::toolbox::ToolArgs;
use crate::cli::{Process, RunArgs, SettingArgs, answer_form, planted};

/// A line that a run can begin to work on, or to go on with.
#[derive(Debug)]
pub(super) struct Job {
    /// The number of the line.
    pub(super) number: u64,
    /// The id that it gives.
    pub(super) id: Option<String>,
    /// What `run` would have been told.
    pub(super) args: RunArgs,
    /// The same, read and checked.
    pub(super) start: Start,
    /// Where it works.
    pub(super) workspace: PathBuf,
    /// What its run records of it.
    pub(super) task: BatchTask,
    /// The transcript of the run that was begun before.
    pub(super) begun: Option<PathBuf>,
}

/// What makes jobs of lines.
pub(super) struct Jobs<'a> {
    /// The command line.
    pub(super) args: &'a BatchArgs,
    /// The process.
    pub(super) process: &'a Process,
    /// Which batch it is.
    pub(super) which: Which,
    /// The directory of the file, from which paths in it count.
    pub(super) directory: PathBuf,
    /// What was begun before.
    pub(super) begun: HashMap<Key, Begun>,
    /// Whether flags or settings name a model.
    pub(super) has_model: bool,
}

/// What is said where nobody names a model.
pub(super) const NO_MODEL: &str =
    "no model named; give -m MODEL for all lines, or `model` on the line";

impl Jobs<'_> {
    /// The job of a line.
    pub(super) fn job(&self, number: u64, key: Key, task: TaskLine) -> Result<Job, Failure> {
        let begun = self.begun.get(&key);
        if !task.names_model() && !self.has_model && begun.is_none() {
            return Err(Failure::usage(NO_MODEL));
        }
        let id = task.id.clone();
        let schema = task.schema.clone();
        let mut args = self.as_run(task);
        args.resume = begun.map(|begun| begun.path.to_string_lossy().into_owned());
        let schema = match schema {
            None => None,
            Some(Value::String(path)) => {
                let transcripts = begun.and_then(|begun| begun.path.parent());
                let transcripts = transcripts.unwrap_or(Path::new(""));
                let place = planted::of_run(&args, transcripts, self.process);
                let path = self.directory.join(path);
                let site = (place.as_deref(), self.process);
                Some(answer_form::named("`schema`", &path, site)?)
            }
            Some(schema) => Some(in_line(&schema, id.as_deref())?),
        };
        let mut start = Start::new(&args, self.process, &mut io::empty())
            .map_err(|failure| self.of_line(failure, &args.settings.set))?;
        if schema.is_some() {
            start.settings.policy.output = schema;
        }
        let workspace = match (&start.workspace, begun) {
            (None, Some(begun)) => start::workspace(Some(&begun.workspace), self.process)?,
            (named, _) => named.clone().unwrap_or_default(),
        };
        Ok(Job {
            number,
            args,
            start,
            workspace,
            task: self.which.task(key, id.clone()),
            begun: begun.map(|begun| begun.path.clone()),
            id,
        })
    }

    /// What is wrong with a setting of the line itself speaks of `set`: nobody wrote `--set`.
    fn of_line(&self, failure: Failure, set: &[String]) -> Failure {
        let of_batch = self.args.settings.set.len();
        let of_line = &set[of_batch.min(set.len())..];
        match failure.error.downcast_ref() {
            Some(ConfigError::Setting {
                place: Place::Set(text),
                ..
            }) if of_line.contains(text) => {
                let text = failure.line().replacen("--set ", "`set`, ", 1);
                Failure::new(failure.exit, anyhow::Error::msg(text))
            }
            Some(_) | None => failure,
        }
    }

    /// What `run` would be told of a line.
    fn as_run(&self, task: TaskLine) -> RunArgs {
        let Self {
            args, directory, ..
        } = self;
        let there = |path: PathBuf| directory.join(path);
        let model = task.model.or_else(|| args.asked.model.clone());
        let chooses = !task.tools.is_empty() || !task.no_tools.is_empty();
        let choice = ToolArgs {
            tools: task.tools,
            no_tools: task.no_tools,
        };
        let said = task.set.iter().map(|(key, value)| format!("{key}={value}"));
        let set = args.settings.set.iter().cloned().chain(said).collect();
        RunArgs {
            task: task.task,
            files: TaskArgs {
                task_file: task.task_file.map(there),
                attach: task.attach.into_iter().map(there).collect(),
            },
            check: task.check.or_else(|| args.check.clone()),
            name: task.id,
            asked: ModelArgs {
                model,
                ..args.asked.clone()
            },
            workspace: task.workspace.map(there).or(args.workspace.clone()),
            choice: if chooses { choice } else { args.choice.clone() },
            instructions: args.instructions.clone(),
            append_instructions: task
                .append_instructions
                .or_else(|| args.append_instructions.clone()),
            env: args.env.clone(),
            sandbox: args.sandbox,
            network: args.network.clone(),
            share_workspace: args.share_workspace,
            max_rounds: task.max_rounds,
            max_tokens: task.max_tokens,
            max_cost: task.max_cost,
            max_time: task.max_time,
            logs: LogArgs {
                log_file: args.logs.log_file.clone(),
                ..LogArgs::default()
            },
            settings: SettingArgs {
                set,
                ..args.settings.clone()
            },
            ..RunArgs::default()
        }
    }
}

/// The schema that stands on a line itself.
fn in_line(schema: &Value, id: Option<&str>) -> Result<OutputSchema, Failure> {
    let schema = answer::schema(id.unwrap_or_default(), &schema.to_string());
    schema.map_err(|error| {
        let error = anyhow::Error::new(error).context("`schema` cannot be used");
        Failure::new(Exit::Usage, error)
    })
}

/// Whether work in one of these directories may be in the way of work in the other.
pub(super) fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
