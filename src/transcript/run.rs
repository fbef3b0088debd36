//! What the first entry says: which run it is, and where it comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{Digest, EntryId, RunId};
use crate::transcript::event::is_zero;

/// What writes transcripts: this program and its version.
pub const GENERATOR: &str = concat!("undertext ", env!("CARGO_PKG_VERSION"));

/// The body of a `run` entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The version of the file format: [`FORMAT`](crate::transcript::FORMAT).
    pub format: u32,
    /// The run's id.
    pub run: RunId,
    /// The workspace.
    pub workspace: String,
    /// The program that wrote it.
    pub generator: String,
    /// A name given by a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The run this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The file of another agent that it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Import>,
    /// The task of a batch that it works on; absent: it was begun by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchTask>,
}

impl Run {
    /// A run of this version of the program, in this workspace.
    pub fn new(run: RunId, workspace: impl Into<String>) -> Self {
        Self {
            format: crate::transcript::FORMAT,
            run,
            workspace: workspace.into(),
            generator: GENERATOR.to_owned(),
            name: None,
            parent: None,
            imported: None,
            batch: None,
        }
    }
}

/// Which task of a batch a run works on. Where the line stands in its file says nothing: lines may
/// be added before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchTask {
    /// The file of tasks, by its full path.
    pub file: String,
    /// The name that a person gave the batch; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// SHA-256 of the line, without white space around it.
    pub sha256: Digest,
    /// How many lines before it are the same; absent: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub before: u64,
    /// The task's id, as the line says; absent: it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Where an imported run comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Import {
    /// The format of the file, such as `claude-code`.
    pub format: String,
    /// The name of the file or directory.
    pub file: String,
    /// SHA-256 of what it held.
    pub sha256: Digest,
    /// The agent's own id of the run; absent: it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Which run of the file this is, from 1; absent: the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// How many lines or records of the file could not be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
}

/// Where a run was forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parent {
    /// The parent run.
    pub run: RunId,
    /// The last entry taken over from it.
    pub entry: EntryId,
}
