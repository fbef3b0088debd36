//! What goes wrong on either side of the door.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

/// What went wrong.
#[derive(Debug)]
pub(super) enum Fault {
    /// The reader failed. Its error waits where it was asked.
    Reader,
    /// A type found a fault.
    Type(Box<Told>),
}

/// What a type found, as it said so.
#[derive(Debug)]
pub(super) enum Told {
    Custom(String),
    Kind(Seen, String),
    Value(Seen, String),
    Length(usize, String),
    Variant(String, &'static [&'static str]),
    Field(String, &'static [&'static str]),
    Missing(&'static str),
    Twice(&'static str),
}

/// What stood where something else was expected.
#[derive(Debug)]
pub(super) enum Seen {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Char(char),
    Text(String),
    Bytes(Vec<u8>),
    Unit,
    Option,
    Newtype,
    Seq,
    Map,
    Enum,
    UnitVariant,
    NewtypeVariant,
    TupleVariant,
    StructVariant,
    Other(String),
}

impl Seen {
    fn of(unexpected: Unexpected<'_>) -> Self {
        match unexpected {
            Unexpected::Bool(value) => Self::Bool(value),
            Unexpected::Unsigned(value) => Self::Unsigned(value),
            Unexpected::Signed(value) => Self::Signed(value),
            Unexpected::Float(value) => Self::Float(value),
            Unexpected::Char(value) => Self::Char(value),
            Unexpected::Str(value) => Self::Text(value.to_owned()),
            Unexpected::Bytes(value) => Self::Bytes(value.to_owned()),
            Unexpected::Unit => Self::Unit,
            Unexpected::Option => Self::Option,
            Unexpected::NewtypeStruct => Self::Newtype,
            Unexpected::Seq => Self::Seq,
            Unexpected::Map => Self::Map,
            Unexpected::Enum => Self::Enum,
            Unexpected::UnitVariant => Self::UnitVariant,
            Unexpected::NewtypeVariant => Self::NewtypeVariant,
            Unexpected::TupleVariant => Self::TupleVariant,
            Unexpected::StructVariant => Self::StructVariant,
            Unexpected::Other(words) => Self::Other(words.to_owned()),
        }
    }

    fn told(&self) -> Unexpected<'_> {
        match self {
            Self::Bool(value) => Unexpected::Bool(*value),
            Self::Unsigned(value) => Unexpected::Unsigned(*value),
            Self::Signed(value) => Unexpected::Signed(*value),
            Self::Float(value) => Unexpected::Float(*value),
            Self::Char(value) => Unexpected::Char(*value),
            Self::Text(value) => Unexpected::Str(value),
            Self::Bytes(value) => Unexpected::Bytes(value),
            Self::Unit => Unexpected::Unit,
            Self::Option => Unexpected::Option,
            Self::Newtype => Unexpected::NewtypeStruct,
            Self::Seq => Unexpected::Seq,
            Self::Map => Unexpected::Map,
            Self::Enum => Unexpected::Enum,
            Self::UnitVariant => Unexpected::UnitVariant,
            Self::NewtypeVariant => Unexpected::NewtypeVariant,
            Self::TupleVariant => Unexpected::TupleVariant,
            Self::StructVariant => Unexpected::StructVariant,
            Self::Other(words) => Unexpected::Other(words),
        }
    }
}

impl Fault {
    /// The same as an error of a reader's; a fault of the reader itself is told by its own error.
    pub(super) fn into_error<E: de::Error>(self) -> E {
        let found = match self {
            Self::Reader => return E::custom(NOTHING),
            Self::Type(found) => *found,
        };
        match found {
            Told::Custom(words) => E::custom(words),
            Told::Kind(seen, expected) => E::invalid_type(seen.told(), &expected.as_str()),
            Told::Value(seen, expected) => E::invalid_value(seen.told(), &expected.as_str()),
            Told::Length(length, expected) => E::invalid_length(length, &expected.as_str()),
            Told::Variant(variant, known) => E::unknown_variant(&variant, known),
            Told::Field(field, known) => E::unknown_field(&field, known),
            Told::Missing(field) => E::missing_field(field),
            Told::Twice(field) => E::duplicate_field(field),
        }
    }

    fn found(found: Told) -> Self {
        Self::Type(Box::new(found))
    }
}

/// No reader and no type goes on after an error, or ends without a value or an error.
pub(super) const NOTHING: &str = "nothing was read";

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reader => f.write_str(NOTHING),
            Self::Type(found) => write!(f, "{found:?}"),
        }
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(words: T) -> Self {
        Self::found(Told::Custom(words.to_string()))
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::found(Told::Kind(Seen::of(unexpected), expected.to_string()))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::found(Told::Value(Seen::of(unexpected), expected.to_string()))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::found(Told::Length(length, expected.to_string()))
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        Self::found(Told::Variant(variant.to_owned(), known))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::found(Told::Field(field.to_owned(), known))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::found(Told::Missing(field))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::found(Told::Twice(field))
    }
}
