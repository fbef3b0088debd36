//! The items of a reply, found by what events say of them.
//!
//! An item is found by its id, else by its index, else it is the newest of its kind that is not
//! finished. Some proxies change ids from event to event, some send no index.

use crate::exchange::{Reasoning, ToolCall};
use crate::model::Delta;
use crate::model::loose::{Object, Value};
use crate::model::responses::ITEMS_MAX;
use crate::model::responses::item::{Arrival, Item, Kind};
use crate::model::thoughts::tell;
use crate::wire::responses::{BETWEEN, Placed, Several};

/// The items so far, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Items(Vec<Item>);

/// A reply's content.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) text: String,
    pub(super) refusal: String,
    pub(super) reasoning: Vec<Reasoning>,
    pub(super) calls: Vec<ToolCall>,
    pub(super) extra: Option<String>,
}

/// A piece of an item, or a finished part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text of a message.
    Text,
    /// What a message says instead of an answer.
    Refusal,
    /// Reasoning, or its summary.
    Thought,
    /// Arguments of a call.
    Arguments,
}

impl Piece {
    fn kind(self) -> Kind {
        match self {
            Self::Text | Self::Refusal => Kind::Message,
            Self::Thought => Kind::Reasoning,
            Self::Arguments => Kind::Call,
        }
    }
}

impl Items {
    /// The number of items.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether every item is finished and none of them is a call.
    pub(super) fn are_finished_text(&self) -> bool {
        let text = |item: &Item| item.is_done && item.kind != Some(Kind::Call);
        !self.0.is_empty() && self.0.iter().all(text)
    }

    /// Takes an event that holds an item, and returns the bytes that are kept.
    pub(super) fn take(
        &mut self,
        event: &Object<'_>,
        arrival: Arrival,
        damaged: bool,
        deltas: &mut Vec<Delta>,
    ) -> usize {
        let Some(value) = event.get("item") else {
            return 0;
        };
        let Some(object) = value.object() else {
            return 0;
        };
        let kind = Kind::of(&object);
        let index = event.get("output_index").and_then(Value::count);
        let place = self.find_whole(&object, kind, index, arrival);
        let place = place.unwrap_or_else(|| self.begin(kind, index));
        64 + self.fill(place, value, arrival, damaged, deltas)
    }

