//! What a model reads of a process that ended.

use std::time::Duration;

use crate::exchange::Status;
use crate::tools::capture::{Capture, Printed};
use crate::tools::process::Ended;
use crate::tools::{Outcome, clip};
use crate::words::grouped;

/// How much of the beginning and of the end of an output is told at most that is not kept whole,
/// whoever asks for more, in characters.
const MOST: u64 = 1 << 18;

/// How a call ended whose process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finish {
    /// The call's status.
    pub(crate) status: Status,
    /// The exit status, if there is one; 128 + n if signal n ended it.
    pub(crate) exit: Option<i32>,
    /// What is said of it below the output; nothing of a success.
    pub(crate) line: String,
}

impl Finish {
    /// How a call ends with a process that ended so, and had this limit.
    pub(crate) fn of(ended: Ended, limit: Duration) -> Self {
        let (status, exit, line) = match ended {
            Ended::Exit(0) => (Status::Ok, Some(0), String::new()),
            Ended::Exit(code) => (Status::Error, Some(code), format!("[exit {code}]")),
            Ended::Signal(signal) => {
                let line = format!("[ended by signal {signal}]");
                (Status::Error, Some(128 + signal), line)
            }
            Ended::TimedOut => {
                let line = format!(
                    "[ended after {} ms, the limit of this call; what it did until then may have \
                     taken effect]",
                    milliseconds(limit)
                );
                (Status::Timeout, None, line)
            }
            Ended::Cancelled => {
                let line = "[cancelled; what it did until then may have taken effect]";
                (Status::Cancelled, None, line.to_owned())
            }
        };
        Self { status, exit, line }
    }
}

/// A length of time as a model reads it.
pub(crate) fn milliseconds(time: Duration) -> String {
    grouped(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The outcome whose content is what was printed, with this said below it, in about `chars`
/// characters where not all of it was kept.
pub(crate) fn outcome(status: Status, capture: Capture, mut end: String, chars: u64) -> Outcome {
    let bytes = capture.bytes();
    let mut outcome = Outcome::new(status, "");
    outcome.content = match capture.narrowed(chars.min(MOST)).printed() {
        Printed::Whole(text) => text,
        Printed::Ends { head, lost, tail } => {
            outcome.bytes = bytes;
            let chars = chars.saturating_sub(end.chars().count() as u64 + 1);
            clip::around(&head, lost, &tail, chars)
        }
    };
    if outcome.content.is_empty() && end.is_empty() {
        end.push_str("[no output]");
    }
    outcome.add_line(&end);
    outcome
}
