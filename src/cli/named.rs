//! What things are called in explanations: entries, calls, messages, overlays and what they do.

use std::fmt::Write as _;

use serde_json::Value;
use undertext::exchange::{Response, ToolCall};
use undertext::export;
use undertext::id::{CallId, EntryId};
use undertext::overlay::{Layer, Origin, Overlay};
use undertext::secret::Masks;
use undertext::transcript::{Event, Note, Speaker};
use undertext::view::{As, Change, Content, Source, View};
use undertext::words;

use crate::cli::{amount, brief, entry};

/// The longest name of what a call was about, in characters.
const LABEL: usize = 40;

/// The longest name of a tool, in characters.
const TOOL: usize = 64;

/// The longest reason of an overlay, in characters.
const REASON: usize = 80;

/// `Bash (npm start)`: a call by its tool and what it was about.
pub(crate) fn call(view: &View, masks: &Masks, id: CallId) -> String {
    let Some(call) = view.tool_call(id) else {
        return id.to_string();
    };
    let (name, label) = (tool(&call.name), label(view, masks, call));
    if label.is_empty() {
        name
    } else {
        format!("{name} ({label})")
    }
}

/// The name of a tool on one line: a model may have made it up.
pub(crate) fn tool(name: &str) -> String {
    // Whoever shows it masks it with what stands around it.
    brief::cut(&Masks::none(), &words::on_one_line(name, 2 * TOOL), TOOL)
}

/// The first argument that names what a call was about, or its first text.
fn label(view: &View, masks: &Masks, call: &ToolCall) -> String {
    // Some are secret by their name alone, which does not stand in what is shown.
    let arguments = masks.json(&call.arguments);
    let Ok(Value::Object(arguments)) = serde_json::from_str(&arguments) else {
        return String::new();
    };
    let spec = view.wire().and_then(|wire| {
        let mut tools = wire.tools.iter();
        tools.find(|tool| tool.name == call.name)
    });
    let labels = spec.map_or(&[][..], |spec| &spec.meta.labels);
    let mut named = labels.iter().filter_map(|name| arguments.get(name));
    let text = named.find_map(Value::as_str);
    let text = text.or_else(|| arguments.values().find_map(Value::as_str));
    brief::first_line(masks, text.unwrap_or_default(), LABEL)
}

/// `result of Bash (npm start)`, `task`, `response: Read, Bash`: what an entry is.
pub(crate) fn entry(view: &View, masks: &Masks, id: EntryId) -> String {
    let Some(found) = view.transcript().get(id) else {
        return format!("e{id}");
    };
    match &found.event {
        Event::User(user) => match user.origin {
            Speaker::Task => "task".to_owned(),
            Speaker::FollowUp => "follow-up".to_owned(),
            Speaker::Hook => "word of a hook".to_owned(),
            Speaker::Runtime => "word of the runtime".to_owned(),
        },
        Event::Response(reply) if reply.calls.is_empty() => "response".to_owned(),
        Event::Response(reply) => format!("response: {}", tools(reply)),
        Event::Result(result) => format!("result of {}", call(view, masks, result.call)),
        Event::Overlay(laid) => format!("{}: {}", laid.origin.word(), export::covers(&laid.layer)),
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
        | Event::Unknown(_) => entry::parts(found).0.replace('\n', " "),
    }
}

