//! The pen: what a reader tells it, piece by piece in the order of the file, becomes the draft of a run.
//!
//! A reader walks its file and says what stands there; what belongs together is the pen's to find out.
//! Pieces of one response have the same *key*; where the format has none, a response ends with the
//! first result or message after it, or where the reader says so. Results find their call by the
//! provider's id, wherever they stand: the newest call of this id that has none. Text is never lost,
//! reordered within an item, or invented.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::exchange::{
    Ending, Facts, Reasoning, Response, Status, ToolCall, ToolMeta, ToolSpec, Usage,
};
use crate::id::EntryId;
use crate::import::known;
use crate::overlay::Origin;
use crate::setup::{Models, Prices};
use crate::transcript::{At, Attachment, Event, Purpose, Speaker};
use crate::wire::lower;

/// The draft of one run.
#[derive(Debug, Default)]
pub(super) struct Pen {
    pub(super) head: Head,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) items: Vec<Item>,
    pub(super) drafts: Vec<Draft>,
    pub(super) skipped: u64,
    at: Option<At>,
    entry: Option<EntryId>,
    /// The drafts that have keys.
    keys: HashMap<String, usize>,
    /// Whether pieces without a key go on with the newest draft.
    open: bool,
    /// Calls without a result, by the provider's id, oldest first.
    waiting: HashMap<String, Vec<(usize, usize)>>,
    typed: bool,
    /// The model that was told of last.
    told: Option<(String, Option<u64>)>,
}

/// What is said of a run as a whole.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// The directory it worked in.
    pub(super) cwd: String,
    /// The version of the agent.
    pub(super) version: String,
    /// The agent's own id of the run.
    pub(super) session: String,
}

/// Something that was told, and when it happened.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) at: Option<At>,
    /// The entry that it was, where this program recorded it.
    pub(super) entry: Option<EntryId>,
    pub(super) what: What,
}

/// What was told.
#[derive(Debug)]
pub(super) enum What {
    Instructions(String),
    Model(String, Option<u64>),
    User(Speaker, String, Vec<Attachment>),
    /// The draft at this place.
    Response(usize),
    Compacted(Compaction),
    Note(String),
    Settings(Box<Settings>),
    /// A change of how the run reads, in the ids of the run that was exported.
    Change(Box<Event>),
    /// A reply that is no round, and what it was asked for, in the same ids.
    Reply(Box<(Purpose, Response)>),
}

/// The settings that requests depend on, besides the system text and the tools.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) models: Models,
    pub(super) prices: Option<Prices>,
}

/// A response, and the answers to its calls.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) text: String,
    pub(super) reasoning: Vec<Reasoning>,
    pub(super) calls: Vec<(ToolCall, Option<Answer>)>,
    pub(super) usage: Option<Usage>,
    pub(super) ending: Option<Ending>,
    pub(super) finish: Option<String>,
    pub(super) provider_request: Option<String>,
    /// What it was asked for, if that is no round, in the ids of the run that was exported.
    pub(super) purpose: Option<Purpose>,
}

/// The answer to a call.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) at: Option<At>,
    pub(super) status: Status,
    pub(super) content: String,
    pub(super) known: Known,
}

/// What this program knows of an answer that it recorded.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The entry that it was.
    pub(super) entry: Option<EntryId>,
    /// In the ids of the run that was exported.
    pub(super) facts: Facts,
    /// How long it was before it was clipped, in bytes.
    pub(super) whole_bytes: Option<u64>,
}

/// A place in the draft: everything told from here on stands behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark(pub(super) usize);

/// A compaction that the agent recorded: from here on, a text stands for what came before.
#[derive(Debug)]
pub(super) struct Compaction {
    /// The text.
    pub(super) text: String,
    /// Who asked for it.
    pub(super) origin: Origin,
    /// Why, in the agent's words.
    pub(super) reason: String,
    /// Where what is kept begins; `None`: nothing before is kept.
    pub(super) keeps: Option<Mark>,
    /// The places right before messages of the user that are shown again behind the text, word for
    /// word.
    pub(super) again: Vec<Mark>,
}

impl Pen {
    /// When what is told from here on happened. Without a time it is the one before.
    pub(super) fn at(&mut self, at: Option<At>) {
        self.at = at.or(self.at);
    }

    /// What is told from here on was this entry of a run that this program exported.
    pub(super) fn entry(&mut self, entry: Option<EntryId>) {
        self.entry = entry;
    }

