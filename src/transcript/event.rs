//! What happened: the body of each kind of entry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::exchange::{Response, ToolResult, Usage};
use crate::id::{CallId, Digest, EntryId};
use crate::overlay::{Origin, Overlay};
use crate::setup::Setup;
use crate::transcript::{Purpose, Run};

/// What happened. The word in `type` is the variant's name in `lower_snake_case`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The run itself: always the first entry.
    Run(Run),
    /// The settings from here on.
    Setup(Box<Setup>),
    /// What a person, a hook or the runtime says to the model.
    User(User),
    /// A request is about to be sent.
    Request(Request),
    /// The reply to a request.
    Response(Response),
    /// A call with an effect is about to run.
    Started(Started),
    /// The answer to a call.
    Result(ToolResult),
    /// A layer is laid.
    Overlay(Overlay),
    /// Overlays are taken back.
    Retract(Retract),
    /// An entry shall stay readable.
    Pin(Pin),
    /// It need not any more.
    Unpin(Pin),
    /// An attempt at a request failed.
    Fault(Fault),
    /// A remark of the runtime; the model does not see it.
    Note(Note),
    /// The run ended.
    End(End),
    /// A line of a type, or of a shape, that this version does not know.
    #[serde(skip)]
    Unknown(Unknown),
}

impl Event {
    /// Whether it is a person's change of how the run reads: no part of its work, so that a run that
    /// ended stays ended, and one that is taken up begins later.
    pub fn is_by_hand(&self) -> bool {
        match self {
            Self::Overlay(overlay) => overlay.origin == Origin::User,
            Self::Retract(retract) => retract.origin == Origin::User,
            Self::Pin(_) | Self::Unpin(_) => true,
            Self::Run(_)
            | Self::Setup(_)
            | Self::User(_)
            | Self::Request(_)
            | Self::Response(_)
            | Self::Started(_)
            | Self::Result(_)
            | Self::Fault(_)
            | Self::Note(_)
            | Self::End(_)
            | Self::Unknown(_) => false,
        }
    }
}

/// The body of a `user` entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct User {
    /// Who speaks.
    pub origin: Speaker,
    /// What is said.
    pub text: String,
    /// Texts handed in with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// What was clipped from the text at the edge, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clipped: Option<crate::exchange::Clipped>,
}

/// Who speaks in a `user` entry. Only [`Task`](Self::Task) and [`FollowUp`](Self::FollowUp)
/// begin a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// A person, with the task.
    Task,
    /// A person, later.
    FollowUp,
    /// A hook that a person configured.
    Hook,
    /// The runtime.
    Runtime,
}

/// A text handed in with a user's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub media: String,
    /// Its text.
    pub text: String,
    /// What was clipped from it at the edge, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clipped: Option<crate::exchange::Clipped>,
}

/// The body of a `request` entry. The request's bytes are never stored: they can be rebuilt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// What it is for.
    pub purpose: Purpose,
    /// The round; absent if it belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The setup in force.
    pub setup: EntryId,
    /// The version of the functions that build the body.
    pub renderer: u32,
    /// The digest and size of the body.
    pub body: BodyDigest,
    /// The size in tokens, as estimated before it was sent.
    pub estimate: Estimate,
}

/// The digest and size of a request's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BodyDigest {
    /// SHA-256 of the bytes.
    pub sha256: Digest,
    /// Their number.
    pub bytes: u64,
}

/// A size in tokens, and how it was come by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Unicode scalars of the body.
    pub chars: u64,
    /// Tokens by the rule alone.
    pub base: u64,
    /// The learned factor in thousandths.
    pub factor: u64,
    /// `base × factor / 1000`.
    pub tokens: u64,
}

/// The body of a `started` entry. It is durable before the call's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// The call.
    pub call: CallId,
}

/// The body of a `retract` entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retract {
    /// The overlays that no longer have an opinion.
    pub overlays: Vec<EntryId>,
    /// Who asked for it.
    pub origin: Origin,
}

/// The body of a `pin` or `unpin` entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pin {
    /// The entry.
    pub entry: EntryId,
}

/// The body of a `fault` entry: a failed attempt at a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// The request.
    pub request: EntryId,
    /// The class, by which the next step decides.
    pub class: FaultClass,
    /// The HTTP status, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What went wrong, for people.
    pub message: String,
    /// Which attempt failed, from 1.
    pub attempt: u32,
    /// How long to wait before the next attempt, in milliseconds; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// The model's own call, which the server refused to pass on: the beginning of what it wrote,
    /// empty if the server does not tell. Absent: it refused something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_call: Option<String>,
    /// What the provider counted of the attempt before it failed; absent: it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// The class of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultClass {
    /// Too many requests.
    Rate,
    /// The provider is overloaded.
    Overload,
    /// The provider failed.
    Server,
    /// The connection could not be made or was lost before a reply.
    Transport,
    /// Nothing came for too long.
    Stall,
    /// The reply ended without the provider saying so.
    Torn,
    /// The key is missing or wrong.
    Auth,
    /// Asking again would fail again.
    Permanent,
    /// A content filter.
    ContentFilter,
    /// The request is too long.
    Overflow,
    /// Something on this side, such as a run that was killed.
    Local,
}

