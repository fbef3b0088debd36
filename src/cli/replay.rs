//! `replay`: every request of a run built again and held against what was recorded.

use std::io;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::exchange::Response;
use undertext::id::EntryId;
use undertext::record::Clock;
use undertext::replay::{Outcome, Rebuilt, Replay};
use undertext::transcript::{Entry, Event, Purpose, Request, Speaker};
use undertext::view::View;

use crate::cli::exit::{Exit, Failure};
use crate::cli::find::{self, Found};
use crate::cli::term::{Look, Term};
use crate::cli::{Process, ReplayArgs, amount, brief, sent};

/// Replays a run.
pub(crate) fn replay(
    args: &ReplayArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let found = find::read(&args.run, &args.settings, process, term)?;
    let view = &found.loaded.view;
    if args.verify && found.loaded.newer().is_some() {
        let text = "this version cannot verify a run of a newer format";
        return Err(Failure::new(Exit::Transcript, anyhow::Error::msg(text)));
    }
    if let Some(at) = &args.at {
        let request = at.request(view, Clock::System.now())?;
        let (body, but) = sent::body(sent::rebuild(view, request)?)?;
        term.write(&body.bytes)?;
        if let Some(but) = but {
            term.say(&[(Look::Bad, "warning: "), (Look::Plain, &but)])?;
            return Ok(Exit::Unfinished);
        }
        return Ok(Exit::Done);
    }

    let entries = view.transcript().entries();
    let mut replay = Replay::new(entries.iter().cloned());
    let mut count = Count::default();
    for entry in entries {
        let is_request = matches!(entry.event, Event::Request(_));
        let rebuilt = if is_request { replay.next() } else { None };
        if let Some(rebuilt) = &rebuilt {
            count.take(rebuilt);
        }
        match (args.verify, args.json) {
            (true, _) => {}
            (false, true) => {
                let object = object(view, entry, rebuilt.as_ref());
                if let Some(json) = object.map_err(io::Error::from)? {
                    term.print_json(&json)?;
                }
            }
            (false, false) => {
                if let Some(line) = line(view, entry, rebuilt.as_ref()) {
                    term.print(&line)?;
                }
            }
        }
    }
    finish(&count, &found, args.json, term)
}

/// How many requests could be rebuilt.
#[derive(Default)]
struct Count {
    all: u64,
    equal: u64,
    /// The first one that is not as it was sent.
    first: Option<String>,
}

impl Count {
    fn take(&mut self, rebuilt: &Rebuilt) {
        self.all += 1;
        let Some(why) = difference(rebuilt) else {
            self.equal += 1;
            return;
        };
        let round = rebuilt
            .round
            .map_or_else(String::new, |round| format!(" (round {round})"));
        self.first
            .get_or_insert_with(|| format!("e{}{round}: {why}", rebuilt.request));
    }
}

/// Why a rebuilt request is not as it was sent.
fn difference(rebuilt: &Rebuilt) -> Option<String> {
    match &rebuilt.outcome {
        Outcome::Equal(_) => None,
        Outcome::Differs(_) => Some("other bytes than were sent".to_owned()),
        Outcome::Missing => Some("entries before it are missing".to_owned()),
        Outcome::Renderer(other) => Some(format!("made by renderer {other}")),
    }
}

fn finish(count: &Count, found: &Found, json: bool, term: &mut Term) -> Result<Exit, Failure> {
    let Count { all, equal, first } = count;
    let damaged = !found.loaded.damage.is_empty();
    if json {
        let last = Told::Replayed {
            requests: *all,
            equal: *equal,
            first: first.clone(),
        };
        term.print_json(&serde_json::to_string(&last).map_err(io::Error::from)?)?;
    } else {
        let requests = amount::of(*all, "request");
        let text = match first {
            None if *all == 0 => "there is no request to rebuild".to_owned(),
            None => format!(
                "{} of {requests} rebuilt, all digests equal",
                amount::count(*equal)
            ),
            Some(first) => format!(
                "{} of {requests} rebuilt; the first that is not: {first}",
                amount::count(*equal)
            ),
        };
        let look = if first.is_some() {
            Look::Bad
        } else {
            Look::Strong
        };
        term.print(&[(look, text)])?;
    }
    Ok(match first {
        _ if damaged => Exit::Transcript,
        Some(_) => Exit::Unfinished,
        None => Exit::Done,
    })
}

