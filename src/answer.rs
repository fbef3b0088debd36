//! Answers that must fit a JSON Schema.
//!
//! [`schema`] reads what a person hands in, once; [`unfit`] judges a text by it, wherever the model
//! runs: what a server promises to keep is not believed. Nothing here asks again: that is the step's.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::setup::OutputSchema;

/// The longest schema, in bytes: it goes with every request.
const LONGEST: usize = 256 << 10;

/// The longest name that a schema is sent under.
const NAME: usize = 64;

/// Places that are told of one answer.
const PLACES: usize = 5;

/// The longest text about one place, in characters.
const SAID: usize = 200;

/// Why a text is no schema that answers can be held against.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It is not JSON.
    #[error("not JSON")]
    Json(#[source] serde_json::Error),
    /// It is another JSON value.
    #[error("a JSON Schema is an object")]
    NoObject,
    /// It is too long to go with every request.
    #[error("a schema has at most {LONGEST} bytes, and this one has {0}")]
    Long(usize),
    /// It is an object, and no usable JSON Schema.
    #[error("{place}: {what}")]
    Unusable {
        /// Where in it.
        place: String,
        /// What is wrong there.
        what: String,
    },
}

/// The schema in a text, under a name made of the one given, such as its file's.
pub fn schema(name: &str, text: &str) -> Result<OutputSchema, SchemaError> {
    let text = text.trim_start_matches('\u{feff}');
    let value: Value = serde_json::from_str(text).map_err(SchemaError::Json)?;
    if !value.is_object() {
        return Err(SchemaError::NoObject);
    }
    // Members keep their order, in which models write.
    let compact = value.to_string();
    if compact.len() > LONGEST {
        return Err(SchemaError::Long(compact.len()));
    }
    jsonschema::validator_for(&value).map_err(|error| SchemaError::Unusable {
        place: place(error.instance_path().as_str(), "the schema"),
        what: said(&error),
    })?;
    let schema = RawValue::from_string(compact).map_err(SchemaError::Json)?;
    let name = sent_as(name);
    Ok(OutputSchema { name, schema })
}

/// A name as servers take it: letters, digits, underscores and hyphens.
fn sent_as(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().take(NAME).map(plain).collect();
    if name.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
        name
    } else {
        "answer".to_owned()
    }
}

/// What keeps a text from being an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// What is wrong, and where.
    pub what: String,
    /// Whether it is a JSON value at least.
    pub is_json: bool,
}

/// What keeps a text from being an answer that fits a schema; `None` if it is one. It must be one
/// JSON value with nothing around it but white space.
pub fn unfit(schema: &OutputSchema, text: &str) -> Option<Unfit> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            let what = if text.trim_start().starts_with("```") {
                "it stands in a code fence and must be the JSON value alone".to_owned()
            } else {
                format!("it is not one JSON value: {error}")
            };
            let is_json = false;
            return Some(Unfit { what, is_json });
        }
    };
    let is_json = true;
    let rules: Value = serde_json::from_str(schema.schema.get()).unwrap_or_default();
    let validator = match jsonschema::validator_for(&rules) {
        Ok(validator) => validator,
        Err(error) => {
            let what = format!("the schema cannot be used: {}", said(&error));
            return Some(Unfit { what, is_json });
        }
    };
    let mut faults = validator.iter_errors(&value);
    let places: Vec<String> = faults
        .by_ref()
        .take(PLACES)
        .map(|fault| {
            let place = place(fault.instance_path().as_str(), "the value");
            format!("{place}: {}", said(&fault))
        })
        .collect();
    if places.is_empty() {
        return None;
    }
    let more = if faults.next().is_some() {
        "; and more"
    } else {
        ""
    };
    let what = places.join("; ") + more;
    Some(Unfit { what, is_json })
}

