//! `rm`: runs are deleted, the only command that does.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use undertext::id::RunId;
use undertext::record::runs::{self, Removed};

use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, RmArgs, amount, find};

/// How many digits of a run's id must be given: as many as are shown.
const DIGITS: usize = 8;

/// What is told of a run that was deleted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Deleted {
    run: RunId,
    transcript: String,
    bytes: u64,
    blobs: u64,
}

/// Deletes runs. Every one is found before the first is deleted.
pub(crate) fn rm(args: &RmArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    let dir = find::directory(&args.settings, process)?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for text in &args.runs {
        let path = exactly(text, &dir)?;
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    for path in paths {
        let Removed { run, bytes, blobs } = runs::remove(&path)?;
        let transcript = path.display().to_string();
        if args.json {
            let deleted = Deleted {
                run,
                transcript,
                bytes,
                blobs,
            };
            term.print_json(&serde_json::to_string(&deleted).map_err(std::io::Error::from)?)?;
            continue;
        }
        let name = run.short();
        let with = match blobs {
            0 => String::new(),
            blobs => format!(" with {}", amount::of(blobs, "blob")),
        };
        let text = format!(
            "deleted run {name}{with}, {}: {transcript}",
            amount::of(bytes, "byte")
        );
        term.print(&[(Look::Plain, text)])?;
    }
    Ok(Exit::Done)
}

/// The transcript of exactly the run that is meant: nothing is asked before it is gone.
fn exactly(text: &str, dir: &Path) -> Result<PathBuf, Failure> {
    let is_path = Path::new(text)
        .extension()
        .is_some_and(|end| end == "jsonl");
    let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
    if text == find::LAST || (!is_path && digits < DIGITS) {
        return Err(Failure::usage(format!(
            "`{text}` is too little to delete a run by; give its {DIGITS} digits as \
             `undertext list` shows them"
        )));
    }
    Ok(runs::find(dir, text)?)
}
