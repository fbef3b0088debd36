//! The arguments of a call, from the text a model wrote: strict JSON, one object.
//!
//! Two forms beside a plain object are understood, and nothing else is repaired: a string that
//! holds exactly one encoded object, once, and no text at all for a tool that requires nothing.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The longest text of arguments, in bytes.
const LONGEST: usize = 4 << 20;

/// All numbers that are taken lie between these two: they are those of 64-bit integers.
const BETWEEN: (f64, f64) = (-9_223_372_036_854_775_808.0, 18_446_744_073_709_551_616.0);

/// How deep arrays and objects may be nested.
const DEEPEST: usize = 64;

/// Why a text holds no arguments, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It cannot be read as JSON, or not in one way only: nobody knows what was meant.
    Malformed(String),
    /// It is JSON, but no object.
    NoObject(String),
}

impl Wrong {
    /// What is wrong.
    pub(super) fn into_words(self) -> String {
        match self {
            Self::Malformed(words) | Self::NoObject(words) => words,
        }
    }
}

/// Whether no call of a reply may run in which one has these arguments: they are not JSON that can
/// be read in one way only.
pub(crate) fn is_malformed(text: &str) -> bool {
    !is_blank(text) && matches!(decode(text), Err(Wrong::Malformed(_)))
}

/// Whether there is nothing but what JSON takes for white space.
pub(super) fn is_blank(text: &str) -> bool {
    trim(text).is_empty()
}

/// The text without JSON's white space around it, which is less than Unicode's.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// The arguments in this text: the JSON text to run, and its value.
pub(super) fn decode(text: &str) -> Result<(Cow<'_, str>, Value), Wrong> {
    let text = trim(text);
    let no_object =
        |what: &str| Wrong::NoObject(format!("the arguments must be one JSON object, not {what}"));
    match parse(text).map_err(Wrong::Malformed)? {
        value @ Value::Object(_) => Ok((Cow::Borrowed(text), value)),
        Value::String(inner) => {
            let value = parse(trim(&inner)).map_err(|error| {
                Wrong::Malformed(format!("{error} (in the string that the arguments are)"))
            })?;
            if value.is_object() {
                Ok((Cow::Owned(trim(&inner).to_owned()), value))
            } else {
                let what = kind(&value);
                Err(no_object(&format!("a string that holds {what}")))
            }
        }
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            Err(no_object(kind(&value)))
        }
    }
}

/// The value in this text.
fn parse(text: &str) -> Result<Value, String> {
    if text.len() > LONGEST {
        let size = text.len();
        return Err(format!(
            "the arguments are {size} bytes long; at most {LONGEST} are taken"
        ));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Strict { room: DEEPEST }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| format!("the arguments are not valid JSON: {error}"))
}

/// What kind of value it is, with its article.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Reads a value and refuses what JSON leaves open: names that stand twice, endless nesting.
#[derive(Clone, Copy)]
struct Strict {
    /// How many more levels there may be.
    room: usize,
}

impl Strict {
    /// The reader of what stands inside an array or object.
    fn inside<E: de::Error>(self) -> Result<Self, E> {
        match self.room.checked_sub(1) {
            Some(room) => Ok(Self { room }),
            None => Err(E::custom(format_args!(
                "nested more than {DEEPEST} levels deep"
            ))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        // An integer too large for one would come as a float, and as another number.
        let number = Number::from_f64(value).filter(|_| BETWEEN.0 < value && value < BETWEEN.1);
        let number = number.ok_or_else(|| E::custom("number out of range"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut values = Vec::new();
        while let Some(value) = sequence.next_element_seed(inside)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut values = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if values.contains_key(&name) {
                let name = name.chars().take(80).collect::<String>();
                return Err(de::Error::custom(format_args!("`{name}` stands twice")));
            }
            values.insert(name, map.next_value_seed(inside)?);
        }
        Ok(Value::Object(values))
    }
}
