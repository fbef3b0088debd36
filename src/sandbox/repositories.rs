//! Finds the repositories of what may be written, and what of them is to be [`Protected`].
//!
//! A `.git` may be a directory, a file that names one, or a link. Whatever version control would use
//! is found from there without trusting it: what tools may have written leads nowhere outside, unless
//! what is found there leads back.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::paths::{self, follow};
use crate::sandbox::placeholders::{self, Kind};
use crate::sandbox::protected::{BACK, Beyond, NAMES, Placeholder, Protected, REPOSITORY};
use crate::sandbox::settings::{self, Named};
use crate::sandbox::{Bounds, Mechanism, Unenforceable};

/// How many entries of a workspace are looked at for repositories.
const ENTRIES: usize = 50_000;

/// Finds what must be protected in what may be written, and, where mounts can hold it, makes what
/// holds its place.
pub(super) fn find(
    bounds: &Bounds,
    mechanism: Mechanism,
) -> Result<(Protected, Vec<Placeholder>), Unenforceable> {
    let mut search = Search {
        found: Protected {
            granted: bounds.unprotected.clone(),
            ..Protected::default()
        },
        written: bounds.written(),
        home: bounds.home.clone(),
        placeholders: Vec::new(),
        makes: mechanism == Mechanism::Namespaces,
        seen: BTreeSet::new(),
    };
    for root in &bounds.written() {
        if !root.is_dir() || search.found.is_granted(root) {
            continue;
        }
        let own = root.join(REPOSITORY);
        // It may be one itself, without a worktree.
        if is_repository(root) {
            search.repository(root, root)?;
        }
        search.entry(root, &own)?;
        for entry in search.below(root) {
            if entry != own {
                search.entry(root, &entry)?;
            }
        }
        for hidden in bounds.hidden.iter().filter_map(|path| real(path)) {
            let mut above = hidden.ancestors().skip(1);
            if let Some(above) = above.find(|above| above.is_dir()) {
                search.hold(root, above);
            }
        }
    }
    let home = bounds.home.as_deref();
    let read = bounds.roots.first().map(|root| (root, false));
    let work = read.or_else(|| bounds.write.first().map(|root| (root, true)));
    if let Some((root, writes)) = work {
        search.around(root, writes, home)?;
    }
    Ok((search.found, search.placeholders))
}

/// A search under way.
struct Search {
    found: Protected,
    /// What may be written.
    written: Vec<PathBuf>,
    home: Option<PathBuf>,
    placeholders: Vec<Placeholder>,
    /// Whether what is not there is made.
    makes: bool,
    /// The repositories that were found.
    seen: BTreeSet<PathBuf>,
}

