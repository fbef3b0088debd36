//! A filter of system calls: those that lead out of any bounds are refused.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use crate::sandbox::{Bounds, Mechanism, Unenforceable, modes};

/// Refused whatever their arguments are.
const REFUSED: &[i64] = &[
    // Other file systems, other roots, other namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Other processes.
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Doors of the kernel.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_vhangup,
    libc::SYS_syslog,
    // The machine.
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
];

/// Refused where others share the memory, the messages and the signs that they reach.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// `open_tree_attr`, which is newer than its name is known.
const OPEN_TREE_ATTR: i64 = 467;

/// Refused where the processes of others are in sight. Among processes of one's own debuggers may do
/// their work; the first of them does not let itself be looked into.
const TRACING: [i64; 3] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
];

/// The sockets that tell of a network's interfaces.
const ROUTES: u64 = 0;

/// Where the kind of a socket stands among its flags.
const KINDS: u64 = 0xf;

/// Flags that ask for a namespace.
const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    // `CLONE_NEWTIME`
    0x80,
];

/// Requests to terminals that type for their user.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Numbers of another set of system calls begin here, which some kernels of this machine have.
#[cfg(target_arch = "x86_64")]
const OTHER_SET: i64 = 0x4000_0000;

/// Calls with numbers of their own there: ioctl, ptrace, `kexec_load`, the memory of others.
#[cfg(target_arch = "x86_64")]
const OTHERS: [i64; 5] = [514, 521, 528, 539, 540];

/// The first Landlock that keeps abstract sockets of others out of reach.
const SCOPES: u8 = 6;

/// What is refused of each call: whatever fits one of its rules, all of it if there is none.
pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Filters the calls of this thread and of everything that it starts.
pub(super) fn filter(
    bounds: &Bounds,
    mechanism: Mechanism,
    landlock: u8,
) -> Result<(), Unenforceable> {
    let filter = |errno: i32, rules: Rules| {
        let errno = SeccompAction::Errno(errno.unsigned_abs());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, errno, arch()?);
        let program: seccompiler::BpfProgram = filter
            .and_then(TryInto::try_into)
            .map_err(|error| failed(&error))?;
        seccompiler::apply_filter(&program)
            .map_err(|error| Unenforceable::Seccomp(error.to_string()))
    };
    // Their flags lie in memory, where no filter sees them; who is told that there is no such call
    // uses the older one.
    filter(libc::ENOSYS, newer())?;
    filter(
        libc::EPERM,
        rules(bounds, mechanism, landlock).map_err(|error| failed(&error))?,
    )
}

/// What there is said not to be, in each set of calls.
fn newer() -> Rules {
    let newer = [libc::SYS_clone3, libc::SYS_openat2];
    in_either_set(newer.map(|call| (call, Vec::new())).into())
}

/// The same rules, for the calls of the other set as well.
#[cfg(target_arch = "x86_64")]
fn in_either_set(mut rules: Rules) -> Rules {
    let usual = rules.iter();
    let there: Vec<_> = usual
        .map(|(call, rules)| (call | OTHER_SET, rules.clone()))
        .collect();
    rules.extend(there);
    rules
}

/// There is one set of calls.
#[cfg(not(target_arch = "x86_64"))]
fn in_either_set(rules: Rules) -> Rules {
    rules
}

/// The pairs of sockets that are refused: all but those without a name, and unless named ones are out of
/// sight (`apart`) those that send datagrams, since such a one sends to any name as well as to its other
/// half.
fn pairs(apart: bool) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    use SeccompCmpOp::{MaskedEq, Ne};
    let word =
        |argument, op, value| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value);
    let unnamed = u64::from(libc::AF_UNIX.unsigned_abs());
    let mut refused = vec![SeccompRule::new(vec![word(0, Ne, unnamed)?])?];
    if !apart {
        // Above the kind stand flags. One asked for as raw is made one of datagrams.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            let is_kind = word(1, MaskedEq(KINDS), u64::from(kind.unsigned_abs()))?;
            refused.push(SeccompRule::new(vec![is_kind])?);
        }
    }
    Ok(refused)
}

