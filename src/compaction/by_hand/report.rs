//! What a plan comes to, for people and for programs: the same for a dry run and a real one.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::compaction::by_hand::plan::{Deed, results};
use crate::compaction::by_hand::{Plan, Step};
use crate::compaction::strategies;
use crate::id::{EntryId, Span};
use crate::overlay::layers::Reads;
use crate::overlay::{Author, Layer};
use crate::view::View;

/// What a plan comes to, or came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// Overlays, or new settings, that were planned.
    pub planned: u64,
    /// Those that were laid: none in a dry run.
    pub laid: u64,
    /// Entries of which something no longer reads.
    pub entries_hidden: u64,
    /// By how much the next request is shorter.
    pub estimated_tokens_saved: u64,
    /// The estimate of the next request without the plan, in tokens.
    pub before: u64,
    /// The estimate with it.
    pub after: u64,
    /// What is laid, in its order.
    pub steps: Vec<StepReport>,
    /// What is left out since it would save nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// How the rounds read with the plan, from the first to the last.
    pub timeline: Vec<Stretch>,
    /// Why nothing is laid, if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nothing: Option<String>,
}

/// One overlay of a plan, or new settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StepReport {
    /// The strategy.
    pub strategy: String,
    /// The overlay; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<EntryId>,
    /// The settings, if it is no overlay; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<EntryId>,
    /// The entries that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// The first and the last round among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<(u32, u32)>,
    /// What no longer reads.
    pub hides: Hidden,
    /// Entries of which something no longer reads.
    pub entries_hidden: u64,
    /// By how much the next request is shorter.
    pub estimated_tokens_saved: u64,
    /// The estimate of the next request before this step, in tokens.
    pub before: u64,
    /// The estimate after it.
    pub after: u64,
    /// The model that would be asked for a summary; its size is expected, not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
}

/// What no longer reads, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hidden {
    /// Results that become stubs.
    #[serde(skip_serializing_if = "is_none")]
    pub results: u64,
    /// Arguments that become `{}`.
    #[serde(skip_serializing_if = "is_none")]
    pub arguments: u64,
    /// Whole calls.
    #[serde(skip_serializing_if = "is_none")]
    pub calls: u64,
    /// Responses whose reasoning is left out.
    #[serde(skip_serializing_if = "is_none")]
    pub reasoning: u64,
    /// Attachments.
    #[serde(skip_serializing_if = "is_none")]
    pub attachments: u64,
    /// Rounds that read as one summary, or not at all.
    #[serde(skip_serializing_if = "is_none")]
    pub rounds: u64,
    /// Tools that are no longer offered.
    #[serde(skip_serializing_if = "is_none")]
    pub tools: u64,
}

/// A strategy that would save nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The strategy.
    pub strategy: String,
    /// Why.
    pub why: String,
}

/// Neighbouring rounds that read alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stretch {
    /// The first and the last of them.
    pub rounds: (u32, u32),
    /// How they read: `kept`, `summarised`, `reasoning and tools stripped` …
    pub reads: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

/// The report of a plan of which these entries were laid.
pub(super) fn of(plan: &Plan, laid: &[EntryId]) -> Report {
    let all: BTreeSet<EntryId> = plan
        .steps
        .iter()
        .flat_map(|step| step.entries.iter().copied())
        .collect();
    let mut laid_by_step = laid.iter().copied();
    let steps = plan.steps.iter().map(|step| {
        let entry = laid_by_step.next();
        let (overlay, setup) = match step.deed {
            Deed::Lay(_) => (entry, None),
            Deed::Prune(_) => (None, entry),
        };
        StepReport {
            strategy: step.rule.clone(),
            overlay,
            setup,
            span: step.place.map(|place| place.span),
            rounds: step.place.and_then(|place| place.rounds),
            hides: step.hides,
            entries_hidden: step.entries.len() as u64,
            estimated_tokens_saved: step.size.before.saturating_sub(step.size.after),
            before: step.size.before,
            after: step.size.after,
            asks: step.expected.clone(),
        }
    });
    Report {
        planned: plan.steps.len() as u64,
        laid: laid.len() as u64,
        entries_hidden: all.len() as u64,
        estimated_tokens_saved: plan.size.before.saturating_sub(plan.size.after),
        before: plan.size.before,
        after: plan.size.after,
        steps: steps.collect(),
        left_out: plan.left_out.clone(),
        timeline: plan.timeline.clone(),
        nothing: plan.nothing.clone(),
    }
}

