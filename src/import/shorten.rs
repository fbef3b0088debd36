//! What a line holds, and responses that are cut to it.

use crate::exchange::{Reasoning, Response, ToolCall};
use crate::tools::clip;
use crate::transcript::jsonl::LINE_WRITTEN;

/// The longest text of an entry, in bytes: as JSON it may take six times as many, and a line holds 4 MiB.
pub(super) const LONGEST: usize = (LINE_WRITTEN - (64 << 10)) / 6;

/// Makes a response fit a line; returns how many bytes that cost.
pub(super) fn shortened(response: &mut Response) -> usize {
    let size = |response: &Response| {
        let calls = response.calls.iter();
        let calls = calls.map(|call| call.arguments.len() + call.name.len() + 200);
        let reasoning = response.reasoning.iter().map(|block| match block {
            Reasoning::Text { text, .. } => text.len(),
            Reasoning::Raw { raw, .. } => raw.len(),
        });
        response.text.len() + calls.sum::<usize>() + reasoning.sum::<usize>()
    };
    let all = size(response);
    if all <= LONGEST {
        return 0;
    }
    response.reasoning.clear();
    let share = (LONGEST / 2).min(LONGEST / (response.calls.len() + 1)) / 4;
    let keep = |text: &mut String| text.truncate(clip::first(text, share).len());
    if size(response) > LONGEST {
        keep(&mut response.text);
        let long = |call: &&mut ToolCall| call.arguments.len() > share;
        for call in response.calls.iter_mut().filter(long) {
            // Half of an object is none.
            call.arguments =
                serde_json::json!({ "cut": clip::first(&call.arguments, share / 2) }).to_string();
        }
    }
    all - size(response)
}
