//! Fifty demos without a terminal, and what must hold of each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::{fs, thread};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use undertext::agent::Task;
use undertext::config::Environment;
use undertext::hands::Hands;
use undertext::model::offline::Offline;
use undertext::record::{Clock, MemoryStorage, Recorder};
use undertext::replay::Replay;
use undertext::transcript::{Entry, Event, FORMAT, Reason, Run};
use undertext::view::View;

use crate::cli::demo::play;
use crate::cli::demo::report::Report;
use crate::cli::demo::site::{Site, Where};
use crate::cli::demo::tokens::{self, Kind};
use crate::cli::demo::{GOLDEN, project};
use crate::cli::sent;

/// What became of a demo.
#[derive(Debug)]
struct Outcome {
    seed: u64,
    /// What was broken.
    broken: String,
    /// Whether the project's test passes now.
    mended: bool,
    /// The model's last words.
    said: String,
    /// Its calls, each in a line.
    calls: Vec<String>,
    report: Report,
}

/// Plays a demo and checks what holds of every one.
async fn played(seed: u64) -> Outcome {
    let environment: Environment = [("PATH".to_owned(), env!("PATH").to_owned())].into();
    let site = Site::new(seed, Where::Anew, &environment).await.unwrap();
    let clock = Clock::fixed(GOLDEN);
    let run = Run {
        format: FORMAT,
        run: clock.new_run(),
        workspace: "/w".to_owned(),
        generator: "test".to_owned(),
        name: None,
        parent: None,
        imported: None,
        batch: None,
    };
    let storage = Box::new(MemoryStorage::default());
    let mut recorder = Recorder::create(storage, clock.clone(), run).unwrap();
    let served = Offline::serve().await.unwrap();
    let relay = Relay::to(&served.base_url).await;
    let hands = Hands::in_process(site.workspace().clone());
    let agent = play::agent(
        &site,
        hands,
        &clock,
        &relay.base_url,
        play::policy(&[]).unwrap(),
    )
    .unwrap();
    let task = Task::new(play::TASK);
    let finished = agent
        .run(&mut recorder, Some(task), &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        finished.reason,
        Reason::Finished,
        "seed {seed}: {}",
        finished.text
    );
    let entries = &recorder.view().transcript().entries().to_vec();
    as_sent(seed, entries, &relay.bodies());
    in_full(seed, &recorder);
    // Nothing but the broken file may have been changed.
    let diff = site.diff();
    let changed: Vec<&str> = diff
        .lines()
        .filter_map(|line| line.strip_prefix("+++ "))
        .collect();
    assert!(
        changed.iter().all(|path| project::is_source(path)),
        "seed {seed}: {changed:?}"
    );
    let broken = site.broken();
    Outcome {
        seed,
        broken: format!(
            "{}:{} {:?} {}",
            broken.path,
            broken.line,
            broken.operator,
            broken.after.trim()
        ),
        mended: site.test().await.passes(),
        said: finished.text,
        calls: entries.iter().flat_map(calls).collect(),
        report: Report::of(entries),
    }
}

/// Stands between the client and the server, and keeps what the server receives.
struct Relay {
    base_url: String,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Relay {
    async fn to(base_url: &str) -> Self {
        let server = base_url.split('/').nth(2).unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = base_url.replace(&server, &listener.local_addr().unwrap().to_string());
        let received = Arc::<Mutex<Vec<u8>>>::default();
        let kept = Arc::clone(&received);
        drop(tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                drop(tokio::spawn(relay(client, server, Arc::clone(&kept))));
            }
        }));
        Self { base_url, received }
    }

    /// The bodies of all requests, in order: there is one connection, or one after the other.
    fn bodies(&self) -> Vec<Vec<u8>> {
        let received = self.received.lock().unwrap();
        let mut rest = received.as_slice();
        let mut bodies = Vec::new();
        while !rest.is_empty() {
            let end = rest
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
                .unwrap()
                + 4;
            let head = String::from_utf8_lossy(&rest[..end]).to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.unwrap().trim().parse().unwrap();
            bodies.push(rest[end..end + length].to_vec());
            rest = &rest[end + length..];
        }
        bodies
    }
}

async fn relay(mut client: TcpStream, mut server: TcpStream, kept: Arc<Mutex<Vec<u8>>>) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let asks = async {
        let mut piece = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from_client.read(&mut piece).await {
            kept.lock().unwrap().extend_from_slice(&piece[..length]);
            to_server.write_all(&piece[..length]).await.unwrap();
        }
    };
    let answers = tokio::io::copy(&mut from_server, &mut to_client);
    tokio::select! {
        () = asks => {}
        _ = answers => {}
    }
}

/// The calls of a response: the tool, and what it is about.
fn calls(entry: &Arc<Entry>) -> Vec<String> {
    let Event::Response(reply) = &entry.event else {
        return Vec::new();
    };
    let one = |call: &undertext::exchange::ToolCall| {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        let about = ["path", "command", "pattern", "handle", "name"];
        let about = about.iter().find_map(|name| arguments[*name].as_str());
        format!("{} {}", call.name, about.unwrap_or_default())
    };
    reply.calls.iter().map(one).collect()
}

