//! Hooks: a command of a person's own that the runtime runs, not the model.
//!
//! It reads one JSON object on its standard input. Like `Bash`, it runs in the workspace with the
//! environment that tools see, and leaves no process behind. What it prints on standard output is the
//! outcome; of one that fails it is how it failed, with the end of its complaint.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::exchange::{Facts, Status};
use crate::tools::capture::{Capture, Printed};
use crate::tools::finish::{Finish, milliseconds};
use crate::tools::process::{self, Ended, Job, Session};
use crate::tools::scope::Site;
use crate::tools::{Outcome, bash, clip};

/// The name under which hands know it. No tool that a model calls has it.
pub(crate) const NAME: &str = "(hook)";

/// The most characters of a complaint that are told.
const COMPLAINT_CHARS: usize = 300;

/// What is run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Arguments {
    /// The command, for the shell.
    pub(crate) command: String,
    /// What it reads on standard input.
    pub(crate) input: String,
}

/// Runs the command for at most this long.
pub(crate) async fn run(
    site: &Site,
    arguments: &str,
    limit: Duration,
    cancel: &CancellationToken,
) -> Outcome {
    let Arguments { command, input } = match serde_json::from_str(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return Outcome::error(format!("could not be started: {error}")),
    };
    let job = Job {
        program: bash::shell(&site.workspace),
        arguments: vec!["-c".into(), command.into()],
        directory: site.workspace.root().to_owned(),
        environment: bash::environment(&site.workspace),
        limit,
        session: Session::within(&site.workspace),
    };
    let input = format!("{input}\n").into_bytes();
    match process::converse(&job, input, cancel).await {
        Ok((ended, output, errors)) => outcome(ended, limit, output, errors),
        Err(error) => Outcome::error(format!("could not be started: {error}")),
    }
}

fn outcome(ended: Ended, limit: Duration, output: Capture, errors: Capture) -> Outcome {
    let finish = Finish::of(ended, limit);
    let how = match ended {
        Ended::Exit(0) => match output.printed() {
            Printed::Whole(text) => return Outcome::ok(text),
            Printed::Ends { .. } => "printed far too much".to_owned(),
        },
        Ended::Exit(code) => format!("failed with exit {code}"),
        Ended::Signal(signal) => format!("was ended by signal {signal}"),
        Ended::TimedOut => format!("did not end within {} ms", milliseconds(limit)),
        Ended::Cancelled => "was cancelled".to_owned(),
    };
    let status = match finish.status {
        Status::Ok => Status::Error,
        status @ (Status::Error
        | Status::Denied
        | Status::Timeout
        | Status::Interrupted
        | Status::Cancelled) => status,
    };
    Outcome::new(status, how + &complaint(errors)).with_facts(Facts {
        exit: finish.exit,
        ..Facts::default()
    })
}

/// The end of what was said on standard error, in one line; nothing if nothing was.
fn complaint(errors: Capture) -> String {
    let text = match errors.printed() {
        Printed::Whole(text) => text,
        Printed::Ends { head, lost, tail } => clip::around(&head, lost, &tail, u64::MAX),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let more = text.chars().count().saturating_sub(COMPLAINT_CHARS);
    let end: String = text.chars().skip(more).collect();
    match (end.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(": {end}"),
        (false, _) => format!(": …{end}"),
    }
}
