//! Addresses: how a person points into a run.
//!
//! The same text is typed and shown, and none needs quoting in a shell. An address is parsed
//! without a run; [`Address::span`] finds the entries it points at, [`Address::request`] the request.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::id::{CallId, EntryId, Span};
use crate::transcript::turn::Round;
use crate::transcript::{At, Entry, Event};
use crate::view::View;

/// A place in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// `e210`: an entry.
    Entry(EntryId),
    /// `r120`: a round, from 1.
    Round(u32),
    /// `r-3`: so many rounds before the last.
    RoundsBack(u32),
    /// `t5` or `5`: a turn, from 1.
    Turn(u32),
    /// `-3` or `t-3`: so many turns before the last.
    TurnsBack(u32),
    /// `41.2`: a call.
    Call(CallId),
    /// `5h`: so long ago, in milliseconds.
    Ago(u64),
    /// `last`: the last round.
    Last,
    /// `last-compaction`: the last pass of overlays.
    LastCompaction,
    /// `start`: before everything.
    Start,
    /// `end`: the last entry, and the newest request.
    End,
}

/// The units of time, longest first, in milliseconds.
const UNITS: [(char, u64); 4] = [
    ('d', 86_400_000),
    ('h', 3_600_000),
    ('m', 60_000),
    ('s', 1_000),
];

/// A text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no address; use e210 (entry), r120 or r-3 (round), 5 or -3 (turn), 41.2 (call), \
     5h (ago), last, last-compaction, start or end"
)]
pub struct ParseAddressError(String);

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| ParseAddressError(text.chars().take(40).collect()))
    }
}

fn parse(text: &str) -> Option<Address> {
    match text {
        "last" => return Some(Address::Last),
        "last-compaction" => return Some(Address::LastCompaction),
        "start" => return Some(Address::Start),
        "end" => return Some(Address::End),
        _ => {}
    }
    if let Ok(call) = text.parse() {
        return Some(Address::Call(call));
    }
    if let Some(entry) = text.strip_prefix('e') {
        let id = number(entry)?;
        return (id > 0).then_some(Address::Entry(EntryId(id)));
    }
    if let Some(round) = text.strip_prefix('r') {
        return from_either_end(round, Address::Round, Address::RoundsBack);
    }
    for (unit, ms) in UNITS {
        if let Some(amount) = text.strip_suffix(unit) {
            return Some(Address::Ago(number::<u64>(amount)?.checked_mul(ms)?));
        }
    }
    let turn = text.strip_prefix('t').unwrap_or(text);
    from_either_end(turn, Address::Turn, Address::TurnsBack)
}

/// A number counted from the start, from 1, or with a minus sign from the last, from 0.
fn from_either_end(
    text: &str,
    forward: fn(u32) -> Address,
    back: fn(u32) -> Address,
) -> Option<Address> {
    if let Some(text) = text.strip_prefix('-') {
        return number(text).map(back);
    }
    number(text).filter(|place| *place > 0).map(forward)
}

/// Digits and nothing else: what the standard library reads may begin with a plus sign.
fn number<N: FromStr>(text: &str) -> Option<N> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

