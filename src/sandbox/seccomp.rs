//! A filter of system calls: those that lead out of any bounds are refused.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
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

/// Numbers with this bit are of another set of system calls, which some kernels of this machine have.
#[cfg(target_arch = "x86_64")]
const OTHER_SET: u32 = 0x4000_0000;

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
        filter
            .and_then(BpfProgram::try_from)
            .map_err(|error| failed(&error))
    };
    let apply = |program: BpfProgram| {
        seccompiler::apply_filter(&program)
            .map_err(|error| Unenforceable::Seccomp(error.to_string()))
    };
    // Their flags lie in memory, where no filter sees them; who is told that there is no such call
    // uses the older one.
    let newer = [libc::SYS_clone3, libc::SYS_openat2].map(|call| (call, Vec::new()));
    let mut missing = without_other_set();
    missing.extend(filter(libc::ENOSYS, newer.into())?);
    apply(missing)?;
    let refused = rules(bounds, mechanism, landlock).map_err(|error| failed(&error))?;
    apply(filter(libc::EPERM, refused)?)
}

/// The beginning of a filter: of the other set of calls there is none, as on most kernels.
#[cfg(target_arch = "x86_64")]
fn without_other_set() -> BpfProgram {
    // As the kernel numbers them: load a word, jump if one of these bits is set, if it is as large or larger,
    // if it is larger, and return.
    const LOAD: u16 = 0x20;
    const IF_SET: u16 = 0x45;
    const IF_FROM: u16 = 0x35;
    const IF_ABOVE: u16 = 0x25;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        // The number of the call is what a filter is given first.
        step(LOAD, 0, 0, 0),
        step(IF_SET, 2, 0, OTHER_SET),
        // Some kernels let those of that set through without the bit that have numbers of their own.
        step(IF_FROM, 0, 2, 512),
        step(IF_ABOVE, 1, 0, 547),
        step(
            RETURN,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
        ),
    ]
}

/// There is one set of calls.
#[cfg(not(target_arch = "x86_64"))]
fn without_other_set() -> BpfProgram {
    Vec::new()
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
    Ok(rules)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Kernels that have the other set of calls are few, so nothing else shows this.
    #[test]
    fn of_the_other_set_there_is_no_call() {
        let program = without_other_set();
        let (ret, errno) = (0x06, 0x0005_0026);
        let judge = |call: u32| {
            let (mut at, mut held) = (0, 0);
            while let Some(step) = program.get(at) {
                at += 1;
                match step.code {
                    0x20 if step.k == 0 => held = call,
                    0x45 if held & step.k != 0 => at += usize::from(step.jt),
                    0x35 if held >= step.k => at += usize::from(step.jt),
                    0x25 if held > step.k => at += usize::from(step.jt),
                    0x45 | 0x35 | 0x25 => at += usize::from(step.jf),
                    code => return Some((code, step.k)),
                }
            }
            None
        };
        for call in [0, 165, 511, 548, 0x3fff_ffff, 0x8000_0000] {
            assert_eq!(judge(call), None, "{call:#x}");
        }
        for call in [512, 514, 547] {
            assert_eq!(judge(call), Some((ret, errno)), "{call:#x}");
        }
        for call in [0, 165, 514, 0x0fff_ffff] {
            assert_eq!(judge(OTHER_SET | call), Some((ret, errno)), "{call:#x}");
        }
    }
}