/// The tools that a reply called, by name and number: `Read ×3, Bash`.
pub(crate) fn tools(reply: &Response) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for call in &reply.calls {
        match names.iter_mut().find(|(name, _)| *name == call.name) {
            Some((_, times)) => *times += 1,
            None => names.push((&call.name, 1)),
        }
    }
    let names = names.into_iter().map(|(name, times)| match times {
        1 => tool(name),
        times => format!("{} ×{times}", tool(name)),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// What a person should know of a note. What an import remarks warns of nothing.
pub(crate) fn note(view: &View, note: &Note) -> String {
    let first = view.transcript().entries().first().map(|it| &it.event);
    let is_imported = matches!(first, Some(Event::Run(run)) if run.imported.is_some());
    match note {
        Note::Warning { text } if is_imported => text.clone(),
        Note::Warning { .. }
        | Note::Torn(_)
        | Note::Damage { .. }
        | Note::SummaryFailed { .. }
        | Note::Hook(_)
        | Note::Check(_) => brief::note(note),
    }
}

/// What a message of a request is, by its source.
pub(crate) fn source(view: &View, masks: &Masks, source: Source) -> String {
    match source {
        Source::Entry(id) => entry(view, masks, view.corrected(id)),
        Source::Result(id) => format!("result of {}", call(view, masks, id)),
        Source::Summary(id) => entry(view, masks, id),
        Source::Carry(_) => "shown again behind the last summary".to_owned(),
        Source::Understood => "the assistant's word after a summary".to_owned(),
        Source::Asked => "what this request asks for".to_owned(),
    }
}

/// The entry that a source is found at.
pub(crate) fn place(view: &View, source: Source) -> Option<EntryId> {
    match source {
        Source::Entry(id) => Some(view.corrected(id)),
        Source::Result(call) => view.result_of(call).map(|(entry, _)| entry),
        Source::Summary(id) | Source::Carry(id) => Some(id),
        Source::Understood | Source::Asked => None,
    }
}

/// `e210 micro: 12,310 of 10,000 tokens, not among the newest 10`: an overlay and why it was laid.
pub(crate) fn overlay(view: &View, masks: &Masks, id: EntryId) -> String {
    let Some(laid) = view.overlay(id) else {
        return format!("e{id}");
    };
    let why = why(view, masks, id, laid);
    let origin = laid.origin.word();
    if why.is_empty() {
        format!("e{id} {origin}")
    } else {
        format!("e{id} {origin}: {why}")
    }
}

/// Why an overlay was laid, as far as is recorded.
pub(crate) fn why(view: &View, masks: &Masks, id: EntryId, laid: &Overlay) -> String {
    let mut parts = Vec::new();
    if !laid.reason.is_empty() {
        let reason = masks.text(&laid.reason).replace('\n', " ");
        parts.push(brief::cut(masks, &words::figures(&reason), REASON));
    } else if laid.rule != laid.origin.word() && !laid.rule.is_empty() {
        parts.push(laid.rule.clone());
    }
    if laid.origin == Origin::Micro
        && matches!(laid.layer, Layer::Stub(_))
        && let Some(keep) = keep_recent(view, id)
    {
        parts.push(format!("not among the newest {keep}"));
    }
    parts.join(", ")
}

/// The number of newest results that were left alone by the settings in force at an entry.
fn keep_recent(view: &View, id: EntryId) -> Option<u32> {
    let setup = view.setup_at(id)?;
    Some(setup.policy.compaction.micro.keep_recent)
}

/// How something reads, in a word or two.
pub(crate) fn reads(reads: As) -> &'static str {
    match reads {
        As::Full => "in full",
        As::Stub(_) => "stub",
        As::Hidden(_) => "hidden",
        As::Summarised(_) => "in a band",
        As::Corrected(_) => "corrected",
        As::Open => "open",
        As::Absent => "not read",
    }
}

/// Parts that do not read in full, with the overlays by which they do not, a text an overlay:
/// `arguments of 5.1 stubbed, 5.2 left out: e44`; of a result alone `stub e44`.
pub(crate) fn changes(changed: &[Change]) -> Vec<(EntryId, String)> {
    let mut overlays: Vec<EntryId> = changed.iter().map(|change| change.by).collect();
    overlays.sort_unstable();
    overlays.dedup();
    let text = |by: EntryId| {
        let of = changed.iter().filter(|change| change.by == by);
        let contents: Vec<Content> = of.map(|change| change.content).collect();
        if let [Content::Result(_)] = contents[..] {
            return (by, "stub".to_owned());
        }
        let parts: Vec<String> = contents.into_iter().map(content).collect();
        let (shown, more) = parts.split_at(parts.len().min(6));
        let mut text = shown.join(", ");
        if !more.is_empty() {
            write!(text, " and {} more", amount::count(more.len() as u64)).ok();
        }
        (by, format!("{text} by"))
    };
    overlays.into_iter().map(text).collect()
}

fn content(content: Content) -> String {
    match content {
        Content::Text(_) => "text hidden".to_owned(),
        Content::Reasoning(_) => "reasoning hidden".to_owned(),
        Content::Arguments(call) => format!("arguments of {call} stubbed"),
        Content::Result(call) => format!("result of {call} stubbed"),
        Content::Attachment(_, place) => format!("attachment {place} hidden"),
        Content::Call(call) => format!("{call} left out"),
    }
}

/// The entry that took an overlay back, if one did.
pub(crate) fn retracted(view: &View, overlay: EntryId) -> Option<EntryId> {
    let later = view.transcript().from(overlay).iter();
    let mut retracts = later.filter(|entry| {
        matches!(&entry.event, Event::Retract(retract) if retract.overlays.contains(&overlay))
    });
    retracts.next().map(|entry| entry.id)
}
