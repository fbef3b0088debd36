//! The cheapest settings under a bound on regret: a coarse grid, then one setting at a time.
//!
//! It learns on every other run, so that what it finds can be tried on runs it has not seen. It does
//! the same each time, and tries a bounded number of policies.

use std::collections::HashSet;
use std::fmt;

use crate::lab::{Contender, Outcome, Source, Terms, outcomes};
use crate::setup::Compaction;

/// The most rounds in which every setting is looked at once.
const SWEEPS: usize = 3;

/// A setting that is searched, and its values.
struct Knob {
    /// Its section and its key.
    key: (&'static str, &'static str),
    values: &'static [f64],
    get: fn(&Compaction) -> f64,
    put: fn(&mut Compaction, f64),
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the values are the small whole numbers that stand here"
)]
const KNOBS: [Knob; 8] = [
    Knob {
        key: ("micro", "keep_recent"),
        values: &[2.0, 3.0, 5.0, 8.0, 10.0, 15.0, 20.0, 30.0],
        get: |policy| f64::from(policy.micro.keep_recent),
        put: |policy, value| policy.micro.keep_recent = value as u32,
    },
    Knob {
        key: ("micro", "min_chars"),
        values: &[200.0, 400.0, 800.0, 1600.0, 3200.0],
        get: |policy| policy.micro.min_chars as f64,
        put: |policy, value| policy.micro.min_chars = value as u64,
    },
    Knob {
        key: ("micro", "min_gain_tokens"),
        values: &[2000.0, 4000.0, 6000.0, 8000.0, 10_000.0, 15_000.0, 20_000.0],
        get: |policy| policy.micro.min_gain_tokens as f64,
        put: |policy, value| policy.micro.min_gain_tokens = value as u64,
    },
    Knob {
        key: ("micro", "min_gain_ratio"),
        values: &[0.0, 0.5, 1.0, 1.5, 2.0, 3.0],
        get: |policy| policy.micro.min_gain_ratio,
        put: |policy, value| policy.micro.min_gain_ratio = value,
    },
    Knob {
        key: ("auto", "token_threshold"),
        values: &[
            30_000.0, 45_000.0, 60_000.0, 80_000.0, 110_000.0, 150_000.0, 204_800.0,
        ],
        get: |policy| policy.auto.token_threshold as f64,
        put: |policy, value| policy.auto.token_threshold = value as u64,
    },
    Knob {
        key: ("auto", "target_ratio"),
        values: &[0.2, 0.3, 0.4, 0.5, 0.65],
        get: |policy| policy.auto.target_ratio,
        put: |policy, value| policy.auto.target_ratio = value,
    },
    Knob {
        key: ("auto", "tail_ratio"),
        values: &[0.1, 0.25, 0.4],
        get: |policy| policy.auto.tail_ratio,
        put: |policy, value| policy.auto.tail_ratio = value,
    },
    Knob {
        key: ("auto", "bands_ratio"),
        values: &[0.1, 0.2, 0.3],
        get: |policy| policy.auto.bands_ratio,
        put: |policy, value| policy.auto.bands_ratio = value,
    },
];

/// What the grid goes through: the settings that matter most, each at a few values.
const GRID: [(usize, &[f64]); 3] = [
    (0, &[3.0, 8.0, 15.0]),
    (3, &[0.0, 1.0, 2.0]),
    (4, &[45_000.0, 80_000.0, 110_000.0]),
];

/// What a search came to.
#[derive(Clone, Debug)]
pub struct Found {
    /// The settings.
    pub policy: Compaction,
    /// What they come to on the runs that were searched.
    pub learned: Outcome,
    /// The most percent of the hidden results that may be regretted.
    pub bound_percent: f64,
    /// The number of policies that were tried.
    pub tried: usize,
}

impl Found {
    /// Whether it is better than the built-in policy: nothing else is worth a word.
    pub fn is_better(&self) -> bool {
        self.policy != Compaction::default()
    }

    /// Whether what it came to, there or elsewhere, is within the bound.
    pub fn keeps_bound(&self, outcome: &Outcome) -> bool {
        is_within(outcome, self.bound_percent)
    }

    /// What was searched, each with the value found.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, &'static str, f64)> {
        KNOBS
            .map(|knob| (knob.key.0, knob.key.1, (knob.get)(&self.policy)))
            .into_iter()
    }
}

/// The settings as a section of a file of settings.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("compaction:")?;
        let mut section = "";
        for (of, key, value) in self.values() {
            if of != section {
                write!(f, "\n  {of}:")?;
                section = of;
            }
            write!(f, "\n    {key}: {value}")?;
        }
        Ok(())
    }
}

