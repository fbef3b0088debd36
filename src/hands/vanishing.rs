//! What is written where nothing lasts: it succeeds, and is gone with the process.
//!
//! The home directory that tools see is one of their own, and so is what lies around the workspace.
//! Caches may come and go there; whoever leaves a file by a plain name means it to stay.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::sandbox::{Bounds, Mechanism};
use crate::tools::{Outcome, scope};

/// How many entries of a directory are looked at.
const ENTRIES: usize = 1000;

/// How many are told at once.
const TOLD: usize = 5;

/// Those directories, and what in them is known.
#[derive(Debug)]
pub(super) struct Vanishing {
    places: Vec<PathBuf>,
    known: Mutex<BTreeSet<PathBuf>>,
}

impl Vanishing {
    /// Those within these bounds; `None` if whatever can be written lasts, or is meant not to.
    pub(super) fn of(bounds: &Bounds, mechanism: Mechanism) -> Option<Self> {
        if mechanism == Mechanism::Landlock {
            return None;
        }
        let lasts = |path: &Path| {
            let mut roots = bounds.write.iter().chain(&bounds.roots);
            roots.any(|root| path.starts_with(root))
        };
        let around = bounds.write.iter().chain(&bounds.roots);
        let around = around.filter_map(|root| root.parent().map(Path::to_owned));
        let places = around.chain(bounds.home.iter().cloned());
        let temporary = ["/tmp", "/var/tmp"].map(Path::new);
        let places: BTreeSet<PathBuf> = places
            .filter(|path| !lasts(path) && !temporary.contains(&path.as_path()))
            .collect();
        let places: Vec<PathBuf> = places.into_iter().collect();
        let known = Mutex::new(entries(&places));
        Some(Self { places, known })
    }

    /// Adds a line if anything is there that was not when this was last asked.
    pub(super) fn tell(&self, outcome: &mut Outcome) {
        let now = entries(&self.places);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<String> = now
            .difference(&known)
            .map(|path| scope::one_line(&path.to_string_lossy()))
            .collect();
        known.extend(now);
        drop(known);
        if new.is_empty() {
            return;
        }
        let more = match new.len().saturating_sub(TOLD) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = new.get(..TOLD).unwrap_or(&new).join(", ");
        outcome.add_line(&format!(
            "[outside the workspace (sandbox), gone when the run ends: {named}{more}; the user keeps \
             a place with sandbox.write in config.yaml]"
        ));
    }
}

/// What lies in these directories by a plain name.
fn entries(places: &[PathBuf]) -> BTreeSet<PathBuf> {
    let lists = places.iter().filter_map(|place| fs::read_dir(place).ok());
    let entries = lists.flat_map(|list| list.flatten().take(ENTRIES));
    let plain = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    plain.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_will_be_gone_is_told_once() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["home/there", "w"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        let bounds = Bounds {
            write: vec![at("w")],
            home: Some(at("home")),
            ..Bounds::default()
        };
        assert!(Vanishing::of(&bounds, Mechanism::Landlock).is_none());
        let vanishing = Vanishing::of(&bounds, Mechanism::Namespaces).unwrap();
        let told = || {
            let mut outcome = Outcome::ok("done\n");
            vanishing.tell(&mut outcome);
            let line = outcome.content.strip_prefix("done\n").unwrap();
            line.replace(place.path().to_str().unwrap(), "")
        };
        assert_eq!(told(), "");
        fs::write(at("w/kept"), "").unwrap();
        fs::write(at("home/.cache"), "").unwrap();
        assert_eq!(told(), "");
        fs::write(at("home/report"), "").unwrap();
        fs::write(at("other.txt"), "").unwrap();
        insta::assert_snapshot!(told(), @"[outside the workspace (sandbox), gone when the run ends: /home/report, /other.txt; the user keeps a place with sandbox.write in config.yaml]");
        assert_eq!(told(), "");
        for number in 1..8 {
            fs::write(at("home").join(number.to_string()), "").unwrap();
        }
        assert!(told().contains("/home/5 and 2 more;"));
    }
}
