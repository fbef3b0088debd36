//! Addresses: how a person points into a run.
//!
//! The same text is typed and shown, and none needs quoting in a shell. An address is parsed
//! without a run; what it points at is found when it meets one.

use std::fmt;
use std::str::FromStr;

use crate::id::{CallId, EntryId};

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
    /// `end`: after everything.
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
