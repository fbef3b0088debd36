//! The result of a line: what programs read of it, and where that is written.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use undertext::id::{Digest, EntryId, RunId};
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
    /// The entry that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<EntryId>,
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
            end: None,
            exit: failure.exit as u8,
            text: None,
            totals: None,
            error: Some(failure.line()),
        }
    }

    /// What a run came to that has ended.
    pub(super) fn of(line: u64, id: Option<String>, path: String, view: &View) -> Self {
        let transcript = view.transcript();
        let run = match transcript.entries().first().map(|entry| &entry.event) {
            Some(Event::Run(first)) => Some(first.run),
            Some(_) | None => None,
        };
        let last_end = view.ledger().last_end.and_then(|end| transcript.get(end));
        let text = match last_end.map(|entry| &entry.event) {
            Some(Event::End(end)) => Some(end.text.clone()),
            Some(_) | None => None,
        };
        let (reason, end) = before::of_view(view).unzip();
        Self {
            line,
            id,
            run,
            transcript: Some(path),
            reason,
            end,
            exit: reason.map_or(Exit::Unfinished, Exit::of) as u8,
            text,
            totals: Some(view.ledger().whole),
            error: None,
        }
    }
}

/// Where results are written, each as one line.
pub(super) enum Results {
    /// On standard output.
    Standard,
    /// Behind what stands in a file.
    Kept(Box<Term>, Kept),
}

/// The results that stand in a file. That of a run is known by its end: which line had it may have
/// changed since.
#[derive(Default)]
pub(super) struct Kept {
    ends: HashSet<(RunId, EntryId)>,
    /// The digests of the other lines.
    lines: HashSet<Digest>,
}

/// What a result says of its run.
#[derive(Deserialize)]
struct Whose {
    run: RunId,
    end: EntryId,
}

impl Kept {
    /// Takes in a line; returns whether it was not there.
    fn take(&mut self, line: &[u8]) -> bool {
        match serde_json::from_slice(line) {
            Ok(Whose { run, end }) => self.ends.insert((run, end)),
            Err(_) => self.lines.insert(Digest::of(line)),
        }
    }
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
            Kept::default()
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
                kept.take(paper.json(&json).as_bytes());
                paper.print_json(&json)
            }
        }
    }

    /// Writes it unless it stands in the file already. On standard output nothing is known of what was
    /// written before.
    pub(super) fn write_once(&mut self, outcome: &Outcome, term: &mut Term) -> io::Result<()> {
        if let Self::Kept(paper, kept) = self {
            let json = serde_json::to_string(outcome)?;
            if !kept.take(paper.json(&json).as_bytes()) {
                return Ok(());
            }
        }
        self.write(outcome, term)
    }

    /// Whether the result of a run that ended so is missing where results are kept.
    pub(super) fn lack(&self, run: RunId, end: EntryId) -> bool {
        match self {
            Self::Standard => false,
            Self::Kept(_, kept) => !kept.ends.contains(&(run, end)),
        }
    }
}

/// A last line without its end.
struct Torn {
    /// Where it begins.
    from: u64,
    /// It is the beginning of a result.
    ours: bool,
}

/// The results in a file, and its last line if that has no end.
fn kept(file: &File) -> io::Result<(Kept, Option<Torn>)> {
    let mut lines = BufReader::with_capacity(64 << 10, At { file, offset: 0 });
    let (mut kept, mut from, mut line) = (Kept::default(), 0, Vec::new());
    while lines.read_until(b'\n', &mut line)? > 0 {
        let Some(whole) = line.strip_suffix(b"\n") else {
            let ours = line.starts_with(BEGINS) || BEGINS.starts_with(&line);
            return Ok((kept, Some(Torn { from, ours })));
        };
        kept.take(whole);
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
