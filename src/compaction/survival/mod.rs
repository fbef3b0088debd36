//! The survival check: what a summary leaves out although it must not be lost, found without a model.
//!
//! [`check`] looks for what should outlive a summary: texts that were asked to be kept, demands of
//! the user, commands that fail, open todos, files that were changed, and names in what the user
//! wrote. What is neither in the summary nor in what stays beside it is listed, as far as there is
//! room; the list is shown again after the summary, as part of its carry. A quotation that a summary
//! says is the user's, and is not, is marked there; the text itself is never altered.
//!
//! It is a matter of exact texts: what a summary says in other words is listed all the same, and a
//! result that will age does not count as staying.

mod demands;
mod names;
mod quotes;
mod stays;

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::compaction::carry::{FAILURES, cost, failures};
use crate::id::{EntryId, Span};
use crate::overlay::{Author, Carry};
use crate::view::View;
use crate::words;
use stays::Stays;

/// The most that is looked for after one summary, what must be kept not counted.
pub const MOST: usize = 500;

/// The most names looked for in one message of the user.
const NAMES: usize = 50;

/// The most demands looked for in one message of the user.
const DEMANDS: usize = 20;

/// The most quotations that are marked.
const MARKS: usize = 8;

/// What the check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survival {
    /// The list, as it is shown again; empty if there is nothing to say.
    pub text: String,
    /// How much was looked for.
    pub looked_for: usize,
    /// How much of it was missing and is listed.
    pub appended: usize,
    /// How much of it was missing and had no room in the list, which says so.
    pub left_out: usize,
    /// Quotations said to be the user's that the user never wrote.
    pub unfounded: usize,
}

/// The room of a list, in narrow characters; a wide one takes four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// For the whole list, texts that must be kept left out.
    pub list: u64,
    /// For texts that must be kept.
    pub keep: u64,
}

/// Something that is looked for: how it would be found, and its line in the list.
#[derive(Debug, PartialEq, Eq)]
enum Item {
    /// A text that must be kept, word for word.
    Keep(String),
    /// A sentence in which the user demands or forbids something.
    Demand(String),
    /// Something of which the record has a line: what is looked for, and the line.
    Line(String, String),
    /// A name in an entry of the user.
    Name(EntryId, String),
}

/// Looks for what must outlive a summary of this span with this text, which carries so much.
///
/// What the summary covers is its span and what older summaries cover. `keep` is what was asked to
/// be kept; what was asked for when older summaries were made is kept as well.
pub fn check(
    view: &View,
    span: Span,
    text: &str,
    keep: &[String],
    carry: &Carry,
    room: Room,
) -> Survival {
    let stays = Stays::new(view, span, text, carry);
    let items = items(view, span, keep);
    let marks = marks(view, span, text);
    let mut list = List::new(room);
    let mut survival = Survival {
        looked_for: items.len(),
        unfounded: marks.len(),
        ..Survival::default()
    };
    let missing = items.iter().filter(|item| !item.survives(&stays));
    let (kept, others): (Vec<&Item>, Vec<&Item>) =
        missing.partition(|item| matches!(item, Item::Keep(_)));
    let mut place = |list: &mut List, item: &Item| {
        if list.add(item) {
            survival.appended += 1;
        } else {
            survival.left_out += 1;
        }
    };
    for item in kept {
        place(&mut list, item);
    }
    for mark in &marks {
        list.mark(mark);
    }
    for item in others {
        place(&mut list, item);
    }
    survival.text = list.finish(survival.left_out);
    survival
}

/// Whether a summary of this span covers an entry of the conversation, or an older one does.
pub(super) fn covered(view: &View, span: Span, entry: EntryId) -> bool {
    span.contains(entry) || view.covered_by(entry).is_some()
}

impl Item {
    fn survives(&self, stays: &Stays) -> bool {
        match self {
            Self::Keep(text) => stays.says(text),
            Self::Demand(sentence) => stays.demands(sentence),
            Self::Line(needle, _) | Self::Name(_, needle) => stays.names(needle),
        }
    }
}

/// Everything that is looked for, what matters most first, nothing twice.
fn items(view: &View, span: Span, keep: &[String]) -> Vec<Item> {
    let mut seen = HashSet::new();
    let mut items = Vec::new();
    // Of those as well that a newer one covers: it was not asked for what they keep.
    let laid = view
        .sought()
        .kept()
        .filter(|(summary, _)| view.is_laid(*summary));
    let asked = laid.flat_map(|(_, kept)| kept.iter().map(String::as_str));
    for text in keep.iter().map(String::as_str).chain(asked) {
        let text = text.trim();
        if !text.is_empty() && seen.insert(text.to_owned()) {
            items.push(Item::Keep(text.to_owned()));
        }
    }
    let most = items.len() + MOST;
    let mut add = |items: &mut Vec<Item>, key: &str, item: Item| {
        if items.len() < most && seen.insert(key.to_owned()) {
            items.push(item);
        }
    };

    let working = view.working();
    let said = working.task.iter().chain(&working.follow_ups).rev();
    let said: Vec<_> = said
        .filter(|entry| covered(view, span, **entry))
        .filter_map(|entry| Some((*entry, view.user(*entry)?.text.as_str())))
        .collect();
    for (_, text) in &said {
        for demand in demands::demands(text, DEMANDS) {
            add(&mut items, &demand.clone(), Item::Demand(demand));
        }
    }
    for (needle, line) in recorded(view, span) {
        add(&mut items, &needle.clone(), Item::Line(needle, line));
    }
    for (entry, text) in said {
        for name in names::names(text, NAMES) {
            add(&mut items, &name.clone(), Item::Name(entry, name));
        }
    }
    items
}

