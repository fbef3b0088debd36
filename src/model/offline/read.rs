//! What a request body says: the tools that are offered, and the conversation as steps.

use serde_json::Value;

/// One request, as far as the script looks at it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// The length of the body, in characters.
    pub chars: usize,
    /// The system text.
    pub(super) instructions: String,
    pub(super) tools: Vec<Offer>,
    pub(super) messages: Vec<Message>,
}

/// A tool that is offered.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) properties: Value,
}

/// One message.
#[derive(Clone, Debug)]
pub(super) enum Message {
    /// The user's, or the runtime's in the user's place.
    User(String),
    /// The script's own.
    Own { text: String, calls: Vec<Made> },
    /// The result of a call.
    Result { id: String, text: String },
}

/// A call as it was made.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments; an empty object where they read as nothing.
    pub(super) arguments: Value,
}

/// Why a body cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// It is no JSON.
    #[error("the body is no JSON")]
    Json(#[source] serde_json::Error),
    /// It has no messages.
    #[error("the body has no list `messages`")]
    Messages,
}

impl Request {
    /// Reads a body.
    pub fn read(body: &[u8]) -> Result<Self, RequestError> {
        let json: Value = serde_json::from_slice(body).map_err(RequestError::Json)?;
        let messages = json["messages"].as_array().ok_or(RequestError::Messages)?;
        let tools = json["tools"].as_array();
        Ok(Self {
            stream: json["stream"].as_bool() == Some(true),
            chars: String::from_utf8_lossy(body).chars().count(),
            instructions: messages
                .iter()
                .find(|message| matches!(message["role"].as_str(), Some("system" | "developer")))
                .map(|message| text(&message["content"]))
                .unwrap_or_default(),
            tools: tools.into_iter().flatten().map(offer).collect(),
            messages: messages.iter().filter_map(message).collect(),
        })
    }
}

fn offer(tool: &Value) -> Offer {
    let function = &tool["function"];
    Offer {
        name: text(&function["name"]),
        description: text(&function["description"]),
        properties: function["parameters"]["properties"].clone(),
    }
}

fn message(message: &Value) -> Option<Message> {
    let content = text(&message["content"]);
    match message["role"].as_str()? {
        "user" => Some(Message::User(content)),
        "assistant" => Some(Message::Own {
            text: content,
            calls: message["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
                .map(made)
                .collect(),
        }),
        "tool" => Some(Message::Result {
            id: text(&message["tool_call_id"]),
            text: content,
        }),
        _ => None,
    }
}

fn made(call: &Value) -> Made {
    let function = &call["function"];
    let arguments = function["arguments"].as_str().unwrap_or_default();
    Made {
        id: text(&call["id"]),
        name: text(&function["name"]),
        arguments: serde_json::from_str(arguments).unwrap_or_default(),
    }
}

/// A string, or the texts of a list of parts.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
