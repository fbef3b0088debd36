//! Two requests of a run held against each other: messages that came, went and changed, and the first
//! byte from which a provider's cache is of no use.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::explain::blame::{Blamed, blamed};
use crate::explain::{Moment, Sent};
use crate::view::{Anatomy, As, Placed, Source};
use crate::wire::TAIL;

/// What is different between two requests, the first called A, the second B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The first request.
    pub a: Sent,
    /// The second.
    pub b: Sent,
    /// What the whole of each takes.
    pub sizes: [Amount; 2],
    /// How many messages each has.
    pub messages: [u64; 2],
    /// How many of them are the same in both.
    pub same: u64,
    /// The others, in the order in which they are read.
    pub differences: Vec<Difference>,
    /// The first byte that is not the same; absent if every one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstChange>,
    /// What both begin with: where a provider keeps a cache, B does not pay it in full.
    pub common: Amount,
    /// What A had behind that: it was cached, and is of no use to B.
    pub lost: Amount,
    /// What B has behind that.
    pub anew: Amount,
}

/// A size, in two measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Amount {
    /// Bytes.
    pub bytes: u64,
    /// Tokens, as they are estimated.
    pub tokens: u64,
}

/// A message that is not the same in both requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// What became of it.
    pub kind: Kind,
    /// What it comes from.
    pub source: Source,
    /// The message in A; absent if it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<Blamed>,
    /// The message in B; absent if it went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<Blamed>,
    /// How what it comes from read when A was made.
    pub was: As,
    /// How it read when B was made.
    pub is: As,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It is in B alone.
    Came,
    /// It is in A alone.
    Went,
    /// It is in both, and says something else.
    Changed,
}

/// Where two bodies part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FirstChange {
    /// The byte, from 0.
    pub offset: u64,
    /// The message of B that it lies in, from 1, or of A if B has no more; absent if it lies before
    /// all messages: other instructions, tools or parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<u64>,
    /// What that message comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// What is different between two requests; `None` if the entries before one of them make none.
pub fn compare(a: &Moment, b: &Moment) -> Option<Comparison> {
    let (of_a, of_b) = (a.anatomy()?, b.anatomy()?);
    let same_bytes = of_a.bytes.iter().zip(&of_b.bytes);
    let common = same_bytes.take_while(|(a, b)| a == b).count();
    let differences = differences(a, b, &of_a, &of_b);
    let gone = differences.iter().filter(|it| it.kind != Kind::Came);
    let same = of_a.messages.len().saturating_sub(gone.count());
    let tokens = |moment: &Moment, bytes: &[u8]| Amount {
        bytes: bytes.len() as u64,
        tokens: moment.view.estimate_bytes(bytes).tokens,
    };
    Some(Comparison {
        a: a.sent,
        b: b.sent,
        sizes: [tokens(a, &of_a.bytes), tokens(b, &of_b.bytes)],
        messages: [&of_a, &of_b].map(|it| it.messages.len() as u64),
        same: same as u64,
        differences,
        first: (of_a.bytes != of_b.bytes).then(|| first(common, &of_a, &of_b)),
        common: tokens(b, &of_b.bytes[..common]),
        lost: tokens(a, behind(&of_a.bytes, common)),
        anew: tokens(b, behind(&of_b.bytes, common)),
    })
}

/// What stands behind so many bytes. What closes a body is no part of it that could be cached.
fn behind(bytes: &[u8], common: usize) -> &[u8] {
    let end = bytes.len().saturating_sub(TAIL.len());
    bytes.get(common.min(end)..end).unwrap_or_default()
}

/// The message that a byte lies in.
fn first(offset: usize, a: &Anatomy<'_>, b: &Anatomy<'_>) -> FirstChange {
    let within = |anatomy: &Anatomy<'_>| {
        let starts = anatomy.messages.first()?.at.start;
        let place = anatomy.messages.iter().position(|it| offset < it.at.end);
        let place = place.filter(|_| offset + 1 >= starts)?;
        Some((place as u64 + 1, anatomy.messages[place].reading.source))
    };
    let found = within(b).or_else(|| within(a));
    FirstChange {
        offset: offset as u64,
        message: found.map(|(message, _)| message),
        source: found.map(|(_, source)| source),
    }
}

/// Messages are told apart by what they come from, so that one that was stubbed is one that changed.
fn differences(a: &Moment, b: &Moment, of_a: &Anatomy<'_>, of_b: &Anatomy<'_>) -> Vec<Difference> {
    let (in_a, in_b) = (blamed(&a.view, of_a), blamed(&b.view, of_b));
    let places = |messages: &[Placed<'_>]| -> BTreeMap<Source, usize> {
        let sources = messages.iter().map(|placed| placed.reading.source);
        sources.zip(0..).collect()
    };
    let (places_a, places_b) = (places(&of_a.messages), places(&of_b.messages));
    let difference = |kind, source, a_place: Option<usize>, b_place: Option<usize>| Difference {
        kind,
        source,
        a: a_place.and_then(|place| in_a.get(place).cloned()),
        b: b_place.and_then(|place| in_b.get(place).cloned()),
        was: a.view.stands_as(source),
        is: b.view.stands_as(source),
    };
    let mut differences = Vec::new();
    let mut seen = 0;
    let went = |seen: &mut usize, until: usize, differences: &mut Vec<Difference>| {
        while *seen < until {
            let source = of_a.messages[*seen].reading.source;
            if !places_b.contains_key(&source) {
                differences.push(difference(Kind::Went, source, Some(*seen), None));
            }
            *seen += 1;
        }
    };
    for (place, placed) in of_b.messages.iter().enumerate() {
        let source = placed.reading.source;
        if let Some(before) = places_a.get(&source) {
            went(&mut seen, *before, &mut differences);
            seen = seen.max(*before + 1);
            if of_a.messages[*before].reading.message != placed.reading.message {
                let (a, b) = (Some(*before), Some(place));
                differences.push(difference(Kind::Changed, source, a, b));
            }
        } else {
            // What it stands in the place of goes first.
            let mut rest = of_a.messages.iter().skip(seen);
            let stays = |it: &Placed<'_>| places_b.contains_key(&it.reading.source);
            let gone = rest.position(stays);
            let until = gone.map_or(of_a.messages.len(), |gone| seen + gone);
            went(&mut seen, until, &mut differences);
            differences.push(difference(Kind::Came, source, None, Some(place)));
        }
    }
    went(&mut seen, of_a.messages.len(), &mut differences);
    differences
}
