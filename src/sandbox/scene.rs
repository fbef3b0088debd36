//! What a file system of one's own shows, and where: worked out before anything is mounted.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::paths::follow;
use crate::sandbox::{Bounds, Protected, ours};

/// Whether something may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    Read,
    Write,
}

/// Why something is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It may be reached.
    Allowed,
    /// It is the process's own, at a place where others have theirs.
    Own,
    /// It cannot be replaced, since it is a mount.
    Protected,
}

/// One thing that is to be seen. Its paths are real.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// Where it is.
    pub(super) source: PathBuf,
    /// Where it is to be.
    pub(super) target: PathBuf,
    pub(super) right: Right,
    pub(super) why: Why,
}

impl Shown {
    pub(super) fn at(path: &Path, right: Right) -> Self {
        Self {
            source: path.to_owned(),
            target: path.to_owned(),
            right,
            why: Why::Allowed,
        }
    }

    fn protected(path: &Path, right: Right) -> Self {
        Self {
            why: Why::Protected,
            ..Self::at(path, right)
        }
    }
}

/// All that is to be seen.
#[derive(Debug, Default)]
pub(super) struct Scene {
    /// In the order in which it is shown: a directory before what is in it, and of two at one place
    /// the later one stands above.
    pub(super) shown: Vec<Shown>,
    /// Links, and what they say.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

impl Scene {
    /// What these bounds mean, with `tmp` and `home` as the process's own directories.
    pub(super) fn of(bounds: &Bounds, protected: &Protected, tmp: &Path, home: &Path) -> Self {
        let mut scene = Self::default();
        let distrusted = bounds.distrusted();
        let lies_in_work = |path: &Path| distrusted.iter().any(|above| path.starts_with(above));
        for (own, target) in [(tmp, "/tmp"), (tmp, "/var/tmp")] {
            scene.own(own, Path::new(target));
        }
        let mut named = bounds.read.iter().chain(&bounds.write);
        let is_all_seen = named.any(|path| path.parent().is_none());
        let homes = bounds.home.iter().filter(|target| !lies_in_work(target));
        for target in homes.filter(|_| !is_all_seen) {
            scene.own(home, target);
        }
        // What lies in the workspace is there anyway, and its links are not to be trusted.
        let mut read = entries(&bounds.read);
        if is_all_seen {
            read.retain(|path| path != Path::new("/tmp"));
        }
        for path in read.iter().filter(|path| !lies_in_work(path)) {
            if let Ok(led) = follow(path, &distrusted) {
                scene.links.extend(led.links);
                if !lies_in_work(&led.real) {
                    scene.shown.push(Shown::at(&led.real, Right::Read));
                }
            }
        }
        for path in &bounds.roots {
            scene.shown.push(Shown::at(path, Right::Read));
        }
        for path in entries(&bounds.written()) {
            match fs::read_link(&path) {
                Ok(target) => scene.links.push((path, target)),
                Err(_) => scene.shown.push(Shown::at(&path, Right::Write)),
            }
        }
        for beyond in &protected.beyond {
            let right = if beyond.writes {
                Right::Write
            } else {
                Right::Read
            };
            scene.shown.push(Shown::at(&beyond.path, right));
        }
        let around = ours::on_the_way(bounds);
        let around = around
            .iter()
            .map(|path| Shown::protected(path, Right::Write));
        scene.shown.extend(around);
        let held = protected.held.difference(&protected.fixed);
        let held = held.map(|path| Shown::protected(path, Right::Write));
        scene.shown.extend(held);
        let fixed = protected.fixed.iter();
        let fixed = fixed.map(|path| Shown::protected(path, Right::Read));
        scene.shown.extend(fixed);
        scene
            .shown
            .sort_by_key(|shown| shown.target.components().count());
        scene.without_repeats()
    }

    fn own(&mut self, own: &Path, target: &Path) {
        let Ok(led) = follow(target, &[]) else { return };
        self.links.extend(led.links);
        self.shown.push(Shown {
            source: own.to_owned(),
            target: led.real,
            right: Right::Write,
            why: Why::Own,
        });
    }

    /// The same without what is to be seen as part of something else, with the same right.
    fn without_repeats(mut self) -> Self {
        let mut kept: Vec<Shown> = Vec::new();
        for one in self.shown {
            let around = kept
                .iter()
                .rfind(|above| one.target.starts_with(&above.target));
            let is_part = around.is_some_and(|around| {
                around.right == Right::Read && around.source == around.target
            });
            if one.why == Why::Protected || one.right == Right::Write || !is_part {
                kept.push(one);
            }
        }
        self.shown = kept;
        self
    }
}

/// The same paths, with the root's entries in its place: it is built anew.
fn entries(paths: &[PathBuf]) -> Vec<PathBuf> {
    // Those are its own in any case.
    let own = ["/dev", "/proc"].map(Path::new);
    let mut all = Vec::new();
    for path in paths {
        if path.parent().is_some() {
            all.push(path.clone());
            continue;
        }
        let listed = fs::read_dir(path).into_iter().flatten().flatten();
        all.extend(listed.map(|entry| entry.path()));
    }
    all.retain(|path| !own.contains(&path.as_path()) && !path.starts_with("/proc"));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_is_seen_once_and_in_order() {
        let bounds = Bounds {
            read: vec!["/usr/lib".into(), "/usr".into(), "/w/data".into()],
            write: vec!["/w".into(), "/w/.git".into(), "/srv".into()],
            home: Some("/home/u".into()),
            ..Bounds::default()
        };
        let protected = Protected {
            held: ["/w/.git".into()].into(),
            fixed: ["/w/.git/hooks".into()].into(),
            ..Protected::default()
        };
        let (tmp, home) = (Path::new("/own/tmp"), Path::new("/own/home"));
        let scene = Scene::of(&bounds, &protected, tmp, home);
        let seen = scene.shown.iter().filter(|one| one.why != Why::Own);
        let seen: Vec<_> = seen
            .map(|one| format!("{} {:?}", one.target.display(), one.right))
            .collect();
        assert_eq!(
            seen,
            [
                "/usr Read",
                "/w Write",
                "/srv Write",
                "/w/.git Write",
                "/w/.git/hooks Read"
            ]
        );
    }
}
