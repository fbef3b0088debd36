//! The life of an entry: how it read in every request.
//!
//! The entries are folded once. A subject is looked at when the first request after it is made, and
//! again at the first request after anything changed how entries read, so the cost is that of the
//! entries and of what overlays there are, not of every request times every subject.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::exchange::ToolResult;
use crate::explain::Sent;
use crate::explain::look::{How, Look, look};
use crate::explain::remedy::{self, Remedy};
use crate::id::{CallId, EntryId, Span};
use crate::overlay::Layer;
use crate::transcript::{Entry, Event, Note, Purpose, Request, Transcript};
use crate::view::{Change, View};

/// What is followed through a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// An entry.
    Entry(EntryId),
    /// A call: its arguments and its result.
    Call(CallId),
}

/// How a subject read in every request, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Life {
    /// What this is about.
    pub subject: Subject,
    /// How it read, from its first request on. Of an overlay and of settings: whether they held. None
    /// if it is of a kind that no request holds.
    pub stretches: Vec<Stretch>,
    /// The requests for summaries that gave it to a model in full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Read>,
    /// How it was first fetched again after it was hidden; absent if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched: Option<Fetched>,
    /// What would make it read in full again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
    /// The entry that a pin would keep readable from then on; absent if none is needed or none can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<EntryId>,
}

/// Requests in a row in which something read alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stretch {
    /// The first of them; absent if it is the next one that would be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Sent>,
    /// The last of them; absent if it reads so still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Sent>,
    /// How it read; of an overlay and of settings, whether they held.
    pub reads: How,
    /// Parts of it that did not read in full while the whole did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Change>,
    /// The summary behind which it was shown again in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<EntryId>,
    /// The entry by which it reads more fully than before: a retract, or an overlay that shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifted: Option<EntryId>,
}

/// A request that gave something to a summariser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Read {
    /// The request.
    pub request: EntryId,
    /// The summary that came of it; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<EntryId>,
}

/// How something was fetched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fetched {
    /// The call that did.
    pub by: CallId,
    /// How.
    pub way: Way,
    /// The round of that call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
}

/// How something is fetched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The same call was made again.
    Again,
    /// The transcript was asked for it.
    Recall,
}

/// How these subjects read in every request of a run, in the order given.
pub fn lives(transcript: &Transcript, subjects: &[Subject]) -> Vec<Life> {
    let mut walk = Walk::new(subjects);
    for entry in transcript.entries() {
        walk.take(entry);
    }
    walk.finish(subjects)
}

/// A subject on the way.
struct Followed {
    subject: Subject,
    /// The entry with which it is there.
    begins: EntryId,
    /// How it read when it was last looked at.
    last: Look,
    life: Life,
}

/// A walk through the entries.
#[derive(Default)]
struct Walk {
    view: View,
    followed: Vec<Followed>,
    /// How many of them were looked at.
    begun: usize,
    /// Overlays and retracts since the last request.
    changes: Vec<EntryId>,
    /// Whether anything may read otherwise since.
    changed: bool,
    /// The newest request that reads the conversation.
    newest: Option<Sent>,
    /// Requests for summaries that are not laid yet, and which came of the others.
    sought: Vec<(EntryId, Span)>,
    laid: BTreeMap<EntryId, EntryId>,
}

impl Walk {
    fn new(subjects: &[Subject]) -> Self {
        let mut followed: Vec<Followed> = subjects.iter().copied().map(Followed::new).collect();
        followed.sort_by_key(|it| (it.begins, it.subject));
        followed.dedup_by_key(|it| it.subject);
        Self {
            followed,
            ..Self::default()
        }
    }