    /// Where the run took place, the agent's version and its own id of the run, as far as the format
    /// says; what was said first stands.
    pub(super) fn run(&mut self, cwd: &str, version: &str, session: &str) {
        let Head {
            cwd: known_cwd,
            version: known_version,
            session: known_session,
        } = &mut self.head;
        for (known, said) in [
            (known_cwd, cwd),
            (known_version, version),
            (known_session, session),
        ] {
            if known.is_empty() {
                said.clone_into(known);
            }
        }
    }

    /// The system text from here on. Before the first message, one text after another is added to it.
    pub(super) fn instructions(&mut self, text: &str) {
        let before = self
            .items
            .iter_mut()
            .rev()
            .take_while(|item| !matches!(item.what, What::User(..) | What::Response(_)));
        let mut known = before.filter_map(|item| match &mut item.what {
            What::Instructions(known) => Some(known),
            What::Model(..)
            | What::User(..)
            | What::Response(_)
            | What::Compacted(_)
            | What::Note(_)
            | What::Settings(_)
            | What::Change(_)
            | What::Reply(_) => None,
        });
        match known.next() {
            Some(known) if known == text => {}
            Some(known) => {
                known.push_str("\n\n");
                known.push_str(text);
            }
            None => self.push(What::Instructions(text.to_owned())),
        }
    }

    /// The system text from here on, whatever was told before.
    pub(super) fn instructed(&mut self, text: String) {
        self.push(What::Instructions(text));
    }

    /// The settings from here on.
    pub(super) fn settings(&mut self, settings: Settings) {
        self.push(What::Settings(Box::new(settings)));
    }

    /// What is known of a tool that the model was told of.
    pub(super) fn meta(&mut self, name: &str, meta: ToolMeta) {
        if let Some(tool) = self.tools.iter_mut().find(|tool| tool.name == name) {
            tool.meta = meta;
        }
    }

