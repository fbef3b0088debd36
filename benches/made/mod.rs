//! A transcript as long as one likes, made by the real loop: a scripted model, tools that answer with
//! text, compaction with its stubs and summaries. What it records is written as it comes.

#[path = "../../tests/it/scene.rs"]
#[expect(
    dead_code,
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    reason = "the stage of the tests, which need more of it"
)]
pub(crate) mod scene;

use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde_json::json;
use undertext::agent::Task;
use undertext::exchange::{Reasoning, Usage};
use undertext::model::{Ask, Delta, Model, Reply};
use undertext::record::{Clock, Recorder, Storage};
use undertext::setup::Policy;
use undertext::transcript::Reason;

/// The length of each result in characters: with it an entry has about 1 KiB.
const CHARS: u64 = 2600;

/// Entries of ten rounds, summaries and stubs included.
const TEN_ROUNDS: u64 = 36;

/// A model that reads, thinks and changes files for so many rounds.
#[derive(Debug)]
struct Worker {
    rounds: u64,
    asked: AtomicU64,
}

impl Model for Worker {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let reply = if ask.summary {
            Reply::text(
                "The files were read one by one, and some of them were changed. ".repeat(20),
            )
        } else {
            let round = self.asked.fetch_add(1, Ordering::Relaxed);
            if round >= self.rounds {
                Reply::text("Done.")
            } else {
                work(round, ask.body.len() as u64 / 4)
            }
        };
        stream::iter([Delta::Reply(Box::new(reply))]).boxed()
    }
}

/// What the model does in a round.
fn work(round: u64, tokens: u64) -> Reply {
    let name = if round.is_multiple_of(2) {
        "Show"
    } else {
        "Change"
    };
    // Results differ, as those of tools do.
    let chars = CHARS / 2 + round * 7919 % CHARS;
    let arguments = json!({ "path": format!("src/part_{round}.rs"), "chars": chars }).to_string();
    let reasoning = Reasoning::Text {
        field: "reasoning_content".to_owned(),
        text: format!("Part {round} comes next: \"what does it say?\"\n").repeat(4),
    };
    Reply {
        text: format!("Now part {round}."),
        reasoning: vec![reasoning],
        usage: Some(Usage {
            input: Some(tokens),
            output: Some(120),
            ..Usage::default()
        }),
        model: Some("scripted-1".to_owned()),
        ..Reply::calls([(name, arguments)])
    }
}

/// Records a run of about so many entries.
pub(crate) fn record(storage: impl Storage + 'static, entries: u64) -> Recorder {
    let mut policy = Policy::default();
    policy.limits.rounds = None;
    let worker = Worker {
        rounds: entries * 10 / TEN_ROUNDS,
        asked: AtomicU64::new(0),
    };
    let agent = scene::agent(64_000, policy, worker);
    let clock = Clock::fixed(scene::BEGIN);
    let run = scene::run(&clock);
    let mut recorder = Recorder::create(Box::new(storage), clock, run).unwrap();
    let finished = scene::go(&agent, &mut recorder, Some(Task::new("Read everything.")));
    assert_eq!(finished.unwrap().reason, Reason::Finished);
    recorder
}
