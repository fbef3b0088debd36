//! Handles, in whatever form a model writes them, and what they name.

use std::fmt::Write as _;

use crate::id::{CallId, EntryId, Span};
use crate::overlay::{Hide, Layer, Overlay};
use crate::tools::recall::passage::{self, Passage};
use crate::tools::{Call, clip};
use crate::transcript::{Entry, Event};

/// How many handles are named where one does not exist.
const NEAREST: usize = 3;

/// The longest arguments in a list of calls, in characters.
const ARGUMENTS: usize = 120;

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handle {
    /// A call: its arguments and its result.
    Call(CallId),
    /// An entry; an overlay's is what the overlay covers.
    Entry(EntryId),
    /// A round, by its number.
    Round(u32),
    /// All entries of a span.
    Span(Span),
}

impl Handle {
    /// The handle in a text: `41.2`, `e57`, `57`, `overlay 410`, `r12`, `e12–e371`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_dress = |c: char| c.is_whitespace() || "[](){}<>`'\"#,:;".contains(c);
        let text = text.trim_matches(is_dress).to_lowercase();
        let mut text = text.trim_end_matches('.');
        for word in ["recall", "handle", "call", "result", "summary"] {
            text = text.strip_prefix(word).unwrap_or(text).trim_start();
        }
        for (words, round) in [
            (["rounds", "round", "r"], true),
            (["entries", "overlay", "o"], false),
        ] {
            let number = words.iter().find_map(|word| text.strip_prefix(word));
            match number.map(str::trim_start) {
                Some(number) if round => {
                    let number = number.parse().ok().filter(|number| *number > 0);
                    return number.map(Self::Round);
                }
                Some(number) => text = number,
                None => {}
            }
        }
        if let Ok(call) = text.parse() {
            return Some(Self::Call(call));
        }
        let ends = ["–", "..", "-", " to "]
            .iter()
            .find_map(|mark| text.split_once(mark));
        if let Some((from, to)) = ends {
            return Some(Self::Span(Span::new(entry(from)?, entry(to)?)));
        }
        entry(text).map(Self::Entry)
    }

    /// The texts that it names; what is wrong with it, if it names none.
    pub(super) fn passages(self, call: &Call<'_>) -> Result<Vec<Passage>, String> {
        let view = call.view;
        let texts = |span: Span| {
            let entries = view.transcript().span(span).iter();
            let texts = entries.filter(|entry| passage::is_said(call, entry));
            texts
                .filter_map(|entry| Passage::of(call, entry))
                .collect::<Vec<_>>()
        };
        let passages = match self {
            Self::Call(id) => Passage::of_call(call, id).into_iter().collect(),
            Self::Span(span) => texts(span),
            Self::Round(number) => {
                let round = view.rounds().number(number);
                let span =
                    round.and_then(|round| Some(Span::new(round.begins(), round.span()?.to)));
                span.map(texts).unwrap_or_default()
            }
            Self::Entry(id) => match view.overlay(id) {
                Some(Overlay {
                    layer: Layer::Summary(summary),
                    ..
                }) => texts(summary.span),
                Some(overlay) => vec![covers(call, id, overlay)],
                None => {
                    let entry = view.transcript().get(id);
                    let text = entry.and_then(|entry| Passage::in_full(call, entry));
                    text.into_iter().collect()
                }
            },
        };
        if passages.is_empty() {
            return Err(self.missing(call));
        }
        Ok(passages)
    }

    /// Why it names nothing, and what there is instead.
    fn missing(self, call: &Call<'_>) -> String {
        let view = call.view;
        let transcript = view.transcript();
        let last = transcript.last().map_or(0, |last| last.id.0);
        let near = |id: EntryId| {
            let before = transcript
                .entries()
                .iter()
                .rev()
                .filter(|entry| entry.id < id);
            let behind = transcript.from(id).iter().filter(|entry| entry.id > id);
            let named = |entry: &std::sync::Arc<Entry>| {
                let has = passage::is_said(call, entry) && entry.id < call.id.response;
                has.then(|| Passage::of(call, entry))
                    .flatten()
                    .map(|passage| passage.place)
            };
            let mut near: Vec<String> = before.filter_map(named).take(NEAREST).collect();
            near.reverse();
            near.extend(behind.filter_map(named).take(NEAREST));
            match near.as_slice() {
                [] => String::new(),
                near => format!(" Near it are {}.", near.join(", ")),
            }
        };
        match self {
            Self::Call(id) => match view.response(id.response).map(|reply| reply.calls.len()) {
                Some(0) | None => format!("There is no call {id}.{}", near(id.response)),
                Some(1) => format!(
                    "There is no call {id}: entry {} made one, {0}.1.",
                    id.response
                ),
                Some(calls) => format!(
                    "There is no call {id}: entry {} made {0}.1 to {0}.{calls}.",
                    id.response
                ),
            },
            Self::Entry(id) => match transcript.get(id) {
                Some(entry) => {
                    let kind = kind(entry);
                    format!("Entry {id} is {kind} and holds no text.{}", near(id))
                }
                None => format!(
                    "There is no entry {id}: the run has 1 to {last}.{}",
                    near(id)
                ),
            },
            Self::Round(number) => {
                let rounds = view.rounds().all().len();
                format!("There is no round {number} with a reply: the run has 1 to {rounds}.")
            }
            Self::Span(span) => {
                let Span { from, to } = span;
                format!("Entries {from} to {to} hold no text: the run has 1 to {last}.")
            }
        }
    }
}

