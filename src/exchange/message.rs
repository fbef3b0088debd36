//! What a model reads: the messages of a request, before a provider's format.

use std::borrow::Cow;

use crate::exchange::Reasoning;
use crate::id::CallId;

/// One message of a request. Instructions stand apart from the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// From the user, or from the runtime in the user's place.
    User {
        /// The whole text, attachments included.
        text: Cow<'a, str>,
    },
    /// From the model. Never empty: it has text or at least one call.
    Assistant {
        /// The visible text; may be empty if there are calls.
        text: Cow<'a, str>,
        /// The reasoning that still reads, in its order.
        reasoning: Cow<'a, [Reasoning]>,
        /// The calls that still read, in their order.
        calls: Vec<SentCall<'a>>,
        /// What the provider sent beside the text, opaque, its exact text.
        extra: Option<Cow<'a, str>>,
    },
    /// The result of one call.
    Tool {
        /// The call it answers.
        call: CallId,
        /// The result as it reads now.
        text: Cow<'a, str>,
    },
}

/// One call within an assistant's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentCall<'a> {
    /// Which call it is; the id on the wire is derived from it.
    pub id: CallId,
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments as they read now: the exact text received, or `{}`.
    pub arguments: Cow<'a, str>,
    /// What the provider sent beside the call, opaque, its exact text.
    pub extra: Option<Cow<'a, str>>,
}

impl Message<'_> {
    /// The same message, owning its text.
    pub fn into_owned(self) -> Message<'static> {
        match self {
            Self::User { text } => Message::User {
                text: Cow::Owned(text.into_owned()),
            },
            Self::Assistant {
                text,
                reasoning,
                calls,
                extra,
            } => Message::Assistant {
                text: Cow::Owned(text.into_owned()),
                reasoning: Cow::Owned(reasoning.into_owned()),
                calls: calls.into_iter().map(SentCall::into_owned).collect(),
                extra: extra.map(|extra| Cow::Owned(extra.into_owned())),
            },
            Self::Tool { call, text } => Message::Tool {
                call,
                text: Cow::Owned(text.into_owned()),
            },
        }
    }
}

impl SentCall<'_> {
    /// The same call, owning its text.
    pub fn into_owned(self) -> SentCall<'static> {
        SentCall {
            id: self.id,
            name: Cow::Owned(self.name.into_owned()),
            arguments: Cow::Owned(self.arguments.into_owned()),
            extra: self.extra.map(|extra| Cow::Owned(extra.into_owned())),
        }
    }
}