/// What the record itself says must not be lost: commands that fail, open todos, files changed.
fn recorded(view: &View, span: Span) -> Vec<(String, String)> {
    let working = view.working();
    let failures = failures(view).into_iter();
    let failures = failures.filter(|failed| covered(view, span, failed.call.response));
    let mut failures: Vec<_> = failures.map(|one| (one.command, one.line)).collect();
    let older = failures.split_off(failures.len().min(FAILURES));
    let todo = working
        .todo
        .filter(|call| covered(view, span, call.response));
    let todos = todo.map(|_| view.open_todos()).unwrap_or_default();
    let todos = todos.into_iter().map(|todo| {
        let line = words::open_todo(&todo);
        (todo, line)
    });
    let mut files: Vec<_> = working.files.iter().collect();
    files.sort_unstable_by_key(|(_, file)| std::cmp::Reverse(file.call));
    let files = files
        .into_iter()
        .filter(|(_, file)| file.changed && covered(view, span, file.call.response))
        .map(|(path, file)| (path.clone(), words::file(true, path, file.call)));
    let first = failures.into_iter().chain(todos).chain(files);
    first.chain(older).collect()
}

/// Quotations in the texts of summaries that are said to be the user's and are not.
fn marks(view: &View, span: Span, text: &str) -> Vec<String> {
    let standing = view.summaries();
    let others = standing
        .iter()
        .filter(|other| {
            other.summary.by != Author::User && !stays::within(other.summary.span, span)
        })
        .map(|other| other.summary.text.as_str());
    let mut seen = HashSet::new();
    let mut open: Vec<String> = std::iter::once(text)
        .chain(others)
        .flat_map(quotes::claimed)
        .filter(|quote| seen.insert(quote.clone()))
        .collect();
    let working = view.working();
    for entry in working.task.iter().chain(&working.follow_ups) {
        if open.is_empty() {
            break;
        }
        let Some(user) = view.user(*entry) else {
            continue;
        };
        let attached = user.attachments.iter().map(|attachment| &attachment.text);
        for written in std::iter::once(&user.text).chain(attached) {
            let written = stays::plain(written).to_lowercase();
            open.retain(|quote| !quotes::is_in(quote, &written));
        }
    }
    open.truncate(MARKS);
    open
}

/// The list in the making.
struct List {
    text: String,
    room: Room,
    /// The entry whose names stand on the last line.
    entry: Option<EntryId>,
}

impl List {
    fn new(room: Room) -> Self {
        Self {
            text: String::new(),
            room,
            entry: None,
        }
    }

    /// Adds an item; returns whether it had room.
    fn add(&mut self, item: &Item) -> bool {
        match item {
            Item::Keep(text) => {
                let line = words::survival_keep(text);
                let takes = cost(&line) + 1;
                if takes > self.room.keep {
                    return false;
                }
                self.room.keep -= takes;
                self.begin();
                write!(self.text, "\n{line}").ok();
                true
            }
            Item::Demand(sentence) => self.line(&words::survival_demand(sentence)),
            Item::Line(_, line) => self.line(line),
            // A sentence that is listed may hold it.
            Item::Name(_, name) if stays::names(&self.text, name) => true,
            Item::Name(entry, name) if self.entry == Some(*entry) => {
                let takes = cost(name) + 3;
                let fits = takes <= self.room.list;
                if fits {
                    self.room.list -= takes;
                    write!(self.text, " · {name}").ok();
                }
                fits
            }
            Item::Name(entry, name) => {
                let fits = self.line(&words::survival_names(*entry, name));
                self.entry = fits.then_some(*entry);
                fits
            }
        }
    }

    fn mark(&mut self, quote: &str) {
        self.line(&words::survival_unfounded(quote));
    }

    fn line(&mut self, line: &str) -> bool {
        let heading = if self.text.is_empty() {
            cost(words::SURVIVAL)
        } else {
            0
        };
        let takes = heading + cost(line) + 1;
        if takes > self.room.list {
            return false;
        }
        self.begin();
        self.room.list -= takes;
        self.entry = None;
        write!(self.text, "\n{line}").ok();
        true
    }

    fn begin(&mut self) {
        if self.text.is_empty() {
            self.text.push_str(words::SURVIVAL);
        }
    }

    fn finish(mut self, left_out: usize) -> String {
        if left_out > 0 {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(&words::survival_more(left_out));
        }
        self.text
    }
}
