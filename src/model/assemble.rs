//! Events put together to a reply.
//!
//! Tolerant of every shape that servers are known to send, because what stands where differs and
//! what it means does not: only the first choice counts, only its delta counts where there is
//! one, and numbers are the last known ones.

use crate::exchange::{Ending, Usage};
use crate::model::calls::{Arrival, CALLS_MAX, Calls};
use crate::model::classify::{self, Failure};
use crate::model::ending::{self, Evidence, Verdict};
use crate::model::loose::{Object, Value};
use crate::model::refused;
use crate::model::said::{Said, one_line};
use crate::model::stream::Event;
use crate::model::thoughts::{Thoughts, tell};
use crate::model::usage;
use crate::model::{Delta, Fault, Reply};
use crate::transcript::FaultClass;

/// The largest reply in bytes.
pub(crate) const REPLY_MAX: usize = 64 << 20;
/// The bytes of text and thoughts that a token may come to, all in all: four times what is usual.
const TOKEN_BYTES: u64 = 16;
/// The bytes of text and thoughts that every reply may have.
const TEXT_LEAST: usize = 64 << 10;
/// The most tokens of a reply to a request that names no maximum, by a model of unknown window.
const TOKENS_UNKNOWN: u64 = 256 << 10;

/// How deep parts within parts of content are read.
const PARTS_MAX: u8 = 4;

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The server closed it in an orderly way, or it was closed because nothing more is needed.
    Closed,
    /// The connection was lost.
    Lost(String),
    /// Nothing came for too long.
    Stalled(String),
}

/// What bounds a reply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// The most tokens of output that were asked for.
    pub(crate) maximum: Option<u64>,
    /// The context window in tokens.
    pub(crate) window: Option<u64>,
}

impl Bounds {
    /// The bytes of text and thoughts after which a reply is taken to have no end: more than the
    /// tokens that it may have can come to. Arguments of calls are bounded where they are read.
    pub(crate) fn text(self) -> usize {
        let known = [self.maximum, self.window].into_iter().flatten();
        let tokens = known.filter(|tokens| *tokens > 0).min();
        let bytes = tokens.unwrap_or(TOKENS_UNKNOWN).saturating_mul(TOKEN_BYTES);
        let bytes = usize::try_from(bytes).unwrap_or(REPLY_MAX);
        bytes.clamp(TEXT_LEAST, REPLY_MAX)
    }
}

/// What the server said of the end of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Whole {
    /// Nothing since the newest piece.
    #[default]
    Unsaid,
    /// A finish reason.
    Finished,
    /// The end marker.
    Marked,
}

/// A reply that is being put together.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    reply: Reply,
    thoughts: Thoughts,
    calls: Calls,
    refusal: String,
    whole: Whole,
    fault: Option<Box<Fault>>,
    /// An object that meant nothing, in case there is nothing else.
    odd: Option<String>,
    kept: usize,
    used: bool,
    /// What could not be read, and what could not be read behind a finish reason.
    gap: Gap,
    late_gap: Gap,
    /// The bytes of text and thoughts so far, and how many there may be.
    text: usize,
    text_max: Option<usize>,
}

/// What an event may have held that could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    /// There was none.
    #[default]
    None,
    /// A line that is none of a stream.
    Line,
    /// Perhaps text, perhaps a piece of a call.
    Something,
    /// A piece of a call.
    Call,
}

