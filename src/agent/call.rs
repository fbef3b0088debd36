//! Answering calls: each exactly once, in order, and no effect twice.
//!
//! Neighbouring calls that only read run at the same time; a call with an effect waits for all
//! before it and holds all after it, and its `started` entry is durable before it begins.

use std::borrow::Cow;
use std::collections::BTreeSet;

use futures::StreamExt as _;
use futures::stream;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::agent::{Agent, AgentError};
use crate::exchange::{Clipped, Effect, Ending, Status, ToolResult, ToolSpec};
use crate::hands::{self, Order};
use crate::id::{CallId, Digest, EntryId};
use crate::record::Recorder;
use crate::secret::Known;
use crate::tools::{Call, Outcome, Place, clip, is_malformed, scope};
use crate::transcript::{Event, Reason, Started};
use crate::view::View;
use crate::words;

/// A call that may run: its id, the tool and the checked arguments.
struct Ready {
    id: CallId,
    name: String,
    arguments: String,
}

impl Agent {
    /// Answers the open calls of a response.
    pub(super) async fn call(
        &self,
        recorder: &mut Recorder,
        calls: &[CallId],
        cancel: &CancellationToken,
    ) -> Result<(), AgentError> {
        let malformed = malformed(recorder.view(), calls);
        let mut rest = calls;
        while let Some(first) = rest.first() {
            let checked = self.check(recorder.view(), *first, &malformed);
            let ready = match checked {
                Ok(ready) => ready,
                Err(outcome) => {
                    self.answer(recorder, *first, *outcome, None)?;
                    rest = &rest[1..];
                    continue;
                }
            };
            if cancel.is_cancelled() {
                return Ok(());
            }
            if effect(recorder.view(), &ready.name) == Effect::Writes {
                self.call_with_effect(recorder, &ready, cancel).await?;
                rest = &rest[1..];
                continue;
            }
            let reading: Vec<Ready> = std::iter::once(ready)
                .chain(rest[1..].iter().map_while(|call| {
                    let ready = self.check(recorder.view(), *call, &malformed).ok()?;
                    (effect(recorder.view(), &ready.name) == Effect::Reads).then_some(ready)
                }))
                .collect();
            rest = &rest[reading.len()..];
            self.call_reading(recorder, &reading, cancel).await?;
        }
        Ok(())
    }

    /// Runs one call that changes the world.
    async fn call_with_effect(
        &self,
        recorder: &mut Recorder,
        ready: &Ready,
        cancel: &CancellationToken,
    ) -> Result<(), AgentError> {
        self.record(recorder, Event::Started(Started { call: ready.id }))?;
        recorder.sync()?;
        let watch = recorder.clock().stopwatch();
        let outcome = cancel
            .run_until_cancelled(self.perform(recorder, ready))
            .await;
        let outcome =
            outcome.unwrap_or_else(|| Outcome::new(Status::Cancelled, words::CANCELLED_RUNNING));
        self.answer(recorder, ready.id, outcome, Some(watch.ms()))
    }

    /// Runs neighbouring calls that only read, side by side, and records them in order.
    async fn call_reading(
        &self,
        recorder: &mut Recorder,
        reading: &[Ready],
        cancel: &CancellationToken,
    ) -> Result<(), AgentError> {
        let watch = recorder.clock().stopwatch();
        let limit = self.setup.policy.limits.parallel_calls.max(1);
        let side_by_side = usize::try_from(limit).unwrap_or(usize::MAX);
        let outcomes: Vec<Option<(Outcome, u64)>> = {
            let recorder = &*recorder;
            let calls = reading.iter().map(|ready| async {
                let done = cancel
                    .run_until_cancelled(self.perform(recorder, ready))
                    .await;
                done.map(|outcome| (outcome, watch.ms()))
            });
            // No closure over a call is held while it runs: whoever did could not be sent elsewhere.
            let calls: Vec<_> = calls.collect();
            stream::iter(calls).buffered(side_by_side).collect().await
        };
        for (ready, outcome) in reading.iter().zip(outcomes) {
            // A cancelled reading is answered with the other open calls when the run ends.
            if let Some((outcome, ms)) = outcome {
                self.answer(recorder, ready.id, outcome, Some(ms))?;
            }
        }
        Ok(())
    }

