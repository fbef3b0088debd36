//! A thousand runs at once in one process: what they take of memory, and their rounds a second beside
//! those of one run alone.
//!
//! A server that answers from a script works on the loopback interface in a process of its own; each
//! row is measured in another. Transcripts stand in files and are not synced, and the one tool is
//! answered in the process, so that what is measured is the agent, the client and the record.
use std::io::{BufRead as _, BufReader};
use std::num::NonZeroUsize;
use std::process::{Child, Stdio};
use std::sync::Arc;

use futures::StreamExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Task};
use undertext::batch;
use undertext::model::{Client, Endpoint, Timeouts};
use undertext::record::{Clock, Durability, FileStorage, Recorder};
use undertext::setup::{Model, Setup};
use undertext::tools::{Outcome, Toolbox, typed};
use undertext::transcript::{Reason, Run};

use crate::{Row, TRIES, command, limits, mib, middle_by, now};

/// The length of each result, in characters.
const CHARS: usize = 1000;

/// The end of a request, in which the newest result stands, in bytes.
const TAIL: usize = 2 * CHARS;

/// How long one run alone is measured at least, in rounds: short runs would be over too soon.
const ALONE: u32 = 2000;

/// What stands before the number of a step.
const STEP: &str = "step ";

/// The arguments of the tool.
#[derive(Deserialize, JsonSchema)]
struct Step {
    /// Which step is taken.
    number: u32,
}

/// Runs at once.
const RUNS: u32 = 1000;

/// Rounds of each.
const ROUNDS: u32 = 50;

/// Does what another process is for.
pub(crate) fn child(words: &[&str]) -> bool {
    match words {
        ["serve"] => runtime().block_on(serve()),
        ["work", at_once, all, url] => {
            work(at_once.parse().unwrap(), all.parse().unwrap(), url);
        }
        _ => return false,
    }
    true
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().unwrap()
}

/// What a process found that made runs.
#[derive(Clone, Copy)]
struct Found {
    /// The most memory that it had, in bytes.
    memory: u64,
    /// Rounds a second.
    rate: f64,
}

/// All runs at once beside one at a time.
pub(crate) fn many() -> Vec<Row> {
    let mut server = again(&["serve"]);
    let mut url = String::new();
    let mut said = BufReader::new(server.stdout.take().unwrap());
    said.read_line(&mut url).unwrap();
    let found = |at_once: u32, all: u32| {
        let [at_once, all] = [at_once, all].map(|it| it.to_string());
        let worker = again(&["work", &at_once, &all, url.trim()]);
        let output = worker.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let (memory, rate) = text.trim().split_once(' ').unwrap();
        Found {
            memory: memory.parse().unwrap(),
            rate: rate.parse().unwrap(),
        }
    };
    let cores = std::thread::available_parallelism().unwrap().get();
    let cores = f64::from(u32::try_from(cores).unwrap());
    let times = |(alone, many): &(Found, Found)| many.rate / alone.rate / cores;
    // One beside the other each time, since a machine is not equally fast all the time.
    let tries = TRIES.map(|()| (found(1, ALONE.div_ceil(ROUNDS)), found(RUNS, RUNS)));
    server.kill().unwrap();
    server.wait().unwrap();
    let (alone, many) = middle_by(tries, |a, b| times(a).total_cmp(&times(b)));
    let times = times(&(alone, many));
    vec![
        Row::new(
            "memory of 1,000 runs at once in one process, 50 rounds each",
            "1 GiB",
            format!("one run: {}", mib(alone.memory)),
            mib(many.memory),
            many.memory <= 1 << 30,
        ),
        Row::new(
            "their rounds a second, `sync: none`",
            "0.8 × one run's × cores",
            format!("one run: {:.0} a second", alone.rate),
            format!("{:.0} a second ({times:.2} ×)", many.rate),
            times >= 0.8,
        ),
    ]
}

/// This program in another process.
fn again(words: &[&str]) -> Child {
    let mut command = command(std::env::current_exe().unwrap().to_str().unwrap());
    command.args(words).stdout(Stdio::piped()).spawn().unwrap()
}

