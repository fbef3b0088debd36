//! Schemas in plain words.

use proptest::prelude::*;

use super::*;

fn check(schema: &str, expected: &str) {
    assert_eq!(plain(schema).to_string(), expected, "{schema}");
}

#[test]
fn case_52_schemas_are_written_in_plain_words() {
    for (property, expected) in [
        (
            r#"{"type":"string","format":"uri","default":"x","minLength":1}"#,
            r#"{"type":"string","minLength":1}"#,
        ),
        (
            r##"{"$ref":"#/$defs/size","description":"How much."}"##,
            r#"{"description":"How much.","type":"integer","minimum":1}"#,
        ),
        (r##"{"$ref":"#/$defs/none"}"##, r#"{"type":"object"}"#),
        (
            r#"{"$ref":"https://example.com/x.json"}"#,
            r#"{"type":"object"}"#,
        ),
        (r#"{"type":["integer","null"]}"#, r#"{"type":"integer"}"#),
        (
            r#"{"type":["string","integer"],"description":"d","maximum":3}"#,
            r#"{"description":"d","anyOf":[{"type":"string"},{"type":"integer","maximum":3}]}"#,
        ),
        (
            r#"{"anyOf":[{"type":"string"},{"type":"null"}],"title":"T"}"#,
            r#"{"type":"string"}"#,
        ),
        (
            r#"{"type":"string","anyOf":[{"format":"a"},{"format":"b"}]}"#,
            r#"{"type":"string"}"#,
        ),
        (
            r#"{"oneOf":[{"type":"string"},{"type":"boolean"}]}"#,
            r#"{"anyOf":[{"type":"string"},{"type":"boolean"}]}"#,
        ),
        (
            r#"{"allOf":[{"type":"number"},{"maximum":2.5}]}"#,
            r#"{"type":"number","maximum":2.5}"#,
        ),
        (r#"{"const":"a"}"#, r#"{"type":"string","enum":["a"]}"#),
        (
            r#"{"enum":["a",null,"b"]}"#,
            r#"{"type":"string","enum":["a","b"]}"#,
        ),
        (
            r#"{"enum":[1,2],"description":"Which"}"#,
            r#"{"description":"Which (one of: 1, 2)","type":"integer"}"#,
        ),
        (
            r#"{"type":"array"}"#,
            r#"{"type":"array","items":{"type":"string"}}"#,
        ),
        (
            r#"{"prefixItems":[{"type":"string"},{"type":"integer"}]}"#,
            r#"{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"integer"}]}}"#,
        ),
        (
            r#"{"properties":{"$ref":{"type":"string"}},"required":["$ref","x"],"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"$ref":{"type":"string"}},"required":["$ref"]}"#,
        ),
        ("true", "{}"),
    ] {
        let schema = format!(
            r#"{{"type":"object","$schema":"x","properties":{{"p":{property}}},"$defs":{{"size":{{"type":"integer","minimum":1}}}}}}"#
        );
        check(
            &schema,
            &format!(r#"{{"type":"object","properties":{{"p":{expected}}}}}"#),
        );
    }
}

#[test]
fn what_is_no_schema_of_an_object_is_any_object() {
    for schema in ["", "null", "[]", "true", r#"{"type":"string"}"#, "{"] {
        check(schema, r#"{"type":"object","properties":{}}"#);
    }
    check(
        r#"{"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{}}}]}"#,
        r#"{"type":"object","properties":{"a":{"type":"string"},"b":{}}}"#,
    );
}

#[test]
fn references_within_themselves_end_in_any_object() {
    check(
        r##"{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"name":{"type":"string"}}}}}"##,
        r#"{"type":"object","properties":{"next":{"type":"object"},"name":{"type":"string"}}}"#,
    );
    // Each of these is twice the one before.
    let mut defs = vec![r#""d0":{"type":"string"}"#.to_owned()];
    for n in 1..40 {
        let last = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, n - 1);
        defs.push(format!(
            r#""d{n}":{{"properties":{{"a":{last},"b":{last}}}}}"#
        ));
    }
    let schema = format!(
        r##"{{"$ref":"#/$defs/d39","$defs":{{{}}}}}"##,
        defs.join(",")
    );
    assert!(plain(&schema).to_string().len() < 100 * SCHEMAS);
}

/// Schemas of every kind, also such as mean nothing.
fn any_schema() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        Just("object"),
        Just("array"),
        Just("string"),
        Just("integer"),
        Just("null"),
        Just("odd")
    ];
    let reference = prop_oneof![Just("#/$defs/a"), Just("#/$defs/b"), Just("#"), Just("x")];
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!({"const": 1})),
        Just(json!({"const": null})),
        Just(json!({"enum": ["a", 2, null]})),
        kind.clone()
            .prop_map(|kind| json!({"type": kind, "format": "f", "minimum": 1})),
        reference.prop_map(|to| json!({"$ref": to, "description": "d"})),
        proptest::collection::vec(kind, 0..3).prop_map(|kinds| json!({"type": kinds})),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let some = proptest::collection::vec(inner.clone(), 0..3);
        (0_u8..9, some, inner).prop_map(|(which, some, one)| match which {
            0 => json!({"type": "object", "properties": {"const": one, "x": some.first()}, "required": ["x", "y"]}),
            1 => json!({"type": "array", "items": one}),
            2 => json!({"anyOf": some, "description": "any"}),
            3 => json!({"anyOf": some, "type": "string"}),
            4 => json!({"oneOf": some, "properties": {"p": one}}),
            5 => json!({"allOf": some, "additionalProperties": one}),
            6 => json!({"prefixItems": some, "items": false}),
            7 => json!({"items": some, "not": one}),
            _ => json!({"$defs": {"a": one, "b": some.first()}, "anyOf": some, "properties": {"q": {"$ref": "#/$defs/a"}}}),
        })
    })
}

proptest! {
    #[test]
    fn what_is_lowered_is_plain_and_stays_as_it_is(schema in any_schema()) {
        let lowered = plain(&schema.to_string());
        let judged = crate::wire::judge::refused_schema(&lowered.to_string());
        prop_assert_eq!(judged, None, "{} of {}", lowered, schema);
        prop_assert_eq!(plain(&lowered.to_string()).to_string(), lowered.to_string(), "of {}", schema);
    }
}
