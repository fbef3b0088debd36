//! Whole runs against servers that misbehave: the cases of the edge, each in three cuts.
//!
//! [`check`] plays a case: an agent with a real client asks a [`server`] that serves exact bytes, and
//! what came of it is told in lines. However the bytes are cut, the same is recorded.

mod server;
mod reply;
mod ended;
mod stream;
mod shape;
mod words;
mod calls;
mod answered;
mod reasoning;
mod sent;
mod offered;
mod transport;
mod retries;
mod large;
mod usage;
mod overflow;
mod judged;
mod responses;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use futures::{FutureExt as _, StreamExt as _};
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Progress, Task};
use undertext::exchange::{Reasoning, Response, Usage};
use undertext::id::Digest;
use undertext::model::{ApiKey, Client, Delta, Endpoint, Timeouts};
use undertext::record::MemoryStorage;
use undertext::setup::{Policy, Setup};
use undertext::tools::{Outcome, Toolbox, typed};
use undertext::transcript::{Entry, Event, Note, Speaker};

use crate::oracle;
use crate::scene::{self, Amount};
use server::{Answer, CUTS, Cut, Received, Server};

/// What a run is made of, beside the server's answers.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    pub(crate) setup: Setup,
    pub(crate) timeouts: Timeouts,
    pub(crate) key: Option<&'static str>,
    pub(crate) task: &'static str,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            setup: scene::setup(100_000, Policy::default()),
            timeouts: Timeouts::default(),
            key: None,
            task: "Go.",
        }
    }
}

/// A run that came to its end.
#[derive(Debug)]
pub(crate) struct Played {
    /// Everything that was recorded.
    pub(crate) storage: MemoryStorage,
    /// The requests that the server received.
    pub(crate) received: Vec<Received>,
    /// The calls that ran, in the order in which they began.
    pub(crate) ran: Vec<String>,
    /// What listeners heard of replies: text, `(reasoning)` and `<calls>`.
    pub(crate) heard: String,
}

impl Played {
    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        scene::entries(&self.storage)
    }

    /// What came of it, in lines: replies, faults, results, what the runtime said, the end; then what
    /// ran and how many requests there were.
    pub(crate) fn told(&self) -> String {
        let mut told = String::new();
        for entry in self.entries() {
            if let Some(line) = line(&entry.event) {
                writeln!(told, "{line}").unwrap();
            }
        }
        if !self.ran.is_empty() {
            writeln!(told, "ran {}", self.ran.join(", ")).unwrap();
        }
        writeln!(told, "requests {}", self.received.len()).unwrap();
        told
    }

    /// Every body is a request that any server takes, and those that were sent are those that were
    /// recorded: what was asked again differs by no byte.
    fn judge(&self, what: &str) {
        let mut sent = Vec::new();
        for received in &self.received {
            let body = &received.body;
            let judged = if received.line.contains("/responses ") {
                judged::judge(body)
            } else {
                oracle::pairing(body)
            };
            assert_eq!(judged, Ok(()), "{what}");
            sent.push(Digest::of(body));
        }
        let mut recorded = Vec::new();
        for entry in self.entries() {
            if let Event::Request(request) = &entry.event {
                recorded.push(request.body.sha256);
            }
        }
        sent.dedup();
        recorded.dedup();
        assert_eq!(sent, recorded, "{what}: what was sent is what was recorded");
    }
}

/// A toolbox whose runs are written down: `Show` reads, `Change` writes, `Beat` takes no arguments.
pub(crate) fn toolbox(ledger: &Arc<Mutex<Vec<String>>>) -> Toolbox {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    let tool = |name: &'static str| {
        let ledger = Arc::clone(ledger);
        typed(name, "A tool of the tests.", move |amount: Amount| {
            let Amount { path, chars } = amount;
            ledger.lock().unwrap().push(format!("{name} {path}"));
            async move { Outcome::ok(scene::text(&path, chars.max(3))) }
        })
    };
    let beats = Arc::clone(ledger);
    let beat = typed("Beat", "Beats once.", move |Nothing {}| {
        beats.lock().unwrap().push("Beat".to_owned());
        async { Outcome::ok("beat") }
    });
    Toolbox::new()
        .with(tool("Show").reads())
        .with(tool("Change"))
        .with(beat)
}

/// Plays a run to its end against a server that gives these answers, cut like this.
pub(crate) fn play(answers: &[Answer], cut: Cut, manner: &Manner) -> Played {
    play_until(answers, cut, manner, |_| ())
}

/// The same; `prepare` is handed what cancels the run, within its runtime.
pub(crate) fn play_until(
    answers: &[Answer],
    cut: Cut,
    manner: &Manner,
    prepare: impl FnOnce(CancellationToken),
) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (storage, ledger) = (MemoryStorage::default(), Arc::default());
    let mut recorder = scene::create(&storage);
    runtime.block_on(async {
        let server = Server::start(answers, cut).await;
        let endpoint = Endpoint {
            base_url: server.url.clone(),
            api_key: manner.key.map(ApiKey::new),
            headers: Vec::new(),
        };
        let client = Client::new(endpoint, manner.timeouts).unwrap();
        let agent = Agent::new(manner.setup.clone(), Arc::new(client), toolbox(&ledger));
        let mut events = agent.events();
        let cancel = CancellationToken::new();
        prepare(cancel.clone());
        agent
            .run(&mut recorder, Some(Task::new(manner.task)), &cancel)
            .await
            .unwrap();
        let mut heard = Vec::new();
        while let Some(Some(progress)) = events.next().now_or_never() {
            heard.push(progress);
        }
        let ran = ledger.lock().unwrap().clone();
        let played = Played {
            storage,
            received: server.received(),
            ran,
            heard: told_of(&heard),
        };
        played.judge(&format!("{cut:?} {}", played.told()));
        played
    })
}

