//! Chat Completions and Responses over HTTP, for any server that speaks them.
//!
//! async-openai knows where a request goes and with which headers, and drives a service of ours
//! that puts the exact bytes in, sends them, and takes the answer away unread. Its own way of
//! reading would lose the status and the headers of a failure, would not tell a torn stream from
//! a whole one, and would buffer without bound; the answer is read by `reading`
//! instead. It does not retry either: that is decided by the step.

use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use async_openai::traits::RequestOptionsBuilder as _;
use futures::stream::{self, BoxStream, StreamExt as _};
use hyper::body::Bytes;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};

use crate::model::assemble::Bounds;
use crate::model::connect::{self, Connections};
use crate::model::intake::Intake;
use crate::model::listing::{self, Listed};
use crate::model::loose::{Object, Value};
use crate::model::reading::{self, Reading, Stage};
use crate::model::said::one_line;
use crate::model::timers::{Late, Timeouts, Timers};
use crate::model::{Ask, Delta, Fault, Model, Reply, overflow, usage};
use crate::setup::{Api, Profile};
use crate::transcript::FaultClass;

/// The shortest beginning of a key, in characters, that is as secret as the whole.
const BEGINNING: usize = 16;
/// The shortest header, or value in a query, that may be a secret, in bytes.
const SECRET_BYTES: usize = 16;

/// A key, which is shown to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// The key without the white space around it.
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// The text with every occurrence of the key replaced, and every long beginning of it: a text
    /// that was cut may end within the key.
    fn redact(&self, text: &str) -> String {
        if self.0.len() < 4 {
            return text.to_owned();
        }
        let beginning = self.0.char_indices().nth(BEGINNING);
        let beginning = beginning.map_or(self.0.as_str(), |(end, _)| &self.0[..end]);
        let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, found)) = rest.split_once(beginning) {
            shown.push_str(before);
            shown.push_str("[key]");
            let same = found.chars().zip(self.0[beginning.len()..].chars());
            let same = same.take_while(|(shown, secret)| shown == secret);
            let same: usize = same.map(|(c, _)| c.len_utf8()).sum();
            rest = &found[same..];
        }
        shown.push_str(rest);
        shown
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// Where requests go.
#[derive(Clone)]
pub struct Endpoint {
    /// The address before `/chat/completions` or `/responses`. A query in it goes with every request.
    pub base_url: String,
    /// The key; without one no `Authorization` header is sent.
    pub api_key: Option<ApiKey>,
    /// Further headers of every request, names and values.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may hold secrets.
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key)
            .field("headers", &names)
            .finish()
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The base address cannot be used.
    #[error("base url `{url}` must be an http or https address without a user name")]
    BaseUrl {
        /// The address, without what may be a password.
        url: String,
    },
    /// The key cannot be sent.
    #[error("the api key holds characters that no header may hold")]
    Key,
    /// A header cannot be sent.
    #[error("`{name}` is no header that can be sent")]
    Header {
        /// Its name.
        name: String,
    },
    /// The connection's settings cannot be used.
    #[error(
        "cannot set up connections; SSL_CERT_FILE and SSL_CERT_DIR, if set, must name certificates to trust"
    )]
    Setup(#[source] reqwest::Error),
}

/// Speaks Chat Completions or Responses, whichever a model is asked in, to one server.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    api: async_openai::Client<OpenAIConfig>,
    connections: Connections,
    key: Option<ApiKey>,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    timeouts: Timeouts,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use async_openai::config::Config as _;
        f.debug_struct("Client")
            .field("base_url", &self.shared.api.config().api_base())
            .field("timeouts", &self.shared.timeouts)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client for this server. Nothing of the environment is read but the proxies, which have no
    /// part in what is asked on this machine, and where the certificates to trust are.
    pub fn new(endpoint: Endpoint, timeouts: Timeouts) -> Result<Self, ClientError> {
        let Endpoint {
            base_url,
            api_key,
            headers,
        } = endpoint;
        let (base, query) = address(&base_url)?;
        let key = api_key.filter(|key| !key.0.is_empty());
        let sent = key.as_ref().map_or("", |key| key.0.as_str());
        if HeaderValue::from_str(sent).is_err() {
            return Err(ClientError::Key);
        }
        // What is not set here would be taken from the environment.
        let config = OpenAIConfig::new()
            .with_api_base(base.as_str().trim_end_matches('/'))
            .with_api_key(sent)
            .with_org_id("")
            .with_project_id("");
        let connections = Connections::new(base, timeouts.connect)?;
        Ok(Self {
            shared: Arc::new(Shared {
                api: async_openai::Client::build(connections.get(), config),
                connections,
                key,
                query,
                headers: header_map(headers)?,
                timeouts,
            }),
        })
    }
}

