//! Finds the repositories of what may be written, and what of them is to be [`Protected`].
//!
//! A `.git` may be a directory, a file that names one, or a link. Whatever version control would use
//! is found from there without trusting it: what tools may have written leads nowhere outside, unless
//! what is found there leads back.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::sandbox::ground::{ENTRIES, Ground, Sort};
use crate::sandbox::paths::{self, follow, is_there};
use crate::sandbox::placeholders::{self, Kind};
use crate::sandbox::protected::{BACK, NAMES, Placeholder, Protected, REPOSITORY};
use crate::sandbox::settings::{self, Named};
use crate::sandbox::{Bounds, Mechanism, Unenforceable};

/// What in a repository leads version control elsewhere and is seldom there: other remotes, other
/// stores of objects, filters.
const LEADS: [&str; 4] = [
    "remotes",
    "branches",
    "objects/info/alternates",
    "info/attributes",
];

/// What other systems than git keep their settings in, or are told by where they are.
const OF_OTHERS: [&str; 8] = [
    "hgrc",
    "hgrc-not-shared",
    "requires",
    "sharedpath",
    "repo",
    "repo/config.toml",
    "repo/store/git_target",
    "workspace-config.toml",
];

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
        linked: BTreeSet::new(),
    };
    let hidden = bounds.hidden.iter().filter_map(|path| real(path));
    let hidden: Vec<PathBuf> = hidden.collect();
    let distrusted = bounds.distrusted();
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
        let ground = Ground::below(root);
        if ground.is_cut {
            search.found.told.push(format!(
                "only {ENTRIES} entries of {} were searched for repositories to protect",
                root.display()
            ));
        }
        search.found.is_cut |= ground.is_cut;
        for (entry, sort) in ground.found {
            match sort {
                Sort::Git if entry == own => {}
                Sort::Git => search.entry(root, &entry)?,
                Sort::Bare => search.bare(root, &entry),
                Sort::Other => search.other(root, &entry)?,
            }
            search.found.places.insert(entry);
        }
        for hidden in hidden.iter().filter(|path| path.starts_with(root)) {
            let mut above = hidden.ancestors().skip(1);
            if let Some(above) = above.find(|above| above.is_dir()) {
                search.hold(root, above);
            }
        }
    }
    // Where tools may write, now or before, the other name may lie beside it.
    let laid = |hidden: &&PathBuf| {
        let mut places = distrusted.iter();
        places.any(|place| hidden.starts_with(place))
    };
    for hidden in hidden.iter().filter(laid) {
        search.remember_linked(hidden);
    }
    let home = bounds.home.as_deref();
    let read = bounds.roots.first().map(|root| (root, false));
    let work = read.or_else(|| bounds.write.first().map(|root| (root, true)));
    if let Some((root, writes)) = work {
        search.around(root, writes, home)?;
    }
    if let Some(first) = search.linked.first() {
        let more = match search.linked.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        search.found.told.push(format!(
            "{}{more}: protected by this name, but not by another that it has (a hard link); put a copy \
             in its place to end that",
            first.display()
        ));
    }
    search.found.repositories = search.seen;
    Ok((search.found, search.placeholders))
}

/// A search under way.
pub(super) struct Search {
    pub(super) found: Protected,
    /// What may be written.
    pub(super) written: Vec<PathBuf>,
    home: Option<PathBuf>,
    placeholders: Vec<Placeholder>,
    /// Whether what is not there is made.
    makes: bool,
    /// The repositories that were found.
    seen: BTreeSet<PathBuf>,
    /// What is protected by this name and has others.
    linked: BTreeSet<PathBuf>,
}

