//! The schema of `config.yaml`, made from the types.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::config::{EXAMPLE, SCHEMA, Sections};

/// The schema as the types and the example have it.
fn schema() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Sections>();
    schema.insert("title".to_owned(), "undertext config.yaml".into());
    let mut schema = Value::from(schema);
    put_defaults(&mut schema, &plain(EXAMPLE).unwrap_or_default());
    schema
}

/// A file as plain values. As in YAML of today, `off` is a word.
pub(super) fn plain(yaml: &str) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(yaml, options)
}

/// Writes each key's default into its schema, and lets a section be empty.
fn put_defaults(schema: &mut Value, example: &Value) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (key, property) in properties {
        let example = &example[key.as_str()];
        let Some(fields) = property.as_object_mut() else {
            continue;
        };
        if fields.contains_key("properties")
            || fields
                .get("additionalProperties")
                .is_some_and(Value::is_object)
        {
            fields.insert("type".to_owned(), vec!["object", "null"].into());
            put_defaults(property, example);
        } else {
            fields.insert("default".to_owned(), example.clone());
        }
    }
}

#[test]
fn what_is_published_is_what_the_types_say() {
    let said = format!("{:#}\n", schema());
    if said != SCHEMA {
        let fresh = std::env::temp_dir().join("config.schema.json");
        std::fs::write(&fresh, said).unwrap();
        panic!(
            "docs/config.schema.json must be what now stands in {}",
            fresh.display()
        );
    }
}
