//! The arguments of a call as values, and the text by which two spellings of them are the same.

use serde_json::Value;

use crate::exchange::plain;

/// The arguments in this text, which may have come as a string that holds them. None at all are
/// those of a tool without parameters; what is no JSON is one string.
pub fn arguments(text: &str) -> Value {
    let text = text.trim();
    if text.is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::String(inner)) => serde_json::from_str(&inner).unwrap_or(Value::String(inner)),
        Ok(value) => value,
        Err(_) => Value::String(text.to_owned()),
    }
}

/// A value as compact JSON with its keys in order: equal for whatever means the same.
pub fn normalised(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
}

/// The same of the arguments in this text. Where they are spelled as nearly all are, no value is made
/// of them.
pub fn normal(text: &str) -> String {
    plain::normal(text).unwrap_or_else(|| normalised(arguments(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_the_same_are_the_same() {
        for (text, same) in [
            (r#"{"b": {"y":1, "x":[2 ,{"d":0,"c":0}]},"a":"ä"}"#, true),
            (r#"{"a":"\u00e4","b":{"x":[2,{"c":0,"d":0}],"y":1}}"#, true),
            (
                r#""{\"a\":\"ä\",\"b\":{\"y\":1,\"x\":[2,{\"d\":0,\"c\":0}]}}""#,
                true,
            ),
            (r#"{"a":"ä","b":{"y":1,"x":[{"d":0,"c":0},2]}}"#, false),
            (r#"{"a":"ä"}"#, false),
            ("", false),
        ] {
            let one = r#"{"a":"ä","b":{"x":[2,{"c":0,"d":0}],"y":1}}"#;
            assert_eq!(normalised(arguments(text)) == one, same, "{text}");
        }
        assert_eq!(normalised(arguments(" ")), "{}");
        assert_eq!(normalised(arguments("{path: a")), r#""{path: a""#);
    }
}
