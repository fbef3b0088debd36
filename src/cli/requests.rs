//! `replay --diff` and `replay --blame`: what two requests differ in, and where each message of one
//! comes from.

use std::io;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::explain::{self, Amount, Blamed, Comparison, Difference, Kind, Moment, Sent};
use undertext::export;
use undertext::id::EntryId;
use undertext::record::Clock;
use undertext::secret::Masks;
use undertext::view::{As, Change, Source, View};
use undertext::wire::{Body, RENDERER};

use crate::cli::advice;
use crate::cli::exit::{Exit, Failure};
use crate::cli::place::Place;
use crate::cli::replay::Told;
use crate::cli::term::{Look, Term};
use crate::cli::{amount, named, wrap};

/// What is different between two requests.
pub(crate) fn diff(
    view: &View,
    places: [&Place; 2],
    json: bool,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let now = Clock::System.now();
    let [a, b] = places.map(|place| place.request(view, now));
    let (a, b) = (moment(view, a?)?, moment(view, b?)?);
    let comparison = explain::compare(&a, &b).ok_or_else(|| incomplete(b.sent.request))?;
    let sound = sound(&a, term)? && sound(&b, term)?;
    if json {
        let told = Told::Diff(comparison);
        term.print_json(&serde_json::to_string(&told).map_err(io::Error::from)?)?;
    } else {
        print_diff(view, &comparison, term)?;
    }
    Ok(if sound { Exit::Done } else { Exit::Unfinished })
}

/// Where each message of a request comes from.
pub(crate) fn blame(
    view: &View,
    place: &Place,
    json: bool,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let moment = moment(view, place.request(view, Clock::System.now())?)?;
    let blamed = explain::blame(&moment).ok_or_else(|| incomplete(moment.sent.request))?;
    let sound = sound(&moment, term)?;
    let settings = settings(&moment, &blamed);
    if json {
        if let Some(settings) = settings {
            let json = serde_json::to_string(&Told::Setup(settings)).map_err(io::Error::from)?;
            term.print_json(&json)?;
        }
        for message in blamed {
            let json = serde_json::to_string(&Told::Message(message)).map_err(io::Error::from)?;
            term.print_json(&json)?;
        }
    } else {
        let request = &moment.request;
        let head = head(
            moment.sent,
            blamed.len() as u64,
            request.body.bytes,
            request.estimate.tokens,
        );
        wrap::print(&[(Look::Strong, head)], 2, term)?;
        let heading = row("#", "entry", "bytes");
        let heading = format!("{heading}what it is, and what changed how it reads");
        wrap::print(&[(Look::Faint, heading)], 25, term)?;
        if let Some(settings) = settings {
            let entry = format!("e{}", settings.entry);
            let bytes = amount::count(settings.bytes[1]);
            let what = named::entry(&moment.view, term.masks(), settings.entry);
            let line = [
                (Look::Faint, row("", &entry, &bytes)),
                (Look::Plain, format!("{what}: instructions and tools")),
            ];
            wrap::print(&line, 25, term)?;
        }
        let mut named = Vec::new();
        for message in &blamed {
            let line = blamed_line((&moment.view, term.masks()), message, &mut named);
            wrap::print(&line, 25, term)?;
        }
        overlays(view, named, term)?;
    }
    Ok(if sound { Exit::Done } else { Exit::Unfinished })
}

/// What stands before the messages of a request.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Settings {
    /// The setup by which it was made.
    entry: EntryId,
    /// Its first byte in the body, from 0, and the one behind its last.
    bytes: [u64; 2],
}

/// The settings of a request; `None` if it has no messages behind them.
fn settings(moment: &Moment, blamed: &[Blamed]) -> Option<Settings> {
    Some(Settings {
        entry: moment.view.setup_entry()?,
        bytes: [0, blamed.first()?.bytes[0]],
    })
}

/// The columns before what a row is.
fn row(number: &str, entry: &str, bytes: &str) -> String {
    format!("{number:>5}  {entry:<6} {bytes:>9}  ")
}

/// A request of this run, as it stood, that can be built here.
pub(crate) fn moment(view: &View, request: EntryId) -> Result<Moment, Failure> {
    let moment = Moment::of(view.transcript(), request).ok_or_else(|| incomplete(request))?;
    let renderer = moment.request.renderer;
    if renderer == RENDERER {
        return Ok(moment);
    }
    let text = format!(
        "request e{request} cannot be rebuilt: renderer {renderer} made it, which this version does \
         not know"
    );
    let failure = Failure::new(Exit::Unfinished, anyhow::Error::msg(text));
    Err(failure.advised(advice::RENDERER))
}

/// A request cannot be rebuilt from what is left.
pub(crate) fn incomplete(request: EntryId) -> Failure {
    let text = format!("request e{request} cannot be rebuilt: entries before it are missing");
    Failure::new(Exit::Unfinished, anyhow::Error::msg(text)).advised(advice::PRINT)
}

