//! The model: one request in, a stream of pieces out, and at its end a reply or a fault.
//!
//! [`Model`] is the seam; [`Client`] speaks Chat Completions and Responses to any server,
//! [`Scripted`] answers from a list, and [`offline`] is a script behind a port of its own. A reply
//! goes through `stream` (bytes to events), `assemble` or `responses` (events to a [`Reply`]) and
//! `ending` (was it whole?); what fails is given its class by `classify`.
//!
//! Nothing here asks twice, waits between attempts or records: that is decided by the step, on
//! what is recorded. Nothing here knows a transcript.

mod loose;
mod stream;
mod calls;
mod thoughts;
mod usage;
mod assemble;
mod ending;
mod wait;
mod overflow;
mod refused;
mod said;
mod limit;
mod classify;
mod responses;
mod intake;
mod connect;
mod client;
mod timers;
mod reading;
mod listing;
mod scripted;
pub mod offline;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use futures::stream::BoxStream;

#[doc(hidden)]
pub use assemble::End;
pub use client::{ApiKey, Client, ClientError, Endpoint};
#[doc(hidden)]
pub use intake::read_reply;
pub use listing::Listed;
pub use scripted::{Script, Scripted};
pub use timers::Timeouts;

use crate::exchange::{Ending, Reasoning, Response, ResponseTime, ToolCall, Usage};
use crate::id::EntryId;
use crate::setup::Role;
use crate::transcript::FaultClass;

/// Something that answers requests.
pub trait Model: Send + Sync + fmt::Debug {
    /// Sends one request. The last item is always [`Delta::Reply`] or [`Delta::Fault`], and
    /// exactly one of them comes. Dropping the stream cancels the request.
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta>;
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The exact bytes to send.
    pub body: Arc<[u8]>,
    /// The model that is asked.
    pub model: crate::setup::Model,
    /// The part it plays.
    pub role: Role,
    /// Whether a summary is asked for, of entries or of other summaries.
    pub summary: bool,
}

/// A piece of what comes back.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// A piece of the visible text.
    Text(String),
    /// A piece of the reasoning.
    Reasoning(String),
    /// A call began.
    Call {
        /// The name of the tool.
        name: String,
    },
    /// The whole reply. Nothing follows.
    Reply(Box<Reply>),
    /// There is no reply. Nothing follows.
    Fault(Box<Fault>),
}

/// A reply: all of a response but the entry it answers and the time it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The visible text; empty if there was none.
    pub text: String,
    /// Reasoning blocks in the order received.
    pub reasoning: Vec<Reasoning>,
    /// Tool calls in the order received.
    pub calls: Vec<ToolCall>,
    /// How it ended, in our judgement.
    pub ending: Ending,
    /// The provider's word for how it ended, exactly.
    pub finish: Option<String>,
    /// What the provider sent beside the text, opaque, as the exact text of one JSON object.
    pub extra: Option<String>,
    /// What the provider counted.
    pub usage: Option<Usage>,
    /// The model's name as the provider reports it.
    pub model: Option<String>,
    /// The provider's id of the request.
    pub provider_request: Option<String>,
}

impl Default for Reply {
    /// An empty reply that ended well.
    fn default() -> Self {
        Self {
            text: String::new(),
            reasoning: Vec::new(),
            calls: Vec::new(),
            ending: Ending::Complete,
            finish: None,
            extra: None,
            usage: None,
            model: None,
            provider_request: None,
        }
    }
}

impl Reply {
    /// A complete reply of this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            finish: Some("stop".to_owned()),
            ..Self::default()
        }
    }

    /// The reply that a response was: [`answers`](Self::answers) undone.
    pub fn of(response: Response) -> Self {
        let Response {
            request: _,
            text,
            reasoning,
            calls,
            ending,
            finish,
            usage,
            extra,
            model,
            provider_request,
            ms: _,
        } = response;
        Self {
            text,
            reasoning,
            calls,
            ending,
            finish,
            extra,
            usage,
            model,
            provider_request,
        }
    }

    /// The response that this reply is to a request.
    pub fn answers(self, request: EntryId, ms: ResponseTime) -> Response {
        let Self {
            text,
            reasoning,
            calls,
            ending,
            finish,
            extra,
            usage,
            model,
            provider_request,
        } = self;
        Response {
            request,
            text,
            reasoning,
            calls,
            ending,
            finish,
            extra,
            usage,
            model,
            provider_request,
            ms: Some(ms),
        }
    }

    /// A complete reply of these calls, each a name and its arguments.
    pub fn calls<N: Into<String>, A: Into<String>>(
        calls: impl IntoIterator<Item = (N, A)>,
    ) -> Self {
        let call = |(place, (name, arguments)): (usize, (N, A))| ToolCall {
            provider_id: Some(format!("call_{}", place + 1)),
            name: name.into(),
            arguments: arguments.into(),
            extra: None,
        };
        Self {
            calls: calls.into_iter().enumerate().map(call).collect(),
            finish: Some("tool_calls".to_owned()),
            ..Self::default()
        }
    }
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The class, by which the next step decides.
    pub class: FaultClass,
    /// The HTTP status, or the one that an error within a reply names.
    pub status: Option<u16>,
    /// What went wrong, for people: one line, bounded, without the key.
    pub message: String,
    /// How long the server asked to wait, in milliseconds. It is not capped here.
    pub wait_ms: Option<u64>,
    /// The context window in tokens, as an overflow's message names it.
    pub window: Option<u64>,
    /// The parameter of the request that the server does not take, if it names one.
    pub parameter: Option<String>,
    /// The model's own call, as text, which the server refused to pass on.
    pub refused_call: Option<String>,
    /// Whether it is a limit of which nothing tells if waiting helps.
    pub unclear: bool,
    /// What the provider counted before it failed.
    pub usage: Option<Box<Usage>>,
}

impl Fault {
    /// A fault of this class without more to tell.
    pub fn new(class: FaultClass, message: impl Into<String>) -> Self {
        Self {
            class,
            status: None,
            message: message.into(),
            wait_ms: None,
            window: None,
            parameter: None,
            refused_call: None,
            unclear: false,
            usage: None,
        }
    }
}