/// Takes a run up again against a server that gives these answers.
pub(crate) fn resume(storage: &MemoryStorage, answers: &[Answer], cut: Cut) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (manner, ledger) = (Manner::default(), Arc::default());
    let mut recorder = scene::open(storage);
    let received = runtime.block_on(async {
        let server = Server::start(answers, cut).await;
        let endpoint = Endpoint {
            base_url: server.url.clone(),
            api_key: None,
            headers: Vec::new(),
        };
        let client = Client::new(endpoint, manner.timeouts).unwrap();
        let agent = Agent::new(manner.setup, Arc::new(client), toolbox(&ledger));
        let never = CancellationToken::new();
        agent.run(&mut recorder, None, &never).await.unwrap();
        server.received()
    });
    let ran = ledger.lock().unwrap().clone();
    Played {
        storage: storage.clone(),
        received,
        ran,
        heard: String::new(),
    }
}

/// Plays a case in three cuts and holds what came of it against what is expected, a line each. What
/// is recorded and what is heard is the same however the bytes are cut.
pub(crate) fn check(case: u32, name: &str, answers: &[Answer], expected: &str) {
    check_in(case, name, &Manner::default(), answers, expected);
}

/// The same for a run in a manner of its own.
pub(crate) fn check_in(case: u32, name: &str, manner: &Manner, answers: &[Answer], expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    let expected: Vec<&str> = expected
        .into_iter()
        .filter(|line| !line.is_empty())
        .collect();
    let mut first: Option<Played> = None;
    for cut in CUTS {
        let what = format!("case {case}, {name}, {cut:?}");
        let played = play(answers, cut, manner);
        let told = played.told();
        let told: Vec<&str> = told.lines().map(str::trim).collect();
        assert_eq!(told, expected, "{what}");
        match &first {
            None => first = Some(played),
            Some(first) => {
                assert_eq!(first.heard, played.heard, "{what}");
                let [one, other] = [first, &played].map(|played| played.storage.bytes());
                assert_eq!(
                    String::from_utf8_lossy(&one),
                    String::from_utf8_lossy(&other),
                    "{what}"
                );
            }
        }
    }
}

/// One entry; `None` of those that every run has.
fn line(event: &Event) -> Option<String> {
    Some(match event {
        Event::Response(response) => reply(response),
        Event::Fault(fault) => {
            let again = if fault.wait_ms.is_some() {
                "retried"
            } else {
                "failed"
            };
            format!("{again}, {}: {}", fault.class.word(), fault.message)
        }
        Event::Result(result) => format!("result, {}: {}", result.status.word(), result.content),
        Event::User(user) if user.origin == Speaker::Runtime => format!("told: {}", user.text),
        Event::Note(Note::Warning { text }) => format!("warning: {text}"),
        Event::End(end) => format!("end, {}: {}", end.reason.word(), end.text),
        _ => return None,
    })
}

/// `Complete stop 7/-/1: text (reasoning_content: thoughts) Show{}`.
fn reply(response: &Response) -> String {
    let mut told = format!("{:?}", response.ending);
    if let Some(finish) = &response.finish {
        write!(told, " {finish}").unwrap();
    }
    if let Some(usage) = response.usage {
        let Usage {
            input,
            cached,
            output,
            ..
        } = usage;
        let count = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
        write!(
            told,
            " {}/{}/{}",
            count(input),
            count(cached),
            count(output)
        )
        .unwrap();
    }
    told.push(':');
    if !response.text.is_empty() {
        write!(told, " {}", response.text).unwrap();
    }
    for block in &response.reasoning {
        match block {
            Reasoning::Text { field, text } => write!(told, " ({field}: {text})").unwrap(),
            Reasoning::Raw { raw, .. } => write!(told, " ({raw})").unwrap(),
        }
    }
    for call in &response.calls {
        write!(told, " {}{}", call.name, call.arguments).unwrap();
    }
    told
}

/// What was heard of replies, pieces of one kind joined; a bar stands where an attempt failed.
fn told_of(heard: &[Progress]) -> String {
    let (mut told, mut thinking) = (String::new(), false);
    for progress in heard {
        let thinks = matches!(
            progress,
            Progress::Delta {
                delta: Delta::Reasoning(_),
                ..
            }
        );
        if thinks != thinking {
            told.push(if thinks { '(' } else { ')' });
            thinking = thinks;
        }
        match progress {
            Progress::Delta { delta, .. } => match delta {
                Delta::Text(text) | Delta::Reasoning(text) => told.push_str(text),
                Delta::Call { name } => write!(told, "<{name}>").unwrap(),
                Delta::Reply(_) | Delta::Fault(_) => {}
            },
            Progress::Entry(entry) if matches!(entry.event, Event::Fault(_)) => told.push('|'),
            Progress::Entry(_) | Progress::Compaction(_) => {}
        }
    }
    told
}
