//! The life of an entry in words.

use std::fmt::Write as _;
use std::io;

use undertext::explain::{Fetched, Holds, How, Life, Remedy, Stretch, Subject, Way};
use undertext::id::EntryId;
use undertext::overlay::{Carry, Layer, Summary};
use undertext::secret::Masks;
use undertext::transcript::{Entry, Event};
use undertext::view::{As, View};

use crate::cli::searched::Match;
use crate::cli::term::{Look, Term};
use crate::cli::why::Lived;
use crate::cli::{amount, brief, entry, laid, named, requests, wrap};

/// The lines of a summary's text that are shown.
const LINES: usize = 12;

/// A life with what it is the life of.
pub(crate) fn of(view: &View, masks: &Masks, life: Life, matched: Option<Match>) -> Lived {
    let (what, chars) = match life.subject {
        Subject::Call(call) => {
            let arguments = view.tool_call(call).map(|call| call.arguments.as_str());
            let what = format!("call of {}", named::call(view, masks, call));
            (what, count(arguments.unwrap_or_default()))
        }
        Subject::Entry(id) => {
            let event = view.transcript().get(id).map(|entry| &entry.event);
            (named::entry(view, masks, id), event.map_or(0, chars))
        }
    };
    Lived {
        what,
        chars,
        matched,
        overlay: laid::overlaid(view, &life),
        life,
    }
}

fn count(text: &str) -> u64 {
    text.chars().count() as u64
}

/// The characters that an entry says.
fn chars(event: &Event) -> u64 {
    match event {
        Event::User(user) => {
            let attachments = user.attachments.iter().map(|it| count(&it.text));
            count(&user.text) + attachments.sum::<u64>()
        }
        Event::Response(reply) => {
            let calls = reply.calls.iter().map(|call| count(&call.arguments));
            count(&reply.text) + calls.sum::<u64>()
        }
        Event::Result(result) => count(&result.content),
        Event::Overlay(overlay) => match &overlay.layer {
            Layer::Summary(summary) => count(&summary.text),
            Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_) => 0,
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
        | Event::Unknown(_) => 0,
    }
}

/// Prints a life, a line a stretch.
pub(crate) fn print(view: &View, run: &str, lived: &Lived, term: &mut Term) -> io::Result<()> {
    let life = &lived.life;
    let (name, id) = match life.subject {
        Subject::Entry(id) => (format!("e{id}"), id),
        Subject::Call(call) => (call.to_string(), call.response),
    };
    let mut head = lived.what.clone();
    if lived.chars > 0 {
        write!(head, ", {}", amount::of(lived.chars, "char")).ok();
    }
    head += &when(view, id);
    wrap::print(&[(Look::Strong, format!("{name}  {head}"))], 4, term)?;
    let width = term.width();
    let masks = &term.masks().clone();
    let mut below =
        |text: String, indent| wrap::print(&[(Look::Plain, format!("  {text}"))], indent, term);
    let mut say = |text: String| below(text, 4);
    if let Some(matched) = &lived.matched {
        say(format!("says: {}", matched.line))?;
    }
    let found = view.transcript().get(id);
    if let Subject::Entry(_) = life.subject
        && let Some(found) = found
    {
        for line in about(view, masks, run, found) {
            say(line)?;
        }
    }
    let holds = matches!(
        found.map(|it| &it.event),
        Some(Event::Overlay(_) | Event::Setup(_))
    );
    let ranges: Vec<String> = life.stretches.iter().map(range).collect();
    let wide = ranges
        .iter()
        .map(|it| it.chars().count())
        .max()
        .unwrap_or(0)
        .max(8);
    for (range, stretch) in ranges.iter().zip(&life.stretches) {
        let how = how(stretch);
        let mut details = details(view, masks, stretch, lived.matched.as_ref());
        if stretch.reads == How::Holds(Holds::NoMore) {
            let by = named::retracted(view, id);
            details.extend(by.map(|by| format!("taken back by e{by}")));
        }
        let mut details = details.into_iter();
        let first = details.next().unwrap_or_default();
        let first = format!("{range:<wide$}  {how:<10}  {first}");
        let behind = wide + 16;
        below(first.trim_end().to_owned(), behind)?;
        for more in details {
            below(format!("{:wide$}  {:10}  {more}", "", ""), behind)?;
        }
    }
    let mut say = |text: String| below(text, 4);
    for read in &life.read {
        let came = match read.summary {
            Some(summary) => format!(" for e{summary}"),
            None => ", of which nothing came".to_owned(),
        };
        say(format!("read by a summariser: e{}{came}", read.request))?;
    }
    if !holds && life.stretches.iter().any(is_hidden) {
        say(format!(
            "fetched again: {}",
            fetched(view, masks, life.fetched)
        ))?;
    }
    let remedies = remedies(run, life);
    if remedies.is_empty() {
        return Ok(());
    }
    let together = remedies.join(" · ");
    if width.is_some_and(|width| wrap::columns(&together) + 2 > width) {
        // A line each, so that each can be copied.
        return remedies.into_iter().try_for_each(say);
    }
    say(together)
}

