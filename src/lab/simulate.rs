//! A recorded run, played again under another policy.
//!
//! What was said, answered and returned is taken as it was recorded, at the times recorded. Before each
//! request the real [`compaction::plan`] decides anew what is laid; of the recorded overlays only those
//! stay that a person laid or another agent recorded. A summary that is asked for is answered with a
//! text of a given length.

use std::sync::Arc;

use crate::compaction::{self, Pass, Plan};
use crate::exchange::{Ending, Facts, Response, Status, ToolResult};
use crate::id::EntryId;
use crate::lab::bill::Bill;
use crate::lab::ids::Ids;
use crate::lab::retell::{Retelling, not_built};
use crate::lab::sight::{By, Sight};
use crate::lab::summarize::{self, Summaries};
use crate::lab::{Outcome, Source, Terms};
use crate::overlay::Overlay;
use crate::setup;
use crate::transcript::{At, Entry, Event, Note, Purpose, Request, Speaker};
use crate::view::View;
use crate::wire::RENDERER;
use crate::words;

/// The most plans before one request: each of them lays, asks or fails, and a ladder is short.
const PLANS: usize = 200;

/// What a simulation came to: the figures, and the run as it would have been.
#[derive(Debug)]
pub struct Played {
    /// The figures.
    pub outcome: Outcome,
    /// The view at the end.
    pub view: View,
}

/// Plays a run under a policy.
pub fn simulate(source: &Source, policy: &setup::Compaction, terms: &Terms) -> Played {
    let mut simulation = Simulation {
        told: Retelling {
            source,
            terms,
            policy,
            ids: Ids::default(),
        },
        view: View::default(),
        bill: Bill::default(),
        sight: Sight::default(),
        outcome: Outcome::default(),
        looked: false,
        summaries: 0,
    };
    let entries = &source.entries;
    for (place, entry) in entries.iter().enumerate() {
        simulation.take(entry, entries.get(place + 1));
        if simulation.outcome.stopped {
            break;
        }
    }
    simulation.finish()
}

struct Simulation<'a> {
    told: Retelling<'a>,
    view: View,
    bill: Bill,
    sight: Sight<'a>,
    outcome: Outcome,
    /// Compaction was looked at for the request that comes next.
    looked: bool,
    /// The number of summaries that were asked for.
    summaries: usize,
}

impl<'a> Simulation<'a> {
    /// Takes a recorded entry, with what the policy does before it.
    fn take(&mut self, recorded: &'a Entry, next: Option<&Arc<Entry>>) {
        if asks(&recorded.event) {
            self.answer_lost(recorded.at);
        }
        if is_due(&recorded.event, next.map(|entry| &entry.event)) && !self.looked {
            self.compact(recorded.at);
            self.looked = true;
            if self.outcome.stopped {
                return;
            }
        }
        let now = self.view.transcript().next_id();
        let Some(event) = self.told.event(recorded, &self.view) else {
            return;
        };
        self.told.ids.put(recorded.id, now);
        let is_overlay = matches!(event, Event::Overlay(_) | Event::Retract(_));
        let corrects =
            matches!(event, Event::Response(_)) && self.view.ledger().repairing().is_some();
        let changes = is_overlay || corrects || matches!(event, Event::Setup(_));
        if changes {
            self.bill.before_change(&self.view);
        }
        if let Event::Request(request) = &event {
            self.ask(request, recorded.at);
        }
        let source = self.told.source;
        let lines = source.lines(recorded.id);
        if let Event::Response(response) = &event {
            let long = (lines, source.written(recorded.id));
            let ids = (now, recorded.id);
            self.sight.response(ids, response, long, &self.view);
        }
        let id = self.record(recorded.at, event);
        match self.view.transcript().get(id).map(|entry| &entry.event) {
            Some(Event::User(_)) => self.sight.user(id, lines),
            Some(Event::Result(result)) => {
                self.sight.result(recorded.id, result, lines, &self.view);
            }
            Some(_) | None => {}
        }
        if is_overlay {
            self.sight.look(&self.view, By::Record);
        }
    }

    /// Answers the calls of which damage took the results, so that their round does not stay open.
    fn answer_lost(&mut self, at: At) {
        for call in self.view.open_calls() {
            let result = ToolResult {
                call,
                status: Status::Interrupted,
                content: words::INTERRUPTED.to_owned(),
                clipped: None,
                facts: Facts::default(),
                ms: None,
            };
            self.record(at, Event::Result(result));
        }
    }

    fn record(&mut self, at: At, event: Event) -> EntryId {
        let id = self.view.transcript().next_id();
        self.view.take(Arc::new(Entry { id, at, event }));
        id
    }

