//! Overlays are taken back: which, and what reads again then.

use std::collections::BTreeSet;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;

use crate::address::Address;
use crate::compaction::edits::{Nowhere, calls, event, kind, size, tried};
use crate::id::{CallId, EntryId};
use crate::overlay::layers::Reads;
use crate::overlay::{Layer, Origin, Size};
use crate::transcript::{Event, Retract};
use crate::view::View;

/// Which overlays are taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// `e210`: this one.
    Overlay(EntryId),
    /// `last`: the newest pass of which something stands.
    Last,
    /// `all`: every one that stands.
    All,
}

/// A text names no overlay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no overlay; use e210, last or all")]
pub struct ParseWhichError(String);

impl FromStr for Which {
    type Err = ParseWhichError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "last" => return Ok(Self::Last),
            "all" => return Ok(Self::All),
            _ => {}
        }
        // The model reads of an overlay by its number alone, and nothing else can be meant here.
        let address = text.parse();
        if let Ok(Address::Entry(entry)) = address {
            return Ok(Self::Overlay(entry));
        }
        // The model reads of an overlay by its number alone, and nothing else can be meant here.
        if let Ok(Address::Turn(number)) = address
            && !text.starts_with('t')
        {
            return Ok(Self::Overlay(EntryId(u64::from(number))));
        }
        Err(ParseWhichError(text.chars().take(40).collect()))
    }
}

/// Overlays cannot be taken back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetractError {
    /// Nothing stands.
    #[error("there is nothing to take back: {}", none(*laid))]
    Nothing {
        /// How many were laid and taken back already.
        laid: usize,
    },
    /// There is no such entry.
    #[error(transparent)]
    Nowhere(#[from] Nowhere),
    /// The entry is something else.
    #[error("e{entry} is {what}, no overlay; {}", standing(nearest))]
    Another {
        /// What was named.
        entry: EntryId,
        /// What it is.
        what: &'static str,
        /// The standing overlays next to it.
        nearest: Vec<EntryId>,
    },
    /// It was taken back before.
    #[error("e{overlay} was taken back already, by e{by}")]
    Already {
        /// The overlay.
        overlay: EntryId,
        /// The retract.
        by: EntryId,
    },
}

fn none(laid: usize) -> String {
    match laid {
        0 => "no overlay was ever laid".to_owned(),
        1 => "its only overlay is taken back already".to_owned(),
        laid => format!("all {laid} overlays are taken back already"),
    }
}

fn standing(nearest: &[EntryId]) -> String {
    let names: Vec<String> = nearest.iter().map(|entry| format!("e{entry}")).collect();
    match names.len() {
        0 => "none stands".to_owned(),
        1 => format!("the nearest is {}", names.concat()),
        _ => format!("the nearest are {}", names.join(" and ")),
    }
}

/// Overlays that are taken back, and what comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retraction {
    /// The overlays, oldest first.
    pub overlays: Vec<EntryId>,
    /// What it does to the next request.
    pub size: Size,
    /// What reads otherwise then.
    pub uncovers: Uncovered,
}

impl Retraction {
    /// The event to record.
    pub fn event(&self) -> Event {
        event_of(&self.overlays)
    }
}

fn event_of(overlays: &[EntryId]) -> Event {
    Event::Retract(Retract {
        overlays: overlays.to_vec(),
        origin: Origin::User,
    })
}

/// What reads otherwise once overlays are taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Uncovered {
    /// User entries that read again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<EntryId>,
    /// Rounds that read again, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<u32>,
    /// Older summaries that stand in the place of those taken back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<EntryId>,
    /// Calls whose results read in full again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<CallId>,
    /// Calls whose arguments read again, where their result says nothing of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<CallId>,
    /// Responses whose reasoning reads again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<EntryId>,
    /// Attachments that read again, by user entry and place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<(EntryId, u32)>,
    /// Calls that read otherwise, and yet not in full: other overlays cover them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub still: Vec<CallId>,
    /// Those overlays.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub still_by: BTreeSet<EntryId>,
    /// Calls that were shown and are put away again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub put_away: Vec<CallId>,
}

