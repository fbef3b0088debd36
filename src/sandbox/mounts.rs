//! A file system of a process's own: what may be reached, at its usual place, and nothing else.
//!
//! Everything is shown from a descriptor at a descriptor, both had without following a link, so that
//! nothing that tools have laid leads elsewhere. What is protected is a mount of its own, since that
//! can be neither written nor moved; [`Mounts::missing`] notices where one was lost from outside.

use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, StatVfsMountFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use crate::sandbox::landlock::DEVICES;
use crate::sandbox::paths::{self, follow};
use crate::sandbox::scene::{Right, Scene, Shown, Why};
use crate::sandbox::{Bounds, Protected, Unenforceable, layers};

/// How many files may share memory.
const SHARED: u32 = 65_536;

/// The mounts that hold what is protected or hidden.
#[derive(Clone, Debug, Default)]
pub(super) struct Mounts(Vec<PathBuf>);

impl Mounts {
    /// Builds the file system and makes it the root.
    pub(super) fn build(bounds: &Bounds, protected: &Protected) -> Result<Self, Unenforceable> {
        let own = |name| bounds.own(name).ok_or(Unenforceable::NoSystem);
        let at = own("root")?;
        let opened = paths::open(&at).map_err(step("cannot find the new root"))?;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        // Whoever may have namespaces but not use them fails in what comes first, and nothing of
        // the workspace has a part in that.
        rustix::mount::mount_change("/", private).map_err(system("mounts cannot be private"))?;
        let places = Places::read()?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let failed = "cannot mount a new root";
        rustix::mount::mount(
            "tmpfs",
            paths::of(&opened),
            "tmpfs",
            flags,
            c"mode=755,size=16m",
        )
        .map_err(system(failed))?;
        let root = paths::open(&at).map_err(system(failed))?;
        // Wherever it lies, it is part of nothing that is shown.
        rustix::mount::mount_change(paths::of(&root), MountPropagationFlags::UNBINDABLE)
            .map_err(system(failed))?;

        let mut built = Building {
            root,
            places,
            mounts: Self::default(),
        };
        built.proc()?;
        built.devices(bounds.limits.memory)?;
        let scene = Scene::of(bounds, protected, &own("tmp")?, &own("home")?);
        for (link, target) in &scene.links {
            built.link(link, target)?;
        }
        for one in &scene.shown {
            built.show(one)?;
            if one.why == Why::Protected {
                built.mounts.0.push(one.target.clone());
            }
        }
        layers::lay(&paths::of(&built.root), bounds);
        built.hide(bounds)?;
        built.finish()
    }

    /// What is no mount any more: something was put in its place from outside.
    pub(super) fn missing(&self) -> Option<&Path> {
        let is_there = |path: &PathBuf| {
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
            match rustix::fs::statx(rustix::fs::CWD, path, flags, StatxFlags::empty()) {
                // Older kernels do not say.
                Ok(told) => {
                    let says = told
                        .stx_attributes_mask
                        .contains(StatxAttributes::MOUNT_ROOT);
                    !says || told.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
                }
                Err(errno) => ![Errno::NOENT, Errno::NOTDIR].contains(&errno),
            }
        };
        let lost = self.0.iter().find(|path| !is_there(path));
        lost.map(PathBuf::as_path)
    }
}

/// A failed step with this name.
fn step<E: Into<io::Error>>(step: impl Into<String>) -> impl FnOnce(E) -> Unenforceable {
    move |error| Unenforceable::step(step, error)
}

/// A failed step that any system allows which has namespaces for this user.
fn system<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> Unenforceable {
    move |error| Unenforceable::Namespaces(step, error.into())
}

/// A new root, while it is built.
struct Building {
    root: OwnedFd,
    /// What was mounted before.
    places: Places,
    mounts: Mounts,
}

impl Building {
    /// The processes of one's own.
    fn proc(&self) -> Result<(), Unenforceable> {
        let failed = "cannot mount /proc";
        let proc = paths::make_below(&self.root, Path::new("/proc"), true);
        let proc = proc.map_err(system(failed))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        rustix::mount::mount("proc", paths::of(&proc), "proc", flags, None).map_err(system(failed))
    }

