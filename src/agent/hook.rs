//! Running hooks: a command before a pass, and one after it.
//!
//! What the command before a pass says is recorded before anything follows from it. Nothing follows
//! from the one after a pass; it is not run again should the run be killed beside it.

use serde::Serialize;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::agent::{Agent, AgentError};
use crate::compaction::hooks::{self, Question, Told};
use crate::compaction::notice::Laid;
use crate::exchange::Status;
use crate::hands::Order;
use crate::id::CallId;
use crate::record::Recorder;
use crate::transcript::{Event, Hook, Note};

/// The longest answer that is read, in characters.
const ANSWER_CHARS: u64 = 200_000;

impl Agent {
    /// Asks the command before a pass, and records what it says. A command that hangs, fails or
    /// prints garbage is noted, and the pass goes on.
    ///
    /// Cancelled, it leaves no entry: it is asked again when the run is taken up.
    pub(super) async fn hook_before(
        &self,
        recorder: &mut Recorder,
        question: &Question,
        cancel: &CancellationToken,
    ) -> Result<(), AgentError> {
        let hooks = &self.setup.policy.compaction.hooks;
        let Some(command) = &hooks.before else {
            return Ok(());
        };
        let command = (command.as_str(), hooks.timeout_ms);
        let watch = recorder.clock().stopwatch();
        let Some(output) = self.hook(recorder, command, question, cancel).await else {
            return Ok(());
        };
        let view = recorder.view();
        let answer = output.and_then(|output| hooks::answer(view, &output));
        let ms = Some(watch.ms());
        let hook = match answer {
            Ok(answer) => Hook {
                text: answer.reason.unwrap_or_default(),
                veto: answer.veto,
                keep: answer.keep,
                failed: false,
                ms,
            },
            Err(wrong) => {
                let text = format!("the hook before compaction {wrong}");
                tracing::warn!(text, "hook failed");
                Hook {
                    text,
                    failed: true,
                    ms,
                    ..Hook::default()
                }
            }
        };
        let overruled = hooks::overruled(view).filter(|_| hook.veto);
        self.record(recorder, Event::Note(Note::Hook(hook)))?;
        if let Some(why) = overruled {
            let text = format!("the hook's veto is overruled: {why}");
            self.record(recorder, Event::Note(Note::Warning { text }))?;
        }
        Ok(())
    }

    /// Tells the command after a pass what was laid. If it hangs or fails, a note says so.
    pub(super) async fn hook_after(
        &self,
        recorder: &mut Recorder,
        laid: &Laid,
        cancel: &CancellationToken,
    ) -> Result<(), AgentError> {
        // Not what is recorded: a pass by hand may be laid before the settings of this run are.
        let hooks = &self.setup.policy.compaction.hooks;
        let Some(command) = hooks.after.as_ref().filter(|_| self.hands.is_some()) else {
            return Ok(());
        };
        // What it is told of is durable before it is told.
        recorder.sync()?;
        let Some(told) = Told::of(recorder.view(), laid) else {
            return Ok(());
        };
        let command = (command.as_str(), hooks.timeout_ms);
        let output = self.hook(recorder, command, &told, cancel).await;
        if let Some(Err(wrong)) = output {
            let text = format!("the hook after compaction {wrong}");
            tracing::warn!(text, "hook failed");
            self.record(recorder, Event::Note(Note::Warning { text }))?;
        }
        Ok(())
    }

    /// Runs a command, with its longest time, on this, and returns what it printed or how it failed;
    /// `None` if it was cancelled.
    async fn hook(
        &self,
        recorder: &Recorder,
        (command, timeout_ms): (&str, u64),
        input: &impl Serialize,
        cancel: &CancellationToken,
    ) -> Option<Result<String, String>> {
        let Some(hands) = &self.hands else {
            return Some(Err("cannot run without hands".to_owned()));
        };
        let input = match serde_json::to_string(input) {
            Ok(input) => input,
            Err(error) => return Some(Err(format!("cannot be told: {error}"))),
        };
        let view = recorder.view();
        // No call can have this id: the next entry is a note.
        let call = CallId::new(view.transcript().next_id(), 1);
        let order = Order::hook(call, command, &input, timeout_ms, ANSWER_CHARS);
        let span = tracing::info_span!("hook", command);
        let run = hands.run(order).instrument(span);
        let outcome = cancel.run_until_cancelled(run).await?;
        Some(match outcome.status {
            Status::Ok => Ok(outcome.content),
            Status::Error
            | Status::Denied
            | Status::Timeout
            | Status::Interrupted
            | Status::Cancelled => Err(outcome.content),
        })
    }
}
