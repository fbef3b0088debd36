//! Entries of a transcript that this version does not understand: kept, and named.

use schemars::JsonSchema;
use serde::Serialize;
use undertext::id::EntryId;
use undertext::transcript::{Entry, Event};
use undertext::view::View;

use crate::cli::amount;

/// The entries that are not understood.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Unread {
    /// How many.
    entries: u64,
    /// The first of them.
    first: EntryId,
    /// The type that it names.
    kind: String,
}

/// The entries of a run that are not understood; `None` if there is none.
pub(crate) fn unread(view: &View) -> Option<Unread> {
    let entries = view.transcript().entries().iter();
    let kind = |entry: &Entry| match &entry.event {
        Event::Unknown(unknown) => Some((entry.id, unknown.kind.clone())),
        Event::Run(_)
        | Event::Setup(_)
        | Event::User(_)
        | Event::Request(_)
        | Event::Response(_)
        | Event::Started(_)
        | Event::Result(_)
        | Event::Overlay(_)
        | Event::Retract(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Fault(_)
        | Event::Note(_)
        | Event::End(_) => None,
    };
    let mut found = entries.filter_map(|entry| kind(entry));
    let (first, kind) = found.next()?;
    Some(Unread {
        entries: 1 + found.count() as u64,
        first,
        kind,
    })
}

impl Unread {
    /// `2 entries that this version does not understand, the first e40 (sketch)`
    pub(crate) fn text(&self) -> String {
        let Self {
            entries,
            first,
            kind,
        } = self;
        let place = match entries {
            1 => "",
            _ => "the first ",
        };
        format!(
            "{} that this version does not understand, {place}e{first} ({kind})",
            amount::entries(*entries)
        )
    }
}
