//! TLS, HTTP/2 and proxies, as the environment of the program asks for them.

use std::convert::Infallible;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use futures::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use insta::assert_snapshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::cli::{Place, Ran, ended};

const AUTHORITY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/cli/certificates/authority.pem"
);
const CERTIFICATE: &[u8] = include_bytes!("certificates/server.pem");
const KEY: &[u8] = include_bytes!("certificates/server.key");
const EVENTS: [&str; 3] = [
    "data: {\"choices\":[{\"delta\":{\"content\":\"Hello over \"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"TLS.\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
];

/// What a server does with a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Answer,
    Silence,
    /// It resets the stream in the middle of the text.
    Tear,
}

/// A server with a certificate. It lives as long as the test's process.
struct Secure {
    at: SocketAddr,
    asked: Receiver<String>,
}

impl Secure {
    /// A server that speaks what of this the client prefers, and does this with its first
    /// requests; those after them it answers.
    fn new(protocols: &[&str], acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        let chain = CertificateDer::pem_slice_iter(CERTIFICATE).map(Result::unwrap);
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.collect(), PrivateKeyDer::from_pem_slice(KEY).unwrap())
            .unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (tell, asked) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(serve(listener, acceptor, acts, tell));
        });
        Self { at, asked }
    }

    fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/v1", self.at.port())
    }

    /// Each request so far: the connection it came on, its protocol, its key.
    fn asked(&self) -> Vec<String> {
        self.asked.try_iter().collect()
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, acts: Vec<Act>, tell: Sender<String>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let (acts, begun) = (Arc::new(acts), Arc::new(AtomicUsize::new(0)));
    for connection in 1.. {
        let (stream, _) = listener.accept().await.unwrap();
        let (acceptor, tell) = (acceptor.clone(), tell.clone());
        let (acts, begun) = (Arc::clone(&acts), Arc::clone(&begun));
        tokio::spawn(async move {
            // Who does not trust the certificate goes away.
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let service = service_fn(move |request: Request<Incoming>| {
                let number = begun.fetch_add(1, Ordering::SeqCst);
                let act = acts.get(number).copied().unwrap_or(Act::Answer);
                let tell = tell.clone();
                async move {
                    let key = request.headers().get("authorization").cloned();
                    let version = request.version();
                    request.into_body().collect().await.ok();
                    tell.send(format!("connection {connection}, {version:?}, {key:?}"))
                        .ok();
                    if act == Act::Silence {
                        std::future::pending::<()>().await;
                    }
                    let frame =
                        |event: &'static str| Frame::data(Bytes::from_static(event.as_bytes()));
                    let mut frames: Vec<_> = EVENTS.map(|event| Ok(frame(event))).into();
                    if act == Act::Tear {
                        frames.truncate(1);
                        frames.push(Err(io::Error::other("torn")));
                    }
                    let body = StreamBody::new(stream::iter(frames));
                    let response = Response::builder().header("content-type", "text/event-stream");
                    Ok::<_, Infallible>(response.body(body).unwrap())
                }
            });
            let stream = TokioIo::new(stream);
            // Connections end as clients like.
            if two {
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                server.serve_connection(stream, service).await.ok();
            } else {
                let server = hyper::server::conn::http1::Builder::new();
                server.serve_connection(stream, service).await.ok();
            }
        });
    }
}

/// A proxy on this machine. Names lead to where it is told.
struct Proxy {
    url: String,
    heads: Receiver<Vec<String>>,
}

impl Proxy {
    /// A proxy that connects to this server whatever name it is given, and answers itself what it
    /// can read.
    fn new(to: Option<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, heads) = mpsc::channel();
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                let head = head(&client);
                let connects = head[0].starts_with("CONNECT ");
                tell.send(head).ok();
                match to {
                    Some(to) if connects => tunnel(client, to),
                    _ => answer(client),
                }
            }
        });
        Self { url, heads }
    }

    /// The first lines that it read, and the keys with them.
    fn asked(&self) -> Vec<String> {
        let shown = |head: Vec<String>| {
            let key = head
                .iter()
                .find(|line| line.to_lowercase().starts_with("authorization"));
            let key = key.map_or("no key", String::as_str);
            format!("{}, {key}", head[0])
        };
        self.heads.try_iter().map(shown).collect()
    }
}

