//! Asking a model: the request is recorded and durable, then sent; what comes back is recorded.

use std::fmt::Write as _;
use std::sync::Arc;

use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::agent::{Agent, AgentError, Progress, look, untaken};
use crate::exchange::{Ending, Response, ResponseTime, ToolCall};
use crate::id::EntryId;
use crate::model::{self, Delta, Reply};
use crate::record::{Recorder, Stopwatch};
use crate::setup::Setup;
use crate::step::{self, Ask};
use crate::tools::clip;
use crate::transcript::jsonl;
use crate::transcript::{Event, Fault, FaultClass, Note, Purpose, Request, Speaker, User};
use crate::view::View;
use crate::wire::{Body, RENDERER};
use crate::words::grouped;

/// The smallest part of a refused request's estimate that the learned window is taken to be.
const REFUSED: (u64, u64) = (9, 10);

impl Agent {
    /// Sends a request and records what comes of it.
    pub(super) async fn ask(
        &self,
        recorder: &mut Recorder,
        ask: Ask,
        cancel: &CancellationToken,
    ) -> Result<(), AgentError> {
        if let Some(text) = ask.tell {
            let (origin, attachments, clipped) = (Speaker::Runtime, Vec::new(), None);
            self.record(
                recorder,
                Event::User(User {
                    origin,
                    text,
                    attachments,
                    clipped,
                }),
            )?;
        }
        let Some(body) = recorder.view().body(&ask.purpose) else {
            return Err(AgentError::NoTask);
        };
        debug_assert!(
            ask.purpose != Purpose::Round || recorder.view().awaits_model(),
            "a request does not end with the assistant's text"
        );
        let request = match ask.again {
            Some(request) => self.again(recorder, request)?,
            None => self.request(recorder, &ask.purpose, &body)?,
        };
        if ask.again.is_none() {
            self.planned(recorder, &ask.purpose);
        }
        // After all that reads old entries: nothing is sent once one is lost.
        recorder.sync()?;
        let kind = match &ask.purpose {
            Purpose::Round => "round",
            Purpose::Summary(_) | Purpose::Combine(_) => "summary",
            Purpose::Repair { .. } => "repair",
        };
        let round = recorder
            .view()
            .rounds()
            .last()
            .map_or(0, |round| round.number);
        let span = tracing::info_span!("round", kind, round, entry = request.0);
        let watch = recorder.clock().stopwatch();
        let bytes = Arc::clone(&body.bytes);
        let sent = self.send(recorder, request, &ask.purpose, body, &watch);
        match cancel.run_until_cancelled(sent.instrument(span)).await {
            Some(Answer::Reply(reply, first)) => {
                let mut response = reply.answers(
                    request,
                    ResponseTime {
                        first,
                        all: watch.ms(),
                    },
                );
                let lost = shortened(&mut response);
                let response = self.record(recorder, Event::Response(response))?;
                for text in lost.into_iter().chain(doubt(recorder.view(), response)) {
                    tracing::warn!(response = response.0, "{text}");
                    self.record(recorder, Event::Note(Note::Warning { text }))?;
                }
                Ok(())
            }
            Some(Answer::Fault(fault)) => {
                let parameter = fault.parameter.clone();
                self.fault(recorder, request, fault)?;
                let Some(parameter) = parameter else {
                    return Ok(());
                };
                self.untaken(recorder, request, (&parameter, &bytes))
            }
            // Cancelled: the request stays open, and is sent again when the run is taken up.
            None => Ok(()),
        }
    }

    /// Records a request. Its body is the one that will be sent.
    fn request(
        &self,
        recorder: &mut Recorder,
        purpose: &Purpose,
        body: &Body,
    ) -> Result<EntryId, AgentError> {
        look(recorder);
        let view = recorder.view();
        let next = view
            .rounds()
            .last()
            .map_or(1, |round| match round.response {
                Some(_) => round.number.saturating_add(1),
                None => round.number,
            });
        let request = Request {
            purpose: purpose.clone(),
            round: (*purpose == Purpose::Round).then_some(next),
            setup: view.setup_entry().unwrap_or_default(),
            renderer: RENDERER,
            body: body.digest(),
            estimate: match purpose {
                Purpose::Round => view.estimate(),
                Purpose::Summary(_) | Purpose::Combine(_) | Purpose::Repair { .. } => {
                    view.estimate_bytes(&body.bytes)
                }
            },
        };
        self.record(recorder, Event::Request(request))
    }