impl Client {
    /// The models that the server lists. Faults are as those of a request.
    pub async fn models(&self) -> Result<Vec<Listed>, Fault> {
        use async_openai::config::Config as _;
        let shared = &self.shared;
        let list = shared.api.config().url("/models");
        let mut url = Url::parse(&list).map_err(|error| local(&error))?;
        if !shared.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&shared.query);
        }
        let mut request = shared
            .connections
            .get()
            .get(url)
            .headers(shared.headers.clone());
        if let Some(key) = &shared.key {
            request = request.bearer_auth(&key.0);
        }
        let redact = |fault: Fault| Fault {
            message: shared.redact(&fault.message),
            ..fault
        };
        let limit = shared.timeouts.bytes;
        let asked = async {
            let response = request.send().await.map_err(connect::unsent)?;
            listing::read(response, limit).await
        };
        match tokio::time::timeout(limit, asked).await {
            Ok(listed) => listed.map_err(redact),
            Err(_) => Err(Fault::new(
                FaultClass::Stall,
                format!("no answer within {} s", limit.as_secs()),
            )),
        }
    }
}

impl Model for Client {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let exchange = Exchange {
            shared: Arc::clone(&self.shared),
            profile: ask.model.profile.clone(),
            stage: Stage::Unsent(Box::new(ask)),
            ready: VecDeque::new(),
        };
        stream::unfold(exchange, |mut exchange| async move {
            let delta = exchange.next().await?;
            Some((delta, exchange))
        })
        .boxed()
    }
}

/// One request on its way.
struct Exchange {
    shared: Arc<Shared>,
    profile: Profile,
    stage: Stage,
    ready: VecDeque<Delta>,
}

impl Exchange {
    async fn next(&mut self) -> Option<Delta> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(delta);
            }
            match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Unsent(ask) => match self.shared.open(*ask).await {
                    Ok(reading) => self.stage = Stage::Reading(Box::new(reading)),
                    Err(fault) => self.fault(fault),
                },
                Stage::Reading(mut reading) => {
                    let mut deltas = Vec::new();
                    match reading.read(&mut deltas).await {
                        None => self.stage = Stage::Reading(reading),
                        Some(Ok(reply)) => deltas.push(self.reply(reply)),
                        Some(Err(fault)) => {
                            self.ready.extend(deltas.drain(..));
                            self.fault(fault);
                        }
                    }
                    self.ready.extend(deltas);
                }
                Stage::Over => return None,
            }
        }
    }

    fn reply(&self, mut reply: Reply) -> Delta {
        let counted = reply.usage;
        reply.usage = counted.map(|usage| usage::whole(usage, &self.profile.usage));
        Delta::Reply(Box::new(reply))
    }

    fn fault(&mut self, mut fault: Fault) {
        if fault.class == FaultClass::Stall {
            self.shared.connections.begin_anew();
        }
        overflow::reclassify(&mut fault, &self.profile.overflow);
        if let Some(counted) = &mut fault.usage {
            **counted = usage::whole(**counted, &self.profile.usage);
        }
        fault.message = self.shared.redact(&fault.message);
        let call = fault.refused_call.take();
        fault.refused_call = call.map(|call| self.shared.redact(&call));
        self.ready.push_back(Delta::Fault(Box::new(fault)));
    }
}

/// The answer of the server, on its way past the one who would read it.
#[derive(Debug, thiserror::Error)]
#[error("the answer is read elsewhere")]
struct Answered(Response);

impl Shared {
    /// The text without the key and whatever else is sent that may be secret: long headers, and long
    /// values of the address's query.
    fn redact(&self, text: &str) -> String {
        let mut text = match &self.key {
            Some(key) => key.redact(text),
            None => text.to_owned(),
        };
        let headers = self.headers.values().filter_map(|it| it.to_str().ok());
        let query = self.query.iter().map(|(_, value)| value.as_str());
        for secret in headers.chain(query).filter(|it| it.len() >= SECRET_BYTES) {
            text = text.replace(secret, "[key]");
        }
        text
    }

    /// Sends the request and waits for the beginning of an answer that is not a failure.
    async fn open(&self, ask: Ask) -> Result<Reading, Fault> {
        let bounds = Bounds {
            maximum: maximum(&ask),
            window: ask.model.window,
        };
        let (size, api) = (ask.body.len(), ask.model.api);
        let timers = Timers::start(self.timeouts);
        let mut sending = pin!(self.send(ask.body, api));
        let response = loop {
            if let Some(sent) = timers.wait(&mut sending).await {
                break sent?;
            }
            if let Some(Late::Byte(limit) | Late::Progress(limit)) = timers.late() {
                let message = format!("no answer began for {} s", limit.as_secs_f64());
                return Err(Fault::new(FaultClass::Stall, message));
            }
        };
        if response.status().is_success() {
            let intake = Intake::new(api, bounds);
            return Ok(Reading::new(response, timers, intake));
        }
        // Four bytes a token is few: only a request that is nearly full counts as long.
        let tokens = u64::try_from(size / 4).unwrap_or(u64::MAX);
        let is_long = bounds.window.is_some_and(|window| tokens >= window / 4 * 3);
        Err(reading::failure(response, size, is_long, self.timeouts.bytes).await)
    }

