//! `Grep`: searches files for a regular expression.
//!
//! The engine is ripgrep's: its time grows with the text and never explodes with the pattern. No
//! settings of the workspace or the user have a say in it.

use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::path::Path;

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::exchange::ToolSpec;
use crate::tools::findings::{Findings, Form, Lines};
use crate::tools::scope::{Site, quoted};
use crate::tools::walk::{self, Place, Unseen, Watch};
use crate::tools::wildcard::Wildcard;
use crate::tools::{Outcome, declared, file, schema};
use crate::words::grouped;

/// How many lines or files are shown unless asked for otherwise.
const LIMIT: u64 = 200;

/// The longest pattern, in bytes.
const LONGEST: usize = 10_000;

/// The largest compiled pattern, in bytes.
const COMPILED: usize = 10 << 20;

/// The longest line, and the largest file of a search across lines, in bytes.
const HELD: usize = 16 << 20;

/// The arguments of `Grep`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The regular expression.
    pattern: String,
    /// The file or directory to search (the working directory unless given).
    path: Option<String>,
    /// Only files that match: `*.rs`, `*.{ts,tsx}`, or counted from `path`: `src/**/*.py`; all but those with `!`: `!*.lock`.
    glob: Option<String>,
    /// What to show (`matches` unless given).
    output: Option<Output>,
    /// Do not tell upper from lower case.
    case_insensitive: Option<bool>,
    /// How many lines to show before and after each match.
    #[schemars(range(max = 100))]
    context: Option<u8>,
    /// Let a match span lines; `.` then matches line breaks as well.
    multiline: Option<bool>,
    /// How many matching lines (or files) to show (200 unless given).
    #[schemars(range(min = 1, max = 5000))]
    limit: Option<u64>,
}

/// What a search shows.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Output {
    Matches,
    Files,
    Count,
}

/// The spec of `Grep`.
pub(crate) fn spec() -> ToolSpec {
    declared::spec("Grep", schema::of::<Arguments>())
}

/// Searches.
pub(crate) fn run(site: &Site, arguments: &str, watch: &Watch) -> Outcome {
    let arguments: Arguments = match serde_json::from_str(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return Outcome::error(format!("The arguments do not fit: {error}")),
    };
    let (mut search, filter) = match Search::new(&arguments, watch)
        .and_then(|search| Ok((search, Filter::new(arguments.glob.as_deref())?)))
    {
        Ok(both) => both,
        Err(what) => return Outcome::error(what),
    };
    let form = match arguments.output {
        None | Some(Output::Matches) => Form::Lines,
        Some(Output::Files) => Form::Files,
        Some(Output::Count) => Form::Counts,
    };
    let mut findings = Findings::new(form, arguments.limit.unwrap_or(LIMIT).max(1), site);
    let path = arguments.path.as_deref().unwrap_or(".");
    let unseen = match walk::find(site, path) {
        Ok(Place::Directory(tree)) => {
            let mut unreadable = 0;
            let mut unseen = tree.walk(site, watch, &mut |thing| {
                if thing.kind == FileType::RegularFile && filter.takes(thing.below) {
                    match file::open(thing.parent, thing.name) {
                        Ok((file, _)) => search.file(file, thing.path, &mut findings),
                        Err(_) => unreadable += 1,
                    }
                }
            });
            unseen.unreadable += unreadable;
            unseen
        }
        Ok(Place::Other(spot, real)) => match file::open(spot.parent.as_fd(), &spot.file) {
            Ok((file, _)) => {
                search.file(file, &real, &mut findings);
                Unseen::of_file(watch)
            }
            Err(refusal) => return walk::refused(&refusal, path),
        },
        Err(refusal) => return walk::refused(&refusal, path),
    };
    findings.outcome(unseen)
}

/// A pattern, ready to be searched for.
struct Search<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    watch: &'a Watch,
}

