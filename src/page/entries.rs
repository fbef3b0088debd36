//! What a page knows of each entry.
//!
//! Words that people chose or a model wrote are numbers of texts; names that are usually short stand
//! where they are.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::exchange::is_false;
use crate::id::{CallId, EntryId, RunId, Span};
use crate::page::lists::List;
use crate::transcript::{Parent, Purpose};

/// One entry.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) id: EntryId,
    /// Milliseconds since the Unix epoch.
    pub(super) at: i64,
    #[serde(flatten)]
    pub(super) what: What,
}

/// What happened, in the words of the transcript.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum What {
    Run {
        run: RunId,
        short: String,
        workspace: usize,
        generator: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<Parent>,
        #[serde(skip_serializing_if = "Option::is_none")]
        imported: Option<Recorded>,
        #[serde(skip_serializing_if = "Option::is_none")]
        batch: Option<Tasks>,
    },
    Setup {
        model: usize,
        profile: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
        /// The size above which the context is compacted.
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<u64>,
        instructions: usize,
        tools: Vec<Tool>,
        /// Signed blocks read only to the model that made them: equal numbers, one model.
        maker: usize,
        /// Neighbouring messages of one role are sent as one.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        merges: bool,
    },
    User {
        origin: String,
        text: usize,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attached>,
        /// The turn that it begins.
        #[serde(skip_serializing_if = "Option::is_none")]
        turn: Option<usize>,
    },
    Request {
        purpose: &'static str,
        /// What it asks for, if it is not for a round.
        #[serde(skip_serializing_if = "Option::is_none")]
        asks: Option<Box<Purpose>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        round: Option<u32>,
        /// The turn of its round.
        #[serde(skip_serializing_if = "Option::is_none")]
        turn: Option<u32>,
        setup: EntryId,
        /// Its size, as it was estimated before it was sent.
        tokens: u64,
        bytes: u64,
        /// The same by the rule alone, before what was learned of the model.
        base: u64,
        /// By the rule alone, how much more it would be if everything read in full; absent where that is
        /// not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<u64>,
        /// Its bytes cannot be built again as they were sent.
        #[serde(skip_serializing_if = "is_false")]
        unproved: bool,
        #[serde(flatten)]
        list: List,
    },
    Response {
        request: EntryId,
        #[serde(skip_serializing_if = "Option::is_none")]
        round: Option<u32>,
        text: usize,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasoning: Vec<Thought>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Called>,
        ending: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        finish: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ms: Option<u64>,
        /// The size of its request as the provider counted it.
        #[serde(skip_serializing_if = "Option::is_none")]
        counted: Option<u64>,
        /// The reply in whose place it reads.
        #[serde(skip_serializing_if = "Option::is_none")]
        corrects: Option<EntryId>,
        used: Used,
    },
    Started {
        call: CallId,
    },
    Result {
        call: CallId,
        status: &'static str,
        content: usize,
        /// The size in bytes of what was clipped.
        #[serde(skip_serializing_if = "Option::is_none")]
        clipped: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ms: Option<u64>,
    },
    Overlay {
        origin: &'static str,
        rule: usize,
        pass: EntryId,
        /// Before and after.
        size: [u64; 2],
        reason: usize,
        #[serde(flatten)]
        layer: Laid,
    },
    Retract {
        overlays: Vec<EntryId>,
        origin: &'static str,
    },
    Pin {
        entry: EntryId,
    },
    Unpin {
        entry: EntryId,
    },
    Fault {
        request: EntryId,
        class: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        message: usize,
        attempt: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
        used: Used,
    },
    Note {
        kind: &'static str,
        text: usize,
    },
    End {
        reason: &'static str,
        text: usize,
        ms: u64,
    },
    Unknown {
        kind: usize,
        json: usize,
    },
}

/// The task of a batch that a run works on.
#[derive(Debug, Serialize)]
pub(super) struct Tasks {
    /// The file of tasks.
    pub(super) file: usize,
    /// The task's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<usize>,
    /// What the batch is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<usize>,
}

/// Who recorded a run that was imported.
#[derive(Debug, Serialize)]
pub(super) struct Recorded {
    /// The agent and its version.
    pub(super) by: usize,
    /// The name of its file.
    pub(super) file: usize,
    /// How many lines or records of the file could not be read.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) skipped: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "what the serializer calls it with"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A tool that a model is told of.
#[derive(Debug, Serialize)]
pub(super) struct Tool {
    pub(super) name: usize,
    pub(super) description: usize,
    pub(super) schema: usize,
}

/// A text handed in with a user's message.
#[derive(Debug, Serialize)]
pub(super) struct Attached {
    pub(super) name: usize,
    pub(super) text: usize,
    /// As it reads in full: heading and text.
    pub(super) reads: usize,
    /// The line that it reads as when it is hidden.
    pub(super) hidden: usize,
}

/// A block of reasoning.
#[derive(Debug, Serialize)]
pub(super) struct Thought {
    pub(super) text: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) opaque: bool,
}

/// A call.
#[derive(Debug, Serialize)]
pub(super) struct Called {
    pub(super) name: usize,
    pub(super) arguments: usize,
}

/// What a reply, or a failed attempt, used.
#[derive(Debug, Default, Serialize)]
pub(super) struct Used {
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) output: u64,
    /// In micro-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<u64>,
}

/// What an overlay changes, and what is read in its place.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Laid {
    Stub {
        /// What each result reads as.
        results: Vec<(CallId, usize)>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        arguments: Vec<CallId>,
    },
    Hide {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<CallId>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasoning: Vec<EntryId>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<(EntryId, u32)>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        rounds: Vec<Span>,
        /// The newer call that made each superfluous.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        why: BTreeMap<CallId, CallId>,
    },
    Summary {
        span: Span,
        by: &'static str,
        depth: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        focus: Option<usize>,
        /// The whole message.
        text: usize,
        /// What is shown again after the last summary.
        #[serde(skip_serializing_if = "Option::is_none")]
        carry: Option<usize>,
    },
    Show {
        calls: Vec<CallId>,
    },
}
