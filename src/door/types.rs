//! The side of the types: a deserializer of which they see no more than the door.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::fault::Fault;
use super::{Choice, Found, Items, Pairs, Seed, Sink, Source, Want};

/// A seed, and later what grew of it.
pub(super) enum Sown<S, T> {
    Seed(S),
    Asked,
    Grown(T),
}

impl<'de, S: DeserializeSeed<'de>> Sown<S, S::Value> {
    pub(super) fn new(seed: S) -> Self {
        Self::Seed(seed)
    }

    pub(super) fn grown(self) -> Result<S::Value, Fault> {
        match self {
            Self::Grown(value) => Ok(value),
            Self::Seed(_) | Self::Asked => Err(Fault::Reader),
        }
    }
}

impl<'de, S: DeserializeSeed<'de>> Seed<'de> for Sown<S, S::Value> {
    fn ask(&mut self, source: &mut dyn Source<'de>) -> Result<(), Fault> {
        let Self::Seed(seed) = std::mem::replace(self, Self::Asked) else {
            return Err(Fault::Reader);
        };
        *self = Self::Grown(seed.deserialize(Door(source))?);
        Ok(())
    }
}

/// The same of a visitor.
enum Waiting<V, T> {
    Visitor(V),
    Asked,
    Visited(T),
}

impl<'de, V: Visitor<'de>> Waiting<V, V::Value> {
    fn visited(self) -> Result<V::Value, Fault> {
        match self {
            Self::Visited(value) => Ok(value),
            Self::Visitor(_) | Self::Asked => Err(Fault::Reader),
        }
    }
}

impl<'de, V: Visitor<'de>> Sink<'de> for Waiting<V, V::Value> {
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Visitor(visitor) => visitor.expecting(f),
            Self::Asked | Self::Visited(_) => Ok(()),
        }
    }

    fn take(&mut self, found: Found<'_, 'de>) -> Result<(), Fault> {
        let Self::Visitor(visitor) = std::mem::replace(self, Self::Asked) else {
            return Err(Fault::Reader);
        };
        let value = match found {
            Found::Bool(value) => visitor.visit_bool(value),
            Found::I64(value) => visitor.visit_i64(value),
            Found::I128(value) => visitor.visit_i128(value),
            Found::U64(value) => visitor.visit_u64(value),
            Found::U128(value) => visitor.visit_u128(value),
            Found::F64(value) => visitor.visit_f64(value),
            Found::Char(value) => visitor.visit_char(value),
            Found::Str(value) => visitor.visit_str(value),
            Found::Borrowed(value) => visitor.visit_borrowed_str(value),
            Found::Text(value) => visitor.visit_string(value),
            Found::Bytes(value) => visitor.visit_bytes(value),
            Found::BorrowedBytes(value) => visitor.visit_borrowed_bytes(value),
            Found::None => visitor.visit_none(),
            Found::Unit => visitor.visit_unit(),
            Found::Some(source) => visitor.visit_some(Door(source)),
            Found::Newtype(source) => visitor.visit_newtype_struct(Door(source)),
            Found::Seq(items) => visitor.visit_seq(Each(items)),
            Found::Map(pairs) => visitor.visit_map(Each(pairs)),
            Found::Enum(choice) => visitor.visit_enum(Each(choice)),
        };
        *self = Self::Visited(value?);
        Ok(())
    }
}

/// A reader, as the types see it.
struct Door<'a, 'de>(&'a mut dyn Source<'de>);

impl<'de> Door<'_, 'de> {
    fn read<V: Visitor<'de>>(self, want: Want, visitor: V) -> Result<V::Value, Fault> {
        let mut waiting = Waiting::Visitor(visitor);
        self.0.read(want, &mut waiting)?;
        waiting.visited()
    }
}

/// Passes on what a type asks for.
macro_rules! ask {
    ($($method:ident($($name:ident: $kind:ty),*) => $want:expr;)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, Fault> {
            self.read($want, visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Door<'_, 'de> {
    type Error = Fault;

    ask! {
        deserialize_any() => Want::Any;
        deserialize_bool() => Want::Bool;
        deserialize_i8() => Want::I8;
        deserialize_i16() => Want::I16;
        deserialize_i32() => Want::I32;
        deserialize_i64() => Want::I64;
        deserialize_i128() => Want::I128;
        deserialize_u8() => Want::U8;
        deserialize_u16() => Want::U16;
        deserialize_u32() => Want::U32;
        deserialize_u64() => Want::U64;
        deserialize_u128() => Want::U128;
        deserialize_f32() => Want::F32;
        deserialize_f64() => Want::F64;
        deserialize_char() => Want::Char;
        deserialize_str() => Want::Str;
        deserialize_string() => Want::Text;
        deserialize_bytes() => Want::Bytes;
        deserialize_byte_buf() => Want::ByteBuf;
        deserialize_option() => Want::Option;
        deserialize_unit() => Want::Unit;
        deserialize_unit_struct(name: &'static str) => Want::UnitStruct(name);
        deserialize_newtype_struct(name: &'static str) => Want::Newtype(name);
        deserialize_seq() => Want::Seq;
        deserialize_tuple(length: usize) => Want::Tuple(length);
        deserialize_tuple_struct(name: &'static str, length: usize)
            => Want::TupleStruct(name, length);
        deserialize_map() => Want::Map;
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
            => Want::Struct(name, fields);
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
            => Want::Enum(name, variants);
        deserialize_identifier() => Want::Name;
        deserialize_ignored_any() => Want::Ignored;
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_for_people()
    }
}

/// What stands in a sequence, a mapping or a variant, as the types see it.
struct Each<'a, T: ?Sized>(&'a mut T);

impl<'de> SeqAccess<'de> for Each<'_, dyn Items<'de> + '_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let mut seed = Sown::new(seed);
        if self.0.next(&mut seed)? {
            seed.grown().map(Some)
        } else {
            Ok(None)
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.count()
    }
}

impl<'de> MapAccess<'de> for Each<'_, dyn Pairs<'de> + '_> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let mut seed = Sown::new(seed);
        if self.0.key(&mut seed)? {
            seed.grown().map(Some)
        } else {
            Ok(None)
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let mut seed = Sown::new(seed);
        self.0.value(&mut seed)?;
        seed.grown()
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.count()
    }
}

impl<'a, 'de> EnumAccess<'de> for Each<'a, dyn Choice<'de> + 'a> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        let mut seed = Sown::new(seed);
        self.0.which(&mut seed)?;
        Ok((seed.grown()?, self))
    }
}

impl<'a, 'de> VariantAccess<'de> for Each<'a, dyn Choice<'de> + 'a> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        self.0.nothing()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        let mut seed = Sown::new(seed);
        self.0.value(&mut seed)?;
        seed.grown()
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Fault> {
        let mut waiting = Waiting::Visitor(visitor);
        self.0.tuple(length, &mut waiting)?;
        waiting.visited()
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let mut waiting = Waiting::Visitor(visitor);
        self.0.fields(fields, &mut waiting)?;
        waiting.visited()
    }
}
