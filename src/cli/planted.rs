//! What somebody may have laid in a workspace at a name that a person gives on the command line.
//!
//! Tools write there, and whoever made the project did. What is read or written there for a person is the
//! file that lies there: no other one that a link leads to, and nothing that is waited for.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use undertext::record::runs;
use undertext::transcript::Run;

use crate::cli::exit::Failure;
use crate::cli::start::Start;
use crate::cli::{Process, RunArgs, find};

/// How many links one path may go through, as for the system.
const LINKS: usize = 40;

/// The workspace that a command line means: the one that it names, or where it was typed.
pub(super) fn workspace(named: Option<&Path>, process: &Process) -> Option<PathBuf> {
    let named = named.map(|named| process.here(named));
    named.or_else(|| process.directory.as_ref().ok().cloned())
}

/// The workspace of a run: the one that is named, or in which the run began that is taken up from these
/// transcripts, or where the command was typed. `None` if that cannot be known.
pub(super) fn of_run(args: &RunArgs, transcripts: &Path, process: &Process) -> Option<PathBuf> {
    match (&args.workspace, &args.resume) {
        (None, Some(run)) => {
            let path = find::path(run, transcripts, process).ok()?;
            Some(PathBuf::from(runs::begun(&path)?.workspace))
        }
        (named, _) => workspace(named.as_deref(), process),
    }
}

/// Refuses the files of settings that a run is to read if they are not what they are called.
pub(super) fn check_settings(
    args: &RunArgs,
    workspace: Option<&Path>,
    process: &Process,
) -> Result<(), Failure> {
    let Some(workspace) = workspace else {
        return Ok(());
    };
    let mut files = args.settings.config.iter();
    files.try_for_each(|file| {
        let what = format!("the settings file {}", file.display());
        check(file, &what, workspace, process)
    })
}

/// Refuses the files that a run is to write if they are not what they are called.
pub(super) fn check_written(
    args: &RunArgs,
    start: &Start,
    process: &Process,
) -> Result<(), Failure> {
    let outputs = &args.outputs;
    let files = [
        &outputs.output_last_message,
        &outputs.diff,
        &args.logs.log_file,
    ];
    let mut files = files.into_iter().flatten().peekable();
    if files.peek().is_none() {
        return Ok(());
    }
    let Some(workspace) = of_run(args, &start.transcripts, process) else {
        return Ok(());
    };
    files.try_for_each(|file| check(file, &file.display().to_string(), &workspace, process))
}

/// Refuses a file to write what is told of a run, if it is in the run's workspace and not what it is
/// called.
pub(super) fn check_told(file: &Path, run: &Run, process: &Process) -> Result<(), Failure> {
    let workspace = Path::new(&run.workspace);
    check(file, &file.display().to_string(), workspace, process)
}

/// Refuses a file, which is called `what`, if a link in the workspace leads it out of there, or if it
/// lies in there and is no plain file.
pub(super) fn check(
    file: &Path,
    what: &str,
    workspace: &Path,
    process: &Process,
) -> Result<(), Failure> {
    // Where there is no workspace nobody has laid anything.
    let Ok(root) = workspace.canonicalize() else {
        return Ok(());
    };
    let (real, laid) = led(&process.here(file), &root);
    if !real.starts_with(&root) {
        if !laid {
            return Ok(());
        }
        return Err(Failure::usage(format!(
            "{what} is a link out of the workspace, to {}; name that file if you mean it",
            real.display()
        )));
    }
    // Of a directory it is said what else is wrong.
    let is_other = |found: fs::Metadata| !found.is_file() && !found.is_dir();
    if fs::symlink_metadata(&real).is_ok_and(is_other) {
        return Err(Failure::usage(format!(
            "{what} is no plain file, and nothing else in the workspace is read or written; name one \
             outside it if you mean it"
        )));
    }
    Ok(())
}

/// Where a path leads, be it there or not, and whether a link below this directory has a part in that.
fn led(path: &Path, root: &Path) -> (PathBuf, bool) {
    let parts = |path: &Path| -> Vec<OsString> {
        let parts = path.components().rev();
        let parts = parts.filter(|part| *part != Component::CurDir);
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut real = PathBuf::new();
    let mut laid = false;
    let mut links = 0;
    let mut left = parts(path);
    while let Some(part) = left.pop() {
        if part == ".." {
            real.pop();
            continue;
        }
        // The root begins anew.
        real.push(&part);
        let Ok(target) = fs::read_link(&real) else {
            continue;
        };
        links += 1;
        if links > LINKS {
            break;
        }
        laid |= real.starts_with(root);
        real.pop();
        left.extend(parts(&target));
    }
    (real, laid)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_links_below_a_directory_are_laid_there() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("w/sub")).unwrap();
        fs::create_dir_all(at.join("keys")).unwrap();
        for (to, link) in [
            ("w", "link"),
            ("../../keys", "w/sub/out"),
            ("../keys/none", "w/none"),
            ("sub", "w/in"),
            ("loop", "w/loop"),
            ("../link/sub", "keys/back"),
        ] {
            symlink(to, at.join(link)).unwrap();
        }
        symlink(at.join("keys"), at.join("w/whole")).unwrap();
        for (path, expected) in [
            ("w/sub/x", ("w/sub/x", false)),
            ("w/sub/../../keys/x", ("keys/x", false)),
            ("link/sub/x", ("w/sub/x", false)),
            ("link/in/x", ("w/sub/x", true)),
            ("link/sub/out/x", ("keys/x", true)),
            ("w/none", ("keys/none", true)),
            ("w/whole/back/x", ("w/sub/x", true)),
            ("keys/back/x", ("w/sub/x", false)),
            ("w/loop", ("w/loop", true)),
        ] {
            let (real, laid) = led(&at.join(path), &at.join("w"));
            let (expected, laid_there) = expected;
            assert_eq!((real, laid), (at.join(expected), laid_there), "{path}");
        }
    }
}
