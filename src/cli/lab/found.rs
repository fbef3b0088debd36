//! What a search is told to have found: settings, or that there is nothing better.

use undertext::lab::search::Found;

use crate::cli::amount;
use crate::cli::exit::Failure;
use crate::cli::lab::told::{Told, Tried, hundredths};
use crate::cli::term::{Look, Term};
use crate::cli::wrap;

/// A search on one half of the runs, and what its result comes to on the other.
pub(super) struct Searched<'a> {
    pub(super) found: &'a Found,
    /// The number of runs that it learned on.
    pub(super) learned: u64,
    /// The number of runs that it was tried on.
    pub(super) runs: u64,
    /// What the built-in policy comes to on these, all together.
    pub(super) built_in: &'a Tried,
    /// What was found, likewise.
    pub(super) tried: &'a Tried,
}

impl Searched<'_> {
    /// By how much what was found costs less than the built-in policy, in percent of no compaction.
    fn cheaper(&self) -> f64 {
        hundredths(self.built_in.cost_percent - self.tried.cost_percent)
    }

    /// The same as an object.
    pub(super) fn told(&self) -> Told {
        let Self { found, .. } = self;
        let settings = found
            .values()
            .map(|(section, key, value)| (format!("{section}.{key}"), value));
        Told::Found {
            settings: settings.collect(),
            better: found.is_better(),
            tried: found.tried,
            runs: self.learned,
            bound_percent: found.bound_percent,
            bound_held: found.keeps_bound(&found.learned),
            bound_holds: found.keeps_bound(&self.tried.outcome),
            learned: found.learned.clone(),
            cheaper_percent: self.cheaper(),
        }
    }

    /// Says it, with the settings if there are any.
    pub(super) fn print(&self, term: &mut Term) -> Result<(), Failure> {
        let Self { found, .. } = self;
        term.print(&[(Look::Plain, "")])?;
        wrap::print(&[(Look::Strong, self.heading())], 2, term)?;
        let (there, here) = (&found.learned, &self.tried.outcome);
        let bound = found.bound_percent;
        let of = if found.is_better() { "" } else { " of default" };
        let text = format!(
            "regret{of}: {:.1} % there, {:.1} % here; at most {bound} % is wanted",
            there.regret() * 100.0,
            here.regret() * 100.0,
        );
        wrap::print(&[(Look::Plain, text)], 2, term)?;
        if found.keeps_bound(there) && !found.keeps_bound(here) {
            let text =
                "the bound held there and breaks here: see what was missed (`misses` in --json)";
            wrap::print(&[(Look::Bad, text)], 2, term)?;
        }
        if found.is_better() {
            term.print(&[(Look::Plain, found.to_string())])?;
        }
        Ok(())
    }

    fn heading(&self) -> String {
        let Self { found, .. } = self;
        let others = amount::of(self.learned, "other run");
        let tried = format!("{} policies", amount::count(found.tried as u64));
        let kept = found.keeps_bound(&found.learned);
        match (found.is_better(), kept) {
            (false, true) => format!(
                "nothing found: of {tried} on {others}, none that keeps the bound is cheaper than default"
            ),
            (false, false) => format!(
                "nothing found: of {tried} on {others}, none keeps the bound, and none is regretted \
                 less than default"
            ),
            (true, kept) => {
                let least = if kept {
                    ""
                } else {
                    " (none keeps the bound, this one is regretted least)"
                };
                let above = match self.runs {
                    1 => "the run".to_owned(),
                    runs => format!("the {}", amount::of(runs, "run")),
                };
                let cheaper = self.cheaper();
                let costs = match format!("{:.1}", cheaper.abs()).as_str() {
                    "0.0" => "as much as".to_owned(),
                    points if cheaper < 0.0 => format!("{points} points more than"),
                    points => format!("{points} points less than"),
                };
                format!(
                    "found on {others}, of {tried}{least}; on {above} above it costs {costs} default"
                )
            }
        }
    }
}
