//! JSON read loosely: every member may be missing, null or of another type, and what is opaque
//! stays the exact text received.

use std::collections::HashMap;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The largest number that counts anything: every float up to it is exact.
const COUNT_MAX: u64 = 9_000_000_000_000_000;

/// The members of a JSON object, in order, each value still its exact text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object<'a>(Vec<(String, Value<'a>)>);

impl<'a> Object<'a> {
    /// Reads an object; `None` for anything else.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Reads the members of an object that stand before the first with one of these names, or before
    /// what cannot be read. Nothing behind them is looked at.
    pub(crate) fn before(bytes: &'a [u8], names: &[&str]) -> Self {
        let mut read = Vec::new();
        let members = Before {
            names,
            read: &mut read,
        };
        // Where it stops, the object has not ended, and that is an error.
        let stopped = serde_json::Deserializer::from_slice(bytes).deserialize_map(members);
        stopped.ok();
        Self(read)
    }

    /// The value of a member; `None` if it is missing or null. Of several, the last counts.
    pub(crate) fn get(&self, name: &str) -> Option<Value<'a>> {
        let (_, value) = self.0.iter().rev().find(|(key, _)| key == name)?;
        (value.0 != "null").then_some(*value)
    }

    /// The first of these members that is there.
    pub(crate) fn first(&self, names: &[&str]) -> Option<Value<'a>> {
        names.iter().find_map(|name| self.get(name))
    }

    /// The value of a member that is an object.
    pub(crate) fn object(&self, name: &str) -> Option<Object<'a>> {
        self.get(name)?.object()
    }

    /// The value of a member that is a string and not blank.
    pub(crate) fn word(&self, name: &str) -> Option<String> {
        let text = self.get(name)?.text()?.text;
        (!text.trim().is_empty()).then_some(text)
    }

    /// All members.
    pub(crate) fn members(&self) -> &[(String, Value<'a>)] {
        &self.0
    }

    /// Whether there is no member that says anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, value)| value.0 == "null")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(String, Value<'de>)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    members.push((key, Value(value.get())));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Members).map(Object)
    }
}

/// Takes members until one has one of these names.
struct Before<'r, 'a> {
    names: &'r [&'r str],
    read: &'r mut Vec<(String, Value<'a>)>,
}

impl<'a> Visitor<'a> for Before<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if self.names.contains(&key.as_str()) {
                break;
            }
            let value: &RawValue = map.next_value()?;
            self.read.push((key, Value(value.get())));
        }
        Ok(())
    }
}

/// A JSON value, still its exact text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value<'a>(&'a str);

/// A string, and whether it held what is no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// The string, with U+FFFD for each part that is no text.
    pub(crate) text: String,
    /// Whether there was such a part.
    pub(crate) damaged: bool,
}

impl<'a> Value<'a> {
    /// The values that stand one after the other in a text, and what follows the last that could
    /// be read.
    pub(crate) fn sequence(text: &'a str) -> (Vec<Self>, &'a str) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let mut read = Vec::new();
        let mut end = 0;
        while let Some(Ok(value)) = values.next() {
            read.push(Self(value.get()));
            end = values.byte_offset();
        }
        (read, text.get(end..).unwrap_or_default().trim())
    }

    /// The exact text.
    pub(crate) fn raw(self) -> &'a str {
        self.0
    }

    /// The members, if it is an object.
    pub(crate) fn object(self) -> Option<Object<'a>> {
        Object::read(self.0)
    }

    /// The elements, if it is an array.
    pub(crate) fn array(self) -> Option<Vec<Value<'a>>> {
        let items: Vec<&RawValue> = serde_json::from_str(self.0).ok()?;
        Some(items.into_iter().map(|item| Self(item.get())).collect())
    }

    /// The text, if it is a string. Lone surrogates become U+FFFD.
    pub(crate) fn text(self) -> Option<Text> {
        if !self.0.starts_with('"') {
            return None;
        }
        if let Ok(text) = serde_json::from_str(self.0) {
            let damaged = false;
            return Some(Text { text, damaged });
        }
        let text = serde_json::from_str(&without_lone_surrogates(self.0)).ok()?;
        let damaged = true;
        Some(Text { text, damaged })
    }

    /// The number, if it is one that counts: an integer, a whole float, or either in a string.
    pub(crate) fn count(self) -> Option<u64> {
        let text = self.0.trim_matches('"').trim();
        let number = text.parse().ok().or_else(|| whole(text.parse().ok()?));
        number.filter(|number| *number <= COUNT_MAX)
    }
}