impl Search {
    /// The repositories below a directory, those near it first.
    fn below(&mut self, root: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut left = ENTRIES;
        let mut directories = VecDeque::from([root.to_owned()]);
        while let Some(directory) = directories.pop_front() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                if left == 0 {
                    self.found.told.push(format!(
                        "only {ENTRIES} entries of {} were searched for repositories to protect",
                        root.display()
                    ));
                    return found;
                }
                left -= 1;
                let name = entry.file_name();
                if name == REPOSITORY {
                    found.push(entry.path());
                } else if name != "node_modules" && entry.file_type().is_ok_and(|of| of.is_dir()) {
                    directories.push_back(entry.path());
                }
            }
        }
        found
    }

    /// Protects what a `.git` is or leads to; where there is none, its place at the root.
    fn entry(&mut self, root: &Path, git: &Path) -> Result<(), Unenforceable> {
        if self.found.is_granted(git) {
            return Ok(());
        }
        let Ok(data) = fs::symlink_metadata(git) else {
            return self.fix(root, git, Kind::Directory);
        };
        if data.is_dir() {
            return if is_there(&git.join("HEAD")) {
                self.repository(root, git)
            } else {
                self.fix(root, git, Kind::Directory)
            };
        }
        // A file that says where the repository is, or a link to it.
        let led = if data.is_file() {
            self.fix(root, git, Kind::Directory)?;
            told(git, "gitdir:").and_then(|path| real(&path))
        } else {
            self.hold(root, git);
            real(git)
        };
        match led {
            Some(led) if self.is_written(&led) && is_there(&led.join("HEAD")) => {
                self.repository(root, &led)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Protects a repository: what names programs cannot be written, and nothing on the way to it
    /// can be replaced.
    fn repository(&mut self, root: &Path, directory: &Path) -> Result<(), Unenforceable> {
        if !self.seen.insert(directory.to_owned()) || self.found.is_granted(directory) {
            return Ok(());
        }
        // What a link or a file led to may lie below another root.
        let root = self.root_of(directory).unwrap_or_else(|| root.to_owned());
        self.hold(&root, directory);
        for name in NAMES {
            let kind = match name {
                "hooks" => Kind::Directory,
                "commondir" => Kind::HERE,
                _ => Kind::File(""),
            };
            self.fix(&root, &directory.join(name), kind)?;
        }
        if let Some(common) = told(&directory.join("commondir"), "").and_then(|path| real(&path))
            && self.is_written(&common)
        {
            self.repository(&root, &common)?;
        }
        for part in directories(&directory.join("worktrees")) {
            self.fix(&root, &part.join("config.worktree"), Kind::File(""))?;
            for name in [BACK, "commondir"].map(|name| part.join(name)) {
                if is_there(&name) {
                    self.fix(&root, &name, Kind::File(""))?;
                }
            }
        }
        self.modules(&root, &directory.join("modules"))?;
        let top = directory
            .parent()
            .filter(|_| directory.ends_with(REPOSITORY));
        let top = top.unwrap_or(&root).to_owned();
        self.settings(&root, directory, &top);
        Ok(())
    }

    /// Protects what the settings of a repository, and the user's own, name in what may be written:
    /// more settings and hooks as those of the repository itself. Programs are part of the work; they
    /// are watched, and so is what is not there yet.
    fn settings(&mut self, root: &Path, git: &Path, top: &Path) {
        let mut files = vec![PathBuf::from("/etc/gitconfig")];
        files.extend(["config", "config.worktree"].map(|name| git.join(name)));
        let own = [".gitconfig", ".config/git/config"];
        let own = own
            .iter()
            .filter_map(|name| Some(self.home.as_ref()?.join(name)));
        files.extend(own);
        let named = Named::of(files, top, self.home.as_deref());
        for path in named.settings.union(&named.hooks) {
            let Some(led) = real(path).filter(|led| self.is_written(led)) else {
                continue;
            };
            // What holds the work cannot be kept from being written.
            if !is_there(&led) || top.starts_with(&led) || root.starts_with(&led) {
                self.found.watched.insert(led);
                continue;
            }
            // It may be named by a link in the workspace.
            let parent = path.parent().and_then(real);
            let spelled = parent
                .zip(path.file_name())
                .map(|(parent, name)| parent.join(name));
            for path in spelled.into_iter().chain([led]) {
                self.keep(&path);
            }
        }
        let programs = named.programs.iter().filter_map(|path| real(path));
        let programs = programs.filter(|led| led.is_file() && self.is_written(led));
        let programs: Vec<PathBuf> = programs.collect();
        self.found.watched.extend(programs);
    }

    /// Protects the repositories of submodules, whose names may have slashes.
    fn modules(&mut self, root: &Path, directory: &Path) -> Result<(), Unenforceable> {
        for module in directories(directory) {
            if is_there(&module.join("HEAD")) {
                self.repository(root, &module)?;
            } else {
                self.modules(root, &module)?;
            }
        }
        Ok(())
    }

    /// Fixes a path as it is. What is not there is made, if it can be held at all.
    fn fix(&mut self, root: &Path, path: &Path, kind: Kind) -> Result<(), Unenforceable> {
        if self.found.is_granted(path) {
            return Ok(());
        }
        let data = fs::symlink_metadata(path);
        if data.as_ref().is_ok_and(fs::Metadata::is_symlink) {
            self.hold(root, path);
            // What it leads to is what is used.
            let led = real(path).filter(|led| self.is_written(led));
            if let Some(led) = led.filter(|led| is_there(led) && !self.found.is_granted(led))
                && let Some(root) = self.root_of(&led)
            {
                self.put(&root, led);
            }
            return Ok(());
        }
        let failed = |error| {
            let what = format!("cannot hold the place of {}", path.display());
            Unenforceable::step(what, error)
        };
        let held = match data {
            Ok(_) => placeholders::adopt(path, kind).filter(|_| self.makes),
            // Where nothing can be made, tools cannot make it either.
            Err(_) if self.makes => match placeholders::make(path, kind) {
                Err(error) if is_refused(&error) => return Ok(()),
                made => made.map_err(failed)?,
            },
            Err(_) => {
                self.found.fixed.insert(path.to_owned());
                return Ok(());
            }
        };
        self.placeholders.extend(held);
        self.put(root, path.to_owned());
        Ok(())
    }

    /// Fixes what is there and somebody's own.
    fn keep(&mut self, path: &Path) {
        let Some(root) = self.root_of(path).filter(|_| !self.found.is_granted(path)) else {
            return;
        };
        if path.is_symlink() {
            self.hold(&root, path);
        } else {
            self.put(&root, path.to_owned());
        }
    }

    fn put(&mut self, root: &Path, path: PathBuf) {
        if let Some(parent) = path.parent() {
            self.hold(root, parent);
        }
        self.found.fixed.insert(path);
    }

    /// Holds a path below the root, and every directory on the way.
    fn hold(&mut self, root: &Path, path: &Path) {
        let way = path.ancestors().take_while(|above| *above != root);
        let way = way.filter(|above| above.starts_with(root));
        self.found.held.extend(way.map(Path::to_owned));
    }

    /// Finds the repository that a workspace belongs to, if it lies elsewhere.
    fn around(
        &mut self,
        root: &Path,
        writes: bool,
        home: Option<&Path>,
    ) -> Result<(), Unenforceable> {
        let own = root.join(REPOSITORY);
        if fs::symlink_metadata(&own).is_ok_and(|data| data.is_file()) {
            return self.linked(&own, writes);
        }
        if is_there(&own.join("HEAD")) || own.is_symlink() {
            return Ok(());
        }
        for above in root.ancestors().skip(1) {
            let is_homes = home.is_some_and(|home| home.starts_with(above));
            if above.parent().is_none() || is_homes || self.is_written(above) {
                break;
            }
            let git = above.join(REPOSITORY);
            match fs::symlink_metadata(&git) {
                Ok(data) if data.is_dir() && is_repository(&git) => {
                    self.found.is_part = true;
                    self.see(&git, false, Vec::new());
                    break;
                }
                Ok(data) if data.is_file() => {
                    self.found.is_part = true;
                    self.see(&git, false, Vec::new());
                    return self.linked(&git, false);
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Shows what a file that says where the repository is leads to, if that leads back: then
    /// version control made both.
    fn linked(&mut self, git: &Path, writes: bool) -> Result<(), Unenforceable> {
        let Some(led) = told(git, "gitdir:").and_then(|path| real(&path)) else {
            return Ok(());
        };
        if self.is_written(&led) || self.found.is_granted(&led) {
            return Ok(());
        }
        let leads_back = |file: &Path, key: &str, to: &Path| {
            told(file, key)
                .and_then(|path| real(&path))
                .is_some_and(|path| path == to)
        };
        let worktree = git.parent().unwrap_or(git);
        let common = led.parent().filter(|above| above.ends_with("worktrees"));
        let common = common.and_then(Path::parent).filter(|common| {
            leads_back(&led.join(BACK), "", git) && leads_back(&led.join("commondir"), "", common)
        });
        let shown = match common {
            Some(common) if is_repository(common) => common,
            _ if is_repository(&led) && leads_back(&led.join("config"), "worktree =", worktree) => {
                &led
            }
            Some(_) | None => {
                self.found.told.push(format!(
                    "git does not work here: {} leads to {}, which does not lead back; name it in \
                     sandbox.write",
                    git.display(),
                    led.display()
                ));
                return Ok(());
            }
        };
        let mut parts: Vec<PathBuf> = ["objects", "refs", "logs"]
            .map(|name| shown.join(name))
            .into();
        parts.extend((shown != led).then(|| led.clone()));
        self.see(shown, writes, parts);
        if !writes {
            return Ok(());
        }
        self.written.push(shown.to_owned());
        self.repository(shown, shown)
    }

    fn see(&mut self, path: &Path, writes: bool, parts: Vec<PathBuf>) {
        self.found.beyond.push(Beyond {
            path: path.to_owned(),
            writes,
            parts,
        });
    }

    fn is_written(&self, path: &Path) -> bool {
        self.root_of(path).is_some()
    }

    /// What may be written around a path.
    fn root_of(&self, path: &Path) -> Option<PathBuf> {
        let mut roots = self.written.iter();
        roots.find(|root| path.starts_with(root)).cloned()
    }
}

/// Where a path leads, whoever laid the links.
fn real(path: &Path) -> Option<PathBuf> {
    follow(path, &[]).ok().map(|led| led.real)
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Whether something cannot be made there by anybody of this user.
fn is_refused(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem
    )
}

/// Whether version control takes a directory for a repository.
fn is_repository(directory: &Path) -> bool {
    is_there(&directory.join("HEAD"))
        && ["objects", "refs"]
            .iter()
            .all(|name| paths::open(&directory.join(name)).is_ok())
}

/// The directories in a directory, links left out.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let is_real = fs::symlink_metadata(directory).is_ok_and(|data| data.is_dir());
    let entries = is_real.then(|| fs::read_dir(directory).ok()).flatten();
    let entries = entries.into_iter().flatten().flatten().take(ENTRIES);
    let real = entries.filter(|entry| entry.file_type().is_ok_and(|of| of.is_dir()));
    real.map(|entry| entry.path()).collect()
}

/// The path that a file names behind this word on a line, seen from the directory of the file.
fn told(file: &Path, word: &str) -> Option<PathBuf> {
    let text = settings::text(file)?;
    let mut lines = text.lines().map(str::trim);
    let path = lines.find_map(|line| line.strip_prefix(word))?.trim();
    (!path.is_empty()).then(|| file.parent().map(|directory| directory.join(path)))?
}
