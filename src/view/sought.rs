//! The texts that models were asked for and that no summary holds yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{EntryId, Span};
use crate::json_text;
use crate::overlay::Layer;
use crate::transcript::{Entry, Event, Note, Purpose};

/// Entries before a summary among which the requests that led to it are sought.
const PASS: u64 = 64;

/// What was asked for besides rounds, and what became of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sought {
    texts: Vec<Text>,
    /// What summarisers have read, by the request that gave it to them: spans of raw entries.
    read: Vec<(EntryId, Span)>,
    /// What requests and hooks asked to be kept since the newest round, by entry.
    asked: Vec<(EntryId, Vec<String>)>,
    /// The same of what led to each summary that was laid.
    kept: Arc<BTreeMap<EntryId, Vec<String>>>,
}

/// A text that a model was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The request.
    pub request: EntryId,
    /// What it asks for.
    #[serde(with = "json_text")]
    pub purpose: Purpose,
    /// The entries that the text stands for.
    pub span: Span,
    /// The reply, if there is one.
    pub response: Option<EntryId>,
    /// Whether a note says that it will not do.
    pub failed: bool,
}

impl Sought {
    pub(super) fn take(&mut self, entry: &Entry) {
        self.take_kept(entry);
        match &entry.event {
            Event::Request(request) => match span(&request.purpose) {
                Some(span) => self.texts.push(Text {
                    request: entry.id,
                    purpose: request.purpose.clone(),
                    span,
                    response: None,
                    failed: false,
                }),
                // What a pass did not get is not waited for any more; what it got may serve again.
                None => self
                    .texts
                    .retain(|text| text.response.is_some() && !text.failed),
            },
            Event::Response(response) => {
                if let Some(text) = self.of(response.request).filter(|t| t.response.is_none()) {
                    text.response = Some(entry.id);
                    if let Purpose::Summary(ask) = &text.purpose {
                        let read = (text.request, ask.span);
                        self.read.push(read);
                    }
                }
            }
            Event::Note(Note::SummaryFailed { request, .. }) => {
                self.read.retain(|(read, _)| read != request);
                if let Some(text) = self.of(*request) {
                    text.failed = true;
                }
            }
            Event::Overlay(overlay) => {
                if let Layer::Summary(summary) = &overlay.layer {
                    let held = |span: Span| {
                        summary.span.contains(span.from) && summary.span.contains(span.to)
                    };
                    self.texts.retain(|text| !held(text.span));
                }
            }
            // What failed is tried as if for the first time when the run is taken up.
            Event::End(_) => self.texts.retain(|text| !text.failed),
            Event::Run(_)
            | Event::Setup(_)
            | Event::User(_)
            | Event::Started(_)
            | Event::Result(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::Unknown(_) => {}
        }
    }

    fn take_kept(&mut self, entry: &Entry) {
        let keep = match &entry.event {
            Event::Request(request) => match &request.purpose {
                Purpose::Summary(ask) => &ask.keep,
                Purpose::Combine(ask) => &ask.keep,
                Purpose::Round | Purpose::Repair { .. } => return self.asked.clear(),
            },
            Event::Note(Note::Hook(hook)) => &hook.keep,
            Event::Result(_) | Event::User(_) => return self.asked.clear(),
            Event::Overlay(overlay) => {
                if let Layer::Summary(_) = overlay.layer {
                    self.take_led(entry.id);
                }
                return;
            }
            Event::Run(_)
            | Event::Setup(_)
            | Event::Response(_)
            | Event::Started(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => return,
        };
        if !keep.is_empty() {
            self.asked.push((entry.id, keep.clone()));
        }
    }

    fn take_led(&mut self, summary: EntryId) {
        let near = |asked: &&(EntryId, Vec<String>)| asked.0.0 + PASS >= summary.0;
        let led = self.asked.iter().rev().take_while(near);
        let kept: Vec<String> = led.flat_map(|(_, keep)| keep.iter().cloned()).collect();
        if !kept.is_empty() {
            Arc::make_mut(&mut self.kept).insert(summary, kept);
        }
    }

    /// What was asked to be kept by the requests that led to each summary, and by the hooks before them:
    /// of the newest summary first, retracted ones too.
    pub fn kept(&self) -> impl Iterator<Item = (EntryId, &[String])> {
        self.kept
            .iter()
            .rev()
            .map(|(id, kept)| (*id, kept.as_slice()))
    }

    fn of(&mut self, request: EntryId) -> Option<&mut Text> {
        let mut texts = self.texts.iter_mut().rev();
        texts.find(|text| text.request == request)
    }

    /// The texts asked for, oldest first.
    pub fn texts(&self) -> &[Text] {
        &self.texts
    }

    /// How often summarisers have read the entry of a span that they read most often. Replies that
    /// would not do are not counted.
    pub fn times_read(&self, span: Span) -> usize {
        let met: Vec<Span> = self
            .read
            .iter()
            .map(|(_, read)| *read)
            .filter(|read| read.meets(span))
            .collect();
        // The most are met where one of them begins.
        let at = met.iter().map(|read| read.from.max(span.from));
        at.map(|entry| met.iter().filter(|read| read.contains(entry)).count())
            .max()
            .unwrap_or(0)
    }

    /// The spans of raw entries that summarisers have read, in requests whose replies would do.
    pub fn read(&self) -> impl Iterator<Item = Span> {
        self.read.iter().map(|(_, span)| *span)
    }
}

/// The entries that a text stands for; `None` for a round.
fn span(purpose: &Purpose) -> Option<Span> {
    match purpose {
        Purpose::Summary(ask) => Some(ask.span),
        Purpose::Combine(ask) => Some(ask.span),
        Purpose::Round | Purpose::Repair { .. } => None,
    }
}
