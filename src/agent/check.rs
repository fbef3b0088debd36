//! Checking a reply that ends the work: a command decides whether it may end.

use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::agent::{Agent, AgentError, Task, task};
use crate::exchange::Status;
use crate::hands::Order;
use crate::id::{CallId, EntryId};
use crate::record::Recorder;
use crate::transcript::{Check, Event, Note, Speaker};
use crate::words;

/// How long a check may take, in milliseconds.
const LIMIT_MS: u64 = 600_000;

impl Agent {
    /// Runs the check as an order to the hands, and records what came of it. If it fails, the model
    /// is told what it printed.
    ///
    /// Cancelled, it leaves no entry, as if it had never begun: a check is meant to be run again.
    pub(super) async fn check_work(
        &self,
        recorder: &mut Recorder,
        response: EntryId,
        cancel: &CancellationToken,
    ) -> Result<(), AgentError> {
        let policy = &self.setup.policy;
        let (Some(command), Some(hands)) = (&policy.check, &self.hands) else {
            return Err(AgentError::NoHands);
        };
        let order = Order {
            // The reply has no call of its own that could have this id.
            call: CallId::new(response, 1),
            tool: "Bash".to_owned(),
            arguments: json!({"command": command, "timeout_ms": LIMIT_MS}).to_string(),
            // In the workspace, wherever the model went.
            cwd: None,
            known: None,
            timeout_ms: None,
            // It is clipped below, where its handle is known.
            chars: u64::MAX,
        };
        let watch = recorder.clock().stopwatch();
        let span = tracing::info_span!("check", response = response.0);
        let run = hands.run(order).instrument(span);
        let Some(outcome) = cancel.run_until_cancelled(run).await else {
            return Ok(());
        };
        let check = Check {
            response,
            passed: outcome.status == Status::Ok,
            exit: outcome.facts.exit,
            ms: Some(watch.ms()),
        };
        self.record(recorder, Event::Note(Note::Check(check)))?;
        if !check.passed {
            let sizes = recorder.view().sizes();
            let chars = sizes.map_or(policy.limits.result_chars, |sizes| {
                sizes.result_chars(policy, 1)
            });
            let text = words::check_failed(command, check.exit, &outcome.content);
            let user = task::user(recorder, Speaker::Hook, Task::new(text), chars)?;
            self.record(recorder, Event::User(user))?;
        }
        Ok(())
    }
}
