//! What the model can see in a simulated run, and what it misses of what was hidden.
//!
//! A hidden result is regretted if a later call fetches it again: the same call, if it got the same, or
//! `Recall`. A file that is read again after a change and a test that is run again ask for something
//! new. Results and arguments are also regretted if the model later writes a line of them that it could
//! no longer read: a long line that stands in what is hidden, and nowhere in what the model was sent.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::Serialize;

use crate::exchange::{Response, Status, ToolResult};
use crate::id::{CallId, EntryId};
use crate::lab::Missed;
use crate::lab::lines::{self, Written};
use crate::overlay::layers::Reads;
use crate::view::View;

/// The longest part of a quoted line that is told, in characters.
const TOLD: usize = 200;

/// A half of a call that was hidden and missed. Ids are those of the recorded run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Miss {
    /// The call.
    pub call: CallId,
    /// Which half of it.
    pub half: Half,
    /// The entry that missed it first: the result that fetched it again, or the response that quotes it.
    pub by: EntryId,
    /// The line that is quoted; absent if it was fetched again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotes: Option<String>,
}

/// A half of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Half {
    /// What it was asked.
    Arguments,
    /// What it answered.
    Result,
}

/// A content that the model read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Content {
    /// What was said: by the user, or by the model.
    Said(EntryId),
    /// The arguments of a call.
    Arguments(CallId),
    /// The result of a call.
    Result(CallId),
}

/// How it reads now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In full.
    Seen,
    /// No more, by the policy.
    Hidden,
    /// No more, by what was recorded.
    Gone,
}

/// What laid an overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The policy that is tried.
    Policy,
    /// The recorded run.
    Record,
}

/// What the model can see, and what it missed.
#[derive(Debug, Default)]
pub(super) struct Sight<'a> {
    contents: Vec<(Content, &'a [u64], State)>,
    places: HashMap<Content, usize>,
    /// How many contents that are seen hold a line.
    seen: HashMap<u64, u32>,
    /// The content that held a line when it was hidden.
    hidden: HashMap<u64, Content>,
    /// The results, and arguments with a line that could be quoted, that the policy hid at any time.
    ever: BTreeSet<Content>,
    /// Those that a later call fetched again, each with the entry that did so first.
    fetched: BTreeMap<Content, EntryId>,
    /// Those that the model quoted later, each with the first response that did, and the line.
    quoted: BTreeMap<Content, (EntryId, String)>,
    /// What each call asks for.
    asks: HashMap<CallId, u64>,
    /// The newest answered call that asked for something.
    newest: HashMap<u64, CallId>,
}

impl<'a> Sight<'a> {
    /// Takes a user entry that was taken in.
    pub(super) fn user(&mut self, entry: EntryId, lines: &'a [u64]) {
        self.push(Content::Said(entry), lines);
    }

    /// Takes a response that answers what the view reads as: what it quotes, it quotes from that.
    /// `recorded` is its id in the recorded run.
    pub(super) fn response(
        &mut self,
        (entry, recorded): (EntryId, EntryId),
        response: &Response,
        (lines, written): (&'a [u64], &'a [Written]),
        view: &View,
    ) {
        let all = written.iter().flat_map(|call| call.lines.iter());
        let missed = lines.iter().chain(all).filter_map(|line| {
            let unseen = self.seen.get(line).is_none_or(|count| *count == 0);
            let content = self.hidden.get(line).filter(|_| unseen)?;
            let is_new = self.is_hidden(*content) && !self.quoted.contains_key(content);
            is_new.then_some((*line, *content))
        });
        let missed: HashMap<u64, Content> = missed.collect();
        if !missed.is_empty() {
            // It may stand within a line, or in what a summary says.
            let read = lines::read(view);
            for (digest, line) in lines::said(response) {
                if let Some(content) = missed.get(&digest)
                    && !read.contains(&line)
                {
                    let told = || (recorded, line.chars().take(TOLD).collect());
                    self.quoted.entry(*content).or_insert_with(told);
                }
            }
        }
        self.push(Content::Said(entry), lines);
        for (index, written) in written.iter().enumerate() {
            let call = CallId::at(entry, index);
            self.asks.insert(call, written.asks);
            self.push(Content::Arguments(call), &written.lines);
        }
    }

    /// Takes the result of a call that was taken in. `recorded` is its id in the recorded run.
    pub(super) fn result(
        &mut self,
        recorded: EntryId,
        result: &ToolResult,
        lines: &'a [u64],
        view: &View,
    ) {
        let mut missed = Vec::new();
        if ran(result.status)
            && let Some(asks) = self.asks.get(&result.call)
            && let Some(before) = self.newest.insert(*asks, result.call)
            && let Some((_, old)) = view.result_of(before)
            && old.content == result.content
        {
            missed.push(Content::Result(before));
        }
        for entry in &result.facts.recalled {
            if let Some(old) = view.result(*entry) {
                let halves = [Content::Result(old.call), Content::Arguments(old.call)];
                missed.extend(halves.into_iter().find(|it| self.is_hidden(*it)));
            }
        }
        for content in missed {
            if self.is_hidden(content) {
                self.fetched.entry(content).or_insert(recorded);
            }
        }
        self.push(Content::Result(result.call), lines);
    }

