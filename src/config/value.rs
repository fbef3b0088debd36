//! The kinds of values that `config.yaml` knows beside numbers and texts.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};

use crate::exchange::{Hint, Treatment};
use crate::record::Durability;

/// A length of time, written `250ms`, `90s`, `5m` or `1h30m`, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration(pub u64);

/// The units of time, in milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// How a length of time is written.
const LENGTH: &str = "^([0-9]+(ms|s|m|h|d))+$";

/// Says in JSON Schema what may stand for a value.
macro_rules! schema {
    ($type:ident: $schema:tt) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

/// A text is not a value of the kind it should be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ValueError {
    /// A length of time without a unit.
    #[error("`{0}` needs a unit, such as {0}s or {0}m")]
    NoUnit(String),
    /// No length of time at all.
    #[error("`{0}` is no length of time, such as 250ms, 90s, 5m or 1h30m")]
    Duration(String),
    /// Not a part of one.
    #[error("{0} is not between 0 and 1")]
    Ratio(f64),
    /// No time at all where some must pass.
    #[error("`{0}` is no time at all; it must be longer")]
    NoTime(String),
    /// Not a number that says how many times as much.
    #[error("{0} is not a number from 0")]
    Times(f64),
    /// Not a temperature.
    #[error("{0} is no temperature, such as 0 or 0.7")]
    Temperature(f64),
    /// No kind of sandbox.
    #[error("`{0}` is no sandbox; there is workspace, read-only or off")]
    Sandbox(String),
    /// No sum of money.
    #[error("{0} is no price in US dollars")]
    Usd(f64),
}

impl FromStr for Duration {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ValueError::NoUnit(text.to_owned()));
        }
        parts(text)
            .map(Self)
            .ok_or_else(|| ValueError::Duration(text.to_owned()))
    }
}

/// The sum of numbers with units, or nothing if there is anything else.
fn parts(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = None::<u64>;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let letters = after.bytes().take_while(u8::is_ascii_lowercase).count();
        let (unit, after) = after.split_at(letters);
        let (_, ms) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        let part = number.parse::<u64>().ok()?.checked_mul(ms)?;
        total = Some(total.unwrap_or(0).checked_add(part)?);
        rest = after;
    }
    total
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        for (unit, ms) in UNITS {
            if rest >= ms {
                write!(f, "{}{unit}", rest / ms)?;
                rest %= ms;
            }
        }
        if self.0 == 0 {
            f.write_str("0s")?;
        }
        Ok(())
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

schema!(Duration: {"type": "string", "format": "duration", "pattern": LENGTH});

/// A length of time that is not nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lasting(pub Duration);

impl FromStr for Lasting {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse()? {
            Duration(0) => Err(ValueError::NoTime(text.to_owned())),
            time => Ok(Self(time)),
        }
    }
}

impl<'de> Deserialize<'de> for Lasting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

schema!(Lasting: {"type": "string", "format": "duration", "pattern": LENGTH});

/// A part of something, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio(pub f64);

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let part = f64::deserialize(deserializer)?;
        if (0.0..=1.0).contains(&part) {
            Ok(Self(part))
        } else {
            Err(de::Error::custom(ValueError::Ratio(part)))
        }
    }
}

schema!(Ratio: {"type": "number", "minimum": 0, "maximum": 1});

/// How many times as much: a number that is neither negative nor infinite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times(pub f64);

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        if number.is_finite() && number >= 0.0 {
            Ok(Self(number))
        } else {
            Err(de::Error::custom(ValueError::Times(number)))
        }
    }
}

schema!(Times: {"type": "number", "minimum": 0});

/// A sampling temperature: a number that is neither negative nor infinite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Temperature(pub f64);

impl<'de> Deserialize<'de> for Temperature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        if number.is_finite() && number >= 0.0 {
            Ok(Self(number))
        } else {
            Err(de::Error::custom(ValueError::Temperature(number)))
        }
    }
}

schema!(Temperature: {"type": "number", "minimum": 0});