impl Address {
    /// The entries that it points at in this run: a round from its request to its last result, a
    /// turn up to the next one, a call from its response to its result, a time everything since.
    /// `None` past the end: nothing is moved to fit.
    pub fn span(self, view: &View, now: At) -> Option<Span> {
        let transcript = view.transcript();
        let last = transcript.last()?.id;
        match self {
            Self::Entry(id) => transcript
                .get(id)
                .map(|entry| Span::new(entry.id, entry.id)),
            Self::Round(_) | Self::RoundsBack(_) | Self::Last => {
                let round = self.round(view)?;
                let newest = round.requests.last().copied()?;
                let span = round.span();
                Some(span.unwrap_or(Span::new(round.begins(), newest)))
            }
            Self::Turn(turn) => turn_span(view, usize::try_from(turn).ok()?.checked_sub(1)?, last),
            Self::TurnsBack(places) => {
                turn_span(view, back(view.rounds().turns().len(), places)?, last)
            }
            Self::Call(call) => {
                view.tool_call(call)?;
                let result = view.result_of(call).map(|(entry, _)| entry);
                Some(Span::new(call.response, result.unwrap_or(call.response)))
            }
            Self::Ago(ms) => {
                let since = At(now.0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)));
                let mut entries = transcript.entries().iter();
                let first = entries.find(|entry| entry.at >= since)?.id;
                Some(Span::new(first, last))
            }
            Self::LastCompaction => {
                let newest = view.ledger().overlay?;
                let pass = view.overlay(newest)?.pass.min(newest);
                Some(Span::new(pass, newest))
            }
            Self::Start => Some(Span::new(EntryId::FIRST, EntryId::FIRST)),
            Self::End => Some(Span::new(last, last)),
        }
    }

    /// The request that it points at: of a round the one that was answered, of what belongs to a
    /// request that one, of the end the newest, of all else the first request that came after it.
    /// `None` if none did.
    pub fn request(self, view: &View, now: At) -> Option<EntryId> {
        if let Some(round) = self.round(view) {
            return round.requests.last().copied();
        }
        let is_request = |entry: &&Arc<Entry>| matches!(entry.event, Event::Request(_));
        if self == Self::End {
            let newest = view.transcript().entries().iter().rfind(is_request);
            return newest.map(|entry| entry.id);
        }
        let from = self.span(view, now)?.from;
        let entry = view.transcript().get(from)?;
        let round_of = |call: CallId| view.response(call.response).map(|made| made.request);
        let own = match &entry.event {
            Event::Request(_) => Some(from),
            Event::Response(response) => Some(response.request),
            Event::Fault(fault) => Some(fault.request),
            Event::Started(started) => round_of(started.call),
            Event::Result(result) => round_of(result.call),
            Event::Run(_)
            | Event::Setup(_)
            | Event::User(_)
            | Event::Overlay(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => None,
        };
        own.or_else(|| {
            let mut later = view.transcript().from(from).iter();
            later.find(is_request).map(|entry| entry.id)
        })
    }

    fn round(self, view: &View) -> Option<&Round> {
        let rounds = view.rounds();
        match self {
            Self::Round(number) => rounds.number(number),
            Self::RoundsBack(places) => {
                let place = back(rounds.all().len(), places)?;
                rounds.all().get(place)
            }
            Self::Last => rounds.last(),
            Self::Entry(_)
            | Self::Turn(_)
            | Self::TurnsBack(_)
            | Self::Call(_)
            | Self::Ago(_)
            | Self::LastCompaction
            | Self::Start
            | Self::End => None,
        }
    }
}

/// From the user entry that begins a turn to the entry before the next turn.
fn turn_span(view: &View, place: usize, last: EntryId) -> Option<Span> {
    let turns = view.rounds().turns();
    let next = turns.get(place + 1).map(|next| EntryId(next.0 - 1));
    Some(Span::new(*turns.get(place)?, next.unwrap_or(last)))
}

