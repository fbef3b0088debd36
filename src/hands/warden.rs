//! Who stands beside hands that have no processes of their own: a warden.
//!
//! With namespaces the kernel ends whatever hands have begun when they end, and nobody in there can stop
//! them. With Landlock alone a warden sees to that: it starts hands, lets them go on when a tool has
//! stopped them, and gets whatever outlives them, which it ends. The sandbox does not hold it, so tools
//! cannot signal it (from Landlock 6 on), and it runs nothing but hands.

use std::io;
use std::os::unix::net::UnixStream;
use std::process::Command;

use rustix::process::{DumpableBehavior, Pid, Signal, WaitId, WaitIdOptions};
use tokio::io::Interest;
use tokio::net::UnixStream as Socket;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::Instant;

use crate::hands::attend::{self, AttendError};
use crate::hands::keeper::CLOSING;
use crate::hands::limits;
use crate::tools::family;

/// Starts hands, which have this socket as well, and stays until nothing is left of them.
pub(super) fn stand(mut socket: UnixStream, mut hands: Command) -> Result<(), AttendError> {
    rustix::process::setsid().ok();
    // Whatever hands leave behind becomes a child of this process.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(io::Error::from)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let entered = runtime.enter();
    // It is read by hands. Here it only says when it is closed.
    socket.set_nonblocking(true)?;
    let watched = Socket::from_std(socket.try_clone()?)?;
    // Listened to before there is anything to hear.
    let changes = signal(SignalKind::child())?;
    let leader = match hands.spawn() {
        Ok(child) => Pid::from_child(&child),
        Err(error) => return attend::unstarted(&mut socket, &error),
    };
    drop(entered);
    let stayed = runtime.block_on(stay(&watched, leader, changes));
    family::end_strays();
    Ok(stayed?)
}

/// Stays until hands have ended. When nobody speaks to them any more, they have a moment for that.
async fn stay(socket: &Socket, hands: Pid, mut changes: Signals) -> io::Result<()> {
    limits::hurry();
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut end: Option<Instant> = None;
    while live(hands)? {
        tokio::select! {
            _ = changes.recv() => {}
            _ = socket.ready(Interest::PRIORITY), if end.is_none() => {
                end = Some(Instant::now() + CLOSING);
            }
            () = tokio::time::sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => {
                rustix::process::kill_process(hands, Signal::KILL).ok();
                end = Some(Instant::now() + CLOSING);
            }
        }
    }
    Ok(())
}

/// Whether hands have not ended. If they were stopped, they go on.
fn live(hands: Pid) -> io::Result<bool> {
    let asked = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    while let Some(changed) = rustix::process::waitid(WaitId::Pid(hands), asked)? {
        if !changed.stopped() {
            return Ok(false);
        }
        rustix::process::kill_process(hands, Signal::CONT)?;
    }
    Ok(true)
}
