//! Reasoning put together from its pieces: text under the name it came in, and opaque items.

use crate::exchange::Reasoning;
use crate::model::Delta;
use crate::model::loose::{Gathered, Object, Value};

/// The members that hold reasoning as text.
const FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];
/// The members that hold lists of opaque items.
const LISTS: [&str; 2] = ["reasoning_details", "thinking_blocks"];
/// The members of an item that hold its text.
const TEXTS: [&str; 3] = ["text", "summary", "thinking"];

/// The reasoning so far.
#[derive(Debug, Default)]
pub(crate) struct Thoughts(Vec<Block>);

/// Text under a name, or an opaque item.
#[derive(Debug)]
enum Block {
    Text {
        field: String,
        text: String,
    },
    Item {
        list: Option<String>,
        /// The exact text of its first piece, which stands if no other follows.
        raw: String,
        joined: Option<Joined>,
    },
}

impl Thoughts {
    /// Takes the reasoning of a message or of a piece of one, tells it once, whatever number of
    /// names it stands under, and returns the bytes that are kept.
    pub(crate) fn take(&mut self, message: &Object<'_>, deltas: &mut Vec<Delta>) -> usize {
        let mut kept = 0;
        let mut told = Vec::new();
        for field in FIELDS {
            if let Some(value) = message.get(field) {
                let mut new = Vec::new();
                kept += self.field(field, value, &mut new);
                if told.is_empty() {
                    told = new;
                }
            }
        }
        for list in LISTS {
            let mut new = Vec::new();
            let items = message.get(list).and_then(Value::array);
            for (place, item) in items.into_iter().flatten().enumerate() {
                kept += self.item(Some(list), place, item, &mut new);
            }
            if told.is_empty() {
                told = new;
            }
        }
        deltas.extend(told);
        kept
    }

    /// Takes reasoning in a named field: text, parts of text, or an item of its own.
    pub(crate) fn field(
        &mut self,
        field: &str,
        value: Value<'_>,
        deltas: &mut Vec<Delta>,
    ) -> usize {
        let text = match value.text() {
            Some(text) => text.text,
            None => parts_text(value),
        };
        if text.is_empty() {
            let opaque = value.object().is_some_and(|object| !object.is_empty());
            return if opaque {
                self.item(None, 0, value, deltas)
            } else {
                0
            };
        }
        let kept = text.len();
        let known = self.0.iter_mut().find_map(|block| match block {
            Block::Text { field: known, text } if known == field => Some(text),
            Block::Text { .. } | Block::Item { .. } => None,
        });
        match known {
            Some(known) => known.push_str(&text),
            None => self.0.push(Block::Text {
                field: field.to_owned(),
                text: text.clone(),
            }),
        }
        tell(deltas, Delta::Reasoning, text);
        kept
    }

    /// Takes the opaque item at this place of a list, or one by itself. Pieces of one text become
    /// one item again.
    fn item(
        &mut self,
        list: Option<&str>,
        place: usize,
        item: Value<'_>,
        deltas: &mut Vec<Delta>,
    ) -> usize {
        let object = item.object().unwrap_or_default();
        if let Some(text) = object.first(&TEXTS).and_then(Value::text) {
            tell(deltas, Delta::Reasoning, text.text);
        }
        let newest = self.0.iter_mut().rev().find_map(|block| match block {
            Block::Item {
                list: known,
                raw,
                joined,
            } if known.as_deref() == list => Some((raw, joined)),
            Block::Item { .. } | Block::Text { .. } => None,
        });
        let is_joined = newest.is_some_and(|(raw, joined)| {
            if joined.is_none() {
                *joined = Joined::of(raw);
            }
            joined
                .as_mut()
                .is_some_and(|joined| joined.take(place, &object))
        });
        if !is_joined {
            self.0.push(Block::Item {
                list: list.map(str::to_owned),
                raw: item.raw().to_owned(),
                joined: None,
            });
        }
        item.raw().len()
    }

    /// The blocks, without those that repeat an earlier text under another name.
    pub(crate) fn finish(self) -> Vec<Reasoning> {
        let mut seen: Vec<String> = Vec::new();
        let blocks = self.0.into_iter().filter_map(|block| match block {
            Block::Text { text, .. } if seen.contains(&text) => None,
            Block::Text { field, text } => {
                seen.push(text.clone());
                Some(Reasoning::Text { field, text })
            }
            Block::Item { list, raw, joined } => Some(Reasoning::Raw {
                raw: joined.and_then(Joined::raw).unwrap_or(raw),
                field: list,
                after: None,
            }),
        });
        blocks.collect()
    }
}

/// Tells a piece of text, unless there is none.
pub(crate) fn tell(deltas: &mut Vec<Delta>, as_delta: fn(String) -> Delta, text: String) {
    if !text.is_empty() {
        deltas.push(as_delta(text));
    }
}

/// The text of a list of parts, or of one part.
fn parts_text(value: Value<'_>) -> String {
    let parts = value.array().unwrap_or_else(|| vec![value]);
    let text = |part: Value<'_>| match part.object() {
        Some(object) => object.get("text")?.text(),
        None => part.text(),
    };
    let texts = parts.into_iter().filter_map(text);
    texts.map(|text| text.text).collect()
}

/// An item that was put together, or may be, from pieces of one text.
#[derive(Debug)]
struct Joined {
    members: Gathered,
    /// The member that holds the text.
    key: &'static str,
    text: String,
    /// Whether a second piece came.
    is_longer: bool,
}

