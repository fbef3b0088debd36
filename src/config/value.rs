//! The kinds of values that `config.yaml` knows beside numbers and texts.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use crate::exchange::{Hint, Treatment};
use crate::record::Durability;

/// A length of time, written `250ms`, `90s`, `5m` or `1h30m`, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration(pub u64);

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
    /// Infinite, or not a number.
    #[error("a finite number must stand here")]
    NotFinite,
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
        let ms = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
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

/// A part of something, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// A number that is neither infinite nor none at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finite(pub f64);

impl<'de> Deserialize<'de> for Finite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        if number.is_finite() {
            Ok(Self(number))
        } else {
            Err(de::Error::custom(ValueError::NotFinite))
        }
    }
}

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

/// Whether something stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeping {
    /// It stays.
    Keep,
    /// It is left out.
    Strip,
}

/// Whether a rule ends in a summary: `{}` says yes, `null` no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryChoice(pub bool);

impl<'de> Deserialize<'de> for SummaryChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        Ok(Self(
            Option::<Nothing>::deserialize(deserializer)?.is_some(),
        ))
    }
}

/// How hard a transcript is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
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
}

const WORDS: &[&str] = &["keep", "strip", "strip-requests", "strip-responses", "omit"];

struct HintVisitor;

impl<'de> Visitor<'de> for HintVisitor {
    type Value = HintChoice;

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
        Ok(HintChoice {
            request: Some(request),
            response: Some(response),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut choice = HintChoice::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "request" => choice.request = Some(map.next_value()?),
                "response" => choice.response = Some(map.next_value()?),
                _ => return Err(de::Error::unknown_field(&key, &["request", "response"])),
            }
        }
        Ok(choice)
    }
}

impl<'de> Deserialize<'de> for HintChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HintVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_units() {
        for (text, ms) in [
            ("250ms", 250),
            ("90s", 90_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1d2h", 93_600_000),
        ] {
            assert_eq!(text.parse(), Ok(Duration(ms)), "{text}");
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