impl<'a> Search<'a> {
    /// The search; `Err` says what is wrong with the pattern, for the model.
    fn new(arguments: &Arguments, watch: &'a Watch) -> Result<Self, String> {
        let pattern = &arguments.pattern;
        if pattern.len() > LONGEST {
            let longest = grouped(LONGEST as u64);
            return Err(format!("The pattern is longer than {longest} bytes."));
        }
        let multiline = arguments.multiline == Some(true);
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(arguments.case_insensitive == Some(true))
            .multi_line(true)
            .crlf(true)
            .size_limit(COMPILED)
            .dfa_size_limit(COMPILED);
        if multiline {
            builder.line_terminator(None).dot_matches_new_line(true);
        }
        let matcher = builder
            .build(pattern)
            .map_err(|error| unusable(pattern, &error))?;
        let context = usize::from(arguments.context.unwrap_or(0));
        let searcher = SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::quit(0))
            .multi_line(multiline)
            .before_context(context)
            .after_context(context)
            .heap_limit(Some(HELD))
            .build();
        Ok(Self {
            matcher,
            searcher,
            watch,
        })
    }

    /// Searches a file.
    fn file(&mut self, file: impl Read, path: &Path, findings: &mut Findings) {
        let watch = self.watch;
        let mut lines = Lines::new(&self.matcher, findings.wanted(), findings.room());
        let file = Watched { file, watch };
        let done = self.searcher.search_reader(&self.matcher, file, &mut lines);
        match done {
            Ok(()) => findings.add(path, &lines),
            Err(_) if watch.ended().is_some() => {}
            Err(error) if error.kind() == io::ErrorKind::Other => findings.too_large(),
            Err(_) => findings.unreadable(),
        }
    }
}

/// What is wrong with a pattern, for the model.
fn unusable(pattern: &str, error: &grep_regex::Error) -> String {
    if matches!(error.kind(), grep_regex::ErrorKind::NotAllowed(_)) {
        return "The pattern holds a line break; set multiline to search across lines.".to_owned();
    }
    // The engine wraps the pattern; without that the place is the one that the model wrote.
    match regex::bytes::Regex::new(pattern) {
        Err(regex::Error::Syntax(error)) => {
            format!("The pattern cannot be used; escape what is meant as text.\n{error}")
        }
        Ok(_) | Err(_) => format!("The pattern cannot be used: {error}."),
    }
}

/// Which files are searched.
struct Filter {
    /// `None`: all.
    wildcard: Option<Wildcard>,
    /// Whether those that the pattern takes are searched, or the others.
    takes: bool,
}

impl Filter {
    /// The filter; `Err` says what is wrong with it, for the model.
    fn new(glob: Option<&str>) -> Result<Self, String> {
        let (glob, takes) = match glob {
            None => (None, true),
            Some(glob) => match glob.strip_prefix('!') {
                Some(others) => (Some(others), false),
                None => (Some(glob), true),
            },
        };
        let fault =
            |glob: &str, what: &str| format!("The glob {} cannot be used: {what}.", quoted(glob));
        let wildcard = match glob {
            None => None,
            Some(glob) if glob.starts_with('/') => {
                return Err(fault(
                    glob,
                    "it counts from path and cannot begin with a slash",
                ));
            }
            Some(glob) => {
                Some(Wildcard::new(glob).map_err(|error| fault(glob, &error.to_string()))?)
            }
        };
        Ok(Self { wildcard, takes })
    }

    fn takes(&self, below: &Path) -> bool {
        match &self.wildcard {
            Some(wildcard) => wildcard.takes(below) == self.takes,
            None => true,
        }
    }
}

/// A file that ends with an error when the search is to end.
struct Watched<'a, F> {
    file: F,
    watch: &'a Watch,
}

impl<F: Read> Read for Watched<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.ended().is_some() {
            return Err(io::Error::other("the search ends"));
        }
        self.file.read(buffer)
    }
}
