//! The confined process itself: holds itself to its bounds, then performs orders until it is left.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{DumpableBehavior, Signal};
use tokio::io::BufReader;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::hands::charter::{Charter, Opening};
use crate::hands::descriptors;
use crate::hands::fallen::Guard;
use crate::hands::frames::Frame;
use crate::hands::hints::Hints;
use crate::hands::launch::Stage;
use crate::hands::left::Left;
use crate::hands::limits::{self, Limits};
use crate::hands::vanishing::Vanishing;
use crate::hands::{Answer, Ask, passing, serve, warden};
use crate::sandbox::{self, Mechanism, Walls};
use crate::tools::{Outcome, family};

/// How long a thread that does nothing is kept: for as long as a run takes.
const KEPT: Duration = Duration::from_secs(365 * 86_400);

/// The process cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum AttendError {
    /// It was started by something else than hands.
    #[error("this is started by a run, not by hand")]
    Stage,
    /// It cannot go on.
    #[error("the process for tools cannot go on")]
    System(#[from] io::Error),
}

/// Serves as a confined process, until whoever started it is gone.
///
/// To be called by a program's main function before anything else, while it has one thread and
/// nothing open, with the stage that it was started with; its standard input is where orders come
/// from. Whatever else is open is closed. `arguments` start this program again, to get here with
/// another stage.
pub fn attend(stage: &str, arguments: &[&str]) -> Result<(), AttendError> {
    let stage = Stage::of(stage).ok_or(AttendError::Stage)?;
    descriptors::close_inherited()?;
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let stage = if stage == Stage::Ahead {
        let Some(told) = told(&mut socket)? else {
            return Ok(());
        };
        told
    } else {
        stage
    };
    match stage {
        Stage::Ahead => Err(AttendError::Stage),
        Stage::Alone => warden::stand(socket, again(arguments, Stage::Kept)),
        // Its orders end with the brain; then it ends what it has begun, and its warden the rest.
        Stage::Kept => {
            rustix::process::setsid().ok();
            open(socket, Mechanism::Landlock)
        }
        Stage::ApartOnline => apart(true, socket, arguments),
        Stage::Apart => apart(false, socket, arguments),
        Stage::Inside => {
            // Whatever ends those above ends this, and the kernel what this has begun.
            die_with_parent()?;
            // The one above began a session that cannot be seen from here. What tools start is part of
            // this one.
            rustix::process::setsid().map_err(io::Error::from)?;
            open(socket, Mechanism::Namespaces)
        }
        Stage::Free => warden::stand(socket, again(arguments, Stage::Loose)),
        Stage::Loose => {
            rustix::process::setsid().ok();
            free(socket)
        }
    }
}

/// The stage of a process that was started ahead; `None` if none is needed.
fn told(socket: &mut UnixStream) -> Result<Option<Stage>, AttendError> {
    let Some(frame) = Frame::next_now(socket)? else {
        return Ok(None);
    };
    let word: String = frame.message()?;
    Stage::of(&word).map(Some).ok_or(AttendError::Stage)
}

/// This program once more, at another stage, with the same socket.
fn again(arguments: &[&str], stage: Stage) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "this very program, which runs nothing of anybody's"
    )]
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments).arg(stage.word()).env_clear();
    command.stdin(Stdio::inherit());
    command
}

/// Lets the kernel kill this process with the one that started it.
fn die_with_parent() -> Result<(), AttendError> {
    let asked = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    Ok(asked.map_err(io::Error::from)?)
}

/// Takes namespaces, and begins once more as their first process.
fn apart(network: bool, mut socket: UnixStream, arguments: &[&str]) -> Result<(), AttendError> {
    rustix::process::setsid().ok();
    let ids = sandbox::begin_own(network).and_then(sandbox::map_ids);
    if let Err(error) = ids {
        return refuse(&mut socket, &error);
    }
    // Only now: who becomes another user to the kernel may be forgotten.
    die_with_parent()?;
    match again(arguments, Stage::Inside).spawn() {
        Ok(mut child) => {
            drop(socket);
            // All of its processes end with it.
            child.wait()?;
            Ok(())
        }
        Err(error) => unstarted(&mut socket, &error),
    }
}

/// Says that the process in which tools would run cannot be started.
pub(super) fn unstarted(socket: &mut UnixStream, error: &io::Error) -> Result<(), AttendError> {
    let text = format!("the process for tools cannot be started: {error}");
    say(socket, &Opening::Refused(text))
}

