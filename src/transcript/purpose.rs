//! What a request is for, and what its text is asked to say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{EntryId, Span};
use crate::overlay::Origin;
use crate::setup::Role;

/// What a request is for: by ids and values, all that its body needs besides entries and setup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Purpose {
    /// The next round of the run. Only these count rounds.
    Round,
    /// A summary of raw entries.
    Summary(Summarize),
    /// One text from several.
    Combine(Combine),
    /// A better answer to a reply that did not fit.
    Repair {
        /// The reply.
        response: EntryId,
        /// What was wrong with it.
        error: String,
    },
}

impl Purpose {
    /// Who asked for it; a round is the loop's own.
    pub fn origin(&self) -> Origin {
        match self {
            Self::Summary(ask) => ask.origin,
            Self::Combine(ask) => ask.origin,
            Self::Round | Self::Repair { .. } => Origin::Auto,
        }
    }

    /// Which model it is for.
    pub fn role(&self) -> Role {
        match self {
            Self::Round | Self::Repair { .. } => Role::Main,
            Self::Summary(ask) => ask.model,
            Self::Combine(ask) => ask.model,
        }
    }
}

/// What a summary request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summarize {
    /// The last entry that existed when it was planned.
    pub as_of: EntryId,
    /// Which model is asked.
    pub model: Role,
    /// The entries to summarise.
    pub span: Span,
    /// Which part of how many this is, from 1; absent: the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<[u32; 2]>,
    /// The longest result in it, in characters; longer ones are clipped.
    pub clip: u64,
    /// What to preserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// Texts that must be kept, word for word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// Who asked for it; absent: the pipeline.
    #[serde(default = "auto", skip_serializing_if = "is_auto")]
    pub origin: Origin,
    /// The entries that all parts cover together; absent: those of `span`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Span>,
    /// The summaries in whose place the text is to stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<EntryId>,
    /// The most words of the text; absent: three quarters of a summary's share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<u64>,
}

fn auto() -> Origin {
    Origin::Auto
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands fields over by reference"
)]
fn is_auto(origin: &Origin) -> bool {
    *origin == Origin::Auto
}

impl Summarize {
    /// A request for a summary of a span, planned when this was the last entry.
    pub fn new(as_of: EntryId, span: Span) -> Self {
        Self {
            as_of,
            model: Role::Summary,
            span,
            part: None,
            clip: 4000,
            focus: None,
            keep: Vec::new(),
            origin: Origin::Auto,
            whole: None,
            replaces: Vec::new(),
            words: None,
        }
    }
}

/// What a combining request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Combine {
    /// The last entry that existed when it was planned.
    pub as_of: EntryId,
    /// Which model is asked.
    pub model: Role,
    /// The texts to combine.
    pub of: Vec<Source>,
    /// The entries they cover together.
    pub span: Span,
    /// What to preserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// Texts that must be kept, word for word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// Who asked for it; absent: the pipeline.
    #[serde(default = "auto", skip_serializing_if = "is_auto")]
    pub origin: Origin,
    /// The entries that the parts of the summary cover in the end; absent: those of `span`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Span>,
    /// The most words of the text; absent: three quarters of a summary's share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<u64>,
}

impl Combine {
    /// A request for one text in place of several, planned when this was the last entry.
    pub fn new(as_of: EntryId, span: Span, of: Vec<Source>) -> Self {
        Self {
            as_of,
            model: Role::Summary,
            of,
            span,
            focus: None,
            keep: Vec::new(),
            origin: Origin::Auto,
            whole: None,
            words: None,
        }
    }
}

/// Where a text to combine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// In a response to a summary request.
    Response(EntryId),
    /// In a summary that was laid.
    Overlay(EntryId),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(purpose: &Purpose, line: &str) {
        assert_eq!(serde_json::to_string(purpose).unwrap(), line);
        let read: Purpose = serde_json::from_str(line).unwrap();
        assert_eq!(read, *purpose);
    }

    /// What is not said is not written, so lines from before a field was there read as they did.
    #[test]
    fn what_is_absent_has_a_meaning() {
        let span = Span::new(EntryId(4), EntryId(9));
        let plain = Summarize::new(EntryId(9), span);
        let of = vec![Source::Response(EntryId(11)), Source::Overlay(EntryId(3))];
        let combine = Combine::new(EntryId(11), span, of);
        check(
            &Purpose::Summary(plain.clone()),
            r#"{"kind":"summary","as_of":9,"model":"summary","span":[4,9],"clip":4000}"#,
        );
        check(
            &Purpose::Combine(combine.clone()),
            r#"{"kind":"combine","as_of":11,"model":"summary","of":[{"response":11},{"overlay":3}],"span":[4,9]}"#,
        );
        check(
            &Purpose::Summary(Summarize {
                part: Some([1, 2]),
                focus: Some("x".to_owned()),
                keep: vec!["y".to_owned()],
                origin: Origin::User,
                whole: Some(Span::new(EntryId(4), EntryId(20))),
                replaces: vec![EntryId(7), EntryId(8)],
                words: Some(600),
                ..plain
            }),
            r#"{"kind":"summary","as_of":9,"model":"summary","span":[4,9],"part":[1,2],"clip":4000,"focus":"x","keep":["y"],"origin":"user","whole":[4,20],"replaces":[7,8],"words":600}"#,
        );
        check(
            &Purpose::Combine(Combine {
                origin: Origin::Tool,
                whole: Some(Span::new(EntryId(4), EntryId(20))),
                words: Some(600),
                ..combine
            }),
            r#"{"kind":"combine","as_of":11,"model":"summary","of":[{"response":11},{"overlay":3}],"span":[4,9],"origin":"tool","whole":[4,20],"words":600}"#,
        );
    }
}
