//! The pipeline and the ladder: what is done when the estimate is over the trigger.
//!
//! Stages that need no model come first: micro, reasoning, superseded calls, hints, each only until
//! the target is reached. If they do not reach it, a summary is asked for; when it is there, the
//! stages are planned anew for what it does not cover. The ladder when a summary cannot be had: again
//! with results clipped harder, the fallback model, and at last a skeleton, which needs no model.

use crate::compaction::bands::Merged;
use crate::compaction::gather::{Gathered, Job, Text, gather};
use crate::compaction::trial::Trial;
use crate::compaction::{
    Cause, Pass, Plan, bands, micro, refusal, skeleton, strategies, summary, superseded,
};
use crate::setup::OnFailure;
use crate::view::{Sizes, View};

/// What a pass of this cause does next; `None` if nothing can be done.
pub fn plan(view: &View, cause: &Cause) -> Option<Plan> {
    let sizes = view.sizes()?;
    let mut trial = Trial::new(view, cause.origin(), cause.reason(view));
    stages(&mut trial, &sizes);
    let reached = trial.view().estimate().tokens <= sizes.target;
    if reached && !trial.is_empty() {
        return Some(lay(trial, cause));
    }
    let fits = trial.view().estimate().tokens <= sizes.fits
        && (*cause != Cause::Recovery || !trial.is_empty());
    let span = summary::span(trial.view(), &sizes);
    if let Some(span) = span.filter(|_| may_summarize(view, cause, &sizes))
        && let Some(plan) = asked(view, cause, &cause.job(view, span))
    {
        return Some(plan);
    }
    let failed = view.ledger().pass_failures > 0;
    if failed && view.policy()?.compaction.auto.on_failure == OnFailure::Stop {
        return Some(Plan::Stop);
    }
    if fits {
        // Rare and deep, as each pass moves the prefix that is cached.
        let (before, after) = (view.estimate().tokens, trial.view().estimate().tokens);
        let pays = before > sizes.fits
            || *cause == Cause::Recovery
            || before.saturating_sub(after) >= sizes.part_of_trigger(0.1);
        return (pays && !trial.is_empty()).then(|| lay(trial, cause));
    }
    unseen(&mut trial, &sizes);
    if !trial.is_empty() && trial.view().estimate().tokens <= sizes.fits {
        return Some(lay(trial, cause));
    }
    let mut bare = Trial::new(view, cause.origin(), cause.reason(view));
    for span in skeleton::spans(view) {
        if bare.is_empty() || bare.view().estimate().tokens > sizes.fits {
            let layer = skeleton::layer(bare.view(), &sizes, span);
            bare.lay("skeleton", Some(layer));
        }
    }
    stages(&mut bare, &sizes);
    unseen(&mut bare, &sizes);
    (!bare.is_empty()).then(|| lay(bare, cause))
}

/// What comes next on the way to a summary, up to the pass that lays it; `None` if it cannot be had.
pub(super) fn asked(view: &View, cause: &Cause, job: &Job) -> Option<Plan> {
    match gather(view, job) {
        Gathered::Ask(purpose) => Some(Plan::Ask(purpose)),
        Gathered::Failed { request, why } => Some(Plan::Failed { request, why }),
        Gathered::Text(text) => Some(with_summary(view, cause, job, &text)),
        Gathered::Waits | Gathered::Unavailable => None,
    }
}

/// The pass that lays a summary, with the stages for what it does not cover. If the bands exceed
/// their share with it, the text that replaces the oldest ones is asked for first.
fn with_summary(view: &View, cause: &Cause, job: &Job, text: &Text) -> Plan {
    let failed = |why: &str| Plan::Failed {
        request: text.request,
        why: why.to_owned(),
    };
    let Some(sizes) = view.sizes() else {
        return failed("no settings");
    };
    let mut trial = Trial::new(view, cause.origin(), cause.reason(view));
    let layer = summary::layer(view, &sizes, job, text);
    if !trial.lay("summary", Some(layer)) {
        return failed("it is not shorter than what it covers");
    }
    if let Some(merge) = bands::due(view, &sizes, &text.text) {
        match bands::merged(view, &sizes, &merge, job) {
            Merged::Ask(purpose) => return Plan::Ask(purpose),
            Merged::Layers(layers) => {
                trial = Trial::new(view, cause.origin(), cause.reason(view));
                let [first, second] = *layers;
                if !trial.lay("merge", first) {
                    trial.lay("merge", second);
                }
                let layer = summary::layer(trial.view(), &sizes, job, text);
                trial.lay("summary", Some(layer));
            }
        }
    }
    if !matches!(cause, Cause::Tool { .. }) {
        stages(&mut trial, &sizes);
    }
    unseen(&mut trial, &sizes);
    lay(trial, cause)
}

fn lay(trial: Trial, cause: &Cause) -> Plan {
    Plan::Lay(Pass {
        origin: cause.origin(),
        drafts: trial.into_drafts(),
    })
}

/// Lays the stages that need no model until the target is reached.
fn stages(trial: &mut Trial, sizes: &Sizes) {
    type Stage = (&'static str, fn(&View) -> Option<crate::overlay::Layer>);
    let stages: [Stage; 6] = [
        ("micro", micro::layer),
        ("reasoning", strategies::reasoning),
        ("superseded", |view| superseded::layers(view)[0].take()),
        ("stale", |view| superseded::layers(view)[1].take()),
        ("hints", |view| strategies::hints(view)[0].take()),
        ("omit", |view| strategies::hints(view)[1].take()),
    ];
    for (rule, layer) in stages {
        if trial.view().estimate().tokens <= sizes.target {
            return;
        }
        let layer = layer(trial.view());
        trial.lay(rule, layer);
    }
}

/// Puts away results that the model has not seen, once the provider has refused them: they were
/// clipped for a larger window than there is, and a run would end for them.
fn unseen(trial: &mut Trial, sizes: &Sizes) {
    let view = trial.view();
    if refusal(view).is_some() && view.estimate().tokens > sizes.fits {
        let layer = strategies::unseen(view, sizes);
        trial.lay("unseen", layer);
    }
}

/// Whether a model may be asked for a summary now.
fn may_summarize(view: &View, cause: &Cause, sizes: &Sizes) -> bool {
    let ledger = view.ledger();
    let Some(policy) = view.policy() else {
        return false;
    };
    let rounds = view.rounds().last().map_or(0, |round| round.number);
    let since = ledger
        .summary_round
        .map_or(u32::MAX, |laid| rounds.saturating_sub(laid));
    let must = *cause == Cause::Recovery || view.estimate().tokens > sizes.fits;
    since >= policy.compaction.auto.min_rounds || must
}
