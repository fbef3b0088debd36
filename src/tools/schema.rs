//! The JSON Schema of a tool's arguments, made from the type that reads them.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::value::RawValue;

/// The schema of `Arguments`: draft 2020-12, without references, and without the keywords that
/// say nothing to a model (`title`, `format`, `default`).
///
/// A type without fields gives an object without properties. Types must not be recursive: they
/// cannot be written without references.
///
/// # Panics
///
/// Never: a JSON value can be written.
pub fn of<Arguments: JsonSchema>() -> Box<RawValue> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .with_transform(RecursiveTransform(strip))
        .into_generator()
        .into_root_schema_for::<Arguments>();
    // The comment on the type is for programmers: the tool has its own description.
    schema.remove("description");
    if schema.get("type").and_then(|kind| kind.as_str()) != Some("object") {
        schema = schemars::json_schema!({"type": "object"});
    }
    if schema.get("properties").is_none() {
        schema.insert("properties".to_owned(), serde_json::json!({}));
    }
    #[expect(
        clippy::expect_used,
        reason = "a schema is a JSON value, and writing one to memory cannot fail"
    )]
    serde_json::value::to_raw_value(&schema).expect("a JSON value can be written")
}

/// Takes out what is of no use to a model. It sees schemas only, not a property named `title`.
fn strip(schema: &mut Schema) {
    for keyword in ["title", "format", "default"] {
        schema.remove(keyword);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Book {
        /// The title.
        title: String,
        #[serde(default)]
        chapters: Vec<Chapter>,
        /// The page.
        #[schemars(range(min = 1))]
        page: Option<u32>,
    }

    #[derive(JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Chapter {
        default: bool,
    }

    #[test]
    fn a_schema_is_inline_and_plain() {
        insta::assert_snapshot!(of::<Book>().get(), @r#"{"type":"object","properties":{"title":{"description":"The title.","type":"string"},"chapters":{"type":"array","items":{"type":"object","properties":{"default":{"type":"boolean"}},"additionalProperties":false,"required":["default"]}},"page":{"description":"The page.","type":["integer","null"],"minimum":1}},"additionalProperties":false,"required":["title"]}"#);
        insta::assert_snapshot!(of::<()>().get(), @r#"{"type":"object","properties":{}}"#);
    }
}