    /// Sends a request again under its own entry. If nothing says why it has no answer, the run was
    /// stopped while it waited.
    fn again(&self, recorder: &mut Recorder, request: EntryId) -> Result<EntryId, AgentError> {
        let asked = recorder.view().ledger().asked.clone();
        if let Some(asked) = asked.filter(|asked| asked.fault.is_none()) {
            let fault = Fault {
                request,
                class: FaultClass::Local,
                status: None,
                message: "interrupted".to_owned(),
                attempt: asked.attempts + 1,
                wait_ms: Some(0),
                refused_call: None,
                usage: None,
            };
            self.record(recorder, Event::Fault(fault))?;
        }
        Ok(request)
    }

    /// Sends a body and waits for the end of the reply.
    async fn send(
        &self,
        recorder: &Recorder,
        request: EntryId,
        purpose: &Purpose,
        body: Body,
        watch: &Stopwatch,
    ) -> Answer {
        let role = purpose.role();
        let model = recorder
            .view()
            .wire()
            .and_then(|wire| wire.models.role(role))
            .cloned();
        let Some(model) = model else {
            return Answer::Fault(model::Fault::new(
                FaultClass::Local,
                "no model in this role",
            ));
        };
        #[cfg(debug_assertions)]
        crate::agent::judged::before_it_is_sent(&body.bytes, &model);
        let summary = match purpose {
            Purpose::Summary(_) | Purpose::Combine(_) => true,
            Purpose::Round | Purpose::Repair { .. } => false,
        };
        let ask = model::Ask {
            body: body.bytes,
            model,
            role,
            summary,
        };
        let mut deltas = self.models.role(role).ask(ask);
        let mut first = None;
        while let Some(delta) = deltas.next().await {
            first.get_or_insert_with(|| watch.ms());
            match delta {
                Delta::Reply(reply) => {
                    return Answer::Reply(reply, first.unwrap_or_default());
                }
                Delta::Fault(fault) => return Answer::Fault(*fault),
                delta @ (Delta::Text(_) | Delta::Reasoning(_) | Delta::Call { .. }) => {
                    self.tell(|| Progress::Delta {
                        request,
                        delta: delta.clone(),
                    });
                }
            }
        }
        // A stream that ends without saying how is no reply.
        Answer::Fault(model::Fault::new(
            FaultClass::Torn,
            "the reply ended without an end",
        ))
    }

    fn fault(
        &self,
        recorder: &mut Recorder,
        request: EntryId,
        fault: model::Fault,
    ) -> Result<(), AgentError> {
        let now = recorder.now();
        let failure = step::Failure {
            class: fault.class,
            asked_wait_ms: fault.wait_ms,
            unclear: fault.unclear,
        };
        let wait_ms = step::wait(recorder.view(), request, failure, now);
        let attempt = recorder
            .view()
            .ledger()
            .asked
            .as_ref()
            .map_or(1, |asked| asked.attempts + 1);
        tracing::warn!(
            class = fault.class.word(),
            attempt,
            wait_ms,
            "request failed"
        );
        let mut message = fault.message;
        if let (None, Some(asked @ 1..)) = (wait_ms, fault.wait_ms) {
            let (seconds, at) = (asked.div_ceil(1000), now.plus_ms(asked));
            write!(message, " (it asks to come back in {seconds} s, at {at})").ok();
        }
        let entry = Fault {
            request,
            class: fault.class,
            status: fault.status,
            message,
            attempt,
            wait_ms,
            refused_call: fault.refused_call.as_deref().map(untaken::beginning),
            usage: fault.usage.map(|usage| *usage),
        };
        self.record(recorder, Event::Fault(entry))?;
        if fault.class == FaultClass::Overflow {
            let learned = learned_window(recorder.view(), request, fault.window);
            if let Some(setup) = learned {
                self.record(recorder, Event::Setup(Box::new(setup)))?;
            }
        }
        Ok(())
    }
}

/// Whether a response can be recorded: no line we write is longer than the format allows.
fn fits_a_line(response: &Response) -> bool {
    // A character takes at most six bytes as JSON, so most replies need not be measured.
    let most = jsonl::LINE_WRITTEN - 4096;
    (size(response) * 6 < most && response.reasoning.is_empty())
        || serde_json::to_vec(response).is_ok_and(|json| json.len() < most)
}

/// The bytes of everything in a response but its reasoning.
fn size(response: &Response) -> usize {
    let extra = |call: &ToolCall| call.extra.as_ref().map_or(0, String::len);
    let id = |call: &ToolCall| call.provider_id.as_ref().map_or(0, String::len);
    let calls = response.calls.iter();
    let calls = calls.map(|it| 64 + it.arguments.len() + it.name.len() + id(it) + extra(it));
    let beside = words(response).into_iter().flatten().map(String::len);
    let extra = response.extra.as_ref().map_or(0, String::len);
    response.text.len() + calls.sum::<usize>() + beside.sum::<usize>() + extra
}

