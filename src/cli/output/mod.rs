//! What programs read on standard output, and the schema of it.
//!
//! Every object that a command writes with `--json` is declared by a type, and [`SCHEMA`] is made
//! from those types, so that what is published is what is written. It is made by a test: the code
//! for it would be a twentieth of the program.

#[cfg(test)]
mod contract;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::compaction::notice::Notice;
use undertext::id::{EntryId, RunId};
use undertext::transcript::{Reason, Totals};

/// The JSON Schema of every line that a command writes with `--json`, one definition a command.
pub(crate) const SCHEMA: &str = include_str!("../../../docs/output.schema.json");

/// What `run --json` writes beside the transcript's own entries.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Told {
    /// The first line.
    Start {
        /// The run.
        run: RunId,
        /// Where its transcript is.
        transcript: String,
    },
    /// A piece of a reply that is coming in. The whole follows as a `response` entry.
    Delta {
        /// The request that is being answered.
        request: EntryId,
        /// The piece.
        #[serde(flatten)]
        piece: Piece,
    },
    /// What is going on now.
    Progress {
        /// The round.
        round: u32,
        /// What the newest request takes, in tokens.
        tokens: u64,
        /// `asking`, `summarizing`, `checking`, `waiting`, or the name of the tool that runs.
        doing: String,
        /// The tokens above which the context is compacted; absent until the settings are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<u64>,
    },
    /// The context is compacted.
    Notice(Notice),
    /// The last line.
    Totals {
        /// The run.
        run: RunId,
        /// Why it ended.
        reason: Reason,
        /// The exit code of the program.
        exit: u8,
        /// What was used since it was begun or taken up.
        totals: Totals,
    },
}

/// A piece of a reply.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Piece {
    /// Text of the answer.
    Text(String),
    /// Text that the model thinks.
    Reasoning(String),
    /// The name of a tool that is being called.
    Call(String),
}
