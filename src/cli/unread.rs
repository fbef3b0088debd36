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
    let mut found = None;
    let entries = view.transcript().entries().passing();
    entries.for_each(|entry| take(&mut found, &entry));
    found
}

/// Takes the next entry of a run into account.
pub(crate) fn take(found: &mut Option<Unread>, entry: &Entry) {
    let kind = match &entry.event {
        Event::Unknown(unknown) => &unknown.kind,
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
        | Event::End(_) => return,
    };
    let first = || Unread {
        entries: 0,
        first: entry.id,
        kind: kind.clone(),
    };
    found.get_or_insert_with(first).entries += 1;
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
