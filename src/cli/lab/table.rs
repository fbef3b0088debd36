//! What `lab` prints: for each run and all together, a line a policy.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::lab::Outcome;
use undertext::lab::search::Found;

use crate::cli::exit::Failure;
use crate::cli::term::{Look, Term};
use crate::cli::{amount, wrap};

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
        /// The number of policies that were tried.
        tried: usize,
        /// The number of runs that they were tried on, which are not among those above.
        runs: u64,
        /// What those runs come to under these settings.
        learned: Outcome,
        /// By how much less they cost than the built-in policy on the runs above, in percent of no
        /// compaction.
        cheaper_percent: f64,
    },
}

/// What a policy comes to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tried {
    /// The policy: `none`, `each chance`, `default`, or the file as it was named.
    policy: String,
    /// The figures.
    #[serde(flatten)]
    outcome: Outcome,
    /// The prompts, in percent of those without compaction.
    prompt_percent: f64,
    /// The cost, in percent of that without compaction.
    cost_percent: f64,
    /// The results that were missed, in percent of those hidden; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    regret_percent: Option<f64>,
}

impl Tried {
    fn new(policy: &str, outcome: &Outcome, none: &Outcome) -> Self {
        let percent = |part: f64, of: f64| {
            let percent = if of > 0.0 { part / of * 100.0 } else { 100.0 };
            (percent * 100.0).round() / 100.0
        };
        let results = outcome.results;
        let (regretted, hidden) = (number(results.regretted), number(results.hidden));
        Self {
            policy: policy.to_owned(),
            prompt_percent: percent(number(outcome.prompt_tokens), number(none.prompt_tokens)),
            cost_percent: percent(outcome.cost, none.cost),
            regret_percent: (results.hidden > 0).then(|| percent(regretted, hidden)),
            outcome: outcome.clone(),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of tokens are far below 2^52"
)]
fn number(count: u64) -> f64 {
    count as f64
}

/// The report.
pub(super) struct Table<'a> {
    policies: &'a [&'a str],
    json: bool,
    blocks: Vec<(String, Vec<Tried>)>,
    sums: Vec<Outcome>,
    found: Option<(Found, u64)>,
}

impl<'a> Table<'a> {
    /// An empty report about these policies, the first of which is no compaction.
    pub(super) fn new(policies: &'a [&'a str], json: bool) -> Self {
        Self {
            policies,
            json,
            blocks: Vec::new(),
            sums: vec![Outcome::default(); policies.len()],
            found: None,
        }
    }

    /// Adds a run.
    pub(super) fn run(&mut self, name: &str, outcomes: &[Outcome]) {
        for (sum, outcome) in self.sums.iter_mut().zip(outcomes) {
            sum.add(outcome);
        }
        let block = self.block(outcomes);
        self.blocks.push((name.to_owned(), block));
    }

    /// Adds what a search found on so many other runs; the last policy is that.
    pub(super) fn found(&mut self, found: Found, runs: u64) {
        self.found = Some((found, runs));
    }

    fn block(&self, outcomes: &[Outcome]) -> Vec<Tried> {
        let none = outcomes.first().cloned().unwrap_or_default();
        let named = self.policies.iter().zip(outcomes);
        named
            .map(|(name, it)| Tried::new(name, it, &none))
            .collect()
    }

    /// Writes the report, with what all runs come to.
    pub(super) fn print(self, term: &mut Term) -> Result<(), Failure> {
        let runs = self.blocks.len() as u64;
        let totals = self.block(&self.sums);
        let cheaper = cheaper(&totals);
        if self.json {
            let tried = self.blocks.into_iter().flat_map(|(run, block)| {
                block.into_iter().map(move |tried| Told::Tried {
                    run: run.clone(),
                    tried,
                })
            });
            let totals = totals.into_iter().map(|tried| Told::Total { runs, tried });
            let found = self.found.map(|(found, runs)| Told::Found {
                settings: found
                    .values()
                    .map(|(section, key, value)| (format!("{section}.{key}"), value))
                    .collect(),
                tried: found.tried,
                runs,
                learned: found.learned,
                cheaper_percent: cheaper,
            });
            for told in tried.chain(totals).chain(found) {
                let json = serde_json::to_string(&told).map_err(std::io::Error::from)?;
                term.print_json(&json)?;
            }
            return Ok(());
        }
        let all = (amount::of(runs, "run"), totals);
        let missed = missed(all.1.last());
        let too_long = too_long(&all.1);
        let blocks = self.blocks.into_iter().chain((runs != 1).then_some(all));
        rows(blocks, term)?;
        for text in too_long {
            term.print(&[(Look::Bad, text)])?;
        }
        if let Some((found, learned)) = &self.found {
            let text = format!(
                "\nfound on {}, of {}; on the {} above it costs {:.1} points {} than default",
                amount::of(*learned, "other run"),
                amount::of(found.tried as u64, "policy").replace("policys", "policies"),
                amount::of(runs, "run"),
                cheaper.abs(),
                if cheaper < 0.0 { "more" } else { "less" },
            );
            term.print(&[(Look::Strong, text)])?;
            let there = found.learned.regret() * 100.0;
            let text =
                format!("of what it hid, {there:.1} % was missed there and {missed:.1} % here");
            term.print(&[(Look::Plain, text)])?;
            term.print(&[(Look::Plain, found.to_string())])?;
        }
        Ok(())
    }
}

