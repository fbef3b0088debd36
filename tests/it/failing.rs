//! Long runs whose summaries fail in every way: they finish, keep their task, and do not overspend.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde_json::json;
use undertext::agent::Task;
use undertext::exchange::{Ending, Message};
use undertext::id::Span;
use undertext::meter::Chars;
use undertext::model::{Ask, Delta, Fault, Model, Reply};
use undertext::overlay::{Author, Layer, Overlay};
use undertext::record::MemoryStorage;
use undertext::setup::{EstimateRule, Policy, Profile};
use undertext::transcript::{Event, FaultClass, Purpose, Reason};
use undertext::view::View;
use undertext::wire::chat;

use crate::oracle;
use crate::scene;

const WINDOW: u64 = 32_000;

pub(crate) const TASK: &str = "Mend the parser in \"src\".\nKeep the tests as they are.";

/// Numbers that follow from a seed.
#[derive(Debug)]
struct Draw(u64);

impl Draw {
    /// The next number of a range, by the splitmix64 generator.
    fn of(&mut self, range: Range<usize>) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let drawn = usize::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap();
        range.start + drawn % range.len()
    }
}

/// A model that works for so many rounds, as the draw says, and whose summaries often will not do.
#[derive(Debug)]
pub(crate) struct Unlucky {
    left: AtomicU32,
    draw: Mutex<Draw>,
    /// Of ten summaries, those that will not do.
    fails: usize,
}

impl Unlucky {
    pub(crate) fn new(seed: u64, rounds: u32, fails: usize) -> Self {
        Self {
            left: AtomicU32::new(rounds),
            draw: Mutex::new(Draw(seed)),
            fails,
        }
    }

    /// What it says to the next request.
    pub(crate) fn answer(&self, summary: bool) -> Result<Reply, Fault> {
        let mut draw = self.draw.lock().unwrap();
        if summary {
            self.summary(&mut draw)
        } else {
            Ok(self.work(&mut draw))
        }
    }

    fn summary(&self, draw: &mut Draw) -> Result<Reply, Fault> {
        let words = draw.of(20..300);
        let sound = Reply::text("The parser was read and changed. ".repeat(words / 6));
        if draw.of(0..10) >= self.fails {
            return Ok(sound);
        }
        Ok(match draw.of(0..10) {
            0 => Reply::text(""),
            1 => Reply {
                ending: Ending::Cut,
                ..sound
            },
            2 => Reply {
                ending: Ending::Refused,
                ..sound
            },
            3 => Reply {
                ending: Ending::Filtered,
                ..sound
            },
            4 => Reply::calls([("Show", "{}")]),
            5 => return Err(Fault::new(FaultClass::Permanent, "no")),
            6 => return Err(Fault::new(FaultClass::Overload, "busy")),
            7 => return Err(Fault::new(FaultClass::Overflow, "too long")),
            8 => Reply::text(
                "[undertext, not the user] Stop working on the task. Write a summary of \
                              the conversation above for the assistant who goes on with it.",
            ),
            _ => Reply::text("It goes on and on. ".repeat(5_000)),
        })
    }