fn entry(text: &str) -> Option<EntryId> {
    let text = text.trim();
    let text = text.strip_prefix("entry").map_or(text, str::trim_start);
    let digits = text.strip_prefix('e').unwrap_or(text);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits
        .parse()
        .ok()
        .filter(|number| is_number && *number > 0)?;
    Some(EntryId(number))
}

/// What an overlay that is no summary covers: its calls, a line each.
fn covers(call: &Call<'_>, id: EntryId, overlay: &Overlay) -> Passage {
    let view = call.view;
    let of_rounds = |hide: &Hide| {
        let spans = hide
            .rounds
            .iter()
            .flat_map(|span| view.rounds().within(*span).iter());
        let responses = spans.filter_map(|round| round.response);
        let calls = responses.flat_map(|response| {
            let calls = view.response(response).map_or(0, |reply| reply.calls.len());
            (0..calls).map(move |index| CallId::at(response, index))
        });
        calls.collect::<Vec<_>>()
    };
    let (kind, mut calls, attachments) = match &overlay.layer {
        Layer::Stub(stub) => (
            "stubs",
            [&*stub.results, &*stub.arguments].concat(),
            &[][..],
        ),
        Layer::Hide(hide) => {
            let calls = [hide.calls.clone(), of_rounds(hide)].concat();
            ("leaves out", calls, hide.attachments.as_slice())
        }
        Layer::Show(show) => ("shows again", show.calls.clone(), &[][..]),
        Layer::Summary(_) => ("summarizes", Vec::new(), &[][..]),
    };
    calls.sort_unstable();
    calls.dedup();
    let mut text = format!("[overlay {id}, {}: {kind} these]", overlay.rule);
    for id in calls {
        if let Some(made) = view.tool_call(id) {
            let arguments = made.arguments.replace('\n', " ");
            let shown = clip::first(&arguments, ARGUMENTS);
            let more = if shown.len() < arguments.len() {
                "…"
            } else {
                ""
            };
            write!(text, "\n{id} {} {shown}{more}", made.name).ok();
        }
    }
    for (entry, place) in attachments {
        write!(text, "\ne{entry}, attachment {place}").ok();
    }
    Passage::list(id, text)
}

/// What an entry without a text is, for the model.
fn kind(entry: &Entry) -> &'static str {
    match &entry.event {
        Event::Run(_) => "the beginning of the run",
        Event::Setup(_) => "a change of settings",
        Event::Request(_) => "a request",
        Event::Started(_) => "the start of a call",
        Event::Retract(_) => "a retraction",
        Event::Pin(_) | Event::Unpin(_) => "a pin",
        Event::Fault(_) => "a failed request",
        Event::Note(_) => "a note",
        Event::End(_) => "an end of the run",
        Event::User(_)
        | Event::Response(_)
        | Event::Result(_)
        | Event::Overlay(_)
        | Event::Unknown(_) => "of another kind",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_understood_however_it_is_written() {
        let call = Some(Handle::Call(CallId::new(EntryId(41), 2)));
        let entry = |id| Some(Handle::Entry(EntryId(id)));
        let span = Some(Handle::Span(Span::new(EntryId(12), EntryId(371))));
        for (text, handle) in [
            ("41.2", call),
            ("`41.2`", call),
            ("[41.2]", call),
            ("call 41.2", call),
            ("Recall 41.2.", call),
            ("e57", entry(57)),
            ("E57", entry(57)),
            (" 57 ", entry(57)),
            ("entry 57", entry(57)),
            ("#57", entry(57)),
            ("overlay 410", entry(410)),
            ("Overlay e410", entry(410)),
            ("o410", entry(410)),
            ("summary 410", entry(410)),
            ("summary overlay 410", entry(410)),
            ("r12", Some(Handle::Round(12))),
            ("round 12", Some(Handle::Round(12))),
            ("e12–e371", span),
            ("12-371", span),
            ("entries 12 to 371", span),
            ("0", None),
            ("r0", None),
            ("e", None),
            ("last", None),
            ("-1", None),
            ("+5", None),
            ("", None),
        ] {
            assert_eq!(Handle::parse(text), handle, "{text}");
        }
    }
}
