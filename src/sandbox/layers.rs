//! What toolchains keep below home: to be used as if it were the user's, and left as it is.
//!
//! Builds unpack, fetch and lock where their packages are. A layer of the process's own lies over each
//! of those directories: what is written goes there, and ends with the process.

use std::cell::LazyCell;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::mount::MountFlags;

use crate::sandbox::Bounds;

/// Lays a layer over each of those directories that is seen below the new root. Where a system cannot
/// do it, such a directory may only be read.
pub(super) fn lay(root: &Path, bounds: &Bounds) {
    let Some(own) = bounds.own("layers") else {
        return;
    };
    let mounted = LazyCell::new(mounted);
    let mut laid = Vec::new();
    for path in &bounds.layered {
        // Most are not there, which is known at once.
        let there = fs::symlink_metadata(path).and_then(|_| path.canonicalize());
        let Ok(real) = there else {
            continue;
        };
        let place = root.join(real.strip_prefix("/").unwrap_or(&real));
        // Whatever has a place of its own in it would be covered.
        let shown = bounds.write.iter().chain(&bounds.roots).chain(&bounds.read);
        let mut within = shown.chain(&*mounted);
        let holds = within.any(|other| other != &real && other.starts_with(&real));
        let is_written = bounds.write.iter().any(|root| real.starts_with(root));
        if holds || is_written || !place.is_dir() || laid.contains(&real) {
            continue;
        }
        if cover(&real, &place, &own.join(laid.len().to_string())).is_some() {
            laid.push(real);
        }
    }
}

/// Covers a place with a directory and a new layer above it.
fn cover(lower: &Path, place: &Path, own: &Path) -> Option<()> {
    let [upper, work] = ["upper", "work"].map(|name| own.join(name));
    for directory in [&upper, &work] {
        fs::create_dir_all(directory).ok()?;
    }
    let mut options = b"userxattr".to_vec();
    for (name, path) in [
        ("lowerdir", lower),
        ("upperdir", &upper),
        ("workdir", &work),
    ] {
        let path = path.as_os_str().as_bytes();
        // These mean something there.
        if path.iter().any(|byte| b":,\\".contains(byte)) {
            return None;
        }
        options.extend_from_slice(format!(",{name}=").as_bytes());
        options.extend_from_slice(path);
    }
    let options = CString::new(options).ok()?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("overlay", place, "overlay", flags, options.as_c_str()).ok()
}

/// Where something is mounted, as far as that can be read.
fn mounted() -> Vec<PathBuf> {
    let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n');
    let places = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    places
        .map(|place| PathBuf::from(std::ffi::OsStr::from_bytes(place)))
        .collect()
}
