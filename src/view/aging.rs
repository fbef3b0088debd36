//! Results on their way from new to old: what micro-compaction may put away.
//!
//! Kept up to date with every result, so that looking before each request costs nothing. Overlays,
//! retracts, pins and settings change what is old; then it is counted anew over what still reads.

use std::collections::{BTreeMap, HashSet, VecDeque};

use serde::Serialize;

use crate::exchange::Treatment;
use crate::id::{CallId, EntryId, Span};
use crate::meter::Chars;
use crate::overlay::layers::{Reads, Stubbed};
use crate::overlay::{Form, Layer, Origin};
use crate::setup::Micro;
use crate::transcript::Event;
use crate::view::View;
use crate::view::item::Item;
use crate::view::pieces::Part;

/// Standing results, newest last, and the old ones that a stub would make shorter.
#[derive(Clone, Debug, Default)]
pub struct Aging {
    /// The newest results that stand, at most `keep_recent`.
    recent: VecDeque<CallId>,
    /// Older ones that may be put away.
    candidates: BTreeMap<CallId, Candidate>,
    /// Calls that a person's retract uncovered: they are left alone.
    uncovered: HashSet<CallId>,
}

/// A result that micro-compaction may put away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The entry of the result.
    pub result: EntryId,
    /// The characters that its stub saves in a request.
    pub saves: Chars,
}

impl Aging {
    /// The old results that may be put away, by call.
    pub fn candidates(&self) -> &BTreeMap<CallId, Candidate> {
        &self.candidates
    }
}

impl View {
    /// Takes a new result that stands in the view into account.
    pub(super) fn age(&mut self, call: CallId) {
        self.aging.recent.push_back(call);
        self.ripen();
    }

    /// Counts anew what is old.
    pub(super) fn reconsider(&mut self) {
        let mut standing = Vec::new();
        for piece in self.pieces.list() {
            let (Part::Result(index), Some(item)) = (piece.part, self.items.get(piece.item)) else {
                continue;
            };
            let result = item.calls().get(index).and_then(|call| call.result);
            if let Some(result) = result {
                standing.push((result, CallId::at(item.entry, index)));
            }
        }
        standing.sort_unstable();
        self.work.visited += self.pieces.list().len() as u64;
        self.aging.candidates.clear();
        self.aging.recent = standing.into_iter().map(|(_, call)| call).collect();
        self.ripen();
    }

    /// Remembers the calls that a person uncovered by taking an overlay back.
    pub(super) fn uncover(&mut self, overlay: EntryId) {
        let Some(overlay) = self.overlay(overlay) else {
            return;
        };
        let within = |span: &Span| {
            let items = self
                .items
                .within(*span)
                .filter_map(|index| self.items.get(index));
            let ids = |item: &Item| {
                let entry = item.entry;
                (0..item.calls().len()).map(move |index| CallId::at(entry, index))
            };
            items.flat_map(ids).collect::<Vec<_>>()
        };
        let calls: Vec<CallId> = match &overlay.layer {
            Layer::Stub(stub) => stub.results.clone(),
            Layer::Hide(hide) => hide
                .rounds
                .iter()
                .flat_map(within)
                .chain(hide.calls.iter().copied())
                .collect(),
            Layer::Summary(summary) => within(&summary.span),
            Layer::Show(_) => Vec::new(),
        };
        self.aging.uncovered.extend(calls);
    }

    fn ripen(&mut self) {
        let keep = self
            .policy()
            .map_or(Micro::default().keep_recent, |policy| {
                policy.compaction.micro.keep_recent
            });
        let keep = usize::try_from(keep).unwrap_or(usize::MAX);
        while self.aging.recent.len() > keep {
            let Some(call) = self.aging.recent.pop_front() else {
                return;
            };
            self.work.visited += 1;
            if let Some(candidate) = self.candidate(call) {
                self.aging.candidates.insert(call, candidate);
            }
        }
    }

    fn candidate(&self, call: CallId) -> Option<Candidate> {
        let micro = &self.policy()?.compaction.micro;
        let (entry, result) = self.result_of(call)?;
        let tool = self.tool_call(call)?;
        let min_chars = usize::try_from(micro.min_chars).ok()?;
        // Bytes are never fewer than characters, so short ones need not be counted.
        let long =
            result.content.len() > min_chars && result.content.chars().nth(min_chars).is_some();
        let spared = self.aging.uncovered.contains(&call)
            || self.is_shown(call)
            || self.is_protected(entry)
            || self.is_protected(call.response)
            || self.is_exempt(&tool.name, &micro.exempt);
        if !long || spared || self.reads(call) != Some(Reads::Full) {
            return None;
        }
        let overlay = self.transcript.next_id();
        let stub = Stubbed {
            overlay,
            form: Form::Previous,
            by: None,
        };
        let full = json_chars(&result.content);
        let short = json_chars(&self.stub_text(call, tool, result, stub));
        let saves = full.all > short.all && full.wide >= short.wide;
        saves.then(|| Candidate {
            result: entry,
            saves: full - short,
        })
    }

    /// Whether micro-compaction never touches the results of a tool.
    fn is_exempt(&self, name: &str, exempt: &[String]) -> bool {
        let spec = self
            .wire()
            .and_then(|wire| wire.tools.iter().find(|spec| spec.name == name));
        exempt.iter().any(|exempt| exempt == name)
            || spec
                .is_some_and(|spec| spec.meta.exempt || spec.meta.hint.response == Treatment::Keep)
    }

    pub(super) fn take_uncovered(&mut self, event: &Event) {
        if let Event::Retract(retract) = event
            && retract.origin == Origin::User
        {
            retract
                .overlays
                .iter()
                .for_each(|overlay| self.uncover(*overlay));
        }
    }
}

/// The characters of a text as a JSON string.
pub(crate) fn json_chars(text: &(impl Serialize + ?Sized)) -> Chars {
    serde_json::to_vec(text)
        .map(|json| Chars::of(&json))
        .unwrap_or_default()
}