/// Whether events brought the reply further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Text, reasoning or a part of a call came.
    Made,
    /// Nothing of that.
    None,
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
        let finished = self.whole == Whole::Finished;
        if finished {
            self.whole = Whole::Unsaid;
        }
        let text = event.data.trim();
        let (values, rest) = if event.skipped {
            (Vec::new(), text)
        } else {
            Value::sequence(text)
        };
        if event.name == "error" && text != "[DONE]" {
            self.fail(text);
            return Progress::None;
        }
        for value in values {
            // Google puts errors into an array.
            for item in value.array().unwrap_or_else(|| vec![value]) {
                if let Some(object) = item.object().filter(|_| !self.is_over()) {
                    self.object(&object, item, event.damaged, deltas);
                    self.bound();
                }
            }
        }
        if rest.starts_with("[DONE]") {
            self.whole = Whole::Marked;
        } else if event.skipped || rest.starts_with('{') || rest.starts_with("[{") {
            let is_call = rest.contains("tool_call") || rest.contains("function_call");
            let gap = match (event.skipped, is_call) {
                (true, _) => Gap::Line,
                (false, false) => Gap::Something,
                (false, true) => Gap::Call,
            };
            self.late_gap = self.late_gap.max(gap);
        }
        if self.kept > before || !finished && self.whole == Whole::Unsaid {
            // Behind a finish reason that stands, nothing is missing.
            self.gap = self.gap.max(std::mem::take(&mut self.late_gap));
        }
        let told = deltas.get(told..).unwrap_or_default();
        self.text += told.iter().map(text_bytes).sum::<usize>();
        self.bound();
        if self.kept > before {
            Progress::Made
        } else {
            // What says nothing leaves the reply as finished as it was.
            if finished && self.whole == Whole::Unsaid {
                self.whole = Whole::Finished;
            }
            Progress::None
        }
    }

    /// Stops a reply that is larger than it may be.
    fn bound(&mut self) {
        let parts = (self.calls.count(), CALLS_MAX, "calls");
        if self.fault.is_none() {
            self.fault = excess(self.kept, parts, (self.text, self.text_max)).map(Box::new);
        }
    }

    /// Whether nothing that may still come matters: after the end marker or an error.
    pub(crate) fn is_over(&self) -> bool {
        self.whole == Whole::Marked || self.fault.is_some()
    }

    /// Whether the server gave a finish reason, and nothing of the reply came after it.
    pub(crate) fn is_finished(&self) -> bool {
        self.whole == Whole::Finished
    }

    /// What the provider counted so far.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.reply.usage
    }

    /// Judges what was put together. `excerpt` is the beginning of the body.
    pub(crate) fn end(mut self, end: End, bounds: Bounds, excerpt: &str) -> Result<Reply, Fault> {
        if let Some(fault) = self.fault {
            if fault.class != FaultClass::ContentFilter || self.reply.text.is_empty() {
                return Err(*fault);
            }
            // What a filter let through stays, whichever way it spoke.
            self.reply.ending = Ending::Filtered;
            self.reply.calls = self.calls.finish();
            self.reply.reasoning = self.thoughts.finish();
            return Ok(self.reply);
        }
        let finish = self.reply.finish.as_deref();
        let evidence = Evidence {
            finish: finish.filter(|_| self.whole != Whole::Unsaid),
            marker: self.whole == Whole::Marked,
            refusal: !self.refusal.is_empty(),
            silent: self.kept == 0,
            usage: self.reply.usage,
            maximum: bounds.maximum,
            window: bounds.window,
        };
        match ending::judge(&evidence) {
            Verdict::Torn => Err(self.torn(end, excerpt)),
            Verdict::Failed(class) => {
                let word = self.reply.finish.unwrap_or_default();
                Err(Fault {
                    refused_call: refused::by_finish(&word),
                    ..ended_with(class, &word)
                })
            }
            Verdict::Ended(ending) => {
                self.reply.ending = ending;
                self.reply.calls = self.calls.finish();
                let is_lost = match self.gap {
                    Gap::None => false,
                    Gap::Line | Gap::Something => !self.reply.calls.is_empty(),
                    Gap::Call => true,
                };
                if is_lost {
                    // What is missing may have been a part of a call.
                    let message = "an event of a reply with calls could not be read";
                    return Err(Fault::new(FaultClass::Torn, message));
                }
                if ending == Ending::Refused && self.reply.text.is_empty() {
                    self.reply.text = self.refusal;
                }
                self.reply.reasoning = self.thoughts.finish();
                Ok(self.reply)
            }
        }
    }

    /// The fault of a reply that nobody said is whole.
    fn torn(&self, end: End, excerpt: &str) -> Fault {
        let begun = self.used || self.kept > 0;
        if !begun && let Some(odd) = &self.odd {
            return in_reply(odd);
        }
        if begun && self.whole == Whole::Marked {
            let message = "the reply ended with nothing in it and without a reason";
            return Fault::new(FaultClass::Torn, message);
        }
        unended(end, begun, self.gap > Gap::Line, excerpt)
    }

    fn fail(&mut self, error: &str) {
        if self.fault.is_none() {
            self.fault = Some(Box::new(in_reply(error)));
        }
    }

    fn object(
        &mut self,
        object: &Object<'_>,
        value: Value<'_>,
        damaged: bool,
        deltas: &mut Vec<Delta>,
    ) {
        if is_error(object) {
            self.fail(value.raw());
            return;
        }
        // Groq has a corner of its own for errors and counts.
        let corner = object.get("x_groq");
        let groq = corner.and_then(Value::object).unwrap_or_default();
        if let Some(corner) = corner.filter(|_| is_error(&groq)) {
            self.fail(corner.raw());
            return;
        }
        let usage = object.object("usage").or_else(|| groq.object("usage"));
        if let Some(usage) = &usage {
            self.counted(usage);
        }
        if self.reply.model.is_none() {
            self.reply.model = object.word("model");
        }
        if self.reply.provider_request.is_none() {
            self.reply.provider_request = object.word("id");
        }
        let choices = object.get("choices").and_then(Value::array);
        let index = |choice: &Object<'_>| choice.get("index").and_then(Value::count);
        let first = |choice: &Object<'_>| index(choice).unwrap_or(0) == 0;
        let mut objects = choices
            .iter()
            .flatten()
            .filter_map(|choice| choice.object());
        if let Some(choice) = objects.find(first) {
            self.used = true;
            self.choice(&choice, damaged, deltas);
        } else if choices.is_none() && usage.is_none() && !Said::of(value.raw()).message.is_empty()
        {
            self.odd = Some(value.raw().to_owned());
        }
    }

    fn choice(&mut self, choice: &Object<'_>, damaged: bool, deltas: &mut Vec<Delta>) {
        if let Some(error) = choice.get("error").filter(|error| is_said(*error)) {
            self.fail(error.raw());
            return;
        }
        if let Some(usage) = choice.object("usage") {
            self.counted(&usage);
        }
        if let Some(delta) = choice.get("delta") {
            // What stands beside a delta only repeats it.
            if let Some(delta) = delta.object() {
                self.message(&delta, Arrival::Pieces, damaged, deltas);
            }
        } else if self.kept == 0
            && let Some(message) = choice.object("message")
        {
            self.message(&message, Arrival::Whole, damaged, deltas);
        }
        if let Some(finish) = choice.word("finish_reason").filter(|word| is_reason(word)) {
            self.whole = Whole::Finished;
            // A later word does not make whole what an earlier one called cut or failed.
            let known = self.reply.finish.as_deref();
            if known.is_none_or(|known| ending::ends_well(known) || !ending::ends_well(&finish)) {
                self.reply.finish = Some(finish);
            }
        }
    }

    fn message(
        &mut self,
        message: &Object<'_>,
        arrival: Arrival,
        damaged: bool,
        deltas: &mut Vec<Delta>,
    ) {
        self.kept += self.thoughts.take(message, deltas);
        if let Some(content) = message.get("content") {
            self.content(content, PARTS_MAX, deltas);
        }
        if let Some(refusal) = message.get("refusal").and_then(Value::text) {
            self.kept += refusal.text.len();
            self.refusal.push_str(&refusal.text);
            tell(deltas, Delta::Text, refusal.text);
        }
        let mut begun = Vec::new();
        if let Some(items) = message.get("tool_calls").and_then(Value::array) {
            self.kept += self.calls.take(&items, arrival, damaged, &mut begun);
        }
        if let Some(function) = message.object("function_call") {
            self.kept += self.calls.take_function(&function, damaged, &mut begun);
        }
        deltas.extend(begun.into_iter().map(|name| Delta::Call { name }));
    }

    /// Text, or a list of parts that hold text or thoughts.
    fn content(&mut self, content: Value<'_>, depth: u8, deltas: &mut Vec<Delta>) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if let Some(text) = content.text() {
            self.kept += text.text.len();
            self.reply.text.push_str(&text.text);
            tell(deltas, Delta::Text, text.text);
        } else if let Some(parts) = content.array() {
            for part in parts {
                let Some(object) = part.object() else {
                    self.content(part, depth, deltas);
                    continue;
                };
                if let Some(thoughts) = object.first(&["thinking", "reasoning"]) {
                    self.kept += self.thoughts.field("thinking", thoughts, deltas);
                } else if let Some(text) = object.first(&["text", "refusal"]) {
                    self.content(text, depth, deltas);
                }
            }
        }
    }

    /// Takes the counts that are there; those that are not stay as they were.
    fn counted(&mut self, usage: &Object<'_>) {
        self.reply.usage = usage::last_known(self.reply.usage, usage::read(usage));
    }
}

