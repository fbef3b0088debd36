//! `replay`: every request of a run built again and held against what was recorded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::exchange::Response;
use undertext::explain::{Blamed, Comparison};
use undertext::id::EntryId;
use undertext::record::Clock;
use undertext::replay::{self, Outcome, Rebuilt};
use undertext::secret::Masks;
use undertext::transcript::{Entry, Event, Purpose, Request, Speaker, Torn};
use undertext::view::View;

use crate::cli::differs::{self, Differs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::find::{self, Found};
use crate::cli::requests::Settings;
use crate::cli::term::{Look, Term};
use crate::cli::unread::{self, Unread};
use crate::cli::{Process, ReplayArgs, advice, amount, brief, named, requests, sent, wrap};

/// Replays a run.
pub(crate) fn replay(
    args: &ReplayArgs,
    process: &Process,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let mut count = Count::default();
    let counts = args.at.is_none() && args.diff.is_empty() && args.blame.is_none();
    let look = |view: &View, entry: &Entry| {
        unread::take(&mut count.unread, entry);
        if counts && let Some(rebuilt) = replay::rebuilt(view, entry) {
            count.take(rebuilt);
        }
    };
    // Who only counts is done with an entry once it is folded; whoever shows them goes through them again.
    let found = if counts && args.verify {
        find::fold_along(&args.run, &args.settings, process, term, look)?
    } else {
        find::read_along(&args.run, &args.settings, process, term, look)?
    };
    let view = &found.loaded.view;
    if args.verify && found.loaded.newer().is_some() {
        let text = "this version cannot verify a run of a newer format";
        let failure = Failure::new(Exit::Transcript, anyhow::Error::msg(text));
        return Err(failure.advised(advice::NEWER));
    }
    if let Some(at) = &args.at {
        let request = at.request(view, Clock::System.now())?;
        let (body, but) = sent::body(view, request)?;
        term.write(&body.bytes)?;
        if term.has_masked() {
            let text = "what looks like a secret is masked; --unmasked writes the exact bytes";
            term.say(&[(Look::Faint, text)])?;
        }
        if let Some(but) = but {
            term.say(&[(Look::Bad, "warning: "), (Look::Plain, &but)])?;
            return Ok(Exit::Unfinished);
        }
        return Ok(Exit::Done);
    }

    if let [a, b] = &args.diff[..] {
        return requests::diff(view, [a, b], args.json, term);
    }
    if let Some(place) = &args.blame {
        return requests::blame(view, place, args.json, term);
    }

    if !args.verify {
        let mut told = None;
        for entry in view.transcript().entries() {
            let wrong = count.wrong.get(&entry.id).copied();
            if args.json {
                if let Some(json) = object(view, entry, wrong).map_err(io::Error::from)? {
                    term.print_json(&json)?;
                }
            } else if let Some((line, indent)) = line((view, term.masks()), entry, wrong, &mut told)
            {
                wrap::print(&line, indent, term)?;
            }
        }
    }
    finish(count, &found, args, term)
}

/// How many requests could be rebuilt.
#[derive(Default)]
struct Count {
    all: u64,
    equal: u64,
    /// The newest one of the conversation that is as it was sent.
    newest: Option<EntryId>,
    /// The first one that is not, and the newest before it that is.
    first: Option<(Rebuilt, Wrong, Option<EntryId>)>,
    /// All that are not.
    wrong: BTreeMap<EntryId, Wrong>,
    /// Entries that are not understood.
    unread: Option<Unread>,
}

impl Count {
    fn take(&mut self, rebuilt: Rebuilt) {
        self.all += 1;
        let Some(wrong) = Wrong::of(&rebuilt.outcome) else {
            self.equal += 1;
            if matches!(rebuilt.purpose, Purpose::Round | Purpose::Repair { .. }) {
                self.newest = Some(rebuilt.request);
            }
            return;
        };
        self.wrong.insert(rebuilt.request, wrong);
        let newest = self.newest;
        self.first.get_or_insert((rebuilt, wrong, newest));
    }
}

/// Why a rebuilt request is not as it was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Differs,
    Missing,
    Renderer(u32),
}

impl Wrong {
    fn of(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Equal => None,
            Outcome::Differs(_) => Some(Self::Differs),
            Outcome::Missing => Some(Self::Missing),
            Outcome::Renderer(other) => Some(Self::Renderer(*other)),
        }
    }

    fn why(self) -> String {
        match self {
            Self::Differs => "other bytes than were sent".to_owned(),
            Self::Missing => "entries before it are missing".to_owned(),
            Self::Renderer(other) => format!(
                "made by renderer {other}, which this version does not know: cannot be verified"
            ),
        }
    }
}

/// Why a request is not as it was sent, said once of those in a row that another renderer made.
fn news(told: &mut Option<Wrong>, wrong: Option<Wrong>) -> Option<String> {
    let before = std::mem::replace(told, wrong);
    let is_told = matches!(wrong, Some(Wrong::Renderer(_))) && before == wrong;
    wrong.filter(|_| !is_told).map(Wrong::why)
}

