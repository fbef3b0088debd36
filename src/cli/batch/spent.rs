//! What all runs of a batch use together, counted while they work, and the limits of that.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;
use undertext::agent::Progress;
use undertext::exchange::Usage;
use undertext::id::EntryId;
use undertext::meter;
use undertext::setup::Prices;
use undertext::transcript::Event;

/// What all runs used since the batch was begun or gone on with.
#[derive(Debug, Default)]
pub(super) struct Spent {
    tokens: AtomicU64,
    usd_micro: AtomicU64,
    /// The most of either.
    most_tokens: Option<u64>,
    most_usd_micro: Option<u64>,
    /// Cancelled when one is reached.
    over: CancellationToken,
}

impl Spent {
    /// Nothing yet, of at most so many tokens and so much money.
    pub(super) fn up_to(most_tokens: Option<u64>, most_usd_micro: Option<u64>) -> Self {
        Self {
            most_tokens,
            most_usd_micro,
            ..Self::default()
        }
    }

    /// Tokens, in and out.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    /// Money, in micro-dollars, as far as prices are known.
    pub(super) fn usd_micro(&self) -> u64 {
        self.usd_micro.load(Ordering::Relaxed)
    }

    /// Whether money has a limit, so that it must be known what a run costs.
    pub(super) fn counts_money(&self) -> bool {
        self.most_usd_micro.is_some()
    }

    /// Waits until a limit is reached.
    pub(super) async fn over(&self) {
        self.over.cancelled().await;
    }

    fn add(&self, usage: Usage, prices: Option<&Prices>) {
        let tokens = usage.input.unwrap_or(0) + usage.output.unwrap_or(0);
        let cost = prices.map_or(0, |prices| meter::cost(usage, prices));
        let tokens = self.tokens.fetch_add(tokens, Ordering::Relaxed) + tokens;
        let cost = self.usd_micro.fetch_add(cost, Ordering::Relaxed) + cost;
        let is_over = |used: u64, most: Option<u64>| most.is_some_and(|most| used >= most);
        if is_over(tokens, self.most_tokens) || is_over(cost, self.most_usd_micro) {
            self.over.cancel();
        }
    }
}

/// Counts what one run uses.
#[derive(Debug)]
pub(super) struct Meter<'a> {
    spent: &'a Spent,
    prices: Option<Prices>,
    /// The estimates of requests that are not answered yet.
    asked: HashMap<EntryId, u64>,
}

impl<'a> Meter<'a> {
    /// A meter of a run with these prices.
    pub(super) fn new(spent: &'a Spent, prices: Option<Prices>) -> Self {
        Self {
            spent,
            prices,
            asked: HashMap::new(),
        }
    }

    /// Counts what happened.
    pub(super) fn take(&mut self, progress: &Progress) {
        let Progress::Entry(entry) = progress else {
            return;
        };
        match &entry.event {
            Event::Request(request) => {
                self.asked.insert(entry.id, request.estimate.tokens);
            }
            Event::Response(response) => {
                let asked = self.asked.remove(&response.request).unwrap_or(0);
                let (usage, _) = meter::used(response, asked);
                self.spent.add(usage, self.prices.as_ref());
            }
            Event::Fault(fault) => {
                if let Some(usage) = fault.usage {
                    self.spent.add(usage, self.prices.as_ref());
                }
            }
            Event::Run(_)
            | Event::Setup(_)
            | Event::User(_)
            | Event::Started(_)
            | Event::Result(_)
            | Event::Overlay(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => {}
        }
    }
}
