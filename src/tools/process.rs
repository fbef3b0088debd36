//! Processes: the one place where they are started and watched.
//!
//! A process gets no terminal where that can be had, no input unless there is some for it, and
//! only the environment it is given. It ends when it ends itself, not when its output closes;
//! then, or when its time is up, its whole [`Family`] is ended as well.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::tools::capture::Capture;
use crate::tools::family::{Family, MARK};
use crate::tools::workspace::Workspace;

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
    /// Whose session it is part of.
    pub(crate) session: Session,
}

/// Whose session a process is part of. A session may have a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    /// One of its own, begun by a program that starts it.
    Own,
    /// That of this process, which has no terminal either: one program less is started.
    Same,
}

impl Session {
    /// Whose it is in this workspace: a confined process has begun a session for all that it starts.
    pub(crate) fn within(workspace: &Workspace) -> Self {
        if workspace.is_confined() {
            Self::Same
        } else {
            Self::Own
        }
    }
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

/// Where something was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// On standard output, or on either where they are one.
    Output,
    /// On standard error.
    Errors,
}

/// Runs the job to its end, and ends whatever it leaves behind.
///
/// Fails only if it could not be started or watched. Dropping the future ends the processes too.
pub(crate) async fn run(job: &Job, cancel: &CancellationToken) -> io::Result<(Ended, Capture)> {
    let mut capture = Capture::default();
    let process = Process::start(job, None)?;
    let ended = process.follow(cancel, |_, bytes| capture.take(bytes));
    let ended = ended.await?;
    Ok((ended, capture))
}

/// The same for a job that is given this input, and what it printed on standard error apart.
pub(crate) async fn converse(
    job: &Job,
    input: Vec<u8>,
    cancel: &CancellationToken,
) -> io::Result<(Ended, Capture, Capture)> {
    let (mut output, mut errors) = (Capture::default(), Capture::default());
    let process = Process::start(job, Some(input))?;
    let ended = process.follow(cancel, |stream, bytes| match stream {
        Stream::Output => output.take(bytes),
        Stream::Errors => errors.take(bytes),
    });
    let ended = ended.await?;
    Ok((ended, output, errors))
}

/// A process that runs. It is ended, with its family, when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    family: Family,
    pipes: Pipes,
    limit: Duration,
}

impl Process {
    /// Starts the process. Without input there is one pipe for both its outputs, so that they come
    /// in their order.
    pub(crate) fn start(job: &Job, input: Option<Vec<u8>>) -> io::Result<Self> {
        let (output, writer) = io::pipe()?;
        let (errors, error_writer, taken, given) = match input {
            None => (None, writer.try_clone()?, Stdio::null(), None),
            Some(input) => {
                let (errors, error_writer) = io::pipe()?;
                let (reader, writer) = io::pipe()?;
                let given = Some((writer, input));
                (Some(errors), error_writer, Stdio::from(reader), given)
            }
        };
        let mut detach = DETACH.into_iter().map(Path::new);
        let detach = match job.session {
            Session::Own => detach.find(|program| program.exists()),
            Session::Same => None,
        };
        let program = detach.unwrap_or(&job.program);
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
            .stdin(taken)
            .stdout(writer)
            .stderr(error_writer)
            .kill_on_drop(true);
        let (child, family) = Family::begin(|mark| command.env(MARK, mark).spawn())?;
        let receiver = |reader| pipe::Receiver::from_owned_fd(OwnedFd::from(reader));
        let input = match given {
            None => None,
            Some((writer, bytes)) => {
                let sender = pipe::Sender::from_owned_fd(OwnedFd::from(writer))?;
                Some(Input {
                    sender,
                    bytes,
                    written: 0,
                })
            }
        };
        let complaints = if errors.is_some() { 8 << 10 } else { 0 };
        let pipes = Pipes {
            output: Some(receiver(output)?),
            errors: errors.map(receiver).transpose()?,
            input,
            room: (vec![0; 64 << 10], vec![0; complaints]),
        };
        Ok(Self {
            child,
            family,
            pipes,
            limit: job.limit,
        })
    }

