//! What the model can see in a simulated run, and what it misses of what was hidden.
//!
//! A hidden result is regretted if a later call fetches it again. A call that only reads does so
//! whatever it gets; one with an effect only if it gets the same: a test that is run again after a
//! change asks for something new. Results and arguments are also regretted if the model later writes a
//! line of them that it could no longer read: a line of at least [`QUOTE_CHARS`] characters (spaces at
//! its ends aside) that stands in what is hidden and nowhere else in the request.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{Hash as _, Hasher as _};

use serde_json::Value;

use crate::exchange::{Effect, Response, arguments};
use crate::id::{CallId, EntryId};
use crate::lab::Missed;
use crate::overlay::layers::Reads;
use crate::transcript::{Entry, Event};
use crate::view::View;

/// The shortest line that counts as quoted, in characters.
pub const QUOTE_CHARS: usize = 40;

/// The long lines that an entry adds to what the model reads, as digests, each once.
pub(super) fn lines(entry: &Entry) -> Vec<u64> {
    let mut found = HashSet::new();
    match &entry.event {
        Event::User(user) => {
            add(&user.text, &mut found);
            let attachments = user.attachments.iter();
            attachments.for_each(|attachment| add(&attachment.text, &mut found));
        }
        Event::Response(response) => add(&response.text, &mut found),
        Event::Result(result) => add(&result.content, &mut found),
        Event::Run(_)
        | Event::Setup(_)
        | Event::Request(_)
        | Event::Started(_)
        | Event::Overlay(_)
        | Event::Retract(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Fault(_)
        | Event::Note(_)
        | Event::End(_)
        | Event::Unknown(_) => {}
    }
    found.into_iter().collect()
}

/// The same for the arguments of each call of a response.
pub(super) fn argument_lines(response: &Response) -> Vec<Box<[u64]>> {
    let calls = response.calls.iter().map(|call| {
        let mut found = HashSet::new();
        texts(&arguments(&call.arguments), &mut found);
        found.into_iter().collect()
    });
    calls.collect()
}

/// Adds the lines of every text in a value.
fn texts(value: &Value, found: &mut HashSet<u64>) {
    match value {
        Value::String(text) => add(text, found),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn add(text: &str, found: &mut HashSet<u64>) {
    for line in text.lines().map(str::trim) {
        // Bytes are never fewer than characters, so short ones need not be counted.
        if line.len() >= QUOTE_CHARS && line.chars().nth(QUOTE_CHARS - 1).is_some() {
            let mut hasher = DefaultHasher::new();
            line.hash(&mut hasher);
            found.insert(hasher.finish());
        }
    }
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
    /// Those that a later call fetched again.
    fetched: BTreeSet<Content>,
    /// Those that the model quoted later.
    quoted: BTreeSet<Content>,
    /// The fetched calls of the view that were looked at.
    told: BTreeSet<CallId>,
}

impl<'a> Sight<'a> {
    /// Takes a user entry that was taken in.
    pub(super) fn user(&mut self, entry: EntryId, lines: &'a [u64]) {
        self.push(Content::Said(entry), lines);
    }

    /// Takes a response, with the lines of what it says and of the arguments of its calls: what it
    /// quotes, it quotes from what was seen before it.
    pub(super) fn response(
        &mut self,
        entry: EntryId,
        lines: &'a [u64],
        arguments: &'a [Box<[u64]>],
    ) {
        let written = arguments.iter().flat_map(|lines| lines.iter());
        for line in lines.iter().chain(written) {
            let Some(content) = self.hidden.get(line) else {
                continue;
            };
            let unseen = self.seen.get(line).is_none_or(|count| *count == 0);
            if unseen && self.is_hidden(*content) {
                self.quoted.insert(*content);
            }
        }
        self.push(Content::Said(entry), lines);
        for (index, lines) in arguments.iter().enumerate() {
            self.push(Content::Arguments(CallId::at(entry, index)), lines);
        }
    }

    /// Takes the result of a call, and what the view says of it.
    pub(super) fn result(&mut self, call: CallId, lines: &'a [u64], view: &View) {
        let fetched = view.regret().calls();
        if fetched.len() > self.told.len() {
            let new: Vec<CallId> = fetched.difference(&self.told).copied().collect();
            for old in new {
                self.told.insert(old);
                let contents = [Content::Result(old), Content::Arguments(old)];
                let missed = contents.into_iter().find(|it| self.is_hidden(*it));
                if let Some(missed) = missed.filter(|_| is_again(view, old, call)) {
                    self.fetched.insert(missed);
                }
            }
        }
        self.push(Content::Result(call), lines);
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

    fn missed(&self, is: impl Fn(&&Content) -> bool) -> Missed {
        let count = |all: &BTreeSet<Content>| all.iter().filter(&is).count() as u64;
        let either = self.fetched.union(&self.quoted);
        Missed {
            hidden: count(&self.ever),
            fetched: count(&self.fetched),
            quoted: count(&self.quoted),
            regretted: either.filter(&is).count() as u64,
        }
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

/// Whether a call got again what an older one had got.
fn is_again(view: &View, old: CallId, new: CallId) -> bool {
    let (Some((_, before)), Some((_, now))) = (view.result_of(old), view.result_of(new)) else {
        return false;
    };
    let name = view.tool_call(new).map(|call| call.name.as_str());
    let reads = name.is_some_and(|name| {
        let spec = view.spec_at(name, new.response);
        spec.is_some_and(|spec| spec.meta.effect == Effect::Reads)
    });
    let recalled = !now.facts.recalled.is_empty();
    reads || recalled || before.content == now.content
}
