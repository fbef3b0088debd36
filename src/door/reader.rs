//! The side of the reader: a visitor and a seed of which it sees no more than the door.

use std::fmt;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess as _,
    Visitor,
};

use super::fault::Fault;
use super::{Choice, Found, Items, Pairs, Seed, Sink, Source, Want};

/// Has the seed ask this reader.
pub(super) fn read<'de, D: Deserializer<'de>>(
    reader: D,
    seed: &mut dyn Seed<'de>,
) -> Result<(), D::Error> {
    let mut reader = Reader::new(reader);
    let asked = seed.ask(&mut reader);
    reader.failed.told(asked)
}

/// An error of the reader's own, which waits here while [`Fault::Reader`] passes the types.
struct Failed<E>(Option<E>);

impl<E: de::Error> Failed<E> {
    fn keep<T>(&mut self, result: Result<T, E>) -> Result<T, Fault> {
        result.map_err(|error| {
            self.0 = Some(error);
            Fault::Reader
        })
    }

    /// What the types said, in the reader's words.
    fn told<T>(self, said: Result<T, Fault>) -> Result<T, E> {
        said.map_err(|fault| match (fault, self.0) {
            (Fault::Reader, Some(error)) => error,
            (fault, _) => fault.into_error(),
        })
    }
}

struct Reader<'de, D: Deserializer<'de>> {
    from: Option<D>,
    is_for_people: bool,
    failed: Failed<D::Error>,
}

impl<'de, D: Deserializer<'de>> Reader<'de, D> {
    fn new(reader: D) -> Self {
        Self {
            is_for_people: reader.is_human_readable(),
            from: Some(reader),
            failed: Failed(None),
        }
    }
}

impl<'de, D: Deserializer<'de>> Source<'de> for Reader<'de, D> {
    fn read(&mut self, want: Want, into: &mut dyn Sink<'de>) -> Result<(), Fault> {
        let reader = self.from.take().ok_or(Fault::Reader)?;
        let into = Into(into);
        let read = match want {
            Want::Any => reader.deserialize_any(into),
            Want::Bool => reader.deserialize_bool(into),
            Want::I8 => reader.deserialize_i8(into),
            Want::I16 => reader.deserialize_i16(into),
            Want::I32 => reader.deserialize_i32(into),
            Want::I64 => reader.deserialize_i64(into),
            Want::I128 => reader.deserialize_i128(into),
            Want::U8 => reader.deserialize_u8(into),
            Want::U16 => reader.deserialize_u16(into),
            Want::U32 => reader.deserialize_u32(into),
            Want::U64 => reader.deserialize_u64(into),
            Want::U128 => reader.deserialize_u128(into),
            Want::F32 => reader.deserialize_f32(into),
            Want::F64 => reader.deserialize_f64(into),
            Want::Char => reader.deserialize_char(into),
            Want::Str => reader.deserialize_str(into),
            Want::Text => reader.deserialize_string(into),
            Want::Bytes => reader.deserialize_bytes(into),
            Want::ByteBuf => reader.deserialize_byte_buf(into),
            Want::Option => reader.deserialize_option(into),
            Want::Unit => reader.deserialize_unit(into),
            Want::UnitStruct(name) => reader.deserialize_unit_struct(name, into),
            Want::Newtype(name) => reader.deserialize_newtype_struct(name, into),
            Want::Seq => reader.deserialize_seq(into),
            Want::Tuple(length) => reader.deserialize_tuple(length, into),
            Want::TupleStruct(name, length) => reader.deserialize_tuple_struct(name, length, into),
            Want::Map => reader.deserialize_map(into),
            Want::Struct(name, fields) => reader.deserialize_struct(name, fields, into),
            Want::Enum(name, variants) => reader.deserialize_enum(name, variants, into),
            Want::Name => reader.deserialize_identifier(into),
            Want::Ignored => reader.deserialize_ignored_any(into),
        };
        self.failed.keep(read)
    }

    fn is_for_people(&self) -> bool {
        self.is_for_people
    }
}

/// A seed, as the reader sees it: nothing grows of it here.
struct Asking<'a, 'de>(&'a mut dyn Seed<'de>);

impl<'de> DeserializeSeed<'de> for Asking<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        read(reader, self.0)
    }
}

/// A type that waits, as the reader sees it.
struct Into<'a, 'de>(&'a mut dyn Sink<'de>);

impl<'de> Into<'_, 'de> {
    fn plain<E: de::Error>(self, found: Found<'_, 'de>) -> Result<(), E> {
        self.0.take(found).map_err(Fault::into_error)
    }
}

