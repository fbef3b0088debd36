//! A draft, laid down as a transcript: entries in the order in which our own loop would have recorded
//! them, through the one writer, at the times that were recorded.
//!
//! A round is a request, its response, and the results of its calls in the order of the calls. A call
//! whose result was not recorded gets one of status interrupted, with the words that an open call reads
//! as, so that every round is closed. A response that follows another with nothing in between is joined
//! to it, since a request never ends with the model's own text.

use std::mem;
use std::sync::Arc;

use crate::exchange::{
    Clipped, Ending, Facts, Reasoning, Response, Status, ToolCall, ToolResult, Usage,
};
use crate::id::{CallId, Digest, EntryId, Span};
use crate::import::RECORDED;
use crate::import::pen::{Answer, Compaction, Draft, Item, Pen, What};
use crate::overlay::{Author, Carry, Layer, Overlay, Size, Summary};
use crate::record::{Clock, RecordError, Recorder};
use crate::setup::Setup;
use crate::tools::clip;
use crate::transcript::jsonl::LINE_WRITTEN;
use crate::transcript::{
    At, Attachment, BodyDigest, End, Entry, Event, Note, Purpose, Reason, Request, Speaker, Totals,
    User,
};
use crate::wire::RENDERER;
use crate::words;

/// The longest text of an entry, in bytes: as JSON it may take six times as many, and a line holds 4 MiB.
const LONGEST: usize = (LINE_WRITTEN - (64 << 10)) / 6;

/// The most calls of a response: a line holds no more of them.
const CALLS: usize = 10_000;

/// Lays a draft down behind the first entry of a recorder, dated by this clock, under these settings.
pub(super) fn lay_down(
    pen: Pen,
    recorder: Recorder,
    clock: Clock,
    setup: Setup,
) -> Result<Recorder, RecordError> {
    let mut writer = Writer {
        recorder,
        clock,
        setup,
        is_set: false,
        places: Vec::new(),
        depth: 0,
    };
    writer.write(pen)?;
    Ok(writer.recorder)
}

/// Lays a draft down, entry by entry.
struct Writer {
    recorder: Recorder,
    clock: Clock,
    setup: Setup,
    /// Whether the settings are recorded as they are now.
    is_set: bool,
    /// The entries of each item.
    places: Vec<Option<Span>>,
    /// How many compactions there were.
    depth: u32,
}

impl Writer {
    fn write(&mut self, mut pen: Pen) -> Result<(), RecordError> {
        let joined = join(&mut pen);
        for Item { at, what } in mem::take(&mut pen.items) {
            self.set(at);
            let before = self.recorder.view().transcript().next_id();
            let laid = match what {
                What::Instructions(text) => {
                    let text = self.fitting("the system text", text)?;
                    self.is_set &= self.setup.wire.instructions == text;
                    self.setup.wire.instructions = text;
                    false
                }
                What::Model(name, window) => {
                    self.model(name, window);
                    false
                }
                What::User(speaker, text, attachments) => self.user(speaker, text, attachments)?,
                What::Response(place) => self.round(at, mem::take(&mut pen.drafts[place]))?,
                What::Compacted(compaction) => {
                    self.compacted(compaction)?;
                    false
                }
                What::Note(text) => {
                    self.note(&text)?;
                    false
                }
            };
            let last = EntryId(self.recorder.view().transcript().next_id().0 - 1);
            let from = self.begins(before);
            self.places.push(laid.then_some(Span::new(from, last)));
        }
        if joined > 0 {
            self.note(&format!(
                "{joined} responses came right behind another and were joined to it"
            ))?;
        }
        self.end()?;
        self.recorder.sync()
    }

    /// A text of the settings that fits a line: what is left out is told.
    fn fitting(&mut self, what: &str, text: String) -> Result<String, RecordError> {
        if text.len() <= LONGEST {
            return Ok(text);
        }
        let short = clip::first(&text, LONGEST).to_owned();
        let lost = text.len() - short.len();
        self.note(&format!(
            "{lost} bytes of {what} were left out: no line is that long"
        ))?;
        Ok(short)
    }

    /// The first entry from here on that a span may begin with.
    fn begins(&self, from: EntryId) -> EntryId {
        let mut entries = self.recorder.view().transcript().from(from).iter();
        let begins =
            entries.find(|entry| matches!(entry.event, Event::User(_) | Event::Request(_)));
        begins.map_or(from, |entry| entry.id)
    }

    /// Sets the clock: never back, and nowhere if no time was recorded.
    fn set(&self, at: Option<At>) {
        self.clock.set(at.unwrap_or_default().max(self.clock.now()));
    }

    fn model(&mut self, name: String, window: Option<u64>) {
        let model = &mut self.setup.wire.models.main;
        let window = window.or(model.window.filter(|_| model.name == name));
        self.is_set &= model.name == name && model.window == window;
        model.name = name;
        model.window = window;
    }

    /// Records the settings if they are not recorded yet.
    fn settle(&mut self) -> Result<(), RecordError> {
        if !mem::replace(&mut self.is_set, true) {
            let setup = Box::new(self.setup.clone());
            self.recorder.record(Event::Setup(setup))?;
        }
        Ok(())
    }