/// `, round 9`, or the turn that a user entry begins or belongs to.
fn when(view: &View, id: EntryId) -> String {
    let response = match view.result(id) {
        Some(result) => result.call.response,
        None => id,
    };
    if let Some(round) = view.rounds().of_response(response) {
        return format!(", round {}", round.number);
    }
    if view.user(id).is_none() {
        return String::new();
    }
    match view
        .rounds()
        .turns()
        .iter()
        .filter(|turn| **turn <= id)
        .count()
    {
        0 => String::new(),
        turn => format!(", turn {turn}"),
    }
}

/// `r10–r31`, `r32`, `r89–`, or `next` for the request that would be made now.
fn range(stretch: &Stretch) -> String {
    let Some(from) = stretch.from else {
        return "next".to_owned();
    };
    let first = requests::name(from);
    match stretch.to {
        None => format!("{first}–"),
        Some(to) if requests::name(to) == first => first,
        Some(to) => format!("{first}–{}", requests::name(to)),
    }
}

fn how(stretch: &Stretch) -> &'static str {
    match stretch.reads {
        How::Reads(_) if !stretch.parts.is_empty() => "in part",
        How::Reads(reads) => named::reads(reads),
        How::Holds(Holds::InForce) => "in force",
        How::Holds(Holds::Replaced(_)) => "replaced",
        How::Holds(Holds::NoMore) => "no more",
    }
}

fn is_hidden(stretch: &Stretch) -> bool {
    stretch.reads.overlay().is_some() || !stretch.parts.is_empty()
}

/// What is said of a stretch: the overlay and why, what of it is seen again, what was lifted.
fn details(view: &View, masks: &Masks, stretch: &Stretch, matched: Option<&Match>) -> Vec<String> {
    let parts = named::changes(&stretch.parts).into_iter();
    let parts = parts.map(|(by, text)| format!("{text} {}", named::overlay(view, masks, by)));
    let mut lines: Vec<String> = parts.collect();
    if let Some(overlay) = stretch.reads.overlay() {
        let mut line = named::overlay(view, masks, overlay);
        if let Some(again) = stretch.again {
            write!(line, "; shown again in full behind e{again}").ok();
        } else if let Some(quote) = quote(masks, overlay, matched) {
            line += &quote;
        }
        lines.push(line);
    }
    if let How::Reads(As::Corrected(by)) = stretch.reads {
        lines.push(format!("e{by} reads in its place"));
    }
    if let Some(by) = stretch.lifted {
        let lifted = match view.overlay(by) {
            Some(_) => format!("e{by} shows it"),
            None => format!("taken back by e{by}"),
        };
        lines.insert(0, lifted);
    }
    lines
}

/// Whether a summary still says what was looked for.
fn quote(masks: &Masks, overlay: EntryId, matched: Option<&Match>) -> Option<String> {
    let matched = matched?;
    let said = matched.summaries.iter().find(|it| it.overlay == overlay)?;
    let text = brief::first_line(masks, &matched.text, 40);
    Some(match (said.text, said.carry) {
        (true, _) => format!("; \"{text}\" is in its text"),
        (false, true) => format!("; \"{text}\" is shown again behind it"),
        (false, false) => format!("; \"{text}\" is not in its text"),
    })
}

