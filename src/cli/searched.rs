//! Entries that say something, and where it still stands after they are summed up.

use regex::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use undertext::exchange::Reasoning;
use undertext::explain::{How, Life};
use undertext::id::EntryId;
use undertext::overlay::Layer;
use undertext::secret::Masks;
use undertext::transcript::Event;
use undertext::view::{As, View};

use crate::cli::brief;

/// What is shown around a match, in characters on either side.
const AROUND: usize = 40;

/// The longest match that is shown whole, in characters.
const WHOLE: usize = 60;

/// What is shown of a match that may not be shown.
const MASKED: &str = "[masked]";

/// A text that was looked for and found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Match {
    /// The text that matches.
    pub(crate) text: String,
    /// The line it stands in, as far as that is short.
    pub(crate) line: String,
    /// The summaries in which the entry reads or read, and whether each says the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) summaries: Vec<Said>,
}

/// Whether a summary says a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Said {
    /// The overlay.
    pub(crate) overlay: EntryId,
    /// Its text does.
    pub(crate) text: bool,
    /// What is shown again behind it does.
    pub(crate) carry: bool,
}

/// The entries of the conversation and the summaries with a text that matches, each with its first
/// match, oldest first.
pub(crate) fn entries(view: &View, regex: &Regex, masks: &Masks) -> Vec<(EntryId, Match)> {
    let entries = view.transcript().entries().iter();
    let found = entries.filter_map(|entry| {
        let is_reply = matches!(entry.event, Event::Response(_));
        if is_reply && view.rounds().of_response(entry.id).is_none() {
            return None;
        }
        let texts = texts(&entry.event);
        let text = texts.into_iter().find(|text| regex.is_match(text))?;
        // Masked whole: a part of a secret is harder to know.
        let shown = masks.text(text);
        let (text, line) = match regex.find(&shown) {
            Some(at) => (at.as_str(), line(masks, &shown, at.start(), at.end())),
            None => (MASKED, MASKED.to_owned()),
        };
        let (text, summaries) = (text.to_owned(), Vec::new());
        Some((
            entry.id,
            Match {
                text,
                line,
                summaries,
            },
        ))
    });
    found.collect()
}

/// Everything that an entry says to a model.
fn texts(event: &Event) -> Vec<&str> {
    match event {
        Event::User(user) => {
            let attachments = user.attachments.iter().map(|it| it.text.as_str());
            [user.text.as_str()]
                .into_iter()
                .chain(attachments)
                .collect()
        }
        Event::Response(reply) => {
            let reasoning = reply.reasoning.iter().filter_map(|block| match block {
                Reasoning::Text { text, .. } => Some(text.as_str()),
                Reasoning::Raw { .. } => None,
            });
            let calls = reply.calls.iter();
            let calls = calls.map(|call| call.arguments.as_str());
            let text = [reply.text.as_str()].into_iter();
            text.chain(reasoning).chain(calls).collect()
        }
        Event::Result(result) => vec![result.content.as_str()],
        Event::Overlay(overlay) => match &overlay.layer {
            Layer::Summary(summary) => vec![summary.text.as_str()],
            Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_) => Vec::new(),
        },
        Event::Run(_)
        | Event::Setup(_)
        | Event::Request(_)
        | Event::Started(_)
        | Event::Retract(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Fault(_)
        | Event::Note(_)
        | Event::End(_)
        | Event::Unknown(_) => Vec::new(),
    }
}

/// The match with what stands around it in its line.
fn line(masks: &Masks, text: &str, start: usize, end: usize) -> String {
    let (before, behind) = (text.get(..start), text.get(end..));
    let before = before
        .unwrap_or_default()
        .rsplit('\n')
        .next()
        .unwrap_or_default();
    let behind = behind
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default();
    let left: String = before.chars().rev().take(AROUND).collect();
    let cut = if left.len() < before.len() { "…" } else { "" };
    let left: String = left.chars().rev().collect();
    let matched = brief::cut(masks, text.get(start..end).unwrap_or_default(), WHOLE);
    format!(
        "{cut}{}{matched}{}",
        left.trim_start(),
        brief::cut(masks, behind, AROUND)
    )
}

/// The match, with what the summaries of an entry's life say of it.
pub(crate) fn followed(view: &View, matched: &Match, life: &Life) -> Match {
    let mut overlays: Vec<EntryId> = Vec::new();
    for stretch in &life.stretches {
        if let How::Reads(As::Summarised(overlay)) = stretch.reads
            && !overlays.contains(&overlay)
        {
            overlays.push(overlay);
        }
    }
    let summaries = overlays.into_iter().filter_map(|overlay| {
        let Layer::Summary(summary) = &view.overlay(overlay)?.layer else {
            return None;
        };
        let carried = |entry: &EntryId| {
            let event = view.transcript().get(*entry).map(|entry| &entry.event);
            let said = event.map(texts).unwrap_or_default();
            said.iter().any(|text| text.contains(&matched.text))
        };
        let calls = summary.carry.calls.iter();
        let mut results = calls.filter_map(|call| view.result_of(*call));
        let carry = summary.carry.state.contains(&matched.text)
            || summary.carry.survival.contains(&matched.text)
            || summary.carry.entries.iter().any(carried)
            || results.any(|(_, result)| result.content.contains(&matched.text));
        Some(Said {
            overlay,
            text: summary.text.contains(&matched.text),
            carry,
        })
    });
    Match {
        summaries: summaries.collect(),
        ..matched.clone()
    }
}
