//! A draft, laid down as a transcript: entries in the order in which our own loop would have recorded
//! them, through the one writer, at the times that were recorded.
//!
//! A round is a request, its response, and the results of its calls in the order of the calls. A call
//! whose result was not recorded gets one of status interrupted, with the words that an open call reads
//! as, so that every round is closed. A response that follows another with nothing in between is joined
//! to it, since a request never ends with the model's own text.

use std::mem;
use std::sync::Arc;

use crate::exchange::{Clipped, Ending, Response, Status, ToolResult, Usage};
use crate::id::{CallId, Digest, EntryId, Span};
use crate::import::RECORDED;
use crate::import::join::join;
use crate::import::moved::Moved;
use crate::import::pen::{Answer, Compaction, Draft, Item, Known, Pen, Settings, What};
use crate::import::shorten::{LONGEST, shortened};
use crate::overlay::{Author, Carry, Layer, Overlay, Size, Summary};
use crate::record::{Clock, RecordError, Recorder};
use crate::setup::Setup;
use crate::tools::clip;
use crate::transcript::{
    At, Attachment, BodyDigest, End, Entry, Event, Note, Purpose, Reason, Request, Speaker, Totals,
    User,
};
use crate::wire::RENDERER;
use crate::words;

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
        moved: Moved::default(),
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
    /// Where entries stand that this program recorded.
    moved: Moved,
    /// How many compactions there were.
    depth: u32,
}

