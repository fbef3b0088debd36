//! Calls on their way from new to old: what micro-compaction may put away of them.
//!
//! Kept up to date with every result, so that looking before each request costs nothing. Overlays,
//! retracts, pins and settings change what is old; then it is counted anew over what still reads.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::exchange::{Hint, Treatment};
use crate::id::{CallId, EntryId, Span};
use crate::meter::Chars;
use crate::overlay::layers::{Reads, Stubbed};
use crate::overlay::{Form, Layer, Origin};
use crate::setup::{Micro, SignedArguments};
use crate::transcript::Event;
use crate::view::item::Item;
use crate::view::pieces::Part;
use crate::view::{Defers, View};
use crate::words;

/// Standing results, newest last, and the old calls that a stub would make shorter.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Aging {
    /// The newest results that stand, at most `keep_recent`.
    recent: VecDeque<CallId>,
    /// Calls with older ones, of which something may be put away.
    candidates: BTreeMap<CallId, Candidate>,
    /// The same by the entries of their results.
    by_result: BTreeMap<EntryId, CallId>,
    /// What they save together.
    saves: Chars,
    /// Calls that a person's retract uncovered: they are left alone.
    uncovered: BTreeSet<CallId>,
    /// Old calls that were looked at, with what came of it, as long as nothing changed how they read.
    judged: BTreeMap<CallId, Option<Candidate>>,
}

/// A call of which micro-compaction may put something away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The entry of its result.
    pub result: EntryId,
    /// What goes.
    pub part: Parts,
    /// The characters that this saves in a request.
    pub saves: Chars,
}

/// What of a call may be put away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Parts {
    /// The result.
    Result,
    /// The arguments.
    Arguments,
    /// Both.
    Both,
}

/// What micro-compaction may put away of what the model has seen, in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ripe {
    /// The number of calls.
    pub calls: usize,
    /// The first of them.
    pub first: Option<CallId>,
    /// The characters that putting all of them away saves in a request.
    pub saves: Chars,
}

impl Aging {
    /// The old calls of which something may be put away.
    pub fn candidates(&self) -> &BTreeMap<CallId, Candidate> {
        &self.candidates
    }

    fn clear_candidates(&mut self) {
        self.candidates.clear();
        self.by_result.clear();
        self.saves = Chars::default();
    }

    fn add_candidate(&mut self, call: CallId, candidate: Candidate) {
        if let Some(before) = self.candidates.insert(call, candidate) {
            self.saves -= before.saves;
        }
        self.by_result.insert(candidate.result, call);
        self.saves += candidate.saves;
    }
}

impl View {
    /// Takes a new result that stands in the view into account.
    pub(super) fn age(&mut self, call: CallId) {
        if self.defers == Defers::Nothing {
            self.aging.recent.push_back(call);
            self.ripen();
        }
    }

    /// Counts anew what is old, and looks at all of it again.
    pub(super) fn reconsider(&mut self) {
        self.aging.judged.clear();
        self.count_old();
    }

    /// Counts anew what is old where some items read differently.
    pub(super) fn reconsider_items(&mut self, items: &BTreeSet<usize>) {
        for item in items.iter().filter_map(|index| self.items.get(*index)) {
            for place in 0..item.calls().len() {
                self.aging.judged.remove(&CallId::at(item.entry, place));
            }
        }
        self.count_old();
    }

    /// Counts what is old, over all that stands; where nobody asks before the end, once there.
    pub(super) fn count_old(&mut self) {
        if self.defers != Defers::Nothing {
            return;
        }
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
        self.aging.clear_candidates();
        self.aging.recent = standing.into_iter().map(|(_, call)| call).collect();
        self.ripen();
    }

    /// The candidates that the model has seen: those that stood in an answered request.
    pub fn ripe_calls(&self) -> impl Iterator<Item = (CallId, Candidate)> {
        let answered = self.last_answered();
        let all = self.aging.candidates.iter();
        all.map(|(call, candidate)| (*call, *candidate))
            .filter(move |(_, candidate)| candidate.result < answered)
    }

    /// The same in sum. Looks only at those that the model has not seen, which are new.
    pub fn ripe(&self) -> Ripe {
        let all = &self.aging.candidates;
        let mut ripe = Ripe {
            calls: all.len(),
            first: None,
            saves: self.aging.saves,
        };
        let unseen = self.aging.by_result.range(self.last_answered()..);
        for candidate in unseen.filter_map(|(_, call)| all.get(call)) {
            self.looked.add(1);
            ripe.calls -= 1;
            ripe.saves -= candidate.saves;
        }
        if ripe.calls > 0 {
            self.looked.add(1);
            ripe.first = self.ripe_calls().next().map(|(call, _)| call);
        }
        ripe
    }

