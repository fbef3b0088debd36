//! What each piece says: entries as they read through the layers.

use std::borrow::Cow;

use serde_json::Value;

use crate::exchange::{Message, Response, SentCall, ToolCall, ToolResult, ToolSpec};
use crate::id::{CallId, EntryId, Span};
use crate::overlay::layers::{Reads, Stubbed};
use crate::overlay::{Carry, Form, Layer, Overlay};
use crate::setup::Setup;
use crate::transcript::{Event, Speaker, User};
use crate::view::View;
use crate::view::item::{Item, Kind};
use crate::view::pieces::{Part, Piece};
use crate::words;

/// The longest text of label arguments in a stub, in characters.
const LABELS: usize = 120;

impl View {
    /// The messages of the next round's request as they read now, without instructions.
    pub fn messages(&self) -> Vec<Message<'_>> {
        self.pieces
            .list()
            .iter()
            .filter_map(|piece| self.message(piece))
            .collect()
    }

    /// The messages an item reads as: none if it is covered, unless a summary stands there.
    pub(super) fn parts(&self, index: usize) -> Vec<Part> {
        let Some(item) = self.items.get(index) else {
            return Vec::new();
        };
        if let Some(summary) = self.bands.winner(index) {
            return if self.bands.stands_at(summary, index) {
                vec![Part::Summary(summary)]
            } else {
                Vec::new()
            };
        }
        if item.hidden().is_some() {
            return Vec::new();
        }
        match &item.kind {
            Kind::User(_) => {
                let text = self.user(item.entry).map(|user| user_text(item, user));
                if text.is_some_and(|text| !text.is_empty()) {
                    vec![Part::User]
                } else {
                    Vec::new()
                }
            }
            Kind::Response { calls, .. } => {
                let visible = (0..calls.len()).filter(|call| !item.hides_call(*call));
                // There is room for what comes before them.
                let mut parts = Vec::with_capacity(1 + calls.len());
                parts.extend(visible.map(Part::Result));
                let text = self
                    .response(self.corrected(item.entry))
                    .is_some_and(|reply| !reply.text.is_empty());
                if text || !parts.is_empty() {
                    parts.insert(0, Part::Assistant);
                }
                parts
            }
        }
    }

    /// The message of a piece.
    pub(super) fn message(&self, piece: &Piece) -> Option<Message<'_>> {
        let item = self.items.get(piece.item)?;
        match piece.part {
            Part::User => Some(Message::User {
                text: user_text(item, self.user(item.entry)?),
            }),
            Part::Assistant => self.assistant(item),
            Part::Result(index) => {
                let call = CallId::at(item.entry, index);
                Some(Message::Tool {
                    call,
                    text: self.result_text(item, index, call),
                })
            }
            Part::Summary(overlay) => Some(Message::User {
                text: Cow::Owned(self.summary_text(overlay)?),
            }),
            Part::Carry(overlay) => {
                let Layer::Summary(summary) = &self.overlay(overlay)?.layer else {
                    return None;
                };
                Some(Message::User {
                    text: Cow::Owned(self.carry_text(overlay, &summary.carry)?),
                })
            }
            Part::Understood => Some(Message::Assistant {
                text: Cow::Borrowed(words::UNDERSTOOD),
                reasoning: Cow::Borrowed(&[]),
                calls: Vec::new(),
                extra: None,
            }),
        }
    }

    fn assistant(&self, item: &Item) -> Option<Message<'_>> {
        let response = self.response(self.corrected(item.entry))?;
        let Kind::Response {
            reasoning, calls, ..
        } = &item.kind
        else {
            return None;
        };
        // Signed and opaque blocks are good for the model that made them alone.
        let own = self.is_own(response);
        let shown = |index: &usize| !item.hides_call(*index);
        let calls = (0..calls.len()).filter(shown).filter_map(|index| {
            let call = response.calls.get(index)?;
            let id = CallId::at(item.entry, index);
            let stubbed = matches!(calls[index].layers.arguments(), Reads::Stubbed(_));
            Some(sent(id, call, stubbed, own))
        });
        let reasoning = match reasoning.newest() {
            Some(_) => Cow::Borrowed(&[][..]),
            None if own => Cow::Borrowed(response.reasoning.as_slice()),
            None => {
                let plain = response.reasoning.iter().filter(|block| !block.is_opaque());
                Cow::Owned(plain.cloned().collect())
            }
        };
        Some(Message::Assistant {
            text: Cow::Borrowed(&response.text),
            reasoning,
            calls: calls.collect(),
            extra: response.extra.as_deref().filter(|_| own).map(Cow::Borrowed),
        })
    }

    /// Whether the model that works on the task now is the one that made a response.
    fn is_own(&self, response: &Response) -> bool {
        let maker = self.setup_at(response.request);
        let models = maker.zip(self.setup());
        models.is_none_or(|(maker, now)| {
            let (maker, now) = (&maker.wire.models.main, &now.wire.models.main);
            now.made_by(maker)
        })
    }

    /// The settings that were in force at an entry.
    pub fn setup_at(&self, entry: EntryId) -> Option<&Setup> {
        let place = self
            .setups
            .partition_point(|setup| *setup < entry)
            .checked_sub(1)?;
        let setup = self.transcript.get(*self.setups.get(place)?)?;
        if let Event::Setup(setup) = &setup.event {
            Some(setup)
        } else {
            None
        }
    }

    fn result_text(&self, item: &Item, index: usize, id: CallId) -> Cow<'_, str> {
        let Some(state) = item.calls().get(index) else {
            return Cow::Borrowed("");
        };
        let Some(result) = state.result.and_then(|result| self.result(result)) else {
            return Cow::Borrowed(words::INTERRUPTED);
        };
        match state.layers.result() {
            Reads::Full | Reads::Hidden(_) => Cow::Borrowed(&result.content),
            Reads::Stubbed(stub) => {
                let call = self.tool_call(id);
                Cow::Owned(
                    call.map_or_else(String::new, |call| self.stub_text(id, call, result, stub)),
                )
            }
        }
    }

    /// How the result of a call reads under a stub.
    pub(crate) fn stub_text(
        &self,
        id: CallId,
        call: &ToolCall,
        result: &ToolResult,
        stub: Stubbed,
    ) -> String {
        let name = &call.name;
        let previous = || words::previous(name, id, result.status, lines(&result.content));
        match (stub.form, stub.by) {
            (Form::Compacted, _) => {
                let spec = self.spec_at(name, stub.overlay);
                let labels = spec
                    .map(|spec| labels(spec, &call.arguments))
                    .unwrap_or_default();
                words::compacted(name, id, result.status, &labels)
            }
            (Form::Stale, Some(by)) => words::stale(name, id, by),
            (Form::Stale, None) | (Form::Previous, _) => previous(),
        }
    }

    /// The message that a summary reads as.
    pub(crate) fn summary_text(&self, id: EntryId) -> Option<String> {
        let Layer::Summary(summary) = &self.overlay(id)?.layer else {
            return None;
        };
        let before = Span::new(
            summary.span.from,
            summary.span.to.min(EntryId(id.0.saturating_sub(1))),
        );
        let rounds = self.rounds.within(before);
        let rounds = rounds
            .first()
            .zip(rounds.last())
            .map(|(first, last)| (first.number, last.number));
        let text = &summary.text;
        Some(words::summary(summary.span, rounds, id, text, summary.by))
    }

    /// What a summary carries, as one text; `None` if nothing of it exists.
    pub(crate) fn carry_text(&self, id: EntryId, carry: &Carry) -> Option<String> {
        let mut parts = vec![words::CARRIED.to_owned()];
        let before = |entry: &EntryId| {
            // A result speaks for its call, which must have been there as well.
            *entry < id
                && self
                    .result(*entry)
                    .is_none_or(|result| result.call.response < id)
        };
        parts.extend(
            carry
                .entries
                .iter()
                .filter(|e| before(e))
                .filter_map(|e| self.carried(*e)),
        );
        for call in &carry.calls {
            let result = self.result_of(*call).filter(|(entry, _)| before(entry));
            if let (Some(tool), Some((_, result))) = (self.tool_call(*call), result) {
                let heading = words::carried_call(*call, &tool.name, &tool.arguments);
                parts.push(format!("{heading}\n{}", result.content));
            }
        }
        parts.extend(
            [&carry.state, &carry.survival]
                .into_iter()
                .filter(|t| !t.is_empty())
                .cloned(),
        );
        (parts.len() > 1).then(|| parts.join("\n\n"))
    }

    /// An entry shown again verbatim; `None` if it is of a kind that is not.
    pub(crate) fn carried(&self, id: EntryId) -> Option<String> {
        let (whose, text) = match &self.transcript.get(id)?.event {
            Event::User(user) => {
                let whose = match user.origin {
                    Speaker::Task | Speaker::FollowUp => words::FROM_USER,
                    Speaker::Hook | Speaker::Runtime => words::FROM_RUNTIME,
                };
                (whose.to_owned(), with_attachments(user, |_| false))
            }
            Event::Response(response) => (
                words::FROM_ASSISTANT.to_owned(),
                Cow::Borrowed(response.text.as_str()),
            ),
            Event::Result(result) => {
                let name = &self.tool_call(result.call)?.name;
                (
                    words::result_of(name),
                    Cow::Borrowed(result.content.as_str()),
                )
            }
            Event::Run(_)
            | Event::Setup(_)
            | Event::Request(_)
            | Event::Started(_)
            | Event::Overlay(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => return None,
        };
        Some(format!("{}\n{text}", words::carried_entry(id, &whose)))
    }

    /// The overlay entry with this id.
    pub fn overlay(&self, id: EntryId) -> Option<&Overlay> {
        let Event::Overlay(overlay) = &self.transcript.get(id)?.event else {
            return None;
        };
        Some(overlay)
    }

    /// The call with this id, as the model made it.
    pub fn tool_call(&self, id: CallId) -> Option<&ToolCall> {
        self.response(id.response)?.calls.get(id.index()?)
    }

    /// The first result of a call, with its entry.
    pub fn result_of(&self, call: CallId) -> Option<(EntryId, &ToolResult)> {
        let entry = self.answer(call)?;
        Some((entry, self.result(entry)?))
    }

    /// The entry of the first result of a call.
    pub(crate) fn answer(&self, call: CallId) -> Option<EntryId> {
        let (item, index) = self.items.call(call)?;
        self.items.get(item)?.calls().get(index)?.result
    }

    /// The spec of a tool in the setup that was in force at an entry.
    pub(crate) fn spec_at(&self, name: &str, entry: EntryId) -> Option<&ToolSpec> {
        let setup = self.setup_at(entry)?;
        setup.wire.tools.iter().find(|spec| spec.name == name)
    }
}

