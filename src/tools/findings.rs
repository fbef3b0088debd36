//! What a search found: the lines of one file while it is searched, and the whole as it is told.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};

use crate::exchange::Status;
use crate::tools::Outcome;
use crate::tools::line::excerpt;
use crate::tools::scope::Site;
use crate::tools::walk::{self, Unseen, counted};
use crate::words::grouped;

/// How findings are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The matching lines.
    Lines,
    /// The files that have some.
    Files,
    /// How many each file has.
    Counts,
}

/// What was found, as far as it fits.
#[derive(Debug)]
pub(crate) struct Findings {
    form: Form,
    /// The longest list, in matching lines or in files.
    limit: u64,
    /// What is left for it, in characters.
    room: u64,
    directory: PathBuf,
    text: String,
    shown: u64,
    /// Nothing more is shown.
    full: bool,
    lines: u64,
    files: u64,
    searched: u64,
    binary: u64,
    too_large: u64,
    unreadable: u64,
}

impl Findings {
    /// Nothing yet.
    pub(crate) fn new(form: Form, limit: u64, site: &Site) -> Self {
        Self {
            form,
            limit,
            // What the lines about the rest need is taken off.
            room: site.chars.saturating_sub(600),
            directory: site.directory(),
            text: String::new(),
            shown: 0,
            full: false,
            lines: 0,
            files: 0,
            searched: 0,
            binary: 0,
            too_large: 0,
            unreadable: 0,
        }
    }

    /// How many matching lines of the next file are worth keeping.
    pub(crate) fn wanted(&self) -> u64 {
        match self.form {
            Form::Lines if !self.full => self.limit - self.shown,
            Form::Lines | Form::Files | Form::Counts => 0,
        }
    }

    /// How many characters of the next file are worth keeping.
    pub(crate) fn room(&self) -> u64 {
        self.room
    }

    /// Takes in a file that was searched to its end.
    pub(crate) fn add(&mut self, path: &Path, lines: &Lines<'_>) {
        if lines.binary {
            self.binary += 1;
            return;
        }
        self.searched += 1;
        if lines.matching == 0 {
            return;
        }
        self.lines += lines.matching;
        self.files += 1;
        if self.full {
            return;
        }
        let path = walk::shown(&self.directory, path);
        match self.form {
            Form::Lines => self.show_lines(&path, lines),
            Form::Files => self.show(&format!("{path}\n"), 1),
            Form::Counts => {
                self.show(&format!("{path}: {}\n", grouped(lines.matching)), 1);
            }
        }
    }

    /// A file had a line that is too long to be looked at.
    pub(crate) fn too_large(&mut self) {
        self.too_large += 1;
    }

    /// A file could not be read to its end.
    pub(crate) fn unreadable(&mut self) {
        self.unreadable += 1;
    }

    fn show_lines(&mut self, path: &str, lines: &Lines<'_>) {
        let mut last = None;
        for line in &lines.kept {
            let follows = last.is_some_and(|last: u64| last + 1 == line.number);
            let gap = lines.context && !follows && !self.text.is_empty();
            let gap = if gap { "--\n" } else { "" };
            let (mark, number) = (if line.matches { ':' } else { '-' }, line.number);
            let text = format!("{gap}{path}{mark}{number}{mark} {}\n", line.text);
            self.show(&text, u64::from(line.matches));
            if self.full {
                return;
            }
            last = Some(line.number);
        }
        self.full = self.shown < self.lines;
    }

    /// Shows these findings, if they fit.
    fn show(&mut self, text: &str, findings: u64) {
        let chars = text.chars().count() as u64;
        let fits = chars <= self.room || self.text.is_empty();
        if fits && self.shown + findings <= self.limit {
            self.room = self.room.saturating_sub(chars);
            self.text.push_str(text);
            self.shown += findings;
        } else {
            self.full = true;
        }
    }