impl Writer {
    fn write(&mut self, mut pen: Pen) -> Result<(), RecordError> {
        let joined = join(&mut pen);
        for Item { at, entry, what } in mem::take(&mut pen.items) {
            self.set(at);
            let before = self.recorder.view().transcript().next_id();
            let laid = match what {
                What::Instructions(text) => {
                    let text = self.fitting("the system text", text)?;
                    self.is_set &= self.setup.wire.instructions == text;
                    self.setup.wire.instructions = text;
                    None
                }
                What::Model(name, window) => {
                    self.model(name, window);
                    None
                }
                What::Settings(settings) => {
                    self.settings(*settings);
                    None
                }
                What::User(speaker, text, attachments) => self.user(speaker, text, attachments)?,
                What::Response(place) => self.round(at, mem::take(&mut pen.drafts[place]))?,
                What::Compacted(compaction) => {
                    self.compacted(compaction)?;
                    None
                }
                What::Note(text) => {
                    self.note(&text)?;
                    None
                }
                What::Change(change) => {
                    self.change(entry, *change)?;
                    None
                }
                What::Reply(reply) => {
                    let (purpose, response) = *reply;
                    self.reply(entry, purpose, response)?;
                    None
                }
            };
            let last = EntryId(self.recorder.view().transcript().next_id().0 - 1);
            let span = laid.map(|_| Span::new(self.begins(before), last));
            self.places.push(span);
            if let (Some(was), Some(is), Some(span)) = (entry, laid, span) {
                self.moved.entry(was, is);
                self.moved.place(was, span);
            }
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

    fn settings(&mut self, settings: Settings) {
        let Settings { models, prices } = settings;
        self.is_set &= self.setup.wire.models == models && self.setup.policy.prices == prices;
        self.setup.wire.models = models;
        self.setup.policy.prices = prices;
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
    ) -> Result<Option<EntryId>, RecordError> {
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
        let id = self.recorder.record(Event::User(User {
            origin,
            text,
            attachments: fitting,
            clipped,
        }))?;
        for other in others {
            let text = words::attachment(&other.name, &other.media, &other.text);
            self.user(Speaker::Runtime, text, Vec::new())?;
        }
        Ok(Some(id))
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

    /// A round: its request, its response, the results in the order of the calls. Returns the response.
    fn round(&mut self, at: Option<At>, draft: Draft) -> Result<Option<EntryId>, RecordError> {
        let Draft {
            text,
            reasoning,
            calls,
            usage,
            ending,
            finish,
            provider_request,
            purpose,
        } = draft;
        if text.is_empty() && reasoning.is_empty() && calls.is_empty() && usage.is_none() {
            return Ok(None);
        }
        self.settle()?;
        let purpose = purpose.and_then(|purpose| self.moved.purpose(purpose));
        if purpose.is_none() && !self.recorder.view().awaits_model() {
            let gap = words::NOT_RECORDED.to_owned();
            self.user(Speaker::Runtime, gap, Vec::new())?;
        }
        let request = self.request(purpose.unwrap_or(Purpose::Round))?;
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
        self.lost(lost, response)?;
        Ok(Some(response))
    }

    fn request(&mut self, purpose: Purpose) -> Result<EntryId, RecordError> {
        let view = self.recorder.view();
        let is_round = purpose == Purpose::Round;
        let (body, estimate) = if is_round {
            (view.body_digest(&purpose), view.estimate())
        } else {
            let body = view.body(&purpose);
            let estimate = body.as_ref().map(|body| view.estimate_bytes(&body.bytes));
            let digest = body.map(|body| body.digest());
            (digest, estimate.unwrap_or_default())
        };
        let rounds = view.rounds().last().map_or(0, |round| round.number);
        let request = Request {
            purpose,
            round: is_round.then_some(rounds.saturating_add(1)),
            setup: view.setup_entry().unwrap_or_default(),
            renderer: RENDERER,
            body: body.unwrap_or(BodyDigest {
                sha256: Digest::of(b""),
                bytes: 0,
            }),
            estimate,
        };
        self.recorder.record(Event::Request(request))
    }

    /// A reply that is no round. What it was asked for must be there.
    fn reply(
        &mut self,
        was: Option<EntryId>,
        purpose: Purpose,
        mut response: Response,
    ) -> Result<(), RecordError> {
        self.settle()?;
        let Some(purpose) = self.moved.purpose(purpose) else {
            return self.note("a reply was left out: what it sums up is not in the recording");
        };
        response.request = self.request(purpose)?;
        let lost = shortened(&mut response);
        let id = self.recorder.record(Event::Response(response))?;
        if let Some(was) = was {
            self.moved.entry(was, id);
        }
        self.lost(lost, id)
    }

    /// A change of how the run reads. What it changes must be there.
    fn change(&mut self, was: Option<EntryId>, change: Event) -> Result<(), RecordError> {
        let id = self.recorder.view().transcript().next_id();
        let Some(change) = self.moved.event(change, id) else {
            return self.note("a change was left out: what it changes is not in the recording");
        };
        let id = self.recorder.record(change)?;
        if let Some(was) = was {
            self.moved.entry(was, id);
        }
        Ok(())
    }

    /// Tells of what was left out of a response.
    fn lost(&mut self, bytes: usize, response: EntryId) -> Result<(), RecordError> {
        if bytes == 0 {
            return Ok(());
        }
        self.note(&format!(
            "{bytes} bytes of response {response} were left out: no line is that long"
        ))
    }

    fn result(&mut self, call: CallId, answer: Option<Answer>) -> Result<(), RecordError> {
        let Answer {
            at,
            status,
            content,
            known,
        } = answer.unwrap_or_else(|| Answer {
            at: None,
            status: Status::Interrupted,
            content: words::INTERRUPTED.to_owned(),
            known: Known::default(),
        });
        self.set(at);
        let (content, clipped) =
            self.fitted(content, |text, chars| clip::clip(text, chars, call))?;
        let before = known.whole_bytes.map(|bytes| Clipped { bytes, blob: None });
        let id = self.recorder.record(Event::Result(ToolResult {
            call,
            status,
            content,
            clipped: clipped.or(before),
            facts: self.moved.facts(known.facts),
            ms: None,
        }))?;
        if let Some(was) = known.entry {
            self.moved.entry(was, id);
        }
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
