//! Whether a reply will do as the text of a summary.
//!
//! It counts only if it was complete, not refused, not empty, not cut, and without calls. Otherwise
//! nothing changes, and a note says why.

use crate::exchange::{Ending, Response};
use crate::id::EntryId;
use crate::overlay::Origin;
use crate::transcript::Event;
use crate::view::{Text, View};
use crate::words;

/// The longest text that is taken for a refusal, in characters; a summary may begin with one it tells of.
const REFUSAL_CHARS: usize = 300;

/// What refusals begin with.
const REFUSALS: &[&str] = &[
    "i'm sorry",
    "i am sorry",
    "sorry, ",
    "i can't ",
    "i cannot ",
    "i'm unable to ",
    "i am unable to ",
    "i'm not able to ",
    "i won't ",
];

/// What became of the text that was asked for last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Newest {
    /// It is not there yet.
    Waits,
    /// It will not do, and nothing says so yet.
    Failed {
        /// The request.
        request: EntryId,
        /// Why.
        why: String,
    },
    /// It will do, or a note says that it will not; or nothing was asked for.
    Settled,
}

/// What became of the text that was asked for last, by a person or not.
pub(super) fn newest(view: &View, by_hand: bool) -> Newest {
    let text = view.sought().texts().last();
    // A person's request that was given up is no business of the loop's, nor the other way round.
    let ours = |text: &&Text| (text.purpose.origin() == Origin::User) == by_hand;
    let Some(text) = text.filter(|text| !text.failed).filter(ours) else {
        return Newest::Settled;
    };
    let request = text.request;
    let why = match text.response.and_then(|entry| view.response(entry)) {
        Some(reply) => unsound(view, reply),
        None => match fault(view, request) {
            Some(why) => Some(why),
            None if is_under_way(view, text) => return Newest::Waits,
            // It cannot be sent again: the settings are others now.
            None => return Newest::Settled,
        },
    };
    why.map_or(Newest::Settled, |why| Newest::Failed { request, why })
}

/// Whether a text is there and will do.
pub(super) fn is_sound(view: &View, text: &Text) -> bool {
    let reply = text.response.and_then(|entry| view.response(entry));
    !text.failed && reply.is_some_and(|reply| unsound(view, reply).is_none())
}

/// Whether a request without a reply may still get one: the view gives the body that was sent.
fn is_under_way(view: &View, text: &Text) -> bool {
    let entry = view.transcript().get(text.request);
    let Some(Event::Request(request)) = entry.map(|entry| &entry.event) else {
        return false;
    };
    view.body_digest(&request.purpose) == Some(request.body)
}

/// Why a reply will not do; `None` if it will.
pub(super) fn unsound(view: &View, reply: &Response) -> Option<String> {
    let text = reply.text.trim();
    let why = match reply.ending {
        Ending::Cut => Some("cut"),
        Ending::Filtered => Some("filtered"),
        Ending::Refused => Some("refused"),
        Ending::Complete if !reply.calls.is_empty() => Some("it calls tools"),
        Ending::Complete if text.is_empty() => Some("empty"),
        Ending::Complete if text.contains(words::STOP_WORKING) => Some("it repeats the request"),
        Ending::Complete if is_refusal(text) => Some("refused"),
        Ending::Complete => None,
    };
    if let Some(why) = why {
        return Some(why.to_owned());
    }
    // It is asked for less, and models count words badly.
    let (length, most) = (view.text_tokens(text), view.sizes()?.summary * 2);
    (length > most).then(|| format!("too long: {length} of {most} tokens"))
}

/// Whether a text only says that its writer will not write one. Providers report few refusals as such.
fn is_refusal(text: &str) -> bool {
    let first = text.replace('’', "'").to_lowercase();
    let short = text.chars().count() <= REFUSAL_CHARS;
    short && REFUSALS.iter().any(|words| first.starts_with(words))
}

/// What ended a request without a reply; `None` as long as it may be asked again.
fn fault(view: &View, request: EntryId) -> Option<String> {
    let asked = view.ledger().asked.as_ref();
    let asked = asked.filter(|asked| asked.request == request)?;
    let (class, again) = asked.fault?;
    let entry = asked
        .fault_entry
        .and_then(|entry| view.transcript().get(entry));
    let message = match entry.map(|entry| &entry.event) {
        Some(Event::Fault(fault)) => fault.message.as_str(),
        Some(_) | None => "",
    };
    again
        .is_none()
        .then(|| format!("{}: {message}", class.word()))
}
