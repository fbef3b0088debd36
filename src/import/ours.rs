//! What this program says beside the steps of a trajectory that it wrote: overlays as they were laid,
//! settings, and replies that are no steps.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::exchange::{Response, ToolMeta};
use crate::id::EntryId;
use crate::import::fields;
use crate::import::lines::{string, take_list};
use crate::import::pen::{Pen, Settings};
use crate::overlay::{Origin, Overlay};
use crate::setup::{Models, Prices};
use crate::transcript::{At, Attachment, Event, Pin, Purpose, Retract};
use crate::words;

/// The settings that requests depend on.
#[derive(Deserialize)]
struct Set {
    models: Models,
    #[serde(default)]
    tools: BTreeMap<String, ToolMeta>,
    #[serde(default)]
    prices: Option<Prices>,
}

/// A reply that is no step, and what it was asked for.
#[derive(Deserialize)]
struct Reply {
    entry: EntryId,
    at: At,
    purpose: Purpose,
    response: Response,
}

/// Tells what stands beside a step or a run; returns whether the settings do.
pub(super) fn aside(pen: &mut Pen, ours: &mut Value) -> bool {
    let set = Set::deserialize(fields::take(ours, "setup")).ok();
    let is_set = set.is_some();
    if let Some(set) = set {
        for (name, meta) in set.tools {
            pen.meta(&name, meta);
        }
        pen.settings(Settings {
            models: set.models,
            prices: set.prices,
        });
    }
    for reply in take_list(ours, "replies") {
        match Reply::deserialize(reply) {
            Ok(reply) => {
                pen.at(Some(reply.at));
                pen.entry(Some(reply.entry));
                pen.reply(reply.purpose, reply.response);
            }
            Err(_) => pen.skipped(),
        }
    }
    is_set
}

/// Whether a step of the system tells of a change of how the run reads.
pub(super) fn is_change(ours: &Value) -> bool {
    let mut fields = ["layer", "overlay", "retract", "pin", "unpin"].into_iter();
    fields.any(|field| !ours[field].is_null())
}

/// The change that a step of the system tells in words; `None` if it tells of none, or does not say all
/// that it was.
pub(super) fn change(message: &str, ours: &Value) -> Option<Event> {
    let entry = |field: &str| EntryId::deserialize(&ours[field]).ok();
    if let Some(entry) = entry("pin") {
        return Some(Event::Pin(Pin { entry }));
    }
    if let Some(entry) = entry("unpin") {
        return Some(Event::Unpin(Pin { entry }));
    }
    if let Ok(overlays) = Vec::deserialize(&ours["retract"]) {
        let origin = Origin::deserialize(&ours["origin"]).ok()?;
        return Some(Event::Retract(Retract { overlays, origin }));
    }
    let mut overlay = ours.clone();
    let layer = overlay.get_mut("layer")?.as_object_mut()?;
    if layer.get("kind")? == "summary" {
        layer.insert("text".to_owned(), message.into());
    }
    Overlay::deserialize(overlay).ok().map(Event::Overlay)
}

/// The text of a message and what was handed in with it, which stands behind the text.
pub(super) fn handed_in(mut message: String, ours: &Value) -> (String, Vec<Attachment>) {
    let named = ours["attachments"].as_array();
    let mut handed_in = Vec::new();
    for attachment in named.into_iter().flatten().rev() {
        let (name, media) = (string(&attachment["name"]), string(&attachment["media"]));
        let head = words::attachment(name, media, "");
        let Some(at) = message.rfind(&head) else {
            continue;
        };
        handed_in.push(Attachment {
            name: name.to_owned(),
            media: media.to_owned(),
            text: message[at + head.len()..].to_owned(),
            clipped: None,
        });
        message.truncate(at);
        message.truncate(message.strip_suffix("\n\n").map_or(at, str::len));
    }
    handed_in.reverse();
    (message, handed_in)
}
