//! The texts of an event that come from outside, where values that are known may stand.
//!
//! What is our own stays, whatever a value looks like: words of closed sets, names of fields, ids,
//! digests, times. An entry without them could not be read again.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::exchange::{Facts, Reasoning, Response};
use crate::overlay::{Layer, Overlay};
use crate::secret::Known;
use crate::secret::json::{self, Names};
use crate::setup::Setup;
use crate::transcript::{Event, Note, Purpose, Run, User};

/// What becomes of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is recorded: blocks that must go back to their maker byte for byte stay.
    Recorded,
    /// It is only shown: nothing stays that somebody else has named or signed.
    Shown,
}

/// Takes these values out of the texts of an event. Returns whether there were any.
pub(super) fn clean(event: &mut Event, known: &Known, fate: Fate) -> bool {
    let mut pen = Pen {
        known,
        fate,
        changed: false,
    };
    pen.event(event);
    pen.changed
}

struct Pen<'a> {
    known: &'a Known,
    fate: Fate,
    changed: bool,
}

impl Pen<'_> {
    fn event(&mut self, event: &mut Event) {
        match event {
            Event::Run(run) => self.run(run),
            Event::Setup(setup) => self.setup(setup),
            Event::User(user) => self.user(user),
            Event::Request(request) => match &mut request.purpose {
                Purpose::Round => {}
                Purpose::Summary(ask) => {
                    self.texts(&mut ask.focus);
                    self.texts(&mut ask.keep);
                }
                Purpose::Combine(ask) => {
                    self.texts(&mut ask.focus);
                    self.texts(&mut ask.keep);
                }
                Purpose::Repair { error, .. } => self.text(error),
            },
            Event::Response(response) => self.response(response),
            Event::Result(result) => {
                self.text(&mut result.content);
                self.facts(&mut result.facts);
            }
            Event::Overlay(overlay) => self.overlay(overlay),
            Event::Fault(fault) => {
                self.text(&mut fault.message);
                self.texts(&mut fault.refused_call);
            }
            Event::Note(note) => match note {
                Note::Warning { text } | Note::Damage { text } => self.text(text),
                Note::SummaryFailed { why, .. } => self.text(why),
                Note::Hook(said) => {
                    self.text(&mut said.text);
                    self.texts(&mut said.keep);
                }
                Note::Torn(_) | Note::Check(_) => {}
            },
            Event::End(end) => self.text(&mut end.text),
            Event::Started(_) | Event::Retract(_) | Event::Pin(_) | Event::Unpin(_) => {}
            Event::Unknown(unknown) => {
                // Of an entry that is not understood nobody knows which words are ours.
                if self.fate == Fate::Shown {
                    self.json(&mut unknown.json, Names::Too);
                }
            }
        }
    }

    /// By its line of a batch a run is found again.
    fn run(&mut self, run: &mut Run) {
        self.texts(&mut run.name);
        self.text(&mut run.workspace);
        if let Some(import) = &mut run.imported {
            self.text(&mut import.file);
            self.texts(&mut import.session);
        }
        if let Some(batch) = &mut run.batch {
            let line = [&mut batch.name, &mut batch.id].into_iter().flatten();
            self.foreign(std::iter::once(&mut batch.file).chain(line));
        }
    }

    fn setup(&mut self, setup: &mut Setup) {
        let (wire, policy) = (&mut setup.wire, &mut setup.policy);
        self.text(&mut wire.instructions);
        for tool in &mut wire.tools {
            self.text(&mut tool.description);
            self.json(&mut tool.schema, Names::Stay);
        }
        let models = &mut wire.models;
        let others = [&mut models.summary, &mut models.fallback];
        let others = others.into_iter().flatten();
        for model in std::iter::once(&mut models.main).chain(others) {
            self.texts(&mut model.server);
            for (_, added) in &mut model.profile.parameters.add {
                self.changed |= json::walk(added, Names::Stay, &|text| self.known.replace(text));
            }
        }
        self.texts(&mut policy.check);
        if let Some(output) = &mut policy.output {
            self.json(&mut output.schema, Names::Stay);
        }
        let compaction = &mut policy.compaction;
        self.texts(&mut compaction.summary.instructions);
        self.texts(&mut compaction.hooks.before);
        self.texts(&mut compaction.hooks.after);
        for rule in compaction.rules.values_mut() {
            self.texts(&mut rule.focus);
            self.texts(&mut rule.instructions);
        }
    }

    fn user(&mut self, user: &mut User) {
        self.text(&mut user.text);
        for attachment in &mut user.attachments {
            self.text(&mut attachment.name);
            self.text(&mut attachment.text);
        }
    }

    fn response(&mut self, response: &mut Response) {
        self.text(&mut response.text);
        for thought in &mut response.reasoning {
            match thought {
                Reasoning::Text { text, .. } => self.text(text),
                Reasoning::Raw { raw, .. } => self.foreign(std::iter::once(raw)),
            }
        }
        for call in &mut response.calls {
            self.text(&mut call.arguments);
            self.foreign([&mut call.name].into_iter().chain(&mut call.extra));
        }
        let said = [&mut response.extra, &mut response.model];
        self.foreign(said.into_iter().flatten());
    }

    fn facts(&mut self, facts: &mut Facts) {
        self.texts(facts.read.iter_mut().map(|read| &mut read.path));
        self.texts(facts.wrote.iter_mut().map(|wrote| &mut wrote.path));
        self.texts(&mut facts.cwd);
        if let Some(grant) = &mut facts.compact {
            self.texts(&mut grant.focus);
        }
    }

    fn overlay(&mut self, overlay: &mut Overlay) {
        self.text(&mut overlay.reason);
        match &mut overlay.layer {
            Layer::Summary(summary) => {
                self.text(&mut summary.text);
                self.texts(&mut summary.focus);
                self.texts(summary.parts.iter_mut().map(|part| &mut part.text));
                self.text(&mut summary.carry.state);
                self.text(&mut summary.carry.survival);
            }
            Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_) => {}
        }
    }

    fn text(&mut self, text: &mut String) {
        if let Cow::Owned(new) = self.known.replace(text) {
            *text = new;
            self.changed = true;
        }
    }

    fn texts<'t>(&mut self, texts: impl IntoIterator<Item = &'t mut String>) {
        for text in texts {
            self.text(text);
        }
    }

    /// Texts by which somebody else knows something again.
    fn foreign<'t>(&mut self, texts: impl Iterator<Item = &'t mut String>) {
        if self.fate == Fate::Shown {
            self.texts(texts);
        }
    }

    fn json(&mut self, json: &mut Box<RawValue>, names: Names) {
        let new = json::rewritten(json.get(), names, |text| self.known.replace(text));
        if let Some(Ok(new)) = new.map(RawValue::from_string) {
            *json = new;
            self.changed = true;
        }
    }
}
