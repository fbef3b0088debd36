//! What passes between us and a model, in our own words.
//!
//! [`Message`] is what a model reads; [`Response`] is what it wrote, [`ToolCall`] by [`ToolCall`];
//! [`ToolResult`] answers a call; [`ToolSpec`] tells the model of a tool, and the runtime how its
//! calls may be compacted. No provider's type is named here: those stay in `wire` and `model`.

mod message;
mod response;
mod tool;
mod plain;
mod arguments;

pub use arguments::{arguments, normal, normalised};
pub use message::{Message, SentCall};
pub use response::{Ending, Reasoning, Response, ResponseTime, ToolCall, Usage};
pub use tool::{Clipped, Effect, Facts, FileRead, FileWritten, Grant, Hint, Status, Supersession};
pub use tool::{ToolMeta, ToolResult, ToolSpec, Treatment};

/// Whether a flag has its usual value and need not be written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !*flag
}