/// Whether a request is built as it was sent; says so if it is not.
fn sound(moment: &Moment, term: &mut Term) -> io::Result<bool> {
    let built = moment.anatomy().map(|anatomy| Body::new(anatomy.bytes));
    let sound = built.is_some_and(|body| body.digest() == moment.request.body);
    if !sound {
        let request = moment.sent.request;
        let text = format!("request e{request} is not, byte for byte, what was sent");
        term.say(&[(Look::Bad, "warning: "), (Look::Plain, &text)])?;
    }
    Ok(sound)
}

/// `r12 e40: 22 messages, 71,230 bytes, about 18,204 tokens`
fn head(sent: Sent, messages: u64, bytes: u64, tokens: u64) -> String {
    let name = match sent.round {
        Some(round) => format!("r{round} e{}", sent.request),
        None => format!("e{}", sent.request),
    };
    format!(
        "{name}: {}, {}, about {} tokens",
        amount::of(messages, "message"),
        amount::of(bytes, "byte"),
        amount::count(tokens)
    )
}

/// `r12`, or the entry of a request that belongs to no round.
pub(crate) fn name(sent: Sent) -> String {
    sent.round
        .map_or_else(|| format!("e{}", sent.request), |round| format!("r{round}"))
}

/// `   7  e11      111  result of Read (AGENTS.md)   stub e48`
fn blamed_line(
    (view, masks): (&View, &Masks),
    message: &Blamed,
    named: &mut Vec<EntryId>,
) -> Vec<(Look, String)> {
    let entry = message
        .entry
        .map_or_else(String::new, |entry| format!("e{entry}"));
    let number = message.message.to_string();
    let bytes = amount::count(length(message));
    let mut line = vec![
        (Look::Faint, row(&number, &entry, &bytes)),
        (Look::Plain, named::source(view, masks, message.source)),
    ];
    for text in on(&message.changed, named) {
        line.push((Look::Strong, format!("   {text}")));
    }
    line
}

fn length(message: &Blamed) -> u64 {
    let [from, to] = message.bytes;
    to.saturating_sub(from)
}

/// What lies on a message, each overlay by its entry, which is noted: `stub e48`.
fn on(changed: &[Change], named: &mut Vec<EntryId>) -> Vec<String> {
    let texts = named::changes(changed).into_iter().map(|(by, text)| {
        named.push(by);
        format!("{text} e{by}")
    });
    texts.collect()
}

/// Says once what the overlays are that were named.
fn overlays(view: &View, mut named: Vec<EntryId>, term: &mut Term) -> io::Result<()> {
    named.sort_unstable();
    named.dedup();
    for id in named {
        if let Some(laid) = view.overlay(id) {
            let covers = export::covers(&laid.layer);
            let text = format!("{}, {covers}", named::overlay(view, term.masks(), id));
            wrap::print(&[(Look::Faint, text)], 2, term)?;
        }
    }
    Ok(())
}

fn print_diff(view: &View, told: &Comparison, term: &mut Term) -> io::Result<()> {
    let sides = [told.a, told.b].into_iter();
    for (sent, (messages, size)) in sides.zip(told.messages.into_iter().zip(told.sizes)) {
        let head = head(sent, messages, size.bytes, size.tokens);
        wrap::print(&[(Look::Strong, head)], 2, term)?;
    }
    let same = match told.same {
        1 => "1 message is the same in both".to_owned(),
        same => format!("{} messages are the same in both", amount::count(same)),
    };
    term.print(&[(Look::Faint, format!("  = {same}"))])?;
    let mut named = Vec::new();
    let mut rest = &told.differences[..];
    while let Some(first) = rest.first() {
        // Neighbours that went for the same reason are one line.
        let alike = |it: &&Difference| it.kind == Kind::Went && it.is == first.is;
        let went = rest.iter().take_while(alike).count();
        let is_many = first.kind == Kind::Went && went > 1 && first.is.overlay().is_some();
        let (now, later) = rest.split_at(if is_many { went } else { 1 });
        let why = why(view, told, first, &mut named);
        let text = match now {
            [one] => one_line(view, term.masks(), one),
            many => gone_line(view, many),
        };
        let look = match first.kind {
            Kind::Came => Look::Strong,
            Kind::Went => Look::Faint,
            Kind::Changed => Look::Plain,
        };
        let line = why
            .into_iter()
            .map(|why| (Look::Plain, format!("   {why}")));
        let line: Vec<_> = [(look, text)].into_iter().chain(line).collect();
        wrap::print(&line, 16, term)?;
        rest = later;
    }
    overlays(view, named, term)?;
    totals(view, told, term)
}