    /// Performs a call where its tool lives.
    async fn perform(&self, recorder: &Recorder, ready: &Ready) -> Outcome {
        let view = recorder.view();
        let span = tracing::info_span!("call", tool = %ready.name, call = %ready.id);
        match (self.toolbox.find(&ready.name), &self.hands) {
            (Some(Place::Brain(tool)), _) => {
                let blobs = |digest: Digest| recorder.storage().read_blob(digest).ok().flatten();
                let (id, arguments) = (ready.id, ready.arguments.as_str());
                tool.call(Call {
                    id,
                    arguments,
                    view,
                    blobs: &blobs,
                })
                .instrument(span)
                .await
            }
            (Some(Place::Hands), Some(hands)) => {
                let order = self.order(view, hands, ready);
                hands.run(order).instrument(span).await
            }
            (Some(Place::Hands), None) => Outcome::error(words::NO_HANDS),
            (None, _) => Outcome::error(format!("There is no tool `{}`.", ready.name)),
        }
    }

    fn order(&self, view: &View, hands: &hands::Hands, ready: &Ready) -> Order {
        let working = view.working();
        let cwd = working.cwd.clone();
        let path = hands::path_argument(&ready.name, &ready.arguments);
        let name = path.map(|path| scope::name(hands.root(), cwd.as_deref(), &path));
        let known = name
            .and_then(|name| working.files.get(&name))
            .map(|file| file.sha256);
        Order {
            call: ready.id,
            tool: ready.name.clone(),
            arguments: ready.arguments.clone(),
            cwd,
            known,
            chars: self.result_chars(view, ready.id),
            timeout_ms: spec(view, &ready.name).and_then(|spec| spec.meta.timeout_ms),
        }
    }

    fn result_chars(&self, view: &View, call: CallId) -> u64 {
        let calls = view
            .response(call.response)
            .map_or(1, |response| response.calls.len());
        let policy = &self.setup.policy;
        view.sizes().map_or(policy.limits.result_chars, |sizes| {
            sizes.result_chars(policy, calls)
        })
    }

    /// Whether a call may run; else what is answered. A call runs only if its reply is complete,
    /// every call of the reply has arguments that parse, and its own name and arguments fit.
    fn check(
        &self,
        view: &View,
        id: CallId,
        malformed: &BTreeSet<EntryId>,
    ) -> Result<Ready, Box<Outcome>> {
        let error = |text: String| Err(Box::new(Outcome::error(text)));
        if view.working().started.contains(&id) {
            // It may have run already, and is not run twice.
            return Err(Box::new(Outcome::new(
                Status::Interrupted,
                words::INTERRUPTED,
            )));
        }
        let response = view.response(id.response);
        let (Some(response), Some(call)) = (response, view.tool_call(id)) else {
            return error(words::NEIGHBOUR_MALFORMED.to_owned());
        };
        match response.ending {
            Ending::Complete => {}
            Ending::Cut => return error(words::CUT_CALL.to_owned()),
            Ending::Filtered | Ending::Refused => return error(words::UNSOUND_CALL.to_owned()),
        }
        let limit = self.setup.policy.limits.calls;
        if id.place > limit {
            return error(words::too_many_calls(limit));
        }
        let checked = self.toolbox.check(&call.name, &call.arguments);
        match checked {
            Err(why) => error(why),
            Ok(_) if malformed.contains(&id.response) => {
                error(words::NEIGHBOUR_MALFORMED.to_owned())
            }
            Ok(arguments) => Ok(Ready {
                id,
                name: call.name.clone(),
                arguments,
            }),
        }
    }