/// Passes on what the reader found.
macro_rules! found {
    ($($method:ident($kind:ty) => $found:expr;)*) => {$(
        fn $method<E: de::Error>(self, value: $kind) -> Result<(), E> {
            self.plain($found(value))
        }
    )*};
}

impl<'de> Visitor<'de> for Into<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    found! {
        visit_bool(bool) => Found::Bool;
        visit_i64(i64) => Found::I64;
        visit_i128(i128) => Found::I128;
        visit_u64(u64) => Found::U64;
        visit_u128(u128) => Found::U128;
        visit_f64(f64) => Found::F64;
        visit_char(char) => Found::Char;
        visit_str(&str) => Found::Str;
        visit_borrowed_str(&'de str) => Found::Borrowed;
        visit_string(String) => Found::Text;
        visit_bytes(&[u8]) => Found::Bytes;
        visit_borrowed_bytes(&'de [u8]) => Found::BorrowedBytes;
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        self.plain(Found::None)
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.plain(Found::Unit)
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        let mut reader = Reader::new(reader);
        let taken = self.0.take(Found::Some(&mut reader));
        reader.failed.told(taken)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        let mut reader = Reader::new(reader);
        let taken = self.0.take(Found::Newtype(&mut reader));
        reader.failed.told(taken)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        let mut items = Each(items, Failed(None));
        let taken = self.0.take(Found::Seq(&mut items));
        items.1.told(taken)
    }

    fn visit_map<A: MapAccess<'de>>(self, pairs: A) -> Result<(), A::Error> {
        let mut pairs = Each(pairs, Failed(None));
        let taken = self.0.take(Found::Map(&mut pairs));
        pairs.1.told(taken)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, choice: A) -> Result<(), A::Error> {
        let mut choice = Variant(Stage::Unknown(choice), Failed(None));
        let taken = self.0.take(Found::Enum(&mut choice));
        choice.1.told(taken)
    }
}

/// What stands in a sequence or a mapping.
struct Each<A, E>(A, Failed<E>);

impl<'de, A: SeqAccess<'de>> Items<'de> for Each<A, A::Error> {
    fn next(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Fault> {
        let read = self.0.next_element_seed(Asking(seed));
        Ok(self.1.keep(read)?.is_some())
    }

    fn count(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> Pairs<'de> for Each<A, A::Error> {
    fn key(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Fault> {
        let read = self.0.next_key_seed(Asking(seed));
        Ok(self.1.keep(read)?.is_some())
    }

    fn value(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Fault> {
        let read = self.0.next_value_seed(Asking(seed));
        self.1.keep(read)
    }

    fn count(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

/// How much of a variant is read.
enum Stage<A, V> {
    Unknown(A),
    Known(V),
    Read,
}

struct Variant<A, V, E>(Stage<A, V>, Failed<E>);

impl<'de, A: EnumAccess<'de>> Variant<A, A::Variant, A::Error> {
    fn known(&mut self) -> Result<A::Variant, Fault> {
        match std::mem::replace(&mut self.0, Stage::Read) {
            Stage::Known(variant) => Ok(variant),
            Stage::Unknown(_) | Stage::Read => Err(Fault::Reader),
        }
    }
}

impl<'de, A: EnumAccess<'de>> Choice<'de> for Variant<A, A::Variant, A::Error> {
    fn which(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Fault> {
        let Stage::Unknown(choice) = std::mem::replace(&mut self.0, Stage::Read) else {
            return Err(Fault::Reader);
        };
        let read = choice.variant_seed(Asking(seed));
        let ((), variant) = self.1.keep(read)?;
        self.0 = Stage::Known(variant);
        Ok(())
    }

    fn nothing(&mut self) -> Result<(), Fault> {
        let read = self.known()?.unit_variant();
        self.1.keep(read)
    }

    fn value(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Fault> {
        let read = self.known()?.newtype_variant_seed(Asking(seed));
        self.1.keep(read)
    }

    fn tuple(&mut self, length: usize, into: &mut dyn Sink<'de>) -> Result<(), Fault> {
        let read = self.known()?.tuple_variant(length, Into(into));
        self.1.keep(read)
    }

    fn fields(
        &mut self,
        fields: &'static [&'static str],
        into: &mut dyn Sink<'de>,
    ) -> Result<(), Fault> {
        let read = self.known()?.struct_variant(fields, Into(into));
        self.1.keep(read)
    }
}
