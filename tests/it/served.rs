//! The page of a run on a port: what is answered to whom, and how it grows.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use undertext::id::EntryId;
use undertext::page::serve::Server;
use undertext::record::Follow;
use undertext::secret::Masks;
use undertext::transcript::{At, Entry, Event, Note, jsonl};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

/// A transcript that is served.
struct Served {
    directory: tempfile::TempDir,
    server: Server,
}

impl Served {
    async fn new(bytes: &[u8]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.jsonl");
        fs::write(&path, bytes).unwrap();
        let follow = Follow::open(&path).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::serve(address, follow, Masks::default())
            .await
            .unwrap();
        Self { directory, server }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("run.jsonl")
    }

    fn write(&self, bytes: &[u8]) {
        let mut file = OpenOptions::new().append(true).open(self.path()).unwrap();
        file.write_all(bytes).unwrap();
    }

    /// The address, and the path with its secret.
    fn place(&self) -> (&str, &str) {
        let (address, path) = self.server.url["http://".len()..].split_once('/').unwrap();
        (address, path)
    }

    /// What is answered to these lines, in which `HERE` and `SECRET` are filled in; without what
    /// differs each time.
    async fn say(&self, lines: &str) -> String {
        let (address, path) = self.place();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let lines = lines.replace("HERE", address);
        let lines = lines.replace("SECRET", path.trim_end_matches('/'));
        let request = lines.replace('\n', "\r\n") + "\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
            .split("\r\n")
            .filter(|line| !line.starts_with("date: ") && !line.starts_with("content-length: "))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// What came after the first pieces.
    async fn more(&self, from: usize) -> Value {
        let line = format!("GET /SECRET/more?from={from} HTTP/1.1\nHost: HERE");
        let answer = self.say(&line).await;
        let (head, body) = answer.split_once("\n\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\n"), "{head}");
        serde_json::from_str(body).unwrap()
    }
}

