//! Finding the run that a command is about, and reading it, damaged or not.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use undertext::config::{self, Sections};
use undertext::record::runs::{self, FindError, Loaded, Scanned};
use undertext::transcript::jsonl::{Damage, LINE_WRITTEN};
use undertext::transcript::{Entry, FORMAT, Torn};
use undertext::view::View;

use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, SettingArgs, amount};

/// The word for the newest run of this workspace.
pub(crate) const LAST: &str = "last";

/// A run that was read, and where.
pub(crate) struct Found {
    /// Its transcript.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) loaded: Loaded,
}

impl Found {
    /// What a command ends with that writes what there is of the run somewhere else: of a damaged one, or
    /// one of a newer format, that may not be all.
    pub(crate) fn copied(&self) -> Exit {
        if self.loaded.damage.is_empty() && self.loaded.newer().is_none() {
            Exit::Done
        } else {
            Exit::Transcript
        }
    }
}

/// The directory of the transcripts.
pub(crate) fn directory(args: &SettingArgs, process: &Process) -> Result<PathBuf, Failure> {
    let sources = args.sources(&process.environment, Sections::default());
    Ok(config::load(&sources)?.transcripts_dir(&process.environment)?)
}

/// Finds the run that a text names and reads it; says what is wrong with it.
pub(crate) fn read(
    text: &str,
    args: &SettingArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Found, Failure> {
    read_along(text, args, process, term, |_, _| {})
}

/// The same with a look at each entry, and at the view of all that stands before it.
pub(crate) fn read_along(
    text: &str,
    args: &SettingArgs,
    process: &Process,
    term: &mut Term,
    look: impl FnMut(&View, &Entry),
) -> Result<Found, Failure> {
    let path = path(text, &directory(args, process)?, process)?;
    found(path, |path| runs::read_along(path, look), term)
}

/// The same for who is done with most entries once they were looked at, as [`runs::fold_along`] has it.
pub(crate) fn fold_along(
    text: &str,
    args: &SettingArgs,
    process: &Process,
    term: &mut Term,
    look: impl FnMut(&View, &Entry),
) -> Result<Found, Failure> {
    let path = path(text, &directory(args, process)?, process)?;
    found(path, |path| runs::fold_along(path, look), term)
}

fn found(
    path: PathBuf,
    read: impl FnOnce(&Path) -> Result<Loaded, FindError>,
    term: &mut Term,
) -> Result<Found, Failure> {
    let loaded = read(&path)?;
    warn(&path, &State::of(&loaded), term)?;
    Ok(Found { path, loaded })
}

/// The same without holding any of it.
pub(crate) fn scan(
    text: &str,
    args: &SettingArgs,
    process: &Process,
    term: &mut Term,
) -> Result<(PathBuf, Scanned), Failure> {
    let path = path(text, &directory(args, process)?, process)?;
    let scanned = runs::scan(&path)?;
    let state = State {
        is_empty: scanned.entries == 0,
        is_run: scanned.run().is_some(),
        newer: scanned.newer(),
        damage: &scanned.damage,
        torn: scanned.torn.as_ref(),
    };
    warn(&path, &state, term)?;
    Ok((path, scanned))
}

/// What may be wrong with a transcript.
struct State<'a> {
    is_empty: bool,
    is_run: bool,
    newer: Option<u32>,
    damage: &'a [Damage],
    torn: Option<&'a Torn>,
}

impl<'a> State<'a> {
    fn of(loaded: &'a Loaded) -> Self {
        Self {
            is_empty: loaded.view.transcript().last().is_none(),
            is_run: loaded.run().is_some(),
            newer: loaded.newer(),
            damage: &loaded.damage,
            torn: loaded.torn.as_ref(),
        }
    }

    /// What whoever looks at it is warned of.
    fn warnings(&self, path: &Path) -> Vec<String> {
        let path = path.display();
        let mut warnings = Vec::new();
        if let Some(format) = self.newer {
            warnings.push(format!(
                "{path} has format {format}, this version knows formats up to {FORMAT}; \
                 what is shown may be wrong"
            ));
        } else if !self.is_run {
            warnings.push(format!("{path} does not begin with a run"));
        }
        let places = places(self.damage);
        warnings.extend(places.map(|places| format!("{path} is damaged: {places}")));
        warnings.extend(self.torn.map(|torn| {
            let bytes = amount::of(torn.bytes, "byte");
            let are = if torn.bytes == 1 { "is" } else { "are" };
            format!("{path} does not end with an entry: its last {bytes} {are} left out")
        }));
        warnings
    }
}

