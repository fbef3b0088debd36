//! What the readers have in common: JSON by the line, and texts in parts.

use serde_json::Value;

/// The lines that are JSON objects; others are left out.
pub(super) fn objects(bytes: &[u8]) -> impl Iterator<Item = Value> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let values = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    values.filter(Value::is_object)
}

/// A string, or the texts of a list of parts; what is no text leaves its kind.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| match &part["text"] {
                Value::String(text) => text.clone(),
                _ if part.is_string() => text(part),
                _ => format!("[{}]", string(&part["type"])),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Object(_) | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The string that it is; else nothing.
pub(super) fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The list that it is; else an empty one.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
