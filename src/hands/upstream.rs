//! The proxy of the user's own network, where hosts outside are reached through one.
//!
//! Which host is asked for is decided before; what a name leads to is looked at here as far as this
//! machine knows it, and by the proxy beyond that.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, lookup_host};

use crate::hands::proxy;

/// How long a name may be looked up that only the proxy may know.
const LOOKUP: Duration = Duration::from_secs(2);

/// The proxies that the user's variables name, and what is reached without them.
#[derive(Clone, Debug)]
pub struct Upstream(Arc<Matcher>);

/// A proxy is spoken to in a way that is not known here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{variable} names a proxy of the kind {scheme}://, and single hosts can be reached through http:// \
     alone; change or unset it, or say --network=open"
)]
pub struct UpstreamError {
    variable: String,
    scheme: String,
}

impl Upstream {
    /// Those of these variables; `None` if they name none.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, UpstreamError> {
        let named = |names: [&str; 2]| {
            let set = names.map(|name| Some((name.to_owned(), variable(name)?)));
            let mut set = set.into_iter().flatten();
            set.find(|(_, value)| !value.is_empty())
        };
        let all = named(["ALL_PROXY", "all_proxy"]);
        let http = named(["HTTP_PROXY", "http_proxy"]).or_else(|| all.clone());
        let https = named(["HTTPS_PROXY", "https_proxy"]).or(all);
        for (variable, value) in [&http, &https].into_iter().flatten() {
            let scheme = value.split_once("://").map_or("http", |(scheme, _)| scheme);
            if !scheme.eq_ignore_ascii_case("http") {
                return Err(UpstreamError {
                    variable: variable.clone(),
                    scheme: scheme.to_owned(),
                });
            }
        }
        if http.is_none() && https.is_none() {
            return Ok(None);
        }
        let value =
            |named: Option<(String, String)>| named.map_or(String::new(), |(_, value)| value);
        let matcher = Matcher::builder()
            .http(value(http))
            .https(value(https))
            .no(value(named(["NO_PROXY", "no_proxy"])))
            .build();
        Ok(Some(Self(Arc::new(matcher))))
    }

    /// The proxy through which this host is reached; `None`: it is reached without one. With `plain`
    /// requests are sent to it as they are.
    pub(super) fn way(&self, host: &str, port: u16, plain: bool) -> Option<Way> {
        let authority = authority(host, port);
        let scheme = if plain { "http" } else { "https" };
        let wanted: Uri = format!("{scheme}://{authority}/").parse().ok()?;
        let proxy = self.0.intercept(&wanted)?;
        Some(Way {
            proxy,
            authority,
            plain,
        })
    }
}

/// The way to a host through a proxy.
#[derive(Debug)]
pub(super) struct Way {
    proxy: Intercept,
    authority: String,
    plain: bool,
}

impl Way {
    /// Connects; with what the host said already.
    pub(super) async fn connect(
        &self,
        host: &str,
        port: u16,
        hosts: &[String],
    ) -> io::Result<(TcpStream, Vec<u8>)> {
        // What only the proxy knows lies beyond it.
        let known = tokio::time::timeout(LOOKUP, lookup_host((host, port))).await;
        if let Ok(Ok(known)) = known {
            let known: Vec<SocketAddr> = known.collect();
            if !known.iter().any(|address| proxy::leads(*address, hosts)) {
                return Err(io::Error::other(proxy::NOWHERE));
            }
        }
        let at = self.proxy.uri();
        let place = (at.host().unwrap_or_default(), at.port_u16().unwrap_or(80));
        let mut stream = TcpStream::connect(place).await?;
        if self.plain {
            return Ok((stream, Vec::new()));
        }
        let Self { authority, .. } = self;
        let head = format!(
            "CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n{}\r\n",
            self.authorization()
        );
        stream.write_all(head.as_bytes()).await?;
        let (answer, early) = proxy::head(&mut stream).await?;
        let answer = String::from_utf8_lossy(&answer);
        let first = answer.lines().next().unwrap_or_default();
        if first
            .split(' ')
            .nth(1)
            .is_some_and(|code| code.starts_with('2'))
        {
            Ok((stream, early))
        } else {
            Err(io::Error::other(format!(
                "the proxy of your network answered {first}"
            )))
        }
    }

