//! Values as they would be written in a `config.yaml`.

use serde_json::Value;

/// A value on one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(string) => text(string),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let field =
                |(name, value): (&String, &Value)| format!("{}: {}", text(name), flow(value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}

/// A text, in quotes if it would mean something else without them.
pub(super) fn text(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/:@+-".contains(c);
    let first = |c: char| c.is_ascii_alphanumeric() || c == '/' || c == '.';
    let plain = text.starts_with(first)
        && text.chars().all(is_plain)
        && !text.ends_with(':')
        && !text.eq_ignore_ascii_case("null");
    if plain {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_text_is_read_as_it_was() {
        for (string, expected) in [
            ("qwen3:8b", "qwen3:8b"),
            ("https://h/v1", "https://h/v1"),
            ("5m", "5m"),
            ("", r#""""#),
            ("null", r#""null""#),
            ("a: b", r#""a: b""#),
            ("a:", r#""a:""#),
            ("#a", r##""#a""##),
            ("-", r#""-""#),
            ("*a", r#""*a""#),
            ("a\n'b\u{1b}", r#""a\n'b\u001b""#),
        ] {
            let written = text(string);
            assert_eq!(written, expected);
            let yaml = format!("key: {written}\n");
            let read: BTreeMap<String, Option<String>> = serde_saphyr::from_str(&yaml).unwrap();
            assert_eq!(read["key"].as_deref(), Some(string), "{yaml}");
        }
    }
}
