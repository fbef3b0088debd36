//! Who starts a confined process, and waits for its end.

use std::io::{self, BufRead as _, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::sync::oneshot;

use crate::hands::launch::{ConfinedError, Launch, Stage};
use crate::tools::family;

/// How long it may take to end what runs, once nobody asks any more.
pub(super) const CLOSING: Duration = Duration::from_secs(3);

/// How long a warden may take to end what hands leave behind, beyond the time that hands have.
const CLEARING: Duration = Duration::from_secs(20);

/// How often a process that is to end is looked at, whether it was stopped.
const RESUMING: Duration = Duration::from_millis(100);

/// How much of its complaints is told.
const COMPLAINTS: u64 = 64 << 10;

/// Keeps a process: it lives no longer than the thread that started it, which waits for it.
#[derive(Debug)]
pub(super) struct Keeper {
    leader: Pid,
    /// Whether it ends what hands leave behind once nobody speaks to them, and then itself.
    is_warden: bool,
    ended: Option<oneshot::Receiver<()>>,
}

/// A process that is being started.
#[derive(Debug)]
pub(super) struct Starting {
    told: oneshot::Receiver<io::Result<Pid>>,
    ended: oneshot::Receiver<()>,
}

impl Starting {
    /// Starts a process, which has this socket, in a thread that stays with it.
    pub(super) fn begin(launch: &Launch, stage: Stage, socket: UnixStream) -> io::Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one process that is not a tool's, in which all of those run"
        )]
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .arg(stage.word())
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(socket))
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let (tell, told) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        // The process dies with the thread that started it, so no thread of a pool may do that.
        let kept = std::thread::Builder::new().name("hands".to_owned());
        kept.spawn(move || {
            let started = command.spawn();
            // What it was given is its own now.
            drop(command);
            match started {
                Ok(child) => {
                    let leader = Pid::from_child(&child);
                    let lives = family::adopt(leader);
                    tell.send(if lives {
                        Ok(leader)
                    } else {
                        Err(io::Error::other("the program is ending"))
                    })
                    .ok();
                    if !lives {
                        rustix::process::kill_process(leader, Signal::KILL).ok();
                    }
                    watch(child);
                    family::release(leader);
                }
                Err(error) => {
                    tell.send(Err(error)).ok();
                }
            }
            end.send(()).ok();
        })?;
        Ok(Self { told, ended })
    }

    /// Waits until it is started, as one of this stage.
    pub(super) async fn keep(self, stage: Stage) -> Result<Keeper, ConfinedError> {
        let leader = self.told.await.map_err(|_| ConfinedError::Stranger)?;
        Ok(Keeper {
            leader: leader.map_err(ConfinedError::Start)?,
            is_warden: matches!(stage, Stage::Alone | Stage::Free),
            ended: Some(self.ended),
        })
    }
}

impl Keeper {
    /// Ends the process, and waits until it is gone. One that ends by itself is given a moment.
    pub(super) async fn end(mut self) {
        if !self.ends_within(CLOSING).await {
            self.kill().await;
        }
    }

    /// Whether the process ends by itself within so long. Tools may have stopped it: then it goes on.
    async fn ends_within(&mut self, limit: Duration) -> bool {
        let Some(mut ended) = self.ended.take() else {
            return true;
        };
        let leader = self.leader;
        let resuming = async {
            loop {
                resume(leader);
                tokio::time::sleep(RESUMING).await;
            }
        };
        tokio::select! {
            biased;
            _ = &mut ended => return true,
            _ = tokio::time::timeout(limit, resuming) => {}
        }
        self.ended = Some(ended);
        false
    }

    /// Sends a signal, if the process has not ended: its number may be another's by then.
    pub(super) fn signal(&mut self, signal: Signal) {
        let Some(ended) = &mut self.ended else {
            return;
        };
        if ended.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
            rustix::process::kill_process(self.leader, signal).ok();
        } else {
            self.ended = None;
        }
    }

    /// Kills the process, and waits until it is gone, unless the system cannot end it. Nobody speaks
    /// to it any more.
    pub(super) async fn kill(&mut self) {
        if self.is_warden {
            if self.ends_within(CLOSING + CLEARING).await {
                return;
            }
            // It hangs: what is below it would outlive it.
            let leader = self.leader;
            let ending = tokio::task::spawn_blocking(move || family::end_tree(leader));
            ending.await.ok();
        }
        self.signal(Signal::KILL);
        if let Some(ended) = self.ended.take() {
            tokio::time::timeout(CLOSING, ended).await.ok();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Nobody has waited for its end. A warden sees that nobody speaks to it.
        if !self.is_warden
            && let Some(mut ended) = self.ended.take()
            && ended.try_recv() == Err(oneshot::error::TryRecvError::Empty)
        {
            rustix::process::kill_process(self.leader, Signal::KILL).ok();
        }
    }
}

/// Lets a process of this one's go on if it was stopped.
fn resume(leader: Pid) {
    // Only whoever has not been waited for is told of, so the number is its own.
    let asked = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    if let Ok(Some(_)) = rustix::process::waitid(WaitId::Pid(leader), asked) {
        tracing::warn!("the process for tools was stopped by somebody, and goes on to end");
        rustix::process::kill_process(leader, Signal::CONT).ok();
    }
}

/// Tells what a process complains of, and waits for its end.
fn watch(mut child: Child) {
    if let Some(errors) = child.stderr.take() {
        let mut told = io::BufReader::new(errors.take(COMPLAINTS));
        let mut line = Vec::new();
        while told.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line);
            tracing::warn!(text = text.trim_end(), "the process for tools");
            line.clear();
        }
        io::copy(&mut told.into_inner().into_inner(), &mut io::sink()).ok();
    }
    child.wait().ok();
}
