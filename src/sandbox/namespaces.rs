//! Namespaces of a process's own: files, processes, network and messages.

use nix::sched::CloneFlags;
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::sandbox::Unenforceable;

/// What the process needs until it has given everything away.
const NEEDED: [CapabilitySet; 4] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::SETPCAP,
    CapabilitySet::DAC_OVERRIDE,
];

/// Who a process is, asked before it has namespaces of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    user: u32,
    group: u32,
}

/// Gives this process, which has one thread, namespaces of its own; its processes come with the
/// next one it starts. With `network` it keeps the network that it has.
pub(crate) fn begin_own(network: bool) -> Result<Ids, Unenforceable> {
    let ids = Ids {
        user: rustix::process::geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
    };
    let mut flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC;
    if !network {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    nix::sched::unshare(flags)
        .map_err(|errno| Unenforceable::Namespaces("no namespaces can be had", errno.into()))?;
    Ok(ids)
}

/// Limits what segments of memory that are known by a number hold together, mapped or not: half of
/// what may be used, in pages. Not every system lets every user limit their own.
pub(super) fn limit_segments(memory: u64) {
    let pages = memory / 2 / rustix::param::page_size() as u64;
    std::fs::write("/proc/sys/kernel/shmall", pages.to_string()).ok();
}

/// Lets the user be known by the same numbers, and the next program keep the rights that are needed
/// to lay out what it may see.
pub(crate) fn map_ids(ids: Ids) -> Result<(), Unenforceable> {
    let Ids { user, group } = ids;
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        std::fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| Unenforceable::Namespaces("users cannot be mapped", error))?;
    }
    let failed = |errno: rustix::io::Errno| {
        Unenforceable::Namespaces("capabilities cannot be kept", errno.into())
    };
    let sets = rustix::thread::capabilities(None).map_err(failed)?;
    let needed = NEEDED
        .into_iter()
        .fold(CapabilitySet::empty(), |all, one| all | one);
    let sets = CapabilitySets {
        inheritable: needed,
        ..sets
    };
    rustix::thread::set_capabilities(None, sets).map_err(failed)?;
    for capability in NEEDED {
        rustix::thread::configure_capability_in_ambient_set(capability, true).map_err(failed)?;
    }
    Ok(())
}
