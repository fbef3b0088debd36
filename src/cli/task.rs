//! What a person hands in: the task, from wherever it is read, and the files that go with it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use undertext::transcript::Attachment;

use crate::cli::exit::{Exit, Failure};
use crate::cli::{Process, RunArgs, planted};

/// The most that is read of a task or a file, in bytes: as much as can be kept of one text. Of it,
/// what `limits.text_chars` allows is taken in.
const MOST: u64 = 64 << 20;

/// One place that is no text among so many characters makes a file another encoding's text.
const NEARLY: usize = 100;

/// Files that are handed in.
#[derive(Debug, Default, Args)]
pub(crate) struct TaskArgs {
    /// Read the task from this file
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    pub(crate) task_file: Option<PathBuf>,
    /// Hand in a text file with the task; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
}

/// What a person handed in.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// The task; none when a run is only taken up again.
    pub(crate) task: Option<String>,
    /// The files.
    pub(crate) attachments: Vec<Attachment>,
    /// What the person should know of them.
    pub(crate) remarks: Vec<String>,
}

/// Reads what the command line names of a run in this workspace.
pub(crate) fn given(
    args: &RunArgs,
    site: (Option<&Path>, &Process),
    input: &mut dyn Read,
) -> Result<Given, Failure> {
    let mut given = Given::default();
    let files = &args.files;
    let read = match (args.task.as_deref(), &files.task_file) {
        (Some("-"), _) => Some(("the task".to_owned(), bytes(input, "the task")?)),
        (Some(text), _) => {
            given.task = Some(text.to_owned());
            None
        }
        (None, Some(path)) => {
            let what = format!("the task file {}", path.display());
            let bytes = file(path, &what, site)?;
            Some((what, bytes))
        }
        (None, None) => None,
    };
    if let Some((what, bytes)) = read {
        let Some((text, replaced)) = text(bytes) else {
            return Err(Failure::usage(format!(
                "{what} is binary; a task is a text"
            )));
        };
        given.remarks.extend(remark(&what, replaced));
        given.task = Some(text);
    }
    match &given.task {
        Some(task) if task.trim().is_empty() => {
            return Err(Failure::usage("the task is empty; say what is to be done"));
        }
        None if !files.attach.is_empty() => {
            return Err(Failure::usage(
                "attachments go with a task; say what is to be done with them",
            ));
        }
        Some(_) | None => {}
    }
    let names = names(&files.attach);
    for (path, name) in files.attach.iter().zip(names) {
        let what = format!("attachment {}", path.display());
        let Some((text, replaced)) = text(file(path, &what, site)?) else {
            return Err(Failure::usage(format!(
                "{what} is binary; only text can be attached, though tools may work on any file"
            )));
        };
        given.remarks.extend(remark(&what, replaced));
        given.attachments.push(Attachment {
            media: media(path).to_owned(),
            name,
            text,
            clipped: None,
        });
    }
    Ok(given)
}

/// What is said of a text that is not quite one.
fn remark(what: &str, replaced: usize) -> Option<String> {
    let places = match replaced {
        0 => return None,
        1 => "1 place".to_owned(),
        places => format!("{places} places"),
    };
    Some(format!(
        "{what} is not UTF-8 in {places}, which read \u{fffd}"
    ))
}

/// Reads a file named from the working directory. The person named it, so it is read here and not by
/// hands; but in a workspace somebody else may have laid something at that name.
fn file(
    path: &Path,
    what: &str,
    (workspace, process): (Option<&Path>, &Process),
) -> Result<Vec<u8>, Failure> {
    if let Some(workspace) = workspace {
        planted::check(path, what, workspace, process)?;
    }
    let whole = process.here(path);
    if whole.is_dir() {
        return Err(Failure::usage(format!(
            "{what} is a directory; name its files"
        )));
    }
    match File::open(whole) {
        Ok(mut file) => bytes(&mut file, what),
        Err(error) => Err(unread(what, error)),
    }
}

fn bytes(input: &mut dyn Read, what: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = input.take(MOST + 1).read_to_end(&mut bytes);
    read.map_err(|error| unread(what, error))?;
    if bytes.len() as u64 > MOST {
        return Err(Failure::usage(format!(
            "{what} is longer than {} MiB; put it into the workspace, where tools can read it",
            MOST >> 20
        )));
    }
    Ok(bytes)
}

fn unread(what: &str, error: io::Error) -> Failure {
    let error = anyhow::Error::new(error).context(format!("cannot read {what}"));
    Failure::new(Exit::Usage, error)
}

/// The text that these bytes are, and how many places of it had to be replaced; `None` if they
/// are no text.
fn text(bytes: Vec<u8>) -> Option<(String, usize)> {
    if bytes.contains(&0) {
        return None;
    }
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Some((text, 0)),
        Err(error) => error.into_bytes(),
    };
    let wrong = bytes
        .utf8_chunks()
        .filter(|chunk| !chunk.invalid().is_empty());
    let wrong = wrong.count();
    let is_nearly = wrong <= bytes.len() / NEARLY;
    is_nearly.then(|| (String::from_utf8_lossy(&bytes).into_owned(), wrong))
}

/// How the model is told of each: its file's name, or, where several have that, the path.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let name = |path: &Path| {
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    };
    let mut once = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for path in paths {
        if !once.insert(name(path)) {
            twice.insert(name(path));
        }
    }
    let told = |path: &PathBuf| match name(path) {
        name if twice.contains(&name) => path.display().to_string(),
        name => name,
    };
    paths.iter().map(told).collect()
}

/// The media type that a file's name speaks for.
fn media(path: &Path) -> &'static str {
    let end = path.extension().unwrap_or_default().to_ascii_lowercase();
    match end.to_str().unwrap_or_default() {
        "c" | "h" => "text/x-c",
        "cc" | "cpp" | "hpp" => "text/x-c++",
        "css" => "text/css",
        "csv" => "text/csv",
        "diff" | "patch" => "text/x-diff",
        "go" => "text/x-go",
        "htm" | "html" => "text/html",
        "java" => "text/x-java",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "jsonl" => "application/jsonl",
        "md" => "text/markdown",
        "py" => "text/x-python",
        "rs" => "text/x-rust",
        "sh" => "application/x-sh",
        "sql" => "application/sql",
        "svg" => "image/svg+xml",
        "toml" => "application/toml",
        "ts" | "tsx" => "text/x-typescript",
        "tsv" => "text/tab-separated-values",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearly_text_is_text() {
        let long = "x".repeat(200);
        for (bytes, expected) in [
            (b"caf\xc3\xa9".to_vec(), Some(("caf\u{e9}".to_owned(), 0))),
            (b"".to_vec(), Some((String::new(), 0))),
            (b"a\0b".to_vec(), None),
            (b"caf\xe9".to_vec(), None),
            (
                [long.as_bytes(), b"\xe9"].concat(),
                Some((format!("{long}\u{fffd}"), 1)),
            ),
        ] {
            assert_eq!(text(bytes.clone()), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_file_is_named_as_short_as_can_be() {
        let paths = ["a/x.md", "b/x.md", "b/y.RS", "/dev/fd/63"].map(PathBuf::from);
        assert_eq!(names(&paths), ["a/x.md", "b/x.md", "y.RS", "63"]);
        let media = paths.each_ref().map(|path| media(path));
        assert_eq!(
            media,
            [
                "text/markdown",
                "text/markdown",
                "text/x-rust",
                "text/plain"
            ]
        );
    }
}
