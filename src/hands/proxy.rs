//! The way to the hosts that tools may reach: a proxy in the brain.
//!
//! It listens in the network of the confined process, where nothing else leads out, and connects
//! from here. A host is reached by its name and only if the user named it; a name that leads to this
//! machine or to a private network leads nowhere, unless that address itself was named. Of a host that
//! was named without a port only those of the web are reached.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::task::JoinSet;

use crate::hands::asked::Asking;
use crate::hands::upstream::{Upstream, authority};
use crate::hands::wanted::{Body, Wanted, wanted};

/// The longest head of a request, in bytes.
const HEAD: usize = 16 << 10;

/// How long a head, and a connection, may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The ports of a host that was named without one.
const WEB: [u16; 2] = [80, 443];

/// How many connections there are at once.
const MOST: usize = 256;

/// Why a name leads nowhere.
pub(super) const NOWHERE: &str = "it leads to this machine or a private network";

/// The hosts that were named, the proxy of the user's own network, and who is asked for more.
type Ways = (Vec<String>, Option<Upstream>, Option<Arc<Asking>>);

/// Serves tools that ask for these hosts, for as long as it is polled.
pub(super) async fn serve(listener: TcpListener, ways: Ways) {
    let ways = Arc::new(ways);
    let mut open = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        while open.try_join_next().is_some() {}
        if open.len() < MOST {
            let ways = Arc::clone(&ways);
            open.spawn(async move {
                if let Err(error) = pass(stream, &ways).await {
                    tracing::debug!(%error, "proxy");
                }
            });
        }
    }
}

/// Passes one connection on, or refuses it.
async fn pass(mut stream: TcpStream, (hosts, upstream, asking): &Ways) -> io::Result<()> {
    let (head, rest) = tokio::time::timeout(LIMIT, head(&mut stream)).await??;
    let Some(wanted) = wanted(&head) else {
        return refuse(&mut stream, "400 Bad Request", "this is a proxy").await;
    };
    let Wanted {
        host,
        port,
        head,
        body,
    } = wanted;
    let mut hosts = hosts.clone();
    if !is_allowed(&host, port, &hosts)
        && let Some(asking) = asking
        && asking.may_connect(&host, port).await
    {
        hosts.push(authority(&host, port));
    }
    if !is_allowed(&host, port, &hosts) {
        let text = if WEB.iter().any(|usual| is_allowed(&host, *usual, &hosts)) {
            format!("{host} is allowed, but not its port {port}; --network={host}:{port} allows it")
        } else {
            let port = if WEB.contains(&port) {
                String::new()
            } else {
                format!(":{port}")
            };
            format!(
                "{host} is not among the hosts that --network allows; the user adds it with \
                 --network={host}{port}"
            )
        };
        return refuse(&mut stream, "403 Not a host of this sandbox", &text).await;
    }
    let through = upstream.as_ref();
    let through = through.and_then(|upstream| upstream.way(&host, port, head.is_some()));
    if through.is_some() && head.is_some() && body == Body::Open {
        let text = "through the proxy of this network a body needs a Content-Length";
        return refuse(&mut stream, "411 Length Required", text).await;
    }
    let connecting = async {
        match &through {
            Some(way) => way.connect(&host, port, &hosts).await,
            None => Ok((connect(&host, port, &hosts).await?, Vec::new())),
        }
    };
    let connected = tokio::time::timeout(LIMIT, connecting).await;
    let (mut there, early) = match connected.map_err(io::Error::from).flatten() {
        Ok(connected) => connected,
        Err(error) => {
            let text = format!("{host}: {error}");
            return refuse(&mut stream, "502 Bad Gateway", &text).await;
        }
    };
    match head {
        Some(head) => {
            let head = through.map_or(head.clone(), |way| way.head(&head));
            there.write_all(&head).await?;
        }
        None => stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?,
    }
    stream.write_all(&early).await?;
    match body {
        Body::Open => {
            there.write_all(&rest).await?;
            copy_bidirectional(&mut stream, &mut there).await?;
            Ok(())
        }
        Body::Bytes(length) => answer(stream, there, &rest, length).await,
    }
}