    /// The devices that everybody may use, terminals of one's own and memory to share: half of what may
    /// be used, since nobody is seen to use it who has not mapped it.
    fn devices(&self, memory: Option<u64>) -> Result<(), Unenforceable> {
        let failed = || system("cannot make /dev");
        let opened = paths::make_below(&self.root, Path::new("/dev"), true).map_err(failed())?;
        let dev = paths::of(&opened);
        for name in ["pts", "shm"] {
            fs::create_dir(dev.join(name)).map_err(failed())?;
        }
        for device in DEVICES {
            // What is written to a device is not written to where it lies; its mode and times are the machine's.
            self.show(&Shown::at(Path::new(device), Right::Read))?;
        }
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        let options = c"newinstance,ptmxmode=0666,mode=0620";
        rustix::mount::mount("devpts", dev.join("pts"), "devpts", flags, options)
            .map_err(system("cannot mount /dev/pts"))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let mut options = format!("mode=1777,nr_inodes={SHARED}");
        if let Some(memory) = memory {
            write!(options, ",size={}", memory / 2).ok();
        }
        let options = CString::new(options).map_err(system("cannot mount /dev/shm"))?;
        rustix::mount::mount("tmpfs", dev.join("shm"), "tmpfs", flags, &*options)
            .map_err(system("cannot mount /dev/shm"))?;
        for (name, target) in [
            ("ptmx", "pts/ptmx"),
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ] {
            symlink(target, dev.join(name)).map_err(failed())?;
        }
        let run = paths::make_below(&self.root, Path::new("/run"), true);
        run.map_err(step("cannot make /run"))?;
        Ok(())
    }

    /// Lays a link as it is, if nothing is in its place.
    fn link(&self, link: &Path, target: &Path) -> Result<(), Unenforceable> {
        let failed = |error| Unenforceable::step(format!("cannot link {}", link.display()), error);
        let Some((parent, name)) = link.parent().zip(link.file_name()) else {
            return Ok(());
        };
        let parent = paths::make_below(&self.root, parent, true);
        match rustix::fs::symlinkat(target, parent.map_err(failed)?, name) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(failed(errno.into())),
        }
    }

    /// Lets a thing be seen below the new root, if it is there, with all that is mounted below it.
    fn show(&self, shown: &Shown) -> Result<(), Unenforceable> {
        let failed = |error: io::Error| {
            Unenforceable::step(format!("cannot show {}", shown.target.display()), error)
        };
        let source = match paths::open(&shown.source) {
            Ok(source) => source,
            // What is to be protected was there a moment ago.
            Err(error) if shown.why == Why::Protected => return Err(failed(error)),
            Err(_) => return Ok(()),
        };
        let kind = kind(&source).map_err(failed)?;
        let place = paths::make_below(&self.root, &shown.target, kind == FileType::Directory);
        let place = match place {
            // What is its own has no place in what may not be written.
            Err(_) if shown.why == Why::Own => return Ok(()),
            place => place.map_err(failed)?,
        };
        rustix::mount::mount_bind_recursive(paths::of(&source), paths::of(&place))
            .map_err(|errno| failed(errno.into()))?;
        if kind == FileType::Symlink {
            return Ok(());
        }
        let restricted = self.restrict(&shown.target, shown.right);
        restricted.map_err(failed)?;
        for below in self.places.below(&shown.source) {
            let Ok(inner) = below.strip_prefix(&shown.source) else {
                continue;
            };
            match self.restrict(&shown.target.join(inner), shown.right) {
                // Something else lies over it, so nobody reaches it.
                Err(error) if is_covered(&error) => {}
                restricted => restricted.map_err(failed)?,
            }
        }
        Ok(())
    }

    /// Takes set-user-id away from what is mounted at a place, and the right to change it unless it
    /// is given.
    fn restrict(&self, place: &Path, right: Right) -> io::Result<()> {
        let opened = paths::open_below(&self.root, place)?;
        let has = rustix::fs::fstatvfs(&opened)?.f_flag;
        let mut flags = MountFlags::BIND | MountFlags::NOSUID;
        for (held, flag) in [
            (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
            (StatVfsMountFlags::NODEV, MountFlags::NODEV),
            (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        ] {
            if has.contains(held) {
                flags |= flag;
            }
        }
        if right == Right::Read {
            flags |= MountFlags::RDONLY;
        }
        Ok(rustix::mount::mount_remount(paths::of(&opened), flags, "")?)
    }

    /// Lays something empty over what may not be reached; what of it may be read all the same is
    /// shown in there.
    fn hide(&mut self, bounds: &Bounds) -> Result<(), Unenforceable> {
        let real = |path: &PathBuf| follow(path, &[]).map_or_else(|_| path.clone(), |led| led.real);
        let hidden: BTreeSet<PathBuf> = bounds.hidden.iter().chain(&bounds.own).map(real).collect();
        let spared: Vec<PathBuf> = bounds.spared.iter().map(real).collect();
        let mut last: Option<&PathBuf> = None;
        for path in &hidden {
            let is_seen = spared.iter().any(|inner| path.starts_with(inner));
            if last.is_some_and(|last| path.starts_with(last)) && !is_seen {
                continue;
            }
            last = Some(path);
            let failed = |error: io::Error| {
                Unenforceable::step(format!("cannot hide {}", path.display()), error)
            };
            let Ok(place) = paths::open_below(&self.root, path) else {
                continue;
            };
            if kind(&place).map_err(failed)? != FileType::Directory {
                rustix::mount::mount_bind("/dev/null", paths::of(&place))
                    .map_err(|errno| failed(errno.into()))?;
                // It is the machine's.
                self.restrict(path, Right::Read).map_err(failed)?;
                self.mounts.0.push(path.clone());
                continue;
            }
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            rustix::mount::mount(
                "tmpfs",
                paths::of(&place),
                "tmpfs",
                flags,
                c"mode=555,size=64k",
            )
            .map_err(|errno| failed(errno.into()))?;
            for inner in spared.iter().filter(|inner| inner.starts_with(path)) {
                // What is hidden in there by itself stays so.
                if hidden
                    .iter()
                    .any(|other| other != path && inner.starts_with(other))
                {
                    continue;
                }
                self.show(&Shown::at(inner, Right::Read))?;
            }
            self.restrict(path, Right::Read).map_err(failed)?;
            self.mounts.0.push(path.clone());
        }
        Ok(())
    }

    /// Makes this the root, and lets go of the old one.
    fn finish(self) -> Result<Mounts, Unenforceable> {
        for place in ["/proc", "/"] {
            self.restrict(Path::new(place), Right::Read)
                .map_err(step(format!("cannot restrict {place}")))?;
        }
        let failed = || step("cannot enter the new root");
        rustix::process::fchdir(&self.root).map_err(failed())?;
        rustix::process::pivot_root(".", ".").map_err(failed())?;
        rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(failed())?;
        rustix::process::chdir("/").map_err(failed())?;
        Ok(self.mounts)
    }
}

/// What kind of thing this is.
fn kind(opened: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(opened)?.st_mode))
}

