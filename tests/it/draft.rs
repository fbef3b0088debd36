//! A transcript in the making: what a test writes down, entry by entry.

use std::sync::Arc;

use undertext::exchange::{Ending, Reasoning, Response, Status, ToolCall, ToolResult};
use undertext::id::{CallId, Digest, EntryId};
use undertext::overlay::{Layer, Origin, Overlay, Size};
use undertext::transcript::{
    At, Attachment, BodyDigest, Entry, Estimate, Event, Note, Purpose, Request, Retract, Speaker,
    User,
};

/// The entries written so far. Ids follow one another unless some are skipped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    entries: Vec<Arc<Entry>>,
    skipped: u64,
}

impl Draft {
    /// The entries, oldest first.
    pub(crate) fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The entries, oldest first, given away.
    pub(crate) fn into_entries(self) -> Vec<Arc<Entry>> {
        self.entries
    }

    /// The id that the next entry takes.
    pub(crate) fn next(&self) -> EntryId {
        EntryId(self.entries.len() as u64 + self.skipped + 1)
    }

    /// Leaves out ids, as damage does.
    pub(crate) fn skip(&mut self, ids: u64) {
        self.skipped += ids;
    }

    pub(crate) fn push(&mut self, event: Event) -> EntryId {
        let id = self.next();
        let at = At(1_795_291_200_000).plus_ms(id.0 * 1_234);
        self.entries.push(Arc::new(Entry { id, at, event }));
        id
    }

    pub(crate) fn user(&mut self, origin: Speaker, text: &str) -> EntryId {
        self.user_with(origin, text, &[])
    }

    /// A user entry with attachments, each a name and a text.
    pub(crate) fn user_with(
        &mut self,
        origin: Speaker,
        text: &str,
        attachments: &[(&str, &str)],
    ) -> EntryId {
        let attachments = attachments.iter().map(|(name, text)| Attachment {
            name: (*name).to_owned(),
            media: "text/plain".to_owned(),
            text: (*text).to_owned(),
            clipped: None,
        });
        self.push(Event::User(User {
            origin,
            text: text.to_owned(),
            attachments: attachments.collect(),
            clipped: None,
        }))
    }

    pub(crate) fn request(&mut self, purpose: Purpose) -> EntryId {
        self.push(Event::Request(Request {
            purpose,
            round: None,
            setup: EntryId(2),
            renderer: 1,
            body: BodyDigest {
                sha256: Digest::of(b"a body"),
                bytes: 6,
            },
            estimate: Estimate::default(),
        }))
    }

    /// A response with calls, each a name and arguments.
    pub(crate) fn response(
        &mut self,
        request: EntryId,
        text: &str,
        reasoning: &[&str],
        calls: &[(&str, &str)],
    ) -> EntryId {
        let reasoning = reasoning.iter().map(|text| Reasoning::Text {
            field: "reasoning_content".to_owned(),
            text: (*text).to_owned(),
        });
        let calls = calls.iter().map(|(name, arguments)| ToolCall {
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
            ..ToolCall::default()
        });
        self.push(Event::Response(Response {
            text: text.to_owned(),
            reasoning: reasoning.collect(),
            calls: calls.collect(),
            ..reply(request)
        }))
    }

    pub(crate) fn result(&mut self, call: CallId, status: Status, content: &str) -> EntryId {
        self.push(Event::Result(ToolResult {
            call,
            status,
            content: content.to_owned(),
            clipped: None,
            facts: undertext::exchange::Facts::default(),
            ms: None,
        }))
    }

    /// A whole round: each call a name, arguments and a result that is ok. Returns the response.
    pub(crate) fn round(&mut self, text: &str, calls: &[(&str, &str, &str)]) -> EntryId {
        let request = self.request(Purpose::Round);
        let asked: Vec<_> = calls
            .iter()
            .map(|(name, arguments, _)| (*name, *arguments))
            .collect();
        let response = self.response(request, text, &["why"], &asked);
        for (place, (_, _, content)) in (1..).zip(calls) {
            self.result(CallId::new(response, place), Status::Ok, content);
        }
        response
    }

    pub(crate) fn overlay(&mut self, layer: Layer) -> EntryId {
        let pass = self.next();
        self.push(Event::Overlay(Overlay {
            origin: Origin::User,
            rule: "by hand".to_owned(),
            pass,
            layer,
            size: Size::default(),
            reason: String::new(),
        }))
    }

    pub(crate) fn retract(&mut self, overlays: &[EntryId]) -> EntryId {
        self.push(Event::Retract(Retract {
            overlays: overlays.to_vec(),
            origin: Origin::User,
        }))
    }
}

/// An empty reply to a request.
pub(crate) fn reply(request: EntryId) -> Response {
    Response {
        request,
        text: String::new(),
        reasoning: Vec::new(),
        calls: Vec::new(),
        ending: Ending::Complete,
        extra: None,
        finish: None,
        usage: None,
        model: None,
        provider_request: None,
        ms: None,
    }
}

/// A note.
pub(crate) fn note(text: &str) -> Event {
    Event::Note(Note::Warning {
        text: text.to_owned(),
    })
}
