//! The page of a run that is still going on, on a port: it grows as the transcript does.
//!
//! Two things can be had, and nothing else of this machine: the page, and what came since. Both lie
//! behind a secret in the path, since whoever may connect to a port of this machine, another of its
//! users or a web page whose name was made to lead here, is not always who may read the transcript.
//!
//! Nothing runs here but on demand: who asks for more waits while the file is looked at.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::page::growing::Growing;
use crate::page::{Life, html, policy};
use crate::record::{Follow, FollowError};
use crate::secret::Masks;

/// How often the file is looked at while somebody waits.
const LOOK: Duration = Duration::from_millis(150);

/// How long who asks for more waits until nothing is the answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(20);

/// How many connections there are at most.
const CONNECTIONS: usize = 128;

/// What every answer says about itself, beside the policy for its content.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

/// A page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be had.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The secret of the path cannot be made.
    #[error("this system gives no random numbers")]
    Random,
    /// The transcript cannot be read.
    #[error(transparent)]
    Follow(#[from] FollowError),
}

/// A page that is served. It ends when this is dropped.
pub struct Server {
    /// The address of the page on this machine. Whoever knows it, and reaches it, can read the run.
    pub url: String,
    /// Its address on other machines, if that is another one and this machine knows by what address
    /// others reach it.
    pub elsewhere: Option<String>,
    serving: JoinHandle<()>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Server {
    /// Serves the page of a transcript at this address, behind these masks. Must be called within a
    /// runtime.
    pub async fn serve(
        address: SocketAddr,
        follow: Follow,
        masks: Masks,
    ) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let site = Site {
            secret: secret()?,
            growing: Mutex::new(Growing::new(follow, masks)?),
        };
        let url = |ip| {
            let address = SocketAddr::new(ip, address.port());
            format!("http://{address}/{}/", site.secret)
        };
        let here = reached_here(address.ip());
        let elsewhere = (here != address.ip()).then(|| reached_elsewhere(here));
        Ok(Self {
            url: url(here),
            elsewhere: elsewhere.flatten().map(url),
            serving: tokio::spawn(accept(listener, Arc::new(site))),
        })
    }

    /// Waits until it ends, which it does only if this machine lets it listen no longer.
    pub async fn ended(&mut self) {
        (&mut self.serving).await.ok();
    }
}

/// The address by which this machine reaches what listens at an address: "all of them" is none that a
/// browser can open.
fn reached_here(listened: IpAddr) -> IpAddr {
    match listened {
        IpAddr::V4(all) if all.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(all) if all.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V4(_) | IpAddr::V6(_) => listened,
    }
}

/// The address from which this machine would speak to others, found without a word to them.
fn reached_elsewhere(here: IpAddr) -> Option<IpAddr> {
    // Addresses kept for documents: nothing is sent to them, the system only says which way it would go.
    let (from, to): (IpAddr, IpAddr) = match here {
        IpAddr::V4(_) => (
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(192, 0, 2, 1).into(),
        ),
        IpAddr::V6(_) => (
            Ipv6Addr::UNSPECIFIED.into(),
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        ),
    };
    let socket = UdpSocket::bind((from, 0)).ok()?;
    socket.connect((to, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback() && !own.is_unspecified()).then_some(own)
}

/// What is behind the port.
struct Site {
    secret: String,
    growing: Mutex<Growing>,
}

impl Site {
    /// Looks at the file, then tells something of it. Files are read outside of the runtime.
    async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        tell: impl FnOnce(&Growing) -> T + Send + 'static,
    ) -> Option<T> {
        let site = Arc::clone(self);
        let told = tokio::task::spawn_blocking(move || {
            // What was read before a panic is whole.
            let mut growing = site.growing.lock().unwrap_or_else(PoisonError::into_inner);
            growing.grow();
            tell(&growing)
        });
        told.await.ok()
    }
}

/// 128 random bits.
fn secret() -> Result<String, ServeError> {
    let mut bytes = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| ServeError::Random)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

async fn accept(listener: TcpListener, site: Arc<Site>) {
    // What is still being answered ends with this.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS => {
                let Ok((stream, _)) = accepted else {
                    // Too many files are open, say: the next one may come through.
                    tokio::time::sleep(LOOK).await;
                    continue;
                };
                let site = Arc::clone(&site);
                connections.spawn(async move {
                    let service = service_fn(|request| answer(&site, request));
                    let served = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(HEAD)
                        .serve_connection(TokioIo::new(stream), service);
                    served.await.ok();
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn answer(
    site: &Arc<Site>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    const HTML: &str = "text/html; charset=utf-8";
    let plain = |status, text: &str| response(status, "text/plain; charset=utf-8", text.to_owned());
    if !is_known(request.headers()) {
        let text = "open this page by the address that undertext printed\n";
        return Ok(plain(StatusCode::MISDIRECTED_REQUEST, text));
    }
    if request.method() != Method::GET {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "there is only GET\n");
        let allowed = HeaderValue::from_static("GET");
        refused.headers_mut().insert(header::ALLOW, allowed);
        return Ok(refused);
    }
    let path = request.uri().path().strip_prefix('/').unwrap_or_default();
    let answered = match path.split_once('/') {
        Some((secret, "")) if is_same(secret, &site.secret) => {
            let page = site.look(|growing| html(growing.first(), Life::Live)).await;
            page.map(|page| response(StatusCode::OK, HTML, page))
        }
        Some((secret, "more")) if is_same(secret, &site.secret) => {
            let Some(from) = from(request.uri().query()) else {
                let text = "more?from=N, where N is the number of pieces that are there\n";
                return Ok(plain(StatusCode::BAD_REQUEST, text));
            };
            let more = more(site, from).await;
            more.map(|json| response(StatusCode::OK, "application/json", json))
        }
        Some(_) | None => return Ok(plain(StatusCode::NOT_FOUND, "there is nothing here\n")),
    };
    let failed = || {
        plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the page cannot be made\n",
        )
    };
    Ok(answered.unwrap_or_else(failed))
}

/// Whether the request is meant for us. A name of the web can be made to lead to this machine, and a
/// page of that name could then read what is served here; numbers and `localhost` cannot.
fn is_known(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        Some(_) | None => host,
    };
    let number = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || number.parse::<IpAddr>().is_ok()
}

/// Compares without telling by its time how much is right.
fn is_same(given: &str, secret: &str) -> bool {
    let differing = given.bytes().zip(secret.bytes()).map(|(a, b)| a ^ b);
    given.len() == secret.len() && differing.fold(0, |all, one| all | one) == 0
}

/// The number of pieces that are there already.
fn from(query: Option<&str>) -> Option<usize> {
    query?.strip_prefix("from=")?.parse().ok()
}

/// What came since, as soon as there is something.
async fn more(site: &Arc<Site>, from: usize) -> Option<String> {
    let wait = async {
        loop {
            if let Some(more) = site.look(move |growing| growing.more(from)).await? {
                return Some(more);
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    match tokio::time::timeout(PATIENCE, wait).await {
        Ok(more) => more,
        Err(_) => site.look(move |growing| growing.nothing(from)).await,
    }
}

fn response(status: StatusCode, kind: &'static str, body: String) -> hyper::Response<Full<Bytes>> {
    let mut response = hyper::Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let policy = format!("{}; frame-ancestors 'none'", policy(Life::Live));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}
