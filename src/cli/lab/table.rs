//! What `lab` prints: for each run and all together, a line a policy.

use std::fmt::Write as _;

use undertext::lab::Outcome;
use undertext::lab::search::Found;

use crate::cli::exit::Failure;
use crate::cli::lab::found::Searched;
use crate::cli::lab::told::{Told, Tried};
use crate::cli::term::{Look, Term};
use crate::cli::{amount, wrap};

/// The report.
pub(super) struct Table<'a> {
    policies: &'a [&'a str],
    json: bool,
    blocks: Vec<(String, Vec<Tried>)>,
    sums: Vec<Outcome>,
}

impl<'a> Table<'a> {
    /// An empty report about these policies, the first of which is no compaction.
    pub(super) fn new(policies: &'a [&'a str], json: bool) -> Self {
        Self {
            policies,
            json,
            blocks: Vec::new(),
            sums: vec![Outcome::default(); policies.len()],
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

    fn block(&self, outcomes: &[Outcome]) -> Vec<Tried> {
        let none = outcomes.first().cloned().unwrap_or_default();
        let named = self.policies.iter().zip(outcomes);
        named
            .map(|(name, it)| Tried::new(name, it, &none))
            .collect()
    }

    /// Writes the report, with what all runs come to, and with what a search learned on so many others.
    pub(super) fn print(
        self,
        search: Option<&(Found, u64)>,
        term: &mut Term,
    ) -> Result<(), Failure> {
        let runs = self.blocks.len() as u64;
        let totals = self.block(&self.sums);
        let named = |name: &str| totals.iter().rfind(|tried| tried.policy == name);
        let searched = search.and_then(|(found, learned)| {
            let built_in = named("default")?;
            Some(Searched {
                found,
                learned: *learned,
                runs,
                built_in,
                tried: if found.is_better() {
                    totals.last()?
                } else {
                    built_in
                },
            })
        });
        let found = searched.as_ref().map(Searched::told);
        if !self.json {
            rows(&self.rows(&totals), term)?;
            return searched.map_or(Ok(()), |searched| searched.print(term));
        }
        let tried = self.blocks.into_iter().flat_map(|(run, block)| {
            block.into_iter().map(move |tried| Told::Tried {
                run: run.clone(),
                tried,
            })
        });
        let totals = totals.into_iter().map(|tried| Told::Total { runs, tried });
        for told in tried.chain(totals).chain(found) {
            let json = serde_json::to_string(&told).map_err(std::io::Error::from)?;
            term.print_json(&json)?;
        }
        Ok(())
    }

    fn rows(&self, totals: &[Tried]) -> Vec<Row> {
        let mut rows = vec![Row::Cells(Box::new(HEAD.map(str::to_owned)))];
        for (name, block) in &self.blocks {
            rows.push(Row::Run(name.clone()));
            for (place, tried) in block.iter().enumerate() {
                rows.push(Row::Cells(Box::new(cells(tried))));
                let fit = too_long(&tried.outcome).map(|text| unfit(text, place));
                rows.extend(fit);
                if tried.outcome.stopped {
                    let text = "ends early: no summary can be had, and it is told to stop then";
                    rows.push(Row::Remark(text.to_owned()));
                }
            }
        }
        if self.blocks.len() == 1 {
            return rows;
        }
        let runs = amount::of(self.blocks.len() as u64, "run");
        rows.push(Row::Run(runs.clone()));
        for (place, tried) in totals.iter().enumerate() {
            rows.push(Row::Cells(Box::new(cells(tried))));
            let blocks = self.blocks.iter().filter_map(|(_, block)| block.get(place));
            let count = blocks.filter(|tried| tried.outcome.too_long > 0).count();
            if count > 0 {
                let count = amount::count(count as u64);
                rows.push(unfit(format!("does not fit in {count} of {runs}"), place));
            }
        }
        rows
    }
}

/// Where the requests of a run would not have fitted the window, if they would not.
fn too_long(outcome: &Outcome) -> Option<String> {
    let round = outcome.too_long_from?;
    Some(match (outcome.fits_again, outcome.too_long) {
        (0, _) => format!("does not fit from r{round} on"),
        (_, 1) => format!("does not fit at r{round}"),
        (_, all) => format!(
            "does not fit {} times, first at r{round}",
            amount::count(all)
        ),
    })
}

/// That a policy does not fit; the one that all others are held against says what that means.
fn unfit(text: String, policy: usize) -> Row {
    Row::Remark(match policy {
        0 => format!("{text}: `of none` counts requests that nobody could have sent"),
        _ => text,
    })
}

/// A line of the table.
enum Row {
    /// The run that those below are about.
    Run(String),
    /// A policy.
    Cells(Box<[String; 11]>),
    /// What is to be said of the policy above.
    Remark(String),
}

/// Writes what there is in columns.
fn rows(rows: &[Row], term: &mut Term) -> Result<(), Failure> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| match row {
            Row::Cells(cells) => wrap::columns(&cells[column]),
            Row::Run(_) | Row::Remark(_) => 0,
        });
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let shown = shown(&widths, term.width());
    for (place, row) in rows.iter().enumerate() {
        match row {
            Row::Run(name) => wrap::print(&[(Look::Strong, name)], 2, term)?,
            Row::Cells(cells) => {
                let mut line = format!("  {:1$}", cells[0], widths[0]);
                for column in shown.iter().copied().filter(|column| *column > 0) {
                    write!(line, "  {:>1$}", cells[column], widths[column]).ok();
                }
                let look = if place == 0 { Look::Faint } else { Look::Plain };
                term.print(&[(look, line)])?;
            }
            Row::Remark(text) => {
                wrap::print(&[(Look::Bad, format!("    {text}"))], 4, term)?;
            }
        }
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
    for gone in [&[1][..], &[7], &[10], &[8], &[2, 3], &[6]] {
        let taken: usize = shown.iter().map(|column| widths[*column] + 2).sum();
        if taken <= room {
            break;
        }
        shown.retain(|column| !gone.contains(column));
    }
    shown
}

/// The columns.
const HEAD: [&str; 11] = [
    "policy",
    "requests",
    "prompt",
    "of none",
    "cost",
    "of none",
    "passes",
    "peak",
    "hidden",
    "regret",
    "arguments missed",
];

fn cells(tried: &Tried) -> [String; 11] {
    let Tried {
        policy,
        outcome,
        prompt_percent,
        cost_percent,
        regret_percent,
    } = tried;
    let percent = |percent: &f64| format!("{percent:.1} %");
    let none = || "-".to_owned();
    let regret = regret_percent
        .map(|it| format!("{} ({it:.1} %)", amount::count(outcome.results.regretted)));
    let [missed, hidden] =
        [outcome.arguments.regretted, outcome.arguments.hidden].map(amount::count);
    let arguments = (outcome.arguments.hidden > 0).then(|| format!("{missed} of {hidden}"));
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
        regret.unwrap_or_else(none),
        arguments.unwrap_or_else(none),
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
