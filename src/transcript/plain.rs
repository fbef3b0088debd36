//! Reading an entry in one pass, where it stands as this program writes it.
//!
//! Such a line begins with its id, its time and its type, so that its body can be read as what the type
//! says without looking ahead. [`read`] is a short way and no other format: whatever it does not take
//! is read as [`Entry`] reads any JSON, which also judges what is wrong with it.

use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};

use crate::transcript::{At, Entry, Event};

/// The entry of a line, given whole; `None` if it is to be read the other way.
pub(super) fn read(line: &str) -> Option<Entry> {
    let mut json = serde_json::Deserializer::from_str(line);
    let entry = json.deserialize_map(Line).ok()?;
    json.end().ok()?;
    Some(entry)
}

/// The fields that stand in every entry, in the order in which they are written.
const HEAD: [&str; 3] = ["id", "at", "type"];

/// A whole entry.
struct Line;

impl<'de> Visitor<'de> for Line {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry that begins with its id, its time and its type")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Entry, A::Error> {
        Ok(Entry {
            id: field(&mut fields, HEAD[0])?,
            at: field::<_, At>(&mut fields, HEAD[1])?,
            event: {
                let kind: &str = field(&mut fields, HEAD[2])?;
                event(kind, MapAccessDeserializer::new(Body(fields)))?
            },
        })
    }
}

/// The value of the next field, which must have this name.
fn field<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    fields: &mut A,
    name: &str,
) -> Result<T, A::Error> {
    match fields.next_key::<&str>()? {
        Some(key) if key == name => fields.next_value(),
        Some(_) | None => Err(de::Error::custom("another field")),
    }
}

/// Reads the event of a known type.
fn event<'de, D: Deserializer<'de>>(kind: &str, body: D) -> Result<Event, D::Error> {
    Ok(match kind {
        "run" => Event::Run(Deserialize::deserialize(body)?),
        "setup" => Event::Setup(Deserialize::deserialize(body)?),
        "user" => Event::User(Deserialize::deserialize(body)?),
        "request" => Event::Request(Deserialize::deserialize(body)?),
        "response" => Event::Response(Deserialize::deserialize(body)?),
        "started" => Event::Started(Deserialize::deserialize(body)?),
        "result" => Event::Result(Deserialize::deserialize(body)?),
        "overlay" => Event::Overlay(Deserialize::deserialize(body)?),
        "retract" => Event::Retract(Deserialize::deserialize(body)?),
        "pin" => Event::Pin(Deserialize::deserialize(body)?),
        "unpin" => Event::Unpin(Deserialize::deserialize(body)?),
        "fault" => Event::Fault(Deserialize::deserialize(body)?),
        "note" => Event::Note(Deserialize::deserialize(body)?),
        "end" => Event::End(Deserialize::deserialize(body)?),
        _ => return Err(de::Error::custom("another type")),
    })
}

/// The fields behind the type. One of the head that stands there again says two things at once.
struct Body<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Body<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(Name(seed))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

/// The name of such a field.
struct Name<K>(K);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Name<K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<K::Value, D::Error> {
        name.deserialize_identifier(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for Name<K> {
    type Value = K::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<K::Value, E> {
        new(name)?;
        self.0.deserialize(BorrowedStrDeserializer::new(name))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<K::Value, E> {
        new(name)?;
        self.0.deserialize(StrDeserializer::new(name))
    }
}

/// Fails if the field was there before.
fn new<E: de::Error>(name: &str) -> Result<(), E> {
    if HEAD.contains(&name) {
        Err(E::custom("a field stands twice"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_in_one_pass_and_everything_else_the_other_way() {
        let head = r#""id":3,"at":"2026-11-21T20:00:00.000Z","type""#;
        for (line, taken) in [
            (format!(r#"{{{head}:"pin","entry":2}}"#), true),
            (
                format!(r#" {{ {head} : "pin", "more":[1], "entry":2 }} "#),
                true,
            ),
            (format!(r#"{{{head}:"pin","\u0065ntry":2}}"#), true),
            // Twice the same field, also where it is spelled differently.
            (format!(r#"{{{head}:"pin","entry":2,"id":4}}"#), false),
            (
                format!(r#"{{{head}:"pin","entry":2,"typ\u0065":"note"}}"#),
                false,
            ),
            // What is not understood is judged elsewhere.
            (format!(r#"{{{head}:"pin"}}"#), false),
            (format!(r#"{{{head}:"dream","entry":2}}"#), false),
            (format!(r#"{{{head}:"pin","entry":2}}x"#), false),
            (r#"{"id":3,"type":"pin","entry":2}"#.to_owned(), false),
            (
                r#"{"id":3,"at":null,"type":"pin","entry":2}"#.to_owned(),
                false,
            ),
            ("[3]".to_owned(), false),
        ] {
            let read = read(&line);
            assert_eq!(read.is_some(), taken, "{line}");
            let other = serde_json::from_str::<Entry>(&line).ok();
            if let Some(entry) = read {
                assert_eq!(format!("{:?}", Some(entry)), format!("{other:?}"));
            }
        }
    }

    #[test]
    fn every_line_of_a_run_is_read_in_one_pass() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        for line in text.lines() {
            let entry = format!("{:?}", read(line).unwrap());
            let other: Entry = serde_json::from_str(line).unwrap();
            assert_eq!(entry, format!("{other:?}"));
        }
    }
}