    fn note(&mut self, text: &str) -> Result<(), RecordError> {
        let text = clip::first(text, LONGEST).to_owned();
        self.recorder.record(Event::Note(Note::Warning { text }))?;
        Ok(())
    }

    fn user(
        &mut self,
        origin: Speaker,
        text: String,
        attachments: Vec<Attachment>,
    ) -> Result<bool, RecordError> {
        self.settle()?;
        let entry = self.recorder.view().transcript().next_id();
        let (text, clipped) =
            self.fitted(text, |text, chars| clip::clip_entry(text, chars, entry))?;
        let mut room = LONGEST.saturating_sub(text.len());
        let mut fitting = Vec::new();
        let mut others = Vec::new();
        for attachment in attachments {
            // What finds no room beside the others gets an entry of its own.
            match room.checked_sub(attachment.text.len()) {
                Some(left) => {
                    room = left;
                    fitting.push(attachment);
                }
                None => others.push(attachment),
            }
        }
        self.recorder.record(Event::User(User {
            origin,
            text,
            attachments: fitting,
            clipped,
        }))?;
        for other in others {
            let text = words::attachment(&other.name, &other.media, &other.text);
            self.user(Speaker::Runtime, text, Vec::new())?;
        }
        Ok(true)
    }

    /// A text that fits a line, and what was clipped from it: the whole is kept as a blob.
    fn fitted(
        &mut self,
        text: String,
        clip: impl Fn(&str, u64) -> Option<String>,
    ) -> Result<(String, Option<Clipped>), RecordError> {
        if text.len() <= LONGEST {
            return Ok((text, None));
        }
        // A character takes at most four bytes.
        let short = clip(&text, LONGEST as u64 / 4).unwrap_or_default();
        let blob = self.recorder.keep(text.as_bytes())?;
        let bytes = text.len() as u64;
        Ok((short, Some(Clipped { bytes, blob })))
    }

    /// A round: its request, its response, the results in the order of the calls.
    fn round(&mut self, at: Option<At>, draft: Draft) -> Result<bool, RecordError> {
        let Draft {
            text,
            reasoning,
            calls,
            usage,
            ending,
            finish,
            provider_request,
        } = draft;
        if text.is_empty() && reasoning.is_empty() && calls.is_empty() && usage.is_none() {
            return Ok(false);
        }
        self.settle()?;
        if !self.recorder.view().awaits_model() {
            let gap = words::NOT_RECORDED.to_owned();
            self.user(Speaker::Runtime, gap, Vec::new())?;
        }
        let request = self.request()?;
        self.set(at);
        let (mut calls, mut answers): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
        let surplus = calls.len().saturating_sub(CALLS);
        calls.truncate(CALLS);
        answers.truncate(CALLS);
        let mut response = Response {
            request,
            text,
            reasoning,
            calls,
            ending: ending.unwrap_or(Ending::Complete),
            finish,
            usage: usage.filter(|usage| *usage != Usage::default()),
            extra: None,
            model: None,
            provider_request,
            ms: None,
        };
        let lost = shortened(&mut response);
        let response = self.recorder.record(Event::Response(response))?;
        for (index, answer) in answers.into_iter().enumerate() {
            self.result(CallId::at(response, index), answer)?;
        }
        if surplus > 0 {
            self.note(&format!(
                "{surplus} calls of response {response} were left out: no line holds as many"
            ))?;
        }
        if lost > 0 {
            self.note(&format!(
                "{lost} bytes of response {response} were left out: no line is that long"
            ))?;
        }
        Ok(true)
    }

    fn request(&mut self) -> Result<EntryId, RecordError> {
        let view = self.recorder.view();
        let body = view.body_digest(&Purpose::Round);
        let rounds = view.rounds().last().map_or(0, |round| round.number);
        let request = Request {
            purpose: Purpose::Round,
            round: Some(rounds.saturating_add(1)),
            setup: view.setup_entry().unwrap_or_default(),
            renderer: RENDERER,
            body: body.unwrap_or(BodyDigest {
                sha256: Digest::of(b""),
                bytes: 0,
            }),
            estimate: view.estimate(),
        };
        self.recorder.record(Event::Request(request))
    }

    fn result(&mut self, call: CallId, answer: Option<Answer>) -> Result<(), RecordError> {
        let Answer {
            at,
            status,
            content,
        } = answer.unwrap_or_else(|| Answer {
            at: None,
            status: Status::Interrupted,
            content: words::INTERRUPTED.to_owned(),
        });
        self.set(at);
        let (content, clipped) =
            self.fitted(content, |text, chars| clip::clip(text, chars, call))?;
        self.recorder.record(Event::Result(ToolResult {
            call,
            status,
            content,
            clipped,
            facts: Facts::default(),
            ms: None,
        }))?;
        Ok(())
    }

