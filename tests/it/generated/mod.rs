//! Replies made from a seed, each with the calls that may run: those that run are exactly these.
//!
//! What may run is known before there are bytes: a reply is drawn as what the model means and what
//! the server does to it, and only then written. Nothing here reads a reply.
//!
//! `UNDERTEXT_REPLIES` says how many replies are tried, `UNDERTEXT_REPLY` names the seed of one that
//! is shown.

mod beside;
mod call;
mod close;
mod draw;
mod layout;
mod reply;

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use undertext::agent::{Agent, Task};
use undertext::exchange::{Effect, ToolMeta, ToolSpec};
use undertext::model::{Ask, Delta, End, Model, Reply, read_reply};
use undertext::record::MemoryStorage;
use undertext::setup::Policy;
use undertext::tools::{Call, Outcome, Tool, Toolbox};
use undertext::transcript::Reason;

use crate::{oracle, scene};
use close::MOST_TOKENS;
use draw::Draw;
use reply::{MOST_CALLS, Wired};

/// What ran: names and arguments, in this order.
type Ledger = Arc<Mutex<Vec<(&'static str, String)>>>;

/// A tool that only writes down that it ran.
#[derive(Debug)]
struct Written {
    name: &'static str,
    effect: Effect,
    schema: &'static str,
    ledger: Ledger,
}

impl Tool for Written {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: "Writes down that it ran.".to_owned(),
            schema: RawValue::from_string(self.schema.to_owned()).unwrap(),
            meta: ToolMeta {
                effect: self.effect,
                ..ToolMeta::default()
            },
        }
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        let ran = (self.name, call.arguments.to_owned());
        self.ledger.lock().unwrap().push(ran);
        Box::pin(async { Outcome::ok("written") })
    }
}

fn toolbox(ledger: &Ledger) -> Toolbox {
    let tool = |name, effect, schema| Written {
        name,
        effect,
        schema,
        ledger: Arc::clone(ledger),
    };
    Toolbox::new()
        .with(tool(
            "Note",
            Effect::Writes,
            r#"{"type":"object","properties":{"text":{"type":"string"},"count":{"type":"integer","minimum":0,"maximum":1000},"tags":{"type":"array","items":{"type":"string"}}},"required":["text"],"additionalProperties":false}"#,
        ))
        .with(tool(
            "Look",
            Effect::Reads,
            r#"{"type":"object","properties":{"path":{"type":"string"},"deep":{"type":"boolean"}},"required":["path"],"additionalProperties":false}"#,
        ))
        .with(tool(
            "List",
            Effect::Reads,
            r#"{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}"#,
        ))
        .with(tool(
            "Status",
            Effect::Writes,
            r#"{"type":"object","properties":{},"additionalProperties":false}"#,
        ))
}

/// The pieces of an answer, and its end.
type Answer = (Vec<Vec<u8>>, End);

/// A model that answers with bytes once, and then is done.
#[derive(Clone, Debug, Default)]
struct Once {
    answer: Arc<Mutex<Option<Answer>>>,
    asked: Arc<Mutex<Vec<Ask>>>,
}

impl Model for Once {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let answer = self.answer.lock().unwrap().take();
        let read = match answer {
            Some((pieces, end)) => read_reply(&ask.model, pieces.iter().map(Vec::as_slice), end),
            None => Ok(Reply::text("Done.")),
        };
        self.asked.lock().unwrap().push(ask);
        let last = match read {
            Ok(reply) => Delta::Reply(Box::new(reply)),
            Err(fault) => Delta::Fault(Box::new(fault)),
        };
        stream::iter([last]).boxed()
    }
}

/// An agent whose tools write down what ran.
struct Stage {
    agent: Agent,
    model: Once,
    ledger: Ledger,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    fn new() -> Self {
        let ledger = Ledger::default();
        let mut policy = Policy::default();
        policy.limits.calls = u32::try_from(MOST_CALLS).unwrap();
        policy.compaction.enabled = false;
        // What is torn would be asked again.
        policy.retries.attempts = 1;
        let mut setup = scene::setup(100_000, policy);
        setup.wire.models.main.parameters.max_output_tokens = Some(MOST_TOKENS);
        let model = Once::default();
        Self {
            agent: Agent::new(setup, Arc::new(model.clone()), toolbox(&ledger)),
            model,
            ledger,
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap(),
        }
    }