/// Sends a body of this length, and brings back what is answered. Whatever a program sends behind it would
/// be another request, which a proxy of the user's network could take for one to any host.
async fn answer(
    mut stream: TcpStream,
    mut there: TcpStream,
    rest: &[u8],
    length: u64,
) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let (mut answers, mut asks) = there.split();
    let mut said = rest.chain(read);
    let asking = async {
        tokio::io::copy(&mut (&mut said).take(length), &mut asks).await?;
        tokio::io::copy(&mut said, &mut tokio::io::sink()).await?;
        asks.shutdown().await?;
        std::future::pending::<io::Result<()>>().await
    };
    let answering = async {
        tokio::io::copy(&mut answers, &mut write).await?;
        write.shutdown().await
    };
    tokio::select! {
        ended = asking => ended,
        ended = answering => ended,
    }
}

async fn refuse(stream: &mut TcpStream, status: &str, text: &str) -> io::Result<()> {
    let length = text.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{text}\n"
    );
    stream.write_all(answer.as_bytes()).await
}

/// Reads a head, and what was sent right behind it.
pub(super) async fn head(stream: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((bytes, rest));
        }
        if bytes.len() > HEAD || stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// Whether the user named this host, by itself or by what it ends with, and this port of it.
fn is_allowed(host: &str, port: u16, hosts: &[String]) -> bool {
    hosts.iter().any(|named| {
        let (named, only) = parts(named);
        let named = named.trim_end_matches('.').to_ascii_lowercase();
        let is_named = match named.strip_prefix('*') {
            Some(end) => host.len() > end.len() && host.ends_with(end),
            None => host == named,
        };
        is_named && only.map_or(WEB.contains(&port), |only| only == port)
    })
}

/// The host that was named, and its port if one was.
fn parts(named: &str) -> (&str, Option<u16>) {
    if named.parse::<IpAddr>().is_ok() {
        return (named, None);
    }
    match named.rsplit_once(':') {
        // A port that is none allows none.
        Some((host, port)) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            (host, Some(port.parse().unwrap_or(0)))
        }
        None => (named, None),
    }
}

