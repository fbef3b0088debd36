//! What a model wrote, and our judgement of how it ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::EntryId;

/// A model's reply to one request: the body of a `response` entry.
///
/// All text is what was received; nothing is re-serialized. Only the calls of a response that
/// ended [`Ending::Complete`] ever run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The request it answers.
    pub request: EntryId,
    /// The visible text; empty if there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Reasoning blocks in the order received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<Reasoning>,
    /// Tool calls in the order received: the first is `<entry>.1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// How it ended, in our judgement.
    pub ending: Ending,
    /// The provider's word for how it ended, exactly; absent if it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// What the provider counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What the provider sent beside the text, opaque, as the exact text of one JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<String>,
    /// The model's name as the provider reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_request: Option<String>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<ResponseTime>,
}

/// A block of reasoning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Reasoning {
    /// Plain text that came in a named field, and goes back under the same name.
    Text {
        /// The provider's field, such as `reasoning_content`.
        field: String,
        /// The text.
        text: String,
    },
    /// An opaque item of the provider.
    Raw {
        /// Its exact bytes.
        raw: String,
        /// The list it came in, and goes back in, such as `reasoning_details`; absent: it is an item
        /// by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        field: Option<String>,
        /// The number of calls that came before it; absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u32>,
    },
}

impl Reasoning {
    /// An opaque item by itself, before the first call.
    pub fn raw(raw: impl Into<String>) -> Self {
        Self::Raw {
            raw: raw.into(),
            field: None,
            after: None,
        }
    }

    /// Whether it is opaque, and so belongs to the model that made it.
    pub fn is_opaque(&self) -> bool {
        match self {
            Self::Raw { .. } => true,
            Self::Text { .. } => false,
        }
    }
}

/// One tool call, as received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The provider's id; it need not be unique, and nothing is looked up by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The name of the tool, exactly.
    pub name: String,
    /// The arguments, exactly.
    pub arguments: String,
    /// Unknown fields of the call, opaque, as the exact text of one JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<String>,
}

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The server said that the reply is whole.
    Complete,
    /// The reply ran into the limit of output: nothing of it runs.
    Cut,
    /// A content filter ended it.
    Filtered,
    /// The model declined.
    Refused,
}

/// Tokens as the provider counted them. What it did not say is absent, which is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens read, those from a cache included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Of those, tokens read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Tokens written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Tokens written, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Of those, tokens of reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

/// How long a reply took, in milliseconds from sending the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseTime {
    /// Until the first piece of the reply.
    pub first: u64,
    /// Until its end.
    pub all: u64,
}
