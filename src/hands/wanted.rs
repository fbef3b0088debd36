//! What a program asks a proxy for, as far as that can be told without doubt.

use std::net::Ipv6Addr;

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) host: String,
    pub(super) port: u16,
    /// What is sent on first; `None`: the connection itself was asked for.
    pub(super) head: Option<Vec<u8>>,
    /// What may follow.
    pub(super) body: Body,
}

/// What a program may send behind a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes.
    Bytes(u64),
    /// Whatever it likes: the connection is its own, or its body tells by itself where it ends.
    Open,
}

/// What a head asks for; `None` if that cannot be told.
///
/// What others along the way could read in another way than it is read here is not passed on: another
/// line end or blank, a name with characters that names of hosts do not have, a line that goes on in the
/// next, a body of two lengths.
pub(super) fn wanted(head: &[u8]) -> Option<Wanted> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let is_control = |letter: char| letter.is_control() && letter != '\t';
    if lines.clone().any(|line| line.contains(is_control)) {
        return None;
    }
    let first: Vec<&str> = lines.next()?.split(' ').collect();
    let [method, target, version] = first[..] else {
        return None;
    };
    let is_token = |letter: u8| letter.is_ascii_alphanumeric() || b"-_".contains(&letter);
    let is_plain = !method.is_empty()
        && method.bytes().all(is_token)
        && target.bytes().all(|letter| letter.is_ascii_graphic())
        && ["HTTP/1.1", "HTTP/1.0"].contains(&version);
    if !is_plain {
        return None;
    }
    if method == "CONNECT" {
        let (host, port) = place(target, None)?;
        return Some(Wanted {
            host,
            port,
            head: None,
            body: Body::Open,
        });
    }
    let rest = target.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (host, port) = place(authority, Some(80))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    // Whatever host the head names besides, it is asked of the one that was judged.
    let mut sent = format!("{method} {slash}{path} HTTP/1.1\r\nhost: {authority}\r\n");
    let mut told = None;
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        let name = name.trim_ascii_end().to_ascii_lowercase();
        if name.is_empty() || name.starts_with([' ', '\t']) {
            return None;
        }
        if name.starts_with("proxy-") || ["connection", "keep-alive", "host"].contains(&&*name) {
            continue;
        }
        if ["content-length", "transfer-encoding"].contains(&&*name) {
            let body = match &*name {
                "content-length" => Body::Bytes(number(value.trim_ascii())?),
                _ => Body::Open,
            };
            if told.replace(body).is_some() {
                return None;
            }
        }
        sent.push_str(line);
        sent.push_str("\r\n");
    }
    // The next request may be for another host.
    sent.push_str("connection: close\r\n\r\n");
    Some(Wanted {
        host,
        port,
        head: Some(sent.into_bytes()),
        body: told.unwrap_or(Body::Bytes(0)),
    })
}

/// A host and its port.
fn place(authority: &str, usual: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    let port = match port {
        Some(port) => u16::try_from(number(port)?).ok()?,
        None => usual?,
    };
    if let Some(inner) = host.strip_prefix('[') {
        let address = inner.strip_suffix(']')?;
        address.parse::<Ipv6Addr>().ok()?;
        return Some((address.to_ascii_lowercase(), port));
    }
    let is_of_name = |letter: u8| letter.is_ascii_alphanumeric() || b".-_".contains(&letter);
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty() && host.bytes().all(is_of_name)).then_some((host, port))
}

/// A number in digits alone.
fn number(text: &str) -> Option<u64> {
    let is_one = text.bytes().all(|letter| letter.is_ascii_digit());
    text.parse().ok().filter(|_| is_one)
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
            ("CONNECT H%6c:443 HTTP/1.1\r\n\r\n", None),
            // What a proxy behind this one may take for another host.
            ("CONNECT e.com#.h:443 HTTP/1.1\r\n\r\n", None),
            ("CONNECT e.com\\.h:443 HTTP/1.1\r\n\r\n", None),
            ("CONNECT h:+443 HTTP/1.1\r\n\r\n", None),
            ("CONNECT [h]:443 HTTP/1.1\r\n\r\n", None),
            ("CONNECT [::1%1]:443 HTTP/1.1\r\n\r\n", None),
            ("CONNECT h:443 h2:443 HTTP/1.1\r\n\r\n", None),
            ("GET http://e.com#.h/ HTTP/1.1\r\n\r\n", None),
            ("GET\thttp://e.com/ http://h/ HTTP/1.1\r\n\r\n", None),
            ("GET http://h/\thttp://e.com/ HTTP/1.1\r\n\r\n", None),
            ("GET http://h/\u{85}HTTP/1.1 HTTP/1.1\r\n\r\n", None),
            ("GET http://h/\r\n\r\n", None),
            ("GET http://h/ HTTP/1.1\r\n .e.com\r\n\r\n", None),
            ("GET http://h/ HTTP/1.1\r\nA\r\n\r\n", None),
            (
                "GET http://h/ HTTP/1.1\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
                None,
            ),
            (
                "GET http://h/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                None,
            ),
            ("CONNECT u@h:443 HTTP/1.1\r\n\r\n", None),
            ("CONNECT h:99999 HTTP/1.1\r\n\r\n", None),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }
}