/// What `print --view compacted --at rN` prints of each request is what the server received.
fn as_sent(seed: u64, entries: &[Arc<Entry>], received: &[Vec<u8>]) {
    let mut received = received.iter();
    let view = View::of(entries.iter().cloned());
    for rebuilt in Replay::new(entries.iter().cloned()) {
        let request = rebuilt.request;
        let (body, but) = sent::body(&view, request).unwrap();
        assert_eq!(but, None, "seed {seed}");
        let printed = sent::messages(&body).unwrap();
        let printed: Vec<Value> = printed
            .iter()
            .map(|message| serde_json::from_str(&message.json).unwrap())
            .collect();
        let bytes = received.next().unwrap();
        assert!(*bytes == *body.bytes, "seed {seed}, request e{request}");
        let sent: Value = serde_json::from_slice(bytes).unwrap();
        assert!(
            sent["messages"] == Value::Array(printed),
            "seed {seed}, request e{request}"
        );
    }
    assert_eq!(received.next(), None, "seed {seed}");
}

/// Every result stands in the transcript, and all that was clipped from it beside it.
fn in_full(seed: u64, recorder: &Recorder) {
    for entry in recorder.view().transcript().entries() {
        let Event::Result(result) = &entry.event else {
            continue;
        };
        let Some(clipped) = &result.clipped else {
            continue;
        };
        let blob = clipped.blob.unwrap();
        let kept = recorder.storage().read_blob(blob).unwrap().unwrap();
        assert_eq!(kept.len() as u64, clipped.bytes, "seed {seed}");
        let kept = String::from_utf8(kept).unwrap();
        let first = result.content.lines().next().unwrap();
        assert!(kept.contains(first), "seed {seed}: {first}");
    }
}

/// Plays demos side by side.
fn all(seeds: std::ops::RangeInclusive<u64>) -> BTreeMap<u64, Outcome> {
    let next = AtomicU64::new(*seeds.start());
    let outcomes = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        break;
                    }
                    let outcome = runtime.block_on(played(seed));
                    outcomes
                        .lock()
                        .map(|mut all: std::sync::MutexGuard<'_, BTreeMap<_, _>>| {
                            all.insert(seed, outcome)
                        })
                        .unwrap();
                }
            });
        }
    });
    outcomes.into_inner().unwrap()
}

#[test]
fn fifty_demos_mend_what_they_can_and_own_up_to_the_rest() {
    let outcomes = all(1..=50);
    let told: Vec<String> = outcomes
        .values()
        .map(|one| {
            let word = if one.mended { "mended" } else { "not mended" };
            format!(
                "{} {word} {} rounds {:?} {}",
                one.seed, one.report.rounds, one.report.overlays, one.broken
            )
        })
        .collect();
    let told = told.join("\n");
    let mended = outcomes.values().filter(|one| one.mended).count();
    assert!(mended >= 45, "{mended}\n{told}");
    for one in outcomes.values() {
        let owns_up = one.said.contains("could not");
        assert_eq!(owns_up, !one.mended, "seed {}: {}", one.seed, one.said);
        assert!(one.report.is_proved(), "seed {}", one.seed);
    }
    let ways: BTreeSet<&Vec<String>> = outcomes.values().map(|one| &one.calls).collect();
    assert!(ways.len() >= 30, "{} ways", ways.len());
    let thrice = outcomes.values().filter(|one| {
        ["micro", "auto", "tool"]
            .iter()
            .all(|origin| one.report.overlays.contains_key(origin))
    });
    let thrice = thrice.count();
    assert!(thrice >= 45, "{thrice}\n{told}");
}

/// Words that any program and any project may hold.
const COMMON: [&str; 36] = [
    "BEGIN", "cases", "code", "data", "differ", "digits", "exit", "expected", "file", "find",
    "finish", "format", "function", "length", "list", "mend", "missing", "next", "number", "order",
    "other", "parse", "part", "pieces", "place", "print", "printf", "return", "sign", "skills",
    "split", "sprintf", "substr", "tests", "text", "total",
];

/// What the script knows of this project it knows from its tools: nothing in it names a file, a
/// function or a variable of the project.
#[test]
fn the_model_names_nothing_of_the_project() {
    let mut names = BTreeSet::new();
    for (path, text) in project::files() {
        names.extend(path.split(['/', '.', '-']).map(str::to_owned));
        names.insert(path.to_owned());
        if project::is_source(path) {
            let tokens = text.lines().flat_map(tokens::tokens);
            let words = tokens.filter(|token| token.kind == Kind::Word);
            names.extend(words.map(|word| word.text.to_owned()));
        }
    }
    names.retain(|name| name.len() >= 4 && !COMMON.contains(&name.as_str()));
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model/offline");
    let mut told = BTreeSet::new();
    for file in fs::read_dir(directory).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let words: BTreeSet<&str> = text
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .collect();
        told.extend(
            names
                .iter()
                .filter(|name| {
                    let is_path = name.contains('/');
                    words.contains(name.as_str()) || (is_path && text.contains(name.as_str()))
                })
                .cloned(),
        );
    }
    assert_eq!(told, BTreeSet::new());
    assert!(names.contains("lib/tax.awk") && names.contains("parcel_charge"));
}
