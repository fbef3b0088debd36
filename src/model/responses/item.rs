//! One item of a reply: a message, reasoning, a call, or something of the provider's own.
//!
//! An item arrives in up to four ways: begun, in pieces, finished, and once more in the list that
//! closes the reply. Pieces are for listeners; what was finished counts. A call of which two finished
//! versions differ, or none came, is not the call that the model made.

use crate::exchange::ToolCall;
use crate::model::loose::{Gathered, Object, Text, Value};

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text.
    Message,
    /// Reasoning.
    Reasoning,
    /// A call that is ours to answer.
    Call,
    /// What the provider did by itself.
    Opaque,
}

/// How a whole item arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It begins.
    Begun,
    /// It is finished.
    Finished,
}

/// An item so far.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) kind: Option<Kind>,
    pub(super) id: Option<String>,
    pub(super) index: Option<u64>,
    /// Whether a whole version of it came that says it is finished.
    pub(super) is_done: bool,
    /// The exact text of the first finished version, of reasoning and what is opaque.
    pub(super) raw: Option<String>,
    /// What was told of it so far.
    pub(super) told: String,
    pub(super) call: Call,
    parts: Vec<Part>,
    /// Members that are none of ours.
    extra: Gathered,
}

/// What only calls have.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    /// What the provider calls it, if that is not a function.
    kind: Option<String>,
    /// The arguments as they came in pieces.
    pieces: String,
    /// The arguments of finished versions, each once; none of them is empty.
    finished: Vec<String>,
    /// Whether versions differ, or the arguments held what is no text.
    is_damaged: bool,
}

/// A part of a message's text.
#[derive(Debug, Default)]
struct Part {
    index: Option<u64>,
    is_refusal: bool,
    text: String,
}

impl Kind {
    /// What an item is by its type, or by what it has.
    pub(super) fn of(item: &Object<'_>) -> Self {
        let kind = item.word("type").unwrap_or_default();
        let is_asked = item.word("call_id").is_some() && kind.ends_with("_call");
        match kind.as_str() {
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "function_call" | "custom_tool_call" => Self::Call,
            "" if item.get("role").is_some() => Self::Message,
            "" if item.get("arguments").is_some() => Self::Call,
            // What the provider runs by itself has no id to answer to.
            _ if is_asked => Self::Call,
            _ => Self::Opaque,
        }
    }
}

impl Item {
    /// Nothing but what it is and where it stands.
    pub(super) fn new(kind: Kind, index: Option<u64>) -> Self {
        Self {
            kind: Some(kind),
            index,
            ..Self::default()
        }
    }

    /// Takes a version of the whole item. Of finished ones the first counts. Returns the bytes
    /// that are kept.
    pub(super) fn take(&mut self, value: Value<'_>, arrival: Arrival, damaged: bool) -> usize {
        let item = value.object().unwrap_or_default();
        self.id = self.id.take().or(item.word("id"));
        let unfinished = item
            .word("status")
            .is_some_and(|status| matches!(status.as_str(), "incomplete" | "in_progress"));
        let was_done = self.is_done;
        let finished = arrival == Arrival::Finished && !unfinished;
        self.is_done |= finished;
        match self.kind {
            Some(Kind::Message) if !was_done => self.message(&item),
            Some(Kind::Call) => self.call(value, &item, arrival, damaged),
            Some(Kind::Reasoning | Kind::Opaque) if finished && self.raw.is_none() => {
                self.raw = Some(value.raw().to_owned());
                value.raw().len()
            }
            Some(Kind::Message | Kind::Reasoning | Kind::Opaque) | None => 0,
        }
    }

    fn message(&mut self, item: &Object<'_>) -> usize {
        let before = self.size();
        let ours = ["type", "role", "content", "status"];
        self.keep(item, &ours);
        let mut parts = Vec::new();
        if let Some(content) = item.get("content") {
            let contents = content.array().unwrap_or_else(|| vec![content]);
            for (index, content) in contents.into_iter().enumerate() {
                let object = content.object().unwrap_or_default();
                let refusal = object.get("refusal").and_then(Value::text);
                let is_refusal = refusal.is_some();
                let text = refusal.or_else(|| object.get("text").unwrap_or(content).text());
                parts.extend(text.filter(|text| !text.text.is_empty()).map(|text| Part {
                    index: u64::try_from(index).ok(),
                    is_refusal,
                    text: text.text,
                }));
            }
        }
        if !parts.is_empty() {
            self.parts = parts;
        }
        self.size().saturating_sub(before)
    }

    fn size(&self) -> usize {
        let parts = self.parts.iter().map(|part| part.text.len());
        parts.sum::<usize>() + self.extra.bytes()
    }