fn sent(id: CallId, call: &ToolCall, stubbed: bool, own: bool) -> SentCall<'_> {
    let arguments = if stubbed {
        words::NO_ARGUMENTS
    } else {
        &call.arguments
    };
    SentCall {
        id,
        name: Cow::Borrowed(&call.name),
        arguments: Cow::Borrowed(arguments),
        // A signature signs the arguments it came with.
        extra: call
            .extra
            .as_deref()
            .filter(|_| own && !stubbed)
            .map(Cow::Borrowed),
    }
}

/// A user's text as it reads under the layers of its item.
fn user_text<'a>(item: &Item, user: &'a User) -> Cow<'a, str> {
    let hidden = match &item.kind {
        Kind::User(attachments) => attachments.as_slice(),
        Kind::Response { .. } => &[],
    };
    with_attachments(user, |index| {
        hidden
            .get(index)
            .is_some_and(|cover| cover.newest().is_some())
    })
}

/// A user's text with its attachments, those that are hidden as a line each.
fn with_attachments(user: &User, hidden: impl Fn(usize) -> bool) -> Cow<'_, str> {
    if user.attachments.is_empty() {
        return Cow::Borrowed(&user.text);
    }
    let mut text = user.text.clone();
    for (index, attachment) in user.attachments.iter().enumerate() {
        text.push_str("\n\n");
        let name = &attachment.name;
        text.push_str(&if hidden(index) {
            words::attachment_hidden(name, attachment.text.chars().count())
        } else {
            words::attachment(name, &attachment.media, &attachment.text)
        });
    }
    Cow::Owned(text)
}

/// The number of lines of a text.
fn lines(text: &str) -> usize {
    let ends = |part: &[u8]| part.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
    // Of so few bytes a byte can hold the count, and many bytes are looked at at once.
    let ended: usize = text.as_bytes().chunks(128).map(ends).map(usize::from).sum();
    ended + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// The arguments that name what a call was about, on one line.
fn labels(spec: &ToolSpec, arguments: &str) -> String {
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else {
        return String::new();
    };
    let values = spec
        .meta
        .labels
        .iter()
        .filter_map(|name| arguments.get(name));
    let values = values.map(|value| match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    });
    let text: String = values.collect::<Vec<_>>().join(", ");
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().count() > LABELS {
        let mut cut: String = text.chars().take(LABELS - 1).collect();
        cut.push('…');
        return cut;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_they_are_read() {
        let text = "a\n\r\n\nb\r\nc\n".repeat(60);
        for from in 0..text.len() {
            for text in [&text[from..], &text[..from], &"\n".repeat(from)] {
                assert_eq!(lines(text), text.lines().count(), "{text:?}");
            }
        }
    }
}
