//! A body as it was read: members in their order, no key twice.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json<'a> {
    /// `null`; it also stands for a member that is missing.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A string.
    Text(Cow<'a, str>),
    /// A list.
    Items(Vec<Json<'a>>),
    /// An object.
    Members(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// The value of a member; null if it is missing or this is no object.
    pub(super) fn get(&self, name: &str) -> &Self {
        self.member(name).unwrap_or(&Self::Null)
    }

    /// The value of a member; `None` if it is missing or this is no object.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        let mut members = self.members()?.iter();
        members.find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The text, if it is a string.
    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The elements, if it is a list.
    pub(super) fn items(&self) -> Option<&[Self]> {
        if let Self::Items(items) = self {
            Some(items)
        } else {
            None
        }
    }

    /// The members, if it is an object.
    pub(super) fn members(&self) -> Option<&[(Cow<'a, str>, Self)]> {
        if let Self::Members(members) = self {
            Some(members)
        } else {
            None
        }
    }
}

/// A string that is borrowed if it holds no escape.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Text(text) => Ok(Self(text)),
            Json::Null | Json::Bool | Json::Number | Json::Items(_) | Json::Members(_) => {
                Err(de::Error::custom("a key is no string"))
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Json<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Json::Null)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Json::Bool)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Json::Number)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Json::Number)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Json::Number)
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Json::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Json::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Json::Items(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(Cow<'de, str>, Json<'de>)> = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    if members.iter().any(|(known, _)| *known == key) {
                        return Err(de::Error::custom(format!("`{key}` stands twice")));
                    }
                    members.push((key, map.next_value()?));
                }
                Ok(Json::Members(members))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
