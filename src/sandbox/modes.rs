//! Modes by which whoever runs a file gets the rights of its owner or its group, and the calls that set
//! one.
//!
//! Within the walls they give nobody anything. But the workspace is there outside as well, where anybody
//! on the machine may run what lies in it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::libc;
use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use crate::sandbox::Bounds;
use crate::sandbox::seccomp::Rules;

/// Whoever runs the file gets the rights of its owner.
const SETUID: u32 = 0o4000;

/// Whoever runs the file gets the rights of its group. A directory hands its group on.
const SETGID: u32 = 0o2000;

/// The calls that give a file a mode, and which argument that is. `mkdir` is none of them: the kernel
/// takes neither bit from it.
const GIVING: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
];

/// `fchmodat2`, which not every library names.
const FCHMODAT2: i64 = 452;

/// The calls that may make a file, and which argument their flags are; behind them stands the mode.
const OPENING: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// The flags with which they make one. Without them the mode may be whatever was left in its place.
const MAKING: [i32; 2] = [libc::O_CREAT, libc::O_TMPFILE];

/// How many of what lies in a directory are looked at.
const MOST: usize = 4096;

/// A place that may be written, or a directory in one, that hands its group on, as those do that several
/// people share: all of a workspace, or its repository. There `chmod`, `cp -r` and `git` give directories
/// of their own the bit that these have already.
pub(super) fn shared(bounds: &Bounds) -> Option<PathBuf> {
    let hands_on = |path: &Path| {
        let found = fs::symlink_metadata(path);
        found.is_ok_and(|found| found.is_dir() && found.mode() & SETGID != 0)
    };
    bounds.write.iter().find_map(|root| {
        if hands_on(root) {
            return Some(root.clone());
        }
        let within = fs::read_dir(root).ok()?.flatten().take(MOST);
        within.map(|entry| entry.path()).find(|path| hands_on(path))
    })
}

/// The calls that give a file such a mode.
pub(super) fn rules(bounds: &Bounds) -> Result<Rules, BackendError> {
    let bits = match shared(bounds) {
        Some(_) => vec![SETUID],
        None => vec![SETUID, SETGID],
    };
    let mut rules = Rules::new();
    for (call, mode) in GIVING {
        let refused = bits
            .iter()
            .map(|bit| SeccompRule::new(vec![has(*mode, *bit)?]));
        rules.insert(*call, refused.collect::<Result<_, _>>()?);
    }
    for (call, flags) in OPENING {
        let mut refused = Vec::new();
        for flag in MAKING.map(i32::unsigned_abs) {
            for bit in &bits {
                let conditions = vec![has(*flags, flag)?, has(flags + 1, *bit)?];
                refused.push(SeccompRule::new(conditions)?);
            }
        }
        rules.insert(*call, refused);
    }
    Ok(rules)
}

/// That an argument has all these bits.
fn has(argument: u8, bits: u32) -> Result<SeccompCondition, BackendError> {
    let bits = u64::from(bits);
    let equal = SeccompCmpOp::MaskedEq(bits);
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, equal, bits)
}
