//! JSON whose strings are rewritten one by one.

use std::borrow::Cow;

use serde_json::Value;

use crate::secret::masked;

/// Whether names of fields are rewritten as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// They are: the text is only shown.
    Too,
    /// They stay, and so does what stands for one of several: the text is a schema.
    Stay,
}

/// The fields of a schema whose values programs compare.
const COMPARED: [&str; 7] = [
    "$ref", "const", "enum", "format", "pattern", "required", "type",
];

/// The JSON with every string rewritten; `None` if nothing changes. What is no JSON is rewritten as
/// one text.
pub(super) fn rewritten(
    json: &str,
    names: Names,
    rewrite: impl for<'a> Fn(&'a str) -> Cow<'a, str>,
) -> Option<String> {
    let Ok(mut value) = serde_json::from_str::<Value>(json) else {
        return match rewrite(json) {
            Cow::Borrowed(_) => None,
            Cow::Owned(new) => Some(new),
        };
    };
    let changed = walk(&mut value, names, &rewrite);
    changed.then(|| value.to_string())
}

/// Rewrites every string. Returns whether anything changed. Nesting is bounded by the parser.
pub(super) fn walk(
    value: &mut Value,
    names: Names,
    rewrite: &impl for<'a> Fn(&'a str) -> Cow<'a, str>,
) -> bool {
    match value {
        Value::String(text) => {
            let Cow::Owned(new) = rewrite(text) else {
                return false;
            };
            *text = new;
            true
        }
        Value::Array(items) => {
            let mut changed = false;
            for item in items {
                changed |= walk(item, names, rewrite);
            }
            changed
        }
        Value::Object(fields) => {
            let mut changed = false;
            for (name, value) in fields.iter_mut() {
                if names == Names::Stay && COMPARED.contains(&name.as_str()) {
                    continue;
                }
                changed |= walk(value, names, rewrite);
                changed |= named(name, value, rewrite);
            }
            if names == Names::Stay {
                return changed;
            }
            let odd: Vec<(String, String)> = fields
                .keys()
                .filter_map(|name| match rewrite(name) {
                    Cow::Owned(new) => Some((name.clone(), new)),
                    Cow::Borrowed(_) => None,
                })
                .collect();
            changed |= !odd.is_empty();
            for (name, new) in odd {
                if let Some(value) = fields.remove(&name) {
                    fields.insert(new, value);
                }
            }
            changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Rewrites a text that only its name says is secret.
fn named(
    name: &str,
    value: &mut Value,
    rewrite: &impl for<'a> Fn(&'a str) -> Cow<'a, str>,
) -> bool {
    let Value::String(text) = value else {
        return false;
    };
    if text.len() > 512 || !masked::may_hold(name) {
        return false;
    }
    let (before, behind) = (format!("\"{name}\":\""), "\"");
    let line = format!("{before}{text}{behind}");
    let rewritten = rewrite(&line);
    let inner = rewritten.strip_prefix(&before);
    match inner.and_then(|inner| inner.strip_suffix(behind)) {
        Some(new) if new != text => {
            new.clone_into(text);
            true
        }
        Some(_) | None => false,
    }
}
