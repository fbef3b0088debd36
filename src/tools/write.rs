//! `Write`: puts a whole file in place.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::exchange::{Facts, FileWritten, ToolSpec};
use crate::tools::scope::{Missing, Refusal, Site, quoted};
use crate::tools::{Outcome, declared, file, schema, stand_in};
use crate::words::grouped;

/// The arguments of `Write`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the working directory or absolute.
    path: String,
    /// Everything that is to stand in it.
    content: String,
}

/// The spec of `Write`.
pub(crate) fn spec() -> ToolSpec {
    declared::spec("Write", schema::of::<Arguments>())
}

/// Writes the file.
pub(crate) fn run(site: &Site, arguments: &str) -> Outcome {
    match serde_json::from_str(arguments) {
        Ok(arguments) => {
            write(site, &arguments).unwrap_or_else(|refusal| refusal.outcome(&arguments.path))
        }
        Err(error) => Outcome::error(format!("The arguments do not fit: {error}")),
    }
}

fn write(site: &Site, Arguments { path, content }: &Arguments) -> Result<Outcome, Refusal> {
    let spot = site.find_to_write(path, Missing::Create)?;
    let old = file::read(site, &spot)?;
    if let Some(old) = &old {
        let why = match site.known {
            Some(known) if known == old.digest => None,
            Some(_) => Some("it changed since you last read it"),
            None => Some("it exists and you have not read it"),
        };
        if let Some(why) = why {
            let path = quoted(path);
            return Ok(Outcome::error(format!(
                "{path}: not written, {why}. Read it first."
            )));
        }
        if let Some(why) = stand_in::loss(&old.bytes, content.as_bytes()) {
            let path = quoted(path);
            return Ok(Outcome::error(format!("{path}: not written, {why}")));
        }
    }
    let sha256 = file::replace(&spot, content.as_bytes(), old.as_ref())?;
    let done = if old.is_some() { "Replaced" } else { "Created" };
    let lines = match content.lines().count() {
        1 => "1 line".to_owned(),
        lines => format!("{} lines", grouped(lines as u64)),
    };
    let name = site.name(path);
    let mut outcome = Outcome::ok(format!("{done} {} ({lines}).", quoted(&name)));
    if old.is_none()
        && let Some(remark) = stand_in::remark(content.as_bytes())
    {
        outcome.add_line(&remark);
    }
    Ok(outcome.with_facts(Facts {
        wrote: vec![FileWritten { path: name, sha256 }],
        ..Facts::default()
    }))
}
