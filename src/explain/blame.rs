//! For each message of a request, the entry it comes from and the overlays that changed it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::explain::Moment;
use crate::id::EntryId;
use crate::view::{Anatomy, Change, Source, View};

/// A message of a request, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Blamed {
    /// Its place in the request, from 1.
    pub message: u64,
    /// What it comes from.
    pub source: Source,
    /// The entry that holds what is read; absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// Its first byte in the body, from 0, and the one behind its last.
    pub bytes: [u64; 2],
    /// The parts of it that do not read in full, and the overlays by which they do not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Change>,
}

/// The messages of a request, in order; `None` if the entries before it do not make one.
pub fn blame(moment: &Moment) -> Option<Vec<Blamed>> {
    Some(blamed(&moment.view, &moment.anatomy()?))
}

/// The messages of a request that was taken apart.
pub(super) fn blamed(view: &View, anatomy: &Anatomy<'_>) -> Vec<Blamed> {
    let messages = (1..).zip(&anatomy.messages);
    let blamed = messages.map(|(message, placed)| Blamed {
        message,
        source: placed.reading.source,
        entry: entry(view, placed.reading.source),
        bytes: [placed.at.start as u64, placed.at.end as u64],
        changed: placed.reading.changed.clone(),
    });
    blamed.collect()
}

/// The entry that holds what a message says.
fn entry(view: &View, source: Source) -> Option<EntryId> {
    match source {
        Source::Entry(entry) => Some(view.corrected(entry)),
        Source::Result(call) => view.result_of(call).map(|(entry, _)| entry),
        Source::Summary(overlay) | Source::Carry(overlay) => Some(overlay),
        Source::Understood | Source::Asked => None,
    }
}
