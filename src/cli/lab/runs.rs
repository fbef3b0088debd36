//! The runs that policies are tried on: found, read, and damage told.

use std::fs;
use std::path::{Path, PathBuf};

use undertext::lab::Source;
use undertext::record::runs;

use crate::cli::exit::{Exit, Failure};
use crate::cli::lab::LabArgs;
use crate::cli::term::{Look, Term};
use crate::cli::{Process, amount, find};

/// The deepest directory that is looked into.
const DEPTH: usize = 16;

/// A file that may hold runs.
struct File {
    path: PathBuf,
    /// What a person reads of it.
    name: String,
    /// A person named it: that it holds no run is an error.
    is_named: bool,
}

/// Reads every run that is named.
pub(super) fn read(
    args: &LabArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Vec<Source>, Failure> {
    let mut files = Vec::new();
    for text in &args.paths {
        let path = process.here(Path::new(text));
        if path.is_dir() {
            walk(&path, Path::new(text), 0, &mut files)?;
        } else if path.exists() {
            let name = text.clone();
            files.push(File {
                path,
                name,
                is_named: true,
            });
        } else {
            let dir = find::directory(&args.settings, process)?;
            let path = find::path(text, &dir, process)?;
            let name = text.clone();
            files.push(File {
                path,
                name,
                is_named: true,
            });
        }
    }
    let mut sources = Vec::new();
    let mut skipped = 0;
    for file in &files {
        match open(file, term)? {
            Some(source) if source.requests() > 0 => sources.push(source),
            Some(_) | None => skipped += 1,
        }
    }
    if skipped > 0 {
        let text = format!("{} without a run left out", amount::of(skipped, "file"));
        term.say(&[(Look::Faint, text)])?;
    }
    if sources.is_empty() {
        return Err(Failure::usage("no run with a request in what is named"));
    }
    Ok(sources)
}

/// Adds every file below a directory, by name.
fn walk(path: &Path, name: &Path, depth: usize, files: &mut Vec<File>) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        let error = anyhow::Error::new(error).context(format!("cannot list {}", name.display()));
        Failure::new(Exit::Usage, error)
    };
    let mut entries = fs::read_dir(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(cannot)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), name.join(entry.file_name()));
        let kind = entry.file_type().map_err(cannot)?;
        if kind.is_dir() && depth < DEPTH {
            walk(&path, &name, depth + 1, files)?;
        } else if kind.is_file() {
            files.push(File {
                path,
                name: name.display().to_string(),
                is_named: false,
            });
        }
    }
    Ok(())
}

/// The run in a file; `None` if it holds none and nobody said that it does.
fn open(file: &File, term: &mut Term) -> Result<Option<Source>, Failure> {
    let loaded = match runs::read(&file.path) {
        Ok(loaded) if loaded.run().is_some() => loaded,
        Ok(_) if file.is_named => {
            return Err(Failure::usage(format!("{} holds no run", file.name)));
        }
        Err(error) if file.is_named => return Err(error.into()),
        Ok(_) | Err(_) => return Ok(None),
    };
    for damage in &loaded.damage {
        let text = format!("{} is damaged: {damage}", file.name);
        term.say(&[(Look::Bad, "warning: "), (Look::Plain, &text)])?;
    }
    let entries = loaded.view.transcript().entries().to_vec();
    Ok(Some(Source::new(&file.name, entries)))
}
