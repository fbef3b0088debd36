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
use crate::hands::upstream::Upstream;

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

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    host: String,
    port: u16,
    /// What is sent on first; `None`: the connection itself was asked for.
    head: Option<Vec<u8>>,
}

/// Passes one connection on, or refuses it.
async fn pass(mut stream: TcpStream, (hosts, upstream, asking): &Ways) -> io::Result<()> {
    let (head, rest) = tokio::time::timeout(LIMIT, head(&mut stream)).await??;
    let Some(wanted) = wanted(&head) else {
        return refuse(&mut stream, "400 Bad Request", "this is a proxy").await;
    };
    let Wanted { host, port, head } = wanted;
    let mut hosts = hosts.clone();
    if !is_allowed(&host, port, &hosts)
        && let Some(asking) = asking
        && asking.may_connect(&host, port).await
    {
        let brackets = if host.contains(':') {
            ("[", "]")
        } else {
            ("", "")
        };
        hosts.push(format!("{}{host}{}:{port}", brackets.0, brackets.1));
    }
    if !is_allowed(&host, port, &hosts) {
        let text = if WEB.iter().any(|usual| is_allowed(&host, *usual, &hosts)) {
            format!("{host} is allowed, but not its port {port}; --network={host}:{port} allows it")
        } else {
            format!("{host} is not among the hosts that --network allows")
        };
        return refuse(&mut stream, "403 Not a host of this sandbox", &text).await;
    }
    let through = upstream.as_ref();
    let through = through.and_then(|upstream| upstream.way(&host, port, head.is_some()));
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
    there.write_all(&rest).await?;
    copy_bidirectional(&mut stream, &mut there).await?;
    Ok(())
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

/// What a head asks for; `None` if that cannot be told.
fn wanted(head: &[u8]) -> Option<Wanted> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    // A line end of another kind could hide a second request from us that the server sees.
    if lines.clone().any(|line| line.contains(['\r', '\n', '\0'])) {
        return None;
    }
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?, first.next()?);
    if method == "CONNECT" {
        let (host, port) = place(target, None)?;
        return Some(Wanted {
            host,
            port,
            head: None,
        });
    }
    let rest = target.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (host, port) = place(authority, Some(80))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    // Whatever host the head names besides, it is asked of the one that was judged.
    let mut sent = format!("{method} {slash}{path} HTTP/1.1\r\nhost: {authority}\r\n");
    let of_proxies = |line: &&str| {
        let name = line
            .split(':')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        name.starts_with("proxy-") || ["connection", "keep-alive", "host"].contains(&name.trim())
    };
    for line in lines.filter(|line| !line.is_empty() && !of_proxies(line)) {
        sent.push_str(line);
        sent.push_str("\r\n");
    }
    // The next request may be for another host.
    sent.push_str("connection: close\r\n\r\n");
    Some(Wanted {
        host,
        port,
        head: Some(sent.into_bytes()),
    })
}

/// A host and its port.
fn place(authority: &str, usual: Option<u16>) -> Option<(String, u16)> {
    if authority.contains('@') {
        return None;
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    let port = match port {
        Some(port) => port.parse().ok()?,
        None => usual?,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty()).then_some((host, port))
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
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
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
            let translated = (first == 0x64 && second == 0xff9b)
                || first == 0x2002
                || (first == 0x2001 && second == 0);
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || translated)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_and_sent_on_as_one_of_the_host() {
        let read = |text: &str| {
            wanted(text.as_bytes()).map(|wanted| {
                let head = wanted.head.map(|head| String::from_utf8(head).unwrap());
                (wanted.host, wanted.port, head.unwrap_or_default())
            })
        };
        let expected =
            |host: &str, port, head: &str| Some((host.to_owned(), port, head.to_owned()));
        for (text, wanted) in [
            (
                "CONNECT Crates.io:443 HTTP/1.1\r\n\r\n",
                expected("crates.io", 443, ""),
            ),
            (
                "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
                expected("::1", 443, ""),
            ),
            ("CONNECT crates.io HTTP/1.1\r\n\r\n", None),
            ("GET /local HTTP/1.1\r\n\r\n", None),
            ("GET http://u@h/ HTTP/1.1\r\n\r\n", None),
            (
                "GET http://h:81/a?b HTTP/1.1\r\nHost: h\r\nProxy-Connection: x\r\nConnection: x\r\n\r\n",
                expected(
                    "h",
                    81,
                    "GET /a?b HTTP/1.1\r\nhost: h:81\r\nconnection: close\r\n\r\n",
                ),
            ),
            (
                "GET http://h?q HTTP/1.1\r\n\r\n",
                expected(
                    "h",
                    80,
                    "GET /?q HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n",
                ),
            ),
            (
                "GET http://h/ HTTP/1.1\r\nHost: other\r\nHOST : more\r\n\r\n",
                expected(
                    "h",
                    80,
                    "GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n",
                ),
            ),
            ("GET http://h/ HTTP/1.1\r\nA: b\nHost: other\r\n\r\n", None),
            ("GET http://h/ HTTP/1.1\r\nA: b\rHost: other\r\n\r\n", None),
            ("CONNECT h.:443 HTTP/1.1\r\n\r\n", expected("h", 443, "")),
            (
                "CONNECT H%6c:443 HTTP/1.1\r\n\r\n",
                expected("h%6c", 443, ""),
            ),
            ("CONNECT u@h:443 HTTP/1.1\r\n\r\n", None),
            ("CONNECT h:99999 HTTP/1.1\r\n\r\n", None),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }

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
            ("198.18.0.1", false),
            ("2606:4700::1111", true),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_leads_nowhere() {
        let hosts = ["localhost".to_owned()];
        let refused = connect("localhost", 1, &hosts).await.unwrap_err();
        assert_eq!(refused.to_string(), NOWHERE);
        let there = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = there.local_addr().unwrap().port();
        let named = [format!("127.0.0.1:{port}")];
        assert!(connect("127.0.0.1", port, &named).await.is_ok());
    }
}
