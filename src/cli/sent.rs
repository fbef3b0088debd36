//! What a request sent, message by message, taken from its bytes.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use undertext::id::EntryId;
use undertext::view::View;
use undertext::wire::Body;

use crate::cli::exit::{Exit, Failure};
use crate::cli::requests;

/// One message: what it is, what it says, and its exact bytes.
pub(crate) struct Sent {
    /// Who speaks: `user`, `assistant`, `tool 17.2`.
    pub(crate) head: String,
    /// Texts and calls.
    pub(crate) body: Vec<String>,
    /// The message as it was sent.
    pub(crate) json: String,
}

/// The body of a request of this run, and what there is to say against it.
pub(crate) fn body(view: &View, request: EntryId) -> Result<(Body, Option<String>), Failure> {
    let moment = requests::moment(view, request)?;
    let recorded = &moment.request;
    let body = moment.view.body(&recorded.purpose);
    let body = body.ok_or_else(|| requests::incomplete(request))?;
    let but = (body.digest() != recorded.body)
        .then(|| format!("request e{request} is not, byte for byte, what was sent"));
    Ok((body, but))
}

/// The messages in a body.
pub(crate) fn messages(body: &Body) -> Result<Vec<Sent>, Failure> {
    #[derive(Deserialize)]
    struct Request<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    let failed = |error: serde_json::Error| {
        let error = anyhow::Error::new(error).context("cannot read the request");
        Failure::new(Exit::Unfinished, error)
    };
    let request: Request<'_> = serde_json::from_slice(&body.bytes).map_err(failed)?;
    let read = |raw: &&RawValue| serde_json::from_str(raw.get()).map(|value| sent(&value, raw));
    let messages: Result<_, _> = request.messages.iter().map(read).collect();
    messages.map_err(failed)
}

fn sent(message: &Value, raw: &RawValue) -> Sent {
    let mut head = text(message.get("role"));
    let mut body = Vec::new();
    for (field, value) in message.as_object().into_iter().flatten() {
        match field.as_str() {
            "role" => {}
            "tool_call_id" => head = format!("{head} {}", handle(&text(Some(value)))),
            "content" => body.push(text(Some(value))),
            "tool_calls" => body.extend(value.as_array().into_iter().flatten().map(call)),
            _ => body.push(format!("[{field}] {}", text(Some(value)))),
        }
    }
    let json = raw.get().to_owned();
    Sent { head, body, json }
}

fn call(call: &Value) -> String {
    let function = call.get("function");
    let part = |name| text(function.and_then(|function| function.get(name)));
    let id = handle(&text(call.get("id")));
    format!("{id} {} {}", part("name"), part("arguments"))
}

/// The call that an id on the wire is derived from.
fn handle(id: &str) -> String {
    id.strip_prefix("call_")
        .map_or_else(|| id.to_owned(), |call| call.replace('_', "."))
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