/// The place so many before the last; `None` before the first.
fn back(all: usize, places: u32) -> Option<usize> {
    all.checked_sub(1)?
        .checked_sub(usize::try_from(places).ok()?)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(id) => write!(f, "e{id}"),
            Self::Round(round) => write!(f, "r{round}"),
            Self::RoundsBack(rounds) => write!(f, "r-{rounds}"),
            Self::Turn(turn) => write!(f, "t{turn}"),
            Self::TurnsBack(turns) => write!(f, "-{turns}"),
            Self::Call(call) => write!(f, "{call}"),
            Self::Ago(ms) => {
                let fits = |(_, unit): &&(char, u64)| ms % unit == 0;
                let (unit, length) = UNITS.iter().find(fits).unwrap_or(&('s', 1_000));
                write!(f, "{}{unit}", ms / length)
            }
            Self::Last => f.write_str("last"),
            Self::LastCompaction => f.write_str("last-compaction"),
            Self::Start => f.write_str("start"),
            Self::End => f.write_str("end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_typed_and_shown_alike() {
        for (text, address) in [
            ("e210", Address::Entry(EntryId(210))),
            ("r120", Address::Round(120)),
            ("r-3", Address::RoundsBack(3)),
            ("t5", Address::Turn(5)),
            ("-3", Address::TurnsBack(3)),
            ("41.2", Address::Call(CallId::new(EntryId(41), 2))),
            ("5h", Address::Ago(18_000_000)),
            ("2d", Address::Ago(172_800_000)),
            ("90s", Address::Ago(90_000)),
            ("last", Address::Last),
            ("last-compaction", Address::LastCompaction),
            ("start", Address::Start),
            ("end", Address::End),
        ] {
            assert_eq!(text.parse(), Ok(address));
            assert_eq!(address.to_string(), text);
        }
        assert_eq!("5".parse(), Ok(Address::Turn(5)));
        assert_eq!("t-0".parse(), Ok(Address::TurnsBack(0)));
    }

    /// Two turns: one of a round with two calls and a pass, one of a request that was asked again
    /// in another form.
    fn run() -> View {
        let lines = [
            r#"{"id":1,"at":"2026-11-21T20:00:00.000Z","type":"run","format":1,"run":"0199d6a2-7b1c-7000-8000-00007c31d0f2","workspace":"/w","generator":"g"}"#,
            r#"{"id":2,"at":"2026-11-21T20:00:00.000Z","type":"user","origin":"task","text":"a"}"#,
            r#"{"id":3,"at":"2026-11-21T20:00:00.000Z","type":"request","purpose":{"kind":"round"},"round":1,"setup":2,"renderer":1,"body":{"sha256":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","bytes":1},"estimate":{"chars":1,"base":1,"factor":1000,"tokens":1}}"#,
            r#"{"id":4,"at":"2026-11-21T20:00:00.000Z","type":"response","request":3,"calls":[{"name":"R","arguments":"{}"},{"name":"R","arguments":"{}"}],"ending":"complete"}"#,
            r#"{"id":5,"at":"2026-11-21T20:00:00.000Z","type":"result","call":"4.1","status":"ok","content":"one"}"#,
            r#"{"id":6,"at":"2026-11-21T20:00:00.000Z","type":"result","call":"4.2","status":"ok","content":"two"}"#,
            r#"{"id":7,"at":"2026-11-21T20:00:00.000Z","type":"overlay","origin":"micro","rule":"micro","pass":7,"layer":{"kind":"stub","form":"previous","results":["4.1"]},"size":{"before":2,"after":1}}"#,
            r#"{"id":8,"at":"2026-11-21T21:00:00.000Z","type":"user","origin":"follow_up","text":"b"}"#,
            r#"{"id":9,"at":"2026-11-21T21:00:00.000Z","type":"request","purpose":{"kind":"round"},"round":2,"setup":2,"renderer":1,"body":{"sha256":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","bytes":1},"estimate":{"chars":1,"base":1,"factor":1000,"tokens":1}}"#,
            r#"{"id":10,"at":"2026-11-21T21:00:00.000Z","type":"request","purpose":{"kind":"round"},"round":2,"setup":2,"renderer":1,"body":{"sha256":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","bytes":1},"estimate":{"chars":1,"base":1,"factor":1000,"tokens":1}}"#,
            r#"{"id":11,"at":"2026-11-21T21:00:00.000Z","type":"end","reason":"interrupted"}"#,
        ];
        View::of(lines.map(|line| std::sync::Arc::new(serde_json::from_str(line).unwrap())))
    }

    #[test]
    fn an_address_points_at_entries_and_at_a_request() {
        let view = run();
        let now = "2026-11-21T21:30:00.000Z".parse().unwrap();
        for (text, span, request) in [
            ("e5", Some((5, 5)), Some(3)),
            ("e7", Some((7, 7)), Some(9)),
            ("e11", Some((11, 11)), None),
            ("e12", None, None),
            ("r1", Some((3, 6)), Some(3)),
            ("r2", Some((9, 10)), Some(10)),
            ("r3", None, None),
            ("r-1", Some((3, 6)), Some(3)),
            ("r-2", None, None),
            ("last", Some((9, 10)), Some(10)),
            ("t1", Some((2, 7)), Some(3)),
            ("2", Some((8, 11)), Some(9)),
            ("-1", Some((2, 7)), Some(3)),
            ("-2", None, None),
            ("3", None, None),
            ("4.1", Some((4, 5)), Some(3)),
            ("4.3", None, None),
            ("45m", Some((8, 11)), Some(9)),
            ("5m", None, None),
            ("last-compaction", Some((7, 7)), Some(9)),
            ("start", Some((1, 1)), Some(3)),
            ("end", Some((11, 11)), Some(10)),
        ] {
            let address: Address = text.parse().unwrap();
            let found = address
                .span(&view, now)
                .map(|span| (span.from.0, span.to.0));
            assert_eq!(found, span, "{text}");
            let found = address.request(&view, now).map(|request| request.0);
            assert_eq!(found, request, "{text}");
        }
        assert_eq!(Address::Last.span(&View::default(), now), None);
    }

    #[test]
    fn nothing_else_is_an_address() {
        for text in [
            "",
            "e",
            "e0",
            "e-1",
            "r0",
            "r",
            "r+1",
            "t",
            "t0",
            "0",
            "+5",
            "--3",
            "41.0",
            "h",
            "-5h",
            "5w",
            "5 ",
            "E5",
            "end1",
            "99999999999",
            "99999999999999999999h",
            "r１",
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("`{text}` is no address"))
            );
        }
    }
}
