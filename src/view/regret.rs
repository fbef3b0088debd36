//! What was hidden too early: contents that were put away and then fetched again.
//!
//! A content is fetched again by the same call (its tool and its arguments are equal, however they
//! are written) or by `Recall`. Each counts once. The view looks at how the older one reads when the
//! answer comes, so a call costs one look, however long the run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::exchange::{Status, ToolCall, ToolResult, normal};
use crate::id::{CallId, Digest, EntryId};
use crate::overlay::Layer;
use crate::overlay::layers::{Cover, Reads};
use crate::transcript::Event;
use crate::view::View;
use crate::view::item::Kind;
use crate::view::newest::Newest;
use crate::words;

/// The contents that were hidden and fetched again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Regret {
    /// The newest call of each tool with each arguments; kept apart, as it grows with the run.
    #[serde(skip)]
    pub(super) newest: Newest,
    calls: Arc<BTreeSet<CallId>>,
    texts: Arc<BTreeSet<EntryId>>,
    by_tool: BTreeMap<String, u64>,
    by_rule: BTreeMap<String, u64>,
}

impl Regret {
    /// The same with these newest calls, which are kept apart.
    #[must_use]
    pub(super) fn with(self, newest: Newest) -> Self {
        Self { newest, ..self }
    }

    /// The calls that were hidden, or a half of them, and then fetched again.
    pub fn calls(&self) -> &BTreeSet<CallId> {
        &self.calls
    }

    /// The entries with other texts that were: of the user, of the assistant, of the runtime.
    pub fn texts(&self) -> &BTreeSet<EntryId> {
        &self.texts
    }

    /// How many calls were, by tool.
    pub fn by_tool(&self) -> &BTreeMap<String, u64> {
        &self.by_tool
    }

    /// How many contents were, by the rule whose overlay hid each when it was fetched.
    pub fn by_rule(&self) -> &BTreeMap<String, u64> {
        &self.by_rule
    }
}

impl View {
    /// What was hidden and fetched again.
    pub fn regret(&self) -> &Regret {
        &self.regret
    }

    /// The calls that were ever hidden, or a half of them: by overlays that were retracted, too.
    pub fn ever_hidden(&self) -> BTreeSet<CallId> {
        let mut hidden = BTreeSet::new();
        for entry in self.transcript.entries() {
            let Event::Overlay(overlay) = &entry.event else {
                continue;
            };
            let of_items = |items: std::ops::Range<usize>| {
                let items = items.filter_map(|index| self.items.get(index));
                let calls = items.flat_map(|item| {
                    let entry = item.entry;
                    (0..item.calls().len()).map(move |index| CallId::at(entry, index))
                });
                calls.collect::<Vec<_>>()
            };
            let calls = match &overlay.layer {
                Layer::Stub(stub) => [&*stub.results, &*stub.arguments].concat(),
                Layer::Hide(hide) => {
                    let rounds = hide.rounds.iter();
                    let of_rounds = rounds.flat_map(|span| of_items(self.items.within(*span)));
                    of_rounds.chain(hide.calls.iter().copied()).collect()
                }
                Layer::Summary(summary) => of_items(self.items.within(summary.span)),
                Layer::Show(_) => Vec::new(),
            };
            let were_there = calls
                .into_iter()
                .filter(|call| call.response < entry.id && self.items.call(*call).is_some());
            hidden.extend(were_there);
        }
        hidden
    }

    /// Takes the answer to a call into account.
    pub(super) fn take_fetched(&mut self, result: &ToolResult) {
        self.work.visited += 1;
        match result.status {
            Status::Ok | Status::Error | Status::Timeout => self.take_repeated(result.call),
            // It did not run, or nobody knows what it did.
            Status::Denied | Status::Interrupted | Status::Cancelled => {}
        }
        for entry in &result.facts.recalled {
            self.work.visited += 1;
            self.take_recalled(*entry);
        }
    }

    fn take_repeated(&mut self, id: CallId) {
        let Some(call) = self.tool_call(id) else {
            return;
        };
        let spec = self.spec_at(&call.name, id.response);
        if spec.is_some_and(|spec| spec.meta.exempt) {
            // What it answers is the state as it is now, not what it was.
            return;
        }
        let digest = digest(call);
        let before = self.regret.newest.insert(digest, id);
        let Some(before) = before else {
            return;
        };
        if let Some(overlay) = self.result_hidden_by(before) {
            self.fetched(before, overlay);
        }
    }

    fn take_recalled(&mut self, entry: EntryId) {
        if let Some(result) = self.result(entry) {
            let call = result.call;
            let hidden = self.result_hidden_by(call);
            if let Some(overlay) = hidden.or_else(|| self.arguments_hidden_by(call)) {
                self.fetched(call, overlay);
            }
            return;
        }
        let Some(index) = self.items.index(entry) else {
            return;
        };
        let attachment = || match &self.items.get(index)?.kind {
            Kind::User(attachments) => attachments.iter().filter_map(Cover::newest).max(),
            Kind::Response { .. } => None,
        };
        if let Some(overlay) = self.covered(index).or_else(attachment)
            && Arc::make_mut(&mut self.regret.texts).insert(entry)
        {
            self.blame(overlay);
        }
    }

    /// The overlay that keeps the result of an answered call from reading in full.
    fn result_hidden_by(&self, call: CallId) -> Option<EntryId> {
        let (index, place) = self.items.call(call)?;
        let state = self.items.get(index)?.calls().get(place)?;
        state.result?;
        self.covered(index)
            .or_else(|| hidden_by(state.layers.result()))
    }

    /// The overlay that keeps the arguments of a call from reading in full, if there are any.
    fn arguments_hidden_by(&self, call: CallId) -> Option<EntryId> {
        let made = self.tool_call(call)?;
        let reads = self.reads_arguments(call)?;
        hidden_by(reads).filter(|_| made.arguments != words::NO_ARGUMENTS)
    }

    fn fetched(&mut self, call: CallId, overlay: EntryId) {
        let name = self.tool_call(call).map(|made| made.name.clone());
        if let Some(name) = name
            && Arc::make_mut(&mut self.regret.calls).insert(call)
        {
            *self.regret.by_tool.entry(name).or_default() += 1;
            self.blame(overlay);
        }
    }

    fn blame(&mut self, overlay: EntryId) {
        let rule = self.overlay(overlay).map(|overlay| overlay.rule.clone());
        if let Some(rule) = rule {
            *self.regret.by_rule.entry(rule).or_default() += 1;
        }
    }
}

/// The overlay by which a part of a call does not read in full.
fn hidden_by(reads: Reads) -> Option<EntryId> {
    match reads {
        Reads::Full => None,
        Reads::Stubbed(stub) => Some(stub.overlay),
        Reads::Hidden(overlay) => Some(overlay),
    }
}

/// The digest of a tool's name and its arguments, equal for whatever means the same.
fn digest(call: &ToolCall) -> Digest {
    let arguments = normal(&call.arguments);
    Digest::of([&call.name, "\n", &arguments].concat().as_bytes())
}