    /// Records the answer to a call. What is too long is clipped; the whole is kept as a blob.
    fn answer(
        &self,
        recorder: &mut Recorder,
        call: CallId,
        outcome: Outcome,
        ms: Option<u64>,
    ) -> Result<(), AgentError> {
        // Before anything is clipped: a part of a value is harder to know.
        let outcome = without(recorder.kept_out(), outcome);
        let outcome = outcome.clipped(self.result_chars(recorder.view(), call), call);
        let outcome = within_its_share(recorder.view(), outcome, call);
        let clipped = match (&outcome.whole, outcome.bytes) {
            (Some(whole), _) => {
                let blob = recorder.keep(whole)?;
                Some(Clipped {
                    bytes: outcome.bytes.max(whole.len() as u64),
                    blob,
                })
            }
            (None, 0) => None,
            (None, bytes) => Some(Clipped { bytes, blob: None }),
        };
        let Outcome {
            status,
            content,
            facts,
            ..
        } = outcome;
        let result = ToolResult {
            call,
            status,
            content,
            clipped,
            facts,
            ms,
        };
        self.record(recorder, Event::Result(result))?;
        Ok(())
    }

    /// Answers what is open when the run is stopped.
    pub(super) fn cancelled(&self, recorder: &mut Recorder) -> Result<Reason, AgentError> {
        for call in recorder.view().open_calls() {
            let started = recorder.view().working().started.contains(&call);
            let text = if started {
                words::CANCELLED_RUNNING
            } else {
                words::CANCELLED
            };
            self.answer(recorder, call, Outcome::new(Status::Cancelled, text), None)?;
        }
        Ok(Reason::Interrupted)
    }
}

/// The outcome without values that must be nowhere.
fn without(known: &Known, mut outcome: Outcome) -> Outcome {
    if let Cow::Owned(content) = known.replace(&outcome.content) {
        outcome.content = content;
    }
    let whole = outcome.whole.as_deref();
    if let Some(Cow::Owned(whole)) = whole.map(|whole| known.replace_bytes(whole)) {
        outcome.whole = Some(whole);
    }
    outcome
}

/// Whether the calls of a tool change the world; of one that is not known, they might.
fn effect(view: &View, name: &str) -> Effect {
    spec(view, name).map_or(Effect::Writes, |spec| spec.meta.effect)
}

/// What was recorded of a tool.
fn spec<'a>(view: &'a View, name: &str) -> Option<&'a ToolSpec> {
    let specs = view
        .wire()
        .map(|wire| wire.tools.as_slice())
        .unwrap_or_default();
    specs.iter().find(|spec| spec.name == name)
}

/// Of the responses of these calls, those in which some call has arguments that are not JSON.
fn malformed(view: &View, calls: &[CallId]) -> BTreeSet<EntryId> {
    let mut responses: BTreeSet<EntryId> = calls.iter().map(|call| call.response).collect();
    responses.retain(|entry| {
        let response = view.response(*entry);
        let mut calls = response.iter().flat_map(|response| &response.calls);
        calls.any(|call| is_malformed(&call.arguments))
    });
    responses
}

/// Clips a result further whose characters take more tokens than plain ones do.
fn within_its_share(view: &View, mut outcome: Outcome, call: CallId) -> Outcome {
    let calls = view
        .response(call.response)
        .map_or(1, |response| response.calls.len());
    let Some(sizes) = view.sizes() else {
        return outcome;
    };
    let most = (sizes.share(0.2) / (calls.max(1) as u64)).max(50);
    let takes = view.text_tokens(&outcome.content);
    if takes > most {
        let chars = outcome.content.chars().count() as u64 * most / takes;
        if outcome.bytes == 0 {
            return outcome.clipped(chars, call);
        }
        if let Some(shorter) = clip::clip(&outcome.content, chars, call) {
            outcome.content = shorter;
        }
    }
    outcome
}