/// Money, written in US dollars, in micro-dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usd(pub u64);

impl Usd {
    /// The sum that is written so.
    pub fn from_dollars(dollars: f64) -> Result<Self, ValueError> {
        if !(0.0..=1e9).contains(&dollars) {
            return Err(ValueError::Usd(dollars));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 10^15, and rounded"
        )]
        Ok(Self((dollars * 1e6).round() as u64))
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_dollars(f64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "sums of money have far fewer digits"
        )]
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

schema!(Usd: {"type": "number", "minimum": 0, "maximum": 1e9});

/// Whether something stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keeping {
    /// It stays.
    Keep,
    /// It is left out.
    Strip,
}

/// Whether a rule ends in a summary: a mapping says yes, `null` no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryChoice(pub Option<SummaryWords>);

/// What is said to whoever writes a rule's summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SummaryWords {
    /// What it must preserve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// The person's words in the request for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// The keys of a rule's summary.
const SUMMARY_KEYS: &[&str] = &["focus", "instructions"];

impl<'de> Deserialize<'de> for SummaryChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SummaryVisitor)
    }
}

struct SummaryVisitor;

impl<'de> Visitor<'de> for SummaryVisitor {
    type Value = SummaryChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{} for a summary or null for none")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(SummaryChoice(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut words = SummaryWords::default();
        while let Some(key) = map.next_key::<String>()? {
            let target = match key.as_str() {
                "focus" => &mut words.focus,
                "instructions" => &mut words.instructions,
                key => return Err(de::Error::unknown_field(key, SUMMARY_KEYS)),
            };
            let said: Option<String> = map.next_value()?;
            *target = said.filter(|said| !said.trim().is_empty());
        }
        Ok(SummaryChoice(Some(words)))
    }
}

impl Serialize for SummaryChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

schema!(SummaryChoice: {
    "type": ["object", "null"],
    "properties": {
        "focus": {"type": ["string", "null"]},
        "instructions": {"type": ["string", "null"]}
    },
    "additionalProperties": false
});

/// How hard a transcript is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// What must be durable before an effect is synced to the disk.
    #[default]
    Data,
    /// The system writes when it likes: a crash of the machine may lose entries.
    None,
}

impl From<SyncMode> for Durability {
    fn from(mode: SyncMode) -> Self {
        match mode {
            SyncMode::Data => Self::Data,
            SyncMode::None => Self::None,
        }
    }
}

/// What compaction by hints does with calls, as far as it is said: a word for both halves, or
/// one for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintChoice {
    request: Option<Treatment>,
    response: Option<Treatment>,
}

impl HintChoice {
    /// The hint with what this says replaced.
    pub fn over(self, hint: Hint) -> Hint {
        Hint::new(
            self.request.unwrap_or(hint.request),
            self.response.unwrap_or(hint.response),
        )
    }

    /// Writes the halves of which something is said.
    fn put_halves<M: SerializeMap>(self, map: &mut M) -> Result<(), M::Error> {
        for (half, treatment) in [("request", self.request), ("response", self.response)] {
            if let Some(treatment) = treatment {
                map.serialize_entry(half, &treatment)?;
            }
        }
        Ok(())
    }
}

/// What compaction does with the calls of one tool, as far as it is said: a hint, and with
/// `dedup: false` that no call makes another superfluous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsChoice {
    /// The hint.
    pub hint: HintChoice,
    /// Whether calls that a later one made superfluous may go.
    pub dedup: Option<bool>,
}

const WORDS: &[&str] = &["keep", "strip", "strip-requests", "strip-responses", "omit"];

/// The words for one half.
const TREATMENTS: &[&str] = &["keep", "strip", "omit"];

/// The keys that may stand in a mapping.
struct ChoiceVisitor(&'static [&'static str]);