    /// Looks again after overlays were laid or taken back.
    pub(super) fn look(&mut self, view: &View, by: By) {
        for (content, lines, state) in &mut self.contents {
            let reads = match content {
                Content::Said(entry) => view.covered_by(*entry).is_none(),
                Content::Arguments(call) => view.reads_arguments(*call) == Some(Reads::Full),
                Content::Result(call) => view.reads(*call) == Some(Reads::Full),
            };
            match (*state, reads) {
                (State::Seen, true) | (State::Gone, false) => {}
                (State::Seen, false) => {
                    for line in *lines {
                        self.seen.entry(*line).and_modify(|count| *count -= 1);
                    }
                    *state = match by {
                        By::Policy => State::Hidden,
                        By::Record => State::Gone,
                    };
                    if by == By::Policy && content.counts(lines) {
                        self.ever.insert(*content);
                        let lines = lines.iter().map(|line| (*line, *content));
                        self.hidden.extend(lines);
                    }
                }
                (State::Hidden | State::Gone, true) => {
                    for line in *lines {
                        *self.seen.entry(*line).or_default() += 1;
                    }
                    *state = State::Seen;
                }
                // What the record hides as well, no policy is to blame for.
                (State::Hidden, false) => {
                    if let (By::Record, Some(call)) = (by, content.call())
                        && view.covered_by(call.response).is_some()
                    {
                        *state = State::Gone;
                    }
                }
            }
        }
    }

    /// What became of the results that the policy hid.
    pub(super) fn results(&self) -> Missed {
        self.missed(|content| matches!(content, Content::Result(_)))
    }

    /// What became of the arguments that it hid.
    pub(super) fn arguments(&self) -> Missed {
        self.missed(|content| matches!(content, Content::Arguments(_)))
    }

    fn missed(&self, is: impl Fn(&Content) -> bool) -> Missed {
        let fetched: BTreeSet<Content> = self.fetched.keys().copied().filter(&is).collect();
        let quoted: BTreeSet<Content> = self.quoted.keys().copied().filter(&is).collect();
        Missed {
            hidden: self.ever.iter().filter(|content| is(content)).count() as u64,
            fetched: fetched.len() as u64,
            quoted: quoted.len() as u64,
            regretted: fetched.union(&quoted).count() as u64,
        }
    }

    /// Everything that was missed, with the ids that its calls were recorded under.
    pub(super) fn misses(&self, recorded: impl Fn(CallId) -> Option<CallId>) -> Vec<Miss> {
        let fetched = self
            .fetched
            .iter()
            .map(|(content, by)| (content, *by, None));
        let quoted = self.quoted.iter();
        let quoted = quoted.map(|(content, (by, line))| (content, *by, Some(line.clone())));
        let told = fetched.chain(quoted).filter_map(|(content, by, quotes)| {
            let (half, call) = match content {
                Content::Said(_) => return None,
                Content::Arguments(call) => (Half::Arguments, *call),
                Content::Result(call) => (Half::Result, *call),
            };
            let call = recorded(call)?;
            Some(Miss {
                call,
                half,
                by,
                quotes,
            })
        });
        let mut told: Vec<Miss> = told.collect();
        told.sort_by_key(|miss| (miss.by, miss.call));
        told
    }

    fn is_hidden(&self, content: Content) -> bool {
        let place = self.places.get(&content);
        let content = place.and_then(|place| self.contents.get(*place));
        content.is_some_and(|(_, _, state)| *state == State::Hidden)
    }

    fn push(&mut self, content: Content, lines: &'a [u64]) {
        for line in lines {
            *self.seen.entry(*line).or_default() += 1;
        }
        self.places.insert(content, self.contents.len());
        self.contents.push((content, lines, State::Seen));
    }
}

impl Content {
    /// Whether it counts as hidden: a result does, and arguments of which a line could be quoted.
    fn counts(self, lines: &[u64]) -> bool {
        match self {
            Self::Said(_) => false,
            Self::Arguments(_) => !lines.is_empty(),
            Self::Result(_) => true,
        }
    }

    /// The call that it is a half of.
    fn call(self) -> Option<CallId> {
        match self {
            Self::Said(_) => None,
            Self::Arguments(call) | Self::Result(call) => Some(call),
        }
    }
}

/// Whether a call of which this became ran at all, as far as anybody knows.
fn ran(status: Status) -> bool {
    match status {
        Status::Ok | Status::Error | Status::Timeout => true,
        Status::Denied | Status::Interrupted | Status::Cancelled => false,
    }
}
