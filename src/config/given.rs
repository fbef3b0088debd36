//! A value as one source gives it, or does not, and where it stands.

#[cfg(test)]
use std::borrow::Cow;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_saphyr::Spanned;

/// A value that a source gives, or does not. A given `null` is a value.
#[derive(Clone, Debug)]
pub struct Given<T> {
    value: Option<T>,
    /// The line of its source, from 1, if it was read from one that has lines.
    line: Option<u64>,
}

/// A key that is given: its path, its value as it would be written, and the line it stands on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stated {
    pub(crate) path: Vec<String>,
    pub(crate) value: Value,
    pub(crate) line: Option<u64>,
}

impl<T> Given<T> {
    /// A value that is given.
    pub fn value(value: T) -> Self {
        Self {
            value: Some(value),
            line: None,
        }
    }

    /// Whether there is one.
    pub fn is_given(&self) -> bool {
        self.value.is_some()
    }

    /// The value, if it is given.
    pub fn get(self) -> Option<T> {
        self.value
    }

    /// This value, or else the one of a source below.
    #[must_use]
    pub fn or(self, below: Self) -> Self {
        if self.is_given() { self } else { below }
    }

    /// The value as another type.
    pub fn map<U>(self, into: impl FnOnce(T) -> U) -> Given<U> {
        Given {
            value: self.value.map(into),
            line: self.line,
        }
    }

    /// Replaces the target if the value is given.
    pub fn put(self, target: &mut T) {
        if let Some(value) = self.value {
            *target = value;
        }
    }
}

impl<T: Serialize> Given<T> {
    /// The value as it would be written, if it is given.
    pub(crate) fn stated(&self, path: &[&str]) -> Option<Stated> {
        let value = self.value.as_ref()?;
        Some(Stated {
            path: path.iter().map(|&key| key.to_owned()).collect(),
            // Only a path that is not UTF-8 cannot be written, and no file can hold one.
            value: serde_json::to_value(value).unwrap_or_default(),
            line: self.line,
        })
    }
}

impl<T> Default for Given<T> {
    fn default() -> Self {
        Self {
            value: None,
            line: None,
        }
    }
}

/// Values are equal wherever they stand.
impl<T: PartialEq> PartialEq for Given<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            line: Some(spanned.referenced.line()).filter(|line| *line > 0),
            value: Some(spanned.value),
        })
    }
}

/// The schema is that of the value.
#[cfg(test)]
impl<T: JsonSchema> JsonSchema for Given<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
