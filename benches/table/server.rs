//! A scripted model on the loopback interface that takes next to no time of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Value, json};

use crate::now;

/// What was asked, and when.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    /// Its first byte was there.
    pub(crate) first: Instant,
    /// Its answer was handed over from here on.
    pub(crate) answered: Instant,
    /// The length of its body.
    pub(crate) bytes: usize,
}

/// A server that asks for so many calls, one a round, and then is done.
pub(crate) struct Server {
    /// Its address, as `--base-url` takes it.
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// The call of a round.
#[derive(Clone)]
pub(crate) struct Script {
    /// Rounds with a call.
    pub(crate) rounds: usize,
    /// The tool.
    pub(crate) tool: &'static str,
    /// Its arguments in a round.
    pub(crate) arguments: fn(usize) -> Value,
    /// What is looked at before the last answer is given.
    pub(crate) before_last: Arc<dyn Fn() + Send + Sync>,
}

impl Server {
    /// Listens until the program ends.
    pub(crate) fn new(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, all) = (script.clone(), Arc::clone(&all));
                // A client that goes away ends its own thread alone.
                std::thread::spawn(move || serve(stream, &script, &all));
            }
        });
        Self { url, asked }
    }

    /// Everything that was asked since the last time.
    pub(crate) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn serve(stream: TcpStream, script: &Script, all: &Mutex<Vec<Asked>>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    loop {
        if reader.fill_buf().ok()?.is_empty() {
            return None;
        }
        let first = now();
        let body = body(&mut reader)?;
        // A call that has its answer is a result in the body.
        let done = body.windows(13).filter(|at| at == br#""role":"tool""#);
        let done = done.count();
        if done >= script.rounds {
            (script.before_last)();
        }
        let answer = answer(script, done, body.len());
        let answered = now();
        reader.get_mut().write_all(&answer).ok()?;
        let asked = Asked {
            first,
            answered,
            bytes: body.len(),
        };
        all.lock().unwrap().push(asked);
    }
}

/// Reads the head of a request and then its body.
fn body(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn answer(script: &Script, round: usize, bytes: usize) -> Vec<u8> {
    let (delta, reason) = if round < script.rounds {
        let arguments = (script.arguments)(round).to_string();
        let call = json!({ "index": 0, "id": format!("call_{round}"), "type": "function",
            "function": { "name": script.tool, "arguments": arguments } });
        (json!({ "tool_calls": [call] }), "tool_calls")
    } else {
        (json!({ "content": "Done." }), "stop")
    };
    let usage = json!({ "prompt_tokens": bytes / 4, "completion_tokens": 20 });
    let events = [
        json!({ "choices": [{ "index": 0, "delta": delta }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }], "usage": usage }),
    ];
    let events = events.iter().map(|event| format!("data: {event}\n\n"));
    let text: String = events.chain(["data: [DONE]\n\n".to_owned()]).collect();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        text.len()
    );
    (head + &text).into_bytes()
}
