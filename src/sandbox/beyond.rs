//! Finds the repository of a workspace where it lies elsewhere: above it, or where a file says.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::Unenforceable;
use crate::sandbox::paths::is_there;
use crate::sandbox::protected::{BACK, Beyond, REPOSITORY};
use crate::sandbox::repositories::{Search, is_repository, real, told};

impl Search {
    /// Finds the repository that a workspace belongs to, if it lies elsewhere.
    pub(super) fn around(
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
}
