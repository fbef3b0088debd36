//! `config show`: every setting with its value, and what set it.

use std::io;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use undertext::config::{InForce, Layers, Origin, Sources};

use crate::cli::config::{ShowArgs, yaml};
use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};

/// The most that stands before what set a key, in characters; longer lines push it to the right.
const COLUMN: usize = 40;

/// Shows the settings. Settings that cannot be meant are shown as well, and refused after that.
pub(super) fn show(args: &ShowArgs, sources: &Sources, term: &mut Term) -> Result<Exit, Failure> {
    let layers = Layers::read(sources)?;
    let mut keys = layers.in_force()?;
    if args.changed {
        keys.retain(|key| key.default.as_ref() != Some(&key.value));
    }
    if args.json {
        for key in &keys {
            let setting = serde_json::to_string(&setting(key)).map_err(io::Error::from)?;
            term.print_json(&setting)?;
        }
    } else {
        if keys.is_empty() {
            term.say(&[(Look::Faint, "every setting has its default")])?;
        }
        lines(&keys, term)?;
    }
    layers.settings()?;
    Ok(Exit::Done)
}

/// A setting, and what set it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Setting {
    /// The key, with dots between the levels.
    key: String,
    /// The value in force.
    value: Value,
    /// The built-in value; absent for what has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
    /// What set it.
    from: SetBy,
}

/// What set a key.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SetBy {
    /// `built_in`, `file`, `variable`, `set` or `flag`.
    kind: &'static str,
    /// The path of the file, or the name of the variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
}

fn setting(key: &InForce) -> Setting {
    let (kind, name, line) = match &key.origin {
        Origin::BuiltIn => ("built_in", None, None),
        Origin::File(path, line) => ("file", Some(path.display().to_string()), *line),
        Origin::Variable(name) => ("variable", Some(name.clone()), None),
        Origin::Set => ("set", None, None),
        Origin::Flag => ("flag", None, None),
    };
    Setting {
        key: key.path.join("."),
        value: key.value.clone(),
        default: key.default.clone(),
        from: SetBy { kind, name, line },
    }
}

/// The keys as they would stand in a file, each with what set it as a comment.
fn lines(keys: &[InForce], term: &mut Term) -> Result<(), Failure> {
    let mut open: &[String] = &[];
    for key in keys {
        let Some((name, sections)) = key.path.split_last() else {
            continue;
        };
        let shared = open
            .iter()
            .zip(sections)
            .take_while(|(one, other)| one == other)
            .count();
        for (depth, section) in sections.iter().enumerate().skip(shared) {
            let line = format!("{}{}:", "  ".repeat(depth), yaml::text(section));
            term.print(&[(Look::Strong, line)])?;
        }
        open = sections;
        let indent = "  ".repeat(sections.len());
        let line = format!("{indent}{}: {}", yaml::text(name), yaml::flow(&key.value));
        let look = match key.origin {
            Origin::BuiltIn => Look::Faint,
            Origin::File(..) | Origin::Variable(_) | Origin::Set | Origin::Flag => Look::Plain,
        };
        term.print(&[
            (Look::Plain, format!("{line:COLUMN$}")),
            (look, format!("  # {}", key.origin)),
        ])?;
    }
    Ok(())
}
