//! External tools: programs of a person's own that a model may call.
//!
//! A call's arguments, one JSON object that fits the tool's schema, come on the program's standard
//! input. What it prints on standard output is the answer: plain text, or one JSON object with the
//! text as `content` and, if it did not work, `"status": "error"`. Standard error is shown only
//! when something went wrong. Like `Bash`, a program runs in the workspace with the environment
//! that tools see, and leaves no process behind.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::exchange::{Facts, Status, ToolMeta, ToolSpec};
use crate::tools::capture::{Capture, Printed};
use crate::tools::finish::{self, Finish};
use crate::tools::process::{self, Job, Session};
use crate::tools::scope::{Site, quoted};
use crate::tools::workspace::Workspace;
use crate::tools::{Outcome, bash, clip};
use crate::words::grouped;

/// The longest name, in characters.
const NAME_CHARS: usize = 64;

/// How far from its beginning an answer is looked at to see whether it is text.
const SAMPLE: usize = 8192;

/// The longest complaint that is shown, in characters.
const COMPLAINT_CHARS: usize = 4000;

/// A tool that a program answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct External {
    spec: ToolSpec,
    command: Command,
}

/// What answers the calls of an external tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A command for the shell.
    Shell(String),
    /// A program and its arguments. A name without `/` is looked for on the path that tools see;
    /// a relative one with it counts from the workspace.
    Program(Vec<String>),
}

/// Something cannot be an external tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExternalError {
    /// Providers take no such name.
    #[error(
        "`{0}` is no name for a tool: it begins with a letter and goes on with at most 63 letters, \
         digits, `_` and `-`"
    )]
    Name(String),
    /// The model would not know what it is for.
    #[error("`description` is empty: it says to the model what the tool does, and when to use it")]
    Description,
    /// There is nothing to run.
    #[error("`command` is empty")]
    Command,
    /// The schema is not one of an object.
    #[error("`parameters` must describe an object: `type: object`, with its `properties`")]
    NoObject,
    /// The schema cannot be compiled.
    #[error("`parameters` is no JSON Schema: {0}")]
    Schema(String),
}

impl External {
    /// The tool of this name that `command` answers. `parameters` is the JSON Schema of its
    /// arguments; `None` means that it has none.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Option<Value>,
        meta: ToolMeta,
        command: Command,
    ) -> Result<Self, ExternalError> {
        let (name, description) = (name.into(), description.into());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !begins || name.len() > NAME_CHARS || !name.chars().all(is_plain) {
            return Err(ExternalError::Name(clip::first(&name, 80).to_owned()));
        }
        if description.trim().is_empty() {
            return Err(ExternalError::Description);
        }
        let is_empty = match &command {
            Command::Shell(line) => line.trim().is_empty(),
            Command::Program(words) => words.first().is_none_or(|word| word.trim().is_empty()),
        };
        if is_empty {
            return Err(ExternalError::Command);
        }
        let spec = ToolSpec {
            name,
            description: description.trim_end().to_owned(),
            schema: schema(parameters)?,
            meta,
        };
        Ok(Self { spec, command })
    }

    /// What the model and the runtime know of it.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// What answers its calls.
    pub fn command(&self) -> &Command {
        &self.command
    }

    /// The program and its arguments; `None` if it is not there.
    fn program(&self, workspace: &Workspace) -> Option<(PathBuf, Vec<OsString>)> {
        match &self.command {
            Command::Shell(line) => {
                let arguments = vec!["-c".into(), line.into()];
                Some((bash::shell(workspace), arguments))
            }
            Command::Program(words) => {
                let (name, arguments) = words.split_first()?;
                let program = found(workspace, name)?;
                Some((program, arguments.iter().map(OsString::from).collect()))
            }
        }
    }
}

/// The schema as it is sent.
fn schema(parameters: Option<Value>) -> Result<Box<RawValue>, ExternalError> {
    let mut schema = match parameters {
        None => serde_json::json!({"type": "object"}),
        Some(schema) => schema,
    };
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(ExternalError::NoObject);
    }
    if let Some(schema) = schema.as_object_mut() {
        let properties = schema.entry("properties");
        properties.or_insert_with(|| serde_json::json!({}));
    }
    let wrong = |error: String| ExternalError::Schema(clip::first(&error, 300).to_owned());
    jsonschema::validator_for(&schema).map_err(|error| wrong(error.to_string()))?;
    serde_json::value::to_raw_value(&schema).map_err(|error| wrong(error.to_string()))
}

