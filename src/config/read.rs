//! Reading one source: a file, the variables, or an assignment on the command line.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::config::{EndpointError, Environment, Sections};

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
    /// Settings contradict each other, or mean nothing.
    #[error("settings cannot be used")]
    Meaning(#[from] MeaningError),
    /// There is no key for the server.
    #[error("cannot ask the server")]
    Endpoint(#[from] EndpointError),
}

/// Each setting is well formed, but they cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeaningError {
    /// The default rule does not exist.
    #[error("`compaction.default_rule` names `{0}`, which is not among `compaction.rules`")]
    NoSuchRule(String),
    /// Some prices are known and some are not.
    #[error("`model.prices` needs both `input` and `output`")]
    HalfPrices,
    /// A limit counts what has no price.
    #[error("`limits.cost` needs `model.prices`, without which no cost is counted")]
    CostWithoutPrices,
    /// What should name a variable does not look like a name, and may be a key.
    #[error("`model.api_key_env` takes the NAME of a variable, not a key")]
    KeyVariable,
    /// A server's address is none.
    #[error("`model.base_url` is `{0}`, but must begin with http:// or https://")]
    Address(String),
    /// A kind of sandbox that cannot be had.
    #[error("sandbox `{0}` cannot be enforced by this version, which knows only `off`")]
    Sandbox(String),
    /// There is no place for transcripts.
    #[error(
        "neither XDG_STATE_HOME nor HOME says where transcripts go; name a directory with --transcripts"
    )]
    NoTranscripts,
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

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A key that is not known.
    #[error("unknown key `{key}`{}", hint(nearest.as_deref(), known))]
    Key {
        /// The key.
        key: String,
        /// The known one that looks most like it.
        nearest: Option<String>,
        /// All that are known in its place.
        known: Vec<&'static str>,
    },
    /// A word that is not known.
    #[error("unknown word `{word}`{}", hint(None, known))]
    Word {
        /// The word.
        word: String,
        /// All that are known in its place.
        known: Vec<&'static str>,
    },
    /// A key that stands twice.
    #[error("`{0}` stands here twice")]
    Twice(String),
    /// A section is not one.
    #[error("keys must stand here, such as `name: value`")]
    NoSection,
    /// An assignment is none.
    #[error("a setting is given as key=value, such as model.name=gpt-5")]
    NoAssignment,
    /// Anything else, in the words of the reader.
    #[error("{0}")]
    Value(String),
}

fn hint(nearest: Option<&str>, known: &[&str]) -> String {
    match nearest {
        Some(key) => format!(", did you mean `{key}`?"),
        None if known.is_empty() => String::new(),
        None => format!(", known here: {}", known.join(", ")),
    }
}

