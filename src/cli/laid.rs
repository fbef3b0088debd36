//! What an overlay did, for programs.

use schemars::JsonSchema;
use serde::Serialize;
use undertext::explain::{Life, Sent, Subject};
use undertext::export;
use undertext::id::{CallId, EntryId, Span};
use undertext::overlay::{Layer, Origin, Size};
use undertext::view::View;

use crate::cli::{brief, named};

/// An overlay: what it covers, why, and since when.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Overlaid {
    /// `stub`, `hide`, `summary` or `show`.
    kind: &'static str,
    /// Who laid it.
    origin: Origin,
    /// The rule that it was laid by.
    #[serde(skip_serializing_if = "String::is_empty")]
    rule: String,
    /// The first overlay of its pass.
    pass: EntryId,
    /// Why it was laid, as it was recorded.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// What it covers, for people.
    covers: String,
    /// The entries that a summary stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<Span>,
    /// The calls whose results read as stubs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<CallId>,
    /// The calls whose arguments read as stubs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<CallId>,
    /// The calls that are left out, or shown again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<CallId>,
    /// The responses whose reasoning is left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning: Vec<EntryId>,
    /// The attachments that are left out, each by its entry and its place there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<(EntryId, u32)>,
    /// The spans of rounds that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rounds: Vec<Span>,
    /// The next request before it and with it, in tokens.
    size: Size,
    /// The first request that was read through it; absent if none was yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Sent>,
    /// The entry that took it back; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    retracted: Option<EntryId>,
}

/// What the overlay did whose life this is; `None` if it is the life of something else.
pub(crate) fn overlaid(view: &View, life: &Life) -> Option<Overlaid> {
    let Subject::Entry(id) = life.subject else {
        return None;
    };
    let laid = view.overlay(id)?;
    let mut told = Overlaid {
        kind: brief::kind(&laid.layer),
        origin: laid.origin,
        rule: laid.rule.clone(),
        pass: laid.pass,
        reason: laid.reason.clone(),
        covers: export::covers(&laid.layer),
        span: None,
        results: Vec::new(),
        arguments: Vec::new(),
        calls: Vec::new(),
        reasoning: Vec::new(),
        attachments: Vec::new(),
        rounds: Vec::new(),
        size: laid.size,
        from: life.stretches.first().and_then(|first| first.from),
        retracted: named::retracted(view, id),
    };
    match &laid.layer {
        Layer::Stub(stub) => {
            told.results.clone_from(&stub.results);
            told.arguments.clone_from(&stub.arguments);
        }
        Layer::Hide(hide) => {
            told.calls.clone_from(&hide.calls);
            told.reasoning.clone_from(&hide.reasoning);
            told.attachments.clone_from(&hide.attachments);
            told.rounds.clone_from(&hide.rounds);
        }
        Layer::Summary(summary) => told.span = Some(summary.span),
        Layer::Show(show) => told.calls.clone_from(&show.calls),
    }
    Some(told)
}