/// The provider's own words for a response.
fn words(response: &Response) -> [Option<&String>; 3] {
    let Response {
        finish,
        model,
        provider_request,
        ..
    } = response;
    [finish, model, provider_request].map(Option::as_ref)
}

/// Makes a response that cannot be recorded one that was cut, and keeps its beginning: the model is
/// told, and nothing of it runs. Returns what is said of that.
fn shortened(response: &mut Response) -> Option<String> {
    if fits_a_line(response) {
        return None;
    }
    let bytes = size(response) as u64;
    let keep = |text: &mut String, chars: usize| text.truncate(clip::first(text, chars).len());
    keep(&mut response.text, 100_000);
    response.reasoning.clear();
    response.calls.truncate(1000);
    for call in &mut response.calls {
        keep(&mut call.name, 80);
        keep(&mut call.arguments, 200);
        (call.provider_id, call.extra) = (None, None);
    }
    let beside = [
        &mut response.finish,
        &mut response.model,
        &mut response.provider_request,
    ];
    for word in beside.into_iter().flatten() {
        keep(word, 200);
    }
    response.extra = None;
    response.ending = Ending::Cut;
    Some(format!(
        "the reply has {} bytes, too many to be recorded: its beginning was kept, and no call of it \
         runs",
        grouped(bytes)
    ))
}

/// What comes of a request.
enum Answer {
    /// A reply, and when its first piece came.
    Reply(Box<Reply>, u64),
    Fault(model::Fault),
}

/// The settings with the window that a refusal teaches: the number it names if that is news, or nine
/// tenths of what was refused with the reserve for output; never above what was known.
///
/// What a provider answered before speaks against a refusal of a summary, whose reason may be another
/// one; a round goes on from its refusal, so it always counts.
fn learned_window(view: &View, request: EntryId, named: Option<u64>) -> Option<Setup> {
    let Event::Request(refused) = &view.transcript().get(request)?.event else {
        return None;
    };
    let mut setup = view.setup()?.clone();
    let role = refused.purpose.role();
    let model = setup.wire.models.role_mut(role)?;
    let known = model.window.unwrap_or(u64::MAX);
    let tokens = refused.estimate.tokens;
    let learned = match named.filter(|named| *named < known) {
        Some(named) => named,
        None if refused.purpose != Purpose::Round
            && tokens <= view.ledger().taught.answered(role) =>
        {
            return None;
        }
        None => {
            let fits = tokens * REFUSED.0 / REFUSED.1;
            // The reserve is at most an eighth of the window that it is a part of.
            let asked = model.parameters.max_output_tokens.unwrap_or(u64::MAX);
            fits + asked.min(fits / 7)
        }
    };
    model.window = Some(learned);
    (learned < known).then_some(setup)
}

/// What is said of the first count of what a model read that is not believed.
fn doubt(view: &View, response: EntryId) -> Option<String> {
    if view.ledger().taught.doubted() != Some(response) {
        return None;
    }
    let answer = view.response(response)?;
    let Event::Request(request) = &view.transcript().get(answer.request)?.event else {
        return None;
    };
    let (counted, tokens) = (answer.usage?.input?, request.estimate.tokens);
    let window = view.wire()?.models.main.window;
    let than = match window.filter(|window| *window < counted) {
        Some(window) => format!("more than the window of {}", grouped(window)),
        None => format!("far fewer than the {} of the estimate", grouped(tokens)),
    };
    Some(format!(
        "the provider counted {} tokens in request {}, {than}; counts like that are not believed",
        grouped(counted),
        answer.request
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_whose_own_words_are_too_long_can_be_recorded() {
        let time = ResponseTime { first: 1, all: 2 };
        let reply = Reply::text("done");
        let mut short = reply.clone().answers(EntryId(4), time);
        assert_eq!(shortened(&mut short), None);
        let long = Some("x".repeat(jsonl::LINE_WRITTEN));
        let extra = Some(format!("{{\"x\":\"{}\"}}", "x".repeat(jsonl::LINE_WRITTEN)));
        for reply in [
            Reply {
                finish: long.clone(),
                ..reply.clone()
            },
            Reply {
                model: long.clone(),
                provider_request: long,
                ..reply.clone()
            },
            Reply { extra, ..reply },
        ] {
            let mut response = reply.answers(EntryId(4), time);
            assert!(shortened(&mut response).is_some());
            assert_eq!((response.ending, &*response.text), (Ending::Cut, "done"));
            assert!(fits_a_line(&response) && response.extra.is_none());
        }
    }
}
