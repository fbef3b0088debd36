//! Secrets: what nothing keeps, and what nothing shows.
//!
//! Two kinds are told apart. [`Known`] values are exact: the key of the model's server, and what the
//! variables hold that are secret by name. They are replaced before anything is recorded, so that no
//! model, transcript or log ever has them. What only *looks* like a secret, by one of some ninety
//! shapes, stays for the model and in the transcript, which is its owner's alone; [`masked`] hides it
//! wherever text is shown or handed out. [`Masks`] are both, for a place where text leaves: whole
//! texts, [`Lines`] that come one by one, and [`Pieces`] that are cut anywhere.
//!
//! Nothing here decides what is secret by how random it looks: a digest, an id or an encoded picture
//! stays readable, and a secret without a known shape or a telling name beside it is not found.

mod encoded;
mod json;
mod known;
mod lines;
mod masked;
mod meant;
mod pieces;
mod plausible;
mod quoted;
mod shapes;
#[cfg(test)]
mod tests;
mod texts;
mod unbroken;
mod variable;

use std::borrow::Cow;

pub(crate) use known::IN_ITS_PLACE;
pub use known::Known;
pub use lines::Lines;
pub use masked::masked;
pub use pieces::Pieces;

use crate::secret::json::Names;
use crate::secret::texts::Fate;
use crate::transcript::{Entry, Event, jsonl};

/// What is hidden in text that leaves. Unless told otherwise, all that looks like a secret.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    known: Known,
    shapes: Shapes,
}

/// Whether what looks like a secret is masked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shapes {
    #[default]
    Masked,
    Shown,
}

impl Masks {
    /// Masks of these values, and of all that looks like a secret.
    pub fn new(known: Known) -> Self {
        Self {
            known,
            shapes: Shapes::Masked,
        }
    }

    /// Masks of these values alone.
    pub fn of_known(known: Known) -> Self {
        Self {
            known,
            shapes: Shapes::Shown,
        }
    }

    /// No masks: everything is shown as it is.
    pub fn none() -> Self {
        Self::of_known(Known::default())
    }

    /// Whether nothing is hidden.
    pub fn is_none(&self) -> bool {
        self.known.is_empty() && self.shapes == Shapes::Shown
    }

    /// The exact values.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// The same masks, but for values that this text holds, which is to stay readable.
    #[must_use]
    pub fn but_for(&self, text: &str) -> Self {
        Self {
            known: self.known.but_for(text),
            shapes: self.shapes,
        }
    }

    /// The same masks, and these values.
    #[must_use]
    pub fn and_known(&self, known: &Known) -> Self {
        Self {
            known: self.known.and(known),
            shapes: self.shapes,
        }
    }

    /// Makes what a text like this is looked through with: else the first of its kind waits for that.
    pub fn prepare(&self, text: &str) {
        drop(self.text(text));
    }

    /// The text as it may be shown.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let known = self.known.replace(text);
        match (self.shapes, known) {
            (Shapes::Shown, known) => known,
            (Shapes::Masked, Cow::Borrowed(text)) => masked(text),
            (Shapes::Masked, Cow::Owned(text)) => Cow::Owned(masked(&text).into_owned()),
        }
    }

    /// JSON in which every string may be shown. What holds nothing to hide stays byte for byte; an
    /// entry stays one, and a line of a transcript has a checksum of its own afterwards.
    pub fn json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        if !self.may_hide(json) {
            return Cow::Borrowed(json);
        }
        if let Some((entry, form)) = entry(json) {
            return match self.entry(&entry) {
                Cow::Borrowed(_) => Cow::Borrowed(json),
                Cow::Owned(shown) => Cow::Owned(written(&shown, form)),
            };
        }
        match json::rewritten(json, Names::Too, |text| self.text(text)) {
            Some(new) => Cow::Owned(new),
            None => Cow::Borrowed(json),
        }
    }

    /// Text, or JSON if it is an object or a list.
    pub fn document<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let start = text.trim_start();
        if start.starts_with(['{', '['])
            && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
        {
            self.json(text)
        } else {
            self.text(text)
        }
    }

    /// The entry as it may be shown: all its texts, whole.
    pub fn entry<'a>(&self, entry: &'a Entry) -> Cow<'a, Entry> {
        let mut shown = Cow::Borrowed(entry);
        if !self.known.is_empty() {
            let mut event = entry.event.clone();
            if texts::clean(&mut event, &self.known, Fate::Shown) {
                shown.to_mut().event = event;
            }
        }
        if self.shapes == Shapes::Masked
            && let Ok(json) = serde_json::to_string(&*shown)
            && masked::may_hold(&json)
            && let Some(new) = json::rewritten(&json, Names::Too, masked)
            && let Ok(new) = serde_json::from_str(&new)
        {
            shown = Cow::Owned(new);
        }
        shown
    }

    fn may_hide(&self, text: &str) -> bool {
        self.known.is_in(text) || self.shapes == Shapes::Masked && masked::may_hold(text)
    }
}

/// How an entry is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As a line of a transcript, which ends in its checksum.
    Line,
    /// As an object.
    Object,
}

/// The entry that this JSON is, if it is nothing else.
fn entry(json: &str) -> Option<(Entry, Form)> {
    if json.contains("\"crc\":\"")
        && let Ok(entry) = jsonl::decode(json.as_bytes())
    {
        return Some((entry, Form::Line));
    }
    let entry: Entry = serde_json::from_str(json).ok()?;
    let is_all = serde_json::to_string(&entry).is_ok_and(|same| same == json);
    (is_all && !matches!(entry.event, Event::Unknown(_))).then_some((entry, Form::Object))
}

fn written(entry: &Entry, form: Form) -> String {
    let line = match form {
        Form::Object => None,
        Form::Line => jsonl::encode(entry).ok(),
    };
    match line.and_then(|line| String::from_utf8(line).ok()) {
        Some(line) => line.trim_end().to_owned(),
        None => serde_json::to_string(entry).unwrap_or_default(),
    }
}

impl Known {
    /// The event as it may be recorded: without any of the values, but for blocks that are opaque.
    #[must_use]
    pub fn event(&self, mut event: Event) -> Event {
        if !self.is_empty() {
            texts::clean(&mut event, self, Fate::Recorded);
        }
        event
    }
}