/// What a reply has too much of, if anything: bytes, `parts` (how many, the most, and their name), or
/// bytes of `text` (how many, and the most).
pub(crate) fn excess(
    kept: usize,
    parts: (usize, usize, &str),
    text: (usize, Option<usize>),
) -> Option<Fault> {
    let (count, most, name) = parts;
    let message = if kept > REPLY_MAX || count > most {
        format!("the reply is larger than {REPLY_MAX} bytes or {most} {name}")
    } else {
        let most = text.1.filter(|most| text.0 > *most)?;
        format!(
            "the reply has no end: it was stopped after {most} bytes; a lower `max_output_tokens` \
             ends such a reply earlier"
        )
    };
    Some(Fault::new(FaultClass::Permanent, message))
}

/// The bytes of text or thoughts in a piece.
pub(crate) fn text_bytes(delta: &Delta) -> usize {
    match delta {
        Delta::Text(text) | Delta::Reasoning(text) => text.len(),
        Delta::Call { .. } | Delta::Reply(_) | Delta::Fault(_) => 0,
    }
}

/// Whether a word is a finish reason; some servers have a word for none.
fn is_reason(word: &str) -> bool {
    let none = ["null", "none", "unspecified", "finish_reason_unspecified"];
    !none.contains(&word.trim().to_lowercase().as_str())
}

