//! Which entries an order is about: addresses resolved to ids, once.

use std::fmt;

use crate::address::Address;
use crate::compaction::by_hand::{KEEP_LAST, Order, Refused, Work};
use crate::id::{CallId, EntryId, Span};
use crate::overlay::Layer;
use crate::transcript::turn::Round;
use crate::transcript::{At, Event};
use crate::view::View;
use crate::words::grouped;

/// An order whose addresses are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// What was ordered.
    pub order: Order,
    /// Where; why nowhere, in words, if there is nothing there.
    pub reach: Result<Reach, String>,
}

/// The entries that stages may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// From a round's request or a user entry to the last entry of a closed round.
    pub span: Span,
    /// The one thing that the person named by itself, if they did.
    pub named: Option<Named>,
    /// Whether the person said where to begin.
    pub begins: bool,
}

/// One thing that a person named by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A call.
    Call(CallId),
    /// A user entry, or a response with its calls.
    Entry(EntryId),
}

/// A span as a person calls it: by its rounds, or by its entries if it holds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The entries.
    pub span: Span,
    /// The first and the last round that begin there.
    pub rounds: Option<(u32, u32)>,
}

impl Place {
    /// The span as it is called in this run.
    pub fn of(view: &View, span: Span) -> Self {
        let rounds = view.round_numbers(span);
        Self { span, rounds }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rounds {
            Some((first, last)) if first == last => write!(f, "round {first}"),
            Some((first, last)) => write!(f, "rounds {first} to {last}"),
            None if self.span.from == self.span.to => write!(f, "e{}", self.span.from),
            None => write!(f, "e{} to e{}", self.span.from, self.span.to),
        }
    }
}

impl Order {
    /// Finds the entries that the order is about. Past the end is nothing: no bound is moved to fit.
    pub fn resolve(&self, view: &View, now: At) -> Result<Resolved, Refused> {
        self.check()?;
        if view.setup().is_none() {
            return Err(Refused::NoSettings);
        }
        let reach = match self.work {
            Work::Again(overlay) => again(view, overlay)?,
            Work::Rule(..) | Work::Strategies(_) => self.reach(view, now)?,
        };
        let order = self.clone();
        Ok(Resolved { order, reach })
    }

    fn reach(&self, view: &View, now: At) -> Result<Result<Reach, String>, Refused> {
        let Some(newest) = view.rounds().answered() else {
            return Ok(Err(
                "no round is finished yet: there is nothing to hide".to_owned()
            ));
        };
        let bounds = (|| {
            let from = self.from.map(|address| begins(view, address, now));
            let to = self.to.map(|address| ends(view, address, now));
            Ok::<_, String>((from.transpose()?, to.transpose()?))
        })();
        let (from, to) = match bounds {
            Ok(bounds) => bounds,
            Err(nothing) => return Ok(Err(nothing)),
        };
        if let (Some(lower), Some(upper), Some(from), Some(to)) = (from, to, self.from, self.to)
            && lower > upper
        {
            return Err(Refused::Inverted { from, to });
        }
        if let Some(named) = self.from.filter(|from| Some(*from) == self.to)
            && let Some(named) = Named::at(view, named)
        {
            return Ok(named.reach(view, newest));
        }
        let rule = self.rule();
        let first = self.keep_first.unwrap_or(match (from, rule) {
            (Some(_), _) | (None, None) => 0,
            (None, Some(rule)) => rule.keep_first,
        });
        let last = self.keep_last.unwrap_or(match (to, rule) {
            (Some(_), _) => 0,
            (None, Some(rule)) => rule.keep_last,
            (None, None) => KEEP_LAST,
        });
        let total = view.rounds().last().map_or(0, |round| round.number);
        let lower = from.unwrap_or_default();
        let upper = to.unwrap_or(EntryId(u64::MAX));
        let may = |round: &&Round| {
            let ends = round.span().map(|span| span.to);
            round.number > first
                && u64::from(round.number) + u64::from(last) <= u64::from(total)
                && round.number < newest.number
                && round.begins() <= upper
                && ends.is_some_and(|ends| ends >= lower)
        };
        let rounds = view.rounds().all().iter();
        let covered: Vec<&Round> = rounds.filter(may).collect();
        let (Some(begin), Some(end)) = (covered.first(), covered.last()) else {
            return Ok(Err(self.stays(view, to, (first, last, total))));
        };
        let span = Span::new(
            beginning(view, begin, lower),
            end.span().map_or_else(EntryId::default, |span| span.to),
        );
        Ok(Ok(Reach {
            span,
            named: None,
            begins: from.is_some(),
        }))
    }