impl<'de> Visitor<'de> for ChoiceVisitor {
    type Value = CallsChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {} or a mapping", WORDS.join(", "))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Self::Value, E> {
        let (request, response) = match word {
            "keep" => (Treatment::Keep, Treatment::Keep),
            "strip" => (Treatment::Strip, Treatment::Strip),
            "strip-requests" => (Treatment::Strip, Treatment::Keep),
            "strip-responses" => (Treatment::Keep, Treatment::Strip),
            "omit" => (Treatment::Omit, Treatment::Omit),
            _ => return Err(E::unknown_variant(word, WORDS)),
        };
        let hint = HintChoice {
            request: Some(request),
            response: Some(response),
        };
        Ok(CallsChoice { hint, dedup: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut choice = CallsChoice::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                key if !self.0.contains(&key) => {
                    return Err(de::Error::unknown_field(key, self.0));
                }
                "request" => choice.hint.request = Some(map.next_value()?),
                "response" => choice.hint.response = Some(map.next_value()?),
                _ => choice.dedup = Some(map.next_value()?),
            }
        }
        Ok(choice)
    }
}

impl Serialize for HintChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let word = match (self.request, self.response) {
            (Some(Treatment::Keep), Some(Treatment::Keep)) => Some("keep"),
            (Some(Treatment::Strip), Some(Treatment::Strip)) => Some("strip"),
            (Some(Treatment::Strip), Some(Treatment::Keep)) => Some("strip-requests"),
            (Some(Treatment::Keep), Some(Treatment::Strip)) => Some("strip-responses"),
            (Some(Treatment::Omit), Some(Treatment::Omit)) => Some("omit"),
            _ => None,
        };
        if let Some(word) = word {
            return serializer.serialize_str(word);
        }
        let mut map = serializer.serialize_map(None)?;
        self.put_halves(&mut map)?;
        map.end()
    }
}

impl Serialize for CallsChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(dedup) = self.dedup else {
            return self.hint.serialize(serializer);
        };
        let mut map = serializer.serialize_map(None)?;
        self.hint.put_halves(&mut map)?;
        map.serialize_entry("dedup", &dedup)?;
        map.end()
    }
}

schema!(HintChoice: {
    "anyOf": [
        {"type": "string", "enum": WORDS},
        {
            "type": "object",
            "properties": {
                "request": {"type": "string", "enum": TREATMENTS},
                "response": {"type": "string", "enum": TREATMENTS}
            },
            "additionalProperties": false
        }
    ]
});

schema!(CallsChoice: {
    "anyOf": [
        {"type": "string", "enum": WORDS},
        {
            "type": "object",
            "properties": {
                "request": {"type": "string", "enum": TREATMENTS},
                "response": {"type": "string", "enum": TREATMENTS},
                "dedup": {"type": "boolean"}
            },
            "additionalProperties": false
        }
    ]
});

impl<'de> Deserialize<'de> for HintChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = ChoiceVisitor(&["request", "response"]);
        Ok(deserializer.deserialize_any(visitor)?.hint)
    }
}

impl<'de> Deserialize<'de> for CallsChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChoiceVisitor(&["request", "response", "dedup"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_units() {
        for (text, ms) in [
            ("250ms", 250),
            ("1m30s", 90_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1d2h", 93_600_000),
        ] {
            assert_eq!(text.parse(), Ok(Duration(ms)), "{text}");
            assert_eq!(Duration(ms).to_string(), text);
        }
        for text in [
            "",
            "m",
            "5 m",
            "5x",
            "-5m",
            "1.5h",
            "5m3",
            "99999999999999999999d",
        ] {
            assert_eq!(
                text.parse::<Duration>(),
                Err(ValueError::Duration(text.to_owned())),
                "{text}"
            );
        }
        assert_eq!(
            "300".parse::<Duration>().unwrap_err().to_string(),
            "`300` needs a unit, such as 300s or 300m"
        );
    }

    #[test]
    fn money_is_rounded_to_a_millionth() {
        assert_eq!(Usd::from_dollars(2.5), Ok(Usd(2_500_000)));
        assert_eq!(Usd::from_dollars(0.000_000_4), Ok(Usd(0)));
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Usd::from_dollars(bad).is_err());
        }
    }
}