/// The lines of the golden run.
fn golden() -> Vec<Vec<u8>> {
    let bytes = fs::read(Path::new(GOLDEN)).unwrap();
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

#[tokio::test]
async fn only_who_knows_the_address_reads_and_nothing_else_is_there() {
    let served = Served::new(&golden().concat()).await;
    let page = served.say("GET /SECRET/ HTTP/1.1\nHost: HERE").await;
    let (head, body) = page.split_once("\n\n").unwrap();
    let hashes = regex::Regex::new("'sha256-[A-Za-z0-9+/=]+'").unwrap();
    insta::assert_snapshot!(hashes.replace_all(head, "HASH"), @"
    HTTP/1.1 200 OK
    content-type: text/html; charset=utf-8
    cache-control: no-store
    x-content-type-options: nosniff
    referrer-policy: no-referrer
    x-frame-options: DENY
    cross-origin-resource-policy: same-origin
    cross-origin-opener-policy: same-origin
    content-security-policy: default-src 'none'; script-src HASH HASH; style-src HASH; connect-src 'self'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'; frame-ancestors 'none'
    connection: close
    ");
    assert!(body.contains("Find the bug and mend it"), "{body:.200}");
    assert!(!body.contains(&served.directory.path().display().to_string()));

    // What is asked for, and the first line of the answer.
    for (lines, expected) in [
        ("GET /SECRET/ HTTP/1.1\nHost: localhost", "200 OK"),
        ("GET /SECRET/ HTTP/1.1\nHost: LOCALHOST:80", "200 OK"),
        ("GET /SECRET/ HTTP/1.1\nHost: [::1]:80", "200 OK"),
        ("GET /SECRET/?x=1 HTTP/1.1\nHost: 10.0.0.1", "200 OK"),
        // A name that somebody made to lead here.
        (
            "GET /SECRET/ HTTP/1.1\nHost: evil.example",
            "421 Misdirected Request",
        ),
        (
            "GET /SECRET/ HTTP/1.1\nHost: 127.0.0.1.evil.example:80",
            "421 Misdirected Request",
        ),
        (
            "GET /SECRET/ HTTP/1.1\nHost: localhost:80:80",
            "421 Misdirected Request",
        ),
        (
            "GET /SECRET/ HTTP/1.1\nHost: HERE\nHost: HERE",
            "421 Misdirected Request",
        ),
        (
            "GET /SECRET/ HTTP/1.0\nAccept: */*",
            "421 Misdirected Request",
        ),
        // Other places.
        ("GET / HTTP/1.1\nHost: HERE", "404 Not Found"),
        ("GET /SECRET HTTP/1.1\nHost: HERE", "404 Not Found"),
        ("GET /more?from=0 HTTP/1.1\nHost: HERE", "404 Not Found"),
        (
            "GET /00000000000000000000000000000000/ HTTP/1.1\nHost: HERE",
            "404 Not Found",
        ),
        (
            "GET /SECRET/run.jsonl HTTP/1.1\nHost: HERE",
            "404 Not Found",
        ),
        (
            "GET /SECRET/../../etc/passwd HTTP/1.1\nHost: HERE",
            "404 Not Found",
        ),
        ("GET /SECRET/%2e%2e/ HTTP/1.1\nHost: HERE", "404 Not Found"),
        (
            "GET /SECRET//etc/passwd HTTP/1.1\nHost: HERE",
            "404 Not Found",
        ),
        // Other ways.
        (
            "POST /SECRET/ HTTP/1.1\nHost: HERE\nContent-Length: 0",
            "405 Method Not Allowed",
        ),
        (
            "HEAD /SECRET/ HTTP/1.1\nHost: HERE",
            "405 Method Not Allowed",
        ),
        ("OPTIONS * HTTP/1.1\nHost: HERE", "405 Method Not Allowed"),
        ("GET /SECRET/more HTTP/1.1\nHost: HERE", "400 Bad Request"),
        (
            "GET /SECRET/more?from=-1 HTTP/1.1\nHost: HERE",
            "400 Bad Request",
        ),
        ("nonsense", "400 Bad Request"),
    ] {
        let answer = served.say(lines).await;
        let status = answer.lines().next().unwrap_or_default();
        assert_eq!(
            status.split_once(' ').map(|(_, status)| status),
            Some(expected),
            "{lines}"
        );
        // Whatever is said, it is held to the same policy; but for what is no HTTP at all.
        let bound = answer.contains("\ncontent-security-policy: default-src 'none'");
        assert!(bound || lines == "nonsense", "{answer}");
        if expected != "200 OK" {
            assert!(!answer.contains("Find the bug"), "{lines}");
        }
    }
}

/// A note that is told from the others.
fn note(id: u64) -> Vec<u8> {
    let text = format!("note {id}");
    let event = Event::Note(Note::Warning { text });
    jsonl::encode(&Entry {
        id: EntryId(id),
        at: At(0),
        event,
    })
    .unwrap()
}

#[tokio::test]
async fn the_page_grows_by_whole_lines() {
    let lines = golden();
    let (first, rest) = lines.split_at(20);
    let served = Served::new(&first.concat()).await;

    // Who asks before it is there waits for it; a line that is not finished is not shown.
    let (head, tail) = rest[0].split_at(30);
    served.write(head);
    let (more, ()) = tokio::join!(served.more(1), async {
        let all = served.more(0).await;
        assert_eq!(all["more"].as_array().unwrap().len(), 1, "{all}");
        assert_eq!((&all["next"], &all["trouble"]), (&1.into(), &Value::Null));
        served.write(tail);
    });
    assert_eq!(more["next"], 2);
    assert!(more["more"][0].to_string().contains("21"), "{more}");

    served.write(&rest[1..].concat());
    let more = served.more(2).await;
    assert_eq!(more["next"], 3);
    assert!(
        more["more"][0].to_string().contains("passes now"),
        "{more:.2000}"
    );

    // Damage is told by its place, and reading goes on.
    let last = u64::try_from(lines.len()).unwrap();
    served.write(&[b"nonsense\n", &note(last + 2)[..]].concat());
    let more = served.more(3).await;
    let damage = ["line 73: no checksum", "line 74: entry 73 is missing"];
    assert_eq!(more["more"][0]["damage"], Value::from(&damage[..]));
    assert!(more["more"][0].to_string().contains("note 74"), "{more}");

    // Who opened the page in the beginning asks for everything that came since.
    let more = served.more(1).await;
    assert_eq!(
        (more["more"].as_array().unwrap().len(), &more["next"]),
        (3, &4.into())
    );

    // Nothing is taken from what is not this transcript any more.
    fs::write(served.path(), note(1)).unwrap();
    let more = served.more(4).await;
    assert_eq!(more["trouble"], "the transcript has become shorter");
    assert_eq!(served.more(5).await["more"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn an_address_in_use_is_told() {
    let served = Served::new(&golden().concat()).await;
    let address: SocketAddr = served.place().0.parse().unwrap();
    let follow = Follow::open(&served.path()).unwrap();
    let error = Server::serve(address, follow, Masks::default())
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen at {address}"));
}