/// Says what is wrong with a transcript. One without an entry is none.
fn warn(path: &Path, state: &State<'_>, term: &mut Term) -> Result<(), Failure> {
    if state.is_empty {
        let why = no_run(path)?;
        let text = format!("{} holds no run: {why}", path.display());
        return Err(Failure::new(Exit::Transcript, anyhow::Error::msg(text)));
    }
    for text in state.warnings(path) {
        term.say(&[(Look::Bad, "warning: "), (Look::Plain, &text)])?;
    }
    Ok(())
}

/// What whoever looks at a transcript is warned of.
pub(crate) fn warnings(path: &Path, loaded: &Loaded) -> Vec<String> {
    State::of(loaded).warnings(path)
}

/// Why a file in which no entry could be read is no transcript, by its first line.
fn no_run(path: &Path) -> io::Result<String> {
    let mut line = Vec::new();
    let file = BufReader::new(File::open(path)?.take(LINE_WRITTEN as u64));
    for next in file.split(b'\n') {
        line = next?;
        if !line.trim_ascii().is_empty() {
            break;
        }
    }
    let json = serde_json::from_slice::<Value>(&line);
    let what = match &json {
        _ if line.trim_ascii().is_empty() => {
            return Ok("it is empty; `undertext list` shows all runs".to_owned());
        }
        Ok(Value::Object(_)) => "an object, but no entry of a transcript",
        Ok(Value::Array(_)) => "a JSON list, no entry of a transcript",
        Ok(_) => "a JSON value, no entry of a transcript",
        Err(error) if error.is_eof() => "JSON that is cut off",
        Err(_) => "no JSON",
    };
    Ok(format!(
        "its first line is {what}; what other agents recorded is read by `undertext import`"
    ))
}

/// Where a transcript is damaged, in a line: the first places, and how many more there are.
pub(crate) fn places(damage: &[Damage]) -> Option<String> {
    const SHOWN: usize = 2;
    let shown: Vec<String> = damage.iter().take(SHOWN).map(Damage::to_string).collect();
    let shown = shown.join("; ");
    match damage.len().saturating_sub(SHOWN) as u64 {
        _ if damage.is_empty() => None,
        0 => Some(shown),
        more => Some(format!("{shown} (and {} more)", amount::of(more, "place"))),
    }
}

/// The transcript that a text names; `last` is the newest run of this workspace.
pub(crate) fn path(text: &str, dir: &Path, process: &Process) -> Result<PathBuf, Failure> {
    if text != LAST {
        return runs::find(dir, text).map_err(|error| not_found(error, process));
    }
    let current = process.directory.as_ref().ok();
    let Some(workspace) = current.and_then(|current| current.canonicalize().ok()) else {
        return Err(Failure::usage("the current directory is gone; name a run"));
    };
    newest(dir, &workspace, process)
}

/// The transcript of the newest run of a workspace.
pub(crate) fn newest(dir: &Path, workspace: &Path, process: &Process) -> Result<PathBuf, Failure> {
    if let Some(run) = runs::newest(dir, &workspace.to_string_lossy())? {
        return Ok(run.path);
    }
    let mut text = format!("no run of {} in {}", workspace.display(), dir.display());
    // After a demo, or in another directory, it is most often the newest one that is meant.
    if let Some(newest) = runs::list(dir)?.first() {
        let run = newest.run();
        let of = run.map(|run| run.workspace).filter(|it| !it.is_empty());
        let of = of.map_or_else(String::new, |of| format!(", of {of}"));
        let name = newest.id.short();
        write!(text, "; the newest run there is {name}{of}: name it").ok();
        write!(text, ", as in `{}`", process.naming(&name)).ok();
    }
    text += "; `undertext list` shows all runs";
    Err(Failure::usage(text))
}

/// Why a text names no run: what is there may be something that no run is read from.
fn not_found(error: FindError, process: &Process) -> Failure {
    let FindError::NoRunId { text } = &error else {
        return error.into();
    };
    let is_there = process.here(Path::new(text)).exists();
    if text == "-" || is_there && text.contains('/') {
        let what = if text == "-" { "standard input" } else { text };
        return Failure::usage(format!(
            "no run is read from {what}: it is read more than once, from a plain file whose name ends \
             in .jsonl; write it into one"
        ));
    }
    error.into()
}
