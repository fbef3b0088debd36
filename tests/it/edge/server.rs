//! A server on the loopback interface that serves exact bytes by a plan, over HTTP/1.1.
//!
//! It lives in the runtime of the run that asks it. Where its plan is silent it stops the time of
//! that runtime, so that timers run out at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time;

/// How bytes are cut into writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// All at once.
    Whole,
    /// One by one, as far as a test has time for.
    Bytes,
    /// In pieces of random length, drawn from this seed.
    Random(u64),
}

/// The three ways in which each case is cut.
pub(crate) const CUTS: [Cut; 3] = [Cut::Whole, Cut::Bytes, Cut::Random(0x5eed)];

/// How many bytes are written one by one before the rest comes in large pieces.
const SINGLE: usize = 16 << 10;

/// A part of an answer's plan.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing for this long, in the time of timers.
    Silence(Duration),
    /// Tells the test that the plan came this far.
    Tell(Arc<Notify>),
    /// Waits until the test says so.
    Wait(Arc<Notify>),
}

/// What comes after the last part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// The connection is closed in an orderly way.
    Close,
    /// The connection is reset.
    Reset,
    /// Nothing more, until the other side closes the connection.
    Stay,
}

/// What is sent to one request, and how it ends.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) parts: Vec<Part>,
    pub(crate) last: Last,
}

impl Answer {
    /// These bytes, head and all.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            parts: vec![Part::Bytes(bytes.into())],
            last: Last::Close,
        }
    }

    /// An answer of this status, with these headers (each with its line end) and this body, whose
    /// end is that of the connection.
    pub(crate) fn new(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Self {
        let head = format!("HTTP/1.1 {status} S\r\nconnection: close\r\n{headers}\r\n");
        Self::raw([head.as_bytes(), body.as_ref()].concat())
    }

    /// An event stream of exactly these bytes.
    pub(crate) fn stream(body: impl AsRef<[u8]>) -> Self {
        Self::new(200, "content-type: text/event-stream\r\n", body)
    }

    /// An event stream of these data lines, an event each.
    pub(crate) fn events(data: &[&str]) -> Self {
        Self::stream(events(data))
    }

    /// A JSON document with this status.
    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::new(status, "content-type: application/json\r\n", body)
    }

    /// The same answer with this end.
    pub(crate) fn ends(mut self, last: Last) -> Self {
        self.last = last;
        self
    }

    /// The same answer with a further part.
    pub(crate) fn then(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }
}

/// The bytes of these data lines, an event each.
pub(crate) fn events(data: &[&str]) -> String {
    data.iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect()
}

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Its first line.
    pub(crate) line: String,
    /// Its headers, names in small letters, in their order.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A server in the present runtime; it lives as long as that.
#[derive(Debug)]
pub(crate) struct Server {
    /// The base address to give to a client.
    pub(crate) url: String,
    served: Arc<Served>,
}

#[derive(Debug)]
struct Served {
    cut: Cut,
    answers: Mutex<VecDeque<Answer>>,
    received: Mutex<Vec<Received>>,
    /// How many connections keep the time stopped.
    stopped: Mutex<u32>,
}

impl Server {
    /// A server that gives these answers, one a request and connection, cut like this. Whoever asks
    /// once too often is refused for good.
    pub(crate) async fn start(answers: &[Answer], cut: Cut) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let served = Arc::new(Served {
            cut,
            answers: Mutex::new(answers.iter().cloned().collect()),
            received: Mutex::default(),
            stopped: Mutex::default(),
        });
        let shared = Arc::clone(&served);
        tokio::spawn(async move {
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                connection.set_nodelay(true).unwrap();
                tokio::spawn(Arc::clone(&shared).serve(connection));
            }
        });
        Self { url, served }
    }

    /// The requests so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.served.received.lock().unwrap().clone()
    }
}

impl Served {
    async fn serve(self: Arc<Self>, mut connection: TcpStream) {
        let Some(received) = read(&mut connection).await else {
            return;
        };
        self.received.lock().unwrap().push(received);
        let answer = self.answers.lock().unwrap().pop_front();
        let answer = answer.unwrap_or_else(|| {
            Answer::json(
                400,
                r#"{"error":{"message":"the test has no more answers"}}"#,
            )
        });
        let mut draw = Draw(match self.cut {
            Cut::Random(seed) => seed,
            Cut::Whole | Cut::Bytes => 0,
        });
        for part in answer.parts {
            match part {
                Part::Bytes(bytes) => {
                    for piece in self.pieces(&bytes, &mut draw) {
                        // Who asked may be gone.
                        if connection.write_all(piece).await.is_err() {
                            return;
                        }
                        yield_now().await;
                    }
                }
                Part::Silence(duration) => {
                    self.stop_time();
                    time::sleep(duration).await;
                    self.let_time_go_on();
                }
                Part::Tell(notify) => notify.notify_one(),
                Part::Wait(notify) => notify.notified().await,
            }
        }
        match answer.last {
            Last::Close => {
                connection.shutdown().await.ok();
            }
            Last::Reset => connection.set_zero_linger().unwrap(),
            Last::Stay => {
                self.stop_time();
                // It ends when the other side closes.
                while connection
                    .read(&mut [0; 64])
                    .await
                    .is_ok_and(|read| read > 0)
                {}
                self.let_time_go_on();
            }
        }
    }

    fn pieces<'a>(&self, bytes: &'a [u8], draw: &mut Draw) -> Vec<&'a [u8]> {
        let most = match self.cut {
            Cut::Whole => return vec![bytes],
            Cut::Bytes => 1,
            Cut::Random(_) => 97,
        };
        let (mut pieces, mut rest) = (Vec::new(), bytes);
        while !rest.is_empty() {
            let most = if bytes.len() - rest.len() < SINGLE {
                most
            } else {
                256 << 10
            };
            let (piece, tail) = rest.split_at(draw.up_to(most).min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        pieces
    }

    /// Stops the time of the runtime: it jumps to the next timer whenever nothing else is to be done.
    fn stop_time(&self) {
        let mut stopped = self.stopped.lock().unwrap();
        if *stopped == 0 {
            time::pause();
        }
        *stopped += 1;
    }

    fn let_time_go_on(&self) {
        let mut stopped = self.stopped.lock().unwrap();
        *stopped -= 1;
        if *stopped == 0 {
            time::resume();
        }
    }
}

/// Numbers that look random and are the same in every run.
#[derive(Debug)]
struct Draw(u64);

impl Draw {
    /// A number from 1 to this.
    fn up_to(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        usize::try_from(self.0 >> 33).unwrap() % most + 1
    }
}

/// Reads one request; `None` if the connection ends before it is whole.
async fn read(connection: &mut TcpStream) -> Option<Received> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        if let Some(received) = whole(&bytes) {
            return Some(received);
        }
        match connection.read(&mut buffer).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&buffer[..read]),
            _ => return None,
        }
    }
}

/// The request in these bytes, if all of it is there.
fn whole(bytes: &[u8]) -> Option<Received> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let mut received = Received {
        line,
        headers,
        body: bytes[end + 4..].to_vec(),
    };
    let length: usize = received
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    received.body.truncate(length);
    (received.body.len() == length).then_some(received)
}
