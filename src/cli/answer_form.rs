//! The form that the last answer must have, read from the file that a person names.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use undertext::answer;
use undertext::setup::OutputSchema;

use crate::cli::exit::{Exit, Failure};
use crate::cli::{Process, planted};

/// How much of a file is read at most, in bytes: more is no schema.
const FILE_MAX: u64 = 1 << 20;

/// The schema in the file that was named there, by a run in this workspace; what is wrong with it names
/// that, file and place.
pub(crate) fn named(
    there: &str,
    path: &Path,
    (workspace, process): (Option<&Path>, &Process),
) -> Result<OutputSchema, Failure> {
    if let Some(workspace) = workspace {
        let what = format!("{there} {}", path.display());
        planted::check(path, &what, workspace, process)?;
    }
    let unusable = |error: anyhow::Error| {
        let shown = path.display();
        let error = error.context(format!("{there} {shown} cannot be used"));
        Failure::new(Exit::Usage, error)
    };
    let text = read(&process.here(path)).map_err(|error| unusable(error.into()))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    answer::schema(&name, &text).map_err(|error| unusable(error.into()))
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_MAX).read_to_string(&mut text)?;
    Ok(text)
}