    /// Says that nothing lies between the bounds.
    fn stays(
        &self,
        view: &View,
        upper: Option<EntryId>,
        (first, last, total): (u32, u32, u32),
    ) -> String {
        let rounds = |number: u32| {
            let unit = if number == 1 { "round" } else { "rounds" };
            format!("{} {unit}", grouped(u64::from(number)))
        };
        let begins = view.rounds().number(1).map(Round::begins);
        if let (Some(to), Some(upper), Some(begins)) = (self.to, upper, begins)
            && upper < begins
        {
            return format!("{to} lies before the first round");
        }
        if self.from.is_some() || self.to.is_some() {
            return "no round lies there that may be hidden: the newest one always stays"
                .to_owned();
        }
        let kept = match (first, last) {
            (0, last) => format!("the last {} stay", last.max(1)),
            (first, last) => format!("the first {first} and the last {} stay", last.max(1)),
        };
        format!("the run has {}, and {kept}", rounds(total))
    }
}

/// Where the span begins: at what a person said before its first round, or at the round itself.
fn beginning(view: &View, round: &Round, lower: EntryId) -> EntryId {
    let begins = round.begins();
    if lower >= begins {
        return begins;
    }
    let task = view.working().task.unwrap_or_default();
    let before = round.number.checked_sub(1);
    let before = before.and_then(|number| view.rounds().number(number)?.span());
    let after = before.map_or(task, |span| span.to.max(task));
    // What a person named stays outside only if it lies before what they named.
    let after = after.max(EntryId(lower.0.saturating_sub(1)));
    view.next_begin(after).unwrap_or(begins).min(begins)
}

/// Where a bound begins; why nowhere.
fn begins(view: &View, address: Address, now: At) -> Result<EntryId, String> {
    let span = address.span(view, now);
    span.map(|span| span.from)
        .ok_or_else(|| nothing(view, address))
}

/// Where a bound ends; why nowhere.
fn ends(view: &View, address: Address, now: At) -> Result<EntryId, String> {
    let span = address.span(view, now);
    if matches!(address, Address::Ago(_)) {
        // Up to then: what came since is what the address points at.
        return Ok(span.map_or(EntryId(u64::MAX), |span| EntryId(span.from.0 - 1)));
    }
    span.map(|span| span.to)
        .ok_or_else(|| nothing(view, address))
}

/// Says that an address points at nothing here, and what it could point at.
fn nothing(view: &View, address: Address) -> String {
    let rounds = view.rounds().all().len();
    let turns = view.rounds().turns().len();
    let has = |number: usize, noun: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{} {noun}{plural}", grouped(number as u64))
    };
    match address {
        Address::Turn(_) | Address::TurnsBack(_) if turns == 1 && rounds > 1 => format!(
            "{address}: this run has one turn of {}; name rounds, such as r1 to r{}",
            has(rounds, "round"),
            rounds.saturating_sub(KEEP_LAST as usize).max(1)
        ),
        Address::Turn(_) | Address::TurnsBack(_) => {
            format!("{address} is not there: the run has {}", has(turns, "turn"))
        }
        Address::Round(_) | Address::RoundsBack(_) | Address::Last => {
            format!(
                "{address} is not there: the run has {}",
                has(rounds, "round")
            )
        }
        Address::Ago(_) => format!("{address}: nothing was recorded since then"),
        Address::LastCompaction => "nothing was compacted yet".to_owned(),
        Address::Call(_) => format!("{address} is not there: no such call was made"),
        Address::Entry(_) | Address::Start | Address::End => {
            let entries = view.transcript().entries().len();
            format!("{address} is not there: the run has {entries} entries")
        }
    }
}

