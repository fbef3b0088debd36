//! JSON by the line, read as it comes: a line that is broken, or longer than any line should be, costs
//! that line and no more.

use std::io::{self, BufRead};

use serde_json::{Value, json};

use crate::import::json;
use crate::transcript::Attachment;

/// The longest line that is read, in bytes.
const LINE: usize = 256 << 20;

/// The lines of a recording that are JSON objects.
pub(super) struct Lines<'a> {
    bytes: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    skipped: u64,
}

impl<'a> Lines<'a> {
    /// The lines of these bytes.
    pub(super) fn new(bytes: Box<dyn BufRead + 'a>) -> Self {
        Self {
            bytes,
            line: Vec::new(),
            skipped: 0,
        }
    }

    /// The next object; `None` at the end. Broken lines are left out and counted, empty ones are not.
    pub(super) fn next(&mut self) -> io::Result<Option<Value>> {
        loop {
            self.line.clear();
            let (ended, whole) = self.take()?;
            let text = self.line.trim_ascii();
            let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
            if whole && text.is_empty() {
                if ended {
                    return Ok(None);
                }
                continue;
            }
            match json::parse(text) {
                Ok(value) if whole && value.is_object() => return Ok(Some(value)),
                Ok(_) | Err(_) => self.skipped += 1,
            }
            if ended {
                return Ok(None);
            }
        }
    }

    /// How many lines were left out so far.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Reads a line; says whether it was the last, and whether it is all there.
    fn take(&mut self) -> io::Result<(bool, bool)> {
        let mut whole = true;
        loop {
            let buffer = match self.bytes.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(buffer.len(), |end| end + 1);
            if whole && self.line.len() + taken <= LINE {
                self.line.extend_from_slice(&buffer[..taken]);
            } else {
                whole = false;
                self.line = Vec::new();
            }
            self.bytes.consume(taken);
            if end.is_some() || taken == 0 {
                return Ok((taken == 0, whole));
            }
        }
    }
}

/// Takes the string that a member is; empty if it is none.
pub(super) fn take_text(value: &mut Value, member: &str) -> String {
    match value.get_mut(member).map(Value::take) {
        Some(Value::String(text)) => text,
        Some(_) | None => String::new(),
    }
}

/// Takes the list that a member is; empty if it is none.
pub(super) fn take_list(value: &mut Value, member: &str) -> Vec<Value> {
    match value.get_mut(member).map(Value::take) {
        Some(Value::Array(list)) => list,
        Some(_) | None => Vec::new(),
    }
}

/// The parts of a content, which may be a text alone.
pub(super) fn parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        Value::Null => Vec::new(),
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Object(_) | Value::Bool(_) | Value::Number(_) => vec![content],
    }
}

/// The string that a value is; empty if it is none.
pub(super) fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The text of a content: a string, or the texts of its parts, one on a line of its own each; parts
/// that are no text, such as images, leave a line that says what they are.
pub(super) fn text(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        Value::Array(parts) => {
            let texts = parts.into_iter().map(part);
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Object(_) => part(value),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The text of one part of a content.
fn part(mut value: Value) -> String {
    for member in ["text", "input_text", "output_text", "refusal"] {
        if let Some(Value::String(text)) = value.get_mut(member) {
            return std::mem::take(text);
        }
    }
    if let Value::String(text) = value {
        text
    } else {
        beside(&value).unwrap_or_else(|| value.to_string())
    }
}

/// What stands for a part of a message that is no text.
pub(super) fn attachment(part: &Value) -> Attachment {
    let kind = string(&part["type"]);
    let media = [
        &part["source"]["media_type"],
        &part["mimeType"],
        &part["media_type"],
    ];
    let media = media.into_iter().find_map(Value::as_str).unwrap_or(kind);
    Attachment {
        name: if kind.is_empty() { "part" } else { kind }.to_owned(),
        media: media.to_owned(),
        text: beside(part).unwrap_or_else(|| part.to_string()),
        clipped: None,
    }
}

/// Whether a text can be bytes in base 64.
fn is_base64(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=\r\n".contains(&byte);
    text.bytes().all(is_digit)
}

/// The line that stands for a part whose bytes are no text: its media type and size.
pub(super) fn beside(part: &Value) -> Option<String> {
    let kind = string(&part["type"]);
    let image = &part["image_url"];
    let url = image.as_str().or_else(|| image["url"].as_str());
    let source = &part["source"];
    // Anthropic's, pi's, and a data address.
    let data = [&source["data"], &part["data"], &part["file_data"]];
    let data = data.into_iter().find_map(Value::as_str).or(url);
    let is_known = [
        "image",
        "image_url",
        "input_image",
        "document",
        "input_file",
        "audio",
    ];
    if !is_known.contains(&kind) {
        return None;
    }
    let (mut media, mut data) = (
        [
            &source["media_type"],
            &part["mimeType"],
            &part["media_type"],
        ]
        .into_iter()
        .find_map(Value::as_str)
        .unwrap_or_default(),
        data.unwrap_or_default(),
    );
    if let Some((found, rest)) = data
        .strip_prefix("data:")
        .and_then(|data| data.split_once(";base64,"))
    {
        (media, data) = (found, rest);
    } else if data.starts_with("http") {
        return Some(format!("[{kind}: {data}]"));
    }
    let media = if media.is_empty() { kind } else { media };
    // A document may be handed in as the text that it is.
    if !data.is_empty() && (source["type"] == "text" || !is_base64(data)) {
        let title = ["title", "filename"]
            .into_iter()
            .find_map(|it| part[it].as_str());
        return Some(match title {
            Some(title) => format!("[{media}: {title}]\n{data}"),
            None => format!("[{media}]\n{data}"),
        });
    }
    Some(match data.len() / 4 * 3 {
        0 => format!("[{media}]"),
        bytes => format!("[{media}, {bytes} bytes]"),
    })
}
