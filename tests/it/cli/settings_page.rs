//! The page of the settings, held against what it tells of.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use regex::Regex;
use serde_json::Value;

use crate::cli::{Place, says};
use crate::provider::{Answer, Provider};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    fs::read_to_string(path).unwrap()
}

/// What may stand for a value, in words.
fn kind(schema: &Value) -> String {
    let words = |words: &Value| {
        let words: Vec<_> = words.as_array().unwrap().iter().collect();
        let word = |word: &&Value| format!("`{}`", word.as_str().unwrap());
        words.iter().map(word).collect::<Vec<_>>().join(", ")
    };
    for several in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[several].as_array() {
            let kinds: Vec<String> = choices.iter().map(kind).collect();
            return kinds.join(", ");
        }
    }
    if let Some(word) = schema["const"].as_str() {
        return format!("`{word}`");
    }
    if schema["enum"].is_array() {
        return words(&schema["enum"]);
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let one = |name: &Value| match name.as_str().unwrap() {
        "null" => "none".to_owned(),
        "boolean" => "`true`, `false`".to_owned(),
        "string" if schema["format"] == "duration" => "time".to_owned(),
        "string" if schema["format"] == "size" => "size".to_owned(),
        "string" => "text".to_owned(),
        "array" => "list".to_owned(),
        "integer" => format!("number from {}", schema["minimum"]),
        "number" if schema["maximum"] == 1 => "part from 0 to 1".to_owned(),
        "number" => "number".to_owned(),
        "object" => match schema["properties"].as_object() {
            None => "`{}`".to_owned(),
            Some(fields) => {
                let fields: Vec<_> = fields.keys().cloned().collect();
                format!("`{{ {}: … }}`", fields.join(": …, "))
            }
        },
        other => panic!("{other}"),
    };
    types.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The rows of a section and of those in it.
fn rows(path: &str, schema: &Value, rows: &mut String) {
    let (keys, sections): (Vec<_>, Vec<_>) = schema["properties"]
        .as_object()
        .unwrap()
        .iter()
        .partition(|(_, key)| key.get("default").is_some() || path.contains('<'));
    for (name, key) in keys {
        let default = match key.get("default") {
            None => String::new(),
            Some(Value::Null) => "none".to_owned(),
            Some(Value::String(text)) => format!("`{text}`"),
            Some(Value::Array(items)) => {
                let items: Vec<_> = items.iter().filter_map(Value::as_str).collect();
                format!("`[{}]`", items.join(", "))
            }
            Some(value) => format!("`{value}`"),
        };
        let meaning = key["description"].as_str().unwrap().replace('\n', " ");
        let (kind, meaning) = (kind(key), meaning.replace('|', "\\|"));
        writeln!(rows, "| `{path}{name}` | {kind} | {default} | {meaning} |").unwrap();
    }
    for (name, section) in sections {
        let path = format!("{path}{name}.");
        if section["properties"].is_object() {
            self::rows(&path, section, rows);
        } else {
            let named = &section["additionalProperties"];
            self::rows(&format!("{path}<name>."), named, rows);
        }
    }
}

#[test]
fn every_key_stands_on_the_page_as_it_is() {
    let ran = Place::new().run(&["config", "schema"]);
    let schema: Value = serde_json::from_str(&ran.out).unwrap();
    let mut tables = String::new();
    for (name, section) in schema["properties"].as_object().unwrap() {
        let about = section["description"].as_str().unwrap();
        let mut keys = String::new();
        let path = format!("{name}.");
        if section["properties"].is_object() {
            rows(&path, section, &mut keys);
        } else {
            rows(
                &format!("{path}<name>."),
                &section["additionalProperties"],
                &mut keys,
            );
        }
        let head = "| key | value | default | meaning |\n| --- | --- | --- | --- |";
        writeln!(tables, "### `{name}`\n\n{about}\n\n{head}\n{keys}").unwrap();
    }
    let page = page();
    let start = page.find("### `").unwrap();
    let end = start + page[start..].find("\n## ").unwrap();
    let shown = page[start..end].trim_end();
    let tables = tables.trim_end();
    assert!(
        shown == tables,
        "docs/configuration.md must say from its first table on:

{tables}
"
    );
}

/// The worked example of the page: the same run, before and after a threshold is changed.
#[test]
fn a_threshold_that_is_changed_changes_the_overlays() {
    let place = Place::new();
    let reads = || {
        let call = |command| Answer::Calls(vec![("Bash", command)]);
        Provider::new([
            call(r#"{"command":"seq 1 2000"}"#),
            call(r#"{"command":"seq 2 2001"}"#),
            call(r#"{"command":"seq 3 2002"}"#),
            call(r#"{"command":"seq 4 2003"}"#),
            says("Counted."),
        ])
    };
    let task = ["--set", "compaction.estimate=chars", "count"];
    // What instructions and tools take is another matter.
    let sizes = Regex::new(r"[0-9,]+ → [0-9,]+ tokens").unwrap();
    let plain = |text: &str| sizes.replace_all(text, "A → B tokens").into_owned();
    let overlays = || {
        let shown = place.run(&["show"]).out;
        let lines = shown.lines().filter(|line| line.contains(" → "));
        plain(&lines.collect::<Vec<_>>().join("\n"))
    };
    let ran = place.ask(&reads(), &task);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(overlays(), "");

    let page = page();
    let yaml = page.split("```yaml\n").nth(1).unwrap();
    let yaml = &yaml[..yaml.find("```").unwrap()];
    let file = place.path("home/.config/undertext/config.yaml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, yaml).unwrap();
    let ran = place.ask(&reads(), &task);
    assert_eq!(ran.code, 0, "{ran:?}");
    insta::assert_snapshot!(overlays(), @"
    overlays    micro e16: A → B tokens, 1 result (2,710 of 1,000 tokens)
                micro e21: A → B tokens, 1 result (2,711 of 1,000 tokens)
    ");
    assert!(plain(&page).contains(&overlays()));
    let changed = place.run(&["config", "show", "--changed"]).out;
    let changed = place.plain(&changed).replace("/home/.config", "~/.config");
    assert!(page.contains(&changed), "{changed}");
}
