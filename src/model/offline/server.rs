//! The script behind a loopback port, as Chat Completions: so that what is tried with it is the real
//! client, and everything behind it.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::{fmt, io};

use futures::stream;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::model::Reply;
use crate::model::offline::policy::reply;
use crate::model::offline::read::{Request, RequestError};
use crate::model::offline::{NAME, WINDOW};

/// The longest body that is read, in bytes.
const BODY: usize = 64 << 20;

/// How many characters a piece of a streamed text has.
const PIECE: usize = 48;

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

/// The offline model, served. It ends when this is dropped.
pub struct Offline {
    /// Its address, as a `base_url`.
    pub base_url: String,
    serving: JoinHandle<()>,
}

impl fmt::Debug for Offline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offline")
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Offline {
    /// Serves it on a free port of the loopback interface. Must be called within a runtime.
    pub async fn serve() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let base_url = format!("http://{}/v1", listener.local_addr()?);
        let serving = tokio::spawn(accept(listener));
        Ok(Self { base_url, serving })
    }
}

async fn accept(listener: TcpListener) {
    // What is still being answered ends with this.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // One that failed is its caller's to try again.
                if let Ok((stream, _)) = accepted {
                    connections.spawn(async move {
                        let served = hyper::server::conn::http1::Builder::new()
                            .serve_connection(TokioIo::new(stream), service_fn(answer));
                        served.await.ok();
                    });
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn answer(request: hyper::Request<Incoming>) -> Result<hyper::Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_end_matches('/');
    Ok(match (&head.method, path) {
        (&Method::POST, "/v1/chat/completions") => match Limited::new(body, BODY).collect().await {
            Ok(body) => completion(&body.to_bytes()),
            Err(_) => refusal(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long", None),
        },
        (&Method::GET, "/v1/models") => {
            let model = json!({"id": NAME, "object": "model", "owned_by": "undertext", "context_window": WINDOW});
            plain(StatusCode::OK, &json!({"object": "list", "data": [model]}))
        }
        _ => refusal(
            StatusCode::NOT_FOUND,
            "there is POST /v1/chat/completions and GET /v1/models",
            None,
        ),
    })
}

fn completion(body: &[u8]) -> hyper::Response<Body> {
    let request = match Request::read(body) {
        Ok(request) => request,
        Err(error @ (RequestError::Json(_) | RequestError::Messages)) => {
            return refusal(StatusCode::BAD_REQUEST, &error.to_string(), None);
        }
    };
    let prompt = tokens(request.chars);
    if prompt > WINDOW {
        let message = format!(
            "This model's maximum context length is {WINDOW} tokens. However, your messages resulted in \
             {prompt} tokens."
        );
        return refusal(
            StatusCode::BAD_REQUEST,
            &message,
            Some("context_length_exceeded"),
        );
    }
    let reply = reply(&request);
    let written = reply.text.chars().count()
        + reply
            .calls
            .iter()
            .map(|call| call.name.len() + call.arguments.chars().count())
            .sum::<usize>();
    let usage = json!({
        "prompt_tokens": prompt,
        "completion_tokens": tokens(written),
        "total_tokens": prompt + tokens(written),
    });
    let id = format!("chatcmpl-{}", request.chars);
    if request.stream {
        streamed(&events(&reply, &id, &usage))
    } else {
        plain(StatusCode::OK, &whole(&reply, &id, &usage))
    }
}

fn tokens(chars: usize) -> u64 {
    u64::try_from(chars / 4).unwrap_or(u64::MAX)
}

fn call(reply: &Reply, place: usize) -> Value {
    let call = reply.calls.get(place);
    json!({
        "id": format!("call_{}", place + 1),
        "type": "function",
        "function": {
            "name": call.map(|call| call.name.as_str()),
            "arguments": call.map(|call| call.arguments.as_str()),
        },
    })
}

/// The whole reply as one object.
fn whole(reply: &Reply, id: &str, usage: &Value) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !reply.calls.is_empty() {
        message["tool_calls"] = (0..reply.calls.len())
            .map(|place| call(reply, place))
            .collect();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": reply.finish});
    json!({
        "id": id, "object": "chat.completion", "created": 0, "model": NAME, "choices": [choice],
        "usage": usage,
    })
}

/// The reply as the events of a stream.
fn events(reply: &Reply, id: &str, usage: &Value) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        json!({
            "id": id, "object": "chat.completion.chunk", "created": 0, "model": NAME,
            "choices": choices, "usage": usage,
        })
        .to_string()
    };
    let delta = |delta: Value, finish: Value| {
        chunk(
            json!([{"index": 0, "delta": delta, "finish_reason": finish}]),
            Value::Null,
        )
    };
    let mut events = vec![delta(
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    )];
    for piece in pieces(&reply.text) {
        events.push(delta(json!({"content": piece}), Value::Null));
    }
    for place in 0..reply.calls.len() {
        let mut begun = call(reply, place);
        let arguments = begun["function"]["arguments"].take();
        begun["index"] = json!(place);
        begun["function"]["arguments"] = json!("");
        events.push(delta(json!({"tool_calls": [begun]}), Value::Null));
        for piece in pieces(arguments.as_str().unwrap_or_default()) {
            let more = json!({"index": place, "function": {"arguments": piece}});
            events.push(delta(json!({"tool_calls": [more]}), Value::Null));
        }
    }
    events.push(delta(json!({}), json!(reply.finish)));
    events.push(chunk(json!([]), usage.clone()));
    events.push("[DONE]".to_owned());
    events
}

fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(PIECE)
        .map(|piece| piece.iter().collect())
        .collect()
}

fn streamed(events: &[String]) -> hyper::Response<Body> {
    let frames: Vec<Result<Frame<Bytes>, Infallible>> = events
        .iter()
        .map(|event| Ok(Frame::data(Bytes::from(format!("data: {event}\n\n")))))
        .collect();
    let body = StreamBody::new(stream::iter(frames)).boxed();
    response(StatusCode::OK, "text/event-stream", body)
}

fn plain(status: StatusCode, object: &Value) -> hyper::Response<Body> {
    let body = Full::new(Bytes::from(object.to_string())).boxed();
    response(status, "application/json", body)
}

fn refusal(status: StatusCode, message: &str, code: Option<&str>) -> hyper::Response<Body> {
    let error =
        json!({"message": message, "type": "invalid_request_error", "param": null, "code": code});
    plain(status, &json!({"error": error}))
}

fn response(status: StatusCode, kind: &'static str, body: Body) -> hyper::Response<Body> {
    let mut response = hyper::Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