    fn take(&mut self, entry: &Arc<Entry>) {
        if let Event::Request(request) = &entry.event {
            self.request(entry.id, request);
        }
        let fetched = fetched(&self.view);
        self.view.take(Arc::clone(entry));
        match &entry.event {
            Event::Overlay(overlay) => {
                self.changes.push(entry.id);
                self.changed = true;
                if let Layer::Summary(summary) = &overlay.layer {
                    let span = summary.span;
                    let held = |asked: &Span| span.contains(asked.from) && span.contains(asked.to);
                    let came = self.sought.extract_if(.., |(_, asked)| held(asked));
                    self.laid
                        .extend(came.map(|(request, _)| (request, entry.id)));
                }
            }
            Event::Retract(_) => {
                self.changes.push(entry.id);
                self.changed = true;
            }
            // A correction reads in the place of another reply.
            Event::Response(_) => {
                self.changed |= self.view.rounds().of_response(entry.id).is_none();
            }
            Event::Setup(_) => self.changed = true,
            Event::Result(result) => {
                if self::fetched(&self.view) > fetched {
                    self.fetched(result);
                }
            }
            Event::Note(Note::SummaryFailed { request, .. }) => {
                self.sought.retain(|(asked, _)| asked != request);
            }
            Event::Run(_)
            | Event::User(_)
            | Event::Request(_)
            | Event::Started(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => {}
        }
    }

    fn request(&mut self, id: EntryId, request: &Request) {
        match &request.purpose {
            Purpose::Round | Purpose::Repair { .. } => {
                let sent = Sent {
                    request: id,
                    round: request.round,
                };
                self.look(Some(sent));
                self.newest = Some(sent);
            }
            Purpose::Summary(ask) => {
                let task = self.view.working().task;
                for it in self.followed.iter_mut().take_while(|it| it.begins < id) {
                    if it.is_given(&self.view, ask.span, task) {
                        it.life.read.push(Read {
                            request: id,
                            summary: None,
                        });
                    }
                }
                self.sought.push((id, ask.span));
            }
            Purpose::Combine(_) => {}
        }
    }

    /// Looks at every subject that may read otherwise than in the request before.
    fn look(&mut self, sent: Option<Sent>) {
        let here = self.view.transcript().next_id();
        let there = self.followed.partition_point(|it| it.begins < here);
        let from = if self.changed { 0 } else { self.begun };
        for it in self.followed.get_mut(from..there).unwrap_or_default() {
            let now = look(&self.view, it.subject);
            if now != it.last {
                let lifted = lifted(&self.view, &self.changes, it.subject, &it.last, &now);
                it.goes_on(now, sent, self.newest, lifted);
            }
        }
        self.begun = there;
        self.changed = false;
        self.changes.clear();
    }

    /// Notes what a result brought back.
    fn fetched(&mut self, result: &ToolResult) {
        let regret = self.view.regret();
        let round = self.view.rounds().of_response(result.call.response);
        let round = round.map(|round| round.number);
        for it in self
            .followed
            .iter_mut()
            .filter(|it| it.life.fetched.is_none())
        {
            let (call, entry) = match it.subject {
                Subject::Call(call) => (Some(call), None),
                Subject::Entry(entry) => {
                    let call = self.view.result(entry).map(|result| result.call);
                    (call, Some(entry))
                }
            };
            let is_call = call.is_some_and(|call| regret.calls().contains(&call));
            let is_text = entry.is_some_and(|entry| regret.texts().contains(&entry));
            if is_call || is_text {
                let recalled = !result.facts.recalled.is_empty();
                it.life.fetched = Some(Fetched {
                    by: result.call,
                    way: if recalled { Way::Recall } else { Way::Again },
                    round,
                });
            }
        }
    }

    fn finish(mut self, subjects: &[Subject]) -> Vec<Life> {
        // As the next request would read.
        self.look(None);
        let Self {
            view,
            followed,
            laid,
            ..
        } = self;
        let done = followed.into_iter().map(|it| {
            let Followed {
                subject,
                last,
                mut life,
                ..
            } = it;
            life.remedies = remedy::remedies(&view, subject, &last);
            life.pin = remedy::pin(&view, subject, &last);
            for read in &mut life.read {
                read.summary = laid.get(&read.request).copied();
            }
            (subject, life)
        });
        let done: BTreeMap<Subject, Life> = done.collect();
        let found = subjects.iter().filter_map(|subject| done.get(subject));
        found.cloned().collect()
    }
}

impl Followed {
    fn new(subject: Subject) -> Self {
        let begins = match subject {
            Subject::Entry(entry) => entry,
            Subject::Call(call) => call.response,
        };
        Self {
            subject,
            begins,
            last: Look::default(),
            life: Life {
                subject,
                stretches: Vec::new(),
                read: Vec::new(),
                fetched: None,
                remedies: Vec::new(),
                pin: None,
            },
        }
    }

    /// Begins another stretch: it reads otherwise than in the request before.
    fn goes_on(
        &mut self,
        now: Look,
        sent: Option<Sent>,
        before: Option<Sent>,
        lifted: Option<EntryId>,
    ) {
        if let Some(stretch) = self.life.stretches.last_mut() {
            stretch.to = before;
        }
        if let Some(reads) = now.reads {
            self.life.stretches.push(Stretch {
                from: sent,
                to: None,
                reads,
                parts: now.parts.clone(),
                again: now.again,
                lifted,
            });
        }
        self.last = now;
    }

    /// Whether a request for a summary of these entries holds it.
    fn is_given(&self, view: &View, span: Span, task: Option<EntryId>) -> bool {
        // Results go with their calls.
        let entry = match self.subject {
            Subject::Call(call) => call.response,
            Subject::Entry(entry) => view.result(entry).map_or(entry, |it| it.call.response),
        };
        let is_read = view.user(entry).is_some() || view.rounds().of_response(entry).is_some();
        is_read && (span.contains(entry) || task == Some(entry))
    }
}

/// How many contents were fetched again.
fn fetched(view: &View) -> usize {
    view.regret().calls().len() + view.regret().texts().len()
}

/// The retract or the overlay that took from a subject what lay on it before and does not now.
fn lifted(
    view: &View,
    changes: &[EntryId],
    subject: Subject,
    before: &Look,
    now: &Look,
) -> Option<EntryId> {
    let gone: Vec<EntryId> = before
        .overlays()
        .filter(|overlay| !now.overlays().any(|other| other == *overlay))
        .collect();
    let call = match subject {
        Subject::Call(call) => Some(call),
        Subject::Entry(entry) => view.result(entry).map(|result| result.call),
    };
    let newer = now.overlays().max();
    let lifts = |id: &EntryId| match view.transcript().get(*id).map(|it| &it.event) {
        Some(Event::Retract(retract)) => gone.iter().any(|it| retract.overlays.contains(it)),
        Some(Event::Overlay(overlay)) => match (&overlay.layer, call) {
            (Layer::Show(show), Some(call)) => show.calls.contains(&call),
            (Layer::Show(show), None) => {
                let of = |call: &CallId| Subject::Entry(call.response) == subject;
                show.calls.iter().any(of)
            }
            (Layer::Stub(_) | Layer::Hide(_) | Layer::Summary(_), _) => false,
        },
        Some(_) | None => false,
    };
    // What something newer covers again is not lifted.
    let lifted = changes.iter().copied().rfind(|id| lifts(id));
    lifted.filter(|id| !gone.is_empty() && newer.is_none_or(|newer| newer < *id))
}
