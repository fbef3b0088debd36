//! Schemas of arguments for providers that take only a part of JSON Schema.
//!
//! What is sent is looser than the schema, never stricter than what it allows to be written in these
//! words; the arguments of calls are checked by the whole schema all the same.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// How many schemas are looked at before what remains is any object.
const SCHEMAS: usize = 2000;
/// How deep schemas stand within each other before what remains is any object.
const DEPTH: usize = 32;
/// The types that there are, beside null.
const TYPES: [&str; 6] = ["object", "array", "string", "number", "integer", "boolean"];

/// The schema of an object in plain words: types, descriptions, properties, items, alternatives,
/// choices and bounds. References are written out, recursive ones as any object; what is no schema of
/// an object is any object.
pub fn plain(schema: &str) -> Value {
    let root: Value = serde_json::from_str(schema).unwrap_or_default();
    let mut lowering = Lowering {
        root: &root,
        left: SCHEMAS,
        within: Vec::new(),
    };
    let lowered = lowering.schema(&root, 0);
    if lowered.get("type").and_then(Value::as_str) == Some("object") {
        return lowered;
    }
    // Alternatives are written as one object that has the properties of all of them.
    let mut object = Map::new();
    copy(&mut object, lowered.as_object(), &["description"]);
    object.insert("type".to_owned(), "object".into());
    let mut properties = Map::new();
    for alternative in list(lowered.get("anyOf")) {
        for (name, of) in members(alternative.get("properties")) {
            properties.entry(name).or_insert(of.clone());
        }
    }
    object.insert("properties".to_owned(), Value::Object(properties));
    Value::Object(object)
}

/// Whether a text is a schema of an object, as far as providers look.
pub fn is_schema(schema: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(schema).is_ok()
}

