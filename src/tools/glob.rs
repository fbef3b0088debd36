//! `Glob`: finds files by name.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::exchange::{Status, ToolSpec};
use crate::tools::scope::{Site, quoted};
use crate::tools::walk::{self, Place, Watch, counted};
use crate::tools::wildcard::{Wildcard, split};
use crate::tools::{Outcome, declared, schema};
use crate::words::grouped;

/// How many paths are shown.
const MOST: u64 = 500;

/// The arguments of `Glob`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The pattern: `*` within a name, `**` any directories, `?`, `[a-z]`, `{a,b}`.
    pattern: String,
    /// The directory to look in (the working directory unless given).
    path: Option<String>,
}

/// The spec of `Glob`.
pub(crate) fn spec() -> ToolSpec {
    declared::spec("Glob", schema::of::<Arguments>())
}

/// Finds the files.
pub(crate) fn run(site: &Site, arguments: &str, watch: &Watch) -> Outcome {
    let Arguments { pattern, path } = match serde_json::from_str(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return Outcome::error(format!("The arguments do not fit: {error}")),
    };
    let wants_directories = pattern.ends_with('/');
    // What is named without wildcards is judged like any path, and need not be searched.
    let (base, rest) = split(pattern.trim_end_matches('/'));
    let anywhere = base.is_empty() && !rest.contains('/');
    let wildcard = match Wildcard::from(rest, anywhere) {
        Ok(wildcard) => wildcard,
        Err(error) => {
            return Outcome::error(format!(
                "The pattern {} cannot be used: {error}.",
                quoted(&pattern)
            ));
        }
    };
    let path = path.as_deref().unwrap_or_default();
    let start = match Path::new(path).join(base).to_string_lossy().into_owned() {
        start if start.is_empty() => ".".to_owned(),
        start => start,
    };
    let tree = match walk::find(site, &start) {
        Ok(Place::Directory(tree)) => tree,
        Ok(Place::Other(..)) => {
            let start = quoted(&start);
            return Outcome::error(format!("{start}: a file, not a directory to look in"));
        }
        Err(refusal) => return walk::refused(&refusal, &start),
    };

    let mut paths = Paths::new(site);
    let mut looked_at = 0;
    let unseen = tree.walk(site, watch, &mut |thing| {
        if (thing.kind == FileType::Directory) == wants_directories {
            looked_at += 1;
            if wildcard.takes(thing.below) {
                paths.add(thing.path, wants_directories);
            }
        }
    });
    let (one, more) = if wants_directories {
        ("directory", "directories")
    } else {
        ("file", "files")
    };
    let Paths {
        mut text,
        shown,
        found,
        ..
    } = paths;
    if found == 0 && unseen.status() == Status::Ok {
        let (pattern, looked_at) = (quoted(&pattern), counted(looked_at, one, more));
        writeln!(text, "Nothing matches {pattern}; {looked_at} looked at.").ok();
    } else if shown < found {
        let (shown, found) = (grouped(shown), counted(found, one, more));
        writeln!(
            text,
            "[the first {shown} of {found}; narrow pattern or path]"
        )
        .ok();
    }
    unseen.tell(&mut text);
    Outcome::new(unseen.status(), text)
}

/// Paths, as many as fit.
struct Paths {
    directory: PathBuf,
    room: u64,
    text: String,
    shown: u64,
    found: u64,
}

impl Paths {
    fn new(site: &Site) -> Self {
        Self {
            directory: site.directory(),
            // What is left for paths once the lines about the rest are taken off.
            room: site.chars.saturating_sub(400),
            text: String::new(),
            shown: 0,
            found: 0,
        }
    }

    fn add(&mut self, path: &Path, is_directory: bool) {
        self.found += 1;
        if self.found - 1 > self.shown || self.shown == MOST {
            return;
        }
        let path = walk::shown(&self.directory, path);
        let slash = if is_directory { "/" } else { "" };
        let chars = path.chars().count() as u64 + 2;
        if chars > self.room && self.shown > 0 {
            return;
        }
        self.room = self.room.saturating_sub(chars);
        writeln!(self.text, "{path}{slash}").ok();
        self.shown += 1;
    }
}
