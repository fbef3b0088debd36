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

/// How deep arrays and objects may be nested.
const DEEPEST: usize = 64;

/// The arguments in this text: the JSON text to run, and its value.
///
/// `Err` says what is wrong, for the model.
pub(super) fn decode(text: &str) -> Result<(Cow<'_, str>, Value), String> {
    let (text, value) = (text.trim(), parse(text.trim())?);
    match value {
        Value::Object(_) => Ok((Cow::Borrowed(text), value)),
        Value::String(inner) => {
            let value = parse(inner.trim())
                .map_err(|error| format!("{error} (in the string that the arguments are)"))?;
            if value.is_object() {
                Ok((Cow::Owned(inner.trim().to_owned()), value))
            } else {
                Err(format!(
                    "the arguments must be one JSON object, not a string that holds {}",
                    kind(&value)
                ))
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(format!(
            "the arguments must be one JSON object, not {}",
            kind(&value)
        )),
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
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
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