/// By how much the last policy costs less than the built-in one, in percent of no compaction.
fn cheaper(totals: &[Tried]) -> f64 {
    let built_in = totals.iter().find(|tried| tried.policy == "default");
    let percent = |tried: Option<&Tried>| tried.map_or(0.0, |tried| tried.cost_percent);
    let points = percent(built_in) - percent(totals.last());
    (points * 100.0).round() / 100.0
}

/// What was missed under a policy of what it hid, results and arguments, in percent.
fn missed(tried: Option<&Tried>) -> f64 {
    tried.map_or(0.0, |tried| tried.outcome.regret() * 100.0)
}

/// What is to be said of policies under which requests do not fit the window: their figures are of
/// requests that nobody could have sent.
fn too_long(totals: &[Tried]) -> Vec<String> {
    let of = totals.iter().filter(|tried| tried.outcome.too_long > 0);
    of.map(|tried| {
        let Outcome {
            too_long, requests, ..
        } = &tried.outcome;
        format!(
            "{}: {} of {} would not fit the window",
            tried.policy,
            amount::count(*too_long),
            amount::of(*requests, "request")
        )
    })
    .collect()
}

/// Writes what there is in columns.
fn rows(
    blocks: impl Iterator<Item = (String, Vec<Tried>)>,
    term: &mut Term,
) -> Result<(), Failure> {
    let mut rows = vec![(None, HEAD.map(str::to_owned))];
    for (name, block) in blocks {
        rows.push((Some(name), HEAD.map(|_| String::new())));
        rows.extend(block.iter().map(|tried| (None, cells(tried))));
    }
    let width = |column: usize| {
        let cells = rows.iter().map(|(_, row)| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let shown = shown(&widths, term.width());
    for (place, (name, row)) in rows.iter().enumerate() {
        if let Some(name) = name {
            term.print(&[(Look::Strong, name.as_str())])?;
            continue;
        }
        let mut line = format!("  {:1$}", row[0], widths[0]);
        for column in shown.iter().copied().filter(|column| *column > 0) {
            write!(line, "  {:>1$}", row[column], widths[column]).ok();
        }
        let look = if place == 0 { Look::Faint } else { Look::Plain };
        term.print(&[(look, line)])?;
    }
    let left_out = (0..HEAD.len()).filter(|column| !shown.contains(column));
    let left_out: Vec<&str> = left_out.map(|column| HEAD[column]).collect();
    if !left_out.is_empty() {
        let text = format!("left out, too wide for here: {}", left_out.join(", "));
        wrap::print(&[(Look::Faint, text)], 2, term)?;
    }
    Ok(())
}

/// The columns that fit a line: those that say least are the first to go.
fn shown(widths: &[usize], room: Option<usize>) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..widths.len()).collect();
    let Some(room) = room else { return shown };
    for gone in [&[1][..], &[7], &[8], &[2, 3], &[6]] {
        let taken: usize = shown.iter().map(|column| widths[*column] + 2).sum();
        if taken <= room {
            break;
        }
        shown.retain(|column| !gone.contains(column));
    }
    shown
}

/// The columns.
const HEAD: [&str; 10] = [
    "policy", "requests", "prompt", "of none", "cost", "of none", "passes", "peak", "hidden",
    "regret",
];

fn cells(tried: &Tried) -> [String; 10] {
    let Tried {
        policy,
        outcome,
        prompt_percent,
        cost_percent,
        regret_percent,
    } = tried;
    let percent = |percent: &f64| format!("{percent:.1} %");
    let regret = regret_percent
        .map(|it| format!("{} ({it:.1} %)", amount::count(outcome.results.regretted)));
    [
        policy.clone(),
        amount::count(outcome.requests),
        amount::count(outcome.prompt_tokens),
        percent(prompt_percent),
        amount::count(rounded(outcome.cost)),
        percent(cost_percent),
        amount::count(outcome.passes),
        amount::count(outcome.peak_tokens),
        amount::count(outcome.results.hidden),
        regret.unwrap_or_else(|| "-".to_owned()),
    ]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cost is neither negative nor above 2^52"
)]
fn rounded(cost: f64) -> u64 {
    cost.round() as u64
}