    /// Counts a request that is about to be sent.
    fn ask(&mut self, request: &Request, at: At) {
        self.looked = false;
        let estimate = request.estimate;
        self.outcome.requests += 1;
        let sizes = self.view.sizes();
        if sizes.is_some_and(|sizes| estimate.tokens > sizes.fits) {
            let last = self.view.rounds().last().map(|round| round.number);
            let round = request.round.or(last);
            self.outcome.too_long_from = self.outcome.too_long_from.or(round);
            self.outcome.too_long += 1;
        } else if self.outcome.too_long > 0 {
            self.outcome.fits_again += 1;
        }
        self.bill
            .ask(&self.view, at, estimate.chars, &self.told.terms.prices);
    }

    /// Does what compaction plans before a request, as the loop does.
    fn compact(&mut self, now: At) {
        for _ in 0..PLANS {
            match compaction::plan(&self.view, now) {
                None => return,
                Some(Plan::Stop) => {
                    self.outcome.stopped = true;
                    return;
                }
                Some(Plan::Lay(pass)) => self.lay(pass, now),
                Some(Plan::Ask(purpose)) => self.summarize(purpose, now),
                Some(Plan::Failed { request, why }) => {
                    let note = Note::SummaryFailed { request, why };
                    self.record(now, Event::Note(note));
                }
            }
        }
    }

    fn lay(&mut self, pass: Pass, now: At) {
        self.bill.before_change(&self.view);
        self.outcome.passes += 1;
        self.outcome.pass_at.push(self.outcome.requests + 1);
        let first = self.view.transcript().next_id();
        for draft in pass.drafts {
            self.outcome.overlays += 1;
            let overlay = Overlay {
                origin: pass.origin,
                rule: draft.rule.to_owned(),
                pass: first,
                layer: draft.layer,
                size: draft.size,
                reason: draft.reason,
            };
            self.record(now, Event::Overlay(overlay));
        }
        self.sight.look(&self.view, By::Policy);
    }

    /// Asks for a summary, and answers it.
    fn summarize(&mut self, purpose: Purpose, now: At) {
        let estimate = self.view.estimate_of(&purpose);
        let text = match &self.told.terms.summaries {
            Summaries::Recorded => self.told.source.summaries.get(self.summaries).cloned(),
            Summaries::Share | Summaries::Tokens(_) => None,
        };
        let most = match self.told.terms.summaries {
            Summaries::Tokens(tokens) => Some(tokens),
            Summaries::Share | Summaries::Recorded => None,
        };
        let text = text.unwrap_or_else(|| summarize::text(&self.view, &purpose, most));
        self.summaries += 1;
        self.outcome.summaries += 1;
        self.bill.summaries += estimate.chars;
        self.bill.written += text.chars().count() as u64;
        let request = Request {
            round: None,
            setup: self.view.setup_entry().unwrap_or_default(),
            renderer: RENDERER,
            body: not_built(),
            estimate,
            purpose,
        };
        let request = self.record(now, Event::Request(request));
        let response = Response {
            request,
            text,
            reasoning: Vec::new(),
            calls: Vec::new(),
            ending: Ending::Complete,
            finish: None,
            usage: None,
            extra: None,
            model: None,
            provider_request: None,
            ms: None,
        };
        self.record(now, Event::Response(response));
    }

    fn finish(self) -> Played {
        let prices = &self.told.terms.prices;
        let (bill, sight) = (&self.bill, &self.sight);
        let outcome = Outcome {
            prompt_tokens: bill.prompts.div_ceil(4),
            cached_tokens: bill.cached / 4,
            summary_tokens: (bill.summaries + bill.written).div_ceil(4),
            cost: bill.cost(prices),
            peak_tokens: bill.peak.div_ceil(4),
            results: sight.results(),
            arguments: sight.arguments(),
            misses: sight.misses(|call| self.told.ids.recorded(call)),
            sizes: self.bill.sizes,
            ..self.outcome
        };
        Played {
            outcome,
            view: self.view,
        }
    }
}

/// Whether compaction is looked at before an event: a request, or what the runtime tells the model
/// right before one.
fn is_due(event: &Event, next: Option<&Event>) -> bool {
    let tells = matches!(event, Event::User(user) if user.origin == Speaker::Runtime);
    asks(event) || tells && next.is_some_and(asks)
}

fn asks(event: &Event) -> bool {
    matches!(event, Event::Request(request) if is_ours(&request.purpose))
}

fn is_ours(purpose: &Purpose) -> bool {
    match purpose {
        Purpose::Round | Purpose::Repair { .. } => true,
        Purpose::Summary(_) | Purpose::Combine(_) => false,
    }
}
