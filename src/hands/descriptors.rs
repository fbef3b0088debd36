//! What a process was started with above its standard streams: nothing of it is for tools.
//!
//! What this program opens itself reaches no other one. What whoever started it left open would.

use std::io;
use std::os::fd::{IntoRawFd as _, RawFd};

use rustix::process::{PidfdFlags, PidfdGetfdFlags};

/// The first descriptor that is no standard stream.
const FIRST: RawFd = 3;

/// Keeps what this program was started with from every program that it starts; it can still be used
/// here, by its number.
///
/// To be called by a program's main function before anything else. Fails where the system cannot do
/// so; a confined process then closes what it gets.
pub fn withhold_descriptors() -> io::Result<()> {
    let inherited = inherited()?;
    let own = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    for descriptor in inherited {
        if is_withheld(descriptor) {
            continue;
        }
        // Nothing marks a number, so what it stands for is opened there once more with the mark.
        let copy = rustix::process::pidfd_getfd(&own, descriptor, PidfdGetfdFlags::empty())?;
        nix::unistd::close(descriptor)?;
        // Whoever means it by its number owns it.
        let _number = rustix::io::fcntl_dupfd_cloexec(&copy, descriptor)?.into_raw_fd();
    }
    Ok(())
}

/// Closes what this process was started with. It has opened nothing itself yet.
pub(super) fn close_inherited() -> io::Result<()> {
    for descriptor in inherited()? {
        nix::unistd::close(descriptor)?;
    }
    Ok(())
}

/// What is open above the standard streams.
fn inherited() -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        found.extend(number.filter(|number: &RawFd| *number >= FIRST));
    }
    // The one that listed them is closed by now.
    found.retain(|number| std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok());
    Ok(found)
}

/// Whether it is closed when another program takes this one's place.
fn is_withheld(descriptor: RawFd) -> bool {
    const CLOSED: u32 = 0o2_000_000;
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}"));
    let text = text.unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & CLOSED != 0)
}