/// The lines before the body, which is left unread.
fn head(mut client: &TcpStream) -> Vec<String> {
    // Byte by byte, so that nothing of what follows is taken.
    let mut reader = BufReader::with_capacity(1, &mut client);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            return lines;
        }
        lines.push(line.trim().to_owned());
    }
}

fn tunnel(mut client: TcpStream, to: SocketAddr) {
    let server = TcpStream::connect(to).unwrap();
    client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
    let ways = [
        (client.try_clone().unwrap(), server.try_clone().unwrap()),
        (server, client),
    ];
    for (mut from, mut to) in ways {
        thread::spawn(move || std::io::copy(&mut from, &mut to).ok());
    }
}

fn answer(mut client: TcpStream) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let text = EVENTS.concat().replace("TLS", "a proxy");
    // What it sends is read to its end, so that closing does not cut the answer off.
    let body = thread::spawn({
        let mut client = client.try_clone().unwrap();
        move || std::io::copy(&mut client, &mut std::io::sink()).ok()
    });
    client.write_all(head.as_bytes()).unwrap();
    client.write_all(text.as_bytes()).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    body.join().unwrap();
}

/// Runs the program with this environment.
fn ask(place: &Place, url: &str, environment: &[(&str, &str)], more: &[&str]) -> Ran {
    let line = [&["run", "-m", "m", "--base-url", url], more, &["Hi."]].concat();
    let mut command: Command = place.command(&line);
    command.envs(environment.iter().copied());
    ended(command.spawn().unwrap())
}

const TWO: [&str; 2] = ["h2", "http/1.1"];

#[test]
fn http_2_is_spoken_where_it_is_offered_and_the_bundle_of_the_environment_is_trusted() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(AUTHORITY, directory.path().join("any.pem")).unwrap();
    let file = ("SSL_CERT_FILE", AUTHORITY);
    let dir = ("SSL_CERT_DIR", directory.path().to_str().unwrap());
    for (protocols, host, variable, version) in [
        (&TWO[..], "localhost", file, "HTTP/2.0"),
        (&TWO, "127.0.0.1", dir, "HTTP/2.0"),
        (&TWO[1..], "localhost", file, "HTTP/1.1"),
    ] {
        let (place, server) = (Place::new(), Secure::new(protocols, Vec::new()));
        let ran = ask(&place, &server.url(host), &[variable], &[]);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (0, "Hello over TLS.\n"),
            "{ran:?}"
        );
        assert_eq!(server.asked(), [format!("connection 1, {version}, None")]);
    }
}

/// Case 62: a certificate is as wrong the sixth time as the first.
#[test]
fn a_certificate_that_is_not_trusted_is_told_at_once() {
    // An authority is trusted, but another one.
    let others = "/etc/ssl/certs/ca-certificates.crt";
    let others = if std::path::Path::new(others).exists() {
        others
    } else {
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/it/cli/certificates/server.pem"
        )
    };
    let server = Secure::new(&TWO, Vec::new());
    let proxy = Proxy::new(Some(server.at));
    let told = |host: &str, bundle: &str| {
        let place = Place::new();
        let environment = [("SSL_CERT_FILE", bundle), ("HTTPS_PROXY", &proxy.url)];
        let ran = ask(&place, &server.url(host), &environment, &[]);
        assert_eq!(server.asked(), [""; 0]);
        let lines: Vec<&str> = ran
            .err
            .lines()
            .filter(|line| line.contains("cert"))
            .collect();
        format!("exit {}\n{}", ran.code, place.plain(&lines.join("\n")))
    };
    assert_snapshot!(told("localhost", others), @"
    exit 4
    the provider failed for good: the server's certificate is not trusted: UnknownIssuer; SSL_CERT_FILE can name a file of authorities to trust
    ");
    assert_snapshot!(told("other.test", AUTHORITY), @r#"
    exit 4
    the provider failed for good: the server's certificate is not trusted: certificate not valid for name "other.test"; certificate is only valid for DnsName("localhost"), DnsName("model.test"), IpAddress(127.0.0.1) or IpAddress(0::1)
    "#);
    assert_eq!(proxy.asked().len(), 1);
    assert_snapshot!(told("localhost", "/nowhere.pem"), @"
    exit 2
    undertext: cannot set up connections; SSL_CERT_FILE and SSL_CERT_DIR, if set, must name certificates to trust: builder error: unexpected error: No CA certificates were loaded from the system
    ");
}

/// Cases 62 and 63 over HTTP/2, where a stalled connection would be taken again.
#[test]
fn what_stalled_or_was_torn_is_asked_again() {
    let place = Place::new();
    let server = Secure::new(&TWO, vec![Act::Silence, Act::Tear]);
    let soon = ["--set", "model.timeouts.bytes=1s"];
    let ran = ask(
        &place,
        &server.url("localhost"),
        &[("SSL_CERT_FILE", AUTHORITY)],
        &soon,
    );
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "Hello over TLS.\n"),
        "{ran:?}"
    );
    assert_eq!(
        server.asked(),
        [1, 2, 2].map(|number| format!("connection {number}, HTTP/2.0, None"))
    );
}