impl Search {
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
                self.repository(root, &led)?;
                // What counts from a worktree counts from this one as well.
                let top = git.parent().unwrap_or(root);
                self.settings(root, &led, top);
                if let Some(common) = common(&led) {
                    self.settings(root, &common, top);
                }
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Protects a repository: what names programs cannot be written, and nothing on the way to it
    /// can be replaced.
    pub(super) fn repository(
        &mut self,
        root: &Path,
        directory: &Path,
    ) -> Result<(), Unenforceable> {
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
        if let Some(common) = common(directory)
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
            self.modules(&root, &part.join("modules"))?;
        }
        let modules = directory.join("modules");
        let is_part = directory
            .parent()
            .is_some_and(|parent| parent.ends_with("worktrees"));
        // A worktree that has them cannot be removed.
        if is_there(&modules) || !is_part && directory != root {
            self.fix(&root, &modules, Kind::Directory)?;
        }
        self.modules(&root, &modules)?;
        self.runs(&directory.join("hooks"));
        let leads = LEADS.map(|name| directory.join(name));
        self.found.watched.extend(leads);
        let top = match directory.parent() {
            Some(parent) if directory.ends_with(REPOSITORY) => Some(parent.to_owned()),
            _ => told(&directory.join("config"), "worktree =").and_then(|path| real(&path)),
        };
        let top = top.unwrap_or_else(|| directory.to_owned());
        self.settings(&root, directory, &top);
        Ok(())
    }

    /// Protects what is there of a repository without a worktree. The rest is watched, since nothing
    /// may be made in it: such directories are committed as samples.
    fn bare(&mut self, root: &Path, directory: &Path) {
        if !self.seen.insert(directory.to_owned()) || self.found.is_granted(directory) {
            return;
        }
        for path in NAMES.map(|name| directory.join(name)) {
            if is_there(&path) {
                self.keep(&path);
                self.runs(&path);
            } else {
                self.found.watched.insert(path);
            }
        }
        self.settings(root, directory, directory);
    }

    /// Protects the settings that another system keeps in a directory.
    fn other(&mut self, root: &Path, directory: &Path) -> Result<(), Unenforceable> {
        let is_real = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| data.is_dir());
        if !is_real(directory) || self.found.is_granted(directory) {
            return Ok(());
        }
        let is_hg = |name: &OsStr| name.eq_ignore_ascii_case(".hg");
        let own = if directory.file_name().is_some_and(is_hg) {
            directory.join("hgrc")
        } else {
            directory.join("repo/config.toml")
        };
        if own.parent().is_some_and(is_real) {
            self.fix(root, &own, Kind::File(""))?;
        }
        for path in OF_OTHERS.map(|name| directory.join(name)) {
            let is_file = fs::symlink_metadata(&path).is_ok_and(|data| !data.is_dir());
            if path != own && is_file && path.parent().is_some_and(is_real) {
                self.keep(&path);
            }
        }
        Ok(())
    }

    /// Has what links in a directory of hooks lead to in the work watched.
    fn runs(&mut self, hooks: &Path) {
        let entries = fs::read_dir(hooks).into_iter().flatten().flatten();
        let links = entries.take(ENTRIES).map(|entry| entry.path());
        let links = links.filter(|path| path.is_symlink());
        let led = links.filter_map(|path| real(&path));
        let led: Vec<PathBuf> = led.filter(|led| self.is_written(led)).collect();
        self.found.watched.extend(led);
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
            self.runs(&led);
            for path in spelled.into_iter().chain([led]) {
                self.keep(&path);
            }
        }
        let programs = named.programs.iter().filter_map(|path| real(path));
        let programs = programs.filter(|led| led.is_file() && self.is_written(led));
        let programs: Vec<PathBuf> = programs.collect();
        self.found.watched.extend(programs);
    }

    /// Protects the repositories of submodules, whose names may have slashes. No others can be laid
    /// between them, which version control would take up when it fetches a submodule.
    fn modules(&mut self, root: &Path, directory: &Path) -> Result<(), Unenforceable> {
        for module in directories(directory) {
            if is_there(&module.join("HEAD")) {
                self.repository(root, &module)?;
            } else {
                self.fix(root, &module, Kind::Directory)?;
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
        self.remember_linked(&path);
        self.found.fixed.insert(path);
    }

    /// Remembers which files have other names, of what is fixed and of what lies in it, as hooks do: by
    /// those they may be written.
    fn remember_linked(&mut self, path: &Path) {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let entries = entries.take(ENTRIES).map(|entry| entry.path());
        for path in std::iter::once(path.to_owned()).chain(entries) {
            let is_linked = |data: fs::Metadata| data.is_file() && data.nlink() > 1;
            if fs::symlink_metadata(&path).is_ok_and(is_linked) {
                self.linked.insert(path);
            }
        }
    }

    /// Holds a path below the root, and every directory on the way.
    fn hold(&mut self, root: &Path, path: &Path) {
        let way = path.ancestors().take_while(|above| *above != root);
        let way = way.filter(|above| above.starts_with(root));
        self.found.held.extend(way.map(Path::to_owned));
    }

    pub(super) fn is_written(&self, path: &Path) -> bool {
        self.root_of(path).is_some()
    }

    /// What may be written around a path.
    fn root_of(&self, path: &Path) -> Option<PathBuf> {
        let mut roots = self.written.iter();
        roots.find(|root| path.starts_with(root)).cloned()
    }
}

/// Where a path leads, whoever laid the links.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    follow(path, &[]).ok().map(|led| led.real)
}

/// Whether something cannot be made there by anybody of this user.
fn is_refused(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem
    )
}

/// Whether version control takes a directory for a repository.
pub(super) fn is_repository(directory: &Path) -> bool {
    is_there(&directory.join("HEAD"))
        && ["objects", "refs"]
            .iter()
            .all(|name| paths::open(&directory.join(name)).is_ok())
}

/// Where a repository says that it has the rest of it.
fn common(directory: &Path) -> Option<PathBuf> {
    told(&directory.join("commondir"), "").and_then(|path| real(&path))
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
pub(super) fn told(file: &Path, word: &str) -> Option<PathBuf> {
    let text = settings::text(file)?;
    let mut lines = text.lines().map(str::trim);
    let path = lines.find_map(|line| line.strip_prefix(word))?.trim();
    (!path.is_empty()).then(|| file.parent().map(|directory| directory.join(path)))?
}
