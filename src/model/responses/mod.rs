//! Events of the Responses API put together to a reply.
//!
//! The reply is what its finished items are ([`items`]); pieces are told to listeners and count only
//! where nothing finished came. It is whole when the provider says that the response is completed,
//! and at no other word: the end marker of Chat Completions is none here, except after text of which
//! every item is finished. So a call runs only if it was finished and the response was completed.

mod item;
mod items;
#[cfg(test)]
mod tests;

use item::Arrival;
use items::{Items, Piece};

use crate::exchange::{Ending, Usage};
use crate::model::assemble::{Bounds, End, Progress};
use crate::model::assemble::{ended_with, excess, in_reply, is_error, text_bytes, unended};
use crate::model::ending::{self, Evidence, Verdict};
use crate::model::loose::{Object, Value};
use crate::model::said::Said;
use crate::model::stream::Event;
use crate::model::usage;
use crate::model::{Delta, Fault, Reply};
use crate::transcript::FaultClass;

/// The most items of a reply.
const ITEMS_MAX: usize = 4096;

/// How a server says that a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Close {
    /// It is whole.
    Completed,
    /// It ended before it was.
    Incomplete,
}

/// A reply that is being put together.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    reply: Reply,
    items: Items,
    /// How the server said that the response ended.
    close: Option<Close>,
    marker: bool,
    fault: Option<Box<Fault>>,
    /// An object that meant nothing, in case there is nothing else.
    odd: Option<String>,
    kept: usize,
    used: bool,
    /// Whether an object came of which a part is missing.
    broken: bool,
    /// The bytes of text and thoughts so far, and how many there may be.
    text: usize,
    text_max: Option<usize>,
}

impl Assembler {
    /// Puts together a reply that is stopped if its text is longer than these bounds allow.
    pub(crate) fn within(bounds: Bounds) -> Self {
        Self {
            text_max: Some(bounds.text()),
            ..Self::default()
        }
    }

    /// Takes one event and appends what is worth telling.
    pub(crate) fn take(&mut self, event: &Event, deltas: &mut Vec<Delta>) -> Progress {
        let (before, told) = (self.kept, deltas.len());
        let (values, rest) = Value::sequence(event.data.trim());
        for value in values {
            for item in value.array().unwrap_or_else(|| vec![value]) {
                if let Some(object) = item.object().filter(|_| !self.is_over()) {
                    let kind = object.word("type");
                    let kind = kind.unwrap_or_else(|| event.name.clone());
                    self.event(&kind, &object, item, event.damaged, deltas);
                    self.bound();
                }
            }
        }
        if event.name == "error" && !self.is_over() && !rest.starts_with("[DONE]") {
            self.fail(event.data.trim());
        }
        self.broken |= !self.is_over() && (rest.starts_with('{') || rest.starts_with("[{"));
        self.marker |= rest.starts_with("[DONE]");
        let told = deltas.get(told..).unwrap_or_default();
        self.text += told.iter().map(text_bytes).sum::<usize>();
        self.bound();
        if self.kept > before {
            Progress::Made
        } else {
            Progress::None
        }
    }

    /// Stops a reply that is larger than it may be.
    fn bound(&mut self) {
        let parts = (self.items.count(), ITEMS_MAX, "items");
        if self.fault.is_none() {
            self.fault = excess(self.kept, parts, (self.text, self.text_max)).map(Box::new);
        }
    }

    /// Whether nothing that may still come matters: after the end or an error.
    pub(crate) fn is_over(&self) -> bool {
        self.marker || self.fault.is_some() || self.is_finished()
    }

