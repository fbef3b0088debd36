//! The long lines of what is read and written, by which a quotation is known.
//!
//! A line is taken without what stands before it in a listing, in what a search found or in a patch: its
//! number, the path of its file, a `+` or a `-`. So a line that was read with its number is known again
//! where it is written without. A single word is no line: a path or the name of a package is put
//! together from what is known otherwise.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use serde_json::Value;

use crate::exchange::{Message, Reasoning, Response, arguments, normalised};
use crate::transcript::{Entry, Event};
use crate::view::View;

/// The shortest line that counts as quoted, in characters.
pub const QUOTE_CHARS: usize = 40;

/// The longest number of a line, in digits.
const DIGITS: usize = 7;

/// What a call says.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// The long lines of its arguments, as digests, each once.
    pub(super) lines: Box<[u64]>,
    /// What it asks for, as a digest: its tool and its arguments.
    pub(super) asks: u64,
}

/// The long lines that an entry adds to what the model reads, as digests, each once; without those of
/// arguments.
pub(super) fn lines(entry: &Entry) -> Box<[u64]> {
    let mut found = HashSet::new();
    let mut add = |text: &str| found.extend(digests(text));
    match &entry.event {
        Event::User(user) => {
            add(&user.text);
            let attachments = user.attachments.iter();
            attachments.for_each(|attachment| add(&attachment.text));
        }
        Event::Response(response) => add(&response.text),
        Event::Result(result) => add(&result.content),
        Event::Run(_)
        | Event::Setup(_)
        | Event::Request(_)
        | Event::Started(_)
        | Event::Overlay(_)
        | Event::Retract(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Fault(_)
        | Event::Note(_)
        | Event::End(_)
        | Event::Unknown(_) => {}
    }
    found.into_iter().collect()
}

/// What each call of a response says.
pub(super) fn written(response: &Response) -> Vec<Written> {
    let calls = response.calls.iter().map(|call| {
        let mut found = HashSet::new();
        let value = arguments(&call.arguments);
        texts(&value, &mut |text| found.extend(digests(text)));
        Written {
            lines: found.into_iter().collect(),
            asks: digest(&format!("{}\n{}", call.name, normalised(value))),
        }
    });
    calls.collect()
}

/// The long lines of a response, with those of its arguments, in their order.
pub(super) fn said(response: &Response) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let mut add = |text: &str| found.extend(long(text).map(|it| (digest(it), it.to_owned())));
    add(&response.text);
    for call in &response.calls {
        texts(&arguments(&call.arguments), &mut add);
    }
    found
}

/// All that the model reads in the next round's request, as one text.
pub(super) fn read(view: &View) -> String {
    let setup = view.setup();
    let mut all = setup.map_or_else(String::new, |it| it.wire.instructions.clone());
    let mut add = |text: &str| {
        all.push('\n');
        all.push_str(text);
    };
    for message in view.messages() {
        match message {
            Message::User { text } | Message::Tool { text, .. } => add(&text),
            Message::Assistant {
                text,
                reasoning,
                calls,
                extra: _,
            } => {
                for block in reasoning.iter() {
                    if let Reasoning::Text { text, .. } = block {
                        add(text);
                    }
                }
                add(&text);
                for call in calls {
                    texts(&arguments(&call.arguments), &mut add);
                }
            }
        }
    }
    all
}

/// Goes through every text in a value.
fn texts(value: &Value, take: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, take)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, take)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The lines of a text that can be quoted.
fn long(text: &str) -> impl Iterator<Item = &str> {
    // Bytes are never fewer than characters, so short ones need not be counted.
    let lines = text.lines().filter(|line| line.len() >= QUOTE_CHARS);
    let is_long = |line: &&str| line.chars().nth(QUOTE_CHARS - 1).is_some();
    let is_one_word = |line: &&str| !line.contains(char::is_whitespace);
    lines
        .map(bare)
        .filter(is_long)
        .filter(move |line| !is_one_word(line))
}

/// A line without what a listing, a search or a patch puts before it, and without spaces at its ends.
fn bare(line: &str) -> &str {
    let line = line.trim();
    let found = line.split_once(':').filter(|(path, _)| {
        let is_path = |c: char| c.is_alphanumeric() || "/._-@+".contains(c);
        path.contains(['/', '.']) && path.chars().all(is_path)
    });
    let numbered = found.and_then(|(_, rest)| after_number(rest));
    let line = numbered.or_else(|| after_number(line)).unwrap_or(line);
    let line = line.trim_start();
    line.strip_prefix(['+', '-']).unwrap_or(line).trim_start()
}

/// What stands behind the number of a line.
fn after_number(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..)?;
    let numbered = (1..=DIGITS).contains(&digits);
    rest.strip_prefix(['→', '\t', ':', '|', '-'])
        .filter(|_| numbered)
}

fn digests(text: &str) -> impl Iterator<Item = u64> {
    long(text).map(digest)
}

fn digest(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_same_with_its_number_and_without() {
        for line in [
            "  let port = settings.port();  ",
            "    12→  let port = settings.port();",
            "12\tlet port = settings.port();",
            "12:let port = settings.port();",
            "12|  let port = settings.port();",
            "src/main.rs:12:  let port = settings.port();",
            "+    let port = settings.port();",
            "-let port = settings.port();",
            "12→+let port = settings.port();",
        ] {
            assert_eq!(bare(line), "let port = settings.port();", "{line}");
        }
        for line in ["see: 12 of them", "port: 8443", "12345678:a", "12", "", "→"] {
            assert_eq!(bare(line), line);
        }
    }
}
