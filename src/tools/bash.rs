//! `Bash`: runs a shell command.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::exchange::{Facts, Status, ToolSpec};
use crate::tools::background::{Jobs, StartError};
use crate::tools::capture::Capture;
use crate::tools::finish::{self, Finish};
use crate::tools::moves;
use crate::tools::process::{self, Job, Session};
use crate::tools::scope::Site;
use crate::tools::workspace::Workspace;
use crate::tools::{Outcome, declared, schema};

/// The usual limit of a command.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// How long is waited for the first lines of a command in the background.
const FIRST_MOMENT: Duration = Duration::from_millis(250);

/// The arguments of `Bash`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command.
    command: String,
    /// After how many milliseconds it is ended (120000 unless given).
    #[schemars(range(min = 1, max = 600_000))]
    timeout_ms: Option<u64>,
    /// Let it run on after the call, as a job, without a limit unless one is given.
    background: Option<bool>,
}

/// The spec of `Bash`.
pub(crate) fn spec() -> ToolSpec {
    declared::spec("Bash", schema::of::<Arguments>())
}

/// Lets the schema of a tool with a usual limit say the one that its meta sets.
pub(crate) fn tell_limit(spec: &mut ToolSpec) {
    let Some(limit) = spec.meta.timeout_ms else {
        return;
    };
    if matches!(spec.name.as_str(), "Bash" | "Job") {
        let usual = format!("({} unless given)", LIMIT.as_millis());
        let schema = spec.schema.get();
        let schema = schema.replacen(&usual, &format!("({limit} unless given)"), 1);
        if let Ok(schema) = RawValue::from_string(schema) {
            spec.schema = schema;
        }
    }
}

/// Runs the command. `usual` is its limit unless the call says otherwise.
pub(crate) async fn run(
    site: &Site,
    arguments: &str,
    usual: Option<Duration>,
    jobs: &Jobs,
    cancel: &CancellationToken,
) -> Outcome {
    let Arguments {
        command,
        timeout_ms,
        background,
    } = match serde_json::from_str(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return Outcome::error(format!("The arguments do not fit: {error}")),
    };
    if command.contains('\0') {
        return Outcome::error(
            "The command holds a NUL character, which no command can. Nothing ran.",
        );
    }
    let given = timeout_ms.map(Duration::from_millis);
    let directory = site.directory();
    let job = |command: String, limit| Job {
        program: shell(&site.workspace),
        arguments: vec!["-c".into(), command.into()],
        directory: directory.clone(),
        environment: environment(&site.workspace),
        limit,
        session: Session::within(&site.workspace),
    };
    if background.unwrap_or(false) {
        let job = job(command.clone(), given.unwrap_or(Duration::MAX));
        return started(site, &command, &job, jobs, cancel).await;
    }
    let limit = given.or(usual).unwrap_or(LIMIT);
    let note = Note::new(&site.workspace, &directory, &command);
    let job = job(note.around(&command), limit);
    match process::run(&job, cancel).await {
        Ok((ended, capture)) => {
            let after = note.read();
            let finish = Finish::of(ended, limit);
            answer(site, finish, capture, &directory, after.as_deref())
        }
        Err(error) => Outcome::error(format!("The shell could not be started: {error}")),
    }
}

/// Starts the command in the background, and tells what it did in its first moment.
async fn started(
    site: &Site,
    command: &str,
    job: &Job,
    jobs: &Jobs,
    cancel: &CancellationToken,
) -> Outcome {
    let call = site.call;
    let background = match jobs.start(call, command, job, cancel) {
        Ok(background) => background,
        Err(StartError::System(error)) => {
            return Outcome::error(format!("The shell could not be started: {error}"));
        }
        Err(StartError::GivenUp) => {
            return Outcome::new(Status::Cancelled, "[cancelled; nothing ran]");
        }
        Err(error @ StartError::TooMany) => {
            return Outcome::error(format!("Nothing ran: {error}."));
        }
    };
    tokio::select! {
        () = cancel.cancelled() => {}
        () = background.wait() => {}
        () = tokio::time::sleep(FIRST_MOMENT) => {}
    }
    let (finish, end) = match background.ended() {
        Some(ended) => {
            let finish = Finish::of(ended, job.limit);
            let line = if finish.line.is_empty() { "" } else { "\n" };
            let end = format!("{}{line}[job {call} has ended already]", finish.line);
            (Some(finish), end)
        }
        None => (
            None,
            format!("[runs on as job {call}; Job reads, waits for and ends it]"),
        ),
    };
    let status = finish.as_ref().map_or(Status::Ok, |finish| finish.status);
    let outcome = finish::outcome(status, background.printed(), end, site.chars);
    outcome.with_facts(Facts {
        exit: finish.and_then(|finish| finish.exit),
        ..Facts::default()
    })
}