    /// The answer to the call.
    pub(crate) fn outcome(self, mut unseen: Unseen) -> Outcome {
        let mut text = self.text;
        let files = counted(self.files, "file", "files");
        let lines = counted(self.lines, "matching line", "matching lines");
        let (all, shown) = match self.form {
            Form::Lines => (self.lines, format!("{lines}, in {files}")),
            Form::Files | Form::Counts => (self.files, files.clone()),
        };
        if self.lines == 0 && unseen.status() == Status::Ok {
            let searched = counted(self.searched, "file", "files");
            writeln!(text, "No match; {searched} searched.").ok();
        } else if self.shown < all {
            let first = grouped(self.shown);
            let limit = if self.shown == self.limit {
                ", or set limit"
            } else {
                ""
            };
            writeln!(
                text,
                "[the first {first} of {shown}; narrow pattern, path or glob{limit}]"
            )
            .ok();
        }
        if self.form == Form::Counts && self.lines > 0 {
            writeln!(text, "[{lines} in {files}]").ok();
        }
        if self.binary > 0 {
            let what = counted(self.binary, "binary file", "binary files");
            writeln!(text, "[{what} left out]").ok();
        }
        if self.too_large > 0 {
            let what = counted(self.too_large, "file", "files");
            writeln!(text, "[{what} too large to search left out; use Bash]").ok();
        }
        unseen.unreadable += self.unreadable;
        unseen.tell(&mut text);
        Outcome::new(unseen.status(), text)
    }
}

/// The lines of one file.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    matcher: &'a RegexMatcher,
    /// How many matching lines are still kept.
    wanted: u64,
    /// How many characters are.
    room: u64,
    kept: Vec<Line>,
    /// Lines before the next match, kept if it is.
    before: Vec<Line>,
    matching: u64,
    /// A matching line was not kept.
    dropped: bool,
    /// There are lines around the matching ones.
    context: bool,
    binary: bool,
}

/// One line.
#[derive(Debug)]
struct Line {
    number: u64,
    text: String,
    matches: bool,
}

impl<'a> Lines<'a> {
    /// Nothing yet, and at most so many matching lines and characters of what comes.
    pub(crate) fn new(matcher: &'a RegexMatcher, wanted: u64, room: u64) -> Self {
        Self {
            matcher,
            wanted,
            room,
            kept: Vec::new(),
            before: Vec::new(),
            matching: 0,
            dropped: false,
            context: false,
            binary: false,
        }
    }

    /// Keeps a line. Behind the one that fills the room nothing could be shown.
    fn keep(&mut self, line: Line) {
        if self.dropped {
            return;
        }
        let chars = line.text.chars().count() as u64 + 1;
        self.room = self.room.saturating_sub(chars);
        self.kept.push(line);
        if self.room == 0 {
            self.wanted = 0;
            self.dropped = true;
        }
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let before = std::mem::take(&mut self.before);
        if self.wanted > 0 {
            for line in before {
                self.keep(line);
            }
        }
        for (line, number) in found.lines().zip(found.line_number().unwrap_or(0)..) {
            self.matching += 1;
            if self.wanted > 0 {
                self.wanted -= 1;
                let at = match self.matcher.find(line) {
                    Ok(Some(found)) => found.start(),
                    Ok(None) | Err(_) => 0,
                };
                self.keep(Line {
                    number,
                    text: excerpt(line, at),
                    matches: true,
                });
            } else {
                self.dropped = true;
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        self.context = true;
        let line = || Line {
            number: found.line_number().unwrap_or(0),
            text: excerpt(found.bytes(), 0),
            matches: false,
        };
        if *found.kind() == SinkContextKind::Before {
            if self.wanted > 0 {
                self.before.push(line());
            }
        } else if !self.dropped {
            self.keep(line());
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use grep_searcher::SearcherBuilder;

    use super::*;

    #[test]
    fn no_more_lines_are_kept_than_can_be_shown() {
        let matcher = RegexMatcher::new("hit").unwrap();
        let text = format!("hit\n{}", format!("{}\n", "x".repeat(99)).repeat(50)).repeat(100);
        let mut lines = Lines::new(&matcher, 5000, 1000);
        SearcherBuilder::new()
            .before_context(50)
            .after_context(50)
            .build()
            .search_reader(&matcher, text.as_bytes(), &mut lines)
            .unwrap();
        assert_eq!((lines.matching, lines.kept.len()), (100, 11));
    }
}