    /// Takes the list that closes a reply, and returns the bytes that are kept.
    pub(super) fn close(
        &mut self,
        output: &[Value<'_>],
        damaged: bool,
        deltas: &mut Vec<Delta>,
    ) -> usize {
        let (mut kept, begun) = (0, self.0.len());
        let mut matched = vec![false; begun];
        for value in output {
            if self.0.len() > ITEMS_MAX {
                break;
            }
            let Some(object) = value.object() else {
                continue;
            };
            let kind = Kind::of(&object);
            let (id, call) = (object.word("id"), object.word("call_id"));
            let free = |is: &dyn Fn(&Item) -> bool| {
                let free = |at: &usize| !matched[*at] && self.0[*at].kind == Some(kind);
                (0..begun).filter(free).find(|at| is(&self.0[*at]))
            };
            let place = free(&|item| id.is_some() && item.id == id)
                .or_else(|| free(&|item| call.is_some() && item.call.id == call))
                .or_else(|| free(&|_| true));
            let place = match place {
                Some(place) => {
                    matched[place] = true;
                    place
                }
                None => self.begin(kind, None),
            };
            kept += self.fill(place, *value, Arrival::Finished, damaged, deltas);
        }
        let is_call = |item: &Item| item.kind == Some(Kind::Call);
        let calls = matched
            .iter()
            .zip(&self.0)
            .filter(|(_, item)| is_call(item));
        if calls.clone().any(|(matched, _)| *matched) {
            // A list that names calls names all that were made.
            let missing: Vec<bool> = calls.map(|(matched, _)| !matched).collect();
            let calls = self.0.iter_mut().filter(|item| is_call(item));
            for (call, _) in calls.zip(missing).filter(|(_, missing)| *missing) {
                call.is_done = false;
            }
        }
        kept
    }

    /// Takes a piece of an item, and returns the bytes that are kept.
    pub(super) fn piece(
        &mut self,
        event: &Object<'_>,
        piece: Piece,
        deltas: &mut Vec<Delta>,
    ) -> usize {
        let Some(text) = event.get("delta").and_then(Value::text) else {
            return 0;
        };
        if text.text.is_empty() {
            return 0;
        }
        let place = self.find_piece(event, piece.kind());
        let index = event.get("content_index").and_then(Value::count);
        self.separate(place, deltas);
        let Some(item) = self.0.get_mut(place) else {
            return 0;
        };
        let kept = text.text.len();
        match piece {
            Piece::Text | Piece::Refusal => {
                item.piece(index, piece == Piece::Refusal, &text.text);
                item.told.push_str(&text.text);
                tell(deltas, Delta::Text, text.text);
            }
            Piece::Thought => {
                item.told.push_str(&text.text);
                tell(deltas, Delta::Reasoning, text.text);
            }
            Piece::Arguments => item.arguments(&text.text),
        }
        kept
    }

    /// Takes a finished part of an item, and returns the bytes that are kept.
    pub(super) fn part(
        &mut self,
        event: &Object<'_>,
        piece: Piece,
        damaged: bool,
        deltas: &mut Vec<Delta>,
    ) -> usize {
        let index = event.get("content_index").and_then(Value::count);
        let (name, is_refusal) = match piece {
            Piece::Text => ("text", false),
            Piece::Refusal => ("refusal", true),
            Piece::Arguments => {
                let Some(arguments) = event.get("arguments") else {
                    return 0;
                };
                let place = self.find_piece(event, Kind::Call);
                let item = self.0.get_mut(place);
                return item.map_or(0, |item| item.finished(arguments, damaged));
            }
            Piece::Thought => return 0,
        };
        let Some(text) = event.get(name).and_then(Value::text) else {
            return 0;
        };
        let place = self.find_piece(event, Kind::Message);
        let kept = text.text.len();
        if let Some(item) = self.0.get_mut(place) {
            item.part_finished(index, is_refusal, text.text);
        }
        self.tell_rest(place, deltas);
        kept
    }

    /// A summary's next paragraph begins.
    pub(super) fn paragraph(&mut self, event: &Object<'_>, deltas: &mut Vec<Delta>) {
        let place = self.find_piece(event, Kind::Reasoning);
        if let Some(item) = self.0.get_mut(place)
            && !item.told.is_empty()
        {
            item.told.push_str(BETWEEN);
            tell(deltas, Delta::Reasoning, BETWEEN.to_owned());
        }
    }

    /// What the items are together. Of a reply that is whole, only calls that are certain parse.
    pub(super) fn finish(self, is_whole: bool) -> Content {
        let mut content = Content::default();
        let is_message = |item: &Item| item.kind == Some(Kind::Message);
        let has_message = self.0.iter().any(|item| is_message(item) && item.is_done);
        let (mut placed, mut lone) = (Vec::new(), None);
        for item in self.0 {
            let calls = u32::try_from(content.calls.len()).unwrap_or(u32::MAX);
            match item.kind {
                // Pieces that belong to nothing repeat what is finished.
                Some(Kind::Message) if is_whole && has_message && !item.is_done => {}
                Some(Kind::Message) => {
                    content.refusal.push_str(&item.text(true));
                    let text = item.text(false);
                    if text.is_empty() {
                        continue;
                    }
                    if !content.text.is_empty() {
                        content.text.push_str(BETWEEN);
                    }
                    content.text.push_str(&text);
                    let extra = item.extra();
                    placed.push(Placed {
                        bytes: text.len(),
                        reasoning: content.reasoning.len(),
                        calls,
                        item: raw(extra.as_deref().unwrap_or("{}")),
                    });
                    lone = extra;
                }
                Some(Kind::Call) => content.calls.push(item.into_call(is_whole)),
                Some(Kind::Reasoning | Kind::Opaque) => {
                    content.reasoning.extend(item.raw.map(|raw| Reasoning::Raw {
                        raw,
                        field: None,
                        after: (calls > 0).then_some(calls),
                    }));
                }
                None => {}
            }
        }
        let before = content.reasoning.iter().take_while(|block| match block {
            Reasoning::Raw { after, .. } => after.is_none(),
            Reasoning::Text { .. } => true,
        });
        let usual = (before.count(), 0);
        content.extra = match placed.as_slice() {
            [] => None,
            [one] if (one.reasoning, one.calls) == usual => lone,
            _ => serde_json::to_string(&Several { messages: placed }).ok(),
        };
        content
    }

    fn begin(&mut self, kind: Kind, index: Option<u64>) -> usize {
        self.0.push(Item::new(kind, index));
        self.0.len() - 1
    }

    /// The item that a whole version belongs to; `None` if it begins one.
    fn find_whole(
        &self,
        object: &Object<'_>,
        kind: Kind,
        index: Option<u64>,
        arrival: Arrival,
    ) -> Option<usize> {
        let (id, call) = (object.word("id"), object.word("call_id"));
        let find = |is: &dyn Fn(&Item) -> bool| {
            let of_kind = |item: &Item| item.kind == Some(kind) && is(item);
            self.0.iter().rposition(of_kind)
        };
        let known = find(&|item| id.is_some() && item.id == id)
            .or_else(|| find(&|item| call.is_some() && item.call.id == call));
        if known.is_some() || (arrival == Arrival::Begun && id.is_some()) {
            return known;
        }
        let other = |item: &Item| call.is_some() && item.call.id.is_some() && item.call.id != call;
        let open = |item: &Item| !item.is_done && !other(item);
        match index {
            Some(_) => find(&|item| item.index == index && open(item)),
            None if arrival == Arrival::Finished => find(&open),
            None => None,
        }
    }

    /// The item that a piece belongs to, begun if there is none.
    fn find_piece(&mut self, event: &Object<'_>, kind: Kind) -> usize {
        let id = event.word("item_id");
        let index = event.get("output_index").and_then(Value::count);
        let find = |is: &dyn Fn(&Item) -> bool| {
            let of_kind = |item: &Item| item.kind == Some(kind) && is(item);
            self.0.iter().rposition(of_kind)
        };
        let known = find(&|item| id.is_some() && item.id == id)
            .or_else(|| find(&|item| index.is_some() && item.index == index))
            .or_else(|| match (&id, index) {
                (None, None) => find(&|item| !item.is_done),
                // An item that began without saying which it is.
                _ => find(&|item| !item.is_done && item.id.is_none() && item.index.is_none()),
            });
        known.unwrap_or_else(|| {
            let place = self.begin(kind, index);
            if let Some(item) = self.0.get_mut(place) {
                item.id = id;
            }
            place
        })
    }

    fn fill(
        &mut self,
        place: usize,
        value: Value<'_>,
        arrival: Arrival,
        damaged: bool,
        deltas: &mut Vec<Delta>,
    ) -> usize {
        let Some(item) = self.0.get_mut(place) else {
            return 0;
        };
        let unnamed = item.call.name.is_none();
        let kept = item.take(value, arrival, damaged);
        match item.kind {
            Some(Kind::Call) => {
                if let Some(name) = item.call.name.clone().filter(|_| unnamed) {
                    deltas.push(Delta::Call { name });
                }
            }
            Some(Kind::Message) => self.tell_rest(place, deltas),
            Some(Kind::Reasoning) => {
                if let Some(raw) = item.raw.as_ref().filter(|_| item.told.is_empty()) {
                    item.told = thoughts(raw);
                    tell(deltas, Delta::Reasoning, item.told.clone());
                }
            }
            Some(Kind::Opaque) | None => {}
        }
        kept
    }

    /// Tells what a finished text holds beyond what was told, unless that was another text.
    fn tell_rest(&mut self, place: usize, deltas: &mut Vec<Delta>) {
        let Some(item) = self.0.get(place) else {
            return;
        };
        let text = item.text(false) + &item.text(true);
        let rest = text.strip_prefix(item.told.as_str()).unwrap_or_default();
        if rest.is_empty() {
            return;
        }
        let rest = rest.to_owned();
        self.separate(place, deltas);
        if let Some(item) = self.0.get_mut(place) {
            item.told.push_str(&rest);
        }
        tell(deltas, Delta::Text, rest);
    }

    /// Sets a message or reasoning that begins apart from what was told before.
    fn separate(&self, place: usize, deltas: &mut Vec<Delta>) {
        let Some(item) = self.0.get(place) else {
            return;
        };
        let as_delta = match item.kind {
            Some(Kind::Message) => Delta::Text,
            Some(Kind::Reasoning) => Delta::Reasoning,
            Some(Kind::Call | Kind::Opaque) | None => return,
        };
        let mut before = self.0.iter().take(place);
        let told = before.any(|other| other.kind == item.kind && !other.told.is_empty());
        if told && item.told.is_empty() {
            tell(deltas, as_delta, BETWEEN.to_owned());
        }
    }
}

/// An object as exact text.
fn raw(object: &str) -> Box<serde_json::value::RawValue> {
    serde_json::value::RawValue::from_string(object.to_owned()).unwrap_or_default()
}

/// The words of a finished reasoning item.
fn thoughts(raw: &str) -> String {
    let item = Object::read(raw).unwrap_or_default();
    let parts = ["content", "summary"].into_iter().find_map(|name| {
        let parts = item.get(name)?.array()?;
        (!parts.is_empty()).then_some(parts)
    });
    let texts = parts.into_iter().flatten();
    let texts = texts.filter_map(|part| part.object()?.get("text")?.text());
    let texts: Vec<String> = texts.map(|text| text.text).collect();
    texts.join(BETWEEN)
}
