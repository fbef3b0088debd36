//! The runs that policies are tried on: transcripts, and recordings of other agents, which are
//! imported in memory.

use std::fs;
use std::path::{Path, PathBuf};

use undertext::import::{self, ImportError};
use undertext::lab::{self, Source};
use undertext::record::runs;

use crate::cli::exit::{Exit, Failure};
use crate::cli::lab::LabArgs;
use crate::cli::term::{Look, Term};
use crate::cli::{Process, amount, find};

/// The deepest directory that is looked into.
const DEPTH: usize = 16;

/// A file that may hold runs, or a directory that may be one.
struct Place {
    path: PathBuf,
    /// What a person reads of it.
    name: String,
    /// Where it is, as a person would name it.
    shown: PathBuf,
    /// A person named it: that it holds no run is an error.
    is_named: bool,
}

impl Place {
    /// A place that nobody named.
    fn found(path: &Path, shown: &Path) -> Self {
        Self {
            path: path.to_owned(),
            name: shown.display().to_string(),
            shown: shown.to_owned(),
            is_named: false,
        }
    }
}

/// What a place holds.
#[derive(Default)]
struct Held {
    sources: Vec<Source>,
    warnings: Vec<String>,
}

/// Reads every run that is named.
pub(super) fn read(
    args: &LabArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Vec<Source>, Failure> {
    let mut places = Vec::new();
    for text in &args.paths {
        let here = process.here(Path::new(text));
        let (path, shown) = if here.exists() {
            (here, PathBuf::from(text))
        } else {
            let dir = find::directory(&args.settings, process)?;
            let path = find::path(text, &dir, process)?;
            (path.clone(), path)
        };
        if path.is_dir() {
            walk(&path, &shown, 0, &mut places)?;
        } else {
            places.push(Place {
                path,
                name: text.clone(),
                shown,
                is_named: true,
            });
        }
    }
    let mut sources = Vec::new();
    let mut without = 0;
    for held in lab::each(&places, open) {
        let held = held?;
        for text in held.warnings {
            term.say(&[(Look::Bad, "warning: "), (Look::Plain, &text)])?;
        }
        let before = sources.len();
        let asks = |source: &Source| source.requests() > 0;
        sources.extend(held.sources.into_iter().filter(asks));
        without += u64::from(sources.len() == before);
    }
    if without > 0 {
        let text = format!("left out: {} without a run", amount::of(without, "file"));
        term.say(&[(Look::Faint, text)])?;
    }
    if sources.is_empty() {
        return Err(Failure::usage(
            "there is no run with a request in it; name one, or a directory that holds some",
        ));
    }
    Ok(sources)
}

/// Adds every file below a directory, by name; a directory that counts as one recording is one.
fn walk(path: &Path, shown: &Path, depth: usize, places: &mut Vec<Place>) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        let error = anyhow::Error::new(error).context(format!("cannot list {}", shown.display()));
        Failure::new(Exit::Usage, error)
    };
    let mut entries = fs::read_dir(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(cannot)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    if import::read(path, None).is_ok() {
        entries.clear();
        places.push(Place::found(path, shown));
    }
    for entry in entries {
        let (path, shown) = (entry.path(), shown.join(entry.file_name()));
        let kind = entry.file_type().map_err(cannot)?;
        // What was clipped from the results of a run stands beside it, and its index.
        let is_beside = path
            .extension()
            .is_some_and(|end| end == "blobs" || end == "index");
        if kind.is_dir() && depth < DEPTH && !is_beside {
            walk(&path, &shown, depth + 1, places)?;
        } else if kind.is_file() && !is_beside {
            places.push(Place::found(&path, &shown));
        }
    }
    Ok(())
}

/// The runs that a place holds; none if there is none and nobody said that there is.
fn open(place: &Place) -> Result<Held, Failure> {
    let imported = match import::read(&place.path, None) {
        Ok(imported) => imported,
        Err(ImportError::Transcript { .. }) => return transcript(place),
        Err(error) => {
            // Damage may have taken the line that says what it is.
            let held = if place.path.extension().is_some_and(|end| end == "jsonl") {
                transcript(place)?
            } else {
                Held::default()
            };
            return if place.is_named && held.sources.is_empty() {
                Err(Failure::new(Exit::Usage, error))
            } else {
                Ok(held)
            };
        }
    };
    let mut held = Held::default();
    for run in imported {
        let import = run.import();
        let name = match import.part {
            Some(part) => format!("{} #{part}", place.name),
            None => place.name.clone(),
        };
        if import.skipped > 0 {
            let skipped = amount::of(import.skipped, "line");
            let are = if import.skipped == 1 { "is" } else { "are" };
            held.warnings.push(format!(
                "{name}: {skipped} cannot be read, and {are} left out"
            ));
        }
        let entries = run
            .entries()
            .map_err(|error| Failure::new(Exit::Unfinished, error))?;
        held.sources.push(Source::new(name, entries));
    }
    Ok(held)
}

/// The run in a transcript of ours; none if no line of it can be read.
fn transcript(place: &Place) -> Result<Held, Failure> {
    let loaded = runs::read(&place.path)?;
    let entries = loaded.view.transcript().entries().to_vec();
    if entries.is_empty() {
        return Ok(Held::default());
    }
    Ok(Held {
        sources: vec![Source::new(&place.name, entries)],
        warnings: find::warnings(&place.shown, &loaded),
    })
}
