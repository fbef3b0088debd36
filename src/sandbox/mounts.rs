//! A file system of a process's own: what may be reached, at its usual place, and nothing else.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use crate::sandbox::landlock::DEVICES;
use crate::sandbox::{Bounds, Unenforceable, protected};

/// Whether something may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    Read,
    Write,
}

/// One thing that is to be seen.
#[derive(Clone, Debug)]
struct Shown {
    /// Where it is.
    source: PathBuf,
    /// Where it is to be.
    target: PathBuf,
    right: Right,
}

impl Shown {
    fn at(path: &Path, right: Right) -> Self {
        Self {
            source: path.to_owned(),
            target: path.to_owned(),
            right,
        }
    }
}

/// Builds the file system and makes it the root; what was made in the old one only to be protected.
pub(super) fn build(bounds: &Bounds) -> Result<Vec<PathBuf>, Unenforceable> {
    let own = |name| bounds.own(name).ok_or(Unenforceable::NoSystem);
    let root = own("root")?;
    for name in ["root", "tmp", "home"] {
        let made = fs::create_dir_all(own(name)?);
        made.map_err(step(format!("cannot make {name}")))?;
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(step("mounts cannot be private"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mounted = rustix::mount::mount("tmpfs", &root, "tmpfs", flags, c"mode=755,size=16m");
    mounted.map_err(step("cannot mount a new root"))?;

    let found = protected::find(bounds)?;
    let mut shown = visible(bounds, &own("tmp")?, &own("home")?);
    shown.extend(found.whole.iter().map(|path| Shown::at(path, Right::Write)));
    shown.extend(found.fixed.iter().map(|path| Shown::at(path, Right::Read)));
    // A directory before what is in it; of two at one place the later stands above.
    shown.sort_by_key(|shown| shown.target.components().count());
    for one in &shown {
        show(&root, one)?;
    }
    devices(&root)?;
    hide(&root, &bounds.hidden)?;
    let proc = root.join("proc");
    fs::create_dir_all(&proc).map_err(step("cannot make /proc"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("proc", &proc, "proc", flags, None).map_err(step("cannot mount /proc"))?;
    restrict(&root, &shown)?;
    enter(&root)?;
    // What was opened in the old root is let go of; in the new one it stays locked until the end.
    for place in &found.placeholders {
        let again = File::open(place).and_then(|file| {
            file.try_lock_shared().map_err(io::Error::from)?;
            Ok(file)
        });
        again.map(std::mem::forget).map_err(step(format!(
            "cannot hold the place of {}",
            place.display()
        )))?;
    }
    Ok(found.placeholders)
}

/// A failed step with this name.
fn step<E: Into<io::Error>>(step: impl Into<String>) -> impl FnOnce(E) -> Unenforceable {
    move |error| Unenforceable::step(step, error)
}

/// What is to be seen.
fn visible(bounds: &Bounds, tmp: &Path, home: &Path) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let inside = |path: &Path| {
        let mut roots = bounds.write.iter().chain(&bounds.roots);
        roots.any(|root| path.starts_with(root))
    };
    for target in ["/tmp", "/var/tmp"] {
        shown.push(Shown {
            source: tmp.to_owned(),
            target: target.into(),
            right: Right::Write,
        });
    }
    let homes = bounds.home.iter().filter(|target| !inside(target));
    shown.extend(homes.map(|target| Shown {
        source: home.to_owned(),
        target: target.clone(),
        right: Right::Write,
    }));
    shown.extend(bounds.read.iter().map(|path| Shown::at(path, Right::Read)));
    shown.extend(bounds.roots.iter().map(|path| Shown::at(path, Right::Read)));
    shown.extend(
        bounds
            .write
            .iter()
            .map(|path| Shown::at(path, Right::Write)),
    );
    shown
}

/// Lets a thing be seen below the new root, if it is there. A link stays one, and what it leads to
/// is seen where it is.
fn show(root: &Path, shown: &Shown) -> Result<(), Unenforceable> {
    let Ok(kind) = fs::symlink_metadata(&shown.source).map(|data| data.file_type()) else {
        return Ok(());
    };
    let place = below(root, &shown.target);
    let name = || shown.target.display();
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent).map_err(step(format!("cannot make room for {}", name())))?;
    }
    if kind.is_symlink() {
        if fs::symlink_metadata(&place).is_err()
            && let Ok(target) = fs::read_link(&shown.source)
        {
            symlink(target, &place).map_err(step(format!("cannot link {}", name())))?;
        }
        let Ok(real) = shown.source.canonicalize() else {
            return Ok(());
        };
        // Most lead to what is seen anyway.
        return if below(root, &real).exists() {
            Ok(())
        } else {
            show(root, &Shown::at(&real, shown.right))
        };
    }
    if fs::symlink_metadata(&place).is_err() {
        let made = if kind.is_dir() {
            fs::create_dir(&place)
        } else {
            File::create_new(&place).map(drop)
        };
        made.map_err(step(format!("cannot make room for {}", name())))?;
    }
    rustix::mount::mount_bind_recursive(&shown.source, &place)
        .map_err(step(format!("cannot show {}", name())))
}

/// The devices that everybody may use, terminals of one's own and memory to share.
fn devices(root: &Path) -> Result<(), Unenforceable> {
    let dev = root.join("dev");
    for name in ["pts", "shm"] {
        fs::create_dir_all(dev.join(name)).map_err(step("cannot make /dev"))?;
    }
    for device in DEVICES {
        show(root, &Shown::at(Path::new(device), Right::Write))?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=0620";
    rustix::mount::mount("devpts", dev.join("pts"), "devpts", flags, options)
        .map_err(step("cannot mount /dev/pts"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", dev.join("shm"), "tmpfs", flags, c"mode=1777")
        .map_err(step("cannot mount /dev/shm"))?;
    for (name, target) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, dev.join(name)).map_err(step("cannot make /dev"))?;
    }
    fs::create_dir_all(root.join("run")).map_err(step("cannot make /run"))
}

/// Lays something empty over what may not be reached.
fn hide(root: &Path, hidden: &[PathBuf]) -> Result<(), Unenforceable> {
    for path in hidden {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let place = below(root, &real);
        let Ok(data) = fs::metadata(&place) else {
            continue;
        };
        let laid = if data.is_dir() {
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY;
            rustix::mount::mount("tmpfs", &place, "tmpfs", flags, c"mode=555,size=4k")
        } else {
            rustix::mount::mount_bind("/dev/null", &place)
        };
        laid.map_err(step(format!("cannot hide {}", path.display())))?;
    }
    Ok(())
}

/// Takes the right to change things away where it is not given, and set-user-id everywhere.
fn restrict(root: &Path, shown: &[Shown]) -> Result<(), Unenforceable> {
    let table = fs::read_to_string("/proc/self/mountinfo").map_err(step("cannot list mounts"))?;
    for line in table.lines() {
        let mut fields = line.split(' ');
        let (Some(place), Some(options)) = (fields.nth(4), fields.next()) else {
            continue;
        };
        let place = unescaped(place);
        let Ok(inner) = place.strip_prefix(root) else {
            continue;
        };
        let inner = Path::new("/").join(inner);
        let has = |option: &str| options.split(',').any(|one| one == option);
        let mut flags = MountFlags::BIND | MountFlags::NOSUID;
        for (option, flag) in [
            ("ro", MountFlags::RDONLY),
            ("nodev", MountFlags::NODEV),
            ("noexec", MountFlags::NOEXEC),
        ] {
            if has(option) {
                flags |= flag;
            }
        }
        let own = ["/dev/pts", "/dev/shm"]
            .iter()
            .any(|own| inner == Path::new(own));
        if !own && right(&inner, shown) == Right::Read {
            flags |= MountFlags::RDONLY;
        }
        rustix::mount::mount_remount(&place, flags, "")
            .map_err(step(format!("cannot restrict {}", inner.display())))?;
    }
    Ok(())
}

/// What may be done at a place: what was said of it, or else of the nearest directory above.
fn right(place: &Path, shown: &[Shown]) -> Right {
    let above = shown.iter().filter(|one| place.starts_with(&one.target));
    // Of two at one place the later counts.
    let nearest = above.max_by_key(|one| one.target.components().count());
    nearest.map_or(Right::Read, |one| one.right)
}

/// Makes this directory the root, and lets go of the old one.
fn enter(root: &Path) -> Result<(), Unenforceable> {
    let failed = || step("cannot enter the new root");
    rustix::process::chdir(root).map_err(failed())?;
    rustix::process::pivot_root(".", ".").map_err(failed())?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(failed())?;
    rustix::process::chdir("/").map_err(failed())
}

/// The place of an absolute path below another root.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// A path of the table of mounts, in which blanks and the like are written in octal.
fn unescaped(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
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
    fn the_nearest_directory_says_what_may_be_done() {
        let shown = [
            Shown::at(Path::new("/usr"), Right::Read),
            Shown::at(Path::new("/w"), Right::Write),
            Shown::at(Path::new("/w/.git"), Right::Write),
            Shown::at(Path::new("/w/.git/hooks"), Right::Read),
        ];
        for (path, expected) in [
            ("/", Right::Read),
            ("/usr/lib", Right::Read),
            ("/w", Right::Write),
            ("/w/mnt", Right::Write),
            ("/w/.git/hooks", Right::Read),
            ("/w/.git/hooks/x", Right::Read),
            ("/wide", Right::Read),
        ] {
            assert_eq!(right(Path::new(path), &shown), expected, "{path}");
        }
    }

    #[test]
    fn paths_of_the_table_are_read_as_they_are() {
        for (written, meant) in [
            ("/a\\040b", "/a b"),
            ("/a\\134x", "/a\\x"),
            ("/a\\x", "/a\\x"),
        ] {
            assert_eq!(unescaped(written).as_os_str().as_bytes(), meant.as_bytes());
        }
    }
}