impl FaultClass {
    /// The word written in transcripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Overload => "overload",
            Self::Server => "server",
            Self::Transport => "transport",
            Self::Stall => "stall",
            Self::Torn => "torn",
            Self::Auth => "auth",
            Self::Permanent => "permanent",
            Self::ContentFilter => "content_filter",
            Self::Overflow => "overflow",
            Self::Local => "local",
        }
    }

    /// Whether asking again may help.
    pub fn retried(self) -> bool {
        match self {
            Self::Rate
            | Self::Overload
            | Self::Server
            | Self::Transport
            | Self::Stall
            | Self::Torn => true,
            Self::Auth | Self::Permanent | Self::ContentFilter | Self::Overflow | Self::Local => {
                false
            }
        }
    }
}

/// The body of a `note` entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Note {
    /// Something a person should know.
    Warning {
        /// What it is.
        text: String,
    },
    /// The remains of a line that was being written when the program ended. The note takes the id
    /// that the torn entry would have had.
    Torn(Torn),
    /// Damage that a person accepted.
    Damage {
        /// What was damaged.
        text: String,
    },
    /// A summary could not be had; nothing changed.
    SummaryFailed {
        /// The request that asked for it.
        request: EntryId,
        /// Why.
        why: String,
    },
    /// A hook was asked before a pass.
    Hook(Hook),
    /// The check command ran on a reply that ended the work.
    Check(Check),
}

/// What a hook said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hook {
    /// Why, in its words; or what went wrong with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// It forbade the pass.
    #[serde(default, skip_serializing_if = "is_false")]
    pub veto: bool,
    /// Texts that the summary must keep, word for word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// It hung, failed or printed garbage, and the pass goes on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub failed: bool,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands fields over by reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// What came of the check command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The reply that ended the work.
    pub response: EntryId,
    /// Whether the work may end.
    pub passed: bool,
    /// The command's exit status; absent if it has none, such as when its time was up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// Where the remains of a torn line stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Torn {
    /// The first byte, counted from the start of the file.
    pub offset: u64,
    /// The number of bytes, the line end that closes them left out.
    pub bytes: u64,
    /// Their digest.
    pub digest: Digest,
}

/// The body of an `end` entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// Why.
    pub reason: Reason,
    /// The same in words, with what to do next.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What the run has used since it was last taken up.
    #[serde(default)]
    pub totals: Totals,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The model says that its work is done.
    Finished,
    /// The check command still fails.
    Check,
    /// The answer does not fit the schema.
    Schema,
    /// The same call failed again and again.
    Stuck,
    /// The model answered with nothing, again and again.
    Empty,
    /// The model or a content filter refused.
    Refused,
    /// A compaction failed and the configuration says to stop then.
    Compaction,
    /// What must be sent does not fit the window.
    Oversize,
    /// The limit of rounds.
    Rounds,
    /// The limit of tokens.
    Tokens,
    /// The limit of cost.
    Cost,
    /// The limit of time.
    WallTime,
    /// The provider failed for good.
    Provider,
    /// The transcript cannot be written.
    Storage,
    /// The process in which tools run died, again and again.
    Hands,
    /// A person stopped it.
    Interrupted,
}

impl Reason {
    /// The word written in transcripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Check => "check",
            Self::Schema => "schema",
            Self::Stuck => "stuck",
            Self::Empty => "empty",
            Self::Refused => "refused",
            Self::Compaction => "compaction",
            Self::Oversize => "oversize",
            Self::Rounds => "rounds",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::WallTime => "wall_time",
            Self::Provider => "provider",
            Self::Storage => "storage",
            Self::Hands => "hands",
            Self::Interrupted => "interrupted",
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands fields over by reference"
)]
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Totals {
    /// Rounds.
    pub rounds: u64,
    /// Requests, those for summaries included.
    pub requests: u64,
    /// Calls that were answered.
    pub calls: u64,
    /// Tokens read, by the provider's count, or by the estimate where it did not say.
    pub input: u64,
    /// Of those, read from a cache.
    pub cached: u64,
    /// Tokens written, by the provider's count, or by the estimate where it did not say.
    pub output: u64,
    /// Requests whose tokens are estimates, in part at least; absent: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub estimated: u64,
    /// Money, if prices are known, in micro-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd_micro: Option<u64>,
    /// Time, in milliseconds.
    pub ms: u64,
}

/// A line of a type, or of a shape, that this version does not know: kept, shown, not guessed at.
#[derive(Clone, Debug)]
pub struct Unknown {
    /// The word in `type`.
    pub kind: String,
    /// The whole entry, exactly as it was read.
    pub json: Box<RawValue>,
    /// Why it was not understood, if its type is known.
    pub why: Option<String>,
}