/// Makes so many runs, so many of them at once, and prints what that took.
fn work(at_once: usize, all: u32, url: &str) {
    let directory = tempfile::tempdir().unwrap();
    let step = typed("Step", "Takes a step.", |step: Step| async move {
        let text = "x".repeat(CHARS);
        Outcome::ok(format!("{text}\n{STEP}{} is taken", step.number))
    });
    let endpoint = Endpoint {
        base_url: url.to_owned(),
        api_key: None,
        headers: Vec::new(),
    };
    let client = Client::new(endpoint, Timeouts::default()).unwrap();
    let setup = Setup::new(Model::named("scripted"), "You take steps.".repeat(100));
    let agent = Agent::new(setup, Arc::new(client), Toolbox::builtin().with(step));
    let path = directory.path().to_owned();
    let run = |_, cancel: CancellationToken| {
        let (agent, path) = (agent.clone(), path.clone());
        async move {
            let clock = Clock::System;
            let run = Run::new(clock.new_run(), "/w");
            let storage = FileStorage::create(&path, run.run, Durability::None).unwrap();
            let mut recorder = Recorder::create(Box::new(storage), clock, run).unwrap();
            let task = Some(Task::new("Take all steps."));
            let finished = agent.run(&mut recorder, task, &cancel).await.unwrap();
            assert_eq!(finished.reason, Reason::Finished);
            assert_eq!(recorder.view().ledger().whole.rounds, u64::from(ROUNDS));
        }
    };
    let begun = now();
    let jobs = NonZeroUsize::new(at_once).unwrap();
    runtime().block_on(async {
        let runs = batch::each(0..all, jobs, CancellationToken::new(), run);
        assert!(runs.all(|run| std::future::ready(run.is_ok())).await);
    });
    let took = begun.elapsed();
    let rate = f64::from(all * ROUNDS) / took.as_secs_f64();
    println!("{} {rate}", limits::peak("self"));
}

/// Answers every request by the number of the step that stands last in it.
async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}/v1", listener.local_addr().unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        // Who asked may be gone.
        drop(tokio::spawn(async move { answer(stream).await.ok() }));
    }
}

async fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = tokio::io::BufReader::with_capacity(64 << 10, stream);
    loop {
        let mut left = 0;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if let Some(length) = line.to_lowercase().strip_prefix("content-length:") {
                left = length.trim().parse().unwrap();
            }
        }
        while left > TAIL {
            let some = stream.fill_buf().await?.len().min(left - TAIL);
            stream.consume(some);
            left -= some;
        }
        let mut tail = vec![0; left];
        stream.read_exact(&mut tail).await?;
        let tail = String::from_utf8_lossy(&tail);
        let done = tail.rsplit_once(STEP).map_or(0, |(_, behind)| {
            let digits = behind.split(|c: char| !c.is_ascii_digit()).next();
            digits.unwrap().parse().unwrap_or(0)
        });
        let events = events(done + 1);
        let length = events.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all((head + &events).as_bytes()).await?;
    }
}

/// The reply that takes a step, or that all are taken.
fn events(step: u32) -> String {
    let (delta, finish) = if step < ROUNDS {
        let arguments = json!({ "number": step }).to_string();
        let function = json!({"name": "Step", "arguments": arguments});
        let call = json!({"index": 0, "id": "c", "type": "function", "function": function});
        (
            json!({"role": "assistant", "tool_calls": [call]}),
            "tool_calls",
        )
    } else {
        (json!({"role": "assistant", "content": "Done."}), "stop")
    };
    let chunk = |choices: serde_json::Value, usage: serde_json::Value| {
        let chunk = json!({"id": "x", "model": "m", "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let usage = json!({"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010});
    [
        chunk(
            json!([{"index": 0, "delta": delta, "finish_reason": null}]),
            json!(null),
        ),
        chunk(
            json!([{"index": 0, "delta": {}, "finish_reason": finish}]),
            json!(null),
        ),
        chunk(json!([]), usage),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat()
}