impl Named {
    /// What an address names by itself; `None` if it names a range.
    fn at(view: &View, address: Address) -> Option<Self> {
        match address {
            Address::Call(call) => Some(Self::Call(call)),
            Address::Entry(entry) => match &view.transcript().get(entry)?.event {
                Event::Result(result) => Some(Self::Call(result.call)),
                Event::User(_) => Some(Self::Entry(entry)),
                Event::Response(_) => view.rounds().of_response(entry).map(|_| Self::Entry(entry)),
                Event::Run(_)
                | Event::Setup(_)
                | Event::Request(_)
                | Event::Started(_)
                | Event::Overlay(_)
                | Event::Retract(_)
                | Event::Pin(_)
                | Event::Unpin(_)
                | Event::Fault(_)
                | Event::Note(_)
                | Event::End(_)
                | Event::Unknown(_) => None,
            },
            Address::Round(_)
            | Address::RoundsBack(_)
            | Address::Turn(_)
            | Address::TurnsBack(_)
            | Address::Ago(_)
            | Address::Last
            | Address::LastCompaction
            | Address::Start
            | Address::End => None,
        }
    }

    /// The round that it belongs to, or it alone if it belongs to none.
    fn reach(self, view: &View, newest: &Round) -> Result<Reach, String> {
        let (name, entry) = match self {
            Self::Call(call) => (call.to_string(), call.response),
            Self::Entry(entry) => (format!("e{entry}"), entry),
        };
        if entry > newest.begins() {
            return Err(format!(
                "{name} belongs to the newest round, which always stays"
            ));
        }
        Ok(Reach {
            span: whole(view, entry),
            named: Some(self),
            begins: true,
        })
    }
}

/// What the layer of an overlay that is laid again covers.
fn again(view: &View, overlay: EntryId) -> Result<Result<Reach, String>, Refused> {
    let laid = view.overlay(overlay).ok_or(Refused::NoOverlay(overlay))?;
    let mut standing = view.overlays().into_iter();
    let same = |other: &EntryId| {
        view.overlay(*other)
            .is_some_and(|it| it.layer == laid.layer)
    };
    if let Some(other) = standing.find(same) {
        return Err(if other == overlay {
            Refused::Stands(overlay)
        } else {
            Refused::StandsAs { overlay, other }
        });
    }
    let span = match &laid.layer {
        Layer::Summary(summary) => Some(summary.span),
        Layer::Stub(stub) => around(view, stub.results.iter().chain(&stub.arguments)),
        Layer::Hide(hide) => {
            let entries = hide.attachments.iter().map(|(entry, _)| *entry);
            let entries = entries.chain(hide.reasoning.iter().copied());
            let entries = entries.map(|entry| whole(view, entry));
            let rounds = hide.rounds.iter().copied();
            let calls = around(view, hide.calls.iter());
            entries.chain(rounds).chain(calls).reduce(Span::union)
        }
        Layer::Show(show) => around(view, show.calls.iter()),
    };
    let reach = span.map(|span| Reach {
        span,
        named: None,
        begins: true,
    });
    Ok(reach.ok_or_else(|| format!("e{overlay} covers nothing")))
}

/// The rounds of these calls.
fn around<'a>(view: &View, calls: impl Iterator<Item = &'a CallId>) -> Option<Span> {
    calls
        .map(|call| whole(view, call.response))
        .reduce(Span::union)
}

/// The round of a response, or the entry alone.
fn whole(view: &View, entry: EntryId) -> Span {
    let round = view.rounds().of_response(entry);
    let span = round.and_then(Round::span);
    span.unwrap_or(Span::new(entry, entry))
}
