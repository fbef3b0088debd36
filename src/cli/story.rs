//! The run as it goes on, a line a step.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use undertext::exchange::{Status, ToolCall, ToolResult};
use undertext::id::{CallId, EntryId, Span};
use undertext::overlay::{Layer, Overlay};
use undertext::secret::Masks;
use undertext::transcript::{Entry, Event, Note, Purpose, Request};
use undertext::view::View;
use undertext::words;

use crate::cli::amount;
use crate::cli::brief::cut;
use crate::cli::entry::Line;
use crate::cli::named;
use crate::cli::term::Look;

/// What the outcome of a call takes at most, in characters: `  exit 1, 137 lines, clipped`.
const OUTCOME: usize = 28;

/// Turns entries into lines, and remembers what the lines to come will name.
#[derive(Debug)]
pub(crate) struct Story {
    /// The widest line, in characters.
    width: usize,
    /// What is hidden before anything is cut.
    masks: Masks,
    /// What is said of a reply without calls.
    last: &'static str,
    view: View,
    calls: HashMap<CallId, String>,
    /// How the line of the round begins that has no reply yet.
    begun: Option<Line>,
}

impl Story {
    /// The story of a run that stands so, told in lines of so many characters behind these masks.
    pub(crate) fn new(view: View, width: usize, masks: Masks, last: &'static str) -> Self {
        Self {
            width,
            masks,
            last,
            view,
            calls: HashMap::new(),
            begun: None,
        }
    }

