//! Reading one source: a file, the variables, or an assignment on the command line.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::config::wrong::{Wrong, wrong};
use crate::config::{EndpointError, Environment, Origin, Sections};
use crate::door;

/// The largest file that is read, in bytes.
const FILE_BYTES: u64 = 1 << 20;

/// The settings cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read settings from {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Something in a source is wrong.
    #[error("wrong setting in {place}")]
    Setting {
        /// Where.
        place: Place,
        /// What.
        source: Wrong,
    },
    /// A file that describes a tool is wrong.
    #[error("wrong tool in {place}")]
    Tool {
        /// Where.
        place: Place,
        /// What.
        source: Box<Wrong>,
    },
    /// Settings contradict each other, or mean nothing.
    #[error("settings cannot be used")]
    Meaning(#[from] MeaningError),
    /// The same, of a setting that stands there.
    #[error("setting in {place} cannot be used")]
    MeaningAt {
        /// Where.
        place: Origin,
        /// What.
        source: MeaningError,
    },
    /// There is no key for the server.
    #[error("cannot ask the server")]
    Endpoint(#[from] EndpointError),
}

/// Each setting is well formed, but they cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeaningError {
    /// The default rule does not exist.
    #[error(
        "`compaction.default_rule` names `{name}`, which is not among `compaction.rules`; {hint}"
    )]
    NoSuchRule {
        /// What it names.
        name: String,
        /// What it could name.
        hint: String,
    },
    /// Some prices are known and some are not.
    #[error("`model.prices` needs both `input` and `output`")]
    HalfPrices,
    /// One response may fill the whole window.
    #[error(
        "`model.max_output_tokens` is {output}, which leaves nothing of `model.context_window`, \
         {window}, to ask with"
    )]
    OutputFillsWindow {
        /// The window.
        window: u64,
        /// The most tokens of one response.
        output: u64,
    },
    /// The context would be compacted before anything is in it.
    #[error(
        "`compaction.auto.trigger_ratio` must be more than 0; `enabled: false` switches it off"
    )]
    NoTrigger,
    /// A profile is based on none that there is.
    #[error("`profiles.{name}.base` names `{base}`, which is no built-in profile; {hint}")]
    NoSuchBase {
        /// The profile.
        name: String,
        /// What it is based on.
        base: String,
        /// What it could be based on.
        hint: String,
    },
    /// A profile adds what makes up a request.
    #[error("`profiles.{name}.parameters.add` holds `{member}`, which each request says by itself")]
    OwnMember {
        /// The profile.
        name: String,
        /// The member.
        member: String,
    },
    /// What should name a variable does not look like a name, and may be a key.
    #[error("`model.api_key_env` takes the NAME of a variable, not a key")]
    KeyVariable,
    /// The address of the usual server is none.
    #[error("variable OPENAI_BASE_URL is `{0}`, but must begin with http:// or https://")]
    UsualAddress(String),
    /// A server's address is none.
    #[error("`model.base_url` is `{0}`, but must begin with http:// or https://")]
    Address(String),
    /// There is no place for transcripts.
    #[error(
        "neither XDG_STATE_HOME nor HOME says where transcripts go; name a directory with --transcripts"
    )]
    NoTranscripts,
}

impl MeaningError {
    /// The key or section at fault, if it is one.
    pub(crate) fn key(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoSuchRule { .. } => "compaction.default_rule",
            Self::HalfPrices => "model.prices",
            Self::OutputFillsWindow { .. } => "model.max_output_tokens",
            Self::NoTrigger => "compaction.auto.trigger_ratio",
            Self::NoSuchBase { .. } | Self::OwnMember { .. } => "profiles",
            Self::KeyVariable => "model.api_key_env",
            Self::Address(_) => "model.base_url",
            Self::UsualAddress(_) | Self::NoTranscripts => return None,
        })
    }
}

/// Where in a source something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file, at a line and column from 1 if they are known.
    File(PathBuf, Option<(u64, u64)>),
    /// In the variable of this name.
    Variable(String),
    /// In the value of `--set`.
    Set(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, None) => write!(f, "{}", path.display()),
            Self::File(path, Some((line, column))) => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Set(text) => write!(f, "--set {}", without_secret(text)),
        }
    }
}

/// The assignment; without its value if that may be a secret.
fn without_secret(text: &str) -> Cow<'_, str> {
    let lower = text.to_lowercase();
    if !["key", "token", "secret"]
        .iter()
        .any(|word| lower.contains(word))
    {
        return Cow::Borrowed(text);
    }
    match text.split_once('=') {
        Some((key, _)) => Cow::Owned(format!("{key}=…")),
        None => Cow::Borrowed("…"),
    }
}

/// Reads a file that must be there.
pub(crate) fn file(path: &Path) -> Result<Sections, ConfigError> {
    let bytes = bytes(path).map_err(|source| ConfigError::File {
        path: path.to_owned(),
        source,
    })?;
    let text = as_text(&bytes).map_err(|(source, at)| ConfigError::Setting {
        place: Place::File(path.to_owned(), at),
        source,
    })?;
    text_of(text, path)
}

