//! What a process gives away before it runs anything for others.

use std::io;

use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::sandbox::{Bounds, Unenforceable};

/// Limits what one process may take, and lets the system end it first when memory runs out.
///
/// What all of them take together is looked after by the process that starts them: the system
/// counts reserved memory, of which some programs take a thousand times what they use, and does not
/// count the processes of root.
pub(super) fn limit(bounds: &Bounds) -> Result<(), Unenforceable> {
    let allowed = &bounds.limits;
    // A little more, so that who looks after them sees that they are too many.
    let processes = allowed.processes.saturating_add(allowed.processes / 8 + 64);
    for (resource, most) in [
        (Resource::Nofile, allowed.open_files),
        (Resource::Nproc, processes),
        (Resource::Fsize, allowed.file_size),
        (Resource::Core, 0),
    ] {
        let now = rustix::process::getrlimit(resource);
        let most = now.maximum.map_or(most, |now| now.min(most));
        let limit = Rlimit {
            current: Some(now.current.map_or(most, |now| now.min(most))),
            maximum: Some(most),
        };
        rustix::process::setrlimit(resource, limit)
            .map_err(|errno| Unenforceable::step("cannot limit what a process takes", errno))?;
    }
    // Only makes it likelier, which anybody may.
    std::fs::write("/proc/self/oom_score_adj", "500").ok();
    Ok(())
}

/// Gives every right away that goes beyond those of a user, and all ways to get one back.
pub(super) fn drop_all() -> Result<(), Unenforceable> {
    let failed = |errno: rustix::io::Errno| -> Unenforceable {
        Unenforceable::step("cannot drop capabilities", io::Error::from(errno))
    };
    rustix::thread::clear_ambient_capability_set().map_err(failed)?;
    let held = rustix::thread::capabilities(None).map_err(failed)?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for number in 0..64 {
            let capability = CapabilitySet::from_bits_retain(1 << number);
            match rustix::thread::remove_capability_from_bounding_set(capability) {
                Ok(()) => {}
                // Past the last one that this kernel knows.
                Err(rustix::io::Errno::INVAL) => break,
                Err(errno) => return Err(failed(errno)),
            }
        }
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).map_err(failed)?;
    rustix::thread::set_no_new_privs(true).map_err(failed)
}
