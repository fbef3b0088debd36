//! What the settings of version control lead to: other settings, directories of hooks, programs.
//!
//! Such a thing in the workspace is run by the user's own version control as surely as a hook. All
//! settings count that may be in force: conditions are not looked at.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::sandbox::paths::{self, follow};

/// How much of a file is read.
const LONGEST: u64 = 64 << 10;

/// How many files of settings lead to each other.
const FILES: usize = 64;

/// Sections and keys that name a program; an empty key means all of a section.
const PROGRAMS: [(&str, &str); 22] = [
    ("core", "fsmonitor"),
    ("core", "sshcommand"),
    ("core", "editor"),
    ("core", "pager"),
    ("core", "askpass"),
    ("core", "gitproxy"),
    ("sequence", "editor"),
    ("interactive", "difffilter"),
    ("diff", "external"),
    ("diff", "command"),
    ("diff", "textconv"),
    ("filter", "clean"),
    ("filter", "smudge"),
    ("filter", "process"),
    ("merge", "driver"),
    ("difftool", "cmd"),
    ("mergetool", "cmd"),
    ("credential", "helper"),
    ("gpg", "program"),
    ("hook", "command"),
    ("alias", ""),
    ("pager", ""),
];

/// What settings name, wherever it lies and whether it is there or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// More settings.
    pub(super) settings: BTreeSet<PathBuf>,
    /// Directories of hooks.
    pub(super) hooks: BTreeSet<PathBuf>,
    /// What may be programs.
    pub(super) programs: BTreeSet<PathBuf>,
}

impl Named {
    /// What these files name for whoever works in `top`.
    pub(super) fn of(files: Vec<PathBuf>, top: &Path, home: Option<&Path>) -> Self {
        let mut named = Self::default();
        let mut seen = BTreeSet::new();
        let mut left = files;
        while let Some(file) = left.pop() {
            let Ok(led) = follow(&file, &[]) else {
                continue;
            };
            if seen.len() == FILES || !seen.insert(led.real.clone()) {
                continue;
            }
            let beside = file.parent().unwrap_or(top);
            for (section, key, value) in entries(&text(&led.real).unwrap_or_default()) {
                match (section.as_str(), key.as_str()) {
                    ("include" | "includeif", "path") => {
                        let more = full(&value, beside, home);
                        left.push(more.clone());
                        named.settings.insert(more);
                    }
                    ("core", "hookspath") => {
                        named.hooks.insert(full(&value, top, home));
                    }
                    (section, key) => {
                        let is_of = |(of, its): &(&str, &str)| {
                            *of == section && (its.is_empty() || *its == key)
                        };
                        if PROGRAMS.iter().any(is_of) {
                            let words = value.trim_start_matches('!').split_whitespace();
                            let words = words.map(|word| word.trim_matches(['"', '\'', ';']));
                            let words = words.filter(|word| !word.is_empty());
                            named
                                .programs
                                .extend(words.map(|word| full(word, top, home)));
                        }
                    }
                }
            }
        }
        named
    }
}

/// The sections, keys and values of settings, without what sections say of themselves.
fn entries(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some((head, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            let name = head.split(|c: char| c.is_whitespace() || c == '.').next();
            section = name.unwrap_or_default().to_ascii_lowercase();
            line = rest.trim();
        }
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some((key, value)) = line.split_once('=') {
            let key = key.trim().to_ascii_lowercase();
            found.push((section.clone(), key, plain(value)));
        }
    }
    found
}

/// A value without quotes and remarks.
fn plain(value: &str) -> String {
    let value = value.trim();
    if let Some(quoted) = value.strip_prefix('"') {
        return quoted.split('"').next().unwrap_or_default().to_owned();
    }
    let remark = value.find(" #").into_iter().chain(value.find(" ;")).min();
    let value = remark.and_then(|at| value.get(..at)).unwrap_or(value);
    value.trim().to_owned()
}

/// The path that is meant.
fn full(path: &str, from: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_) | None, _) => from.join(path),
    }
}

/// The beginning of a file, if it is one and no link.
pub(super) fn text(file: &Path) -> Option<String> {
    let opened = paths::open(file).ok()?;
    // Anything else might be waited for.
    let mode = rustix::fs::fstat(&opened).ok()?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::RegularFile {
        return None;
    }
    let mut text = Vec::new();
    let opened = fs::File::open(paths::of(&opened)).ok()?;
    opened.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_settings_name_is_found_in_all_of_them() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("home")).unwrap();
        fs::create_dir_all(at.join("w/.git")).unwrap();
        let config = "[Core] hooksPath = .githooks # of the project\n\
                      \tfsmonitor = true\n\
                      [include]\n\tpath = ../more\n\
                      [includeIf \"gitdir:~/w/\"]\n\tpath = ~/work\n\
                      # [core] pager = no\n\
                      [alias]\n\tx = \"!./tools/x --fast\"\n\
                      [remote \"origin\"]\n\turl = ./elsewhere\n";
        fs::write(at.join("w/.git/config"), config).unwrap();
        fs::write(at.join("w/more"), "[filter \"x\"]\nclean = tools/clean\n").unwrap();
        fs::write(at.join("home/work"), "[core]\nhooksPath=~/hooks\n").unwrap();
        let (top, home) = (at.join("w"), at.join("home"));
        let named = Named::of(vec![top.join(".git/config")], &top, Some(&home));
        let paths = |paths: &[&str]| paths.iter().map(|path| at.join(path)).collect();
        assert_eq!(
            named,
            Named {
                settings: paths(&["w/.git/../more", "home/work"]),
                hooks: paths(&["w/.githooks", "home/hooks"]),
                programs: paths(&["w/true", "w/./tools/x", "w/--fast", "w/tools/clean"]),
            }
        );
    }
}