fn finish(
    count: Count,
    found: &Found,
    args: &ReplayArgs,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let Count {
        all,
        equal,
        first,
        unread,
        ..
    } = count;
    let loaded = &found.loaded;
    let first = first.map(|(rebuilt, wrong, newest)| {
        let round = rebuilt
            .round
            .map_or_else(String::new, |round| format!(" (round {round})"));
        let text = format!("e{}{round}: {}", rebuilt.request, wrong.why());
        (text, differs::differs(&loaded.view, &rebuilt, newest))
    });
    // What could not be read again reads as nothing, and would be told of as another request.
    if let Some(lost) = loaded.view.transcript().lost() {
        let text = format!("{} changed while it was read", found.path.display());
        let error = anyhow::Error::new(lost.clone()).context(text);
        return Err(Failure::new(Exit::Transcript, error).advised("try again"));
    }
    let damaged = !loaded.damage.is_empty();
    let verdict = match &first {
        _ if damaged => Exit::Transcript,
        Some(_) => Exit::Unfinished,
        // A run that goes on has a last line that is being written.
        None if args.verify && loaded.torn.is_some() => Exit::Unfinished,
        None => Exit::Done,
    };
    // Who only looks is told, and no more.
    let exit = if args.verify { verdict } else { Exit::Done };
    if args.json {
        let (first, differs) = first.unzip();
        let last = Told::Replayed {
            requests: all,
            equal,
            first,
            differs: differs.flatten(),
            damage: loaded.damage.iter().map(ToString::to_string).collect(),
            torn: loaded.torn,
            unread,
        };
        term.print_json(&serde_json::to_string(&last).map_err(io::Error::from)?)?;
        return Ok(exit);
    }
    let requests = amount::of(all, "request");
    let rebuilt = format!("{} of {requests} rebuilt", amount::count(equal));
    let mut text = match &first {
        None if all == 0 => "there is no request to rebuild".to_owned(),
        None if !damaged && loaded.torn.is_none() => format!("{rebuilt}, all digests equal"),
        None => rebuilt,
        Some((first, _)) => format!("{rebuilt}; the first that is not: {first}"),
    };
    if let Some(places) = find::places(&loaded.damage) {
        write!(text, "; the transcript is damaged, {places}").ok();
    }
    if let Some(torn) = loaded.torn {
        let (bytes, offset) = (amount::of(torn.bytes, "byte"), amount::count(torn.offset));
        write!(
            text,
            "; the last {bytes}, from byte {offset} on, are no entry"
        )
        .ok();
    }
    if let Some(unread) = &unread {
        write!(text, "; {}", unread.text()).ok();
    }
    let look = if verdict == Exit::Done {
        Look::Strong
    } else {
        Look::Bad
    };
    wrap::print(&[(look, text)], 2, term)?;
    if let Some((_, Some(differs))) = first {
        differs.print(&loaded.view, term)?;
    }
    Ok(exit)
}

/// A line, and the indent behind which it goes on if it is too long.
type Line = (Vec<(Look, String)>, usize);

/// A request, or what changed how the next one reads, in one line.
fn line(
    (view, masks): (&View, &Masks),
    entry: &Entry,
    wrong: Option<Wrong>,
    told: &mut Option<Wrong>,
) -> Option<Line> {
    let aside = |text: String| Some((vec![(Look::Faint, format!("      {text}"))], 8));
    match &entry.event {
        Event::Request(request) => {
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
            let news = news(told, wrong);
            line.extend(news.map(|wrong| (Look::Bad, format!("  {wrong}"))));
            Some((line, 31))
        }
        Event::User(user) if matches!(user.origin, Speaker::Task | Speaker::FollowUp) => {
            let turn = view
                .rounds()
                .turns()
                .iter()
                .position(|turn| *turn == entry.id)?
                + 1;
            let text = brief::first_line(masks, &user.text, 100);
            let line = vec![
                (Look::Strong, format!("{:<6}", format!("t{turn}"))),
                (Look::Plain, text),
            ];
            Some((line, 6))
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
        Event::Note(note) => aside(named::note(view, note)),
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
    if response.calls.is_empty() {
        return "text".to_owned();
    }
    named::tools(response)
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
        /// Where the difference lies, as far as it can be known.
        #[serde(skip_serializing_if = "Option::is_none")]
        differs: Option<Differs>,
        /// Places of the transcript that do not hold what they should.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        damage: Vec<String>,
        /// The remains of a last line that was never finished.
        #[serde(skip_serializing_if = "Option::is_none")]
        torn: Option<Torn>,
        /// Entries that this version does not understand.
        #[serde(skip_serializing_if = "Option::is_none")]
        unread: Option<Unread>,
    },
    /// With `--diff`: what is different between two requests.
    Diff(Comparison),
    /// With `--blame`: the settings, which stand before all messages.
    Setup(Settings),
    /// With `--blame`: a message of the request, and where it comes from.
    Message(Blamed),
    /// What changed how the next request reads.
    #[serde(untagged)]
    Entry(Entry),
}

/// The same line for programs.
fn object(view: &View, entry: &Entry, wrong: Option<Wrong>) -> serde_json::Result<Option<String>> {
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
                equal: wrong.is_none(),
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