/// The bytes of a file as its text.
pub(crate) fn as_text(bytes: &[u8]) -> Result<&str, Found> {
    str::from_utf8(bytes).map_err(|error| {
        let before = str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default();
        let column = column.chars().count() + 1;
        let wrong = Wrong::value("what stands here is not UTF-8");
        (wrong, Some((line as u64, column as u64)))
    })
}

/// Reads the text of a file.
pub(crate) fn text_of(text: &str, path: impl Into<PathBuf>) -> Result<Sections, ConfigError> {
    let path = path.into();
    match sections(text) {
        Ok(sections) => Ok(with_files_beside(&path, sections)),
        Err((source, at)) => Err(ConfigError::Setting {
            place: Place::File(path, at),
            source,
        }),
    }
}

/// The same, where a relative file of instructions counts from the directory of this file.
fn with_files_beside(path: &Path, mut sections: Sections) -> Sections {
    let placed = |file: PathBuf| match path.parent() {
        Some(directory) if !file.starts_with("~") => directory.join(file),
        Some(_) | None => file,
    };
    let file = std::mem::take(&mut sections.instructions.file);
    sections.instructions.file = file.map(|file| file.map(placed));
    sections
}

/// Reads a file that need not be there.
pub(crate) fn file_if_there(path: &Path) -> Result<Option<Sections>, ConfigError> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => file(path).map(Some),
    }
}

/// The bytes of a file.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Judged before it is opened: to open a pipe would wait for its other end.
    let metadata = path.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut bytes = Vec::new();
    let limit = FILE_BYTES + 1;
    std::fs::File::open(path)?
        .take(limit)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 == limit {
        return Err(io::Error::other("larger than 1 MiB"));
    }
    Ok(bytes)
}

/// Reads every variable that is a setting: those with two underscores in a row, since every key
/// stands in a section.
pub(crate) fn variables(
    environment: &Environment,
) -> impl Iterator<Item = (String, Result<Sections, ConfigError>)> {
    environment.iter().filter_map(|(name, value)| {
        let key = name.strip_prefix("UNDERTEXT_")?;
        if !key.contains("__") {
            return None;
        }
        let path = key.to_lowercase().replace("__", ".");
        let given = nested(&path, value).map_err(|source| ConfigError::Setting {
            place: Place::Variable(name.clone()),
            source,
        });
        Some((name.clone(), given))
    })
}

/// The variables that look like settings with single underscores between the levels, which are not
/// read, and how each would be.
pub fn mistaken(environment: &Environment) -> Vec<(String, String)> {
    let keys = Sections::all_keys();
    let meant = |name: &String| {
        let said = name.strip_prefix("UNDERTEXT_")?.to_lowercase();
        let key = keys.iter().find(|key| key.replace('.', "_") == said)?;
        let meant = format!("UNDERTEXT_{}", key.replace('.', "__").to_uppercase());
        Some((name.clone(), meant))
    };
    environment.keys().filter_map(meant).collect()
}

/// Reads the `key=value` of a `--set`.
pub(crate) fn assignment(text: &str) -> Result<Sections, ConfigError> {
    let wrong = |source| ConfigError::Setting {
        place: Place::Set(text.to_owned()),
        source,
    };
    let (key, value) = text
        .split_once('=')
        .filter(|(key, _)| !key.trim().is_empty())
        .ok_or_else(|| wrong(Wrong::NoAssignment))?;
    nested(key.trim(), value).map_err(wrong)
}

/// Reads one value as if it stood in a file below its keys. Indentation keeps it there: no value
/// can end the line and begin another key.
fn nested(path: &str, value: &str) -> Result<Sections, Wrong> {
    let mut yaml = String::new();
    let mut indent = String::new();
    for key in path.split('.') {
        let quoted = serde_json::Value::from(key).to_string();
        writeln!(yaml, "{indent}{quoted}:").ok();
        indent.push_str("  ");
    }
    for line in value.lines() {
        writeln!(yaml, "{indent}{line}").ok();
    }
    if value.trim().is_empty() {
        writeln!(yaml, "{indent}\"\"").ok();
    }
    sections(&yaml).map_err(|(wrong, _)| wrong)
}

/// What is wrong in a text, and at which line and column if they are known.
pub(crate) type Found = (Wrong, Option<(u64, u64)>);

fn sections(yaml: &str) -> Result<Sections, Found> {
    let options = serde_saphyr::options! { with_snippet: false };
    door::yaml::<Option<Sections>>(yaml, options)
        .map(|sections| sections.unwrap_or_default().with_folded_names())
        .map_err(|error| {
            let place = error.location().filter(|at| at.line() > 0);
            (wrong(&error), place.map(|at| (at.line(), at.column())))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_below_its_key() {
        let name = |value| nested("model.name", value).map(|s| s.model.name.get().flatten());
        assert_eq!(name("qwen3:8b"), Ok(Some("qwen3:8b".to_owned())));
        assert_eq!(name("123"), Ok(Some("123".to_owned())));
        assert_eq!(name("null"), Ok(None));
        assert_eq!(name(""), Ok(Some(String::new())));
        for value in [
            "a\nlimits: { rounds: 1 }",
            "a\n---\nlimits: {}",
            "\"a",
            "[a]",
        ] {
            assert!(name(value).is_err() || name(value).unwrap().unwrap().starts_with("a "));
        }
    }
}
