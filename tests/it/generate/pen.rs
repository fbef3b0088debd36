//! Moves, written down.

use std::sync::Arc;

use undertext::exchange::{Ending, Response, ToolCall, Usage};
use undertext::id::{CallId, EntryId, RunId, Span};
use undertext::overlay::{Author, Carry, Form, Hide, Layer, Origin, Show, Stub, Summary};
use undertext::setup::Role;
use undertext::transcript::{
    Check, Combine, End, Entry, Event, Fault, FaultClass, Note, Pin, Purpose, Reason, Run, Source,
    Speaker, Started, Summarize, Totals,
};

use super::stock::{
    ARGUMENTS, EXTRAS, FOREIGN, NAMES, SPEAKERS, STATUSES, TEXTS, TOOLS, pick, reasoning, setup,
};
use super::{Aim, Move, Said};
use crate::draft::{Draft, note, reply};

/// Writes moves down.
#[derive(Default)]
pub(super) struct Pen {
    draft: Draft,
}

impl Pen {
    /// What is written, given away.
    pub(super) fn into_entries(self) -> Vec<Arc<Entry>> {
        self.draft.into_entries()
    }

    pub(super) fn begin(&mut self, settings: u8) {
        let run = RunId(uuid::Uuid::from_u128(
            0x0199_d6a2_7b1c_7000_8000_0000_7c31_d0f2,
        ));
        self.draft.push(Event::Run(Run {
            format: 1,
            run,
            workspace: "/w".to_owned(),
            generator: "undertext 0.1.0".to_owned(),
            name: None,
            parent: None,
            imported: None,
            batch: None,
        }));
        self.draft.push(Event::Setup(Box::new(setup(settings))));
        self.draft.user(Speaker::Task, "Räum auf, \"bitte\".\n");
    }

    pub(super) fn play(&mut self, it: &Move) {
        match it {
            Move::Round {
                asked_again,
                said,
                answers,
            } => self.round(*asked_again, said, answers),
            Move::User {
                speaker,
                text,
                attachments,
            } => {
                let attachments: Vec<_> = attachments
                    .iter()
                    .map(|it| (pick(&NAMES, *it), pick(&TEXTS, *it)))
                    .collect();
                let text = pick(&TEXTS, *text);
                self.draft
                    .user_with(pick(&SPEAKERS, *speaker), text, &attachments);
            }
            Move::Aside {
                purpose,
                text,
                fails,
            } => {
                let request = self.draft.request(self.aside(*purpose));
                if *fails {
                    self.fault(request);
                }
                self.draft
                    .response(request, pick(&TEXTS, *text), &["quietly"], &[]);
            }
            Move::Silent(which) => self.silent(*which),
            Move::Setup(settings) => {
                self.draft.push(Event::Setup(Box::new(setup(*settings))));
            }
            Move::Stub { .. } | Move::Hide { .. } | Move::Summary { .. } | Move::Show(_) => {
                if let Some(layer) = self.layer(it) {
                    self.draft.overlay(layer);
                }
            }
            Move::Retract(aims) => {
                let overlays = self.ids(|event| matches!(event, Event::Overlay(_)));
                let overlays: Vec<_> = aims.iter().filter_map(|aim| aim.entry(&overlays)).collect();
                if !overlays.is_empty() {
                    self.draft.retract(&overlays);
                }
            }
            Move::Request(which) => {
                let purpose = if which % 4 == 0 {
                    self.aside(which / 4)
                } else {
                    Purpose::Round
                };
                self.draft.request(purpose);
            }
            Move::Response(request, said) => {
                let requests = self.ids(|event| matches!(event, Event::Request(_)));
                if let Some(request) = request.entry(&requests) {
                    self.response(request, said);
                }
            }
            Move::Result(call, status, content) => {
                if let Some(call) = call.call(&self.calls()) {
                    self.draft
                        .result(call, pick(&STATUSES, *status), pick(&TEXTS, *content));
                }
            }
            Move::Gap(ids) => self.draft.skip(u64::from(*ids)),
            Move::Foreign(which) => self.foreign(*which),
        }
    }

    fn round(&mut self, asked_again: bool, said: &Said, answers: &[(u8, u8, bool)]) {
        let mut request = self.draft.request(Purpose::Round);
        if asked_again {
            self.fault(request);
            request = self.draft.request(Purpose::Round);
        }
        let response = self.response(request, said);
        for (place, (status, content, started)) in (1..).zip(&answers[..said.calls.len()]) {
            let call = CallId::new(response, place);
            if *started {
                self.draft.push(Event::Started(Started { call }));
            }
            self.draft
                .result(call, pick(&STATUSES, *status), pick(&TEXTS, *content));
        }
    }