    /// Watches the process to its end, handing on what it prints, and ends what it leaves behind.
    pub(crate) async fn follow(
        self,
        cancel: &CancellationToken,
        mut take: impl FnMut(Stream, &[u8]),
    ) -> io::Result<Ended> {
        let Self {
            mut child,
            mut family,
            mut pipes,
            limit,
        } = self;
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => Ended::Cancelled,
            status = watch(&mut child, &mut pipes, &mut take) => ended(status?),
            () = tokio::time::sleep(limit) => Ended::TimedOut,
        };
        let grace = match ended {
            Ended::Exit(_) | Ended::Signal(_) => None,
            Ended::TimedOut => Some(GRACE),
            Ended::Cancelled => Some(SHORT_GRACE),
        };
        if let Some(grace) = grace {
            family.ask_to_end();
            let watched = watch(&mut child, &mut pipes, &mut take);
            tokio::time::timeout(grace, watched).await.ok();
        } else {
            let rest = pipes.drain(&mut take);
            tokio::time::timeout(DRAIN, rest).await.ok();
        }
        let ending = async {
            if grace.is_none() && family.is_gone() {
                return Ok(family);
            }
            let ending = move || {
                family.end();
                family
            };
            tokio::task::spawn_blocking(ending).await
        };
        let family = ending.await;
        child.wait().await?;
        drop(family);
        // Nobody writes any more, unless somebody escaped.
        tokio::time::timeout(DRAIN, pipes.drain(&mut take))
            .await
            .ok();
        Ok(ended)
    }
}

/// The ends of a process's pipes that are ours. `None`: closed, or never there.
#[derive(Debug)]
struct Pipes {
    output: Option<pipe::Receiver>,
    errors: Option<pipe::Receiver>,
    input: Option<Input>,
    /// Where what is printed is read, and what is complained of.
    room: (Vec<u8>, Vec<u8>),
}

/// Input that is being written.
#[derive(Debug)]
struct Input {
    sender: pipe::Sender,
    bytes: Vec<u8>,
    written: usize,
}

impl Pipes {
    /// Hands on what is printed and writes the input, until all pipes are closed.
    async fn drain(&mut self, take: &mut impl FnMut(Stream, &[u8])) {
        let Self {
            output,
            errors,
            input,
            room: (printed, complained),
        } = self;
        while output.is_some() || errors.is_some() || input.is_some() {
            tokio::select! {
                read = read(output, printed) => take(Stream::Output, &printed[..read]),
                read = read(errors, complained) => take(Stream::Errors, &complained[..read]),
                () = write(input) => {}
            }
        }
    }
}

/// Reads what comes next; waits for ever if the pipe is closed, and closes it at its end.
async fn read(pipe: &mut Option<pipe::Receiver>, bytes: &mut [u8]) -> usize {
    let Some(open) = pipe else {
        return std::future::pending().await;
    };
    let read = open.read(bytes).await.unwrap_or(0);
    if read == 0 {
        *pipe = None;
    }
    read
}

/// Writes what fits; waits for ever if the pipe is closed, and closes it when all is written or
/// nobody reads.
async fn write(input: &mut Option<Input>) {
    let Some(open) = input else {
        return std::future::pending().await;
    };
    let written = open.sender.write(&open.bytes[open.written..]).await;
    open.written += written.as_ref().map_or(0, |written| *written);
    if written.is_err() || open.written == open.bytes.len() {
        *input = None;
    }
}

/// Reads the output until the process has ended.
async fn watch(
    child: &mut Child,
    pipes: &mut Pipes,
    take: &mut impl FnMut(Stream, &[u8]),
) -> io::Result<ExitStatus> {
    tokio::select! {
        status = child.wait() => status,
        never = async {
            pipes.drain(take).await;
            std::future::pending().await
        } => never,
    }
}

/// How a process with this status ended.
fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exit(code),
        (None, signal) => Ended::Signal(signal.unwrap_or_default()),
    }
}