    /// The head of a request, as the proxy is to be sent it.
    pub(super) fn head(&self, head: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(head);
        let (Some((method, rest)), true) = (text.split_once(' '), self.plain) else {
            return head.to_vec();
        };
        let (target, rest) = rest.split_once("\r\n").unwrap_or((rest, ""));
        let authority = &self.authority;
        let authorization = self.authorization();
        format!("{method} http://{authority}{target}\r\n{authorization}{rest}").into_bytes()
    }

    /// Who asks, as a line of a head; nothing if the proxy asks nobody.
    fn authorization(&self) -> String {
        let basic = self
            .proxy
            .basic_auth()
            .and_then(|basic| basic.to_str().ok());
        basic.map_or(String::new(), |basic| {
            format!("proxy-authorization: {basic}\r\n")
        })
    }
}

/// A host and its port, as they are written.
pub(super) fn authority(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_users_variables_mean_is_what_is_done() {
        let of = |set: &[(&str, &str)]| {
            Upstream::of(|name| {
                let value = set.iter().find(|(known, _)| *known == name);
                value.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(
            of(&[("PATH", "/bin"), ("HTTPS_PROXY", "")])
                .unwrap()
                .is_none()
        );
        assert_eq!(
            of(&[("all_proxy", "socks5://h:1")])
                .unwrap_err()
                .to_string(),
            "all_proxy names a proxy of the kind socks5://, and single hosts can be reached through \
             http:// alone; change or unset it, or say --network=open"
        );
        let set = [
            ("HTTPS_PROXY", "http://u:p@proxy.corp:3128"),
            ("NO_PROXY", ".corp,10.0.0.0/8"),
        ];
        let upstream = of(&set).unwrap().unwrap();
        for (host, plain, through) in [
            ("crates.io", false, true),
            ("crates.io", true, false),
            ("git.corp", false, false),
            ("10.1.2.3", false, false),
        ] {
            assert_eq!(
                upstream.way(host, 443, plain).is_some(),
                through,
                "{host} {plain}"
            );
        }
        let plain = of(&[("HTTP_PROXY", "proxy.corp:3128")]).unwrap().unwrap();
        let way = plain.way("crates.io", 80, true).unwrap();
        let head = way.head(b"GET /a HTTP/1.1\r\nhost: crates.io\r\n\r\n");
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "GET http://crates.io:80/a HTTP/1.1\r\nhost: crates.io\r\n\r\n"
        );
    }

    #[tokio::test]
    async fn a_host_is_reached_through_the_users_proxy() {
        let there = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://u:p@{}", there.local_addr().unwrap());
        let upstream = Upstream::of(|name| (name == "HTTPS_PROXY").then(|| address.clone()));
        let upstream = upstream.unwrap().unwrap();
        let hosts = ["1.1.1.1".to_owned()];
        let served = tokio::spawn(async move {
            let mut heads = Vec::new();
            for answer in ["200 Fine\r\n\r\nhello", "407 Who are you\r\n\r\n"] {
                let (mut stream, _) = there.accept().await.unwrap();
                heads.push(proxy::head(&mut stream).await.unwrap().0);
                let answer = format!("HTTP/1.1 {answer}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            String::from_utf8(heads.swap_remove(0)).unwrap()
        });
        let way = |host: &str| upstream.way(host, 443, false).unwrap();
        let (_, early) = way("1.1.1.1")
            .connect("1.1.1.1", 443, &hosts)
            .await
            .unwrap();
        assert_eq!(early, b"hello");
        let refused = way("1.1.1.1").connect("1.1.1.1", 443, &hosts).await;
        assert_eq!(
            refused.unwrap_err().to_string(),
            "the proxy of your network answered HTTP/1.1 407 Who are you"
        );
        // What is known to lead to this machine is not asked for.
        let here = way("10.0.0.1").connect("10.0.0.1", 443, &hosts).await;
        assert_eq!(here.unwrap_err().to_string(), proxy::NOWHERE);
        assert_eq!(
            served.await.unwrap(),
            "CONNECT 1.1.1.1:443 HTTP/1.1\r\nhost: 1.1.1.1:443\r\nproxy-authorization: Basic \
             dTpw\r\n\r\n"
        );
    }
}