/// The schema of any object, as it is sent.
pub fn any_object() -> Box<RawValue> {
    let text = r#"{"type":"object","properties":{}}"#.to_owned();
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The schema of an object of which nothing is said.
fn open() -> Value {
    json!({"type": "object"})
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn members(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

/// Copies the members of these names that are there.
fn copy(to: &mut Map<String, Value>, from: Option<&Map<String, Value>>, names: &[&str]) {
    for name in names {
        let value = from.and_then(|from| from.get(*name));
        // Words for people, numbers for bounds.
        if let Some(value) = value.filter(|value| value.is_number() || value.is_string()) {
            to.insert((*name).to_owned(), value.clone());
        }
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
        || schema.get("const").is_some_and(Value::is_null)
}

struct Lowering<'a> {
    /// What references point into.
    root: &'a Value,
    /// How many schemas may still be looked at.
    left: usize,
    /// The references that were followed to where it is.
    within: Vec<String>,
}

impl<'a> Lowering<'a> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(members) = schema.as_object() else {
            return json!({});
        };
        if depth >= DEPTH || self.left == 0 {
            return open();
        }
        let followed = self.within.len();
        let mut whole = Map::new();
        let mut alternatives = Vec::new();
        self.gather(&mut whole, &mut alternatives, members, depth);
        let lowered = self.written(&whole, &alternatives, depth);
        self.within.truncate(followed);
        Value::Object(lowered)
    }

    /// Gathers what a schema says together with those that it refers to and that all hold.
    fn gather(
        &mut self,
        whole: &mut Map<String, Value>,
        alternatives: &mut Vec<Value>,
        members: &Map<String, Value>,
        depth: usize,
    ) {
        if self.left == 0 || depth >= DEPTH {
            whole.entry("type").or_insert("object".into());
            return;
        }
        self.left -= 1;
        for (name, value) in members {
            match name.as_str() {
                "$ref" | "allOf" | "anyOf" | "oneOf" => {}
                "properties" => {
                    let known = whole.entry(name).or_insert_with(|| json!({}));
                    for (property, of) in value.as_object().into_iter().flatten() {
                        if let Some(known) = known.as_object_mut() {
                            known.entry(property).or_insert(of.clone());
                        }
                    }
                }
                "required" => {
                    let known = whole.entry(name).or_insert_with(|| json!([]));
                    for property in list(Some(value)) {
                        if let Some(known) = known.as_array_mut()
                            && !known.contains(property)
                        {
                            known.push(property.clone());
                        }
                    }
                }
                _ => {
                    whole.entry(name).or_insert(value.clone());
                }
            }
        }
        if let Some(reference) = members.get("$ref") {
            match self.follow(reference) {
                Some(target) => self.gather(whole, alternatives, target, depth + 1),
                None => {
                    whole.entry("type").or_insert("object".into());
                }
            }
        }
        for part in list(members.get("allOf")).filter_map(Value::as_object) {
            self.gather(whole, alternatives, part, depth + 1);
        }
        for name in ["anyOf", "oneOf"] {
            let some: Vec<&Value> = list(members.get(name))
                .filter(|one| !is_null(one))
                .collect();
            match some.as_slice() {
                [Value::Object(one)] => self.gather(whole, alternatives, one, depth + 1),
                some => alternatives.extend(some.iter().map(|one| (*one).clone())),
            }
        }
    }

    /// What a reference points at; `None` if there is nothing, or it stands within itself.
    fn follow(&mut self, reference: &Value) -> Option<&'a Map<String, Value>> {
        let reference = reference.as_str()?;
        if self.within.iter().any(|followed| followed == reference) {
            return None;
        }
        let target = self
            .root
            .pointer(reference.strip_prefix('#')?)?
            .as_object()?;
        self.within.push(reference.to_owned());
        Some(target)
    }

    /// What was gathered, in plain words.
    fn written(
        &mut self,
        whole: &Map<String, Value>,
        alternatives: &[Value],
        depth: usize,
    ) -> Map<String, Value> {
        let mut out = Map::new();
        copy(&mut out, Some(whole), &["description"]);
        let constant = whole.get("const").into_iter();
        let choices: Vec<&Value> = constant
            .chain(list(whole.get("enum")))
            .filter(|choice| !choice.is_null())
            .collect();
        let words = choices.iter().all(|choice| choice.is_string());
        if !words {
            describe(&mut out, &choices);
        }
        let kinds = kinds(whole, &choices);
        let mut each: Vec<Value> = Vec::new();
        if kinds.is_empty() {
            for alternative in alternatives {
                let lowered = self.schema(alternative, depth + 1);
                if !each.contains(&lowered) {
                    each.push(lowered);
                }
            }
        } else if let [kind] = kinds.as_slice() {
            let choices = if words { choices.as_slice() } else { &[] };
            self.kind(&mut out, kind, (whole, choices), depth);
            return out;
        } else {
            for kind in &kinds {
                let choices = if words { choices.as_slice() } else { &[] };
                let mut one = Map::new();
                self.kind(&mut one, kind, (whole, choices), depth + 1);
                each.push(Value::Object(one));
            }
        }
        match each.as_slice() {
            [] => {}
            [one] => {
                for (name, value) in members(Some(one)) {
                    out.entry(name).or_insert(value.clone());
                }
            }
            _ => {
                out.insert("anyOf".to_owned(), each.into());
            }
        }
        out
    }

    /// Adds what is said of one type.
    fn kind(
        &mut self,
        out: &mut Map<String, Value>,
        kind: &str,
        (whole, choices): (&Map<String, Value>, &[&Value]),
        depth: usize,
    ) {
        out.insert("type".to_owned(), kind.into());
        match kind {
            "object" => {
                let mut properties = Map::new();
                for (name, of) in members(whole.get("properties")) {
                    properties.insert(name.clone(), self.schema(of, depth + 1));
                }
                let known =
                    |name: &&Value| name.as_str().is_some_and(|n| properties.contains_key(n));
                let required: Vec<Value> =
                    list(whole.get("required")).filter(known).cloned().collect();
                if whole.contains_key("properties") {
                    out.insert("properties".to_owned(), Value::Object(properties));
                }
                if !required.is_empty() {
                    out.insert("required".to_owned(), required.into());
                }
            }
            "array" => {
                let items = self.items(whole, depth + 1);
                out.insert("items".to_owned(), items);
                copy(out, Some(whole), &["minItems", "maxItems"]);
            }
            "string" => {
                if !choices.is_empty() {
                    let choices: Vec<Value> = choices.iter().map(|c| (*c).clone()).collect();
                    out.insert("enum".to_owned(), choices.into());
                }
                copy(out, Some(whole), &["minLength", "maxLength"]);
            }
            _ => copy(out, Some(whole), &["minimum", "maximum"]),
        }
    }

    /// What a list holds: one schema for all places.
    fn items(&mut self, whole: &Map<String, Value>, depth: usize) -> Value {
        let mut each: Vec<Value> = Vec::new();
        let items = whole.get("items");
        let places = list(whole.get("prefixItems")).chain(list(items));
        for place in places.chain(items.filter(|items| items.is_object())) {
            let lowered = self.schema(place, depth);
            if !each.contains(&lowered) {
                each.push(lowered);
            }
        }
        match each.len() {
            0 => json!({"type": "string"}),
            1 => each.remove(0),
            _ => json!({"anyOf": each}),
        }
    }
}

/// The types of which one is meant, null left out.
fn kinds(whole: &Map<String, Value>, choices: &[&Value]) -> Vec<&'static str> {
    let said = whole.get("type");
    let said: Vec<&str> = said
        .and_then(Value::as_str)
        .into_iter()
        .chain(list(said).filter_map(Value::as_str))
        .collect();
    let mut kinds: Vec<&'static str> = TYPES
        .into_iter()
        .filter(|kind| said.contains(kind))
        .collect();
    if kinds.is_empty() && !choices.is_empty() {
        for choice in choices {
            let kind = match choice {
                Value::String(_) => "string",
                Value::Bool(_) => "boolean",
                Value::Number(number) if number.is_f64() => "number",
                Value::Number(_) => "integer",
                Value::Array(_) => "array",
                Value::Object(_) | Value::Null => "object",
            };
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    if kinds.is_empty() && whole.contains_key("properties") {
        kinds.push("object");
    }
    if kinds.is_empty() && (whole.contains_key("items") || whole.contains_key("prefixItems")) {
        kinds.push("array");
    }
    kinds
}

/// Says in words between what there is to choose.
fn describe(out: &mut Map<String, Value>, choices: &[&Value]) {
    let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
    let choices = format!("one of: {}", choices.join(", "));
    let text = match out.get("description").and_then(Value::as_str) {
        Some(text) => format!("{text} ({choices})"),
        None => choices,
    };
    out.insert("description".to_owned(), text.into());
}

#[cfg(test)]
mod tests;
