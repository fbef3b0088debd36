//! Tools as a model and as the runtime know them: specs, results, and the facts beside a result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::exchange::is_false;
use crate::id::{CallId, Digest, EntryId, Span};

/// What a tool is: the words and schema a model reads, and how the runtime treats its calls.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// The exact name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, as it is sent.
    #[schemars(with = "serde_json::Value")]
    pub schema: Box<RawValue>,
    /// How the runtime treats its calls.
    #[serde(default)]
    pub meta: ToolMeta,
}

impl PartialEq for ToolSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.description == other.description
            && self.schema.get() == other.schema.get()
            && self.meta == other.meta
    }
}

/// How the runtime treats the calls of a tool. Nothing of it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolMeta {
    /// Whether calls change the world.
    #[serde(default)]
    pub effect: Effect,
    /// What compaction may do with its calls.
    #[serde(default)]
    pub hint: Hint,
    /// Micro-compaction never touches its results.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exempt: bool,
    /// How a later call makes an earlier one superfluous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersession: Option<Supersession>,
    /// Arguments that name what a call was about, shown in its stub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// How long a call may take, in milliseconds; absent: as long as is usual for the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Whether a tool's calls change the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It only reads: calls may run side by side and need no `started` entry.
    Reads,
    /// It may write, run or send: it waits for all before it and holds all after it.
    #[default]
    Writes,
}

/// What compaction by hints does with the two halves of a call. Unless a tool says otherwise, its
/// arguments stay and its results go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Hint {
    /// The arguments.
    pub request: Treatment,
    /// The result.
    pub response: Treatment,
}

impl Default for Hint {
    fn default() -> Self {
        Self::new(Treatment::Keep, Treatment::Strip)
    }
}

impl Hint {
    /// The hint with these treatments of arguments and result.
    pub fn new(request: Treatment, response: Treatment) -> Self {
        Self { request, response }
    }

    /// Whether the whole call is to be left out.
    pub fn omits(self) -> bool {
        self.request == Treatment::Omit || self.response == Treatment::Omit
    }
}

/// What compaction by hints does with one half of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// It stays.
    #[default]
    Keep,
    /// It is replaced by a stub.
    Strip,
    /// The whole call is left out.
    Omit,
}

/// How a later call of a tool makes an earlier one superfluous, as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Supersession {
    /// The argument that says what a call reads; calls with equal values are compared, if all they
    /// say beside it and the range is equal too. Absent: all arguments together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The arguments that hold the first line and the number of lines of a range, by which one
    /// call may contain another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[String; 2]>,
    /// Tools whose later success on the same key makes the result stale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale_after: Vec<String>,
}

/// The answer to a call: the body of a `result` entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call it answers.
    pub call: CallId,
    /// How the call ended.
    pub status: Status,
    /// The result as the model reads it.
    pub content: String,
    /// What was clipped away, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clipped: Option<Clipped>,
    /// What programs may know of the call; never shown to the model.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub facts: Facts,
    /// How long the call took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did what was asked.
    Ok,
    /// It failed, or its arguments were not understood; nothing else is known.
    Error,
    /// A policy forbade it: it did not run.
    Denied,
    /// Its time was up: effects may have happened.
    Timeout,
    /// The run was taken up again while it was running: effects may have happened.
    Interrupted,
    /// The run was stopped before or while it ran.
    Cancelled,
}

impl Status {
    /// The word written in transcripts and stubs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What was clipped away from a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clipped {
    /// The size of the whole output in bytes.
    pub bytes: u64,
    /// The blob that holds the whole output; absent if it was too large to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<Digest>,
}

/// What a call did, for programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Files read, by path below the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<FileRead>,
    /// Files written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrote: Vec<FileWritten>,
    /// The exit status of a process; 128 + n if signal n ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The working directory after the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The entries of which a call of `Recall` showed something; of a call, that of its result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<EntryId>,
    /// The answer of the `Compact` tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact: Option<Grant>,
}

impl Facts {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A file that a call read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRead {
    /// The path, relative to the workspace if it lies below it.
    pub path: String,
    /// The digest of the whole file as it was then.
    pub sha256: Digest,
    /// The first and the last line that the model was shown, from 1; absent if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<[u64; 2]>,
}

/// A file that a call wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileWritten {
    /// The path, relative to the workspace if it lies below it.
    pub path: String,
    /// The digest of the whole file after the call.
    pub sha256: Digest,
}

/// The answer to a call of `Compact`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    /// Whether a compaction follows when the round's calls are done.
    pub granted: bool,
    /// What will be summarized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// What the model asked to preserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
}
