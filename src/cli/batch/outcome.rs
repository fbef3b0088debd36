//! The result of a line: what programs read of it, and where that is written.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::id::{Digest, RunId};
use undertext::transcript::{Event, Reason, Totals};
use undertext::view::View;

use crate::cli::batch::before;
use crate::cli::exit::{Exit, Failure};
use crate::cli::outputs;
use crate::cli::term::Term;

/// How each result begins, so that one that was cut off is known.
const BEGINS: &[u8] = b"{\"line\":";

/// What became of a line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Outcome {
    /// The number of the line, from 1.
    pub(super) line: u64,
    /// The id that the line gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// The run; absent: none was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<RunId>,
    /// Its transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) transcript: Option<String>,
    /// Why the run ended; absent if it could not work at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<Reason>,
    /// The exit code with which `run` would have ended.
    pub(super) exit: u8,
    /// The model's last text, if it finished; else what ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// What the whole run used, with what it used when it was begun before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) totals: Option<Totals>,
    /// What is wrong with the line, or why no run could work on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Outcome {
    /// A line that no run could work on.
    pub(super) fn failed(line: u64, id: Option<String>, failure: &Failure) -> Self {
        Self {
            line,
            id,
            run: None,
            transcript: None,
            reason: None,
            exit: failure.exit as u8,
            text: None,
            totals: None,
            error: Some(failure.line()),
        }
    }

    /// What a run came to that has ended.
    pub(super) fn of(line: u64, id: Option<String>, path: String, view: &View) -> Self {
        let mut totals = view.ledger().whole;
        let (mut run, mut text) = (None, None);
        for entry in view.transcript().entries() {
            if let Event::Run(first) = &entry.event {
                run = Some(first.run);
            } else if let Event::End(end) = &entry.event {
                totals.ms += end.totals.ms;
                text = Some(&end.text);
            }
        }
        let reason = before::of_view(view);
        Self {
            line,
            id,
            run,
            transcript: Some(path),
            reason,
            exit: reason.map_or(Exit::Unfinished, Exit::of) as u8,
            text: text.cloned(),
            totals: Some(totals),
            error: None,
        }
    }
}

/// Where results are written, each as one line.
pub(super) enum Results {
    /// On standard output.
    Standard,
    /// Behind what stands in a file, of whose lines these are the digests.
    Kept(Box<Term>, HashSet<Digest>),
}

impl Results {
    /// Results on standard output, or in this file. What was cut off at its end, because the program was
    /// killed, is removed.
    pub(super) fn to(file: Option<&Path>, tasks: &Path, term: &Term) -> Result<Self, Failure> {
        let Some(path) = file else {
            return Ok(Self::Standard);
        };
        let failed = |error: io::Error| {
            let error = anyhow::Error::new(error);
            let error = error.context(format!("cannot write results into {}", path.display()));
            Failure::new(Exit::Usage, error)
        };
        outputs::spare(path, None)?;
        if fs::canonicalize(path).is_ok_and(|real| real == tasks) {
            return Err(Failure::usage(format!(
                "{} holds the tasks; name another file for the results",
                path.display()
            )));
        }
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).read(true).open(path);
        let mut file = file.map_err(failed)?;
        let kept = if file.metadata().map_err(failed)?.is_file() {
            let (kept, torn) = kept(&file).map_err(failed)?;
            match torn {
                Some(Torn { from, ours: true }) => file.set_len(from).map_err(failed)?,
                Some(Torn { ours: false, .. }) => file.write_all(b"\n").map_err(failed)?,
                None => {}
            }
            kept
        } else {
            HashSet::new()
        };
        let paper = term.paper(Box::new(BufWriter::new(file)));
        Ok(Self::Kept(Box::new(paper), kept))
    }

    /// Writes what became of a line.
    pub(super) fn write(&mut self, outcome: &Outcome, term: &mut Term) -> io::Result<()> {
        let json = serde_json::to_string(outcome)?;
        match self {
            Self::Standard => term.print_json(&json),
            Self::Kept(paper, kept) => {
                paper.wear(term.masks());
                kept.insert(Digest::of(paper.json(&json).as_bytes()));
                paper.print_json(&json)
            }
        }
    }

    /// Writes it unless it stands in the file already. On standard output nothing is known of what was
    /// written before.
    pub(super) fn write_once(&mut self, outcome: &Outcome, term: &mut Term) -> io::Result<()> {
        if let Self::Kept(paper, kept) = self {
            let json = serde_json::to_string(outcome)?;
            if kept.contains(&Digest::of(paper.json(&json).as_bytes())) {
                return Ok(());
            }
        }
        self.write(outcome, term)
    }

    /// Whether what was done before is looked for, because it may be missing.
    pub(super) fn are_kept(&self) -> bool {
        matches!(self, Self::Kept(..))
    }
}

/// A last line without its end.
struct Torn {
    /// Where it begins.
    from: u64,
    /// It is the beginning of a result.
    ours: bool,
}

/// The digests of a file's lines, and its last line if that has no end.
fn kept(file: &File) -> io::Result<(HashSet<Digest>, Option<Torn>)> {
    let mut lines = BufReader::with_capacity(64 << 10, At { file, offset: 0 });
    let (mut kept, mut from, mut line) = (HashSet::new(), 0, Vec::new());
    while lines.read_until(b'\n', &mut line)? > 0 {
        let Some(whole) = line.strip_suffix(b"\n") else {
            let ours = line.starts_with(BEGINS) || BEGINS.starts_with(&line);
            return Ok((kept, Some(Torn { from, ours })));
        };
        kept.insert(Digest::of(whole));
        from += line.len() as u64;
        line.clear();
    }
    Ok((kept, None))
}

/// The bytes of a file that is open to be written at its end.
struct At<'a> {
    file: &'a File,
    offset: u64,
}

impl io::Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