fn failed(error: &seccompiler::BackendError) -> Unenforceable {
    Unenforceable::Seccomp(error.to_string())
}

/// The kind of this machine.
fn arch() -> Result<TargetArch, Unenforceable> {
    std::env::consts::ARCH
        .try_into()
        .map_err(|_| Unenforceable::Seccomp("not on this kind of machine".to_owned()))
}

/// What is refused.
fn rules(
    bounds: &Bounds,
    mechanism: Mechanism,
    landlock: u8,
) -> Result<Rules, seccompiler::BackendError> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let word =
        |argument, op, value| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value);
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(OPEN_TREE_ATTR, Vec::new());
    rules.extend(modes::rules(bounds)?);
    if mechanism == Mechanism::Landlock {
        rules.extend(SHARED.iter().map(|call| (*call, Vec::new())));
        rules.extend(TRACING.map(|call| (call, Vec::new())));
    }
    let mut new = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.cast_unsigned());
        new.push(SeccompRule::new(vec![word(0, MaskedEq(flag), flag)?])?);
    }
    rules.insert(libc::SYS_unshare, new.clone());
    // The last flag shares its place with the signal.
    new.pop();
    rules.insert(libc::SYS_clone, new);
    // A limit of another process ends it as surely as a signal. 0 is the caller itself.
    let others = SeccompRule::new(vec![word(0, Ne, 0)?])?;
    rules.insert(libc::SYS_prlimit64, vec![others]);
    let typing = TYPING.map(|request| SeccompRule::new(vec![word(1, Eq, request)?]));
    rules.insert(
        libc::SYS_ioctl,
        typing.into_iter().collect::<Result<_, _>>()?,
    );
    let mut families = vec![libc::AF_INET, libc::AF_INET6, libc::AF_UNIX];
    // Sockets with a name are out of sight; those without a file need a network or a Landlock of
    // their own to be so.
    let apart = mechanism == Mechanism::Namespaces && (!bounds.open || landlock >= SCOPES);
    families.retain(|family| match *family {
        libc::AF_UNIX => apart,
        _ => bounds.open || mechanism == Mechanism::Namespaces,
    });
    let others = families
        .iter()
        .map(|family| word(0, Ne, u64::from(family.unsigned_abs())));
    let mut others = others.collect::<Result<Vec<_>, _>>()?;
    let netlink = u64::from(libc::AF_NETLINK.unsigned_abs());
    let mut sockets = Vec::new();
    // In a network of one's own there is nothing to tell but of a loopback.
    if mechanism == Mechanism::Namespaces && !bounds.open {
        others.push(word(0, Ne, netlink)?);
        let conditions = vec![word(0, Eq, netlink)?, word(2, Ne, ROUTES)?];
        sockets.push(SeccompRule::new(conditions)?);
    }
    if !others.is_empty() {
        sockets.push(SeccompRule::new(others)?);
    }
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, pairs(apart)?);
    #[cfg(target_arch = "x86_64")]
    rules.extend(OTHERS.map(|call| (call | OTHER_SET, Vec::new())));
    Ok(in_either_set(rules))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Kernels that have the other set of calls are few, so nothing else shows this.
    #[test]
    fn what_is_refused_is_refused_in_either_set() {
        let (bounds, mechanism) = (Bounds::default(), Mechanism::Landlock);
        for rules in [newer(), rules(&bounds, mechanism, SCOPES).unwrap()] {
            let usual = rules.keys().filter(|call| **call < OTHER_SET);
            let only_there: Vec<_> = usual
                .filter(|call| !rules.contains_key(&(*call | OTHER_SET)))
                .collect();
            assert_eq!(only_there, [&0; 0]);
        }
    }
}
