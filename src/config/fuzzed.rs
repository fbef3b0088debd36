//! What holds of whatever stands in a file of settings: the body of a fuzz target below `fuzz/`,
//! which panics where a promise is broken.
//!
//! Only fuzz builds and tests have it; the tests replay the inputs that are kept. An input is one
//! line, the text of a `--set`, then a file.

#![expect(
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "it is there to panic"
)]

use std::error::Error as _;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::config::server::UNSHOWN;
use crate::config::{ConfigError, InForce, Layers, Origin, Place, Sections, Sources, read};
use crate::record::fuzzed::first_line;

/// The longest line that says what is wrong, in bytes.
const ERROR_MAX: usize = 16 << 10;

/// What is wrong is told in one line, of a file with its place; what is right means the same each
/// time, and when it is shown and read again; and an assignment sets nothing but its key.
pub fn settings(input: &[u8]) {
    let (line, file) = first_line(input);
    match given(file) {
        Ok(sections) => {
            if let Some(shown) = meant(&sections) {
                let written = written(&shown);
                let again = given(written.as_bytes()).ok().and_then(|read| meant(&read));
                assert_eq!(
                    Some(values(&shown)),
                    again.as_deref().map(values),
                    "{written}"
                );
            }
        }
        Err(error) => {
            let lines = file.split(|byte| matches!(byte, b'\n' | b'\r')).count() as u64;
            if let ConfigError::Setting {
                place: Place::File(_, at),
                ..
            } = &error
                && let Some((line, column)) = at
            {
                assert!((1..=lines + 1).contains(line) && *column > 0, "{error:?}");
            }
            sound(&error);
        }
    }
    assigned(&line);
}

/// A file as it is read.
fn given(file: &[u8]) -> Result<Sections, ConfigError> {
    let text = read::as_text(file).map_err(|(source, at)| ConfigError::Setting {
        place: Place::File("fuzzed.yaml".into(), at),
        source,
    })?;
    read::text_of(text, "fuzzed.yaml")
}

/// What these sections set, if they can be meant.
fn meant(sections: &Sections) -> Option<Vec<InForce>> {
    let sources = Sources {
        flags: sections.clone(),
        ..Sources::default()
    };
    let layers = match Layers::read(&sources) {
        Ok(layers) => layers,
        Err(error) => panic!("{error}"),
    };
    let settings = layers.settings();
    assert_eq!(format!("{settings:?}"), format!("{:?}", layers.settings()));
    if let Err(error) = &settings {
        sound(error);
        return None;
    }
    match layers.in_force() {
        Ok(keys) => Some(set(keys)),
        Err(error) => panic!("{error}"),
    }
}

/// The keys that somebody set, but for what is not shown as it is and cannot be read again.
fn set(keys: Vec<InForce>) -> Vec<InForce> {
    let is_set = |key: &InForce| key.origin != Origin::BuiltIn && key.value != UNSHOWN;
    keys.into_iter().filter(is_set).collect()
}

fn values(keys: &[InForce]) -> Vec<(&[String], &Value)> {
    let values = keys.iter().map(|key| (&key.path[..], &key.value));
    values.collect()
}

/// Keys as a file that sets them.
fn written(keys: &[InForce]) -> String {
    let mut file = Map::new();
    for InForce { path, value, .. } in keys {
        let Some((name, sections)) = path.split_last() else {
            panic!("a key has a name")
        };
        let mut within = &mut file;
        for section in sections {
            let inner = within
                .entry(section)
                .or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(inner) = inner else {
                panic!("{path:?} is no section")
            };
            within = inner;
        }
        within.insert(name.clone(), value.clone());
    }
    Value::Object(file).to_string()
}

/// No value can end its line and begin another key.
fn assigned(line: &str) {
    let sources = Sources {
        set: vec![line.to_owned()],
        ..Sources::default()
    };
    let layers = match Layers::read(&sources) {
        Ok(layers) => layers,
        Err(error) => return sound(&error),
    };
    let key = line.split('=').next().unwrap_or_default().trim();
    let named: Vec<String> = key.split('.').map(str::to_lowercase).collect();
    for key in set(layers.in_force().unwrap_or_default()) {
        let mut path = key.path.iter().map(|name| name.to_lowercase());
        let is_below = named.iter().all(|name| path.next().as_ref() == Some(name));
        assert!(is_below, "{:?} of {line:?}", key.path);
    }
}

/// An error is one line that can be shown.
fn sound(error: &ConfigError) {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(said, ": {error}").ok();
        cause = error.source();
    }
    assert!(!said.trim().is_empty() && said.len() <= ERROR_MAX, "{said}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_fuzzing_kept_holds() {
        crate::record::fuzzed::replay("settings", super::settings);
    }
}
