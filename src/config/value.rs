//! Measures that `config.yaml` knows: times, parts, sums of money.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer};
use serde::ser::Serializer;

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
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

pub(super) use schema;

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

/// A number that is neither negative nor infinite, or else this error.
fn from_zero<'de, D: Deserializer<'de>>(
    deserializer: D,
    error: fn(f64) -> ValueError,
) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err(de::Error::custom(error(number)))
    }
}

/// How many times as much: a number that is neither negative nor infinite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times(pub f64);

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_zero(deserializer, ValueError::Times).map(Self)
    }
}

schema!(Times: {"type": "number", "minimum": 0});

/// A sampling temperature: a number that is neither negative nor infinite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Temperature(pub f64);

impl<'de> Deserialize<'de> for Temperature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_zero(deserializer, ValueError::Temperature).map(Self)
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

pub(super) fn not_blank(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
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