/// Members of several objects, each with its newest value as exact text, in the order in which they
/// came first.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    members: Vec<(String, String)>,
    places: HashMap<String, usize>,
    bytes: usize,
}

impl Gathered {
    /// Puts a value in the place of the one before.
    pub(crate) fn put(&mut self, name: &str, raw: &str) {
        let next = self.members.len();
        let place = *self.places.entry(name.to_owned()).or_insert(next);
        if let Some((_, newest)) = self.members.get_mut(place) {
            self.bytes = self.bytes - newest.len() + raw.len();
            raw.clone_into(newest);
        } else {
            self.bytes += name.len() + raw.len();
            self.members.push((name.to_owned(), raw.to_owned()));
        }
    }

    /// The exact text of a member; `None` if it is missing or null.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let (_, raw) = self.members.get(*self.places.get(name)?)?;
        (raw != "null").then_some(raw)
    }

    /// The bytes of all names and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of them as one object; `None` if there are none.
    pub(crate) fn object(&self) -> Option<String> {
        let members = self.members.iter().map(|(name, raw)| {
            let name = serde_json::Value::from(name.as_str());
            format!("{name}:{raw}")
        });
        let members: Vec<String> = members.collect();
        (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
    }
}

/// How far a JSON text has come that arrives in pieces. Its grammar is not checked: what is wrong in
/// it stays wrong, whatever follows.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    depth: usize,
    is_quoted: bool,
    is_escaped: bool,
    is_closed: bool,
}

impl Extent {
    /// Takes the next piece.
    pub(crate) fn take(&mut self, piece: &str) {
        for byte in piece.bytes() {
            if self.is_closed {
                return;
            }
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_quoted => self.is_escaped = true,
                b'"' => {
                    self.is_closed = self.is_quoted && self.depth == 0;
                    self.is_quoted = !self.is_quoted;
                }
                _ if self.is_quoted => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_closed = self.depth == 0;
                }
                b' ' | b'\t' | b'\n' | b'\r' => {}
                // Numbers and words by themselves are no arguments; where they end is not looked for.
                _ => self.is_closed = self.depth == 0,
            }
        }
    }

    /// Whether an object, a list or a string is not closed yet, or nothing has come.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_closed
    }
}

/// A float as a count; `None` if it is negative, not finite or too large to be one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
pub(crate) fn whole(number: f64) -> Option<u64> {
    (0.0..=COUNT_MAX as f64)
        .contains(&number)
        .then(|| number.ceil() as u64)
}