/// Where the two part, and what that costs.
fn totals(view: &View, told: &Comparison, term: &mut Term) -> io::Result<()> {
    let masks = &term.masks().clone();
    let mut say = |text: String| wrap::print(&[(Look::Plain, text)], 2, term);
    let Some(first) = told.first else {
        return say("both are the same, byte for byte".to_owned());
    };
    let (a, b) = (name(told.a), name(told.b));
    let within = match (first.message, first.source) {
        (Some(message), Some(source)) => {
            let entry = named::place(view, source);
            let entry = entry.map_or_else(String::new, |entry| format!("e{entry} "));
            let what = named::source(view, masks, source);
            format!("in message {message}, {entry}{what}")
        }
        (Some(_) | None, _) => {
            "before all messages: other instructions, tools or parameters".to_owned()
        }
    };
    let size = |size: Amount| {
        let tokens = amount::count(size.tokens);
        format!("{}, about {tokens} tokens", amount::of(size.bytes, "byte"))
    };
    let offset = amount::count(first.offset);
    say(format!("first changed byte: {offset}, {within}"))?;
    say(format!("both begin alike: {}", size(told.common)))?;
    if told.lost.bytes == 0 {
        say(format!(
            "cached and lost: nothing, {b} goes on where {a} ends"
        ))?;
    } else {
        say(format!("cached and lost: {} of {a}", size(told.lost)))?;
    }
    say(format!("sent anew: {} of {b}", size(told.anew)))
}

/// `  - 7–9         3 messages, e13 to e20`
fn gone_line(view: &View, gone: &[Difference]) -> String {
    let number = |it: Option<&Difference>| {
        let message = it.and_then(|it| it.a.as_ref());
        message.map_or(0, |message| message.message)
    };
    let entry = |it: Option<&Difference>| {
        let entry = it.and_then(|it| named::place(view, it.source));
        entry.map_or_else(String::new, |entry| format!("e{entry}"))
    };
    let (first, last) = (gone.first(), gone.last());
    let numbers = format!("{}–{}", number(first), number(last));
    let messages = amount::of(gone.len() as u64, "message");
    format!(
        "  - {numbers:<11} {messages}, {} to {}",
        entry(first),
        entry(last)
    )
}

/// `  ~ 7    e11    result of Read (AGENTS.md), 654 → 111 bytes`
fn one_line(view: &View, masks: &Masks, it: &Difference) -> String {
    let bytes = |message: &Option<Blamed>| amount::count(message.as_ref().map_or(0, length));
    let (mark, message, size) = match it.kind {
        Kind::Came => ('+', &it.b, bytes(&it.b)),
        Kind::Went => ('-', &it.a, bytes(&it.a)),
        Kind::Changed => ('~', &it.b, format!("{} → {}", bytes(&it.a), bytes(&it.b))),
    };
    let number = message.as_ref().map_or(0, |message| message.message);
    let entry = named::place(view, it.source);
    let entry = entry.map_or_else(String::new, |entry| format!("e{entry}"));
    let what = named::source(view, masks, it.source);
    format!("  {mark} {number:<4} {entry:<6} {what}, {size} bytes")
}

/// Why a message came, went or changed, as far as an overlay is the reason.
fn why(view: &View, told: &Comparison, it: &Difference, named: &mut Vec<EntryId>) -> Vec<String> {
    let of = |message: &Option<Blamed>| {
        let changed = message.as_ref().map(|message| message.changed.clone());
        changed.unwrap_or_default()
    };
    // What stood before and has no say any more.
    let mut gone: Vec<EntryId> = match it.kind {
        Kind::Came => it.was.overlay().into_iter().collect(),
        Kind::Went => match (it.is, it.source) {
            (As::Absent, Source::Summary(overlay)) => vec![overlay],
            (
                As::Full
                | As::Stub(_)
                | As::Hidden(_)
                | As::Summarised(_)
                | As::Corrected(_)
                | As::Open
                | As::Absent,
                _,
            ) => Vec::new(),
        },
        Kind::Changed => {
            let after = of(&it.b);
            let before = of(&it.a).into_iter().filter(|it| !after.contains(it));
            before.map(|change| change.by).collect()
        }
    };
    gone.sort_unstable();
    gone.dedup();
    let mut texts = match it.kind {
        Kind::Came => {
            if let Source::Summary(overlay) = it.source {
                named.push(overlay);
            }
            Vec::new()
        }
        Kind::Went => {
            named.extend(it.is.overlay());
            let overlay = it
                .is
                .overlay()
                .map(|by| format!("{} e{by}", named::reads(it.is)));
            let corrected = match it.is {
                As::Corrected(by) => Some(format!("corrected by e{by}")),
                As::Full
                | As::Stub(_)
                | As::Hidden(_)
                | As::Summarised(_)
                | As::Open
                | As::Absent => None,
            };
            overlay.into_iter().chain(corrected).collect()
        }
        Kind::Changed => {
            let before = of(&it.a);
            let mut news = of(&it.b);
            news.retain(|change| !before.contains(change));
            on(&news, named)
        }
    };
    named.extend(&gone);
    texts.extend(
        gone.into_iter()
            .map(|overlay| lifted(view, told.b, overlay)),
    );
    if texts.is_empty() && it.kind == Kind::Changed {
        texts.push("corrected, or read under other settings".to_owned());
    }
    texts
}

/// Says why an overlay has no say in a request.
fn lifted(view: &View, sent: Sent, overlay: EntryId) -> String {
    match named::retracted(view, overlay) {
        _ if overlay > sent.request => format!("before e{overlay}"),
        Some(retract) if retract < sent.request => {
            format!("e{overlay} taken back by e{retract}")
        }
        Some(_) | None if sent.round.is_none() => format!("raw, without e{overlay}"),
        Some(_) | None => format!("no longer under e{overlay}"),
    }
}