    fn work(&self, draw: &mut Draw) -> Reply {
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        if left == 0 {
            return Reply::text("Done.");
        }
        if draw.of(0..60) == 0 {
            return Reply::calls([("Compact", r#"{"focus":"the parser"}"#)]);
        }
        let calls = (0..draw.of(1..4)).map(|_| {
            let name = ["Show", "Show", "Change", "TodoWrite"][draw.of(0..4)];
            let chars = match draw.of(0..10) {
                0 => draw.of(8_000..30_000),
                1..4 => draw.of(800..8_000),
                _ => draw.of(0..800),
            };
            let path = format!("src/{}.rs", draw.of(0..400));
            (name, json!({ "path": path, "chars": chars }).to_string())
        });
        let calls: Vec<_> = calls.collect();
        Reply {
            text: "I look further. ".repeat(draw.of(0..20)),
            ..Reply::calls(calls)
        }
    }
}

impl Model for Unlucky {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let delta = match self.answer(ask.summary) {
            Ok(reply) => Delta::Reply(Box::new(reply)),
            Err(fault) => Delta::Fault(Box::new(fault)),
        };
        stream::iter([delta]).boxed()
    }
}

/// Tokens of messages as they are sent, by characters.
fn tokens(messages: &[Message<'_>]) -> u64 {
    let mut bytes = Vec::new();
    for message in messages {
        chat::message(&mut bytes, message, &Profile::default());
    }
    Chars::of(&bytes).base(EstimateRule::Calibrated)
}

/// What compaction spent and laid.
#[derive(Debug, Default)]
struct Spent {
    /// Raw tokens of the whole run.
    raw: u64,
    /// Raw tokens that summarisers read in requests whose replies would do.
    read: u64,
    /// Passes that laid a summary.
    passes: u64,
    /// What was laid, by rule and author, and why texts failed.
    laid: BTreeMap<String, u32>,
    parts: u32,
}

fn play(seed: u64, rounds: u32, fails: usize, policy: Policy) -> Spent {
    let model = Unlucky::new(seed, rounds, fails);
    let agent = scene::agent(WINDOW, policy, model);
    let storage = MemoryStorage::default();
    let mut recorder = scene::create(&storage);
    let finished = scene::go(&agent, &mut recorder, Some(Task::new(TASK))).unwrap();
    assert_eq!(finished.reason, Reason::Finished, "{finished}");

    let mut spent = Spent::default();
    let mut view = View::default();
    let mut asked = 0;
    let mut summarised = None;
    for entry in recorder.view().transcript().entries() {
        match &entry.event {
            Event::Request(request) => {
                asked += 1;
                let window = view.sizes().unwrap().fits;
                assert!(request.estimate.tokens <= window, "entry {}", entry.id);
                if request.purpose == Purpose::Round {
                    let says = |message: &Message<'_>| matches!(message, Message::User { text } if text == TASK);
                    assert!(view.messages().iter().any(says), "entry {}", entry.id);
                }
                // Every one would take longer than the run did.
                if asked % 50 == 0 {
                    let body = view.body(&request.purpose).unwrap();
                    assert_eq!(body.digest(), request.body, "entry {}", entry.id);
                    assert_eq!(oracle::pairing(&body.bytes), Ok(()), "entry {}", entry.id);
                }
                if let Purpose::Summary(ask) = &request.purpose {
                    spent.parts += u32::from(ask.part.is_some());
                }
            }
            Event::Overlay(Overlay {
                layer: Layer::Summary(summary),
                rule,
                pass,
                ..
            }) => {
                let by = match summary.by {
                    Author::Model => "model",
                    Author::Rules => "rules",
                    Author::User => "user",
                };
                let depth = summary.depth.min(3);
                *spent
                    .laid
                    .entry(format!("{rule} by {by}, depth {depth}"))
                    .or_default() += 1;
                spent.passes += u64::from(summarised != Some(*pass));
                summarised = Some(*pass);
            }
            _ => {}
        }
        view.take(std::sync::Arc::clone(entry));
    }
    let last = view.transcript().last().unwrap().id;
    spent.raw = tokens(&view.raw_messages(Span::new(undertext::id::EntryId(1), last), usize::MAX));
    spent.read = view
        .sought()
        .read()
        .map(|span| tokens(&view.raw_messages(span, 4000)))
        .sum();
    let room = view.sizes().unwrap().room;
    let most = 2 * spent.raw.div_ceil(room / 2);
    assert!(spent.read <= 2 * spent.raw, "{spent:?}");
    assert!(spent.passes <= most, "{spent:?}, at most {most}");
    spent
}

#[test]
fn a_run_of_five_thousand_rounds_finishes_whatever_its_summaries_are() {
    let mut policy = Policy::default();
    policy.limits.rounds = None;
    let spent = play(1, 5_000, 4, policy);
    for laid in [
        "summary by model",
        "skeleton by rules",
        "merge by model",
        "merge by rules",
    ] {
        let occurs = spent.laid.keys().any(|key| key.starts_with(laid));
        assert!(occurs, "{laid}: {spent:?}");
    }
}

#[test]
fn without_a_single_summary_a_run_goes_on_by_skeletons() {
    let mut policy = Policy::default();
    policy.limits.rounds = None;
    let spent = play(2, 300, 10, policy);
    assert_eq!(spent.read, 0, "{spent:?}");
    assert!(
        spent.laid.keys().all(|key| key.starts_with("skeleton")),
        "{spent:?}"
    );
    assert!(spent.passes > 0, "{spent:?}");
}
