//! The members of the objects that a recording begins with, however they are laid out and wherever the
//! beginning is cut.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

/// How many objects of the beginning are looked at.
const LOOKED_AT: usize = 20;

/// The members of one object: their names, and the beginnings of those that are strings.
#[derive(Debug, Default)]
pub(super) struct Members(BTreeMap<String, String>);

impl Members {
    /// The beginning of the string that a member is; empty if it is none.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Whether there are members of all these names.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.0.contains_key(*name))
    }

    /// The names, for people.
    pub(super) fn listed(&self) -> String {
        let names: Vec<&str> = self.0.keys().map(String::as_str).take(8).collect();
        match names.len() {
            0 => "no members".to_owned(),
            _ => format!("the members {}", names.join(", ")),
        }
    }
}

/// The members of the first objects: one a line, the one whole object, or those of a list. The text
/// may end anywhere.
pub(super) fn objects(text: &[u8]) -> impl Iterator<Item = Members> + '_ {
    // One object on many lines, or a list of them.
    let first_line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let spread =
        text.starts_with(b"[") || serde_json::from_slice::<IgnoredAny>(first_line).is_err();
    let (whole, lines): (&[u8], &[u8]) = if spread { (text, text) } else { (b"", text) };
    let whole = (!whole.is_empty())
        .then(|| members(whole.trim_ascii_start().strip_prefix(b"[").unwrap_or(whole)));
    let lines = lines.split(|byte| *byte == b'\n').take(LOOKED_AT);
    let lines = lines.filter(|line| line.starts_with(b"{")).map(members);
    whole.into_iter().chain(lines)
}

/// The members of the object that begins a text.
fn members(text: &[u8]) -> Members {
    let mut found = Members::default();
    let (mut depth, mut at) = (0_usize, 0);
    let mut name: Option<String> = None;
    let mut is_value = false;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            b'"' => {
                let end = string_end(text, at + 1);
                if depth == 1 {
                    let inner = &text[at + 1..end.min(text.len())];
                    let short =
                        String::from_utf8_lossy(&inner[..inner.len().min(100)]).into_owned();
                    if is_value {
                        if let Some(name) = &name {
                            found.0.insert(name.clone(), short);
                        }
                    } else {
                        name = Some(short);
                    }
                }
                at = end;
            }
            b':' if depth == 1 => {
                is_value = true;
                found.0.entry(name.clone().unwrap_or_default()).or_default();
            }
            b',' if depth == 1 => is_value = false,
            _ => {}
        }
        at += 1;
    }
    found
}

/// Where the string ends that begins here: its quote, or the end of the text.
fn string_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}
