//! A model's server on the loopback interface whose window is smaller than anyone was told.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use undertext::exchange::Ending;
use undertext::model::{Fault, Reply};
use undertext::transcript::FaultClass;

use super::wordings::{How, Wording};
use crate::failing::{TASK, Unlucky};

/// What a server does.
#[derive(Debug)]
pub(crate) struct Manner {
    /// How it refuses what is too long.
    pub(crate) wording: Wording,
    /// What its window holds.
    pub(crate) window: u64,
    /// The characters of ten tokens.
    pub(crate) chars: u64,
    /// Whether it says how many tokens it read.
    pub(crate) counts: bool,
    /// What is said to the first requests, whatever they are: a status and a body.
    pub(crate) busy: Vec<(u16, &'static str)>,
    pub(crate) model: Unlucky,
}

/// What a server saw of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The size of its body.
    pub(crate) bytes: usize,
    /// Whether it asks for a summary.
    pub(crate) summary: bool,
    /// Whether it was refused as too long, rightly.
    pub(crate) refused: bool,
    /// Whether the task stands in it, word for word.
    pub(crate) has_task: bool,
}

/// A server; it lives as long as the test's process.
pub(crate) struct Narrow {
    pub(crate) url: String,
    served: Arc<Served>,
}

struct Served {
    manner: Manner,
    task: String,
    seen: Mutex<Vec<Seen>>,
}

impl Narrow {
    pub(crate) fn new(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (seen, task) = (Mutex::default(), serde_json::to_string(TASK).unwrap());
        let served = Arc::new(Served { manner, task, seen });
        let shared = Arc::clone(&served);
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let served = Arc::clone(&shared);
                // Who asked may be gone.
                thread::spawn(move || served.connection(&stream).ok());
            }
        });
        Self { url, served }
    }

    /// What it saw so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.served.seen.lock().unwrap().clone()
    }
}

impl Served {
    fn connection(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream);
        loop {
            let mut length = None;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                if line == "\r\n" {
                    break;
                }
                let line = line.to_lowercase();
                let number = line.strip_prefix("content-length:");
                length = number
                    .map(|number| number.trim().parse().unwrap())
                    .or(length);
            }
            let mut body = vec![0; length.unwrap()];
            reader.read_exact(&mut body)?;
            let (status, kind, text) = self.answer(&String::from_utf8(body).unwrap());
            let long = text.len();
            let head = format!(
                "HTTP/1.1 {status} S\r\ncontent-type: {kind}\r\ncontent-length: {long}\r\n\r\n"
            );
            let mut stream = stream;
            stream.write_all((head + &text).as_bytes())?;
        }
    }

    fn answer(&self, body: &str) -> (u16, &'static str, String) {
        let manner = &self.manner;
        let tokens = body.len() as u64 * 10 / manner.chars;
        // Within a message the marks would be escaped.
        let summary = body.contains("\"tool_choice\":\"none\",\"messages\":");
        let (_, out) = body
            .split_once("\"max_completion_tokens\":")
            .unwrap_or_default();
        let out = out
            .split([',', '}'])
            .next()
            .and_then(|out| out.parse().ok())
            .unwrap_or(0);
        let takes = if manner.wording.adds_output() {
            tokens + out
        } else {
            tokens
        };
        let refused = takes > manner.window;
        let has_task = body.contains(&self.task);
        let seen = Seen {
            bytes: body.len(),
            summary,
            refused,
            has_task,
        };
        let count = {
            let mut all = self.seen.lock().unwrap();
            all.push(seen);
            all.len()
        };
        let refusal = || refusal(&manner.wording, tokens, out, manner.window);
        if let Some((status, says)) = manner.busy.get(count - 1) {
            return (*status, "application/json", (*says).to_owned());
        }
        if refused {
            return refusal();
        }
        match manner.model.answer(summary) {
            Ok(reply) => {
                let counted = manner.counts.then_some(tokens);
                (200, "text/event-stream", streamed(&reply, counted))
            }
            Err(Fault {
                class: FaultClass::Overflow,
                ..
            }) => refusal(),
            Err(Fault {
                class: FaultClass::Overload,
                ..
            }) => (503, "text/plain", "busy".to_owned()),
            Err(fault) => (404, "text/plain", fault.message),
        }
    }
}

/// The refusal of a request of so many tokens.
fn refusal(wording: &Wording, tokens: u64, out: u64, window: u64) -> (u16, &'static str, String) {
    let says = wording.of(tokens, out, window);
    match wording.how {
        How::Status(status) => (status, "application/json", says),
        How::Document => (200, "application/json", says),
        How::Event => (200, "text/event-stream", format!("data: {says}\n\n")),
        How::Finish => {
            let read = tokens.max(window);
            let end = chunk(&json!({}), Some(&says)) + &counted(read, 0);
            (200, "text/event-stream", end)
        }
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({"id": "x", "model": "m", "choices": [choice]});
    format!("data: {chunk}\n\n")
}

fn counted(read: u64, written: u64) -> String {
    let usage = json!({"prompt_tokens": read, "completion_tokens": written});
    let chunk = json!({"id": "x", "choices": [], "usage": usage});
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

fn streamed(reply: &Reply, read: Option<u64>) -> String {
    let mut all = chunk(&json!({"role": "assistant", "content": reply.text}), None);
    for (index, call) in reply.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": call.arguments});
        let call = json!({"index": index, "id": format!("c{index}"), "type": "function", "function": function});
        all += &chunk(&json!({"tool_calls": [call]}), None);
    }
    let finish = match reply.ending {
        Ending::Complete => reply.finish.as_deref().unwrap_or("stop"),
        Ending::Cut => "length",
        Ending::Filtered => "content_filter",
        Ending::Refused => "refusal",
    };
    all += &chunk(&json!({}), Some(finish));
    all + &read.map_or_else(|| "data: [DONE]\n\n".to_owned(), |read| counted(read, 10))
}
