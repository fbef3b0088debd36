//! A door between a reader and the types that are read.
//!
//! A type is compiled once for each reader that it is read from, and much of the reader once for each
//! type. Where nobody waits for the reading, that is code for nothing: [`yaml`] stands between both.
//! The types are compiled for the door alone, and so is the reader.
//!
//! Nothing else changes. A reader that says where a fault stands says so of what the types find as
//! well: their errors are made into its own where it would have been asked for them.

mod fault;
mod reader;
mod types;
#[cfg(test)]
mod tests;

use std::fmt;
use std::marker::PhantomData;

use serde::de::Deserialize;
use serde_saphyr::{Error, Options};

use fault::Fault;
use types::Sown;

/// Reads a file of YAML.
pub(crate) fn yaml<'de, T: Deserialize<'de>>(text: &'de str, options: Options) -> Result<T, Error> {
    let mut seed = Sown::new(PhantomData::<T>);
    document(text, options, &mut seed)?;
    seed.grown().map_err(Fault::into_error)
}

fn document<'de>(text: &'de str, options: Options, seed: &mut dyn Seed<'de>) -> Result<(), Error> {
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| {
        reader::read(reader, seed)
    })
}

/// What a type asks for.
#[derive(Clone, Copy, Debug)]
enum Want {
    Any,
    Bool,
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    U128,
    F32,
    F64,
    Char,
    Str,
    Text,
    Bytes,
    ByteBuf,
    Option,
    Unit,
    UnitStruct(&'static str),
    Newtype(&'static str),
    Seq,
    Tuple(usize),
    TupleStruct(&'static str, usize),
    Map,
    Struct(&'static str, &'static [&'static str]),
    Enum(&'static str, &'static [&'static str]),
    Name,
    Ignored,
}

/// What a reader finds.
enum Found<'a, 'de> {
    Bool(bool),
    I64(i64),
    I128(i128),
    U64(u64),
    U128(u128),
    F64(f64),
    Char(char),
    Str(&'a str),
    Borrowed(&'de str),
    Text(String),
    Bytes(&'a [u8]),
    BorrowedBytes(&'de [u8]),
    None,
    Unit,
    Some(&'a mut dyn Source<'de>),
    Newtype(&'a mut dyn Source<'de>),
    Seq(&'a mut dyn Items<'de>),
    Map(&'a mut dyn Pairs<'de>),
    Enum(&'a mut dyn Choice<'de>),
}

/// A reader that stands before a value.
trait Source<'de> {
    /// Reads it, as what is asked for if it can be.
    fn read(&mut self, want: Want, into: &mut dyn Sink<'de>) -> Result<(), Fault>;

    /// Whether it is a format that people read.
    fn is_for_people(&self) -> bool;
}

/// A type that waits for a value.
trait Sink<'de> {
    /// Says what it waits for.
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Takes the value.
    fn take(&mut self, found: Found<'_, 'de>) -> Result<(), Fault>;
}

/// A type that asks a reader for a value.
trait Seed<'de> {
    /// Asks it.
    fn ask(&mut self, source: &mut dyn Source<'de>) -> Result<(), Fault>;
}

/// The items of a sequence.
trait Items<'de> {
    /// Reads the next one; `false` if there is none.
    fn next(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Fault>;

    /// How many there are, if that is known.
    fn count(&self) -> Option<usize>;
}

/// The pairs of a mapping.
trait Pairs<'de> {
    /// Reads the next key; `false` if there is none.
    fn key(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Fault>;

    /// Reads the value that belongs to it.
    fn value(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Fault>;

    /// How many there are, if that is known.
    fn count(&self) -> Option<usize>;
}

/// One of several variants.
trait Choice<'de> {
    /// Reads which one it is.
    fn which(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Fault>;

    /// Reads that nothing belongs to it.
    fn nothing(&mut self) -> Result<(), Fault>;

    /// Reads the one value that belongs to it.
    fn value(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Fault>;

    /// Reads the values that belong to it.
    fn tuple(&mut self, length: usize, into: &mut dyn Sink<'de>) -> Result<(), Fault>;

    /// Reads the fields that belong to it.
    fn fields(
        &mut self,
        fields: &'static [&'static str],
        into: &mut dyn Sink<'de>,
    ) -> Result<(), Fault>;
}
