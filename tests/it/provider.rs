//! A model's server on the loopback interface that answers from a list.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde_json::{Value, json};

/// What the server does with one request.
pub(crate) enum Answer {
    /// It streams a text.
    Text(String),
    /// It streams a text and calls, each a name and its arguments.
    Calls(Vec<(&'static str, &'static str)>),
    /// It refuses.
    Status(u16, &'static str),
    /// It says nothing and stays.
    Silence,
}

/// A server; it lives as long as the test's process.
pub(crate) struct Provider {
    /// Its address.
    pub(crate) url: String,
    bodies: Receiver<Vec<u8>>,
}

impl Provider {
    /// A server that gives these answers, one a request.
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers: Vec<Answer> = answers.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (tell, bodies) = mpsc::channel();
        thread::spawn(move || {
            let mut silent = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let body = body(&stream).unwrap();
                tell.send(body).ok();
                serve(&mut stream, &answer);
                if matches!(answer, Answer::Silence) {
                    silent.push(stream);
                }
            }
            // Whoever asks once too often waits, and the test says so.
            loop {
                silent.extend(listener.accept().map(|(stream, _)| stream));
            }
        });
        Self { url, bodies }
    }

    /// A server that answers by what a request says, as often as it is asked.
    pub(crate) fn answering(answer: impl Fn(&Value) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (tell, bodies) = mpsc::channel();
        thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // Who asked may be gone before all of it is said.
                let Ok(body) = body(&stream) else { continue };
                let answer = answer(&serde_json::from_slice(&body).unwrap());
                tell.send(body).ok();
                serve(&mut stream, &answer);
                if matches!(answer, Answer::Silence) {
                    silent.push(stream);
                }
            }
        });
        Self { url, bodies }
    }

    /// How many requests came since this was last asked.
    pub(crate) fn asked(&self) -> usize {
        self.bodies.try_iter().count()
    }

    /// The body of the next request, as it arrived.
    pub(crate) fn body(&self) -> Vec<u8> {
        self.bodies
            .recv_timeout(std::time::Duration::from_secs(60))
            .unwrap()
    }

    /// The messages of the next request.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let body: Value = serde_json::from_slice(&self.body()).unwrap();
        body["messages"].as_array().unwrap().clone()
    }
}

/// The body of a request.
fn body(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            break;
        }
        let line = line.to_lowercase();
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn serve(stream: &mut TcpStream, answer: &Answer) {
    let (status, kind, text) = match answer {
        Answer::Text(text) => (200, "text/event-stream", streamed(text, &[], "stop")),
        Answer::Calls(calls) => (
            200,
            "text/event-stream",
            streamed("I look.", calls, "tool_calls"),
        ),
        Answer::Status(status, text) => (*status, "application/json", (*text).to_owned()),
        Answer::Silence => return,
    };
    let head = format!("HTTP/1.1 {status} S\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    // Who asked may be gone.
    stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(text.as_bytes()))
        .ok();
}

fn streamed(text: &str, calls: &[(&str, &str)], finish: &str) -> String {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "x", "model": "m", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let mut all = chunk(json!({"role": "assistant", "content": text}), None);
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": arguments});
        let call = json!({"index": index, "id": format!("c{index}"), "type": "function", "function": function});
        all += &chunk(json!({"tool_calls": [call]}), None);
    }
    all += &chunk(json!({}), Some(finish));
    let usage = json!({"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010});
    let counted = json!({"id": "x", "choices": [], "usage": usage});
    [
        all,
        format!("data: {counted}\n\n"),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat()
}