    fn response(&mut self, request: EntryId, said: &Said) -> EntryId {
        let calls = said.calls.iter().map(|(name, arguments, extra)| ToolCall {
            provider_id: (arguments % 2 == 0).then(|| "call_x".to_owned()),
            name: pick(&TOOLS, *name).to_owned(),
            arguments: pick(&ARGUMENTS, *arguments).to_owned(),
            extra: pick(&EXTRAS, *extra).map(str::to_owned),
        });
        self.draft.push(Event::Response(Response {
            text: pick(&TEXTS, said.text).to_owned(),
            reasoning: reasoning(said.reasoning),
            calls: calls.collect(),
            ending: if said.cut {
                Ending::Cut
            } else {
                Ending::Complete
            },
            finish: Some("stop".to_owned()),
            usage: Some(Usage {
                input: Some(9_000),
                cached: Some(0),
                ..Usage::default()
            }),
            ..reply(request)
        }))
    }

    fn fault(&mut self, request: EntryId) {
        self.draft.push(Event::Fault(Fault {
            request,
            class: FaultClass::Rate,
            status: Some(429),
            message: "slow down".to_owned(),
            attempt: 1,
            wait_ms: Some(2_000),
            refused_call: None,
            usage: None,
        }));
    }

    fn silent(&mut self, which: u8) {
        let entry = EntryId(self.draft.next().0.saturating_sub(u64::from(which)).max(1));
        self.draft.push(match which % 5 {
            0 => note("something a person should know"),
            1 => Event::Pin(Pin { entry }),
            2 => Event::Unpin(Pin { entry }),
            3 => Event::Note(Note::Check(Check {
                response: entry,
                passed: which.is_multiple_of(2),
                exit: Some(i32::from(which % 2)),
                ms: None,
            })),
            _ => Event::End(End {
                reason: Reason::Finished,
                text: String::new(),
                totals: Totals::default(),
            }),
        });
    }

    fn foreign(&mut self, which: u8) {
        let id = self.draft.next();
        let body = pick(&FOREIGN, which);
        let line = format!("{{\"id\":{id},{body}}}");
        let entry: Entry = serde_json::from_str(&line).unwrap();
        self.draft.push(entry.event);
    }

    /// A purpose other than a round.
    fn aside(&self, which: u8) -> Purpose {
        let as_of = EntryId(self.draft.next().0 - 1);
        let span = Span::new(EntryId(3), as_of);
        let origins = [Origin::Auto, Origin::Tool, Origin::Recovery, Origin::User];
        let origin = pick(&origins, which / 3);
        let has = |bit: u8| which & (1 << bit) != 0;
        let focus = has(3).then(|| "the „parser“".to_owned());
        let keep = has(4).then(|| "src/ä.rs".to_owned());
        let keep = keep.into_iter().collect();
        let whole = has(5).then(|| Span::new(EntryId(1), as_of));
        let words = has(6).then_some(u64::from(which));
        match which % 3 {
            0 => Purpose::Summary(Summarize {
                focus,
                keep,
                origin,
                whole,
                replaces: has(7).then_some(as_of).into_iter().collect(),
                words,
                ..Summarize::new(as_of, span)
            }),
            1 => Purpose::Combine(Combine {
                model: Role::Main,
                focus,
                keep,
                origin,
                whole,
                words,
                ..Combine::new(as_of, span, vec![Source::Response(as_of)])
            }),
            _ => Purpose::Repair {
                response: as_of,
                error: "no object".to_owned(),
            },
        }
    }