/// What a layer takes out of a view: the entries that it touches, and how much by kind.
pub(super) fn hidden(view: &View, layer: &Layer) -> (BTreeSet<EntryId>, Hidden) {
    let mut entries = BTreeSet::new();
    let mut hides = Hidden::default();
    match layer {
        Layer::Stub(stub) => {
            entries.extend(results(view, &stub.results));
            entries.extend(stub.arguments.iter().map(|call| call.response));
            hides.results = stub.results.len() as u64;
            hides.arguments = stub.arguments.len() as u64;
        }
        Layer::Hide(hide) => {
            entries.extend(results(view, &hide.calls));
            entries.extend(hide.reasoning.iter().copied());
            entries.extend(hide.attachments.iter().map(|(entry, _)| *entry));
            let rounds = hide.rounds.iter().map(|span| covered(view, *span));
            hides.rounds = rounds
                .map(|covered| {
                    entries.extend(covered.iter().copied());
                    covered.len() as u64
                })
                .sum();
            hides.calls = hide.calls.len() as u64;
            hides.reasoning = hide.reasoning.len() as u64;
            hides.attachments = hide.attachments.len() as u64;
        }
        Layer::Summary(summary) => {
            entries.extend(covered(view, summary.span));
            hides.rounds = view.rounds().within(summary.span).len() as u64;
        }
        Layer::Show(_) => {}
    }
    (entries, hides)
}

/// The entries of a span that read now: what users and models say, and results.
fn covered(view: &View, span: Span) -> Vec<EntryId> {
    let live = view
        .live()
        .into_iter()
        .filter(|entry| span.contains(*entry));
    let with_results = live.flat_map(|entry| {
        let calls = strategies::calls(view, entry);
        let read = calls.into_iter().filter(|call| {
            let reads = view.reads(*call);
            reads.is_some_and(|reads| !matches!(reads, Reads::Hidden(_)))
        });
        let read: Vec<_> = read.collect();
        let results: Vec<_> = results(view, &read).collect();
        [entry].into_iter().chain(results)
    });
    with_results.collect()
}

/// How the rounds read with these steps.
pub(super) fn timeline(view: &View, steps: &[Step]) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for round in view.rounds().all().iter() {
        let about = |step: &&Step| {
            let span = step.place.map(|place| place.span);
            span.is_some_and(|span| span.contains(round.begins()))
        };
        let touching: Vec<&Step> = steps.iter().filter(about).collect();
        let before = round
            .response
            .and_then(|response| view.covered_by(response));
        let reads = reads(view, &touching, before);
        match stretches.last_mut() {
            Some(last) if last.reads == reads => last.rounds.1 = round.number,
            _ => stretches.push(Stretch {
                rounds: (round.number, round.number),
                reads,
            }),
        }
    }
    stretches
}

/// How a round reads that these steps are about, and that an overlay covers already.
fn reads(view: &View, steps: &[&Step], before: Option<EntryId>) -> String {
    let written = |step: &&&Step| match &step.deed {
        Deed::Lay(Layer::Summary(summary)) => Some(summary.by),
        Deed::Lay(Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_)) | Deed::Prune(_) => None,
    };
    if let Some(by) = steps.iter().find_map(|step| written(&step)) {
        let by = match by {
            Author::Model | Author::Rules => "summarised",
            Author::User => "summarised in your words",
        };
        return by.to_owned();
    }
    if let Some(before) = before {
        let layer = view.overlay(before).map(|laid| &laid.layer);
        let summarised = matches!(layer, Some(Layer::Summary(_)));
        let how = if summarised { "summarised" } else { "hidden" };
        return format!("{how} before");
    }
    let mut stripped: Vec<&str> = Vec::new();
    let mut other: Vec<&str> = Vec::new();
    for step in steps {
        let (list, word) = match step.rule.as_str() {
            "strip-reasoning" => (&mut stripped, "reasoning"),
            "strip-tools" | "micro" => (&mut stripped, "tools"),
            "strip-requests" => (&mut stripped, "arguments"),
            "strip-responses" => (&mut stripped, "results"),
            "strip-attachments" => (&mut stripped, "attachments"),
            "omit-tools" => (&mut other, "calls left out"),
            "dedup-tools" => match &step.deed {
                Deed::Lay(Layer::Stub(_)) => (&mut stripped, "stale results"),
                Deed::Lay(Layer::Hide(_) | Layer::Summary(_) | Layer::Show(_)) | Deed::Prune(_) => {
                    (&mut other, "repeats left out")
                }
            },
            _ => (&mut other, "laid again"),
        };
        if !list.contains(&word) {
            list.push(word);
        }
    }
    let stripped = match stripped.as_slice() {
        [] => None,
        [one] => Some(format!("{one} stripped")),
        [first @ .., last] => Some(format!("{} and {last} stripped", first.join(", "))),
    };
    let all: Vec<String> = stripped
        .into_iter()
        .chain(other.into_iter().map(ToOwned::to_owned))
        .collect();
    if all.is_empty() {
        "kept".to_owned()
    } else {
        all.join(", ")
    }
}
