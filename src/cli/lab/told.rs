//! What `lab --json` writes, which is also what its table shows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::lab::Outcome;

/// What `lab --json` writes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Told {
    /// A run under a policy.
    Tried {
        /// The run, as it was named or found.
        run: String,
        /// What it comes to.
        #[serde(flatten)]
        tried: Tried,
    },
    /// All runs under a policy.
    Total {
        /// The number of runs.
        runs: u64,
        /// What they come to together; the peak is the highest one.
        #[serde(flatten)]
        tried: Tried,
    },
    /// What a search found.
    Found {
        /// The settings, by their keys below `compaction`.
        settings: BTreeMap<String, f64>,
        /// Whether they are better than the built-in ones; if not, they are the built-in ones.
        better: bool,
        /// The number of policies that were tried.
        tried: usize,
        /// The number of runs that they were tried on, which are not among those above.
        runs: u64,
        /// What those runs come to under these settings.
        learned: Outcome,
        /// The most of the hidden results that may be regretted, in percent.
        bound_percent: f64,
        /// Whether that bound holds on the runs that were searched.
        bound_held: bool,
        /// Whether it holds on the runs above.
        bound_holds: bool,
        /// By how much less they cost than the built-in policy on the runs above, in percent of no
        /// compaction.
        cheaper_percent: f64,
    },
}

/// What a policy comes to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tried {
    /// The policy: `none`, `each chance`, `default`, `yours`, `found`, or the end of a file's path that
    /// tells it apart.
    pub(super) policy: String,
    /// The figures.
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    /// The prompts, in percent of those without compaction.
    pub(super) prompt_percent: f64,
    /// The cost, in percent of that without compaction.
    pub(super) cost_percent: f64,
    /// The regret: the results that were missed, in percent of those hidden; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) regret_percent: Option<f64>,
}

impl Tried {
    /// What a run comes to under a policy, beside what it comes to under none.
    pub(super) fn new(policy: &str, outcome: &Outcome, none: &Outcome) -> Self {
        let percent = |part: f64, of: f64| {
            let part = if of > 0.0 { part / of } else { 1.0 };
            hundredths(part * 100.0)
        };
        Self {
            policy: policy.to_owned(),
            prompt_percent: percent(number(outcome.prompt_tokens), number(none.prompt_tokens)),
            cost_percent: percent(outcome.cost, none.cost),
            regret_percent: (outcome.results.hidden > 0)
                .then(|| hundredths(outcome.regret() * 100.0)),
            outcome: outcome.clone(),
        }
    }
}

/// A number with two digits behind the point.
pub(super) fn hundredths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of tokens are far below 2^52"
)]
fn number(count: u64) -> f64 {
    count as f64
}
