//! Names with wildcards: which files a pattern such as `src/**/*.{rs,toml}` takes.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// The longest pattern, in bytes.
const LONGEST: usize = 1000;

/// A pattern, ready to be compared.
#[derive(Debug)]
pub(crate) struct Wildcard {
    globs: GlobSet,
    /// It is compared with the name alone, at any depth.
    anywhere: bool,
}

/// A pattern is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WildcardError {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    #[error("it holds `..`; name the directory as path instead")]
    Upwards,
    #[error("{0}")]
    Syntax(String),
}

impl Wildcard {
    /// The pattern, which counts from the directory that is searched. One without a slash takes
    /// names at any depth.
    pub(crate) fn new(pattern: &str) -> Result<Self, WildcardError> {
        let (anywhere, pattern) = match pattern.strip_prefix("./") {
            Some(rest) => (false, rest),
            None => (!pattern.contains('/'), pattern),
        };
        Self::from(pattern, anywhere)
    }

    /// The pattern, which takes names at any depth or counts from the directory.
    pub(crate) fn from(pattern: &str, anywhere: bool) -> Result<Self, WildcardError> {
        if pattern.is_empty() {
            return Err(WildcardError::Empty);
        }
        if pattern.len() > LONGEST {
            return Err(WildcardError::TooLong);
        }
        if pattern.split('/').any(|part| part == "..") {
            return Err(WildcardError::Upwards);
        }
        let syntax = |error: globset::Error| WildcardError::Syntax(error.kind().to_string());
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build()
            .map_err(syntax)?;
        let globs = GlobSetBuilder::new().add(glob).build().map_err(syntax)?;
        Ok(Self { globs, anywhere })
    }

    /// Whether it takes the thing at this path below the directory.
    pub(crate) fn takes(&self, below: &Path) -> bool {
        if self.anywhere {
            below
                .file_name()
                .is_some_and(|name| self.globs.is_match(name))
        } else {
            self.globs.is_match(below)
        }
    }
}

/// The pattern in two: the directories that it names without wildcards, and the rest.
pub(crate) fn split(pattern: &str) -> (&str, &str) {
    let mut rest = pattern;
    while let Some((first, more)) = rest.split_once('/') {
        if first.contains(['*', '?', '[', '{', '\\']) {
            break;
        }
        rest = more;
    }
    (&pattern[..pattern.len() - rest.len()], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_takes_names_or_paths() {
        for (pattern, path, expected) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "src/deep/a.rs", true),
            ("./*.rs", "a.rs", true),
            ("./*.rs", "src/a.rs", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/*.rs", "other/src/a.rs", false),
            ("src/**/*.rs", "src/a.rs", true),
            ("**/*.rs", "src/deep/a.rs", true),
            ("**", "src/a.rs", true),
            ("*.{rs,toml}", "x/Cargo.toml", true),
            ("a{,.b}", "a", true),
            ("[a-c]?", "b1", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            ("-x", "-x", true),
            (".*", "a/.env", true),
            ("*", ".env", true),
            ("*.RS", "a.rs", false),
        ] {
            let wildcard = Wildcard::new(pattern).unwrap();
            assert_eq!(
                wildcard.takes(Path::new(path)),
                expected,
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        let long = "a".repeat(1001);
        let said = ["", "a/../b", "a[", "{a", long.as_str()]
            .map(|pattern| Wildcard::new(pattern).unwrap_err().to_string());
        insta::assert_snapshot!(said.join("\n"), @r#"
        it is empty
        it holds `..`; name the directory as path instead
        unclosed character class; missing ']'
        unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
        it is longer than 1000 bytes
        "#);
    }

    #[test]
    fn directories_without_wildcards_come_first() {
        for (pattern, expected) in [
            ("*.rs", ("", "*.rs")),
            ("src/*.rs", ("src/", "*.rs")),
            ("src/a.rs", ("src/", "a.rs")),
            ("/w/src/**/*.rs", ("/w/src/", "**/*.rs")),
            ("../x/{a,b}/c", ("../x/", "{a,b}/c")),
            ("./*", ("./", "*")),
            ("src/", ("src/", "")),
        ] {
            assert_eq!(split(pattern), expected, "{pattern}");
        }
    }
}
