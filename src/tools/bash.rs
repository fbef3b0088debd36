//! `Bash`: runs a shell command.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::exchange::{Facts, Status, ToolSpec};
use crate::tools::capture::{Capture, Printed};
use crate::tools::process::{self, Ended, Job};
use crate::tools::scope::Site;
use crate::tools::workspace::Workspace;
use crate::tools::{Outcome, clip, declared, schema};
use crate::words::grouped;

/// The usual limit of a command, in milliseconds.
const LIMIT: u64 = 120_000;

/// The arguments of `Bash`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command.
    command: String,
    /// After how many milliseconds it is ended (120000 unless given).
    #[schemars(range(min = 1, max = 600_000))]
    timeout_ms: Option<u64>,
}

/// The spec of `Bash`.
pub(crate) fn spec() -> ToolSpec {
    declared::spec("Bash", schema::of::<Arguments>())
}

/// Runs the command.
pub(crate) async fn run(site: &Site, arguments: &str, cancel: &CancellationToken) -> Outcome {
    let Arguments {
        command,
        timeout_ms,
    } = match serde_json::from_str(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return Outcome::error(format!("The arguments do not fit: {error}")),
    };
    if command.contains('\0') {
        return Outcome::error(
            "The command holds a NUL character, which no command can. Nothing ran.",
        );
    }
    let limit = Duration::from_millis(timeout_ms.unwrap_or(LIMIT));
    let directory = site.directory();
    let note = Note::new(&site.workspace);
    let job = Job {
        program: shell(&site.workspace),
        arguments: vec!["-c".into(), note.around(&command).into()],
        directory: directory.clone(),
        environment: environment(&site.workspace),
        limit,
    };
    match process::run(&job, cancel).await {
        Ok((ended, capture)) => {
            let after = note.read();
            answer(site, ended, limit, capture, &directory, after.as_deref())
        }
        Err(error) => Outcome::error(format!("The shell could not be started: {error}")),
    }
}

/// What the model reads of a command that ended.
fn answer(
    site: &Site,
    ended: Ended,
    limit: Duration,
    capture: Capture,
    before: &Path,
    after: Option<&Path>,
) -> Outcome {
    let root = site.workspace.root();
    let mut end = String::new();
    let (status, exit) = match ended {
        Ended::Exit(0) => (Status::Ok, Some(0)),
        Ended::Exit(code) => {
            write!(end, "[exit {code}]").ok();
            (Status::Error, Some(code))
        }
        Ended::Signal(signal) => {
            write!(end, "[ended by signal {signal}]").ok();
            (Status::Error, Some(128 + signal))
        }
        Ended::TimedOut => {
            let ms = grouped(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
            write!(
                end,
                "[ended after {ms} ms, the limit of this call; what it did until then may have \
                 taken effect]"
            )
            .ok();
            (Status::Timeout, None)
        }
        Ended::Cancelled => {
            end.push_str("[cancelled; what it did until then may have taken effect]");
            (Status::Cancelled, None)
        }
    };
    let (cwd, left) = match after {
        Some(after) if after.starts_with(root) => (after, false),
        Some(_) => (root, true),
        None => (before, false),
    };
    if left {
        let line = if end.is_empty() { "" } else { "\n" };
        write!(end, "{line}[the working directory is the workspace again]").ok();
    }
    let bytes = capture.bytes();
    let mut outcome = Outcome::new(status, "");
    outcome.content = match capture.printed() {
        Printed::Whole(text) => text,
        Printed::Ends { head, lost, tail } => {
            outcome.bytes = bytes;
            let chars = site.chars.saturating_sub(end.chars().count() as u64 + 1);
            clip::around(&head, lost, &tail, chars)
        }
    };
    if outcome.content.is_empty() && end.is_empty() {
        end.push_str("[no output]");
    }
    if !(outcome.content.is_empty() || end.is_empty() || outcome.content.ends_with('\n')) {
        outcome.content.push('\n');
    }
    outcome.content.push_str(&end);
    outcome.with_facts(Facts {
        exit,
        cwd: Some(cwd.to_string_lossy().into_owned()),
        ..Facts::default()
    })
}

/// The environment of a command.
fn environment(workspace: &Workspace) -> Vec<(OsString, OsString)> {
    let mut environment = workspace.environment().to_vec();
    environment.push(("TERM".into(), "dumb".into()));
    environment
}

/// The first `bash` on the path that tools see; without one, `sh`.
fn shell(workspace: &Workspace) -> PathBuf {
    let path = workspace.variable("PATH").unwrap_or_default();
    std::env::split_paths(path)
        .chain(["/bin".into(), "/usr/bin".into()])
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("bash"))
        .find(|program| program.is_file())
        .unwrap_or_else(|| "/bin/sh".into())
}

/// A file in which the shell notes its working directory when it ends. It is removed with this.
#[derive(Debug)]
struct Note {
    /// `None`: it could not be made, and the working directory stays what it was.
    path: Option<PathBuf>,
}

impl Note {
    fn new(workspace: &Workspace) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = workspace
            .variable("TMPDIR")
            .map_or_else(|| "/tmp".into(), PathBuf::from);
        let path = directory.join(format!("undertext-cwd-{}-{number}", std::process::id()));
        let plain = |path: &str| !path.contains(['\'', '"', '$', '`', '\\', '\n']);
        if !path.to_str().is_some_and(plain) {
            return Self { path: None };
        }
        // A killed run may have left one of this name behind.
        std::fs::remove_file(&path).ok();
        let mut options = std::fs::OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(&path);
        Self {
            path: made.is_ok().then_some(path),
        }
    }

    /// The command, such that its shell leaves a note when it ends.
    ///
    /// A trap changes neither what is printed nor the exit status, and stands on the line on which
    /// the command begins, so that the shell's messages count lines as the model does.
    fn around(&self, command: &str) -> String {
        match &self.path {
            Some(path) => {
                let path = path.display();
                let trap = format!("{{ command pwd -P >|\"{path}\"; }} 2>/dev/null");
                format!("trap '{trap}' EXIT; {command}")
            }
            None => command.to_owned(),
        }
    }

    /// The working directory that was noted; `None` if none was.
    fn read(&self) -> Option<PathBuf> {
        let text = std::fs::read_to_string(self.path.as_ref()?).ok()?;
        let path = text.strip_suffix('\n')?;
        Path::new(path).is_absolute().then(|| PathBuf::from(path))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            std::fs::remove_file(path).ok();
        }
    }
}
