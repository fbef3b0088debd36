//! The schema of what programs read, made from the types.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use undertext::compaction::hooks::{self, Answer, Question};
use undertext::transcript::Entry;

use super::{SCHEMA, Told};
use crate::cli::edits::{Expanded, Pinned, Retracted};
use crate::cli::rerun::Rerun;
use crate::cli::{
    batch, compacted, config, doctor, fork, import, lab, list, page, replay, rm, serve, show,
    tools, why,
};

/// The schema as the types have it.
fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let mut schema = contract(settings.clone().for_serialize());
    // What is always written now was not always: entries of an older version lack it.
    forgive(&mut schema, &contract(settings));
    schema
}

/// The schema of what is written, or of what can be read.
fn contract(settings: SchemaSettings) -> Value {
    let mut generator = settings.into_generator();
    let commands = [
        ("run", run(&mut generator)),
        ("batch", generator.subschema_for::<batch::Outcome>()),
        ("list", generator.subschema_for::<list::Glance>()),
        ("show", generator.subschema_for::<show::Overview>()),
        ("print", print(&mut generator)),
        ("replay", replay(&mut generator)),
        ("why", generator.subschema_for::<why::Told>()),
        ("page", paged(&mut generator)),
        ("retract", generator.subschema_for::<Retracted>()),
        ("expand", generator.subschema_for::<Expanded>()),
        ("pin", generator.subschema_for::<Pinned>()),
        ("unpin", generator.subschema_for::<Pinned>()),
        ("import", generator.subschema_for::<import::Told>()),
        ("fork", generator.subschema_for::<fork::Made>()),
        ("lab", generator.subschema_for::<lab::Told>()),
        ("config-path", generator.subschema_for::<config::Listed>()),
        ("config-check", generator.subschema_for::<config::Checked>()),
        (
            "config-show",
            generator.subschema_for::<config::show::Setting>(),
        ),
        (
            "doctor",
            generator.subschema_for::<doctor::check::Diagnosis>(),
        ),
        ("compact", generator.subschema_for::<compacted::Compacted>()),
        ("tools", generator.subschema_for::<tools::Offered<'_>>()),
        ("rm", generator.subschema_for::<rm::Deleted>()),
    ];
    // What hooks read and print, and a line of tasks, is in the schema, though no command writes it.
    let hooks = [
        ("batch-task", generator.subschema_for::<batch::TaskLine>()),
        ("hook-before", generator.subschema_for::<Question>()),
        ("hook-answer", generator.subschema_for::<Answer>()),
        ("hook-after", generator.subschema_for::<hooks::Told<'_>>()),
    ];
    let mut definitions = generator.take_definitions(true);
    let mut names = Vec::new();
    for (name, schema) in commands {
        names.push(json!({"$ref": format!("#/$defs/{name}")}));
        definitions.insert(name.to_owned(), schema.into());
    }
    for (name, schema) in hooks {
        definitions.insert(name.to_owned(), schema.into());
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "undertext --json",
        "description": "One JSON object a line. What each command writes stands in $defs under \
            its name. Fields are added, never renamed: leave alone what you do not know.",
        "anyOf": names,
        "$defs": definitions
    })
}

/// Requires only what the other schema, of the same shape, requires as well.
fn forgive(schema: &mut Value, other: &Value) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                let other = other.get(key).unwrap_or(&Value::Null);
                if let ("required", Value::Array(names)) = (key.as_str(), &mut *value) {
                    names.retain(|name| other.as_array().is_some_and(|all| all.contains(name)));
                } else {
                    forgive(value, other);
                }
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter_mut().enumerate() {
                forgive(item, other.get(place).unwrap_or(&Value::Null));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What `run` writes.
fn run(generator: &mut SchemaGenerator) -> Schema {
    let (told, entry) = (
        generator.subschema_for::<Told>(),
        generator.subschema_for::<Entry>(),
    );
    json_schema!({
        "description": "First `start`, last `totals`; between them the transcript's entries as \
            they are recorded, with `delta`, `progress` and `notice`.",
        "anyOf": [told, entry]
    })
}

/// What `replay` writes.
fn replay(generator: &mut SchemaGenerator) -> Schema {
    let (told, rerun) = (
        generator.subschema_for::<replay::Told>(),
        generator.subschema_for::<Rerun>(),
    );
    json_schema!({
        "description": "A line a request, and a last one; with --run one line, `rerun`.",
        "anyOf": [told, rerun]
    })
}

/// What `page` writes.
fn paged(generator: &mut SchemaGenerator) -> Schema {
    let (written, served) = (
        generator.subschema_for::<page::Written>(),
        generator.subschema_for::<serve::Served>(),
    );
    json_schema!({
        "description": "Where the page is: a file, or with `--serve` an address.",
        "anyOf": [written, served]
    })
}

/// What `print` writes.
fn print(generator: &mut SchemaGenerator) -> Schema {
    let entry = generator.subschema_for::<Entry>();
    let message = json_schema!({
        "description": "A message as it was sent, in the provider's form.",
        "type": "object",
        "properties": {"role": {"enum": ["system", "user", "assistant", "tool"]}},
        "required": ["role"]
    });
    json_schema!({
        "description": "Raw: the lines of the transcript. Compacted: the messages of a request.",
        "anyOf": [
            entry,
            message,
            {
                "description": "With both views, each line says which it belongs to.",
                "type": "object",
                "properties": {"view": {"enum": ["raw", "compacted"]}},
                "required": ["view"],
                "oneOf": [
                    {"properties": {"entry": entry}, "required": ["entry"]},
                    {"properties": {"message": message}, "required": ["message"]}
                ]
            }
        ]
    })
}

/// The schema as it is published, one definition a line.
fn published(mut schema: Value) -> String {
    let definitions = schema["$defs"].take();
    let lines: Vec<_> = (definitions.as_object().unwrap().iter())
        .map(|(name, definition)| format!("{}:{definition}", Value::from(name.as_str())))
        .collect();
    let head = schema.to_string();
    let head = head.strip_suffix("null}").unwrap();
    format!("{head}{{\n{}\n}}}}\n", lines.join(",\n"))
}

#[test]
fn what_is_published_is_what_the_types_say() {
    let said = published(schema());
    if said != SCHEMA {
        let fresh = std::env::temp_dir().join("output.schema.json");
        std::fs::write(&fresh, said).unwrap();
        panic!(
            "docs/output.schema.json must be what now stands in {}",
            fresh.display()
        );
    }
}
