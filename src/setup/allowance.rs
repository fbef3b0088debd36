//! What tools may take of the machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What tools may take of the machine, where they are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Allowance {
    /// The memory of all of them together, in bytes; none: three quarters of the machine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The processes and threads of all of them together.
    pub processes: u64,
    /// The files that one process may hold open.
    pub open_files: u64,
    /// The largest file that may be written, in bytes.
    pub file_size: u64,
    /// What is to stay free of the disks that they write, in bytes.
    pub free_disk: u64,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            memory: None,
            processes: 8192,
            open_files: 16_384,
            file_size: 64 << 30,
            free_disk: 1 << 30,
        }
    }
}