/// Whether this is no mount, or not to be found.
fn is_covered(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    [Errno::INVAL, Errno::NOENT, Errno::NOTDIR, Errno::ACCESS]
        .into_iter()
        .any(|covered| errno == Some(covered))
}

/// Where something is mounted.
#[derive(Debug)]
struct Places(BTreeSet<PathBuf>);

impl Places {
    /// Those that this process sees.
    fn read() -> Result<Self, Unenforceable> {
        let table = fs::read("/proc/self/mountinfo").map_err(step("cannot list mounts"))?;
        let lines = table.split(|byte| *byte == b'\n');
        let places = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
        Ok(Self(places.map(unescaped).collect()))
    }

    /// Those below a path.
    fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        let from = (Bound::Excluded(path.to_owned()), Bound::Unbounded);
        let places = self.0.range(from);
        places.take_while(move |place| place.starts_with(path))
    }
}

/// A path of the table of mounts, in which blanks and the like are written in octal.
fn unescaped(bytes: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let octal = bytes.get(at + 1..at + 4).filter(|_| *byte == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            plain.push(byte);
            at += 4;
        } else {
            plain.push(*byte);
            at += 1;
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn paths_of_the_table_are_read_as_they_are() {
        for (written, meant) in [
            (b"/a\\040b".as_slice(), b"/a b".as_slice()),
            (b"/a\\134x", b"/a\\x"),
            (b"/a\\x", b"/a\\x"),
            (b"/a\xff", b"/a\xff"),
        ] {
            assert_eq!(unescaped(written).as_os_str().as_bytes(), meant);
        }
    }

    #[test]
    fn what_is_mounted_below_a_path_is_found() {
        let places = ["/", "/a", "/a/b", "/a/b/c", "/a-b", "/ab"].map(PathBuf::from);
        let places = Places(places.into());
        let below: Vec<_> = places.below(Path::new("/a")).collect();
        assert_eq!(below, [Path::new("/a/b"), Path::new("/a/b/c")]);
    }
}
