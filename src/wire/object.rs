//! Whether a text is one JSON object, without making one of it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Whether a text is one JSON object.
pub(super) fn is_object(text: &str) -> bool {
    // Reading alone says yes to nothing that cannot be made into one. Where it says no, making decides:
    // that is rare, and there is one judge.
    serde_json::from_str::<Object>(text).is_ok()
        || serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// An object of which nothing is kept.
struct Object;

/// Any value of which nothing is kept.
struct Any;

/// The name of a member.
struct Name;

/// How `serde_json` calls members that it does not take for what they are.
const THEIRS: &str = "$serde_json::";

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Any).map(|_| Self)
    }
}

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Self)
    }
}

impl Visitor<'_> for Name {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self, E> {
        if name.starts_with(THEIRS) {
            return Err(E::custom("a name that means something else"));
        }
        Ok(self)
    }
}

impl<'de> Visitor<'de> for Any {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self, A::Error> {
        while values.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<Name, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_an_object_where_one_can_be_made_of_it() {
        let deep =
            |depth: usize| format!("{}{}", r#"{"a":"#.repeat(depth), "1") + &"}".repeat(depth);
        let number = |text: &str| format!(r#"{{"a":{text}}}"#);
        for (text, expected) in [
            ("{}".to_owned(), true),
            (
                r#" {"path": "a\u00e4\ud83d\ude42", "n": [1, -2, 2.5, null, true, {}]} "#
                    .to_owned(),
                true,
            ),
            (r#"{"a":1,"a":2}"#.to_owned(), true),
            (number("18446744073709551616"), true),
            (number("1e308"), true),
            (number("1e999"), false),
            (number("01"), false),
            (number(r#""\ud83d""#), false),
            (number("\"\n\""), false),
            (deep(127), true),
            (deep(128), false),
            (r#"{"$serde_json::private::RawValue":"1"}"#.to_owned(), true),
            (number(r#"{"$serde_json::private::RawValue":"1"}"#), true),
            (
                number(r#"{"\u0024serde_json::private::RawValue":1}"#),
                false,
            ),
            (number(r#"{"$serde_json::private::RawValue":"x"}"#), false),
            ("{}{}".to_owned(), false),
            (r#"{"a"}"#.to_owned(), false),
            ("{a:1}".to_owned(), false),
            ("[]".to_owned(), false),
            ("null".to_owned(), false),
            (r#""{}""#.to_owned(), false),
            (String::new(), false),
        ] {
            let made = serde_json::from_str::<Map<String, Value>>(&text).is_ok();
            assert_eq!((is_object(&text), made), (expected, expected), "{text}");
        }
    }

    #[test]
    fn what_reads_as_an_object_can_always_be_made_into_one() {
        // Every text that is one edit away from an object.
        let whole = r#"{"a\u00e4":[1.5e2,"\ud83d\ude42\n",{"b":null}],"c":-7,"":true}"#;
        for place in 0..whole.len() {
            for byte in *br#"{}[]",:\0e-.x "# {
                let mut text = whole.as_bytes().to_vec();
                text[place] = byte;
                let text = String::from_utf8(text).unwrap();
                let read = serde_json::from_str::<Object>(&text).is_ok();
                let made = serde_json::from_str::<Map<String, Value>>(&text).is_ok();
                assert_eq!(read, made, "{text}");
            }
        }
    }
}