/// Whether an object is an error rather than a part of a reply.
pub(crate) fn is_error(object: &Object<'_>) -> bool {
    object.get("error").is_some_and(is_said)
        || object.word("object").is_some_and(|kind| kind == "error")
        || (object.get("choices").is_none()
            && object.word("type").is_some_and(|kind| kind == "error"))
}

/// Whether the value of an `error` member says that there is one.
fn is_said(error: Value<'_>) -> bool {
    !matches!(error.raw(), "false" | "0" | "\"\"" | "{}" | "[]")
}

/// The fault of an error within a reply of status 200.
pub(crate) fn in_reply(error: &str) -> Fault {
    classify::fault(&Failure {
        body: error,
        ..Failure::default()
    })
}

/// The fault of a reply whose last word means a failure.
pub(crate) fn ended_with(class: FaultClass, word: &str) -> Fault {
    let word = one_line(word);
    Fault::new(class, format!("the provider ended the reply with `{word}`"))
}

/// The fault of a reply that ended like this before anyone said that it is whole. `begun`: a part of
/// it came; `broken`: something came that could not be read.
pub(crate) fn unended(end: End, begun: bool, broken: bool, excerpt: &str) -> Fault {
    match end {
        End::Stalled(message) => Fault::new(FaultClass::Stall, message),
        End::Lost(message) if begun => Fault::new(FaultClass::Torn, message),
        End::Lost(message) => Fault::new(FaultClass::Transport, message),
        End::Closed if begun || broken => {
            let message = "the connection was closed before the reply was whole";
            Fault::new(FaultClass::Torn, message)
        }
        End::Closed => unusable(excerpt),
    }
}

/// The fault of a body in which nothing could be used.
fn unusable(excerpt: &str) -> Fault {
    let excerpt = excerpt.trim();
    if excerpt.is_empty() {
        return Fault::new(FaultClass::Torn, "the reply is empty");
    }
    let class = if excerpt.starts_with('<') {
        // A page stands at this address, and will stand there next time.
        FaultClass::Permanent
    } else {
        FaultClass::Torn
    };
    let shown: String = one_line(excerpt).chars().take(200).collect();
    Fault::new(class, format!("the answer is no model's reply: `{shown}`"))
}