    /// Whether the server said how the response ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.close.is_some()
    }

    /// What the provider counted so far.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.reply.usage
    }

    /// Judges what was put together. `excerpt` is the beginning of the body.
    pub(crate) fn end(self, end: End, bounds: Bounds, excerpt: &str) -> Result<Reply, Fault> {
        if let Some(fault) = self.fault {
            return Err(*fault);
        }
        let mut reply = self.reply;
        let marker = self.marker && self.items.are_finished_text();
        let content = self.items.finish(self.close != Some(Close::Incomplete));
        let silent = content.text.is_empty()
            && content.refusal.is_empty()
            && content.reasoning.is_empty()
            && content.calls.is_empty();
        let evidence = Evidence {
            finish: reply.finish.as_deref(),
            marker,
            refusal: !content.refusal.is_empty(),
            silent,
            usage: reply.usage,
            maximum: bounds.maximum,
            window: bounds.window,
        };
        let ending = match ending::judge(&evidence) {
            Verdict::Torn => {
                let (begun, odd) = (self.used || self.kept > 0, self.odd.as_deref());
                return Err(torn(begun, self.broken, odd, end, excerpt));
            }
            Verdict::Ended(_) if self.broken && !content.calls.is_empty() => {
                // What is missing may have been a part of a call.
                let message = "an event of a reply with calls could not be read";
                return Err(Fault::new(FaultClass::Torn, message));
            }
            Verdict::Failed(class) => {
                return Err(ended_with(class, &reply.finish.unwrap_or_default()));
            }
            // Whatever the reason is called: the response is not whole.
            Verdict::Ended(Ending::Complete) if self.close == Some(Close::Incomplete) => {
                Ending::Cut
            }
            Verdict::Ended(ending) => ending,
        };
        reply.ending = ending;
        reply.text = content.text;
        if ending == Ending::Refused && reply.text.is_empty() {
            reply.text = content.refusal;
        }
        reply.reasoning = content.reasoning;
        reply.calls = content.calls;
        reply.extra = content.extra;
        Ok(reply)
    }

    fn fail(&mut self, error: &str) {
        if self.fault.is_none() {
            self.fault = Some(Box::new(in_reply(error)));
        }
    }

    fn event(
        &mut self,
        kind: &str,
        object: &Object<'_>,
        value: Value<'_>,
        damaged: bool,
        deltas: &mut Vec<Delta>,
    ) {
        if object.get("choices").and_then(Value::array).is_some() {
            let message = "the server answers in Chat Completions: set model.api to chat";
            self.fault = Some(Box::new(Fault::new(FaultClass::Permanent, message)));
            return;
        }
        let is_response = object.word("object").is_some_and(|word| word == "response")
            || (object.word("type").is_none() && object.get("output").is_some());
        if is_response {
            self.response(object, None, damaged, deltas);
            return;
        }
        let known = self.piece(kind, object, damaged, deltas);
        self.used |= known;
        if known {
            return;
        }
        if let Some(word) = kind.strip_prefix("response.") {
            self.used = true;
            if let Some(response) = object.object("response") {
                self.response(&response, Some(word), damaged, deltas);
            } else if matches!(word, "completed" | "incomplete" | "failed" | "cancelled") {
                self.response(&Object::default(), Some(word), damaged, deltas);
            }
        } else if kind == "error" || is_error(object) {
            self.fail(value.raw());
        } else if !Said::of(value.raw()).message.is_empty() {
            self.odd = Some(value.raw().to_owned());
        }
    }

    /// Takes a part of an item; false if the event is about something else.
    fn piece(
        &mut self,
        kind: &str,
        event: &Object<'_>,
        damaged: bool,
        deltas: &mut Vec<Delta>,
    ) -> bool {
        let items = &mut self.items;
        self.kept += match kind {
            "response.output_item.added" => items.take(event, Arrival::Begun, damaged, deltas),
            "response.output_item.done" => items.take(event, Arrival::Finished, damaged, deltas),
            "response.output_text.delta" => items.piece(event, Piece::Text, deltas),
            "response.refusal.delta" => items.piece(event, Piece::Refusal, deltas),
            "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning.delta" => items.piece(event, Piece::Thought, deltas),
            "response.function_call_arguments.delta" => {
                items.piece(event, Piece::Arguments, deltas)
            }
            "response.output_text.done" => items.part(event, Piece::Text, damaged, deltas),
            "response.refusal.done" => items.part(event, Piece::Refusal, damaged, deltas),
            "response.function_call_arguments.done" => {
                items.part(event, Piece::Arguments, damaged, deltas)
            }
            "response.reasoning_summary_part.added" => {
                items.paragraph(event, deltas);
                0
            }
            // Of a call that cannot be answered nothing but its end counts, yet it goes on.
            "response.custom_tool_call_input.delta" => event.get("delta").map_or(0, |_| 1),
            _ => return false,
        };
        true
    }

    /// Takes what a response says of itself. `word` is that of the event it came in.
    fn response(
        &mut self,
        response: &Object<'_>,
        word: Option<&str>,
        damaged: bool,
        deltas: &mut Vec<Delta>,
    ) {
        self.used = true;
        if self.reply.model.is_none() {
            self.reply.model = response.word("model");
        }
        if self.reply.provider_request.is_none() {
            self.reply.provider_request = response.word("id");
        }
        if let Some(counts) = response.object("usage") {
            self.reply.usage = usage::last_known(self.reply.usage, usage::read(&counts));
        }
        let status = response.word("status");
        let status = status.as_deref();
        // An event and the status that it brings must agree on the end.
        let end = match (word, status) {
            (Some("completed"), None | Some("completed")) | (None, Some("completed")) => {
                "completed"
            }
            (Some("incomplete"), _) | (Some("completed") | None, Some("incomplete")) => {
                "incomplete"
            }
            (Some("failed"), _) | (Some("completed") | None, Some("failed")) => "failed",
            (Some("cancelled"), _) | (Some("completed") | None, Some("cancelled")) => "cancelled",
            (Some(_) | None, _) => "",
        };
        let output = response.get("output").and_then(Value::array);
        match end {
            "completed" => {
                self.kept += self
                    .items
                    .close(&output.unwrap_or_default(), damaged, deltas);
                self.close = Some(Close::Completed);
                self.reply.finish = Some(end.to_owned());
            }
            "incomplete" => {
                self.kept += self
                    .items
                    .close(&output.unwrap_or_default(), damaged, deltas);
                let details = response.object("incomplete_details").unwrap_or_default();
                self.close = Some(Close::Incomplete);
                self.reply.finish = Some(details.word("reason").unwrap_or_else(|| end.to_owned()));
            }
            "" => {}
            _ => match response.get("error") {
                Some(error) => self.fail(error.raw()),
                None => self.fault = Some(Box::new(ended_with(FaultClass::Server, end))),
            },
        }
    }
}

/// The fault of a reply that nobody said is whole. `odd` is an object that meant nothing.
fn torn(begun: bool, broken: bool, odd: Option<&str>, end: End, excerpt: &str) -> Fault {
    if !begun && let Some(odd) = odd {
        return in_reply(odd);
    }
    unended(end, begun, broken, excerpt)
}