/// What the model reads of a command that ended.
fn answer(
    site: &Site,
    finish: Finish,
    capture: Capture,
    before: &Path,
    after: Option<&Path>,
) -> Outcome {
    let root = site.workspace.root();
    let mut end = finish.line;
    let (cwd, left) = match after {
        Some(after) if after.starts_with(root) => (after, false),
        Some(_) => (root, true),
        None => (before, false),
    };
    if left {
        let line = if end.is_empty() { "" } else { "\n" };
        write!(end, "{line}[the working directory is the workspace again]").ok();
    }
    let outcome = finish::outcome(finish.status, capture, end, site.chars);
    outcome.with_facts(Facts {
        exit: finish.exit,
        cwd: Some(cwd.to_string_lossy().into_owned()),
        ..Facts::default()
    })
}

/// The environment of a command.
pub(crate) fn environment(workspace: &Workspace) -> Vec<(OsString, OsString)> {
    let mut environment = workspace.environment().to_vec();
    environment.push(("TERM".into(), "dumb".into()));
    environment
}

/// The first `bash` on the path that tools see; without one, `sh`.
pub(crate) fn shell(workspace: &Workspace) -> PathBuf {
    let path = workspace.variable("PATH").unwrap_or_default();
    std::env::split_paths(path)
        .chain(["/bin".into(), "/usr/bin".into()])
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("bash"))
        .find(|program| program.is_file())
        .unwrap_or_else(|| "/bin/sh".into())
}

/// How the working directory in which the shell ends becomes known.
#[derive(Debug)]
enum Note {
    /// The shell notes it in this file when it ends. The file is removed with this.
    File(PathBuf),
    /// The same, in memory: whoever is killed leaves none behind.
    InMemory(File),
    /// It ends where it begins; this is that directory, which may be moved meanwhile.
    Held(File),
    /// It does not, and the working directory stays what it was.
    Nothing,
}

impl Note {
    fn new(workspace: &Workspace, directory: &Path, command: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Only there can it be asked what the name of an open directory is.
        if cfg!(target_os = "linux")
            && !(moves::may_move(command) || has_words_of_its_own(workspace))
            && let Ok(held) = File::open(directory)
        {
            return Self::Held(held);
        }
        // Where tools are held they see no descriptors of others, and their temporary files go with the run.
        #[cfg(target_os = "linux")]
        if workspace.is_open()
            && let Some(held) = in_memory()
        {
            return Self::InMemory(held);
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = workspace
            .variable("TMPDIR")
            .map_or_else(|| "/tmp".into(), PathBuf::from);
        let path = directory.join(format!("undertext-cwd-{}-{number}", std::process::id()));
        let plain = |path: &str| !path.contains(['\'', '"', '$', '`', '\\', '\n']);
        if !path.to_str().is_some_and(plain) {
            return Self::Nothing;
        }
        // A killed run may have left one of this name behind.
        std::fs::remove_file(&path).ok();
        let mut options = std::fs::OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(&path);
        made.map_or(Self::Nothing, |_| Self::File(path))
    }

    /// The command, such that its shell leaves a note when it ends, if it is to.
    ///
    /// A trap changes neither what is printed nor the exit status, and stands on the line on which
    /// the command begins, so that the shell's messages count lines as the model does.
    fn around(&self, command: &str) -> String {
        let path = match self {
            Self::File(path) => path.clone(),
            Self::InMemory(held) => {
                let at = held.as_raw_fd();
                format!("/proc/{}/fd/{at}", std::process::id()).into()
            }
            Self::Held(_) | Self::Nothing => return command.to_owned(),
        };
        let path = path.display();
        let trap = format!("{{ command pwd -P >|\"{path}\"; }} 2>/dev/null");
        format!("trap '{trap}' EXIT; {command}")
    }

    /// The working directory in which the shell ended; `None` if that is not known.
    fn read(&self) -> Option<PathBuf> {
        let text = match self {
            Self::File(path) => std::fs::read_to_string(path).ok()?,
            Self::InMemory(held) => io::read_to_string(held).ok()?,
            Self::Held(directory) => {
                let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
                let path = std::fs::read_link(name).ok()?;
                // One that was removed has a name that is no directory's.
                return path.is_dir().then_some(path);
            }
            Self::Nothing => return None,
        };
        let path = text.strip_suffix('\n')?;
        Path::new(path).is_absolute().then(|| PathBuf::from(path))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Self::File(path) = self {
            std::fs::remove_file(path).ok();
        }
    }
}

/// Whether the environment gives a shell functions, or a file to read first, so that any word may mean
/// anything.
fn has_words_of_its_own(workspace: &Workspace) -> bool {
    let names = workspace.environment().iter().map(|(name, _)| name);
    names.map(|name| name.to_string_lossy()).any(|name| {
        let names = [
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "BASHOPTS",
            "POSIXLY_CORRECT",
        ];
        names.contains(&&*name) || name.starts_with("BASH_FUNC_")
    })
}

/// A file in memory.
#[cfg(target_os = "linux")]
fn in_memory() -> Option<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let made = rustix::fs::memfd_create("undertext-cwd", flags).ok()?;
    Some(File::from(made))
}