/// A path in a value; the whole of it has a name instead.
fn place(path: &str, whole: &str) -> String {
    if path.is_empty() {
        whole.to_owned()
    } else {
        path.chars().take(SAID).collect()
    }
}

/// What a validator says, without values that are long.
fn said(error: &jsonschema::ValidationError<'_>) -> String {
    let what = error.to_string();
    let what = match what.char_indices().nth(SAID) {
        Some(_) => error.masked().to_string(),
        None => what,
    };
    what.chars().take(SAID).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{
        "type": "object",
        "properties": { "title": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["a b", "c\" d"]}} },
        "required": ["title"], "additionalProperties": false
    }"#;

    #[test]
    fn a_schema_keeps_its_order_and_loses_its_white_space() {
        let schema = schema("my report.v2", SCHEMA).unwrap();
        assert_eq!(schema.name, "my_report_v2");
        assert_eq!(
            schema.schema.get(),
            r#"{"type":"object","properties":{"title":{"type":"string"},"tags":{"type":"array","items":{"enum":["a b","c\" d"]}}},"required":["title"],"additionalProperties":false}"#
        );
        for (name, sent) in [("é", "answer"), ("", "answer"), ("a-1", "a-1")] {
            assert_eq!(sent_as(name), sent);
        }
        assert_eq!(sent_as(&"x".repeat(80)).len(), NAME);
    }

    #[test]
    fn what_is_no_schema_is_refused_with_its_place() {
        let long = format!(r#"{{"description":"{}"}}"#, "x".repeat(LONGEST));
        for (text, expected) in [
            ("", "not JSON"),
            (r#"{"type": "object""#, "not JSON"),
            ("[]", "a JSON Schema is an object"),
            (
                r#"{"properties": {"a": {"type": "strin"}}}"#,
                r#"/properties/a/type: "strin" is not valid under any of the schemas listed in the 'anyOf' keyword"#,
            ),
            (
                &long,
                "a schema has at most 262144 bytes, and this one has 262162",
            ),
        ] {
            assert_eq!(schema("s", text).unwrap_err().to_string(), expected);
        }
        // What stands elsewhere is not fetched.
        for away in ["https://example.org/s.json", "file:///etc/s.json"] {
            let text = format!(r#"{{"$ref": "{away}"}}"#);
            let error = schema("s", &text).unwrap_err();
            assert!(matches!(error, SchemaError::Unusable { .. }), "{error}");
        }
    }

    #[test]
    fn an_answer_is_one_json_value_that_fits() {
        let schema = schema("s", SCHEMA).unwrap();
        let long = format!(r#"{{"title": "t", "{}": 1}}"#, "x".repeat(300));
        let told =
            "the value: Additional properties are not allowed ('".to_owned() + &"x".repeat(160);
        for (text, expected) in [
            (r#"{"title": "t"}"#, None),
            (" \n{\"title\": \"t\", \"tags\": [\"a b\"]}\n", None),
            (
                "Here it is.",
                Some((
                    "it is not one JSON value: expected value at line 1 column 1",
                    false,
                )),
            ),
            (
                "{\"title\": \"t\"}\nDone.",
                Some((
                    "it is not one JSON value: trailing characters at line 2 column 1",
                    false,
                )),
            ),
            (
                "```json\n{\"title\": \"t\"}\n```",
                Some((
                    "it stands in a code fence and must be the JSON value alone",
                    false,
                )),
            ),
            (
                r#"{"tags": ["a b", 7]}"#,
                Some((
                    r#"/tags/1: 7 is not one of "a b" or "c\" d"; the value: "title" is a required property"#,
                    true,
                )),
            ),
            (
                "null",
                Some((r#"the value: null is not of type "object""#, true)),
            ),
            (&long, Some((&told, true))),
        ] {
            let found = unfit(&schema, text);
            let found = found.as_ref().map(|unfit| (&*unfit.what, unfit.is_json));
            assert_eq!(found, expected, "{text}");
        }
    }
}