    fn layer(&self, it: &Move) -> Option<Layer> {
        let calls = self.calls();
        let answered: Vec<_> = calls
            .iter()
            .copied()
            .filter(|call| self.answered(*call))
            .collect();
        let users = self.ids(|event| matches!(event, Event::User(_)));
        let responses = self.ids(|event| matches!(event, Event::Response(_)));
        let aimed = |aims: &[Aim], at: &[CallId]| -> Vec<CallId> {
            aims.iter().filter_map(|aim| aim.call(at)).collect()
        };
        match it {
            Move::Stub {
                form,
                results,
                arguments,
                by,
            } => {
                let results = aimed(results, &answered);
                let by = results.iter().copied().zip(aimed(by, &calls)).collect();
                Some(Layer::Stub(Stub {
                    form: pick(&[Form::Previous, Form::Compacted, Form::Stale], *form),
                    results,
                    arguments: aimed(arguments, &calls),
                    by,
                }))
            }
            Move::Hide {
                calls: whole,
                reasoning,
                attachments,
                rounds,
            } => {
                let reasoning = reasoning.iter().filter_map(|aim| aim.entry(&responses));
                let attachments = attachments
                    .iter()
                    .filter_map(|(aim, place)| Some((aim.entry(&users)?, u32::from(*place))));
                let rounds = rounds.iter().filter_map(|span| self.span(*span));
                Some(Layer::Hide(Hide {
                    calls: aimed(whole, &calls),
                    reasoning: reasoning.collect(),
                    attachments: attachments.collect(),
                    rounds: rounds.collect(),
                    why: [].into(),
                }))
            }
            Move::Summary {
                span,
                text,
                entries,
                calls: again,
                state,
                survival,
            } => {
                let any = self.ids(|_| true);
                let readable = self.ids(|event| {
                    matches!(
                        event,
                        Event::User(_) | Event::Response(_) | Event::Result(_)
                    )
                });
                let entries = entries
                    .iter()
                    .filter_map(|aim| aim.entry(if aim.pick % 5 == 0 { &any } else { &readable }));
                Some(Layer::Summary(Summary {
                    span: self.span(*span)?,
                    text: pick(&TEXTS, *text).to_owned(),
                    by: Author::Model,
                    focus: None,
                    parts: Vec::new(),
                    depth: 1,
                    carry: Carry {
                        entries: entries.collect(),
                        calls: aimed(again, &calls),
                        state: pick(&["", "files read: src/ä.rs"], *state).to_owned(),
                        survival: pick(&["", "not mentioned: „x“"], *survival).to_owned(),
                    },
                }))
            }
            Move::Show(aims) => Some(Layer::Show(Show {
                calls: aimed(aims, &self.covered()),
            })),
            Move::Round { .. }
            | Move::User { .. }
            | Move::Aside { .. }
            | Move::Silent(_)
            | Move::Setup(_)
            | Move::Retract(_)
            | Move::Request(_)
            | Move::Response(..)
            | Move::Result(..)
            | Move::Gap(_)
            | Move::Foreign(_) => None,
        }
    }

    /// A span as it may be laid: from a request for a round or a user entry, to the last entry of
    /// a round or a user entry. Only one that strays is anything else.
    fn span(&self, (from, to): (Aim, Aim)) -> Option<Span> {
        let starts = self.ids(|event| {
            matches!(event, Event::User(_))
                || matches!(event, Event::Request(it) if it.purpose == Purpose::Round)
        });
        let from_id = from.entry(&starts)?;
        let calls = self.calls();
        let mut ends = self.ids(|event| {
            if let Event::Response(response) = event {
                response.calls.is_empty() && starts.contains(&response.request)
            } else if let Event::Result(result) = event {
                let following = CallId::new(result.call.response, result.call.place + 1);
                !calls.contains(&following)
            } else {
                matches!(event, Event::User(_))
            }
        });
        ends.retain(|id| *id >= from_id);
        Some(Span::new(from_id, to.entry(&ends)?))
    }

    fn ids(&self, fits: impl Fn(&Event) -> bool) -> Vec<EntryId> {
        let entries = self.draft.entries().iter();
        entries
            .filter(|entry| fits(&entry.event))
            .map(|entry| entry.id)
            .collect()
    }

    fn calls(&self) -> Vec<CallId> {
        let mut calls = Vec::new();
        for entry in self.draft.entries() {
            if let Event::Response(response) = &entry.event {
                calls.extend(
                    (1..)
                        .zip(&response.calls)
                        .map(|(place, _)| CallId::new(entry.id, place)),
                );
            }
        }
        calls
    }

    /// The calls that a stub or a hide names, or all if there are none.
    fn covered(&self) -> Vec<CallId> {
        let mut covered = Vec::new();
        for entry in self.draft.entries() {
            let Event::Overlay(overlay) = &entry.event else {
                continue;
            };
            match &overlay.layer {
                Layer::Stub(stub) => covered.extend(stub.results.iter().chain(&stub.arguments)),
                Layer::Hide(hide) => covered.extend(&hide.calls),
                Layer::Summary(_) | Layer::Show(_) => {}
            }
        }
        if covered.is_empty() {
            self.calls()
        } else {
            covered
        }
    }

    fn answered(&self, call: CallId) -> bool {
        let mut entries = self.draft.entries().iter();
        entries.any(|entry| matches!(&entry.event, Event::Result(result) if result.call == call))
    }
}
