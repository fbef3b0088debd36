//! Overlays: entries that change how earlier entries read, never what they are.
//!
//! An [`Overlay`] carries one of four layers: [`Stub`], [`Hide`], [`Summary`] and [`Show`].
//! [`layers`] finds what reads once all of them are laid: for each content the strongest opinion
//! wins, shown < stubbed < hidden < summarised, and among equals the newest. The algebra is total:
//! a layer that points at nothing, at a later entry or at another kind has no opinion.

pub mod layers;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, EntryId, Span};

/// The body of an `overlay` entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overlay {
    /// Who asked for it.
    pub origin: Origin,
    /// The rule or stage that made it, for people.
    pub rule: String,
    /// The first overlay of its pass; overlays of one plan share it.
    pub pass: EntryId,
    /// What it changes.
    pub layer: Layer,
    /// What it does to the size of the next request.
    pub size: Size,
    /// Why it was laid, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Who asked for an overlay or a retract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Micro-compaction, looked at before every request.
    Micro,
    /// Automatic compaction, when the estimate is over the trigger.
    Auto,
    /// The model, by the `Compact` tool.
    Tool,
    /// The provider refused a request as too long.
    Recovery,
    /// A person.
    User,
}

impl Origin {
    /// The word written in transcripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Micro => "micro",
            Self::Auto => "auto",
            Self::Tool => "tool",
            Self::Recovery => "recovery",
            Self::User => "user",
        }
    }
}

/// Estimated tokens of the next request before and after an overlay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Size {
    /// Without it.
    pub before: u64,
    /// With it.
    pub after: u64,
}

/// What an overlay changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Layer {
    /// Results and arguments read as a short stub.
    Stub(Stub),
    /// Contents are left out whole.
    Hide(Hide),
    /// A span reads as one summary.
    Summary(Summary),
    /// Older stubs and hides are lifted from these calls.
    Show(Show),
}

/// Results and arguments that read as a short stub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stub {
    /// How the stubs read.
    pub form: Form,
    /// Calls whose results are stubbed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<CallId>,
    /// Calls whose arguments read `{}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<CallId>,
    /// For stale results: the later call that made each so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by: BTreeMap<CallId, CallId>,
}

/// How a stubbed result reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `[Previous: used Bash] Recall 41.2 shows it (error, 1832 lines)`
    #[default]
    Previous,
    /// `[compacted] Edit: success (src/main.rs) Recall 41.2 shows it`
    Compacted,
    /// `[Previous: used Read] stale since 60.1, Recall 41.2 shows it`
    Stale,
}

/// Contents that are left out whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hide {
    /// Whole calls: arguments and result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallId>,
    /// Responses whose reasoning is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<EntryId>,
    /// Attachments, by user entry and place from 1. A line with name and size stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<(EntryId, u32)>,
    /// Whole rounds: every response within one of these spans, with its results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<Span>,
    /// For superseded calls: the newer call that made each superfluous.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub why: BTreeMap<CallId, CallId>,
}

/// A span that reads as one summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The entries it covers.
    pub span: Span,
    /// The text that is read in their place.
    pub text: String,
    /// Who wrote the text.
    pub by: Author,
    /// What it was asked to preserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// The texts it was combined from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// How often the oldest of its text was summarised: 1 for a summary of raw entries.
    #[serde(default = "one")]
    pub depth: u32,
    /// What is shown again after it, fixed when it is laid.
    #[serde(default, skip_serializing_if = "Carry::is_empty")]
    pub carry: Carry,
}

impl Summary {
    /// Whether it stands in the place of other summaries, and sums up nothing that came since them.
    pub fn is_merge(&self) -> bool {
        self.parts.iter().any(|part| part.overlay.is_some())
    }
}

fn one() -> u32 {
    1
}

/// Who wrote a summary's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A model, asked for it.
    Model,
    /// A person: never merged, widened or replaced silently.
    User,
    /// The program, without a model.
    Rules,
}

/// One of the texts that a summary was combined from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The entries it covers.
    pub span: Span,
    /// The response that holds it, if a model wrote it for this summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<EntryId>,
    /// The overlay it was taken from, if it was a summary before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<EntryId>,
    /// The text; left out if the overlay holds it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// What is shown again after the last summary in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Carry {
    /// Entries shown again verbatim: later user messages and pins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<EntryId>,
    /// Calls shown again as text: the newest todo list, loaded skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallId>,
    /// The working state, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// What the survival check found missing, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub survival: String,
}

impl Carry {
    /// Whether nothing is shown again.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Calls from which every older stub and hide is lifted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Show {
    /// The calls.
    pub calls: Vec<CallId>,
}
