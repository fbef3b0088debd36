//! What a tool answers.

use serde::{Deserialize, Serialize};

use crate::exchange::{Facts, Status};
use crate::id::CallId;
use crate::tools::clip;

/// The answer of a tool to one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How the call ended.
    pub status: Status,
    /// What the model reads.
    pub content: String,
    /// The whole output, if the content is clipped and the output was not too large to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Vec<u8>>,
    /// The size of the whole output in bytes, if the content is clipped; else 0.
    #[serde(default)]
    pub bytes: u64,
    /// What programs may know of the call.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub facts: Facts,
}

impl Outcome {
    /// An outcome of this status, nothing clipped, without facts.
    pub fn new(status: Status, content: impl Into<String>) -> Self {
        Self {
            status,
            content: content.into(),
            whole: None,
            bytes: 0,
            facts: Facts::default(),
        }
    }

    /// The tool did what was asked.
    pub fn ok(content: impl Into<String>) -> Self {
        Self::new(Status::Ok, content)
    }

    /// It failed; the content says why and what to try.
    pub fn error(content: impl Into<String>) -> Self {
        Self::new(Status::Error, content)
    }

    /// The same outcome with these facts.
    #[must_use]
    pub fn with_facts(mut self, facts: Facts) -> Self {
        self.facts = facts;
        self
    }

    /// Adds a line below the content.
    pub fn add_line(&mut self, line: &str) {
        if !(self.content.is_empty() || line.is_empty() || self.content.ends_with('\n')) {
            self.content.push('\n');
        }
        self.content.push_str(line);
    }

    /// The same outcome with at most about `chars` characters of content; what is clipped away
    /// goes to `whole`. An outcome that is clipped already stays as it is.
    #[must_use]
    pub fn clipped(mut self, chars: u64, call: CallId) -> Self {
        if self.bytes == 0
            && let Some(content) = clip::clip(&self.content, chars, call)
        {
            let whole = std::mem::replace(&mut self.content, content).into_bytes();
            self.bytes = whole.len() as u64;
            self.whole = Some(whole);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::EntryId;

    #[test]
    fn a_line_stands_by_itself() {
        for (before, line, after) in [
            ("", "[exit 1]", "[exit 1]"),
            ("a", "[exit 1]", "a\n[exit 1]"),
            ("a\n", "[exit 1]", "a\n[exit 1]"),
            ("a", "", "a"),
        ] {
            let mut outcome = Outcome::ok(before);
            outcome.add_line(line);
            assert_eq!(outcome.content, after);
        }
    }

    #[test]
    fn what_is_clipped_away_is_kept_once() {
        let call = CallId::new(EntryId(41), 2);
        let long = "line\n".repeat(1000);
        let outcome = Outcome::ok(long.clone()).clipped(200, call);
        assert_eq!(outcome.content.chars().count(), 200);
        assert_eq!(outcome.whole.as_deref(), Some(long.as_bytes()));
        assert_eq!(outcome.bytes, 5000);
        assert_eq!(outcome.clone().clipped(100, call), outcome);

        let short = Outcome::error("no such file");
        assert_eq!(short.clone().clipped(200, call), short);
    }
}