fn fetched(view: &View, masks: &Masks, fetched: Option<Fetched>) -> String {
    let Some(fetched) = fetched else {
        return "never".to_owned();
    };
    let round = fetched
        .round
        .map_or_else(String::new, |round| format!(" in round {round}"));
    let call = named::call(view, masks, fetched.by);
    match fetched.way {
        Way::Recall => format!("{} {call}{round}", fetched.by),
        Way::Again => format!("{} {call}{round}, the same call again", fetched.by),
    }
}

/// What would make it read in full, now and the next time.
fn remedies(run: &str, life: &Life) -> Vec<String> {
    let undo = life.remedies.iter().map(|remedy| match remedy {
        Remedy::Retract(overlay) => format!("undo: undertext retract {run} {overlay}"),
        Remedy::Expand(call) => format!("undo: undertext expand {run} {call}"),
    });
    let mut all: Vec<String> = undo.collect();
    let keep = if all.is_empty() {
        "keep"
    } else {
        "keep next time"
    };
    let pin = life
        .pin
        .map(|entry| format!("{keep}: undertext pin {run} e{entry}"));
    all.extend(pin);
    all
}

/// What there is to say of an entry that is no message itself.
fn about(view: &View, masks: &Masks, run: &str, found: &Entry) -> Vec<String> {
    let id = found.id;
    match &found.event {
        Event::Overlay(laid) => {
            let why = named::why(view, masks, id, laid);
            let mut lines = Vec::new();
            if !why.is_empty() {
                lines.push(format!("because: {why}"));
            }
            let tokens = [laid.size.before, laid.size.after].map(amount::count);
            lines.push(format!(
                "next request: {} → {} tokens",
                tokens[0], tokens[1]
            ));
            match &laid.layer {
                Layer::Summary(summary) => lines.extend(within(view, run, id, summary)),
                Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_) => {
                    let (head, _) = entry::parts(found);
                    let covers = head.split_once(": ").map_or("", |(_, covers)| covers);
                    let covers = covers.rsplit_once(", about").map_or(covers, |(it, _)| it);
                    lines.push(covers.to_owned());
                }
            }
            lines
        }
        Event::Request(_) => vec![
            "no model reads it: it says what was sent".to_owned(),
            format!("its messages: undertext replay {run} --blame e{id}"),
        ],
        Event::Response(reply) if view.rounds().of_response(id).is_none() => {
            let laid = view.transcript().from(id).iter().find(|later| {
                matches!(&later.event, Event::Overlay(laid)
                    if matches!(&laid.layer, Layer::Summary(summary)
                        if summary.text.contains(reply.text.trim())
                            || summary.parts.iter().any(|part| part.response == Some(id))))
            });
            let answers = format!("it answers e{}, which is for no round", reply.request);
            let laid = laid.map(|laid| format!("its text is in e{}", laid.id));
            [answers].into_iter().chain(laid).collect()
        }
        Event::Run(_)
        | Event::Started(_)
        | Event::Retract(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Fault(_)
        | Event::Note(_)
        | Event::End(_)
        | Event::Unknown(_) => vec!["no model reads it".to_owned()],
        Event::Setup(_) | Event::User(_) | Event::Response(_) | Event::Result(_) => Vec::new(),
    }
}

/// What is in a summary.
fn within(view: &View, run: &str, id: EntryId, summary: &Summary) -> Vec<String> {
    let rounds = view.round_numbers(summary.span);
    let rounds = rounds.map_or_else(String::new, |(first, last)| {
        format!(", rounds {first} to {last}")
    });
    let mut lines = vec![format!("covers: {}{rounds}", summary.span)];
    lines.extend(carried(&summary.carry));
    let mut text = summary.text.lines();
    lines.extend(text.by_ref().take(LINES).map(|line| format!("| {line}")));
    if text.next().is_some() {
        lines.push(format!("| … all of it: undertext print {run} --at e{id}"));
    }
    lines
}

/// What a summary shows again.
fn carried(carry: &Carry) -> Option<String> {
    let entries = carry.entries.iter().map(|entry| format!("e{entry}"));
    let calls = carry.calls.iter().map(ToString::to_string);
    let mut parts: Vec<String> = entries.chain(calls).collect();
    if !carry.state.is_empty() {
        parts.push("the working state".to_owned());
    }
    if !carry.survival.is_empty() {
        parts.push("what it left out".to_owned());
    }
    (!parts.is_empty()).then(|| format!("shown again behind it: {}", parts.join(", ")))
}
