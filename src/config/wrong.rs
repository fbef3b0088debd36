//! What is wrong in a source of settings, in our words.

use crate::config::Sections;
use crate::difference;

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

impl Wrong {
    /// Something in these words.
    pub(crate) fn value(words: &str) -> Self {
        Self::Value(words.to_owned())
    }
}

fn hint(nearest: Option<&str>, known: &[&str]) -> String {
    match nearest {
        Some(key) => format!(", did you mean `{key}`?"),
        None if known.is_empty() => String::new(),
        None => format!(", known here: {}", known.join(", ")),
    }
}

/// Says in our words what the reader of YAML found.
pub(crate) fn wrong(error: &serde_saphyr::Error) -> Wrong {
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
        Error::AliasError { error, .. } => wrong(error),
        Error::Unexpected { expected, .. } if *expected == "mapping start" => Wrong::NoSection,
        Error::SerdeInvalidValue { expected, .. } if expected.starts_with("a nonzero") => {
            Wrong::value("at least 1 must stand here")
        }
        Error::SerdeInvalidType { expected, .. } => {
            Wrong::Value(format!("{expected} must stand here"))
        }
        other => Wrong::value(said(other).unwrap_or(&plain(other))),
    }
}

/// What must stand there instead, where that is all there is to say.
fn said(error: &serde_saphyr::Error) -> Option<&'static str> {
    use serde_saphyr::Error;
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "another crate's enum, which adds variants"
    )]
    Some(match error {
        Error::Unexpected { expected, .. } if *expected == "string scalar" => {
            "one value must stand here, no list and no keys"
        }
        Error::Unexpected { expected, .. } if *expected == "sequence start" => {
            "a list must stand here, such as [Bash, Read]"
        }
        Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. } => "a word must stand here",
        Error::NullIntoString { .. } => "a text must stand here, not null",
        Error::InvalidScalar { ty, .. } => match *ty {
            "bool" | "boolean" => "true or false must stand here",
            "u32" => "a whole number must stand here, not negative and at most 4294967295",
            ty if ty.starts_with('u') => "a whole number that is not negative must stand here",
            ty if ty.starts_with('f') => "a number must stand here",
            _ => return None,
        },
        Error::MultipleDocuments { .. } => {
            "a second document begins here; a file of settings holds one"
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "settings need no aliases, or far fewer than stand here"
        }
        Error::ExternalMessage { msg, .. } if msg.contains("tabs disallowed") => {
            "a tab stands here; YAML is indented with spaces"
        }
        Error::ExternalMessage { msg, .. } if msg.contains("did not find expected key") => {
            "a key is expected here; is the line indented like its neighbours?"
        }
        _ => return None,
    })
}

/// The reader's own words, without the place.
fn plain(error: &serde_saphyr::Error) -> String {
    let mut text = error.to_string();
    text.truncate(text.find(" at line ").unwrap_or(text.len()));
    text
}

/// The known key that looks most like this one: a neighbour, or the whole path of one that stands
/// elsewhere.
fn nearest(key: &str, neighbours: &[&str]) -> Option<String> {
    if let Some(near) = difference::close(key, neighbours, 1, 0.7).first() {
        return Some((*near).to_owned());
    }
    Sections::all_keys()
        .into_iter()
        .find(|path| path.rsplit('.').next() == Some(key))
}
