//! A scripted run whose rounds are timed where its model is asked.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde_json::json;
use undertext::agent::Task;
use undertext::model::{Ask, Delta, Model, Reply};
use undertext::record::{Clock, Recorder, Storage};
use undertext::setup::Policy;
use undertext::transcript::Reason;

use crate::{now, scene};

/// The length of each result, in characters.
pub(crate) const CHARS: usize = 4000;

/// A model that calls a tool so many times and then is done, and notes when it was asked.
#[derive(Debug)]
struct Timed {
    left: AtomicU32,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Model for Timed {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let reply = if ask.summary {
            Reply::text("The files were read one by one. ".repeat(20))
        } else {
            self.asked.lock().unwrap().push(now());
            let left = self.left.fetch_sub(1, Ordering::Relaxed);
            let arguments = json!({ "path": format!("src/{left}.rs"), "chars": CHARS });
            if left == 0 {
                Reply::text("Done.")
            } else {
                Reply::calls([("Show", arguments.to_string())])
            }
        };
        stream::iter([Delta::Reply(Box::new(reply))]).boxed()
    }
}

/// Runs so many rounds into a storage: when each was asked for, and the record.
pub(crate) fn run(
    rounds: u32,
    window: u64,
    compacts: bool,
    storage: impl Storage + 'static,
) -> (Vec<Instant>, Recorder) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let model = Timed {
        left: AtomicU32::new(rounds),
        asked: Arc::clone(&asked),
    };
    let mut policy = Policy::default();
    policy.limits.rounds = None;
    policy.compaction.enabled = compacts;
    let agent = scene::agent(window, policy, model);
    let clock = Clock::fixed(scene::BEGIN);
    let run = scene::run(&clock);
    let mut recorder = Recorder::create(Box::new(storage), clock, run).unwrap();
    let task = Task::new("Read everything.");
    let finished = scene::go(&agent, &mut recorder, Some(task)).unwrap();
    assert_eq!(finished.reason, Reason::Finished);
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    (asked, recorder)
}