    async fn send(&self, body: Arc<[u8]>, spoken: Api) -> Result<Response, Fault> {
        let http = self.connections.get();
        let keyed = self.key.is_some() || self.headers.contains_key(AUTHORIZATION);
        let service = tower::service_fn(move |factory: HttpRequestFactory| {
            let (http, body) = (http.clone(), Arc::clone(&body));
            async move {
                let mut request = factory.build().await?;
                // The bytes themselves are sent, and no copy of them.
                *request.body_mut() = Some(Bytes::from_owner(body).into());
                let headers = request.headers_mut();
                if !keyed {
                    headers.remove(AUTHORIZATION);
                } else if let Some(key) = headers.get_mut(AUTHORIZATION) {
                    key.set_sensitive(true);
                }
                let response = http.execute(request).await?;
                let answered = Box::new(Answered(response));
                Err::<Response, _>(OpenAIError::Boxed(answered))
            }
        });
        let api = self.api.clone().with_http_service(service);
        let chat = api.chat().headers(self.headers.clone());
        let chat = chat.query(&self.query).map_err(|error| local(&error))?;
        let chat = match spoken {
            Api::Chat => chat,
            Api::Responses => chat.path("/responses").map_err(|error| local(&error))?,
        };
        // The service replaces the body, and hands the answer over as an error.
        let unread: Result<serde::de::IgnoredAny, _> = chat.create_byot(()).await;
        match unread {
            Err(OpenAIError::Boxed(error)) => match error.downcast::<Answered>() {
                Ok(answered) => Ok(answered.0),
                Err(error) => Err(local(&*error)),
            },
            Err(OpenAIError::Reqwest(error)) => Err(connect::unsent(error)),
            Err(error) => Err(local(&error)),
            Ok(_) => Err(Fault::new(FaultClass::Local, "the request was not sent")),
        }
    }
}

/// A fault on this side of the connection.
fn local(error: &(dyn std::error::Error + 'static)) -> Fault {
    Fault::new(FaultClass::Local, one_line(&reading::chain(error)))
}

/// The most tokens of output that a body asks for, under any name. What is asked for stands before the
/// messages, so that they are not read, however long they are.
fn maximum(ask: &Ask) -> Option<u64> {
    let body = Object::before(&ask.body, &["messages", "input"]);
    let names = [
        ask.model.profile.parameters.max_output_tokens.as_str(),
        "max_completion_tokens",
        "max_tokens",
        "max_output_tokens",
    ];
    body.first(&names).and_then(Value::count)
}

/// The base address and what its query says.
fn address(base_url: &str) -> Result<(Url, Vec<(String, String)>), ClientError> {
    let unusable = || ClientError::BaseUrl {
        url: {
            let (mark, host) = match base_url.rsplit_once('@') {
                Some((_, host)) => ("…@", host),
                None => ("", base_url),
            };
            // A query may hold a key.
            let end = host.find(['?', '#']).unwrap_or(host.len());
            format!("{mark}{}", &host[..end])
        },
    };
    let mut url = Url::parse(base_url.trim()).map_err(|_| unusable())?;
    let known = matches!(url.scheme(), "http" | "https") && url.host().is_some();
    if !known || !url.username().is_empty() || url.password().is_some() {
        return Err(unusable());
    }
    let query = url.query_pairs().into_owned().collect();
    url.set_query(None);
    url.set_fragment(None);
    Ok((url, query))
}

fn header_map(headers: Vec<(String, String)>) -> Result<HeaderMap, ClientError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let (Ok(known), Ok(mut value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(&value),
        ) else {
            return Err(ClientError::Header { name });
        };
        value.set_sensitive(true);
        map.insert(known, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_neither_whole_nor_cut() {
        for (key, text, shown) in [
            (
                "secret-0123456789abcdef",
                "wrong secret-0123456789abcdef!",
                "wrong [key]!",
            ),
            ("secret-0123456789abcdef", "secret-0123456789abc…", "[key]…"),
            ("secret-0123456789abcdef", "secret-012345", "secret-012345"),
            (
                "sécret-0123456789abcdéf",
                "sécret-0123456789abcdé sécret-0123456789",
                "[key] [key]",
            ),
            ("short", "a short key, shor", "a [key] key, shor"),
            ("no", "no", "no"),
        ] {
            assert_eq!(ApiKey::new(key).redact(text), shown, "{text}");
        }
    }
}