/// Connects to the first address of the host that may be reached.
async fn connect(host: &str, port: u16, hosts: &[String]) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = lookup_host((host, port)).await?.collect();
    let mut last = io::Error::other(NOWHERE);
    for address in addresses
        .into_iter()
        .filter(|address| leads(*address, hosts))
    {
        match TcpStream::connect(address).await {
            Ok(stream) if is_public(address.ip()) && is_here(&stream) => {}
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whether a connection leads to this machine, which may have an address of the public network.
fn is_here(stream: &TcpStream) -> bool {
    let ends = stream.local_addr().ok().zip(stream.peer_addr().ok());
    ends.is_none_or(|(here, there)| here.ip() == there.ip())
}

/// Whether an address may be reached: one of the public network, or one that was named itself.
pub(super) fn leads(address: SocketAddr, hosts: &[String]) -> bool {
    let mut named = hosts.iter().map(|named| parts(named));
    is_public(address.ip())
        || named.any(|(host, only)| {
            let port = address.port();
            host.parse() == Ok(address.ip())
                && only.map_or(WEB.contains(&port), |only| only == port)
        })
}

/// Whether an address is one of the public network.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, third, _] = address.octets();
            let shared = first == 100 && (64..128).contains(&second);
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_broadcast()
                || address.is_documentation()
                || address.is_unspecified()
                || address.is_multicast()
                || first == 0
                || first >= 240
                || shared
                || (first == 192 && second == 0 && third == 0)
                || (first == 198 && (second == 18 || second == 19)))
        }
        IpAddr::V6(address) => {
            if let Some(mapped) = address.to_ipv4() {
                return is_public(mapped.into());
            }
            let [first, second, ..] = address.segments();
            // Translated, and of tunnels: they may lead to what an older address would.
            let translated = first == 0x2002 || (first == 0x2001 && second == 0);
            let documentation =
                (first == 0x2001 && second == 0xdb8) || (first == 0x3fff && second < 0x1000);
            // All others are of one machine, link or site, or nobody's yet.
            first & 0xe000 == 0x2000 && !translated && !documentation
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_that_were_named_are_reached() {
        let hosts = [
            "Crates.io.",
            "*.npmjs.org",
            "git.example.org:22",
            "[::1]:8080",
            "::2",
        ];
        let hosts = hosts.map(str::to_owned);
        for (host, port, allowed) in [
            ("crates.io", 443, true),
            ("crates.io", 80, true),
            ("crates.io", 22, false),
            ("evil-crates.io", 443, false),
            ("crates.io.evil.com", 443, false),
            ("static.crates.io", 443, false),
            ("registry.npmjs.org", 443, true),
            ("npmjs.org", 443, false),
            ("evilnpmjs.org", 443, false),
            ("git.example.org", 22, true),
            ("git.example.org", 443, false),
            ("::1", 8080, true),
            ("::1", 443, false),
            ("::2", 443, true),
            // The address by which clouds tell their machines secrets, in every spelling.
            ("169.254.169.254", 80, false),
            ("2852039166", 80, false),
            ("0xa9fea9fe", 80, false),
            ("169.254.43518", 80, false),
            ("0251.0376.0251.0376", 80, false),
            ("::ffff:169.254.169.254", 80, false),
            ("::ffff:a9fe:a9fe", 80, false),
            ("fd00:ec2::254", 80, false),
            ("metadata.google.internal", 80, false),
        ] {
            assert_eq!(is_allowed(host, port, &hosts), allowed, "{host}:{port}");
        }
        // Wherever a name that was named leads.
        for (address, reached) in [
            ("169.254.169.254:80", false),
            ("[::ffff:169.254.169.254]:80", false),
            ("[fe80::a9fe:a9fe]:80", false),
            ("[fd00:ec2::254]:80", false),
            ("[64:ff9b::a9fe:a9fe]:80", false),
            ("100.100.100.200:80", false),
            ("[::1]:8080", true),
            ("[::1]:443", false),
            ("1.1.1.1:443", true),
        ] {
            assert_eq!(
                leads(address.parse().unwrap(), &hosts),
                reached,
                "{address}"
            );
        }
        for (address, public) in [
            ("1.1.1.1", true),
            ("127.0.0.1", false),
            ("10.0.0.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("fd00::1", false),
            ("fe80::1", false),
            ("64:ff9b::7f00:1", false),
            ("2002:7f00:1::", false),
            ("2001:0:1::", false),
            ("2001:db8::1", false),
            // By which some virtual machines reach the one that they run on.
            ("fec0::2", false),
            ("ff02::1", false),
            ("198.18.0.1", false),
            ("2606:4700::1111", true),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    #[tokio::test]
    async fn what_follows_a_request_is_not_sent_on() {
        let there = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = there.local_addr().unwrap().port();
        let here = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut asks = TcpStream::connect(here.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = here.accept().await.unwrap();
        let ways = (vec![format!("127.0.0.1:{port}")], None, None);
        let passed = tokio::spawn(async move { pass(stream, &ways).await });
        let more = "GET http://e.com/ HTTP/1.1\r\n\r\n";
        let text = format!(
            "POST http://127.0.0.1:{port}/ HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody{more}"
        );
        asks.write_all(text.as_bytes()).await.unwrap();
        asks.write_all(more.as_bytes()).await.unwrap();
        asks.shutdown().await.unwrap();
        let (mut served, _) = there.accept().await.unwrap();
        let (_, mut body) = head(&mut served).await.unwrap();
        while body.len() < 4 {
            served.read_buf(&mut body).await.unwrap();
        }
        served.write_all(b"answer").await.unwrap();
        served.shutdown().await.unwrap();
        let mut answer = String::new();
        asks.read_to_string(&mut answer).await.unwrap();
        passed.await.unwrap().ok();
        // Whatever came until the connection ended.
        served.read_to_end(&mut body).await.ok();
        assert_eq!((body.as_slice(), &*answer), (&b"body"[..], "answer"));
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_leads_nowhere() {
        let hosts = ["localhost".to_owned()];
        let refused = connect("localhost", 1, &hosts).await.unwrap_err();
        assert_eq!(refused.to_string(), NOWHERE);
        let there = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = there.local_addr().unwrap().port();
        let named = [format!("127.0.0.1:{port}")];
        let stream = connect("127.0.0.1", port, &named).await.unwrap();
        // It would, had it been had by a name.
        assert!(is_here(&stream));
    }
}
