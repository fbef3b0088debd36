//! How far estimates were from what the provider counted.

use schemars::JsonSchema;
use serde::Serialize;

use crate::meter;
use crate::transcript::Event;
use crate::view::View;

/// The estimates of a run's rounds beside what the provider counted of their requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Estimates {
    /// Rounds with a count that is believed.
    pub rounds: u64,
    /// The median distance of their estimates, in thousandths of what was counted.
    pub median_permille: u64,
    /// The largest of these distances.
    pub worst_permille: u64,
    /// Counts that are not believed: far below the estimate, or above the window.
    pub not_believed: u64,
    /// The factor that estimates use now, in thousandths.
    pub factor: u64,
}

impl View {
    /// How far the estimates of all rounds were off; `None` if nothing was counted.
    pub fn estimates(&self) -> Option<Estimates> {
        let mut distances = Vec::new();
        let mut not_believed = 0;
        for round in self.rounds.all().iter() {
            let Some(response) = round.response.and_then(|id| self.response(id)) else {
                continue;
            };
            let event = |id| self.transcript.get(id).map(|entry| &entry.event);
            let (Some(Event::Request(request)), Some(counted)) = (
                event(response.request),
                response.usage.and_then(|usage| usage.input),
            ) else {
                continue;
            };
            let window = if let Some(Event::Setup(setup)) = event(request.setup) {
                setup.wire.models.main.window
            } else {
                None
            };
            let estimate = request.estimate;
            if meter::is_believed(estimate.base, counted, window) {
                let distance = estimate.tokens.abs_diff(counted);
                distances.push(distance.saturating_mul(1000) / counted.max(1));
            } else {
                not_believed += 1;
            }
        }
        distances.sort_unstable();
        (!distances.is_empty() || not_believed > 0).then(|| Estimates {
            rounds: distances.len() as u64,
            median_permille: distances
                .get(distances.len() / 2)
                .copied()
                .unwrap_or_default(),
            worst_permille: distances.last().copied().unwrap_or_default(),
            not_believed,
            factor: self.factor(),
        })
    }
}