    /// A summary over what came before, up to what is kept. If nothing did, its text is told as a
    /// message.
    fn compacted(&mut self, compaction: Compaction) -> Result<(), RecordError> {
        let Compaction {
            text,
            origin,
            reason,
            keeps,
            again,
        } = compaction;
        let end = keeps.map_or(self.places.len(), |mark| mark.0);
        let covered = self.places.get(..end).unwrap_or(&self.places);
        let spans: Vec<Span> = covered.iter().flatten().copied().collect();
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
            self.user(Speaker::Runtime, text, Vec::new())?;
            return Ok(());
        };
        let span = first.union(*last);
        let again = again.iter().filter_map(|mark| {
            let place = self.places.get(mark.0).copied().flatten()?;
            span.contains(place.from).then_some(place.from)
        });
        let carry = Carry {
            entries: again.collect(),
            ..Carry::default()
        };
        self.depth += 1;
        let id = self.recorder.view().transcript().next_id();
        let (text, _) = self.fitted(text, |text, chars| clip::clip_entry(text, chars, id))?;
        let id = self.recorder.view().transcript().next_id();
        let mut overlay = Overlay {
            origin,
            rule: RECORDED.to_owned(),
            pass: id,
            layer: Layer::Summary(Summary {
                span,
                text,
                by: Author::Model,
                focus: None,
                parts: Vec::new(),
                depth: self.depth,
                carry,
            }),
            size: Size::default(),
            reason,
        };
        // What it does to the next request shows on a copy.
        let mut view = self.recorder.view().clone();
        let entry = Entry {
            id,
            at: self.recorder.now(),
            event: Event::Overlay(overlay.clone()),
        };
        view.take(Arc::new(entry));
        overlay.size = Size {
            before: self.recorder.view().estimate().tokens,
            after: view.estimate().tokens,
        };
        drop(view);
        self.recorder.record(Event::Overlay(overlay))?;
        Ok(())
    }

    /// The end of a run whose last response calls nothing.
    fn end(&mut self) -> Result<(), RecordError> {
        let view = self.recorder.view();
        let last = view.rounds().last().and_then(|round| round.response);
        let response = last.and_then(|last| view.response(last));
        let Some(response) = response.filter(|response| {
            response.ending == Ending::Complete && response.calls.is_empty() && !view.awaits_model()
        }) else {
            return Ok(());
        };
        let ledger = view.ledger();
        let end = End {
            reason: Reason::Finished,
            text: response.text.clone(),
            totals: Totals {
                ms: self
                    .recorder
                    .now()
                    .ms_since(ledger.begun.unwrap_or_default()),
                ..ledger.since_end
            },
        };
        self.recorder.record(Event::End(end))?;
        Ok(())
    }
}

/// Joins responses that nothing stands between; returns how many.
fn join(pen: &mut Pen) -> u64 {
    let mut joined = 0;
    let mut before: Option<usize> = None;
    for item in &pen.items {
        match item.what {
            What::Response(place) => {
                let speaks = |draft: &Draft| draft.calls.is_empty() && !draft.text.is_empty();
                let Some(earlier) = before.filter(|earlier| speaks(&pen.drafts[*earlier])) else {
                    before = Some(place);
                    continue;
                };
                let later = mem::take(&mut pen.drafts[place]);
                joined += u64::from(!later.text.is_empty() || !later.calls.is_empty());
                pen.drafts[earlier].add(later);
            }
            What::User(..) | What::Compacted(_) => before = None,
            What::Instructions(_) | What::Model(..) | What::Note(_) => {}
        }
    }
    joined
}

impl Draft {
    /// Adds what came right behind it.
    fn add(&mut self, later: Self) {
        if !self.text.is_empty() && !later.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(&later.text);
        self.reasoning.extend(later.reasoning);
        self.calls.extend(later.calls);
        self.usage = later.usage.or(self.usage);
        self.ending = later.ending.or(self.ending);
        self.finish = later.finish.or(self.finish.take());
        self.provider_request = later.provider_request.or(self.provider_request.take());
    }
}

/// Makes a response fit a line; returns how many bytes that cost.
fn shortened(response: &mut Response) -> usize {
    let size = |response: &Response| {
        let calls = response.calls.iter();
        let calls = calls.map(|call| call.arguments.len() + call.name.len() + 200);
        let reasoning = response.reasoning.iter().map(|block| match block {
            Reasoning::Text { text, .. } => text.len(),
            Reasoning::Raw { raw, .. } => raw.len(),
        });
        response.text.len() + calls.sum::<usize>() + reasoning.sum::<usize>()
    };
    let all = size(response);
    if all <= LONGEST {
        return 0;
    }
    response.reasoning.clear();
    let share = (LONGEST / 2).min(LONGEST / (response.calls.len() + 1)) / 4;
    let keep = |text: &mut String| text.truncate(clip::first(text, share).len());
    if size(response) > LONGEST {
        keep(&mut response.text);
        let long = |call: &&mut ToolCall| call.arguments.len() > share;
        for call in response.calls.iter_mut().filter(long) {
            // Half of an object is none.
            call.arguments =
                serde_json::json!({ "cut": clip::first(&call.arguments, share / 2) }).to_string();
        }
    }
    all - size(response)
}