/// The same JSON text with `\ufffd` for each escaped surrogate that has no partner.
fn without_lone_surrogates(json: &str) -> String {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut clean = String::with_capacity(json.len());
    let mut rest = 0;
    while let Some(found) = json[rest..].find('\\') {
        let at = rest + found;
        clean.push_str(&json[rest..at]);
        let low = |at| matches!(unit(at), Some(0xdc00..=0xdfff));
        let taken = match unit(at) {
            Some(0xd800..=0xdbff) if low(at + 6) => 12,
            Some(0xd800..=0xdfff) => {
                clean.push_str("\\ufffd");
                rest = at + 6;
                continue;
            }
            Some(_) => 6,
            None => 2,
        };
        let end = (at + taken..=json.len())
            .find(|end| json.is_char_boundary(*end))
            .unwrap_or(json.len());
        clean.push_str(&json[at..end]);
        rest = end;
    }
    clean.push_str(&json[rest..]);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_whatever_stands_beside_them() {
        let object =
            Object::read(r#"{"a":null,"b":1.0,"c":"7","d":{"x": [1, 2]},"b":3,"e":" "}"#).unwrap();
        assert_eq!(object.get("a"), None);
        assert_eq!(object.get("b").unwrap().count(), Some(3));
        assert_eq!(object.get("c").unwrap().count(), Some(7));
        assert_eq!(object.get("d").unwrap().raw(), r#"{"x": [1, 2]}"#);
        assert_eq!(object.word("e"), None);
        assert!(Object::read("[1]").is_none());
    }

    #[test]
    fn only_members_before_a_name_are_looked_at() {
        let names = ["messages", "input"];
        for (json, expected) in [
            (r#"{"a":1,"b":2}"#, [Some(1), Some(2)]),
            // What follows is no JSON, which nobody finds out.
            (r#"{"a":1,"messages":[,"b":2}"#, [Some(1), None]),
            (r#"{"b":2,"input":"\u"#, [None, Some(2)]),
            (r#"{"a":{"messages":7},"b":2}"#, [None, Some(2)]),
            (r#"{"a":1,"a":3,"c":tru,"b":2}"#, [Some(3), None]),
            (r#"["a",1]"#, [None, None]),
        ] {
            let read = Object::before(json.as_bytes(), &names);
            let found = ["a", "b"].map(|name| read.get(name).and_then(Value::count));
            assert_eq!(found, expected, "{json}");
        }
    }

    #[test]
    fn a_string_is_text_even_with_lone_surrogates() {
        for (json, text, damaged) in [
            (r#""a\ud83d\ude00b""#, "a😀b", false),
            (r#""a\ud83db""#, "a\u{fffd}b", true),
            (r#""\ude00\ud83d\ude00\\ud83d""#, "\u{fffd}😀\\ud83d", true),
            (r#""\ud83d\ud83d\ude00ü\"""#, "\u{fffd}😀ü\"", true),
        ] {
            let text = text.to_owned();
            assert_eq!(Value(json).text(), Some(Text { text, damaged }), "{json}");
        }
        assert_eq!(Value("1").text(), None);
    }

    #[test]
    fn counts_are_never_negative_or_endless() {
        for (json, count) in [
            ("12", Some(12)),
            ("11.5", Some(12)),
            (r#""12""#, Some(12)),
            ("-1", None),
            ("1e300", None),
            (r#""many""#, None),
        ] {
            assert_eq!(Value(json).count(), count, "{json}");
        }
    }

    #[test]
    fn a_text_is_open_until_its_value_is_closed() {
        for whole in [
            r#"{"a":"}","b":[{"c":"\"]}"},"\\"]}"#,
            r#" [1, {"a": null}] "#,
            r#""{\"a\": 1}""#,
        ] {
            for end in 0..=whole.len() {
                let (mut at_once, mut in_pieces) = (Extent::default(), Extent::default());
                at_once.take(&whole[..end]);
                for at in 0..end {
                    in_pieces.take(&whole[at..=at]);
                }
                let parsed = serde_json::from_str::<serde::de::IgnoredAny>(&whole[..end]);
                let is_open = parsed.is_err_and(|error| error.is_eof());
                assert_eq!(at_once.is_open(), is_open, "{}", &whole[..end]);
                assert_eq!(in_pieces.is_open(), is_open, "{}", &whole[..end]);
            }
        }
        for closed in ["{}{", "}", "{]", "12", "null"] {
            let mut extent = Extent::default();
            extent.take(closed);
            assert!(!extent.is_open(), "{closed}");
        }
    }

    #[test]
    fn members_are_gathered_in_the_order_in_which_they_came_first() {
        let mut gathered = Gathered::default();
        assert_eq!(gathered.object(), None);
        for (name, raw) in [("a", "1"), ("\"", "[ ]"), ("a", "2.50"), ("n", "null")] {
            gathered.put(name, raw);
        }
        assert_eq!(
            gathered.object().unwrap(),
            r#"{"a":2.50,"\"":[ ],"n":null}"#
        );
        assert_eq!((gathered.get("a"), gathered.get("n")), (Some("2.50"), None));
        assert_eq!(gathered.bytes(), 3 + "2.50[ ]null".len());
    }
}