/// Holds this process to its bounds, says so, and serves.
fn open(mut socket: UnixStream, mechanism: Mechanism) -> Result<(), AttendError> {
    // A warden has it as well, and waits for nothing there.
    socket.set_nonblocking(false)?;
    let Some(frame) = Frame::next_now(&mut socket)? else {
        return Ok(());
    };
    let mut charter: Charter = frame.message()?;
    let limits = Limits::of(&charter.bounds.limits);
    charter.bounds.limits.memory = Some(limits.memory());
    // Who looks after limits is to have its turn before what it looks at. This is the time to ask.
    let usual = limits::hurry();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(io::Error::from)?;
    let walls = match sandbox::enforce(&charter.bounds, mechanism) {
        Ok(walls) => walls,
        Err(error) => return refuse(&mut socket, &error),
    };
    // Tools are of the same user: they may not read this process, nor write its memory.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(io::Error::from)?;
    let temporary = match mechanism {
        Mechanism::Namespaces => charter.bounds.temporary(),
        Mechanism::Landlock => charter.bounds.own("tmp").unwrap_or_else(|| "/tmp".into()),
    };
    let proxy = if charter.bounds.has_proxy(mechanism) {
        Some(TcpListener::bind("127.0.0.1:0")?)
    } else {
        None
    };
    let mut written = charter.bounds.written();
    written.push(temporary.clone());
    let limits = Arc::new(limits.writing(&written));
    Arc::clone(&limits).watch()?;
    if let Some(usual) = usual {
        rustix::process::setpriority_process(None, usual).map_err(io::Error::from)?;
    }
    let root = charter.root().to_owned();
    let mut roots = charter.bounds.written();
    roots.retain(|root| root.is_dir() && !walls.protected.is_granted(root));
    let left = Left::new(&root, roots, &walls, charter.before.clone());
    let ready = Opening::Ready(walls.enforced.clone(), left.before());
    say(&mut socket, &ready)?;
    if let Some(listener) = &proxy {
        passing::send(&socket, listener)?;
    }
    let address = proxy.map(|listener| listener.local_addr()).transpose()?;
    let workspace = charter.workspace(temporary, address, &walls);
    let hints = Hints::of(&charter.bounds, workspace.variable("PATH"));
    let bench = serve::Bench::new(workspace, charter.tools).alone();
    let bench = bench
        .held(hints, limits)
        .telling(Vanishing::of(&charter.bounds, mechanism), left);
    serve_until_left(socket, bench, Some(&walls))
}

/// Serves without any bounds. What tools have begun ends when nobody speaks to this process any more.
fn free(mut socket: UnixStream) -> Result<(), AttendError> {
    // A warden has it as well, and waits for nothing there.
    socket.set_nonblocking(false)?;
    let Some(frame) = Frame::next_now(&mut socket)? else {
        return Ok(());
    };
    let charter: Charter = frame.message()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(io::Error::from)?;
    let bench = serve::Bench::new(charter.open_workspace(), charter.tools).alone();
    serve_until_left(socket, bench, None)
}

/// Performs what is asked until nobody asks any more. What still blocks, and every process that is left,
/// ends then.
fn serve_until_left(
    socket: UnixStream,
    bench: serve::Bench,
    walls: Option<&Walls>,
) -> Result<(), AttendError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(KEPT)
        .build()?;
    runtime.block_on(work(socket, bench, walls))?;
    runtime.shutdown_background();
    family::end_all();
    Ok(())
}

/// Says why not.
fn refuse(socket: &mut UnixStream, error: &sandbox::Unenforceable) -> Result<(), AttendError> {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    say(
        socket,
        &match error {
            sandbox::Unenforceable::Namespaces(..) | sandbox::Unenforceable::Landlock(_) => {
                Opening::Without(text)
            }
            sandbox::Unenforceable::Step { .. }
            | sandbox::Unenforceable::Seccomp(_)
            | sandbox::Unenforceable::Hosts
            | sandbox::Unenforceable::NoSystem => Opening::Refused(text),
        },
    )
}

fn say(socket: &mut UnixStream, opening: &Opening) -> Result<(), AttendError> {
    let frame = Frame::of(opening, Vec::new());
    let frame = frame.ok_or_else(|| io::Error::other("nothing to say"))?;
    Ok(frame.send_now(socket)?)
}

/// Performs what is asked until nobody asks any more.
async fn work(socket: UnixStream, bench: serve::Bench, walls: Option<&Walls>) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    // A file that grows too large is an error where it is written, and no end of this process.
    let _outlived = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?;
    // A thread that is there already can end processes when there are too many for another one.
    tokio::task::spawn_blocking(|| ()).await?;
    let (read, mut write) = tokio::net::UnixStream::from_std(socket)?.into_split();
    let mut read = BufReader::new(read);
    let (ask, asked) = mpsc::unbounded_channel();
    let (answer, mut answers) = mpsc::unbounded_channel();
    let breached = answer.clone();
    let guard = Guard::new(walls);
    let reading = async {
        // It is let go of when nothing more is asked.
        let (ask, breached) = (ask, breached);
        while let Ok(Some(frame)) = Frame::next(&mut read).await {
            let Ok(message) = frame.message::<Ask>() else {
                break;
            };
            if let Ask::Order(order) = &message
                && let Some(answer) = guard.begin(order)
            {
                // The next process builds them anew.
                breached.send(answer).ok();
                break;
            }
            if ask.send(message).is_err() {
                break;
            }
        }
        // Who ends orderly has let all of it end. What a run that was killed leaves running is not asked
        // to end: whoever takes the run up may act already.
        family::end_running();
    };
    let writing = async {
        while let Some(answer) = answers.recv().await {
            if framed(guard.settle(answer)).send(&mut write).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        _ = async { tokio::join!(reading, writing, serve::serve(bench, asked, answer)) } => {}
        () = guard.watch() => {}
    }
    Ok(())
}

/// The frame of an answer; what is too large for one is told instead.
fn framed(mut answer: Answer) -> Frame {
    let mut blob = Vec::new();
    if let Answer::Done { outcome, .. } | Answer::Last { outcome, .. } = &mut answer {
        blob = outcome.whole.take().unwrap_or_default();
    }
    if let Some(frame) = Frame::of(&answer, blob) {
        return frame;
    }
    if let Answer::Done { outcome, .. } | Answer::Last { outcome, .. } = &mut answer {
        let text = "What the tool answered is too large. What it did has taken effect.";
        **outcome = Outcome::error(text).with_facts(std::mem::take(&mut outcome.facts));
    }
    Frame::of(&answer, Vec::new()).unwrap_or_default()
}
