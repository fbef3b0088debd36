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
mod pieces;
mod plausible;
mod shapes;
#[cfg(test)]
mod tests;
mod variable;

use std::borrow::Cow;

pub use known::Known;
pub use lines::Lines;
pub use masked::masked;
pub use pieces::Pieces;

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

    /// The same masks, and these values.
    #[must_use]
    pub fn and_known(&self, known: &Known) -> Self {
        Self {
            known: self.known.and(known),
            shapes: self.shapes,
        }
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

    /// JSON in which every string may be shown. What holds nothing to hide stays byte for byte; a line
    /// of a transcript is one afterwards, with a checksum of its own.
    pub fn json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        if !self.may_hide(json) {
            return Cow::Borrowed(json);
        }
        match json::rewritten(json, json::Opaque::Too, |text| self.text(text)) {
            Some(new) => Cow::Owned(sealed(json, &new).unwrap_or(new)),
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
        let Ok(json) = serde_json::to_string(entry) else {
            return Cow::Borrowed(entry);
        };
        match self.json(&json) {
            Cow::Borrowed(_) => Cow::Borrowed(entry),
            Cow::Owned(json) => match serde_json::from_str(&json) {
                Ok(shown) => Cow::Owned(shown),
                Err(_) => Cow::Borrowed(entry),
            },
        }
    }

    fn may_hide(&self, text: &str) -> bool {
        self.known.is_in(text) || self.shapes == Shapes::Masked && masked::may_hold(text)
    }
}

/// What became of a line of a transcript, as a line of a transcript.
fn sealed(line: &str, new: &str) -> Option<String> {
    if !line.contains("\"crc\":\"") || jsonl::decode(line.as_bytes()).is_err() {
        return None;
    }
    let entry = serde_json::from_str(new).ok()?;
    let line = jsonl::encode(&entry).ok()?;
    String::from_utf8(line)
        .ok()
        .map(|line| line.trim_end().to_owned())
}

impl Known {
    /// The event as it may be recorded: without any of the values, but for blocks that are opaque.
    /// `None` if it cannot be had.
    pub fn event(&self, event: Event) -> Option<Event> {
        if self.is_empty() || matches!(event, Event::Unknown(_)) {
            return Some(event);
        }
        let json = serde_json::to_string(&event).ok()?;
        if !self.is_in(&json) {
            return Some(event);
        }
        let Some(json) = json::rewritten(&json, json::Opaque::Stays, |text| self.replace(text))
        else {
            return Some(event);
        };
        // Events are read as parts of entries.
        let (_, fields) = json.split_at_checked(1)?;
        let entry = format!("{{\"id\":1,\"at\":\"1970-01-01T00:00:00.000Z\",{fields}");
        let entry: Entry = serde_json::from_str(&entry).ok()?;
        (!matches!(entry.event, Event::Unknown(_))).then_some(entry.event)
    }
}
