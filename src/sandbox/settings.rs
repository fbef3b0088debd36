//! What the settings of version control lead to: other settings, directories of hooks, programs.
//!
//! Such a thing in the workspace is run by the user's own version control as surely as a hook. All
//! settings count that may be in force: conditions are not looked at.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

use rustix::fs::FileType;

use crate::sandbox::paths::{self, follow};

/// How much of a file is read.
const LONGEST: u64 = 64 << 10;

/// How many files of settings lead to each other.
const FILES: usize = 64;

/// Sections and keys that name a program; an empty key means all of a section.
const PROGRAMS: [(&str, &str); 39] = [
    ("core", "fsmonitor"),
    ("core", "sshcommand"),
    ("core", "editor"),
    ("core", "pager"),
    ("core", "askpass"),
    ("core", "gitproxy"),
    ("core", "alternaterefscommand"),
    ("core", "attributesfile"),
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
    ("difftool", "path"),
    ("mergetool", "cmd"),
    ("mergetool", "path"),
    ("guitool", "cmd"),
    ("browser", "cmd"),
    ("browser", "path"),
    ("man", "cmd"),
    ("man", "path"),
    ("credential", "helper"),
    ("gpg", "program"),
    ("gpg", "defaultkeycommand"),
    ("remote", "uploadpack"),
    ("remote", "receivepack"),
    ("sendemail", "sendmailcmd"),
    ("submodule", "update"),
    ("tar", "command"),
    ("trailer", "cmd"),
    ("trailer", "command"),
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
                    // What new repositories begin with has hooks in it.
                    ("core", "hookspath") | ("init", "templatedir") => {
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
    let mut left = text.chars().peekable();
    while let Some(first) = left.next() {
        match first {
            '#' | ';' => skip(&mut left),
            '[' => section = head(&mut left),
            first if first.is_whitespace() => {}
            first => {
                let mut key = String::from(first);
                while let Some(next) = left.next_if(|next| !['=', '\n', '#', ';'].contains(next)) {
                    key.push(next);
                }
                let is_set = left.next_if_eq(&'=').is_some();
                let value = if is_set {
                    value(&mut left)
                } else {
                    String::new()
                };
                let key = key.trim().to_ascii_lowercase();
                found.push((section.clone(), key, value));
            }
        }
    }
    found
}

/// Leaves out the rest of a line.
fn skip(left: &mut Peekable<Chars<'_>>) {
    while left.next().is_some_and(|next| next != '\n') {}
}

/// The name of a section, up to the end of its head; names within it may be quoted.
fn head(left: &mut Peekable<Chars<'_>>) -> String {
    let mut name = String::new();
    let (mut is_named, mut is_quoted) = (false, false);
    while let Some(next) = left.next_if(|next| *next != '\n') {
        match next {
            '\\' => {
                left.next();
            }
            '"' => is_quoted = !is_quoted,
            ']' if !is_quoted => break,
            next => {
                is_named |= next.is_whitespace() || next == '.';
                if !is_named {
                    name.push(next.to_ascii_lowercase());
                }
            }
        }
    }
    name
}

/// A value as it is meant, up to the end of its line: parts of it may be quoted, and what is neither
/// that nor escaped may end in a remark.
fn value(left: &mut Peekable<Chars<'_>>) -> String {
    let mut value = String::new();
    // How much of it is no blank at its end.
    let mut length = 0;
    let mut is_quoted = false;
    while let Some(next) = left.next() {
        match next {
            '\n' => break,
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => {
                skip(left);
                break;
            }
            '\\' => match left.next() {
                // The line goes on in the next one.
                Some('\n') | None => {}
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some(other) => value.push(other),
            },
            next if value.is_empty() && !is_quoted && next.is_whitespace() => {}
            next => value.push(next),
        }
        if is_quoted || !next.is_whitespace() {
            length = value.len();
        }
    }
    value.truncate(length);
    value
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

    #[test]
    fn values_are_read_as_version_control_reads_them() {
        let text = "; a = no\n\
                    [Core]hooksPath = .hooks#a remark\n\
                    \tEditor = \"a \\\"b\\\"\" c ; a remark\n\
                    # pager = no\n\
                    \tpager = ./x\\\n  --more  \n\
                    \tbare\n\
                    [filter \"a]b\"]\n\tclean = \"tools\"/clean\n\
                    [diff.word]\r\n\tcommand=x\r\n";
        let entries = entries(text);
        let entries = entries.iter();
        let read: Vec<String> = entries
            .map(|(section, key, value)| format!("{section}.{key}={value}"))
            .collect();
        assert_eq!(
            read,
            [
                "core.hookspath=.hooks",
                "core.editor=a \"b\" c",
                "core.pager=./x  --more",
                "core.bare=",
                "filter.clean=tools/clean",
                "diff.command=x",
            ]
        );
    }
}