    /// A tool that the model is told of, with the JSON Schema of its arguments. Told again, it is
    /// what was told last.
    pub(super) fn tool(&mut self, name: &str, description: &str, schema: &str) {
        let schema = RawValue::from_string(schema.to_owned());
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            schema: schema.unwrap_or_else(|_| lower::any_object()),
            meta: known::meta(name),
        };
        match self.tools.iter_mut().find(|known| known.name == name) {
            Some(known) => *known = spec,
            None => self.tools.push(spec),
        }
    }

    /// The model that is asked from here on, and its window if it is known.
    pub(super) fn model(&mut self, name: &str, window: Option<u64>) {
        let told = (name.to_owned(), window);
        if !name.is_empty() && self.told.as_ref() != Some(&told) {
            self.told = Some(told);
            self.push(What::Model(name.to_owned(), window));
        }
    }

    /// A message in the user's place. One without text and attachments is none.
    pub(super) fn user(&mut self, speaker: Speaker, text: String, attachments: Vec<Attachment>) {
        if text.is_empty() && attachments.is_empty() {
            return;
        }
        self.over();
        self.typed |= matches!(speaker, Speaker::Task | Speaker::FollowUp);
        self.push(What::User(speaker, text, attachments));
    }

    /// A message that a person typed: the task if it is the first, else a later one.
    pub(super) fn typed(&mut self, text: String, attachments: Vec<Attachment>) {
        let speaker = if self.typed {
            Speaker::FollowUp
        } else {
            Speaker::Task
        };
        self.user(speaker, text, attachments);
    }

    /// A piece of the model's reasoning.
    pub(super) fn thought(&mut self, key: Option<&str>, reasoning: Reasoning) {
        let is_empty = match &reasoning {
            Reasoning::Text { text, .. } => text.is_empty(),
            Reasoning::Raw { raw, .. } => raw.is_empty(),
        };
        if !is_empty {
            self.response(key).reasoning.push(reasoning);
        }
    }

    /// A piece of the model's reasoning, as plain text.
    pub(super) fn mused(&mut self, key: Option<&str>, text: String) {
        let field = "reasoning_content".to_owned();
        self.thought(key, Reasoning::Text { field, text });
    }

    /// A piece of what the model says.
    pub(super) fn said(&mut self, key: Option<&str>, text: &str) {
        if text.is_empty() {
            return;
        }
        let draft = self.response(key);
        if !draft.text.is_empty() {
            draft.text.push_str("\n\n");
        }
        draft.text.push_str(text);
    }

    /// A call of a tool, its arguments as the exact text.
    pub(super) fn called(&mut self, key: Option<&str>, id: &str, name: &str, arguments: String) {
        let call = ToolCall {
            provider_id: (!id.is_empty()).then(|| id.to_owned()),
            name: name.to_owned(),
            arguments,
            extra: None,
        };
        let item = self.place(key);
        let calls = &mut self.drafts[item].calls;
        calls.push((call, None));
        let place = calls.len() - 1;
        self.waiting
            .entry(id.to_owned())
            .or_default()
            .push((item, place));
    }

    /// The result of a call. A second one for the same call does not count, and one of a call that
    /// is not in the recording is told as a message of the runtime.
    pub(super) fn answered(&mut self, id: &str, status: Status, content: String) {
        self.answered_with(id, status, content, Known::default());
    }

    /// The same, with what is known of it.
    pub(super) fn answered_with(
        &mut self,
        id: &str,
        status: Status,
        content: String,
        known: Known,
    ) {
        let at = self.at;
        let Some((item, place)) = self.waiting.get_mut(id).and_then(Vec::pop) else {
            if self.waiting.contains_key(id) {
                let chars = content.chars().count();
                self.note(format!(
                    "a second result of the call {id}, {chars} characters, was left out"
                ));
            } else {
                self.user(Speaker::Runtime, content, Vec::new());
            }
            return;
        };
        self.drafts[item].calls[place].1 = Some(Answer {
            at,
            status,
            content,
            known,
        });
        self.over();
    }

    /// A response that may say nothing, asked for something else than a round if that is told.
    pub(super) fn responded(&mut self, key: &str, purpose: Option<Purpose>) {
        self.response(Some(key)).purpose = purpose;
    }

    /// A reply that is no round, asked for this.
    pub(super) fn reply(&mut self, purpose: Purpose, response: Response) {
        self.push(What::Reply(Box::new((purpose, response))));
    }

    /// How the run reads was changed here.
    pub(super) fn changed(&mut self, change: Event) {
        self.over();
        self.push(What::Change(Box::new(change)));
    }

    /// What the provider counted of a response; without a key, of the newest. The last word counts.
    pub(super) fn usage(&mut self, key: Option<&str>, usage: Usage) {
        if let Some(draft) = self.known(key) {
            draft.usage = Some(usage);
        }
    }

    /// How a response ended, in our judgement and in the provider's word.
    pub(super) fn ending(&mut self, key: Option<&str>, ending: Ending, finish: Option<&str>) {
        if let Some(draft) = self.known(key) {
            draft.ending = Some(ending);
            draft.finish = finish.map(str::to_owned);
        }
    }

    /// The provider's id of a response.
    pub(super) fn provider_request(&mut self, key: Option<&str>, id: &str) {
        if let Some(draft) = self.known(key).filter(|_| !id.is_empty()) {
            draft.provider_request = Some(id.to_owned());
        }
    }

    /// The newest response is over: a piece without a key begins another.
    pub(super) fn over(&mut self) {
        self.open = false;
    }

    /// The place between what was told and what comes next.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.items.len())
    }

    /// The agent compacted its context here.
    pub(super) fn compacted(&mut self, compaction: Compaction) {
        self.over();
        self.push(What::Compacted(compaction));
    }

    /// Something that a person should know, and the model was not told.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.push(What::Note(text.into()));
    }

    /// A line or record could not be read.
    pub(super) fn skipped(&mut self) {
        self.skipped += 1;
    }

    /// Whether there is a message in it.
    pub(super) fn holds_a_run(&self) -> bool {
        let is_message = |item: &Item| matches!(item.what, What::User(..) | What::Response(_));
        self.items.iter().any(is_message)
    }

    /// Whether a model said anything in it.
    pub(super) fn has_responses(&self) -> bool {
        !self.drafts.is_empty()
    }

    /// All calls, oldest first.
    pub(super) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        let drafts = self.drafts.iter();
        drafts.flat_map(|draft| draft.calls.iter().map(|(call, _)| call))
    }

    fn push(&mut self, what: What) {
        let (at, entry) = (self.at, self.entry);
        self.items.push(Item { at, entry, what });
    }

    /// The place of the draft that a piece with this key belongs to; it may begin with it.
    fn place(&mut self, key: Option<&str>) -> usize {
        let known = match key {
            Some(key) => self.keys.get(key).copied(),
            None => self.drafts.len().checked_sub(1).filter(|_| self.open),
        };
        self.open = key.is_none();
        known.unwrap_or_else(|| {
            let place = self.drafts.len();
            self.drafts.push(Draft::default());
            self.push(What::Response(place));
            if let Some(key) = key {
                self.keys.insert(key.to_owned(), place);
            }
            place
        })
    }

    fn response(&mut self, key: Option<&str>) -> &mut Draft {
        let place = self.place(key);
        &mut self.drafts[place]
    }

    /// The draft with this key, or the newest one, if there is one.
    fn known(&mut self, key: Option<&str>) -> Option<&mut Draft> {
        match key {
            Some(key) => self.drafts.get_mut(*self.keys.get(key)?),
            None => self.drafts.last_mut(),
        }
    }
}
