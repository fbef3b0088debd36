//! The files that a run leaves for whoever began it: the model's last text, and what it changed.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use undertext::hands::Hands;
use undertext::id::{EntryId, RunId};
use undertext::transcript::{Event, Purpose};
use undertext::view::View;

use crate::cli::changes::Before;
use crate::cli::exit::{Exit, Failure};
use crate::cli::report::Report;
use crate::cli::target::{Target, unwritten};
use crate::cli::term::Look;
use crate::cli::{Process, amount};

/// Where they are written.
#[derive(Debug, Default, Args)]
pub(crate) struct OutputArgs {
    #[arg(long, value_name = "FILE")]
    #[arg(
        help = "The answer is one JSON value that fits the JSON Schema in this file; if not, the \
                  model corrects it, up to 2 times"
    )]
    pub(crate) output_schema: Option<PathBuf>,
    /// Write the model's last text into this file, however the run ends
    #[arg(long, value_name = "FILE")]
    pub(crate) output_last_message: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    #[arg(help = "Write what changed in the workspace into this file, for `git apply`")]
    pub(crate) diff: Option<PathBuf>,
}

/// The files that are written when the run ends.
#[derive(Debug)]
pub(crate) struct Outputs {
    last_message: Option<Target>,
    diff: Option<Target>,
    /// What the workspace held, if changes are asked for.
    before: Option<Before>,
    /// Where the run stood when it was taken up.
    since: EntryId,
}

impl Outputs {
    /// Checks where the files would be written.
    pub(crate) fn check(args: &OutputArgs, process: &Process) -> Result<Self, Failure> {
        let last_message = place(args.output_last_message.as_deref(), process)?;
        let diff = place(args.diff.as_deref(), process)?;
        for path in [&last_message, &diff].into_iter().flatten() {
            spare(path, None)?;
        }
        let target = |path: Option<PathBuf>| path.map(Target::of).transpose();
        let (last_message, diff) = (target(last_message)?, target(diff)?);
        Ok(Self {
            last_message,
            diff,
            before: None,
            since: EntryId(0),
        })
    }

    /// Keeps what the workspace of these hands holds now, if changes are asked for. The program's own
    /// files in it, in `ours`, are left out; `project` is the root of the project.
    pub(crate) async fn keep(
        mut self,
        hands: &Hands,
        project: &Path,
        mut ours: Vec<PathBuf>,
    ) -> Result<Self, Failure> {
        if self.diff.is_some() {
            ours.extend(
                [&self.last_message, &self.diff]
                    .into_iter()
                    .flatten()
                    .map(|target| target.path().to_owned()),
            );
            let ours = ours.iter().map(|path| real(path)).collect();
            let before = Before::take(hands, project, ours).await.map_err(|error| {
                let error = anyhow::Error::new(error);
                let error = error.context("cannot keep for --diff what the workspace holds");
                Failure::new(Exit::Unfinished, error)
            })?;
            self.before = Some(before);
        }
        Ok(self)
    }

    /// Begins behind the last entry of a run: what the model said before is not its last text.
    pub(crate) fn behind(mut self, view: &View) -> Self {
        let last = view.transcript().last();
        self.since = last.map_or(EntryId(0), |entry| entry.id);
        self
    }

    /// Writes the files, and says what stands in them. What cannot be written is a failure of the
    /// command, whatever became of the run.
    pub(crate) async fn write(
        &self,
        hands: &Hands,
        view: &View,
        report: &mut Report<'_>,
    ) -> Result<(), Failure> {
        let last = self.last_message(view, report);
        self.changes(hands, report).await.and(last)
    }

    /// Writes the model's last text alone, for a person who does not want to wait.
    pub(crate) fn last_message(&self, view: &View, report: &mut Report<'_>) -> Result<(), Failure> {
        let Some(target) = &self.last_message else {
            return Ok(());
        };
        let text = last_text(view, self.since);
        if text.is_empty() {
            let path = target.path().display();
            let text = format!("the model said nothing; {path} is empty");
            report.say(Look::Plain, &text);
        }
        let text = report.masks().document(text).into_owned();
        target.write(text.as_bytes())
    }