    /// Plays the reply of a seed through the loop. `Err` says what is wrong.
    fn play(&self, seed: u64) -> Result<Wired, String> {
        let wired = reply::reply(seed);
        let pieces = pieces(&wired.bytes, &mut Draw::new(!seed));
        let end = if wired.is_lost {
            End::Lost("lost".to_owned())
        } else {
            End::Closed
        };
        *self.model.answer.lock().unwrap() = Some((pieces, end));
        let mut recorder = scene::create(&MemoryStorage::default());
        let cancel = CancellationToken::new();
        let run = self
            .agent
            .run(&mut recorder, Some(Task::new("Go.")), &cancel);
        let finished = self.runtime.block_on(run);
        let ran = std::mem::take(&mut *self.ledger.lock().unwrap());
        let asked = std::mem::take(&mut *self.model.asked.lock().unwrap());
        let wrong = |what: String| {
            let bytes = String::from_utf8_lossy(&wired.bytes);
            let may = &wired.runs;
            Err(format!(
                "seed {seed}: {what}, where {may:?} may run\n{bytes}"
            ))
        };
        if ran != wired.runs {
            return wrong(format!("ran {ran:?}"));
        }
        let reason = match finished {
            Ok(finished) => finished.reason,
            Err(error) => return wrong(error.to_string()),
        };
        if reason == Reason::Finished && !wired.is_whole && asked.len() == 1 {
            return wrong("it is taken for finished work".to_owned());
        }
        for ask in asked.iter().skip(1) {
            if let Err(what) = oracle::pairing(&ask.body) {
                return wrong(format!("the next request: {what}"));
            }
        }
        Ok(wired)
    }
}

/// The bytes as they are read: at once, one by one, or anyhow.
fn pieces(bytes: &[u8], draw: &mut Draw) -> Vec<Vec<u8>> {
    match draw.below(8) {
        0..3 => vec![bytes.to_vec()],
        3 => bytes.chunks(1).map(<[u8]>::to_vec).collect(),
        _ => {
            let (mut rest, mut pieces) = (bytes, Vec::new());
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(1 + draw.below(rest.len().min(200)));
                pieces.push(piece.to_vec());
                rest = more;
            }
            pieces
        }
    }
}

/// A number that the environment names.
#[expect(
    clippy::disallowed_methods,
    reason = "how long to search is the caller's choice"
)]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn exactly_the_calls_run_that_may() {
    if let Some(seed) = number("UNDERTEXT_REPLY") {
        let played = Stage::new().play(seed);
        panic!("{played:#?}");
    }
    let replies = number("UNDERTEXT_REPLIES").unwrap_or(2_000);
    let threads = std::thread::available_parallelism()
        .map_or(1, |n| n.get() as u64)
        .min(8);
    let search = |first: u64| {
        let stage = Stage::new();
        let (mut ran, mut calls) = (0_u64, 0_usize);
        for seed in (first..replies).step_by(usize::try_from(threads).unwrap()) {
            let wired = stage.play(seed)?;
            ran += u64::from(!wired.runs.is_empty());
            calls += wired.runs.len();
        }
        Ok::<_, String>((ran, calls))
    };
    let found: Vec<Result<(u64, usize), String>> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || search(first)))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let (mut ran, mut calls) = (0, 0);
    for one in found {
        match one {
            Ok((some, more)) => (ran, calls) = (ran + some, calls + more),
            Err(wrong) => panic!("{wrong}"),
        }
    }
    println!("{replies} replies: calls of {ran} run, {calls} in all");
    assert!(
        replies < 1000 || (ran > replies / 10 && ran < replies / 2),
        "{ran} of {replies}"
    );
}