impl Joined {
    /// An item that may go on; `None` if it holds no text.
    fn of(raw: &str) -> Option<Self> {
        let first = Object::read(raw)?;
        let key = TEXTS.into_iter().find(|key| first.get(key).is_some())?;
        let mut joined = Self {
            members: Gathered::default(),
            key,
            text: first.get(key)?.text()?.text,
            is_longer: false,
        };
        joined.keep(&first);
        Some(joined)
    }

    fn keep(&mut self, piece: &Object<'_>) {
        for (name, value) in piece.members() {
            // The text is put in at the end.
            let raw = if name == self.key {
                "\"\""
            } else {
                value.raw()
            };
            if raw != "null" || self.members.get(name).is_none() {
                self.members.put(name, raw);
            }
        }
    }

    /// Takes the item at this place of its list if it continues the text: both are text of the same
    /// type and index, and what came so far is not closed by a signature. Without an index, only the
    /// first of a list can continue what came before.
    fn take(&mut self, place: usize, next: &Object<'_>) -> bool {
        let same = |name: &str| self.members.get(name) == next.get(name).map(Value::raw);
        let indexed = place == 0 || self.members.get("index").is_some();
        let kind = next.word("type").unwrap_or_default();
        let is_text = kind == "thinking" || kind.starts_with("reasoning.");
        if !is_text || !indexed || !same("type") || !same("index") || self.is_closed() {
            return false;
        }
        let more = match next.get(self.key).map(Value::text) {
            Some(None) => return false,
            Some(Some(more)) => more.text,
            None => String::new(),
        };
        self.text.push_str(&more);
        self.is_longer = true;
        self.keep(next);
        true
    }

    fn is_closed(&self) -> bool {
        let signature = self.members.get("signature").unwrap_or_default();
        !matches!(signature.trim_matches('"').trim(), "")
    }

    /// The exact text of the item; `None` if it is that of its first piece.
    fn raw(mut self) -> Option<String> {
        if !self.is_longer {
            return None;
        }
        let text = serde_json::Value::from(self.text).to_string();
        self.members.put(self.key, &text);
        self.members.object()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one message after the other and shows the blocks and what was told.
    fn check(messages: &[&str], blocks: &[&str], told: &str) {
        let (mut thoughts, mut deltas) = (Thoughts::default(), Vec::new());
        for message in messages {
            let message = Object::read(message).unwrap();
            thoughts.take(&message, &mut deltas);
        }
        let shown: Vec<String> = thoughts
            .finish()
            .into_iter()
            .map(|block| match block {
                Reasoning::Text { field, text } => format!("{field}: {text}"),
                Reasoning::Raw { raw, .. } => raw,
            })
            .collect();
        assert_eq!(shown, blocks, "{messages:?}");
        let mut heard = String::new();
        for delta in deltas {
            let Delta::Reasoning(text) = delta else {
                panic!("{delta:?}")
            };
            heard.push_str(&text);
        }
        assert_eq!(heard, told, "{messages:?}");
    }

    #[test]
    fn text_is_kept_under_its_name_and_told_once() {
        check(
            &[
                r#"{"reasoning_content":"a"}"#,
                r#"{"reasoning_content":"b","content":"x"}"#,
            ],
            &["reasoning_content: ab"],
            "ab",
        );
        check(
            &[
                r#"{"reasoning":"a","reasoning_content":"a"}"#,
                r#"{"reasoning":"b"}"#,
            ],
            &["reasoning_content: a", "reasoning: ab"],
            "ab",
        );
        check(
            &[r#"{"thinking":"a","reasoning":"a"}"#],
            &["reasoning: a"],
            "a",
        );
        check(
            &[r#"{"thinking":[{"type":"text","text":"a"},"b"],"reasoning":null}"#],
            &["thinking: ab"],
            "ab",
        );
        check(&[r#"{"reasoning":{"id": 7}}"#], &[r#"{"id": 7}"#], "");
    }

    /// As many pieces as a long reply has: to read all of it again at each would take hours.
    #[test]
    fn a_text_of_many_pieces_is_one_item() {
        let piece = r#"{"reasoning_details":[{"type":"reasoning.text","text":"word ","index":0}]}"#;
        let item = format!(
            r#"{{"type":"reasoning.text","text":"{}","index":0}}"#,
            "word ".repeat(50_000)
        );
        check(&vec![piece; 50_000], &[&item], &"word ".repeat(50_000));
    }

    #[test]
    fn items_are_opaque_but_pieces_of_one_text_are_joined() {
        check(
            &[
                r#"{"reasoning":"a","reasoning_details":[{"type": "reasoning.encrypted","data":"Zm/="},{"n":1e0}]}"#,
            ],
            &[
                "reasoning: a",
                r#"{"type": "reasoning.encrypted","data":"Zm/="}"#,
                r#"{"n":1e0}"#,
            ],
            "a",
        );
        check(
            &[
                r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0,"signature":null}]}"#,
                r#"{"reasoning_details":[{"type":"reasoning.text","text":"b","index":0}]}"#,
                r#"{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"s"}]}"#,
                r#"{"reasoning_details":[{"type":"reasoning.text","text":"c","index":0}]}"#,
                r#"{"reasoning_details":[{"type":"reasoning.text","text":"d","index":1}]}"#,
            ],
            &[
                r#"{"type":"reasoning.text","text":"ab","index":0,"signature":"s"}"#,
                r#"{"type":"reasoning.text","text":"c","index":0}"#,
                r#"{"type":"reasoning.text","text":"d","index":1}"#,
            ],
            "abcd",
        );
    }
}
