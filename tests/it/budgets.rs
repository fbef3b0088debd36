//! Limits of tokens and cost: held to within one request, whatever the provider counts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use undertext::agent::Task;
use undertext::exchange::{Reasoning, Response, ResponseTime, Usage};
use undertext::id::EntryId;
use undertext::meter;
use undertext::model::{Ask, Delta, Model, Reply};
use undertext::record::MemoryStorage;
use undertext::setup::{Policy, Prices};
use undertext::transcript::{End, Event, Purpose, Reason, Request};
use undertext::view::View;

use crate::failing::Unlucky;
use crate::scene;

const PRICES: Prices = Prices {
    input_usd_micro: 2_000_000,
    cached_usd_micro: 200_000,
    cache_write_usd_micro: 2_500_000,
    output_usd_micro: 8_000_000,
};

/// A model that counts what it reads in one of three ways: rightly, not at all, or as nothing.
#[derive(Debug)]
struct Counting {
    model: Mutex<Unlucky>,
    seed: u64,
    asked: AtomicU64,
}

impl Counting {
    fn new(seed: u64) -> Self {
        Self {
            model: Mutex::new(Unlucky::new(seed, 60, 3)),
            seed,
            asked: AtomicU64::new(0),
        }
    }
}

impl Model for Counting {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let read = ask.body.len() as u64 / 4;
        let usage = match (number + self.seed) % 3 {
            0 => None,
            1 => Some((0, 0)),
            _ => Some((read, 40)),
        };
        let usage = usage.map(|(input, output)| Usage {
            input: Some(input),
            cached: Some(input / 2),
            output: Some(output),
            ..Usage::default()
        });
        let delta = match self.model.lock().unwrap().answer(ask.summary) {
            Ok(reply) => Delta::Reply(Box::new(Reply { usage, ..reply })),
            Err(fault) => Delta::Fault(Box::new(fault)),
        };
        stream::iter([delta]).boxed()
    }
}

/// Adds up what a run used, apart from the ledger.
#[derive(Debug, Default)]
struct Account {
    tokens: u64,
    cost: u64,
    estimated: u64,
    requests: u64,
}

impl Account {
    fn pay(&mut self, view: &View, response: &Response) {
        let asked = &view.transcript().get(response.request).unwrap().event;
        let Event::Request(Request { estimate, .. }) = asked else {
            panic!("{asked:?}")
        };
        let told = response.usage.unwrap_or_default();
        let counted = told.input.is_some_and(|input| input > 0);
        let input = if counted {
            told.input.unwrap()
        } else {
            self.estimated += 1;
            estimate.tokens
        };
        let says = !response.text.is_empty() || !response.calls.is_empty();
        let output = match told.output {
            Some(output) if output > 0 || !says => output,
            _ => {
                let calls = response.calls.iter();
                let calls: usize = calls
                    .map(|call| call.name.chars().count() + call.arguments.chars().count())
                    .sum();
                (response.text.chars().count() + calls).div_ceil(4) as u64
            }
        };
        self.tokens += input + output;
        let cached = told.cached.unwrap_or(0);
        self.cost += ((input - cached) * 2_000_000 + cached * 200_000 + output * 8_000_000)
            .div_ceil(1_000_000);
    }
}

/// No request begins once a limit is reached, summaries included, also when the run is taken up
/// again; what the provider does not count is estimated, and said.
#[test]
fn no_request_begins_beyond_a_limit() {
    let mut summaries = 0;
    for seed in 0..12 {
        let mut policy = Policy {
            prices: Some(PRICES),
            ..Policy::default()
        };
        let limit = 60_000 + seed * 17_000;
        let by_cost = seed % 2 == 0;
        if by_cost {
            policy.limits.cost_usd_micro = Some(limit);
        } else {
            policy.limits.tokens = Some(limit);
        }
        let storage = MemoryStorage::default();
        let agent = scene::agent(32_000, policy, Counting::new(seed));
        let mut reasons = Vec::new();
        for part in 0..4 {
            let mut recorder = match part {
                0 => scene::create(&storage),
                _ => scene::open(&storage),
            };
            let task = (part == 0).then(|| Task::new("Go."));
            match scene::go(&agent, &mut recorder, task) {
                Ok(finished) => reasons.push(finished.reason),
                Err(_) => break,
            }
        }
        let wanted = if by_cost {
            Reason::Cost
        } else {
            Reason::Tokens
        };
        assert!(reasons.contains(&wanted), "{seed}: {reasons:?}");
        let (mut view, mut used) = (View::default(), Account::default());
        for entry in scene::entries(&storage) {
            match &entry.event {
                Event::Request(request) => {
                    let so_far = if by_cost { used.cost } else { used.tokens };
                    assert!(so_far < limit, "{seed}, entry {}: {used:?}", entry.id);
                    used.requests += 1;
                    summaries += u32::from(request.purpose != Purpose::Round);
                }
                Event::Response(response) => used.pay(&view, response),
                Event::End(End { totals, .. }) => {
                    let told = (
                        totals.input + totals.output,
                        totals.cost_usd_micro,
                        totals.estimated,
                        totals.requests,
                    );
                    let Account {
                        tokens,
                        cost,
                        estimated,
                        requests,
                    } = used;
                    assert_eq!(told, (tokens, Some(cost), estimated, requests), "{seed}");
                    used = Account::default();
                }
                _ => {}
            }
            view.take(entry);
        }
    }
    assert!(summaries > 0);
}

/// What is not counted is not nothing.
#[test]
fn what_is_not_counted_is_estimated() {
    let time = ResponseTime { first: 0, all: 0 };
    let text = Reasoning::Text {
        field: "reasoning".to_owned(),
        text: "12345678".to_owned(),
    };
    let reply = Reply {
        reasoning: vec![text, Reasoning::raw("opaque")],
        ..Reply::calls([("Show", "{}")])
    };
    let usage = |input, output| Usage {
        input,
        output,
        ..Usage::default()
    };
    for (told, expected) in [
        (None, (500, 4, true)),
        (Some(usage(Some(9), Some(2))), (9, 2, false)),
        (Some(usage(Some(9), None)), (9, 4, true)),
        (Some(usage(None, Some(2))), (500, 2, true)),
        (Some(usage(Some(0), Some(0))), (500, 4, true)),
    ] {
        let usage = told;
        let reply = Reply {
            usage,
            ..reply.clone()
        };
        let response = reply.answers(EntryId(1), time);
        let (used, estimated) = meter::used(&response, 500);
        let found = (used.input.unwrap(), used.output.unwrap(), estimated);
        assert_eq!(found, expected, "{told:?}");
    }
    // A reply of nothing is of no tokens.
    let silent = Response {
        usage: Some(usage(Some(9), Some(0))),
        ..Reply::text("").answers(EntryId(1), time)
    };
    assert!(!meter::used(&silent, 500).1);
}