impl Uncovered {
    /// Whether nothing reads otherwise.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The overlays to take back, and what comes of it.
pub fn retract(view: &View, which: Which) -> Result<Retraction, RetractError> {
    let overlays = overlays(view, which)?;
    let after = tried(view, event_of(&overlays));
    Ok(Retraction {
        size: size(view, &after),
        uncovers: uncovered(view, &after, &overlays),
        overlays,
    })
}

/// The overlays to take back one after the other, as one change, and what comes of it: the last pass
/// twice is the last two.
pub fn retract_each(view: &View, each: &[Which]) -> Result<Retraction, RetractError> {
    let mut all = BTreeSet::new();
    let mut left = view.clone();
    for which in each {
        if matches!(which, Which::Overlay(overlay) if all.contains(overlay)) {
            continue;
        }
        let found = overlays(&left, *which)?;
        left = tried(&left, event_of(&found));
        all.extend(found);
    }
    let overlays: Vec<EntryId> = all.into_iter().collect();
    let after = tried(view, event_of(&overlays));
    Ok(Retraction {
        size: size(view, &after),
        uncovers: uncovered(view, &after, &overlays),
        overlays,
    })
}

/// The overlays that are meant, oldest first: at least one, and all of them stand.
fn overlays(view: &View, which: Which) -> Result<Vec<EntryId>, RetractError> {
    let standing = view.overlays();
    if let Which::Overlay(entry) = which {
        return one(view, entry, &standing).map(|overlay| vec![overlay]);
    }
    let pass_of = |overlay: EntryId| view.overlay(overlay).map(|laid| laid.pass);
    let Some(newest) = standing.last() else {
        let entries = view.transcript().entries().iter();
        let laid = entries.filter(|entry| matches!(entry.event, Event::Overlay(_)));
        return Err(RetractError::Nothing { laid: laid.count() });
    };
    let pass = pass_of(*newest);
    Ok(match which {
        Which::All | Which::Overlay(_) => standing,
        Which::Last => standing
            .into_iter()
            .filter(|overlay| pass_of(*overlay) == pass)
            .collect(),
    })
}

/// The one overlay that is meant, if it stands.
fn one(view: &View, entry: EntryId, standing: &[EntryId]) -> Result<EntryId, RetractError> {
    let found = event(view, entry)?;
    if !matches!(found, Event::Overlay(_)) {
        let place = standing.partition_point(|overlay| *overlay < entry);
        let before = place.checked_sub(1).and_then(|before| standing.get(before));
        return Err(RetractError::Another {
            entry,
            what: kind(found),
            nearest: before
                .into_iter()
                .chain(standing.get(place))
                .copied()
                .collect(),
        });
    }
    if standing.contains(&entry) {
        return Ok(entry);
    }
    let mut later = view.transcript().from(entry).iter();
    let by = later.find(|later| {
        matches!(&later.event, Event::Retract(retract) if retract.overlays.contains(&entry))
    });
    Err(RetractError::Already {
        overlay: entry,
        by: by.map(|by| by.id).unwrap_or_default(),
    })
}

/// What reads otherwise after these overlays were taken back.
fn uncovered(before: &View, after: &View, overlays: &[EntryId]) -> Uncovered {
    let mut all = Uncovered::default();
    let reads_again =
        |entry| before.covered_by(entry).is_some() && after.covered_by(entry).is_none();
    for entry in before.transcript().entries() {
        let id = entry.id;
        if let Event::User(_) = &entry.event {
            all.messages.extend(reads_again(id).then_some(id));
        }
        let Event::Response(response) = &entry.event else {
            continue;
        };
        let Some(round) = before.rounds().of_response(id) else {
            continue;
        };
        if reads_again(id) {
            all.rounds.push(round.number);
        } else if !response.reasoning.is_empty()
            && !before.reads_reasoning(id)
            && after.reads_reasoning(id)
        {
            all.reasoning.push(id);
        }
        for call in calls(before, id) {
            call_uncovered(&mut all, before, after, call);
        }
    }
    all.attachments = attachments(before, after, overlays);
    let stood: Vec<EntryId> = before.summaries().iter().map(|it| it.overlay).collect();
    let stand = after.summaries().into_iter().map(|it| it.overlay);
    all.summaries = stand.filter(|it| !stood.contains(it)).collect();
    all
}

fn call_uncovered(all: &mut Uncovered, before: &View, after: &View, call: CallId) {
    let (was, is) = (before.reads(call), after.reads(call));
    match is {
        Some(Reads::Full) if was != is => all.results.push(call),
        Some(Reads::Stubbed(_) | Reads::Hidden(_)) if was == Some(Reads::Full) => {
            all.put_away.push(call);
        }
        Some(Reads::Stubbed(stub)) if was != is => {
            all.still.push(call);
            all.still_by.insert(stub.overlay);
        }
        Some(Reads::Hidden(overlay)) if was != is => {
            all.still.push(call);
            all.still_by.insert(overlay);
        }
        Some(Reads::Full | Reads::Stubbed(_) | Reads::Hidden(_)) | None => {}
    }
    let (was_made, is_made) = (before.reads_arguments(call), after.reads_arguments(call));
    match (was_made, is_made) {
        (Some(Reads::Stubbed(_)), Some(Reads::Full)) => all.arguments.push(call),
        // A call without a result was left out, and only its arguments tell.
        (Some(Reads::Hidden(_)), Some(_)) if is.is_none() && was_made != is_made => {
            all.arguments.push(call);
        }
        (Some(Reads::Full), Some(Reads::Stubbed(_) | Reads::Hidden(_)))
            if all.put_away.last() != Some(&call) =>
        {
            all.put_away.push(call);
        }
        (Some(Reads::Full | Reads::Stubbed(_) | Reads::Hidden(_)) | None, _) => {}
    }
}

/// The attachments that these overlays alone hid, of messages that read.
fn attachments(before: &View, after: &View, overlays: &[EntryId]) -> Vec<(EntryId, u32)> {
    let hidden = |view: &View, overlays: &[EntryId]| -> BTreeSet<(EntryId, u32)> {
        let layers = overlays.iter().filter_map(|overlay| view.overlay(*overlay));
        layers
            .filter_map(|laid| match &laid.layer {
                Layer::Hide(hide) => Some(hide.attachments.iter().copied()),
                Layer::Stub(_) | Layer::Summary(_) | Layer::Show(_) => None,
            })
            .flatten()
            .collect()
    };
    let was = hidden(before, overlays);
    let is = hidden(after, &after.overlays());
    let exists = |(entry, place): &(EntryId, u32)| {
        let at = usize::try_from(*place).unwrap_or(0).checked_sub(1);
        let user = after.user(*entry);
        user.zip(at)
            .is_some_and(|(user, at)| at < user.attachments.len())
    };
    was.difference(&is)
        .copied()
        .filter(|at| exists(at) && after.covered_by(at.0).is_none())
        .collect()
}