    async fn changes(&self, hands: &Hands, report: &mut Report<'_>) -> Result<(), Failure> {
        let (Some(target), Some(before)) = (&self.diff, &self.before) else {
            return Ok(());
        };
        let path = target.path();
        let changes = before.changes(hands).await;
        let changes = changes.map_err(|error| unwritten(path, error))?;
        target.write(&changes.patch)?;
        let files = match changes.files {
            0 => "no change".to_owned(),
            files => format!("changes of {}", amount::of(files as u64, "file")),
        };
        let named = match changes.named {
            0 => String::new(),
            1 => "; 1 that is no text or too large is only named".to_owned(),
            named => format!("; {named} that are no text or too large are only named"),
        };
        report.say(Look::Faint, &format!("{}: {files}{named}", path.display()));
        let text = String::from_utf8_lossy(&changes.patch);
        if report.masks().text(&text) != text {
            let path = path.display();
            let text = format!("{path} holds what looks like a secret: it is exact, to be applied");
            report.say(Look::Bad, &text);
        }
        Ok(())
    }
}

/// What the model said last behind an entry, other than in a summary.
fn last_text(view: &View, since: EntryId) -> &str {
    let entries = view.transcript().entries().iter().rev();
    let mut said = entries
        .take_while(|entry| entry.id > since)
        .filter_map(|entry| {
            let Event::Response(response) = &entry.event else {
                return None;
            };
            let asked = view.transcript().get(response.request)?;
            let Event::Request(request) = &asked.event else {
                return None;
            };
            if request.purpose != Purpose::Round {
                return None;
            }
            // What was corrected was not the last word.
            let last = view.response(view.corrected(entry.id)).unwrap_or(response);
            (!last.text.trim().is_empty()).then_some(last.text.as_str())
        });
    said.next().unwrap_or_default()
}

/// The file, if it can be written as far as can be told before.
pub(super) fn place(path: Option<&Path>, process: &Process) -> Result<Option<PathBuf>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let wrong = |what: &str| Failure::usage(format!("{} {what}", path.display()));
    if path.as_os_str().is_empty() {
        return Err(Failure::usage("a file to write has no name; give it one"));
    }
    let whole = process.here(path);
    if whole.is_dir() {
        return Err(wrong("is a directory; name a file to write"));
    }
    let parent = whole.parent().unwrap_or(&whole);
    if let Err(error) = parent.canonicalize() {
        let error =
            anyhow::Error::new(error).context(format!("{} cannot be written", path.display()));
        let failure = Failure::new(Exit::Usage, error);
        return Err(failure.advised("make its directory first, or name another place"));
    }
    Ok(Some(real(&whole)))
}

/// Refuses a file that holds a run, unless it is `but`: a slip must not replace what was recorded.
pub(super) fn spare(path: &Path, but: Option<RunId>) -> Result<(), Failure> {
    let Some(first) = first_entry(path) else {
        return Ok(());
    };
    if but.is_some_and(|run| first.contains(&run.to_string())) {
        return Ok(());
    }
    let text = "holds a run, which nothing else may replace; name another file";
    Err(Failure::usage(format!("{} {text}", path.display())))
}

/// The beginning of a transcript's first entry, which names its run; `None` if it is none.
fn first_entry(path: &Path) -> Option<String> {
    // What is no plain file may wait for ever.
    if !path.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(256).read_to_end(&mut bytes))
        .ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let first = text.lines().next()?;
    let is_run = first.starts_with(r#"{"id":1,"#) && first.contains(r#""type":"run""#);
    is_run.then(|| first.to_owned())
}

/// The path as the file system names it, as far as it is there: so it is known again in a walk.
pub(super) fn real(path: &Path) -> PathBuf {
    path.canonicalize()
        .unwrap_or_else(|_| match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => real(parent).join(name),
            _ => path.to_owned(),
        })
}

/// Writes a file whole or not at all; what is no plain file is written into.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_by(path, |mut file| file.write_all(bytes))
}

/// The same, by a function that is given the open file.
pub(super) fn write_by<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(File) -> Result<(), E>,
) -> Result<(), E> {
    let found = fs::metadata(path).ok();
    if found.as_ref().is_some_and(|found| !found.is_file()) {
        return write(OpenOptions::new().write(true).open(path)?);
    }
    let parent = path.parent().unwrap_or(Path::new("."));
    // As others would create it: the user's mask applies.
    let file = tempfile::Builder::new()
        .prefix(".undertext-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(parent)?;
    write(file.as_file().try_clone()?)?;
    if let Some(found) = found {
        file.as_file().set_permissions(found.permissions())?;
    }
    file.persist(path).map_err(io::Error::from)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        write(&path, b"one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        write(Path::new("/dev/null"), b"nothing").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
