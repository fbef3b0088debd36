//! A strict judge of bodies: what the least tolerant provider would refuse.
//!
//! It knows nothing of entries or messages, only bytes and the model that they are for, and shares no
//! code with what renders them. Programs that are built for tests judge every body that is sent.

mod chat;
mod json;
mod responses;
mod schema;
mod shape;

use std::collections::{HashSet, VecDeque};

use serde_json::{Map, Value};

pub use shape::shape;

use crate::setup::{Api, CallIds, Model, Profile, SchemaForm};
use json::Json;

/// What a provider would refuse.
#[derive(Debug, thiserror::Error)]
pub enum Unsound {
    /// The bytes are no JSON, no UTF-8, or a key stands twice in one object.
    #[error("the body is no JSON")]
    Json(#[from] serde_json::Error),
    /// A part of it is not as it must be.
    #[error("{place}: {what}")]
    Part {
        /// Which part: `messages 3`.
        place: String,
        /// What is wrong with it.
        what: &'static str,
    },
}

/// Judges a body that is to be sent to a model.
pub fn judge(body: &[u8], model: &Model) -> Result<(), Unsound> {
    let body: Json<'_> = serde_json::from_slice(body)?;
    let Some(members) = body.members() else {
        return wrong("body", "is no object");
    };
    let profile = &model.profile;
    if body.get("model").text() != Some(&model.name) {
        return wrong("model", "is not the name of the model");
    }
    for name in &profile.parameters.leave_out {
        if members.iter().any(|(member, _)| member == name) {
            return wrong(name, "is a parameter that the provider does not take");
        }
    }
    let (list, function) = match model.api {
        Api::Chat => ("messages", Some("function")),
        Api::Responses => ("input", None),
    };
    tools(&body, function, profile)?;
    if members.last().is_none_or(|(last, _)| last != list) {
        return wrong(list, "do not stand last");
    }
    let Some(items) = body.get(list).items().filter(|items| !items.is_empty()) else {
        return wrong(list, "are missing");
    };
    match model.api {
        Api::Chat => chat::judge(items, profile),
        Api::Responses => responses::judge(items, profile),
    }
}

/// What a provider of little patience would refuse in the schema of a tool; `None` if nothing.
pub fn refused_schema(schema: &str) -> Option<&'static str> {
    match serde_json::from_str::<Json<'_>>(schema) {
        Ok(schema) => schema::refused(&schema),
        Err(_) => Some("has a schema that is no JSON"),
    }
}

fn wrong<T>(place: impl Into<String>, what: &'static str) -> Result<T, Unsound> {
    let place = place.into();
    Err(Unsound::Part { place, what })
}

/// The tools that are told of; in Chat Completions each stands within `function`.
fn tools(body: &Json<'_>, within: Option<&str>, profile: &Profile) -> Result<(), Unsound> {
    let Some(tools) = body.member("tools") else {
        return Ok(());
    };
    let tools = tools.items().unwrap_or_default();
    if tools.is_empty() {
        return wrong("tools", "are an empty list");
    }
    if tools.len() > profile.tools.max as usize {
        return wrong("tools", "are too many");
    }
    let mut names = HashSet::new();
    for (place, tool) in tools.iter().enumerate() {
        let wrong = |what| wrong(format!("tools {place}"), what);
        if tool.get("type").text() != Some("function") {
            return wrong("is no function");
        }
        let tool = within.map_or(tool, |within| tool.get(within));
        match tool.get("name").text() {
            Some(name) if !is_name(name, profile) => return wrong("has a name that is refused"),
            Some(name) if !names.insert(name) => return wrong("has the name of another"),
            Some(_) => {}
            None => return wrong("has no name"),
        }
        if tool.get("description").text().is_none() {
            return wrong("has no description");
        }
        if tool.get("parameters").members().is_none() {
            return wrong("has parameters that are no object");
        }
        let plain = profile.tools.schema == SchemaForm::Plain;
        if let Some(what) = plain
            .then(|| schema::refused(tool.get("parameters")))
            .flatten()
        {
            return wrong(what);
        }
    }
    Ok(())
}

fn is_name(name: &str, profile: &Profile) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= profile.tools.name_max as usize && name.chars().all(plain)
}

/// The calls so far: ids that were taken, and those whose results are awaited, in order.
#[derive(Debug, Default)]
struct Calls<'a> {
    taken: HashSet<&'a str>,
    awaited: VecDeque<&'a str>,
}

impl<'a> Calls<'a> {
    /// Takes a call in; what is wrong with it, if anything is.
    fn call(
        &mut self,
        (id, name, arguments): (&'a Json<'_>, &'a Json<'_>, &'a Json<'_>),
        profile: &Profile,
    ) -> Option<&'static str> {
        let Some(id) = id.text() else {
            return Some("is a call without an id");
        };
        let fits = match profile.calls.ids {
            CallIds::Plain => !id.is_empty() && id.len() <= profile.calls.id_max as usize,
            CallIds::Nine => id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()),
        };
        if !fits {
            return Some("is a call whose id has another form than the provider takes");
        }
        if !self.taken.insert(id) {
            return Some("is a call with the id of another");
        }
        if !name.text().is_some_and(|name| is_name(name, profile)) {
            return Some("is a call of a name that is refused");
        }
        // Of a key that stands twice in them every server takes one.
        let arguments = arguments
            .text()
            .map(serde_json::from_str::<Map<String, Value>>);
        if arguments.is_none_or(|read| read.is_err()) {
            return Some("is a call whose arguments are not one object");
        }
        self.awaited.push_back(id);
        None
    }

    /// Takes a result in; what is wrong with it, if anything is.
    fn result(&mut self, id: &Json<'_>, text: &Json<'_>) -> Option<&'static str> {
        let awaited = self.awaited.pop_front();
        if awaited.is_none() || awaited != id.text() {
            Some("is not the result that is awaited here")
        } else if text.text().is_none() {
            Some("is a result without a text")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