/// A request, or what changed how the next one reads, in one line.
fn line(view: &View, entry: &Entry, rebuilt: Option<&Rebuilt>) -> Option<Vec<(Look, String)>> {
    let aside = |text: String| Some(vec![(Look::Faint, format!("      {text}"))]);
    match &entry.event {
        Event::Request(request) => {
            let wrong = rebuilt.and_then(difference);
            let (name, what) = purpose(request);
            let mut line = vec![
                (Look::Strong, format!("{name:<6}")),
                (
                    Look::Plain,
                    format!(
                        "{:<6} {:>9} tokens  {what}{}",
                        format!("e{}", entry.id),
                        amount::count(request.estimate.tokens),
                        answer(view, entry)
                    ),
                ),
            ];
            line.extend(wrong.map(|wrong| (Look::Bad, format!("  {wrong}"))));
            Some(line)
        }
        Event::User(user) if matches!(user.origin, Speaker::Task | Speaker::FollowUp) => {
            let turn = view
                .rounds()
                .turns()
                .iter()
                .position(|turn| *turn == entry.id)?
                + 1;
            let text = brief::first_line(&user.text, 100);
            Some(vec![
                (Look::Strong, format!("{:<6}", format!("t{turn}"))),
                (Look::Plain, text),
            ])
        }
        Event::Overlay(laid) => aside(brief::overlay(entry.id, laid)),
        Event::Retract(retract) => {
            let overlays: Vec<String> = retract
                .overlays
                .iter()
                .map(|overlay| format!("e{overlay}"))
                .collect();
            aside(format!("retract e{}: {}", entry.id, overlays.join(" ")))
        }
        Event::Fault(fault) => aside(brief::fault(entry.id, fault)),
        Event::Note(note) => aside(brief::note(note)),
        Event::End(end) => aside(format!("end e{}: {}", entry.id, end.reason.word())),
        Event::Run(_)
        | Event::Setup(_)
        | Event::User(_)
        | Event::Response(_)
        | Event::Started(_)
        | Event::Result(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Unknown(_) => None,
    }
}

/// The name of a request's round, or what else it is for.
fn purpose(request: &Request) -> (String, String) {
    match &request.purpose {
        Purpose::Round => {
            let name = request
                .round
                .map_or_else(String::new, |round| format!("r{round}"));
            (name, String::new())
        }
        Purpose::Summary(summary) => (String::new(), format!("summary of {}, ", summary.span)),
        Purpose::Combine(combine) => (String::new(), format!("summaries of {}, ", combine.span)),
        Purpose::Repair { response, .. } => (String::new(), format!("correction of e{response}, ")),
    }
}

/// What came of a request: the calls, by name and number.
fn answer(view: &View, entry: &Entry) -> String {
    let Some(response) = response(view, entry) else {
        return "no reply".to_owned();
    };
    let mut names: Vec<(&str, usize)> = Vec::new();
    for call in &response.calls {
        match names.iter_mut().find(|(name, _)| *name == call.name) {
            Some((_, times)) => *times += 1,
            None => names.push((&call.name, 1)),
        }
    }
    if names.is_empty() {
        return "text".to_owned();
    }
    let names: Vec<String> = names
        .into_iter()
        .map(|(name, times)| match times {
            1 => name.to_owned(),
            times => format!("{name} ×{times}"),
        })
        .collect();
    names.join(", ")
}

/// The response to a request: replies follow their requests closely.
fn response<'a>(view: &'a View, entry: &Entry) -> Option<&'a Response> {
    let later = view.transcript().from(entry.id.next());
    later.iter().find_map(|later| {
        if let Event::Response(response) = &later.event
            && response.request == entry.id
        {
            Some(response)
        } else {
            None
        }
    })
}

/// What `replay --json` writes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Told {
    /// A request that was built again.
    Request {
        /// Its entry.
        id: EntryId,
        /// The round; absent if it belongs to none.
        #[serde(skip_serializing_if = "Option::is_none")]
        round: Option<u32>,
        /// What it was for.
        purpose: Purpose,
        /// Its size as it was estimated, in tokens.
        tokens: u64,
        /// Its size in bytes.
        bytes: u64,
        /// The names of the tools that the reply called; absent if there was none.
        #[serde(skip_serializing_if = "Option::is_none")]
        calls: Option<Vec<String>>,
        /// Whether its bytes are those that were sent.
        equal: bool,
    },
    /// The last line.
    Replayed {
        /// The number of requests.
        requests: u64,
        /// Those whose bytes are the ones that were sent.
        equal: u64,
        /// The first one that is not so, and why.
        #[serde(skip_serializing_if = "Option::is_none")]
        first: Option<String>,
    },
    /// What changed how the next request reads.
    #[serde(untagged)]
    Entry(Entry),
}

/// The same line for programs.
fn object(
    view: &View,
    entry: &Entry,
    rebuilt: Option<&Rebuilt>,
) -> serde_json::Result<Option<String>> {
    match &entry.event {
        Event::Request(request) => {
            let response = response(view, entry);
            let names = |response: &'_ Response| -> Vec<String> {
                response
                    .calls
                    .iter()
                    .map(|call| call.name.clone())
                    .collect()
            };
            let calls = response.map(names);
            let told = Told::Request {
                id: entry.id,
                round: request.round,
                purpose: request.purpose.clone(),
                tokens: request.estimate.tokens,
                bytes: request.body.bytes,
                calls,
                equal: rebuilt.is_some_and(Rebuilt::is_equal),
            };
            serde_json::to_string(&told).map(Some)
        }
        Event::Overlay(_) | Event::Retract(_) => {
            serde_json::to_string(&Told::Entry(entry.clone())).map(Some)
        }
        Event::Run(_)
        | Event::Setup(_)
        | Event::User(_)
        | Event::Response(_)
        | Event::Started(_)
        | Event::Result(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Fault(_)
        | Event::Note(_)
        | Event::End(_)
        | Event::Unknown(_) => Ok(None),
    }
}