/// The runs that a search learns on, and those that its result is tried on: the runs of every other
/// file by name.
pub fn halves(mut sources: Vec<Source>) -> (Vec<Source>, Vec<Source>) {
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    let mut halves = (Vec::new(), Vec::new());
    let (mut file, mut learns) = (None, false);
    for source in sources {
        let of = source.file().to_owned();
        if file.as_ref() != Some(&of) {
            learns = !learns;
            file = Some(of);
        }
        if learns {
            halves.0.push(source);
        } else {
            halves.1.push(source);
        }
    }
    halves
}

/// Looks for the cheapest settings of which at most so many percent of the hidden results are
/// regretted; if none keeps that bound, those that are regretted least.
pub fn search(sources: &[Source], terms: &Terms, bound_percent: f64) -> Found {
    let mut search = Search {
        sources,
        terms,
        bound_percent,
        tried: HashSet::new(),
        best: (Compaction::default(), Outcome::default()),
    };
    let built_in = Compaction::default();
    search.best.1 = search.all(std::slice::from_ref(&built_in)).remove(0);
    let mut grid = vec![built_in];
    for (knob, values) in GRID {
        let put = KNOBS[knob].put;
        let with = |policy: &Compaction, value: f64| {
            let mut policy = policy.clone();
            put(&mut policy, value);
            policy
        };
        grid = grid
            .iter()
            .flat_map(|policy| values.iter().map(move |value| with(policy, *value)))
            .collect();
    }
    search.look(grid);
    for _ in 0..SWEEPS {
        let mut better = false;
        for knob in &KNOBS {
            let best = &search.best.0;
            let with = |value: &f64| {
                let mut policy = best.clone();
                (knob.put)(&mut policy, *value);
                policy
            };
            let near = knob.values.iter().map(with).collect();
            better |= search.look(near);
        }
        if !better {
            break;
        }
    }
    Found {
        policy: search.best.0,
        learned: search.best.1,
        bound_percent,
        tried: search.tried.len(),
    }
}

struct Search<'a> {
    sources: &'a [Source],
    terms: &'a Terms,
    bound_percent: f64,
    tried: HashSet<String>,
    best: (Compaction, Outcome),
}

impl Search<'_> {
    /// Tries policies; returns whether one of them is better than the best so far.
    fn look(&mut self, mut policies: Vec<Compaction>) -> bool {
        policies.retain(|policy| !self.tried.contains(&name(policy)));
        let outcomes = self.all(&policies);
        let mut better = false;
        for (policy, outcome) in policies.into_iter().zip(outcomes) {
            if self.rank(&outcome) < self.rank(&self.best.1) {
                self.best = (policy, outcome);
                better = true;
            }
        }
        better
    }

    /// What all runs come to under each policy.
    fn all(&mut self, policies: &[Compaction]) -> Vec<Outcome> {
        let contenders = policies.iter().map(|policy| {
            let name = name(policy);
            self.tried.insert(name.clone());
            Contender::new(name, policy.clone())
        });
        let contenders: Vec<Contender> = contenders.collect();
        let by_run = outcomes(self.sources, &contenders, self.terms);
        let of = |place: usize| Outcome::sum(by_run.iter().filter_map(|run| run.get(place)));
        (0..contenders.len()).map(of).collect()
    }

    /// What is better comes first: within the bound by cost, beyond it by regret.
    fn rank(&self, outcome: &Outcome) -> (f64, f64) {
        if is_within(outcome, self.bound_percent) {
            (0.0, outcome.cost)
        } else {
            (outcome.regret(), outcome.cost)
        }
    }
}

/// Whether so many percent of the hidden results are regretted, or fewer.
fn is_within(outcome: &Outcome, bound_percent: f64) -> bool {
    outcome.regret() * 100.0 <= bound_percent
}

/// The values that were searched, which tell policies apart.
fn name(policy: &Compaction) -> String {
    let values = KNOBS.map(|knob| (knob.get)(policy).to_string());
    values.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Missed;

    /// The bound is one of hidden results: however many arguments are missed, they are counted apart.
    #[test]
    fn the_bound_is_one_of_results() {
        let missed = |regretted| Missed {
            hidden: 200,
            regretted,
            ..Missed::default()
        };
        for (results, arguments, expected) in [(4, 150, true), (5, 0, false), (0, 0, true)] {
            let outcome = Outcome {
                results: missed(results),
                arguments: missed(arguments),
                ..Outcome::default()
            };
            assert_eq!(is_within(&outcome, 2.0), expected, "{results} {arguments}");
        }
    }
}