/// Reads a file that must be there.
pub(crate) fn file(path: &Path) -> Result<Sections, ConfigError> {
    let text = text(path).map_err(|source| ConfigError::File {
        path: path.to_owned(),
        source,
    })?;
    let sections = sections(&text).map_err(|(source, at)| ConfigError::Setting {
        place: Place::File(path.to_owned(), at),
        source,
    })?;
    Ok(with_files_beside(path, sections))
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

fn text(path: &Path) -> io::Result<String> {
    // Judged before it is opened: to open a pipe would wait for its other end.
    let metadata = path.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut text = String::new();
    let limit = FILE_BYTES + 1;
    std::fs::File::open(path)?
        .take(limit)
        .read_to_string(&mut text)?;
    if text.len() as u64 == limit {
        return Err(io::Error::other("larger than 1 MiB"));
    }
    Ok(text)
}

/// Reads every variable that is a setting: those with two underscores in a row, since every key
/// stands in a section.
pub(crate) fn variables(environment: &Environment) -> Result<Sections, ConfigError> {
    let mut merged = Sections::default();
    for (name, value) in environment {
        let Some(key) = name.strip_prefix("UNDERTEXT_") else {
            continue;
        };
        if !key.contains("__") {
            continue;
        }
        let path = key.to_lowercase().replace("__", ".");
        let source = nested(&path, value).map_err(|source| ConfigError::Setting {
            place: Place::Variable(name.clone()),
            source,
        })?;
        merged = source.over(merged);
    }
    Ok(merged)
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

type Found = (Wrong, Option<(u64, u64)>);

fn sections(yaml: &str) -> Result<Sections, Found> {
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options::<Sections>(yaml, options)
        .map(Sections::with_folded_names)
        .map_err(|error| {
            let place = error.location().filter(|at| at.line() > 0);
            (wrong(&error), place.map(|at| (at.line(), at.column())))
        })
}

/// Says in our words what the reader of YAML found.
fn wrong(error: &serde_saphyr::Error) -> Wrong {
    use serde_saphyr::Error;
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "another crate's enum, which adds variants"
    )]
    match error.without_snippet() {
        Error::SerdeUnknownField {
            field, expected, ..
        } => Wrong::Key {
            key: field.clone(),
            nearest: nearest(field, expected),
            known: expected.clone(),
        },
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => Wrong::Word {
            word: variant.clone(),
            known: expected.clone(),
        },
        Error::DuplicateMappingKey { key: Some(key), .. } => Wrong::Twice(key.clone()),
        Error::Unexpected { expected, .. } if *expected == "mapping start" => Wrong::NoSection,
        Error::InvalidScalar { ty, .. } => Wrong::Value(match *ty {
            "bool" | "boolean" => "true or false must stand here".to_owned(),
            ty if ty.starts_with('f') => "a number must stand here".to_owned(),
            ty if ty.starts_with('u') => {
                "a whole number that is not negative must stand here".to_owned()
            }
            ty => format!("not a valid {ty}"),
        }),
        Error::SerdeInvalidValue { expected, .. } if expected.starts_with("a nonzero") => {
            Wrong::Value("at least 1 must stand here".to_owned())
        }
        other => {
            let text = other.to_string();
            let end = text.rfind(" at line ").unwrap_or(text.len());
            Wrong::Value(text[..end].to_owned())
        }
    }
}

/// The known key that looks most like this one: a neighbour, or the whole path of one that stands
/// elsewhere.
fn nearest(key: &str, neighbours: &[&str]) -> Option<String> {
    if let Some(near) = similar::get_close_matches(key, neighbours, 1, 0.7).first() {
        return Some((*near).to_owned());
    }
    Sections::all_keys()
        .into_iter()
        .find(|path| path.rsplit('.').next() == Some(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(yaml: &str, expected: &str) {
        let (wrong, at) = sections(yaml).unwrap_err();
        let place = Place::File("config.yaml".into(), at);
        assert_eq!(format!("{place}: {wrong}"), expected, "{yaml:?}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        check(
            "compaction:\n  micro:\n    keep_recnt: 5\n",
            "config.yaml:3:5: unknown key `keep_recnt`, did you mean `keep_recent`?",
        );
        check(
            "keep_recent: 5\n",
            "config.yaml:1:1: unknown key `keep_recent`, did you mean \
             `compaction.micro.keep_recent`?",
        );
        check(
            "sandbox: { zzz: 1 }",
            "config.yaml:1:12: unknown key `zzz`, known here: mode",
        );
        check(
            "compaction: { estimate: exact }",
            "config.yaml:1:25: unknown word `exact`, known here: calibrated, chars",
        );
        check(
            "limits: { rounds: 5, rounds: 6 }",
            "config.yaml:1:22: `rounds` stands here twice",
        );
        check(
            "model: gpt-5",
            "config.yaml:1:8: keys must stand here, such as `name: value`",
        );
        check(
            "limits: { rounds: -1 }",
            "config.yaml:1:19: a whole number that is not negative must stand here",
        );
        check(
            "limits: { wall_time: 90 }",
            "config.yaml:1:22: `90` needs a unit, such as 90s or 90m",
        );
        check(
            "limits: { cost: -2 }",
            "config.yaml:1:17: -2 is no price in US dollars",
        );
        check(
            "compaction:\n\tenabled: true\n",
            "config.yaml:2:2: tabs disallowed within this context (block indentation)",
        );
        check(
            "tools: { Bash: { compaction: { requests: keep } } }",
            "config.yaml:1:32: unknown key `requests`, did you mean `request`?",
        );
    }

    #[test]
    fn an_empty_file_and_an_empty_section_give_nothing() {
        for yaml in [
            "",
            "# nothing\n",
            "model:\n",
            "model:\n  # name: x\nlimits:\n",
        ] {
            assert_eq!(sections(yaml), Ok(Sections::default()), "{yaml:?}");
        }
    }

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