/// The program of this name, as the system finds it.
fn found(workspace: &Workspace, name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        let path = workspace.root().join(name);
        return path.is_file().then_some(path);
    }
    std::env::split_paths(workspace.variable("PATH")?)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// Answers a call. `usual` is how long the program may take.
pub(crate) async fn run(
    site: &Site,
    tool: &External,
    arguments: &str,
    usual: Option<Duration>,
    cancel: &CancellationToken,
) -> Outcome {
    let limit = usual.unwrap_or(bash::LIMIT);
    let Some((program, words)) = tool.program(&site.workspace) else {
        let name = match &tool.command {
            Command::Shell(line) => line,
            Command::Program(words) => words.first().map_or("", String::as_str),
        };
        return Outcome::error(format!(
            "The program of {} is not there: {}. Nothing ran.",
            tool.spec.name,
            quoted(name)
        ));
    };
    let job = Job {
        program,
        arguments: words,
        directory: site.workspace.root().to_owned(),
        environment: bash::environment(&site.workspace),
        limit,
        session: Session::within(&site.workspace),
    };
    let input = format!("{arguments}\n").into_bytes();
    match process::converse(&job, input, cancel).await {
        Ok((ended, output, errors)) => {
            let finish = Finish::of(ended, limit);
            answer(site, &finish, output, errors)
        }
        Err(error) => Outcome::error(format!(
            "The program of {} could not be started: {error}",
            tool.spec.name
        )),
    }
}

/// What the model reads of a program that ended.
fn answer(site: &Site, finish: &Finish, output: Capture, errors: Capture) -> Outcome {
    let facts = Facts {
        exit: finish.exit,
        ..Facts::default()
    };
    if output.starts().take(SAMPLE).any(|byte| byte == 0) {
        let bytes = grouped(output.bytes());
        let text = format!("[the tool printed {bytes} bytes that are no text]");
        let status = if finish.status == Status::Ok {
            Status::Error
        } else {
            finish.status
        };
        return Outcome::new(status, text + &complaint(errors) + &finish.line).with_facts(facts);
    }
    let said = Said::of(&output);
    let outcome = match said {
        Some(said) if finish.status == Status::Ok => Outcome::new(said.status, said.content),
        Some(said) => {
            let mut capture = Capture::default();
            capture.take(said.content.as_bytes());
            let end = complaint(errors) + &finish.line;
            finish::outcome(finish.status, capture, end, site.chars)
        }
        None if finish.status == Status::Ok => {
            finish::outcome(Status::Ok, output, String::new(), site.chars)
        }
        None => {
            let end = complaint(errors) + &finish.line;
            finish::outcome(finish.status, output, end, site.chars)
        }
    };
    outcome.with_facts(facts)
}

/// What was said on standard error, with its heading; nothing if nothing was.
fn complaint(errors: Capture) -> String {
    let text = match errors.printed() {
        Printed::Whole(text) => text,
        Printed::Ends { head, lost, tail } => clip::around(&head, lost, &tail, u64::MAX),
    };
    let text = text.trim_end();
    if text.is_empty() {
        return String::new();
    }
    let all = text.chars().count();
    let shown = match all.checked_sub(COMPLAINT_CHARS) {
        None | Some(0) => text.to_owned(),
        // What went wrong is usually said last.
        Some(more) => format!(
            "[… {} characters left out]\n{}",
            grouped(more as u64),
            text.chars().skip(more).collect::<String>()
        ),
    };
    format!("[standard error]\n{shown}\n")
}

/// An answer in JSON.
#[derive(Debug)]
struct Said {
    content: String,
    status: Status,
}

/// The answer as it is written. An object that holds more is none: nothing of it would be shown.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    content: Value,
    status: Option<Word>,
}

/// How a program says that it went.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Ok,
    Error,
}

impl Said {
    /// The answer in this output, if it is one JSON object of that form; else it is plain text.
    fn of(output: &Capture) -> Option<Self> {
        let begins = output.starts().find(|byte| !byte.is_ascii_whitespace());
        if begins != Some(b'{') {
            return None;
        }
        if !output.is_whole() {
            return None;
        }
        let Printed::Whole(text) = output.clone().printed() else {
            return None;
        };
        let Written { content, status } = serde_json::from_str(&text).ok()?;
        let content = content
            .as_str()
            .map_or_else(|| content.to_string(), |text| clip::text(text.as_bytes()));
        Some(Self {
            content,
            status: match status {
                None | Some(Word::Ok) => Status::Ok,
                Some(Word::Error) => Status::Error,
            },
        })
    }
}
