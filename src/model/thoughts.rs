//! Reasoning put together from its pieces: text under the name it came in, and opaque items.

use crate::exchange::Reasoning;
use crate::model::Delta;
use crate::model::loose::{Object, Value};

/// The members that hold reasoning as text.
const FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];
/// The members that hold lists of opaque items.
const LISTS: [&str; 2] = ["reasoning_details", "thinking_blocks"];
/// The members of an item that hold its text.
const TEXTS: [&str; 3] = ["text", "summary", "thinking"];

/// The reasoning so far.
#[derive(Debug, Default)]
pub(crate) struct Thoughts(Vec<Reasoning>);

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
            Reasoning::Text { field: known, text } if known == field => Some(text),
            Reasoning::Text { .. } | Reasoning::Raw { .. } => None,
        });
        match known {
            Some(known) => known.push_str(&text),
            None => self.0.push(Reasoning::Text {
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
            Reasoning::Raw { raw, field, .. } if field.as_deref() == list => Some(raw),
            Reasoning::Raw { .. } | Reasoning::Text { .. } => None,
        });
        if let Some(raw) = newest
            && let Some(joined) = joined(raw, place, &object)
        {
            *raw = joined;
        } else {
            self.0.push(Reasoning::Raw {
                raw: item.raw().to_owned(),
                field: list.map(str::to_owned),
                after: None,
            });
        }
        item.raw().len()
    }

    /// The blocks, without those that repeat an earlier text under another name.
    pub(crate) fn finish(mut self) -> Vec<Reasoning> {
        let mut seen: Vec<String> = Vec::new();
        self.0.retain(|block| match block {
            Reasoning::Text { text, .. } => {
                let new = !seen.contains(text);
                if new {
                    seen.push(text.clone());
                }
                new
            }
            Reasoning::Raw { .. } => true,
        });
        self.0
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

/// One item from two if the second, at this place of its list, continues the text of the first: both
/// are text of the same type and index, and the first is not closed by a signature. Without an
/// index, only the first of a list can continue what came before.
fn joined(raw: &str, place: usize, next: &Object<'_>) -> Option<String> {
    let first = Object::read(raw)?;
    let same = |name: &str| first.get(name) == next.get(name);
    let indexed = place == 0 || first.get("index").is_some();
    let kind = next.word("type")?;
    let is_text = kind == "thinking" || kind.starts_with("reasoning.");
    let closed = first.word("signature").is_some();
    if !is_text || !indexed || !same("type") || !same("index") || closed {
        return None;
    }
    let key = TEXTS.into_iter().find(|key| first.get(key).is_some())?;
    let mut text = first.get(key)?.text()?.text;
    if let Some(more) = next.get(key) {
        text.push_str(&more.text()?.text);
    }
    let text = serde_json::Value::from(text).to_string();
    let mut members: Vec<(&str, &str)> = Vec::new();
    for (name, value) in first.members().iter().chain(next.members()) {
        let value = if name == key { &text } else { value.raw() };
        match members.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) if value != "null" => *known = value,
            Some(_) => {}
            None => members.push((name, value)),
        }
    }
    let members = members.iter().map(|(name, value)| {
        let name = serde_json::Value::from(*name);
        format!("{name}:{value}")
    });
    let members: Vec<String> = members.collect();
    Some(format!("{{{}}}", members.join(",")))
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
