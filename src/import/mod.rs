//! Runs that other agents recorded, as transcripts of ours.
//!
//! [`read`] is the front door: it opens a file or a directory, finds out its [`Format`], and has that
//! format's reader tell a pen what was recorded, in the order of the file. The pen lays it down as an
//! ordinary transcript through a [`Recorder`](crate::record::Recorder), so that whatever looks at runs
//! looks at these as well, and every request of it can be built again.
//!
//! What the model was sent is kept word for word; what only the agent's own screen showed is not. What
//! a format does not record (often the system text and the specs of tools) stays unknown. A compaction
//! that the agent recorded becomes a summary whose rule is [`RECORDED`]. Nothing that is read here is
//! followed, opened or run.

mod source;
mod signature;
mod json;
mod lines;
mod tree;
mod members;
mod detect;
mod known;
mod pen;
mod walk;
mod join;
mod shorten;
mod moved;
mod write;
mod imported;
mod claude_code;
mod codex;
mod pi;
mod fields;
mod objects;
mod mini_swe_agent;
mod swe_agent;
mod openhands;
mod openhands_sdk;
mod ours;
mod atif;
mod gemini_cli;
mod copilot_cli;
mod inspect;
mod aider;
#[cfg(test)]
mod told;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod detected;

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

pub use detect::{Format, NoFormat};
pub use imported::Imported;
pub use walk::{Recordings, looks_like, recordings};

use crate::record::RecordError;
use crate::transcript::{At, Attachment, Speaker};
use pen::Pen;
use source::Source;

/// The rule of overlays that stand for an agent's own compactions.
pub const RECORDED: &str = "recorded";

/// A recording cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It is of another format than the one that was named.
    #[error("{name} looks like {found}, not like {wanted}")]
    Other {
        /// The file.
        name: String,
        /// What it looks like.
        found: Format,
        /// What it was said to be.
        wanted: Format,
    },
    /// It is a transcript of this program.
    #[error(
        "{name} is a transcript already: every command takes its path, nothing is to be imported"
    )]
    Transcript {
        /// The file.
        name: String,
    },
    /// It is certainly no recording.
    #[error("{name} is no recording: {looks}")]
    Nothing {
        /// The file.
        name: String,
        /// What it looks like.
        looks: String,
    },
    /// It is of no format that is known.
    #[error("{name} is of no known agent: {looks}")]
    Unknown {
        /// The file.
        name: String,
        /// What it looks like.
        looks: String,
    },
    /// It is of a known format and holds no run.
    #[error("{name} holds no run: no message of a {format} run is in it{looks}")]
    Empty {
        /// The file.
        name: String,
        /// Its format.
        format: Format,
        /// A semicolon and what it looks like; nothing if it looks like its format.
        looks: String,
    },
    /// It is of a known format and cannot be understood.
    #[error("cannot understand {name} as {format}: {why}")]
    Broken {
        /// The file.
        name: String,
        /// Its format.
        format: Format,
        /// What is wrong.
        why: String,
    },
    /// The transcript cannot be written.
    #[error("cannot write the transcript")]
    Record(#[from] RecordError),
}

/// The runs that a file, or a directory that counts as one, holds. The format is found out unless it
/// is named.
pub fn read(path: &Path, format: Option<Format>) -> Result<Vec<Imported>, ImportError> {
    let source = Source::open(path).map_err(|source| ImportError::Read {
        path: path.to_owned(),
        source,
    })?;
    read_source(source, format)
}

/// The same for bytes that are at hand, under the name of the file they come from.
pub fn read_bytes(
    name: &str,
    bytes: Vec<u8>,
    format: Option<Format>,
) -> Result<Vec<Imported>, ImportError> {
    let bytes = Box::new(Cursor::new(bytes));
    read_source(Source::of(name, bytes, None), format)
}

/// The same for what a reader reads to its end, under a name. A run without times has this one.
pub fn read_from(
    name: &str,
    reader: Box<dyn Read>,
    at: At,
    format: Option<Format>,
) -> Result<Vec<Imported>, ImportError> {
    read_source(Source::of(name, reader, Some(at)), format)
}

fn read_source(mut source: Source, wanted: Option<Format>) -> Result<Vec<Imported>, ImportError> {
    let name = source.name().to_owned();
    let (format, looks) = source.format(wanted)?;
    let pens = pens(&mut source, format).map_err(|error| match error {
        Unread::Io(error) => ImportError::Read {
            path: source.path(),
            source: error,
        },
        Unread::Broken(why) => ImportError::Broken {
            name: name.clone(),
            format,
            why,
        },
    })?;
    let sha256 = source.digest().map_err(|error| ImportError::Read {
        path: source.path(),
        source: error,
    })?;
    let pens: Vec<Pen> = pens.into_iter().filter(Pen::holds_a_run).collect();
    if pens.is_empty() {
        let looks = looks.map_or_else(String::new, |looks| format!("; {looks}"));
        return Err(ImportError::Empty {
            name,
            format,
            looks,
        });
    }
    let modified = source.modified();
    let parts = pens.len();
    let imported = (1..).zip(pens).map(|(part, pen)| {
        let part = (parts > 1).then_some(part);
        let of = imported::Origin {
            format,
            file: name.clone(),
            sha256,
            part,
            modified,
        };
        Imported::new(pen, of)
    });
    Ok(imported.collect())
}

/// Why a reader gave up.
#[derive(Debug, thiserror::Error)]
enum Unread {
    /// The bytes cannot be had.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// They are not what they should be.
    #[error("{0}")]
    Broken(String),
}

/// What each run of the source tells.
fn pens(source: &mut Source, format: Format) -> Result<Vec<Pen>, Unread> {
    match format {
        Format::ClaudeCode => claude_code::read(source),
        Format::Codex => codex::read(source),
        Format::Pi => pi::read(source),
        Format::MiniSweAgent => mini_swe_agent::read(source),
        Format::SweAgent => swe_agent::read(source),
        Format::OpenHands => openhands::read(source),
        Format::OpenHandsSdk => openhands_sdk::read(source),
        Format::Atif => atif::read(source),
        Format::GeminiCli => gemini_cli::read(source),
        Format::CopilotCli => copilot_cli::read(source),
        Format::Inspect => inspect::read(source),
        Format::Aider => aider::read(source),
    }
}

/// Tells of a message in the user's place: typed by a person, unless the client put it in, which it
/// says, or which shows in how the text begins.
fn typed(
    pen: &mut Pen,
    put_in: bool,
    beginnings: &[&str],
    text: &str,
    attachments: Vec<Attachment>,
) {
    if put_in || is_put_in(text, beginnings) {
        pen.user(Speaker::Runtime, text.to_owned(), attachments);
    } else {
        pen.typed(text.to_owned(), attachments);
    }
}

/// Whether a text begins as those do that a client puts in the user's place.
fn is_put_in(text: &str, beginnings: &[&str]) -> bool {
    let begins = text.trim_start();
    beginnings.iter().any(|known| begins.starts_with(known))
}