    fn keep(&mut self, item: &Object<'_>, ours: &[&str]) {
        for (key, value) in item.members() {
            if ours.contains(&key.as_str()) || value.raw() == "null" {
                continue;
            }
            self.extra.put(key, value.raw());
        }
    }

    fn call(
        &mut self,
        value: Value<'_>,
        item: &Object<'_>,
        arrival: Arrival,
        damaged: bool,
    ) -> usize {
        let kind = item.word("type").filter(|kind| kind != "function_call");
        self.call.id = self.call.id.take().or(item.word("call_id"));
        let name = item.word("name");
        if arrival == Arrival::Finished && name.is_some() && self.call.name.is_some() {
            self.call.is_damaged |= name != self.call.name;
        }
        self.call.name = self.call.name.take().or(name);
        if let Some(kind) = kind {
            // It cannot be answered but with an error; all of it is kept for whoever reads.
            self.keep(item, &["id", "call_id", "status"]);
            let kind = kind.strip_suffix("_call").unwrap_or(&kind);
            let kind = kind.strip_suffix("_tool").unwrap_or(kind);
            self.call.kind = Some(kind.to_owned());
            return value.raw().len();
        }
        let ours = ["type", "id", "call_id", "name", "arguments", "status"];
        self.keep(item, &ours);
        match (arrival, item.get("arguments")) {
            (Arrival::Finished, Some(arguments)) => self.finished(arguments, damaged),
            // Some begin with the first piece, most with nothing.
            (Arrival::Begun, Some(arguments)) if self.call.pieces.is_empty() => {
                let text = arguments.text().map(|text| text.text).unwrap_or_default();
                self.call.pieces = text;
                self.call.pieces.len()
            }
            (Arrival::Begun | Arrival::Finished, _) => 0,
        }
    }

    /// Takes the arguments of a finished version and returns the bytes that are kept.
    pub(super) fn finished(&mut self, arguments: Value<'_>, damaged: bool) -> usize {
        let Text {
            text,
            damaged: is_no_text,
        } = arguments.text().unwrap_or_else(|| Text {
            text: arguments.raw().to_owned(),
            damaged: false,
        });
        self.call.is_damaged |= is_no_text || (damaged && text.contains('\u{fffd}'));
        if text.is_empty() || self.call.finished.contains(&text) {
            return 0;
        }
        let kept = text.len();
        if self.call.finished.is_empty() {
            self.call.finished.push(text);
        } else {
            self.call.is_damaged = true;
        }
        kept
    }

    /// Takes a piece of the arguments.
    pub(super) fn arguments(&mut self, piece: &str) {
        self.call.pieces.push_str(piece);
    }

    /// Takes a piece of the text.
    pub(super) fn piece(&mut self, index: Option<u64>, is_refusal: bool, piece: &str) {
        self.part(index, is_refusal).push_str(piece);
    }

    /// Takes a part of the text that is finished, which takes the place of its pieces.
    pub(super) fn part_finished(&mut self, index: Option<u64>, is_refusal: bool, text: String) {
        if !text.is_empty() && !self.is_done {
            *self.part(index, is_refusal) = text;
        }
    }

    fn part(&mut self, index: Option<u64>, is_refusal: bool) -> &mut String {
        let found = self.parts.iter().rposition(|part| {
            part.is_refusal == is_refusal
                && (index.is_none() || part.index.is_none() || part.index == index)
        });
        let place = found.unwrap_or_else(|| {
            self.parts.push(Part {
                index,
                is_refusal,
                text: String::new(),
            });
            self.parts.len() - 1
        });
        &mut self.parts[place].text
    }

    /// The text of a message, or what it says instead of one.
    pub(super) fn text(&self, is_refusal: bool) -> String {
        let parts = self.parts.iter();
        parts
            .filter(|part| part.is_refusal == is_refusal)
            .map(|part| part.text.as_str())
            .collect()
    }

    /// What came beside the text or the arguments, as one object; `None` if nothing did.
    pub(super) fn extra(&self) -> Option<String> {
        self.extra.object()
    }

    /// The call. Of a reply that is whole, one that is not certain is made one that does not parse.
    pub(super) fn into_call(self, is_whole: bool) -> ToolCall {
        let extra = self.extra();
        let Call {
            id,
            name,
            kind,
            pieces,
            finished,
            is_damaged,
        } = self.call;
        let name = name.unwrap_or_default();
        let known = finished.into_iter().next();
        let is_certain = self.is_done && !is_damaged && (known.is_some() || pieces.is_empty());
        let mut arguments = known.unwrap_or(pieces);
        if is_damaged || (is_whole && !is_certain) {
            arguments.push('\u{fffd}');
        }
        ToolCall {
            provider_id: id.or(self.id),
            name: match kind {
                Some(kind) => format!("{kind}:{name}"),
                None => name,
            },
            arguments,
            extra,
        }
    }
}
