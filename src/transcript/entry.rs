//! One line of a transcript: an id, a time, and what happened.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::id::{EntryId, spelled};
use crate::transcript::{Event, Unknown};

/// One entry.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its id; order is the id's.
    pub id: EntryId,
    /// When it was recorded. Information only: nothing is ordered by it.
    pub at: At,
    /// What happened.
    pub event: Event,
}

/// A moment, in milliseconds since the Unix epoch. Written as `2026-11-21T20:00:00.123Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At(pub i64);

impl At {
    /// The moment this many milliseconds later.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// The milliseconds from `earlier` to this moment; 0 if the clock was set back.
    pub fn ms_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        write!(f, "{time:.3}")
    }
}

impl FromStr for At {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match as_written(text) {
            Some(ms) => Ok(Self(ms)),
            None => Ok(Self(text.parse::<jiff::Timestamp>()?.as_millisecond())),
        }
    }
}

/// The milliseconds of a moment in the one spelling that we write; `None` for any other, and for what
/// is no moment. It stands in every entry, and a parser of all spellings takes ten times as long.
fn as_written(text: &str) -> Option<i64> {
    let text: &[u8; 24] = text.as_bytes().try_into().ok()?;
    let marks = b"--T::.Z".iter().zip([4, 7, 10, 13, 16, 19, 23]);
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0_i64, |number, digit| {
            digit
                .is_ascii_digit()
                .then(|| number * 10 + i64::from(digit - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let leaps = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leaps),
        _ => 31,
    };
    let exists = year >= 1970
        && (1..=12).contains(&month)
        && (1..=days).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !exists || marks.into_iter().any(|(mark, at)| text[at] != *mark) {
        return None;
    }
    // Years that begin in March end with the day that not every year has.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let before = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5;
    let seconds = ((before + day - 719_469) * 24 + hour) * 3600 + minute * 60 + second;
    Some(seconds * 1000 + number(20, 23)?)
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        spelled(deserializer)
    }
}

impl JsonSchema for At {
    fn schema_name() -> Cow<'static, str> {
        "At".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A moment in UTC, to the millisecond."
        })
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Line<'a> {
            id: EntryId,
            at: At,
            #[serde(flatten)]
            event: &'a Event,
        }
        if let Event::Unknown(unknown) = &self.event {
            return unknown.json.serialize(serializer);
        }
        Line {
            id: self.id,
            at: self.at,
            event: &self.event,
        }
        .serialize(serializer)
    }
}

/// A line of a transcript: what stands in every entry, and what its type says.
impl JsonSchema for Entry {
    fn schema_name() -> Cow<'static, str> {
        "Entry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (id, at) = (
            generator.subschema_for::<EntryId>(),
            generator.subschema_for::<At>(),
        );
        json_schema!({
            "description": "An entry of a transcript.",
            "type": "object",
            "properties": {
                "id": id,
                "at": at,
                "crc": {
                    "type": "string",
                    "pattern": "^[0-9a-f]{8}$",
                    "description": "CRC-32C of the line's bytes before `,\"crc\"`."
                }
            },
            "required": ["id", "at", "type"],
            "allOf": [generator.subschema_for::<Event>()]
        })
    }
}

/// Reads an entry from JSON text. Total but for the id: whatever else is not understood makes the
/// event [`Event::Unknown`].
impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text is read twice, once for the type and once for the body that it names: a
        // flattened, tagged enum would first copy everything into a tree.
        #[derive(serde::Deserialize)]
        struct Head {
            id: EntryId,
            #[serde(default)]
            at: Option<At>,
            #[serde(rename = "type", default)]
            kind: String,
        }
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        let head: Head = serde_json::from_str(raw.get()).map_err(de::Error::custom)?;
        let event = event(&head.kind, raw).unwrap_or_else(|why| {
            Event::Unknown(Unknown {
                kind: head.kind.clone(),
                json: raw.to_owned(),
                why,
            })
        });
        Ok(Self {
            id: head.id,
            at: head.at.unwrap_or_default(),
            event,
        })
    }
}

/// Reads the event of a known type, or says why it is not understood (nothing, if the type itself
/// is not known).
fn event(kind: &str, raw: &RawValue) -> Result<Event, Option<String>> {
    fn body<T: DeserializeOwned>(raw: &RawValue) -> Result<T, Option<String>> {
        serde_json::from_str(raw.get()).map_err(|error| Some(error.to_string()))
    }
    Ok(match kind {
        "run" => Event::Run(body(raw)?),
        "setup" => Event::Setup(body(raw)?),
        "user" => Event::User(body(raw)?),
        "request" => Event::Request(body(raw)?),
        "response" => Event::Response(body(raw)?),
        "started" => Event::Started(body(raw)?),
        "result" => Event::Result(body(raw)?),
        "overlay" => Event::Overlay(body(raw)?),
        "retract" => Event::Retract(body(raw)?),
        "pin" => Event::Pin(body(raw)?),
        "unpin" => Event::Unpin(body(raw)?),
        "fault" => Event::Fault(body(raw)?),
        "note" => Event::Note(body(raw)?),
        "end" => Event::End(body(raw)?),
        _ => return Err(None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_with_three_digits_in_utc() {
        for (ms, text) in [
            (1_795_291_200_123, "2026-11-21T20:00:00.123Z"),
            (1_795_291_200_000, "2026-11-21T20:00:00.000Z"),
        ] {
            assert_eq!(At(ms).to_string(), text);
            assert_eq!(text.parse::<At>().unwrap(), At(ms));
        }
    }

    #[test]
    fn a_moment_is_the_same_by_the_short_way() {
        // Every day of some centuries, and what is none.
        let day = 24 * 3600 * 1000;
        for ms in (0..200_000).map(|days| days * day + days % day * 997 % day) {
            let text = At(ms).to_string();
            assert_eq!(as_written(&text), Some(ms), "{text}");
        }
        for text in [
            "2026-02-29T20:00:00.123Z",
            "1900-01-01T20:00:00.123Z",
            "2026-13-01T20:00:00.123Z",
            "2026-00-01T20:00:00.123Z",
            "2026-11-31T20:00:00.123Z",
            "2026-11-00T20:00:00.123Z",
            "2026-11-21T24:00:00.123Z",
            "2026-11-21T20:60:00.123Z",
            "2026-11-21T20:00:60.123Z",
            "2026-11-21T20:00:00.+23Z",
            "2026-11-21T20:00:00.123z",
            "2026-11-21 20:00:00.123Z",
            "2026-11-21T20:00:00Z",
            "",
        ] {
            assert_eq!(as_written(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_kept_as_it_is() {
        for (line, kind, why) in [
            (r#"{"id":7,"type":"dream","x":[1, 2]}"#, "dream", None),
            (
                r#"{"id":7,"type":"started","call":17}"#,
                "started",
                Some("invalid type"),
            ),
            (r#"{"id":7}"#, "", None),
        ] {
            let entry: Entry = serde_json::from_str(line).unwrap();
            let Event::Unknown(unknown) = &entry.event else {
                panic!("{entry:?}")
            };
            assert_eq!((entry.id, unknown.kind.as_str()), (EntryId(7), kind));
            assert_eq!(unknown.why.is_some(), why.is_some());
            assert_eq!(serde_json::to_string(&entry).unwrap(), line);
        }
        assert!(serde_json::from_str::<Entry>(r#"{"type":"end"}"#).is_err());
    }
}
