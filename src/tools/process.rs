//! Processes: the one place where they are started, watched and ended.
//!
//! A process gets no input, no terminal where that can be had, and only the environment it is
//! given. It ends when it ends itself, not when its output closes; then, or when its time is up,
//! everything that descends from it is ended as well: its process group, and on Linux every
//! process whose environment carries the mark of the call.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::tools::capture::Capture;

/// The variable that marks a process and all that descends from it.
const MARK: &str = "UNDERTEXT_CALL";

/// How long output is still read after the process has ended.
const DRAIN: Duration = Duration::from_millis(200);

/// How long a process may take to end after it was asked to.
const GRACE: Duration = Duration::from_millis(500);

/// The same when a person is waiting.
const SHORT_GRACE: Duration = Duration::from_millis(100);

/// Programs that start another one without a terminal.
const DETACH: [&str; 2] = ["/usr/bin/setsid", "/bin/setsid"];

/// What to run.
#[derive(Debug)]
pub(crate) struct Job {
    /// The program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// Its working directory.
    pub(crate) directory: PathBuf,
    /// Its whole environment, but for the mark.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// How long it may run.
    pub(crate) limit: Duration,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, with this status.
    Exit(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// By us: its time was up.
    TimedOut,
    /// By us: it was no longer wanted.
    Cancelled,
}

/// Runs the job to its end, and ends whatever it leaves behind.
///
/// Fails only if it could not be started or watched. Dropping the future ends the processes too.
pub(crate) async fn run(job: &Job, cancel: &CancellationToken) -> io::Result<(Ended, Capture)> {
    let (mut child, mut family, mut output) = start(job)?;
    let mut capture = Capture::default();
    let ended = tokio::select! {
        biased;
        () = cancel.cancelled() => Ended::Cancelled,
        status = watch(&mut child, &mut output, &mut capture) => ended(status?),
        () = tokio::time::sleep(job.limit) => Ended::TimedOut,
    };
    let grace = match ended {
        Ended::Exit(_) | Ended::Signal(_) => None,
        Ended::TimedOut => Some(GRACE),
        Ended::Cancelled => Some(SHORT_GRACE),
    };
    if let Some(grace) = grace {
        family.ask_to_end();
        let watched = watch(&mut child, &mut output, &mut capture);
        tokio::time::timeout(grace, watched).await.ok();
    } else {
        let rest = drain(&mut output, &mut capture);
        tokio::time::timeout(DRAIN, rest).await.ok();
    }
    let family = tokio::task::spawn_blocking(move || {
        family.end();
        family
    });
    drop(family.await);
    child.wait().await?;
    // Nobody writes any more, unless somebody escaped.
    tokio::time::timeout(DRAIN, drain(&mut output, &mut capture))
        .await
        .ok();
    Ok((ended, capture))
}

/// Starts the process with one pipe for both its outputs, so that they come in their order.
fn start(job: &Job) -> io::Result<(Child, Family, pipe::Receiver)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mark = format!("{}.{number}", std::process::id());
    let (reader, writer) = io::pipe()?;
    let detach = DETACH
        .into_iter()
        .find(|program| Path::new(program).exists());
    let program = detach.map_or(job.program.as_path(), Path::new);
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place where processes start"
    )]
    let mut command = Command::new(program);
    if detach.is_some() {
        // The new session makes the new group; as a group's leader it could not begin one.
        command.arg(&job.program);
    } else {
        command.process_group(0);
    }
    command
        .args(&job.arguments)
        .current_dir(&job.directory)
        .env_clear()
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .env(MARK, &mark)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .kill_on_drop(true);
    let child = command.spawn()?;
    let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let family = Family {
        leader,
        mark,
        ended: false,
    };
    let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
    Ok((child, family, output))
}

/// Reads the output until the process has ended.
async fn watch(
    child: &mut Child,
    output: &mut pipe::Receiver,
    capture: &mut Capture,
) -> io::Result<ExitStatus> {
    tokio::select! {
        status = child.wait() => status,
        never = async {
            drain(output, capture).await;
            std::future::pending().await
        } => never,
    }
}

/// Reads the output until it closes.
async fn drain(output: &mut pipe::Receiver, capture: &mut Capture) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match output.read(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(read) => capture.take(&bytes[..read]),
        }
    }
}

/// How a process with this status ended.
fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exit(code),
        (None, signal) => Ended::Signal(signal.unwrap_or_default()),
    }
}

/// A process and everything that descends from it. All of it is ended when this is dropped.
#[derive(Debug)]
struct Family {
    leader: Option<Pid>,
    mark: String,
    ended: bool,
}

impl Family {
    /// Asks the process and its group to end.
    fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends all of it.
    fn end(&mut self) {
        if !self.ended {
            self.signal(Signal::KILL);
            end_marked(&self.mark);
            self.ended = true;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            rustix::process::kill_process_group(leader, signal).ok();
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends every process that carries the mark, until there is none, also if they multiply.
#[cfg(target_os = "linux")]
fn end_marked(mark: &str) {
    const PASSES: usize = 500;
    let variable = format!("{MARK}={mark}");
    for _ in 0..PASSES {
        if !signal_marked(variable.as_bytes()) {
            return;
        }
        // An ended process keeps its environment for a moment.
        std::thread::sleep(Duration::from_millis(1));
    }
    tracing::warn!(mark, "processes of a call could not be ended");
}

/// Looks for marked processes once; whether there were any.
#[cfg(target_os = "linux")]
fn signal_marked(variable: &[u8]) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    let mut found = false;
    for entry in processes.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.parse().ok())
            .and_then(Pid::from_raw);
        let Some(pid) = pid else { continue };
        // Opened before it is looked at, so that the signal meets what was looked at.
        let flags = rustix::process::PidfdFlags::empty();
        let Ok(process) = rustix::process::pidfd_open(pid, flags) else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|set| set == variable)
        {
            found = true;
            rustix::process::pidfd_send_signal(&process, Signal::KILL).ok();
        }
    }
    found
}

/// Elsewhere the environment of other processes cannot be seen: the group has to do.
#[cfg(not(target_os = "linux"))]
fn end_marked(_mark: &str) {}