    /// The newest request that was answered; before there is one, the id of no entry.
    fn last_answered(&self) -> EntryId {
        let answered = self.rounds.answered();
        let request = answered.and_then(|round| round.requests.last().copied());
        request.unwrap_or_default()
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
            Layer::Stub(stub) => [&*stub.results, &*stub.arguments].concat(),
            Layer::Hide(hide) => hide
                .rounds
                .iter()
                .flat_map(within)
                .chain(hide.calls.iter().copied())
                .collect(),
            Layer::Summary(summary) => within(&summary.span),
            Layer::Show(_) => Vec::new(),
        };
        for call in &calls {
            self.aging.judged.remove(call);
        }
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
            let known = self.aging.judged.get(&call).copied();
            let candidate = known.unwrap_or_else(|| {
                let candidate = self.candidate(call);
                self.aging.judged.insert(call, candidate);
                candidate
            });
            if let Some(candidate) = candidate {
                self.aging.add_candidate(call, candidate);
            }
        }
    }

    fn candidate(&self, call: CallId) -> Option<Candidate> {
        let entry = self.answer(call)?;
        let spared = self.aging.uncovered.contains(&call)
            || self.is_shown(call)
            || self.is_protected(entry)
            || self.is_protected(call.response);
        if spared {
            return None;
        }
        let (part, saves) = match (self.result_saves(call), self.arguments_save(call)) {
            (Some(result), Some(arguments)) => (Parts::Both, result + arguments),
            (Some(result), None) => (Parts::Result, result),
            (None, Some(arguments)) => (Parts::Arguments, arguments),
            (None, None) => return None,
        };
        Some(Candidate {
            result: entry,
            part,
            saves,
        })
    }

    /// What putting the result of a call away saves; `None` if it stays.
    fn result_saves(&self, call: CallId) -> Option<Chars> {
        // What reads otherwise is not looked at: it may have been let go.
        self.reads(call).filter(|reads| *reads == Reads::Full)?;
        let micro = &self.policy()?.compaction.micro;
        let (_, result) = self.result_of(call)?;
        let tool = self.tool_call(call)?;
        let stays = is_short(&result.content, micro.min_chars)
            || self.is_exempt(&tool.name, &micro.exempt)
            || self.hint_of(&tool.name).response == Treatment::Keep;
        if stays {
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
        saving(full, short)
    }

    /// What putting the arguments of a call away saves; `None` if they stay, as they do unless the
    /// tool's hint lets them go.
    fn arguments_save(&self, call: CallId) -> Option<Chars> {
        self.reads_arguments(call)
            .filter(|reads| *reads == Reads::Full)?;
        let micro = &self.policy()?.compaction.micro;
        let tool = self.tool_call(call)?;
        let stays = !micro.arguments
            || is_short(&tool.arguments, micro.min_chars)
            || self.is_exempt(&tool.name, &micro.exempt)
            || self.hint_of(&tool.name).request != Treatment::Strip
            || !self.may_stub_arguments(call);
        if stays {
            return None;
        }
        saving(json_chars(&tool.arguments), json_chars(words::NO_ARGUMENTS))
    }

    /// Whether the arguments of a call read in full and may read as none: those that are signed may
    /// have to go back as they came.
    pub(crate) fn may_stub_arguments(&self, id: CallId) -> bool {
        if self.reads_arguments(id) != Some(Reads::Full) {
            return false;
        }
        let signed = self.tool_call(id).is_some_and(|call| call.extra.is_some());
        let keeps = self.wire().is_some_and(|wire| {
            let calls = &wire.models.main.profile.calls;
            calls.signed_arguments == SignedArguments::Keep
        });
        !(signed && keeps)
    }

    /// The hint of a tool, as the settings in force have it.
    pub(crate) fn hint_of(&self, name: &str) -> Hint {
        let specs = self.wire().map(|wire| wire.tools.as_slice());
        let mut specs = specs.unwrap_or_default().iter();
        let spec = specs.find(|spec| spec.name == name);
        spec.map(|spec| spec.meta.hint).unwrap_or_default()
    }

    /// Whether micro-compaction never touches the calls of a tool.
    fn is_exempt(&self, name: &str, exempt: &[String]) -> bool {
        let spec = self
            .wire()
            .and_then(|wire| wire.tools.iter().find(|spec| spec.name == name));
        exempt.iter().any(|exempt| exempt == name) || spec.is_some_and(|spec| spec.meta.exempt)
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

/// Whether a text has at most so many characters.
fn is_short(text: &str, min_chars: u64) -> bool {
    let least = usize::try_from(min_chars).unwrap_or(usize::MAX);
    // A character takes from one byte to four, so that few texts need to be counted.
    text.len() <= least
        || text.len() <= least.saturating_mul(4) && Chars::of(text.as_bytes()).all <= min_chars
}

/// What the shorter text saves; `None` if it saves nothing.
fn saving(full: Chars, short: Chars) -> Option<Chars> {
    let saves = full.all > short.all && full.wide >= short.wide;
    saves.then(|| full - short)
}

/// The characters of a text as a JSON string.
pub(crate) fn json_chars(text: &str) -> Chars {
    Chars::of_string(text)
}