/// Case 62: a server that speaks no TLS may speak it after a moment, behind a balancer.
#[test]
fn a_handshake_that_fails_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let (tell, greeted) = mpsc::channel();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            assert!(client.read(&mut [0; 4096]).unwrap() > 0);
            tell.send(()).unwrap();
            client
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .unwrap();
        }
    });
    let place = Place::new();
    let twice = ["--set", "model.retries.attempts=2"];
    let ran = ask(&place, &url, &[("SSL_CERT_FILE", AUTHORITY)], &twice);
    assert_eq!((ran.code, greeted.try_iter().count()), (4, 2), "{ran:?}");
    let lines = ran.err.lines().filter(|line| line.contains("for good"));
    assert_snapshot!(lines.collect::<String>(), @"the provider failed for good: cannot connect: received corrupt message of type InvalidContentType");
}

#[test]
fn proxies_come_from_the_environment_and_leave_this_machine_alone() {
    let keyed = ["--set", "model.api_key_env=SECRET_KEY"];
    // The last is an address that leads nowhere.
    let (name, nowhere) = ("model.test", "255.255.255.255");
    for (variables, host, asked) in [
        (&["HTTP_PROXY"][..], name, 1),
        (&["http_proxy"], name, 1),
        (&["ALL_PROXY"], name, 1),
        (&["HTTPS_PROXY"], nowhere, 0),
        (&["HTTP_PROXY", "NO_PROXY"], nowhere, 0),
    ] {
        let (place, proxy) = (Place::new(), Proxy::new(None));
        let value = |name| {
            if name == "NO_PROXY" {
                nowhere
            } else {
                proxy.url.as_str()
            }
        };
        let environment: Vec<_> = variables.iter().map(|name| (*name, value(*name))).collect();
        let once = [&keyed[..], &["--set", "model.retries.attempts=1"]].concat();
        let ran = ask(&place, &format!("http://{host}/v1"), &environment, &once);
        let shown = "POST http://model.test/v1/chat/completions HTTP/1.1, authorization: Bearer sk-very-secret";
        assert_eq!(proxy.asked(), vec![shown; asked], "{variables:?} {ran:?}");
        assert_eq!(ran.code == 0, asked == 1, "{ran:?}");
    }
    for (host, asked) in [("model.test", 1), ("localhost", 0), ("127.0.0.1", 0)] {
        let server = Secure::new(&TWO, Vec::new());
        let (place, proxy) = (Place::new(), Proxy::new(Some(server.at)));
        let environment = [
            ("SSL_CERT_FILE", AUTHORITY),
            ("HTTPS_PROXY", proxy.url.as_str()),
            ("ALL_PROXY", proxy.url.as_str()),
        ];
        let ran = ask(&place, &server.url(host), &environment, &keyed);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (0, "Hello over TLS.\n"),
            "{ran:?}"
        );
        // The proxy sees neither the request nor the key.
        let shown = format!("CONNECT model.test:{} HTTP/1.1, no key", server.at.port());
        assert_eq!(proxy.asked(), vec![shown; asked], "{host}");
        let seen = "connection 1, HTTP/2.0, Some(\"Bearer sk-very-secret\")";
        assert_eq!(server.asked(), [seen]);
    }
}
