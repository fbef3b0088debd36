//! How one thing points at another: entries, calls, runs and spans of entries.
//!
//! Everything is pointed at by id, never by position in some list, and ordered by entry id,
//! never by clock.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};
use uuid::Uuid;

/// The id of an entry: 1, 2, 3 … without gaps within a transcript.
///
/// Serialized as an integer; typed and shown by people as `e210`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    serde::Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct EntryId(pub u64);

impl EntryId {
    /// The id of the first entry of every transcript.
    pub const FIRST: Self = Self(1);

    /// The id of the entry that follows.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One tool call: the entry of its response, and its place there, from 1.
///
/// Written `17.2`. The provider's own id, which need not be unique, is never used for this. The
/// same text is the call's *handle*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The entry of the response that made the call.
    pub response: EntryId,
    /// Its place among the calls of the response, from 1.
    pub place: u32,
}

impl CallId {
    /// The call at `place` (from 1) of the response at `response`.
    pub fn new(response: EntryId, place: u32) -> Self {
        Self { response, place }
    }

    /// The call at `index` (from 0) among the calls of the response at `response`.
    pub fn at(response: EntryId, index: usize) -> Self {
        let place = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        Self { response, place }
    }

    /// Its index (from 0) among the calls of its response; `None` for a place that is none.
    pub fn index(self) -> Option<usize> {
        usize::try_from(self.place).ok()?.checked_sub(1)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.response, self.place)
    }
}

/// A text is not an id of the kind it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {kind}")]
pub struct ParseIdError {
    text: String,
    kind: &'static str,
}

impl ParseIdError {
    fn new(text: &str, kind: &'static str) -> Self {
        Self {
            text: text.chars().take(80).collect(),
            kind,
        }
    }
}

/// Reads a value that is written as a text, of which no copy is made.
pub(crate) fn spelled<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    deserializer.deserialize_str(Spelled(PhantomData))
}

/// The text of such a value.
struct Spelled<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> de::Visitor<'_> for Spelled<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// The schema of an id that is written as a text of this form.
fn written(pattern: &str, description: &str) -> Schema {
    json_schema!({"type": "string", "pattern": pattern, "description": description})
}

/// Parses a number as we write it: digits only, no sign, no leading zero, not 0.
fn positive<N: FromStr>(text: &str) -> Option<N> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    if plain { text.parse().ok() } else { None }
}

impl FromStr for CallId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('.').and_then(|(response, place)| {
            Some(Self::new(EntryId(positive(response)?), positive(place)?))
        });
        parts.ok_or_else(|| ParseIdError::new(text, "call, such as 17.2"))
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        spelled(deserializer)
    }
}

impl JsonSchema for CallId {
    fn schema_name() -> Cow<'static, str> {
        "CallId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        written(
            r"^[1-9][0-9]*\.[1-9][0-9]*$",
            "A call: the entry of its response, a dot, its place there from 1.",
        )
    }
}

/// The id of a run: a UUID of version 7, shown to people by its last 8 digits.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct RunId(pub Uuid);

impl RunId {
    /// The last 8 hexadecimal digits, by which people name a run.
    pub fn short(self) -> String {
        let text = self.0.simple().to_string();
        text[text.len() - 8..].to_owned()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.hyphenated(), f)
    }
}

impl FromStr for RunId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text)
            .map(Self)
            .map_err(|_| ParseIdError::new(text, "run id"))
    }
}

impl JsonSchema for RunId {
    fn schema_name() -> Cow<'static, str> {
        "RunId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        written(
            "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
            "The id of a run: a UUID of version 7.",
        )
    }
}

/// A range of entries, both ends inclusive. Serialized as `[from, to]`.
///
/// A span that is laid begins at a round's request or a user entry, and ends at the last result
/// (or the response) of a closed round or at a user entry. Nothing else relies on that: any pair
/// is read, and an inverted one is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first entry.
    pub from: EntryId,
    /// The last entry.
    pub to: EntryId,
}

impl Span {
    /// The entries from `from` to `to`, both included.
    pub fn new(from: EntryId, to: EntryId) -> Self {
        Self { from, to }
    }

    /// Whether the entry lies in the span.
    pub fn contains(self, entry: EntryId) -> bool {
        self.from <= entry && entry <= self.to
    }

    /// The number of entries in the span.
    pub fn entries(self) -> u64 {
        if self.to < self.from {
            0
        } else {
            (self.to.0 - self.from.0).saturating_add(1)
        }
    }

    /// Whether the two have an entry in common.
    pub fn meets(self, other: Self) -> bool {
        self.from.max(other.from) <= self.to.min(other.to)
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            from: self.from.min(other.from),
            to: self.to.max(other.to),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}–e{}", self.from, self.to)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.from, self.to).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (from, to) = Deserialize::deserialize(deserializer)?;
        Ok(Self { from, to })
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "items": generator.subschema_for::<EntryId>(),
            "minItems": 2,
            "maxItems": 2,
            "description": "A range of entries, both ends inclusive."
        })
    }
}

/// A SHA-256 digest, written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The 64 hexadecimal digits alone: the name of a blob.
    pub fn hex(self) -> String {
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits
            .map(|digit| char::from(DIGITS[usize::from(digit)]))
            .collect()
    }
}

/// The digits of a digest, as they are written.
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The value of such a digit.
fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let digits: &[u8; 64] = text.strip_prefix("sha256:")?.as_bytes().try_into().ok()?;
            let mut bytes = [0; 32];
            for (byte, [high, low]) in bytes.iter_mut().zip(digits.as_chunks().0) {
                *byte = value(*high)? << 4 | value(*low)?;
            }
            Some(Self(bytes))
        };
        parse().ok_or_else(|| ParseIdError::new(text, "digest, such as sha256:9f86…"))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        spelled(deserializer)
    }
}

impl JsonSchema for Digest {
    fn schema_name() -> Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        written("^sha256:[0-9a-f]{64}$", "A SHA-256 digest.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_written_as_response_dot_place() {
        let call = CallId::new(EntryId(17), 2);
        assert_eq!(call.to_string(), "17.2");
        assert_eq!("17.2".parse(), Ok(call));
        for text in [
            "", "17", "17.", ".2", "0.1", "17.0", "+17.2", "17.02", "17.2.3", "17.-1", "x.y",
        ] {
            assert!(text.parse::<CallId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_span_is_a_pair_and_may_be_empty() {
        let span: Span = serde_json::from_str("[12,371]").unwrap();
        assert_eq!(serde_json::to_string(&span).unwrap(), "[12,371]");
        assert_eq!(span.entries(), 360);
        assert!(span.contains(EntryId(12)) && span.contains(EntryId(371)));
        assert!(span.meets(Span::new(EntryId(371), EntryId(400))));
        assert!(!span.meets(Span::new(EntryId(372), EntryId(400))));
        assert_eq!(Span::new(EntryId(5), EntryId(4)).entries(), 0);
    }

    #[test]
    fn a_digest_round_trips_and_nothing_else_parses() {
        let digest = Digest::of(b"abc");
        assert_eq!(
            digest.to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!(digest.hex().parse::<Digest>().is_err());
        assert!(digest.to_string().to_uppercase().parse::<Digest>().is_err());
        assert!(
            "sha256:+a7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
                .parse::<Digest>()
                .is_err()
        );
    }

    #[test]
    fn a_run_is_shown_by_its_last_eight_digits() {
        let run: RunId = "0199d6a2-7b1c-7000-8000-00007c31d0f2".parse().unwrap();
        assert_eq!(run.short(), "7c31d0f2");
    }
}