    /// The lines that an entry is worth.
    pub(crate) fn lines(&mut self, entry: &Arc<Entry>) -> Vec<Line> {
        self.view.take(Arc::clone(entry));
        match &entry.event {
            Event::Request(request) => self.request(request).into_iter().collect(),
            Event::Response(reply) => self.response(entry.id, &reply.text, &reply.calls),
            Event::Result(result) => vec![self.result(result)],
            Event::Overlay(overlay) => self.overlay(overlay),
            Event::Fault(fault) => vec![self.aside(
                Look::Bad,
                &format!("{}: {}", fault.class.word(), fault.message),
            )],
            Event::Note(Note::SummaryFailed { why, .. }) => {
                vec![self.aside(Look::Bad, &format!("no summary: {why}"))]
            }
            Event::Run(_)
            | Event::Setup(_)
            | Event::User(_)
            | Event::Started(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => Vec::new(),
        }
    }

    /// The line of a request; that of a round waits for the reply.
    fn request(&mut self, request: &Request) -> Option<Line> {
        let tokens = amount::count(request.estimate.tokens);
        let what = match &request.purpose {
            Purpose::Round => {
                let round = request.round.unwrap_or_default();
                self.begun = Some(vec![
                    (Look::Strong, format!("{:<5}", format!("r{round}"))),
                    (Look::Faint, format!("{tokens:>6}  ")),
                ]);
                return None;
            }
            Purpose::Summary(ask) => format!("[asks for a summary of {}]", self.rounds(ask.span)),
            Purpose::Combine(_) => "[asks for one summary of several]".to_owned(),
            Purpose::Repair { .. } => "[asks again]".to_owned(),
        };
        let line = format!("     {tokens:>6}  {what}");
        Some(vec![(Look::Faint, cut(&self.masks, &line, self.width))])
    }

    fn response(&mut self, id: EntryId, text: &str, calls: &[ToolCall]) -> Vec<Line> {
        for (place, call) in (1..).zip(calls) {
            self.calls.insert(CallId::new(id, place), named(call));
        }
        // The text of a summary is told when it is laid, the last word by itself.
        let said = if calls.is_empty() { self.last } else { text };
        let line = self.begun.take().map(|mut line| {
            let room = self.width.saturating_sub(INDENT.len());
            // The rest of a longer text is for the model itself.
            let said = self.masks.text(said);
            let first = said.lines().next().unwrap_or_default();
            line.push((Look::Plain, short(&self.masks, first, room)));
            line
        });
        line.into_iter().collect()
    }

    fn result(&self, result: &ToolResult) -> Line {
        let name = self.calls.get(&result.call).map_or("", String::as_str);
        let mut status = result.status.word().to_owned();
        if let Some(exit) = result.facts.exit.filter(|exit| *exit != 0) {
            status = format!("exit {exit}");
        }
        let lines = amount::of(result.content.lines().count() as u64, "line");
        let clipped = if result.clipped.is_some() {
            ", clipped"
        } else {
            ""
        };
        let end = format!("  {status}, {lines}{clipped}");
        let look = match result.status {
            Status::Ok => Look::Faint,
            Status::Error
            | Status::Denied
            | Status::Timeout
            | Status::Interrupted
            | Status::Cancelled => Look::Bad,
        };
        let room = self.width.saturating_sub(INDENT.len() + OUTCOME);
        vec![
            (
                Look::Plain,
                format!("{INDENT}{:<room$}", short(&self.masks, name, room)),
            ),
            (look, end),
        ]
    }

    fn overlay(&self, laid: &Overlay) -> Vec<Line> {
        let what = match &laid.layer {
            Layer::Stub(stub) => {
                let parts = [
                    (stub.results.len(), "result"),
                    (stub.arguments.len(), "argument"),
                ];
                let parts = parts.into_iter().filter(|(number, _)| *number > 0);
                let parts: Vec<String> = parts
                    .map(|(number, noun)| amount::of(number as u64, noun))
                    .collect();
                format!("stubs for {}", parts.join(" and "))
            }
            Layer::Hide(hide) => {
                let number = hide.calls.len() + hide.reasoning.len() + hide.rounds.len();
                format!("{} left out", amount::of(number as u64, "content"))
            }
            Layer::Summary(summary) => {
                format!("a summary in place of {}", self.rounds(summary.span))
            }
            Layer::Show(show) => format!(
                "{} shown again",
                amount::of(show.calls.len() as u64, "call")
            ),
        };
        let (before, after) = (
            amount::count(laid.size.before),
            amount::count(laid.size.after),
        );
        let origin = laid.origin.word();
        let head = format!("  ≡ {origin:<8} {what}, {before} → {after} tokens");
        vec![
            vec![(Look::Strong, cut(&self.masks, &head, self.width))],
            self.aside(
                Look::Faint,
                &format!("because: {}", words::figures(&laid.reason)),
            ),
        ]
    }

    fn aside(&self, look: Look, text: &str) -> Line {
        let room = self.width.saturating_sub(INDENT.len());
        vec![(look, format!("{INDENT}{}", short(&self.masks, text, room)))]
    }

    fn rounds(&self, span: Span) -> String {
        match self.view.round_numbers(span) {
            Some((first, last)) if first == last => format!("round {first}"),
            Some((first, last)) => format!("rounds {first} to {last}"),
            None => span.to_string(),
        }
    }
}

/// Where what belongs to a round begins.
const INDENT: &str = "             ";

/// A call as a line names it: the tool, and what it is about.
fn named(call: &ToolCall) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    // What is searched for says more than where.
    let about = ["command", "pattern", "path", "handle", "focus", "name"]
        .iter()
        .find_map(|name| arguments[*name].as_str());
    let todos = arguments["todos"].as_array();
    let todos = todos.map(|todos| amount::of(todos.len() as u64, "item"));
    let about = about.map(str::to_owned).or(todos);
    let name = named::tool(&call.name);
    format!("{name} {}", about.unwrap_or_default())
}

/// The text on one line, masked and no longer than this.
fn short(masks: &Masks, text: &str, chars: usize) -> String {
    let line = masks.text(text);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(masks, &line, chars)
}

/// The text in lines of at most so many characters, broken between words.
pub(crate) fn wrapped(text: &str, chars: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= chars => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}
